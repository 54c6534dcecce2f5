"""The labels of a campaign as plain rows, for what is counted on them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotations.models import Campaign, Label
from annotations.verdicts import MAIN, is_right, number, word
from bank.models.verdict import Choice, turned

UNDECIDED = {Choice.UNDECIDED.value: Choice.TIE.value}


@dataclass(frozen=True, slots=True)
class Given:
    """One label that counts. ``said`` is its verdict as a word, ``undecided`` being a tie; ``shown`` the same in the
    order in which its annotator saw the answers; ``right`` holds it against hidden gold."""

    annotator: int
    item: int
    place: int  # the campaign item
    said: str
    raw: str  # as ``said``, with "undecided" by itself
    shown: str
    number: float | None
    ranking: list[list[int]] | None
    seconds: float | None
    level: str
    right: bool | None
    at: datetime


def labels_of(campaign: Campaign) -> list[Given]:
    """The labels of a campaign that count, in the order given: without practice and what was excluded."""
    found = Label.objects.filter(campaign=campaign, excluded=False, assignment__campaign_item__practice=False)
    columns = ("annotator", "item", "assignment__campaign_item", "assignment__order", "seconds", "created_at")
    more = ("item__sample__capability__path", "assignment__campaign_item__gold", "situation")
    rows = []
    for row in found.order_by("pk").values_list(*columns, *more, *MAIN):
        annotator, item, place, order, seconds, at, level, gold, situation, *values = row
        verdict: dict[str, Any] = dict(zip(MAIN, values, strict=True)) | {"situation": situation}
        raw = word(verdict)
        if raw is None:
            continue
        rows.append(
            Given(
                annotator=annotator,
                item=item,
                place=place,
                said=UNDECIDED.get(raw, raw),
                raw=raw,
                shown=word(as_shown(verdict, order)) or raw,
                number=number(verdict),
                ranking=verdict["ranking"],
                seconds=seconds,
                level=level or "",
                right=None if gold is None else is_right(verdict, gold),
                at=at,
            )
        )
    return rows


def as_shown(verdict: dict[str, Any], order: str) -> dict[str, Any]:
    """A stored verdict in the order in which the answers were shown: "first" is then the left one."""
    places = [int(digit) for digit in order]
    stood = [places.index(position) for position in range(len(places))]
    return turned(verdict, order=stood)


def by_place(labels: Iterable[Given]) -> dict[int, list[Given]]:
    """Labels by campaign item: two reviews of one item are about different judgments."""
    found: dict[int, list[Given]] = defaultdict(list)
    for label in labels:
        found[label.place].append(label)
    return found
