"""Judgments as rows of the ``generic`` format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from accounts.rules import Viewer
from bank.database import batched
from bank.intake.exports import ExportRequest, Records, log_analyses, refs_by_item, trimmed
from bank.models import Benchmark
from bank.models.verdict import COLUMNS, as_row
from judging.judgments import analyses
from judging.models import Judgment, Run

AT_ONCE = 900
LARGE = ("analysis", "raw")
WORDS = ("reason", *LARGE)  # of a judge, or about what it wrote
OWN = (
    "repeat",
    "status",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    *(name for name in COLUMNS if name != "reason"),
)
FIELDS = ("run_id", "item_id", "item__kind", "item__sample__key", "order", *OWN)
Row = Mapping[str, Any]  # fields of a judgment by name


def judgments(benchmark: Benchmark, asked: ExportRequest) -> Records:
    """Judgments of all runs or of ``asked.run``. Analyses and raw replies can quote criteria: only on request, and
    logged.
    """
    chosen = Judgment.objects.filter(run__benchmark=benchmark)
    chosen = chosen if asked.run is None else chosen.filter(run=asked.run)
    order = ["item__sample_id", "pk"] if asked.by_sample else ["pk"]
    fields = (*FIELDS, "item__sample_id", *WORDS) if asked.analyses else FIELDS
    for page in batched(chosen.order_by(*order).values(*fields).iterator(chunk_size=AT_ONCE), AT_ONCE):
        if asked.analyses:
            log_analyses([row["item__sample_id"] for row in page], asked)
        yield from _records(page, with_analyses=asked.analyses)


def selected(*, pieces: Iterable[Sequence[int]], viewer: Viewer, read: "analyses.Reader | None" = None) -> Records:
    """Judgments by key, as this viewer may see them; with ``read``, which logs it, including what the judges wrote."""
    for keys in pieces:
        query = _with_related(Judgment.objects.seen_by(viewer).filter(pk__in=keys), with_analyses=read is not None)
        by_key = {judgment.pk: judgment for judgment in analyses.as_seen(query, viewer)}
        if read:
            read(sample_ids=[judgment.item.sample_id for judgment in by_key.values()])
        rows = [_row_of(by_key[key], with_analyses=read is not None) for key in keys if key in by_key]
        yield from _records(rows, with_analyses=read is not None)


def by_keys(pieces: Iterable[Sequence[int]]) -> Records:
    """Judgments by key, for staff, without analyses."""
    for keys in pieces:
        rows = list(Judgment.objects.filter(pk__in=keys).order_by("pk").values(*FIELDS))
        yield from _records(rows, with_analyses=False)


def _with_related(query: QuerySet[Judgment], *, with_analyses: bool) -> QuerySet[Judgment]:
    query = query.select_related("item__sample").prefetch_related("run")
    return query if with_analyses else query.defer(*LARGE)


def _row_of(judgment: Judgment, *, with_analyses: bool) -> Row:
    """The fields of a judgment, as its viewer sees it."""
    of_item = {"item__kind": judgment.item.kind, "item__sample__key": judgment.item.sample.key}
    own = [name for name in FIELDS if name not in of_item] + list(WORDS if with_analyses else ())
    return of_item | {name: getattr(judgment, name) for name in own}


def _records(rows: Sequence[Row], *, with_analyses: bool) -> Iterator[dict[str, Any]]:
    """The records of no more than ``AT_ONCE`` judgments."""
    responses = refs_by_item(row["item_id"] for row in rows)
    runs = Run.objects.select_related("judge").in_bulk({row["run_id"] for row in rows})
    of_runs = {pk: _of_run(run) for pk, run in runs.items()}
    written = {*OWN, *WORDS} if with_analyses else {*OWN}
    for row in rows:
        named = responses.get(row["item_id"], [])
        record = {
            "kind": row["item__kind"],
            "sample": row["item__sample__key"],
            "responses": named,
            "order": [named[int(place)] for place in row["order"]] if named else [],
        }
        own = {name: value for name, value in row.items() if name in written}
        yield trimmed(of_runs[row["run_id"]] | record | as_row(trimmed(own), named))


def _of_run(run: Run) -> dict[str, Any]:
    """What all of its judgments share."""
    return {
        "protocol": run.protocol,
        "judge": run.judge.name,
        "simulated": run.judge.simulated or None,
        "run": str(run.pk),
        "settings": run.settings,
        "reported_model": run.reported_model,
    }
