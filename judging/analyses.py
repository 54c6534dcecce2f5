"""What judges wrote, for those who may read it only without the hidden criteria."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import bank.criteria
from bank.models import User
from bank.models.catalogue import is_staff
from bank.redactor import Redacted, redact
from judging.models import Judgment, Run

if TYPE_CHECKING:
    from bank.access import Viewer

# Told which judgments' analyses leave, and logs it.
Reader = Callable[[Sequence[Judgment]], None]


def read_for_person(user: User, *, reason: str) -> Reader:
    """The reader of a curator's download: an analysis can quote criteria, so the access log gets a record a page."""

    def read(judgments: Sequence[Judgment]) -> None:
        bank.criteria.note_quoted(
            user=user, sample_ids=[one.item.sample_id for one in judgments], how="export of analyses", reason=reason
        )

    return read


def released(judgment: Judgment, *, reader: User) -> Redacted | None:
    """The analysis without what it shares with hidden criteria; None unless its run's analyses are released.

    Made anew at each reading, from the criteria as they are now; the access log gets one record. The raw reply is
    never released.
    """
    if not judgment.run.analyses_released:
        return None
    about = f"judgment {judgment.pk}"
    hidden = bank.criteria.for_redaction(reader=reader, sample=judgment.item.sample, about=about)
    return redact(judgment.analysis or "", hidden)


def for_review(judgment: Judgment, *, reader: User) -> Redacted:
    """The analysis for somebody who checks it in a campaign, redacted as in ``released``; logged the same."""
    about = f"review of judgment {judgment.pk}"
    hidden = bank.criteria.for_redaction(reader=reader, sample=judgment.item.sample, about=about)
    return redact(judgment.analysis or "", hidden)


def as_seen(judgments: Iterable[Judgment], viewer: "Viewer") -> list[Judgment]:
    """The same judgments as this viewer may see them; items and runs must be loaded. They are not to be saved.

    Below staff: points name public components only, and a score made of others is none; no words of the judge; no
    hash over the prompt; and where the call held criteria, nothing by which their length could be told: no tokens, no
    price, no duration, of the time only the day.
    """
    rows = list(judgments)
    if is_staff(viewer):
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

    Below staff: no seed, no words of why it paused, and where its calls held criteria neither prices nor durations.
    """
    if not is_staff(viewer):
        run.seed, run.state_reason = 0, ""
        if run.used_criteria:
            run.spent, run.budget, run.cached = 0.0, None, 0
            run.started_at = run.started_at and on_the_day(run.started_at)
            run.finished_at = run.finished_at and on_the_day(run.finished_at)
    return run


def sees_usage(run: Run, viewer: "Viewer") -> bool:
    """Whether this viewer may see tokens, prices and durations of a run."""
    return is_staff(viewer) or not run.used_criteria


def on_the_day(at: datetime) -> datetime:
    """Midnight of that day, UTC."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
