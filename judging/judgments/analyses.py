"""What judges wrote, for those who may read it only without the hidden criteria."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db.models import Count, QuerySet

import bank.criteria
from accounts.models import User
from accounts.rules import allowed
from bank.text.redactor import Redacted
from bank.text.similarity import examine
from judging.models import JURY, AnalysisRelease, Judgment, Run

if TYPE_CHECKING:
    from accounts.rules import Viewer

# Told which judgments' analyses leave, and logs it.
Reader = Callable[[Sequence[Judgment]], None]


def read_for_person(user: User, *, reason: str) -> Reader:
    """The reader of a curator's download: an analysis can quote criteria, so the access log gets a record a page."""

    def read(judgments: Sequence[Judgment]) -> None:
        bank.criteria.log_quoted(
            user=user, sample_ids=[one.item.sample_id for one in judgments], how="export of analyses", reason=reason
        )

    return read


def released(judgment: Judgment, *, reader: User) -> Redacted | None:
    """The analysis as researchers may read it; None unless two people released it, or its sample hides nothing.

    What it shares with hidden criteria is taken out, made anew at each reading from the criteria as they are now; the
    access log gets one record. What would be held back now is withheld, unless it was released in spite of that. The
    raw reply is never released.
    """
    return _opened(judgment, reader=reader, about=f"judgment {judgment.pk}")


def for_review(judgment: Judgment, *, reader: User) -> Redacted | None:
    """The analysis for somebody who checks it in a campaign: as ``released``, and logged the same."""
    return _opened(judgment, reader=reader, about=f"review of judgment {judgment.pk}")


def open_count(judgments: QuerySet[Judgment]) -> int:
    """How many of these have an analysis that others than staff may read."""
    kept = judgments.filter(analysis__isnull=False)
    opened = kept.filter(release__confirmed_at__isnull=False, release__decision__in=AnalysisRelease.OPENING).count()
    other = list(kept.order_by().values_list("item__sample_id").annotate(n=Count("pk")))
    guarded = bank.criteria.guarded(pk for pk, _ in other)
    return opened + sum(n for pk, n in other if pk not in guarded)


def _opened(judgment: Judgment, *, reader: User, about: str) -> Redacted | None:
    sample = judgment.item.sample
    if not bank.criteria.guarded([sample.pk]):
        return Redacted(judgment.analysis or "")
    release = AnalysisRelease.objects.filter(judgment=judgment).first()
    if release is None or not release.is_open:
        return None
    found = examine(judgment.analysis or "", bank.criteria.for_redaction(reader=reader, sample=sample, about=about))
    if found.why and release.decision != AnalysisRelease.Decision.DESPITE:
        return Redacted("", withheld=True)
    return found.redacted


def as_seen(judgments: Iterable[Judgment], viewer: "Viewer") -> list[Judgment]:
    """The same judgments as this viewer may see them; items and runs must be loaded. They are not to be saved.

    Below staff: points name public components only, and a score made of others is none; no words of the judge; no
    hash over the prompt; and where the call held criteria, nothing by which their length could be told: no tokens, no
    price, no duration, of the time only the day.
    """
    rows = list(judgments)
    if allowed(viewer, "read-analyses"):
        return rows
    keys = bank.criteria.public_keys(row.item.sample_id for row in rows if row.parts)
    for row in rows:
        seen = bank.criteria.open_parts(row.parts, keys.get(row.item.sample_id, set()))
        if seen != row.parts:
            row.parts, row.score, row.weighted_score = seen, None, None
        row.reason = row.reason_hash = row.prompt_sha256 = row.call_key = ""
        if row.run.used_criteria:
            row.prompt_tokens = row.completion_tokens = row.cost = row.latency = None
            row.created_at, row.cached = on_the_day(row.created_at), False
    return rows


def run_as_seen(run: Run, viewer: "Viewer") -> Run:
    """The same run as this viewer may see it, not to be saved.

    Below staff: no seed, no words of why it paused, and where its calls held criteria neither prices nor durations,
    nor, until it has ended, what of its calls came back.
    """
    if not allowed(viewer, "read-calls"):
        run.seed, run.state_reason = 0, ""
        if withheld(run, viewer):
            run.calls = run.lost = 0
            run.reported_model, run.reported, run.batches = "", [], []
        if run.used_criteria:
            run.spent, run.budget, run.cached = 0.0, None, 0
            run.started_at = run.started_at and on_the_day(run.started_at)
            run.finished_at = run.finished_at and on_the_day(run.finished_at)
    return run


def withheld(run: Run, viewer: "Viewer") -> bool:
    """Whether this viewer sees nothing of what a run makes, for it goes on: see ``RunQuerySet.withheld_from``."""
    if allowed(viewer, "read-hidden"):
        return False
    return run.holds_back or (JURY in run.settings and run.pk in Run.objects.withheld_from(staff=False))


def sees_usage(run: Run, viewer: "Viewer") -> bool:
    """Whether this viewer may see tokens, prices and durations of a run."""
    return allowed(viewer, "read-calls") or not run.used_criteria


def on_the_day(at: datetime) -> datetime:
    """Midnight of that day, UTC."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
