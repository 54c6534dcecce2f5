"""Reads for the pages on which staff look at a campaign's items, the least agreed first."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

import bank.masking
import bank.text
from annotations import material
from annotations.models import Adjudication, Campaign, CampaignItem, Label
from annotations.verdicts import MAIN, dispute, in_words, word
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


@dataclass(frozen=True, slots=True)
class Ranked(Sequence[Listed]):
    """The items of a campaign, the least agreed first; rows are read when they are asked for."""

    places: Sequence[int]
    disputes: Mapping[int, float]
    open_returns: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        return self._rows(self.places[at]) if isinstance(at, slice) else self._rows([self.places[at]])[0]

    def _rows(self, ids: Sequence[int]) -> list[Listed]:
        related = ("item__sample", "adjudication")
        places = CampaignItem.objects.select_related(*related).in_bulk(ids)
        labels: dict[int, list[Label]] = defaultdict(list)
        given = Label.objects.filter(assignment__campaign_item__in=ids, excluded=False).select_related("assignment")
        for label in given.order_by("pk"):
            labels[label.assignment.campaign_item_id].append(label)
        return [
            _listed(places[pk], labels[pk], self.disputes.get(pk), self.open_returns.get(pk, 0))
            for pk in ids
            if pk in places
        ]


def items_of(campaign: Campaign, *, show: str = "", search: str = "") -> Ranked:
    """The items of a campaign under a filter of ``SHOWS``, whose sample's key holds ``search``.

    The least agreed come first, then those with most labels.
    """
    places = campaign.campaign_items.order_by("position", "pk")
    if search:
        places = places.filter(item__sample__key__icontains=search)
    words: dict[int, list[str]] = defaultdict(list)
    labels: Counter[int] = Counter()
    given = Label.objects.filter(campaign=campaign, excluded=False).order_by("pk")
    for pk, *values in given.values_list("assignment__campaign_item", *MAIN).iterator():
        labels[pk] += 1
        if said := word(dict(zip(MAIN, values, strict=True))):
            words[pk].append(said)
    disputes = {pk: found for pk, said in words.items() if (found := dispute(said)) is not None}
    unanswered = Label.objects.filter(campaign=campaign, returns__isnull=False, returns__answered_at__isnull=True)
    open_returns = Counter(unanswered.values_list("assignment__campaign_item", flat=True))
    match show:
        case "gold" | "practice":
            places = places.filter(practice=show == "practice", gold__isnull=False)
        case "few":
            places = places.filter(practice=False, gold__isnull=True)
        case "adjudicated":
            places = places.filter(adjudication__isnull=False)
    fits = {
        "disputed": lambda pk: bool(disputes.get(pk)),
        "agreed": lambda pk: disputes.get(pk) == 0,
        "few": lambda pk: pk not in disputes,
        "returned": lambda pk: pk in open_returns,
    }.get(show, lambda pk: True)
    ids = [pk for pk in places.values_list("pk", flat=True) if fits(pk)]
    ids.sort(key=lambda pk: (disputes.get(pk, -1), labels[pk]), reverse=True)
    return Ranked(ids, disputes, open_returns)


def _listed(place: CampaignItem, labels: Sequence[Label], disputed: float | None, returned: int) -> Listed:
    words = [said for label in labels if (said := word(label.verdict()))]
    first = {word(label.verdict()): in_words(label.verdict()) for label in reversed(labels)}
    given = [(first[one], count) for one, count in Counter(words).most_common()]
    decided = in_words(place.adjudication.verdict()) if hasattr(place, "adjudication") else ""
    return Listed(place, len(labels), disputed, given, decided, returned)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response under its letter. Where the campaign is blind, its model is not shown until it is asked for."""

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
        found.append(Answer(letter, response.model.name, html, not text.strip()))
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
    decided = set(Adjudication.objects.filter(campaign_item__campaign=campaign).values_list("campaign_item", flat=True))
    waiting = [pk for pk in items_of(campaign, show="disputed").places if pk not in decided or pk == place.pk]
    if place.pk not in waiting:
        return None, waiting[0] if waiting else None
    here = waiting.index(place.pk)
    return (waiting[here - 1] if here else None), (waiting[here + 1] if here + 1 < len(waiting) else None)
