"""Checks every row, then writes everything; all of it becomes visible at once."""

import gc
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, OperationalError
from django.db.models import Model

from bank.errors import BadInput, outage
from bank.intake import formats
from bank.intake.formats.blocks import Block
from bank.intake.formats.reading import BadFile, Problem, Row, Where
from bank.intake.imports import Cancelled, Progress, Report, never, no_progress, registry, scratch, writer
from bank.intake.imports.context import Scene
from bank.intake.imports.registry import Taker
from bank.intake.imports.sources import _as_told, _look, _outside, opened
from bank.models import Benchmark

Finish = Callable[[Benchmark, dict[str, Report]], None]


def nothing_more(benchmark: Benchmark, reports: dict[str, Report]) -> None:
    """For imports whose end nobody else has a part in."""


def bring(
    *,
    path: Path,
    format: str | ModuleType = "auto",
    parts: Sequence[str] = (),
    slug: str,
    version: str = "",
    title: str = "",
    anchor: str = "",
    visibility: str = "",
    model: str = "",
    judge: str = "",
    campaign: str = "",
    images: Path | None = None,
    dry_run: bool = False,
    skip_bad: bool = False,
    progress: Progress = no_progress,
    cancelled: Callable[[], bool] = never,
    finish: Finish = nothing_more,
) -> dict[str, Report]:
    """Bring these parts of a file, folder or zip archive in (default: all that are there), all of them or nothing.

    Samples go into the benchmark ``slug`` (its newest version, or the one named), which is made where it is new; for
    the other parts alone it must exist. ``title`` and ``visibility`` are those of a new benchmark; ``model`` and
    ``judge`` name whose rows they are that do not say, ``campaign`` where labels go.

    With ``dry_run`` nothing is written, and nothing locked; each part counts on what those before it would make.
    ``progress(part, rows)`` hears of checked rows, and under the name "write" of written ones. ``cancelled`` is asked
    between batches; then nothing stays and Cancelled is raised. ``finish(benchmark, reports)`` is called when all is
    written, inside the transaction.

    Twice the same changes nothing. Raises BadInput, BadFile, LookupError (the format has no such part), Cancelled.
    """
    try:
        validate_slug(slug)
    except ValidationError:
        raise BadInput(f"{slug!r} is no slug: use letters, digits, - and _.") from None
    for what, value, limit in (("slug", slug, 80), ("version", version, 40), ("title", title, 200)):
        if len(value) > limit or not value.isprintable():
            raise BadInput(f"The {what} may have at most {limit} characters, all of them printable.")
    with ExitStack() as stack:
        here = stack.enter_context(opened(path, cancelled))
        seen = _look(here, format) if not parts else _as_told(here, format, parts)
        for name in seen.parts:
            formats.reader(seen.module, name)
        own = cache(lambda: stack.enter_context(scratch.folder()))

        def scene() -> Scene:
            found = Benchmark.objects.filter(slug=slug, **({"version": version} if version else {}))
            benchmark = found.select_related("anchor").order_by("-pk").first()
            if benchmark is None and "samples" not in seen.parts:
                raise BadInput(f"There is no benchmark {slug!r}; bring its samples in first.")
            return Scene(
                module=seen.module,
                path=seen.path,
                images=images or seen.images,
                parts=seen.parts,
                slug=slug,
                version=version,
                title=title,
                anchor=anchor or (seen.module.anchor(seen.path) if hasattr(seen.module, "anchor") else ""),
                visibility=visibility,
                model=model,
                judge=judge,
                campaign=campaign,
                scratch=None if dry_run else own,
                benchmark=benchmark,
            )

        reports = run(
            scene=scene,
            names=seen.parts,
            dry_run=dry_run,
            skip_bad=skip_bad,
            progress=progress,
            cancelled=cancelled,
            finish=finish,
        )
        for report in reports.values() if here != path else ():
            for listed in (report.problems, report.warnings):
                listed[:] = [fault._replace(where=_outside(fault.where, here, path)) for fault in listed]
        return reports


BATCH = 1000
IN_MEMORY = 16 * 2**20
HEAVY = 32 * 2**20
TRIES = 5
WRITING = "write"
LOCKED = ("database is locked", "deadlock detected")  # something else holds for long what this needs
GARBAGE = (200_000, 20, 50)  # rows come and go without cycles: looking for those was a quarter of the time


class Spool:
    """What is to be written, kept in a file without a name: nobody finds it, and a kill leaves none behind."""

    def __init__(self) -> None:
        folder = str(settings.DATA) if settings.DATA.is_dir() else None
        self.file: Any = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=folder)  # noqa: SIM115 (see close)

    def put(self, part: str, rows: int, batch: Any) -> None:
        pickler = pickle.Pickler(self.file, pickle.HIGHEST_PROTOCOL)
        pickler.fast = True  # plain values, nothing twice
        pickler.dump((part, rows, batch))

    def __iter__(self) -> Iterator[tuple[str, int, Any]]:
        self.file.seek(0)
        while True:
            try:
                yield pickle.load(self.file)  # noqa: S301 (written by this process, open to nobody else)
            except EOFError:
                return

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *error: object) -> None:
        """What is to be undone may need the room."""
        self.close()


def run(
    *,
    scene: Callable[[], Scene],
    names: Sequence[str],
    dry_run: bool,
    skip_bad: bool,
    progress: Progress,
    cancelled: Callable[[], bool],
    finish: Finish = nothing_more,
) -> dict[str, Report]:
    """Import these parts, which are in order. ``scene`` sets out anew.

    Only one import writes at a time; the next waits for its end. Where the two have names in common, the database's own
    constraints tell, and the second starts again and sees what the first has made. So it does when somebody made such a
    row by hand, and when it waited for the write lock in vain. Raises BadInput where that does not end, and where the
    disk is full: nothing of it came in then.
    """
    for left in reversed(range(TRIES)):
        try:
            return _once(scene(), names, dry_run, skip_bad, progress, cancelled, finish)
        except (IntegrityError, writer.Outdated):
            if not left:
                raise
        except (OperationalError, OSError) as error:
            if left and any(words in str(error) for words in LOCKED):
                continue
            if words := outage(error):
                raise BadInput(f"{words} Nothing of it came in; begin again when that is over.") from None
            raise
    raise AssertionError("unreachable")


def _once(
    scene: Scene,
    names: Sequence[str],
    dry_run: bool,
    skip_bad: bool,
    progress: Progress,
    cancelled: Callable[[], bool],
    finish: Finish,
) -> dict[str, Report]:
    spool = Spool()
    thresholds = gc.get_threshold()
    gc.set_threshold(*GARBAGE)
    try:
        takers = {name: registry.taker(name, scene) for name in names}
        reports = {name: Report() for name in names}
        whole = True
        for name in names:
            whole &= _check(scene, name, takers[name], reports[name], spool, progress, cancelled)
        bad = any(report.problems for report in reports.values())
        if scene.scratch is None or not whole or (bad and not skip_bad):
            return reports
        with writer.opened(folder=scene.scratch().name, cancelled=cancelled) as scene.intake, spool:
            _write(scene, takers, spool, progress, cancelled)
            scene.settle()
            with scene.intake.switch():
                scene.show()
                for taker in takers.values():
                    taker.show()
                if "samples" in reports and (retired := mark_retired(scene.open()))[0]:
                    reports["samples"].made[f"samples retired in version {retired[1]}"] = retired[0]
                finish(scene.open(), reports)
                if cancelled():
                    raise Cancelled
        for report in reports.values():
            report.written = True
        return reports
    finally:
        spool.close()
        gc.set_threshold(*thresholds)


def _check(
    scene: Scene,
    name: str,
    taker: Taker,
    report: Report,
    spool: Spool,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> bool:
    """Whether the file could be read to its end."""

    try:
        found = formats.batches(scene.module, name, scene.path)
        for rows in _batches(found, report, getattr(taker, "weigh", None)):
            if cancelled():
                raise Cancelled
            batch = taker.check(rows, report)
            if batch and scene.writes:
                spool.put(name, len(rows), batch)
            progress(name, report.rows)
    except BadFile as error:
        report.add(error.problem)
        return False
    if not report.rows and not report.problems:
        report.refuse(Where("the file"), "", "holds no rows")
    return True


def _batches(
    found: Iterator[Block | Row | Problem], report: Report, weigh: Callable[[Row], int] | None
) -> Iterator[Block | list[Row]]:
    """Blocks as they come, rows by the thousand; of heavy ones, which bring their pictures with them, fewer."""
    batch: list[Row] = []
    held = 0
    for one in found:
        if isinstance(one, Problem):
            report.add(one)
            continue
        report.rows += len(one) if isinstance(one, Block) else 1
        if isinstance(one, Row):
            batch.append(one)
            held += weigh(one) if weigh else 0
        if batch and (isinstance(one, Block) or len(batch) == BATCH or held > HEAVY):
            yield batch
            batch, held = [], 0
        if isinstance(one, Block):
            yield one
    if batch:
        yield batch


def _write(
    scene: Scene, takers: dict[str, Taker], spool: Spool, progress: Progress, cancelled: Callable[[], bool]
) -> None:
    coming: Counter[type[Model]] = Counter(scene.coming_rows())
    for taker in takers.values():
        coming.update(taker.coming())
    scene.intake.reserve(coming)
    scene.open()
    scene.intake.flush()
    done = 0
    for name, rows, batch in spool:
        if cancelled():
            raise Cancelled
        takers[name].write(batch)
        scene.intake.flush()
        done += rows
        progress(WRITING, done)


def mark_retired(benchmark: Benchmark) -> tuple[int, str]:
    """Mark the samples of the version before that are not in this one; (how many were marked now, that version).

    Called again when more samples came in: what came back is marked no more. Nothing is removed.
    """
    older = Benchmark.objects.filter(slug=benchmark.slug, pk__lt=benchmark.pk).order_by("-pk").first()
    if older is None:
        return 0, ""
    here = benchmark.samples.order_by().values("key")
    older.samples.filter(retired_in=benchmark.version, key__in=here).update(retired_in="")
    gone = older.samples.filter(retired_in="").exclude(key__in=here)
    return gone.update(retired_in=benchmark.version), older.version
