"""What a worker does with uploads: checks the files, and imports them once that is confirmed.

It is one job of the queue, done by one worker at a time, and by the next one where that was killed, which repeats the
step. Rows of a killed import are not visible to anyone and are removed first.
"""

import csv
import io
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from django.utils import timezone

from accounts import jobs
from accounts.csv import escape
from accounts.rules import allowed
from bank.errors import BadInput, outage
from bank.intake.formats import UnknownFormat, mapping, reader
from bank.intake.formats.mapping import Mapped
from bank.intake.formats.reading import BadFile, Problem, first_names
from bank.intake.imports import Cancelled, Report, diff, engine, kept_maps, provenance, sources, writer
from bank.intake.imports.context import ImportOptions
from bank.intake.uploads import actions, preview, staging
from bank.intake.uploads.preview import keep_preview
from bank.models import Benchmark, Upload
from bank.picked import filled

log = logging.getLogger(__name__)
TELL_EVERY = 0.3  # seconds
LIVES_EVERY = 10.0  # seconds after which it says that it lives, also where no row was read meanwhile
REASONS = 30  # kinds of problems that the page shows
FIRST = 5  # rows of each
TRIES = 5
NEAREST = 3  # maps that are proposed to scripts


class ProgressReporter:
    """Writes the progress for the pages a few times a second, and checks for a request to cancel."""

    def __init__(self, upload: Upload, stop: Callable[[], bool], totals: dict[str, int] | None = None) -> None:
        self.upload, self.stop, self.totals = upload, stop, totals or {}
        self.told = self.looked = 0.0
        self.wish = False

    def __call__(self, part: str, rows: int) -> None:
        now = time.monotonic()
        if now - self.told < TELL_EVERY:
            return
        self.told = now
        writing = part == "write"
        of = sum(self.totals.values()) if writing else self.totals.get(part, 0)
        progress = {"phase": "writing" if writing else "checking", "part": "all" if writing else part}
        tell(self.upload, progress | {"rows": rows, "of": of})

    def cancelled(self) -> bool:
        now = time.monotonic()
        if now - self.told >= LIVES_EVERY:
            self.told = now
            Upload.objects.filter(pk=self.upload.pk).update(changed_at=timezone.now())
        if now - self.looked >= TELL_EVERY:
            self.looked = now
            self.wish = cancel_requested(self.upload)
        return self.wish or self.stop()


def work_all() -> int:
    """Work on every waiting upload; returns the number of steps."""
    actions.sweep()
    stop = jobs.STOPPING.is_set
    return sum(work(upload, stop=stop) for upload in Upload.objects.waiting() if not stop())


def tell(upload: Upload, progress: dict[str, Any]) -> None:
    Upload.objects.filter(pk=upload.pk).update(progress=progress, changed_at=timezone.now())


def cancel_requested(upload: Upload) -> bool:
    return Upload.objects.filter(pk=upload.pk, cancelling=True).exists()


def look() -> None:
    """Have waiting uploads worked on that a worker left when it died."""
    if is_waiting():
        jobs.defer("work_uploads")


def is_waiting() -> bool:
    """Whether an upload is to be worked on, or a killed import to be cleaned up."""
    return writer.abandoned_import() is not None or Upload.objects.waiting().exists()


def work(upload: Upload, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """One step of one upload; False if it no longer waits, or another worker has begun it meanwhile."""
    upload.refresh_from_db()
    if not upload.is_worked:
        return False
    values = {"tries": upload.tries + 1, "progress": {}}
    state = upload.state if upload.state == Upload.State.IMPORTING else Upload.State.CHECKING
    begun = Upload.objects.filter(pk=upload.pk, state=upload.state, tries=upload.tries)
    if not begun.update(state=state, changed_at=timezone.now(), **values):
        return False
    upload.refresh_from_db()
    _step(upload, stop)
    return True


def _step(upload: Upload, stop: Callable[[], bool]) -> None:
    try:
        if upload.cancelling:
            raise Cancelled
        if upload.tries > TRIES:
            raise BadInput(f"The worker was stopped {TRIES} times while it was at this. Perhaps it takes more memory "
                           "than there is: send it in smaller files.")  # fmt: skip
        if upload.state == Upload.State.IMPORTING:
            _import(upload, stop)
        else:
            _check(upload, stop)
    except Cancelled:
        if not cancel_requested(upload):
            _rest(upload)  # this worker was asked to stop: the next one repeats the step
        elif upload.move(upload.state, Upload.State.CANCELLED):
            staging.remove(upload)
    except UnknownFormat as error:
        upload.found = {"is": error.is_no_table, "columns": error.columns}
        upload.save(update_fields=["found"])
        _fail(upload, preview.without_paths(str(error), upload))
    except Exception as error:
        if outage(error):  # a disk that is full, a storage or database that does not answer: its files are not lost
            _rest(upload)
            raise
        if isinstance(error, BadFile | BadInput | LookupError):
            words = preview.without_paths(str(error), upload)
        else:
            log.exception("Upload %s failed", upload.pk, extra={"upload": upload.pk})
            words = (
                "An error of this site stopped it. Nothing was brought in; whoever runs the site finds the cause in "
                "the worker's log."
            )
        _fail(upload, words)


def _recognised(upload: Upload, opened: Path) -> sources.Source | None:
    """What came in, by its format or a map; None where a person is asked for its columns first."""
    try:
        source = sources.inspect(opened, _format_of(upload))
    except UnknownFormat as error:
        columns = _keep_survey(upload, error.path) if error.columns else []
        if len(columns) < 2:  # text, or a table without rows
            raise
        _ask_for_columns(upload, columns)
        return None
    if isinstance(source.module, Mapped):
        is_kept = not upload.map
        if is_kept and upload.is_limited:  # what others said of their files
            _ask_for_columns(upload, _keep_survey(upload, source.path))
            return None
        upload.map = source.module.map.model_dump(exclude_defaults=True)
        columns = _keep_survey(upload, source.path)
        if is_kept and source.module.map.constants:  # which were said of another file
            _ask_for_columns(upload, columns)
            return None
    return source


def _rest(upload: Upload) -> None:
    """Leave the step to be begun again, as if it had not been tried."""
    Upload.objects.filter(pk=upload.pk, state=upload.state).update(tries=0)


def _fail(upload: Upload, reason: str) -> None:
    upload.move(upload.state, Upload.State.FAILED, fault=reason)
    staging.remove(upload, keep_problems=True)


# -- the check ------------------------------------------------------------------------------------------------------


def _check(upload: Upload, stop: Callable[[], bool]) -> None:
    reporter = ProgressReporter(upload, stop)
    promised, found_digest = upload.sha256, staging.digest(upload)
    if promised and promised != found_digest:
        raise BadInput("What came in is not what was sent: its SHA-256 is another. Send it again.")
    tell(upload, {"phase": "unpacking"})
    with staging.opened(upload) as sent, sources.open_source(sent, reporter.cancelled) as opened:
        source = _recognised(upload, opened)
        if source is None:
            return
        if upload.is_limited:
            proposed = _for_one_benchmark(upload, source.parts)
        else:
            proposed = preview.propose(upload, source)
        choices = proposed | upload.choices
        go_on = bool(choices.pop(actions.GO_ON, False))
        keep_preview(upload, source)
        findings = {
            "format": source.format,
            "format_title": source.name,
            "parts": proposed["parts"],
            "proposed": proposed,
            "checked": choices,
            "columns": upload.found.get("columns", []),
        }
        reports: dict[str, Report] = {}
        try:
            if not choices["benchmark"]:
                raise BadInput("Name the benchmark that these belong to.")
            reports = engine.run_import(
                path=opened,
                format=source.module,
                dry_run=True,
                progress=reporter,
                cancelled=reporter.cancelled,
                **_arguments(upload, choices),
            )
        except (BadInput, LookupError) as error:  # other choices may work
            findings["fault"] = preview.without_paths(str(error), upload)
        newest = Benchmark.objects.filter(slug=choices["benchmark"]).order_by("-pk").first()
        if newest is not None and "samples" in choices["parts"] and reports:
            rows = reader(source.module, "samples")(source.path)
            findings["diff"] = diff.against(
                benchmark=newest, rows=rows, images=sources.PictureFolder(source.images), cancelled=reporter.cancelled
            )
    findings |= summary(reports, upload)
    known_before = upload.found.get("checked", {}).get("benchmark") == choices["benchmark"]
    nothing_to_see = not findings.get("fault") and (choices.get("skip_bad") or not findings["bad"])
    findings["again"] = go_on  # somebody pressed the button already, and must see what changed
    goes_on = go_on and nothing_to_see and (newest is None or known_before)
    _move(
        upload,
        Upload.State.IMPORTING if goes_on else Upload.State.CHECKED,
        tries=0,
        found=findings,
        choices=choices,
        map=upload.map,
        shown=upload.shown,
        sha256=found_digest,
    )


def _for_one_benchmark(upload: Upload, parts: Sequence[str]) -> dict[str, Any]:
    """What is proposed to who curates single benchmarks: samples, and the benchmark that was named. Raises BadInput."""
    _check_right(upload)
    if "samples" not in parts:
        raise BadInput(f"It holds {', '.join(parts)}. You can bring in samples; a curator of the site does the rest.")
    named = {name: upload.choices[name] for name in ("benchmark", "version", "title")}
    return named | {"visibility": str(Benchmark.Visibility.PRIVATE), "anchor": "", "parts": ["samples"]}


def _check_right(upload: Upload) -> None:
    """Raises BadInput if the right to the benchmark has ended since it was begun."""
    if not allowed(upload.by, "write-bank", of=str(upload.choices["benchmark"])):
        raise BadInput("You may no longer change this benchmark.")


def _format_of(upload: Upload) -> str | Mapped:
    return Mapped(mapping.checked(upload.map)) if upload.map else "auto"


def _ask_for_columns(upload: Upload, columns: list[mapping.Column]) -> None:
    """Let a person say what the columns of a table hold."""
    nearest = mapping.proposals(columns)[:NEAREST]
    maps = [one.map.model_dump(exclude_defaults=True) | {"missing": one.missing} for one in nearest]
    _move(
        upload,
        Upload.State.MAPPING,
        tries=0,
        found=upload.found | {"nearest": maps},
        map=upload.map,
        shown=upload.shown,
    )


def _move(upload: Upload, to: str, **values: Any) -> None:
    """Raises Cancelled if the upload has left its state meanwhile."""
    if not upload.move(upload.state, to, **values):
        raise Cancelled


def _keep_survey(upload: Upload, table: Path) -> list[mapping.Column]:
    """Leave what the columns of a table hold for the pages, and their names for the map that may be kept."""
    rows, columns = mapping.survey(table)
    upload.shown = upload.shown | {"columns": {"rows": rows, "columns": [asdict(column) for column in columns]}}
    upload.found = upload.found | {"columns": sorted(first_names(table)), "rows": rows}
    return columns


def _arguments(upload: Upload, choices: dict[str, Any]) -> dict[str, Any]:
    names = {option.name for option in fields(ImportOptions)} | {"parts"}
    chosen = {name: value for name, value in choices.items() if name in names and value}
    return chosen | {"slug": choices["benchmark"], "takes_anchor": not upload.is_limited}


def summary(reports: dict[str, Report], upload: Upload) -> dict[str, Any]:
    """What the pages show of reports: counts by part, problems by reason with their first rows. Writes the CSV of all
    problems.
    """
    made: Counter[str] = Counter()
    for report in reports.values():
        made.update(report.made)
    faults = [(part, problem) for part, report in reports.items() for problem in [*report.problems, *report.warnings]]
    staging.remove_file(upload, "problems.csv")
    if faults:
        with staging.writing(upload, "problems.csv") as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            table = csv.writer(text)
            table.writerow(["part", "kind", "file", "line", "record", "field", "reason"])
            table.writerows(map(escape, row) for row in _rows(faults, upload))
            text.detach()
    reasons = _by_reason(faults, upload)
    return {
        "counted": [_counted(name, report) for name, report in reports.items()],
        "made": filled(made),
        "words": preview.counts(made),
        "closing": provenance.in_words(reports),
        "bad": sum(report.bad for report in reports.values()),
        "warnings": len({problem.where for _, problem in faults if problem.warning}),
        "following": sum(reason["count"] for reason in reasons if reason["follows"]),
        "reasons": reasons[:REASONS],
        "more_reasons": max(0, len(reasons) - REASONS),
    }


def _counted(name: str, report: Report) -> dict[str, Any]:
    counts = {"name": name, "rows": report.rows, "unchanged": report.unchanged, "bad": report.bad}
    return counts | {"words": preview.counts(report.made)}


def _rows(faults: list[tuple[str, Problem]], upload: Upload) -> Iterator[list[str]]:
    for part, fault in faults:
        where = fault.where
        line, record = ("" if n is None else str(n) for n in (where.line, where.record))
        kind = "remark" if fault.warning else "bad"
        yield [part, kind, preview.without_paths(where.file, upload), line, record, fault.field, preview.reason(fault)]


def _by_reason(faults: list[tuple[str, Problem]], upload: Upload) -> list[dict[str, Any]]:
    """Faults of one kind together, with their first rows, an example and what mends them; those last that only follow
    from a sample that is refused itself.
    """
    refused = {fault.sample for part, fault in faults if part == "samples" and not fault.warning} - {""}
    groups: dict[tuple[bool, bool, str], dict[str, Any]] = {}
    for part, fault in faults:
        follows = part != "samples" and fault.sample in refused
        reason = preview.reason(fault)
        new = {"field": fault.field, "reason": reason, "alike": False, "warning": fault.warning, "follows": follows}
        if column := upload.map.get("columns", {}).get(fault.field):
            new |= {"field": mapping.label(fault.field), "column": column}
        new |= {"fix": preview.fix(fault), "example": preview.example(part, fault), "count": 0, "first": []}
        group = groups.setdefault((fault.warning, follows, preview.kind(fault)), new)
        group["count"] += 1
        group["alike"] = group["alike"] or group["reason"] != reason
        if len(group["first"]) < FIRST:
            where = preview.without_paths(str(fault.where), upload)
            group["first"].append({"where": where, "field": fault.field, "reason": reason})
    return sorted(groups.values(), key=lambda group: (group["warning"], group["follows"], -group["count"]))


# -- the import -----------------------------------------------------------------------------------------------------


def _import(upload: Upload, stop: Callable[[], bool]) -> None:
    if upload.is_limited:
        _check_right(upload)
    totals = {part["name"]: part["rows"] for part in upload.found["counted"]}
    reporter = ProgressReporter(upload, stop, totals)
    began = time.monotonic()

    def finish(benchmark: Benchmark, reports: dict[str, Report]) -> None:
        """Inside the import's transaction: its rows and its completion take effect together."""
        _move(upload, Upload.State.DONE, report=_report(upload, reports, seconds=time.monotonic() - began))
        if upload.choices.get("saw_nothing"):
            provenance.record(benchmark, reports, by=upload.by)
        if upload.map and upload.keeps_map and not upload.is_limited:
            kept_maps.keep(mapping.checked(upload.map), columns=upload.found["columns"], by=upload.by)

    with staging.opened(upload) as sent:
        reports = engine.run_import(
            path=sent,
            format=_format_of(upload),
            skip_bad=bool(upload.choices.get("skip_bad")),
            progress=reporter,
            cancelled=reporter.cancelled,
            finish=finish,
            **_arguments(upload, upload.choices),
        )
    if all(report.written for report in reports.values()):
        staging.remove(upload, keep_problems=True)
        return
    fault = "The bank has changed since the check, and some rows cannot come in any more. Look at what is found now."
    findings = upload.found | summary(reports, upload) | {"fault": fault}
    upload.move(Upload.State.IMPORTING, Upload.State.CHECKED, found=findings)


def _report(upload: Upload, reports: dict[str, Report], seconds: float) -> dict[str, Any]:
    result = {key: value for key, value in summary(reports, upload).items() if key in ("made", "words")}
    result |= {"parts": [_counted(name, report) for name, report in reports.items()], "seconds": round(seconds, 1)}
    result["left_out"] = sum(report.bad for report in reports.values())
    return result
