"""Reads for the pages on which staff look at a campaign's items, the least agreed first."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils.safestring import SafeString

import bank.text.masking
import bank.text.rendering
from accounts.models import User
from annotations import ballots
from annotations.assignment import material
from annotations.ballots.pairs import Pair
from annotations.labels.actions import clean_note
from annotations.labels.verdicts import VERDICT_COLUMNS, describe, disagreement, main_column, verdict_key
from annotations.models import Adjudication, Campaign, CampaignItem, Label
from bank.errors import BadInput
from bank.models import Response
from bank.models.verdict import COLUMNS, Choice

FILTERS = {
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
class ItemRow:
    """An item in the list. ``dispute`` is the share of pairs of its labels that differ."""

    place: CampaignItem
    labels: int
    disagreement: float | None
    said: list[tuple[str, int]]  # verdicts in words, most frequent first
    decided: str
    returned: int

    @property
    def percent(self) -> str:
        return "–" if self.disagreement is None else f"{100 * (1 - self.disagreement):.0f}%"

    @property
    def kind(self) -> str:
        return "practice" if self.place.practice else "gold" if self.place.gold is not None else ""


@dataclass(frozen=True, slots=True)
class ItemList(Sequence[ItemRow]):
    """The items of a campaign, the least agreed first; rows are read when they are asked for."""

    places: Sequence[int]
    disputes: Mapping[int, float]
    open_returns: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        return self._rows(self.places[at]) if isinstance(at, slice) else self._rows([self.places[at]])[0]

    def _rows(self, ids: Sequence[int]) -> list[ItemRow]:
        related = ("item__sample", "adjudication")
        places = CampaignItem.objects.select_related(*related).in_bulk(ids)
        labels: dict[int, list[Label]] = defaultdict(list)
        given = Label.objects.filter(assignment__campaign_item__in=ids, excluded=False).select_related("assignment")
        for label in given.order_by("pk"):
            labels[label.assignment.campaign_item_id].append(label)
        return [
            _item_row(places[pk], labels[pk], self.disputes.get(pk), self.open_returns.get(pk, 0))
            for pk in ids
            if pk in places
        ]


def list_items(campaign: Campaign, *, show: str = "", search: str = "") -> ItemList:
    """The items of a campaign under a filter of ``SHOWS``, whose sample's key holds ``search``.

    The least agreed come first, then those with most labels.
    """
    places = campaign.campaign_items.order_by("position", "pk")
    if search:
        places = places.filter(item__sample__key__icontains=search)
    words: dict[int, list[str]] = defaultdict(list)
    labels: Counter[int] = Counter()
    given = Label.objects.filter(campaign=campaign, excluded=False).order_by("pk")
    for pk, *values in given.values_list("assignment__campaign_item", *VERDICT_COLUMNS).iterator():
        labels[pk] += 1
        if said := verdict_key(dict(zip(VERDICT_COLUMNS, values, strict=True))):
            words[pk].append(said)
    disputes = {pk: found for pk, said in words.items() if (found := disagreement(said)) is not None}
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
    return ItemList(ids, disputes, open_returns)


def _item_row(place: CampaignItem, labels: Sequence[Label], disputed: float | None, returned: int) -> ItemRow:
    words = [said for label in labels if (said := verdict_key(label.verdict()))]
    first = {verdict_key(label.verdict()): describe(label.verdict()) for label in reversed(labels)}
    given = [(first[one], count) for one, count in Counter(words).most_common()]
    decided = describe(place.adjudication.verdict()) if hasattr(place, "adjudication") else ""
    return ItemRow(place, len(labels), disputed, given, decided, returned)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response under its letter. Where the campaign is blind, its model is not shown until it is asked for."""

    letter: str
    model: str
    html: SafeString
    is_empty: bool


@dataclass(frozen=True, slots=True)
class ItemLabel:
    """One label of an item."""

    label: Label
    who: str
    verdict: str
    order: str
    note: str  # with which it was returned and is not yet answered
    revisions: list[Any]


def answers_to(place: CampaignItem) -> list[Answer]:
    """The responses in canonical order."""
    blind = place.campaign.blind
    names = material.names_to_mask() if blind else None
    found = []
    for letter, response in zip(LETTERS, place.item.ordered_responses(), strict=False):
        text = response.text if response.status != Response.Status.ERROR else ""
        if names is not None:
            html = bank.text.rendering.markdown(
                bank.text.masking.mask(text, names, placeholder=bank.text.masking.MARK), masked=True
            )
        else:
            html = bank.text.rendering.markdown(text)
        found.append(Answer(letter, response.model.name, html, not text.strip()))
    return found


def labels_on(place: CampaignItem) -> list[ItemLabel]:
    """What annotators said, in the order given; excluded labels too."""
    found = Label.objects.filter(assignment__campaign_item=place).select_related("annotator", "assignment", "campaign")
    rows = []
    for label in found.prefetch_related("returns", "revisions").order_by("pk"):
        open_note = next((one.note for one in label.returns.all() if one.answered_at is None), "")
        order = " then ".join(LETTERS[int(position)] for position in label.assignment.order)
        before = [(describe(one.verdict), one.given_at) for one in label.revisions.all()]
        verdict = describe(label.verdict())
        rows.append(ItemLabel(label, label.annotator.name, verdict, order, open_note, before))
    return rows


def neighbours(campaign: Campaign, place: CampaignItem) -> tuple[int | None, int | None]:
    """The items before and after this one in the list of the disputed that wait for a verdict."""
    decided = set(Adjudication.objects.filter(campaign_item__campaign=campaign).values_list("campaign_item", flat=True))
    waiting = [pk for pk in list_items(campaign, show="disputed").places if pk not in decided or pk == place.pk]
    if place.pk not in waiting:
        return None, waiting[0] if waiting else None
    here = waiting.index(place.pk)
    return (waiting[here - 1] if here else None), (waiting[here + 1] if here + 1 < len(waiting) else None)


COLUMN_BY_PROTOCOL = {
    "pairwise-criteria": "choice",
    "pair": "choice",
    "batch": "ranking",
    "components": "parts",
    "choice-extraction": "option",
    "yes-no": "answer",
    "review": "agree",
}  # every other protocol: a score

NONE_OF_THEM = "X"


@dataclass(frozen=True, slots=True)
class VerdictInput:
    """What a form asks for: ``column`` and, for it, what may be chosen or how many numbers are wanted."""

    column: str
    choices: list[tuple[str, str]] = field(default_factory=list)  # (value, words)
    situations: list[tuple[int, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the answers or parts that get a number each
    chosen: dict[str, Any] = field(default_factory=dict)  # the verdict that stands in the form

    @property
    def selected(self) -> str:
        """The choice that is on."""
        value = self.chosen.get(self.column)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """(name, the number that stands there) of a ranking or of points."""
        value = self.chosen.get(self.column)
        if self.column == "ranking":
            places = {position: rank for rank, group in enumerate(value or [], 1) for position in group}
            return [(name, str(places.get(position, ""))) for position, name in enumerate(self.names)]
        return [(name, f"{value[name]:g}" if value and name in value else "") for name in self.names]


def verdict_input(
    place: CampaignItem, verdicts: Iterable[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> VerdictInput:
    """What is asked about an item; ``verdicts`` are its labels, ``chosen`` what stands already."""
    campaign = place.campaign
    column = COLUMN_BY_PROTOCOL.get(campaign.protocol, "score")
    stands = dict(chosen)
    match column:
        case "choice":
            words = {"left": "A is better", "tie": "Tie", "right": "B is better", "undecided": "Unable to decide"}
            ballot = ballots.of(campaign)
            allowed = ballot.choices if isinstance(ballot, Pair) else list(words)
            situations = ballot.situations if isinstance(ballot, Pair) else {}
            choices = [(ballots.LEFT_RIGHT[name].value, text) for name, text in words.items() if name in allowed]
            return VerdictInput(
                column, choices, [(number, str(text)) for number, text in situations.items()], chosen=stands
            )
        case "option":
            options = [(key, f"{key}. {text}") for key, text in place.item.sample.options.items()]
            return VerdictInput(column, [*options, (NONE_OF_THEM, "None of them")], chosen=stands)
        case "answer" | "agree":
            return VerdictInput(column, [("yes", "Yes"), ("no", "No")], chosen=stands)
        case "ranking":
            letters = [f"Answer {'ABCDEFGH'[n]}" for n in range(place.item.places.count())]
            return VerdictInput(column, names=letters, chosen=stands)
        case "parts":
            keys = list(dict.fromkeys(key for verdict in verdicts for key in verdict.get("parts") or {}))
            return VerdictInput(column, names=keys, chosen=stands)
    return VerdictInput(column, [(f"{value:g}", words) for value, words in score_choices(campaign)], chosen=stands)


def score_choices(campaign: Campaign) -> list[tuple[float, str]]:
    """The steps of a score, with their words."""
    found = []
    for step in ballots.of(campaign).settings["scale"]:
        value, label = float(step["value"]), str(step.get("label") or "")
        found.append((value, f"{value:g}" + (f", {label}" if label and label != f"{value:g}" else "")))
    return found


def read_verdict(entry: VerdictInput, posted: Any) -> dict[str, Any]:
    """The verdict columns that a form gives. Raises BadInput."""
    if entry.column in ("ranking", "parts"):
        given = [_number(text) for text in posted.getlist("number")]
        if len(given) != len(entry.names) or None in given or not given:
            raise BadInput("Give a number to each.")
        numbers = [number for number in given if number is not None]
        if entry.column == "parts":
            if min(numbers) < 0:
                raise BadInput("Points are 0 or more.")
            return {"parts": dict(zip(entry.names, numbers, strict=True))}
        ranks = sorted(set(numbers))
        return {"ranking": [[place for place, number in enumerate(numbers) if number == rank] for rank in ranks]}
    value = posted.get("verdict", "")
    if value not in dict(entry.choices):
        raise BadInput("Choose a verdict.")
    if entry.column in ("answer", "agree"):
        return {entry.column: value == "yes"}
    if entry.column == "score":
        return {"score": float(value)}
    if value == Choice.UNDECIDED and entry.situations:
        situation = posted.get("situation", "")
        if situation not in {str(number) for number, _ in entry.situations}:
            raise BadInput("Say which situation it is.")
        return {"choice": value, "situation": int(situation)}
    return {entry.column: value}


def _number(text: str) -> float | None:
    try:
        number = float(text) if text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e6 else None


def initial_verdict(place: CampaignItem, labels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What a form about this item begins with: the adjudicated verdict, else the gold one, else what all labels say."""
    adjudication = getattr(place, "adjudication", None)
    if adjudication is not None:
        found: dict[str, Any] = adjudication.verdict()
        return found
    if place.gold:
        return dict(place.gold)
    every = [dict(label) for label in labels]
    name = main_column(every[0]) if every else None
    same = name and all(label.get(name) == every[0][name] for label in every)
    return {name: every[0][name]} if name and same else {}


@transaction.atomic
def adjudicate(*, place: CampaignItem, by: User, verdict: Mapping[str, Any], comment: str = "") -> Adjudication:
    """Decide about an item, in canonical order; the raw labels stay as they are. Again is a change. Raises BadInput."""
    if main_column(verdict) is None:
        raise BadInput("Choose a verdict.")
    columns: dict[str, Any] = {name: verdict.get(name) for name in COLUMNS if name != "reason"}
    decided, _ = Adjudication.objects.update_or_create(
        campaign_item=place, defaults=columns | {"by": by, "comment": clean_note(comment)}
    )
    return decided


def withdraw_adjudication(*, place: CampaignItem) -> None:
    """Leave the item to its labels."""
    Adjudication.objects.filter(campaign_item=place).delete()
