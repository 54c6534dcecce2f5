"""Judgments and runs as each viewer may see them: below staff without anything that reveals hidden criteria."""

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from django.db.models import QuerySet

import bank.criteria
from accounts.models import User
from accounts.rules import allowed, granted
from bank.text.redactor import Redacted
from bank.text.similarity import examine
from judging.models import AnalysisRelease, Judgment, Run

if TYPE_CHECKING:
    from accounts.rules import Viewer

Reader = Callable[..., None]  # logs that analyses of samples (sample_ids) leave the installation


def read_for_person(user: User, *, reason: str) -> Reader:
    """For a curator's download: analyses can quote criteria, so the access log gets one record per page of rows."""
    return partial(bank.criteria.log_quoted, user=user, how="export of analyses", reason=reason)


def released(judgment: Judgment, *, reader: User, about: str = "judgment") -> Redacted | None:
    """The analysis as researchers may read it; None unless two people released it or its sample hides nothing.

    Text it shares with hidden criteria is removed, each time from the criteria as they are now, and the access log gets
    one record. An analysis that would be held back now is withheld unless two people released it anyway. The raw reply
    is never released.
    """
    sample = judgment.item.sample
    if not bank.criteria.guarded([sample.pk]):
        return Redacted(judgment.analysis or "")
    release = AnalysisRelease.objects.filter(judgment=judgment).first()
    if release is None or not release.is_open:
        return None
    hidden = bank.criteria.for_redaction(reader=reader, sample=sample, about=f"{about} {judgment.pk}")
    examination = examine(judgment.analysis or "", hidden)
    if examination.why and release.decision != AnalysisRelease.Decision.DESPITE:
        return Redacted("", withheld=True)
    return examination.redacted


def for_review(judgment: Judgment, *, reader: User) -> Redacted | None:
    """The analysis for an annotator of a campaign of reviews or comparisons: redacted and logged as in ``released``."""
    return released(judgment, reader=reader, about="review of judgment")


def open_among(judgments: QuerySet[Judgment]) -> set[int]:
    """Those of these (by id) with an analysis that people below staff may read."""
    rows = list(judgments.filter(analysis__isnull=False).order_by().values_list("pk", "item__sample_id"))
    guarded = bank.criteria.guarded({sample for _, sample in rows})
    released = judgments.filter(release__confirmed_at__isnull=False, release__decision__in=AnalysisRelease.OPENING)
    open_ones = set(released.order_by().values_list("pk", flat=True))
    return {pk for pk, sample in rows if pk in open_ones or sample not in guarded}


def as_seen(judgments: Iterable[Judgment], viewer: "Viewer") -> list[Judgment]:
    """The same judgments as this viewer may see them. Items and runs must be loaded. Never save the result.

    Below staff: none of the judge's words, and no hash over the prompt. If the call held closed inputs, also nothing
    that tells their length: no tokens, no price, no duration, and only the day instead of the time.
    """
    rows = list(judgments)
    if allowed(viewer, "read-analyses"):
        return rows
    curated = granted(viewer, "read-analyses")
    for row in rows:
        if curated and row.run.benchmark.slug in curated:
            continue
        row.reason = row.reason_hash = row.prompt_sha256 = row.call_key = ""
        if row.run.held:
            row.prompt_tokens = row.completion_tokens = row.cost = row.latency = None
            row.created_at, row.cached = on_the_day(row.created_at), False
    return rows


def run_as_seen(run: Run, viewer: "Viewer", *, unseen: Collection[int] | None = None) -> Run:
    """The same run as this viewer may see it; ``unseen`` as from ``RunQuerySet.unseen_by``. Never save the result.

    Below staff: no seed, no reason why it paused or waits, and not when it is tried again. If its calls held closed
    inputs, also no prices or durations, and until it is told that it has ended only that it has not.
    """
    if not allowed(viewer, "read-calls", of=run.benchmark):
        run.seed, run.state_reason = 0, ""
        run.next_try_at, run.tries, run.failing_since = None, 0, None
        if run.pk in (Run.objects.unseen_by(viewer) if unseen is None else unseen):
            run.calls = run.lost = 0
            run.reported_model, run.reported, run.batches, run.abilities = "", [], [], {}
            if run.held:
                run.state, run.is_untold, run.finished_at = Run.State.RUNNING, True, None
        if run.held:
            run.spent, run.budget, run.cached = 0.0, None, 0
            run.started_at = run.started_at and on_the_day(run.started_at)
            run.finished_at = run.finished_at and on_the_day(run.finished_at)
    return run


def withheld(run: Run, viewer: "Viewer") -> bool:
    """Whether a run's results are withheld from this viewer as a whole, see ``RunQuerySet.unseen_by``."""
    return run.pk in Run.objects.unseen_by(viewer)


def sees_usage(run: Run, viewer: "Viewer") -> bool:
    """Whether this viewer may see the tokens, prices and durations of a run."""
    return allowed(viewer, "read-calls", of=run.benchmark) or not run.held


def on_the_day(at: datetime) -> datetime:
    """Midnight of that day, UTC."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
