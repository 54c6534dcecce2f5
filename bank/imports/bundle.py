"""The way in: everything that a file, a folder or a zip archive holds, in one go."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

from bank import formats
from bank.formats.reading import BadFile, Row, Where
from bank.imports import BadInput, Progress, Report, archive, engine, never, no_progress, scratch
from bank.imports import parts as registry
from bank.imports.scene import Scene
from bank.models import Benchmark

ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz")
LOOKED_AT = 50


@dataclass(frozen=True)
class Look:
    """What a path holds: the format, the parts that can be read here, in order, and where the data lies.

    ``path`` is the file or folder that the format reads, ``images`` the folder where image paths start.
    """

    module: ModuleType
    parts: tuple[str, ...]
    path: Path
    images: Path

    @property
    def format(self) -> str:
        return str(self.module.NAME)

    @property
    def name(self) -> str:
        """The format's name for people."""
        return str(getattr(self.module, "TITLE", self.module.NAME))


def look(path: Path, format: str = "auto") -> Look:
    """What this file, folder or zip archive holds. Raises BadFile.

    Of an archive the paths are gone when this returns; within ``with opened(path) as here`` they stay.
    """
    with opened(path) as here:
        return _look(here, format)


def _look(path: Path, format: str | ModuleType) -> Look:
    module, path = _recognised(path, format)
    images = path if path.is_dir() else path.parent
    readable = tuple(name for name in registry.known() if hasattr(module, name))
    if hasattr(module, "parts"):
        held = module.parts(path)
        return Look(module, tuple(name for name in readable if name in held), path, images)
    found = tuple(name for name in readable if _holds(module, name, path))
    return Look(module, found or readable[:1], path, images)


def _as_told(path: Path, format: str | ModuleType, names: Sequence[str]) -> Look:
    unknown = sorted(set(names) - set(registry.known()))
    if unknown:
        raise BadInput(f"{unknown[0]!r} is no part of an import; the parts are {', '.join(registry.known())}.")
    module, path = _recognised(path, format)
    ordered = tuple(name for name in registry.known() if name in names)
    return Look(module, ordered, path, path if path.is_dir() else path.parent)


def _recognised(path: Path, format: str | ModuleType) -> tuple[ModuleType, Path]:
    """The format, and the file or folder that it reads: of a folder that no format knows, its only data file."""
    if isinstance(format, ModuleType):
        return format, path
    try:
        return formats.find(format, path), path
    except BadFile:
        if not path.is_dir():
            raise
        files = [file for file in sorted(path.iterdir()) if file.is_file() and file.suffix.lower() in ENDINGS]
        if len(files) != 1:
            raise
        return formats.find(format, files[0]), files[0]


def _holds(module: ModuleType, name: str, path: Path) -> bool:
    """Whether the reader of this part finds a row of its own among the first."""
    try:
        return any(isinstance(row, Row) for row in islice(formats.reader(module, name)(path), LOOKED_AT))
    except BadFile:
        return False


@contextmanager
def opened(path: Path, cancelled: Callable[[], bool] = never) -> Iterator[Path]:
    """``archive.opened``, with errors that speak of the archive and not of the folder it lies in."""
    with archive.opened(path, cancelled=cancelled) as here:
        try:
            yield here
        except BadFile as error:
            if (where := _outside(error.problem.where, here, path)) == error.problem.where:
                raise
            raise BadFile(where, error.problem.reason) from None


def _outside(where: Where, here: Path, path: Path) -> Where:
    """A place in an archive that lies unpacked in ``here``, as whoever sent it knows it."""
    if here == path or not where.file.startswith(str(here)):
        return where
    inside = where.file.removeprefix(str(here)).strip("/")
    return where._replace(file=f"{path.name}/{inside}".rstrip("/"))


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
    finish: engine.Finish = engine.nothing_more,
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

        reports = engine.run(
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
