"""Judgments as rows of the ``generic`` format."""

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from accounts.rules import Viewer
from bank.database import batched
from bank.intake.exports import ExportRequest, Records, log_analyses, refs, trimmed
from bank.models import Benchmark, with_answers
from bank.models.verdict import as_row
from judging.judgments import analyses
from judging.models import Judgment


def judgments(benchmark: Benchmark, asked: ExportRequest) -> Records:
    """Judgments of all runs or of ``asked.run``. Analyses and raw replies can quote criteria: only on request, and
    logged.
    """
    chosen = Judgment.objects.filter(run__benchmark=benchmark)
    chosen = chosen if asked.run is None else chosen.filter(run=asked.run)
    query = _with_related(chosen, with_analyses=asked.analyses)
    order = ["item__sample_id", "pk"] if asked.by_sample else ["pk"]
    for page in batched(query.order_by(*order).iterator(chunk_size=500), 500):
        if asked.analyses:
            log_analyses([judgment.item.sample_id for judgment in page], asked)
        yield from (_record(judgment, with_analyses=asked.analyses) for judgment in page)


def selected(*, pieces: Iterable[Sequence[int]], viewer: Viewer, read: "analyses.Reader | None" = None) -> Records:
    """Judgments by key, as this viewer may see them; with ``read``, which logs it, including what the judges wrote."""
    for keys in pieces:
        query = _with_related(Judgment.objects.seen_by(viewer).filter(pk__in=keys), with_analyses=read is not None)
        by_key = {judgment.pk: judgment for judgment in analyses.as_seen(query, viewer)}
        if read:
            read(sample_ids=[judgment.item.sample_id for judgment in by_key.values()])
        for judgment in (by_key[key] for key in keys if key in by_key):
            yield _record(judgment, with_analyses=read is not None)


def by_keys(pieces: Iterable[Sequence[int]]) -> Records:
    """Judgments by key, for staff, without analyses."""
    for keys in pieces:
        query = _with_related(Judgment.objects.filter(pk__in=keys), with_analyses=False)
        yield from (_record(judgment, with_analyses=False) for judgment in query.order_by("pk"))


def _with_related(query: QuerySet[Judgment], *, with_analyses: bool) -> QuerySet[Judgment]:
    query = query.select_related("item__sample").prefetch_related("run__judge", with_answers("item__"))
    return query if with_analyses else query.defer("analysis", "raw")


def _record(judgment: Judgment, *, with_analyses: bool) -> dict[str, object]:
    run, item = judgment.run, judgment.item
    responses = refs(item)
    record = {
        "kind": item.kind,
        "protocol": run.protocol,
        "sample": item.sample.key,
        "responses": responses,
        "judge": run.judge.name,
        "simulated": run.judge.simulated or None,
        "run": str(run.pk),
        "settings": run.settings,
        "order": [responses[int(place)] for place in judgment.order] if responses else [],
        "repeat": judgment.repeat,
        "status": judgment.status,
        "prompt_tokens": judgment.prompt_tokens,
        "completion_tokens": judgment.completion_tokens,
        "cost": judgment.cost,
        "reported_model": run.reported_model,
    }
    judge_words = {"analysis": judgment.analysis, "raw": judgment.raw} if with_analyses else {"reason": None}
    return trimmed(record | as_row(judgment.verdict(), responses) | judge_words)
