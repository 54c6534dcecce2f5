"""Reads for the pages on which staff look at a campaign's items, the least agreed first."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

import bank.masking
import bank.text
from annotations import material
from annotations.models import Adjudication, Campaign, CampaignItem, Label
from annotations.verdicts import dispute, in_words, word
from bank.models import Response

SHOWS = {
    "disputed": "Disputed",
    "agreed": "Agreed",
    "few": "Fewer than two labels",
    "adjudicated": "Adjudicated",
    "gold": "Hidden gold",
    "practice": "Practice",
    "returned": "Returned",
}
LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True)
class Listed:
    """An item in the list. ``dispute`` is the share of pairs of its labels that differ."""

    place: CampaignItem
    labels: int
    dispute: float | None
    said: list[tuple[str, int]]  # verdicts in words, most frequent first
    decided: str
    returned: int

    @property
    def percent(self) -> str:
        return "–" if self.dispute is None else f"{100 * (1 - self.dispute):.0f}%"

    @property
    def kind(self) -> str:
        return "practice" if self.place.practice else "gold" if self.place.gold is not None else ""


def items_of(campaign: Campaign, *, show: str = "") -> list[Listed]:
    """The items of a campaign under a filter of ``SHOWS``, the least agreed first, then those with most labels."""
    places = campaign.campaign_items.select_related("item__sample").order_by("position", "pk")
    if show in ("gold", "practice"):
        places = places.filter(practice=show == "practice", gold__isnull=False)
    labels: dict[int, list[Label]] = defaultdict(list)
    counted = Label.objects.filter(campaign=campaign, excluded=False).select_related("assignment")
    for label in counted.order_by("pk"):
        labels[label.assignment.campaign_item_id].append(label)
    returned = Counter(
        Label.objects.filter(campaign=campaign, returns__isnull=False, returns__answered_at__isnull=True).values_list(
            "assignment__campaign_item", flat=True
        )
    )
    decided = {one.campaign_item_id: one for one in Adjudication.objects.filter(campaign_item__campaign=campaign)}
    rows = [_listed(place, labels[place.pk], decided.get(place.pk), returned[place.pk]) for place in places]
    rows = [row for row in rows if _fits(row, show)]
    return sorted(rows, key=lambda row: (-1 if row.dispute is None else row.dispute, row.labels), reverse=True)


def _listed(place: CampaignItem, labels: Sequence[Label], decided: Adjudication | None, returned: int) -> Listed:
    words = [said for label in labels if (said := word(label.verdict()))]
    first = {word(label.verdict()): in_words(label.verdict()) for label in reversed(labels)}
    given = [(first[one], count) for one, count in Counter(words).most_common()]
    verdict = in_words(decided.verdict()) if decided else ""
    return Listed(place, len(labels), dispute(words), given, verdict, returned)


def _fits(row: Listed, show: str) -> bool:
    match show:
        case "disputed":
            return bool(row.dispute)
        case "agreed":
            return row.dispute == 0
        case "few":
            return row.dispute is None and not row.kind
        case "adjudicated":
            return bool(row.decided)
        case "returned":
            return bool(row.returned)
    return True


@dataclass(frozen=True, slots=True)
class Answer:
    """A response under its letter; its model stays hidden where the campaign is blind."""

    letter: str
    model: str
    html: SafeString
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Said:
    """One label of an item."""

    label: Label
    who: str
    verdict: str
    order: str
    note: str  # with which it was returned and is not yet answered
    revisions: list[Any]


def answers_of(place: CampaignItem) -> list[Answer]:
    """The responses in canonical order."""
    blind = place.campaign.blind
    names = material.hidden_names() if blind else None
    found = []
    for letter, response in zip(LETTERS, place.item.ordered_responses(), strict=False):
        text = response.text if response.status != Response.Status.ERROR else ""
        if names is not None:
            html = bank.text.markdown(bank.masking.mask(text, names, placeholder=bank.masking.MARK), masked=True)
        else:
            html = bank.text.markdown(text)
        found.append(Answer(letter, "" if blind else response.model.name, html, not text.strip()))
    return found


def labels_of(place: CampaignItem) -> list[Said]:
    """What annotators said, in the order given; excluded labels too."""
    found = Label.objects.filter(assignment__campaign_item=place).select_related("annotator", "assignment", "campaign")
    rows = []
    for label in found.prefetch_related("returns", "revisions").order_by("pk"):
        open_note = next((one.note for one in label.returns.all() if one.answered_at is None), "")
        order = " then ".join(LETTERS[int(position)] for position in label.assignment.order)
        before = [(in_words(one.verdict), one.given_at) for one in label.revisions.all()]
        verdict = in_words(label.verdict())
        rows.append(Said(label, label.annotator.name, verdict, order, open_note, before))
    return rows


def neighbours(campaign: Campaign, place: CampaignItem) -> tuple[int | None, int | None]:
    """The items before and after this one in the list of the disputed that wait for a verdict."""
    waiting = [row.place.pk for row in items_of(campaign, show="disputed") if not row.decided or row.place == place]
    if place.pk not in waiting:
        return None, waiting[0] if waiting else None
    here = waiting.index(place.pk)
    return (waiting[here - 1] if here else None), (waiting[here + 1] if here + 1 < len(waiting) else None)
