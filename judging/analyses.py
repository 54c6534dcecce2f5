"""What judges wrote, for those who may read it only without the hidden criteria."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import bank.criteria
from bank.models import User
from bank.models.catalogue import is_staff
from bank.redactor import Redacted, redact
from judging.models import Judgment

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


def without_hidden_parts(judgments: Iterable[Judgment], viewer: "Viewer") -> list[Judgment]:
    """The same judgments; below staff their points name public components only. Their items must be loaded."""
    rows = list(judgments)
    if not is_staff(viewer):
        keys = bank.criteria.public_keys(row.item.sample_id for row in rows if row.parts)
        for row in rows:
            row.parts = bank.criteria.open_parts(row.parts, keys.get(row.item.sample_id, set()))
    return rows
