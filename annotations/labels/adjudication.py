"""The campaign items that staff look at, least agreement first, and the verdicts they enter."""

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
from bank.models.verdict import COLUMNS, LABEL, Choice

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
    """An item in the list. ``disagreement`` is the share of pairs of its labels that differ."""

    campaign_item: CampaignItem
    labels: int
    disagreement: float | None
    verdicts: list[tuple[str, int]]  # in words with counts, most frequent first
    adjudicated: str
    returned: int

    @property
    def percent(self) -> str:
        return "–" if self.disagreement is None else f"{100 * (1 - self.disagreement):.0f}%"

    @property
    def kind(self) -> str:
        return "practice" if self.campaign_item.practice else "gold" if self.campaign_item.gold is not None else ""


@dataclass(frozen=True, slots=True)
class ItemList(Sequence[ItemRow]):
    """The items of a campaign, least agreement first. Rows are loaded when they are accessed."""

    ids: Sequence[int]
    disputes: Mapping[int, float]
    open_returns: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, at: Any) -> Any:
        return self._rows(self.ids[at]) if isinstance(at, slice) else self._rows([self.ids[at]])[0]

    def _rows(self, ids: Sequence[int]) -> list[ItemRow]:
        campaign_items = CampaignItem.objects.select_related("item__sample", "adjudication").in_bulk(ids)
        labels_by_item: dict[int, list[Label]] = defaultdict(list)
        labels = Label.objects.filter(assignment__campaign_item__in=ids, excluded=False).select_related("assignment")
        for label in labels.order_by("pk"):
            labels_by_item[label.assignment.campaign_item_id].append(label)
        return [
            _item_row(campaign_items[pk], labels_by_item[pk], self.disputes.get(pk), self.open_returns.get(pk, 0))
            for pk in ids
            if pk in campaign_items
        ]


def list_items(campaign: Campaign, *, show: str = "", search: str = "") -> ItemList:
    """The items of a campaign that pass a filter in ``FILTERS`` and whose sample key contains ``search``.

    Least agreement comes first, then most labels.
    """
    campaign_items = campaign.campaign_items.order_by("position", "pk")
    if search:
        campaign_items = campaign_items.filter(item__sample__key__icontains=search)
    keys: dict[int, list[str]] = defaultdict(list)
    labels: Counter[int] = Counter()
    counted = Label.objects.filter(campaign=campaign, excluded=False).order_by("pk")
    for pk, *values in counted.values_list("assignment__campaign_item", *VERDICT_COLUMNS).iterator():
        labels[pk] += 1
        if key := verdict_key(dict(zip(VERDICT_COLUMNS, values, strict=True))):
            keys[pk].append(key)
    disputes = {pk: share for pk, item_keys in keys.items() if (share := disagreement(item_keys)) is not None}
    unanswered = Label.objects.filter(campaign=campaign, returns__isnull=False, returns__answered_at__isnull=True)
    open_returns = Counter(unanswered.values_list("assignment__campaign_item", flat=True))
    match show:
        case "gold" | "practice":
            campaign_items = campaign_items.filter(practice=show == "practice", gold__isnull=False)
        case "few":
            campaign_items = campaign_items.filter(practice=False, gold__isnull=True)
        case "adjudicated":
            campaign_items = campaign_items.filter(adjudication__isnull=False)
    passes = {
        "disputed": lambda pk: bool(disputes.get(pk)),
        "agreed": lambda pk: disputes.get(pk) == 0,
        "few": lambda pk: pk not in disputes,
        "returned": lambda pk: pk in open_returns,
    }.get(show, lambda pk: True)
    ids = [pk for pk in campaign_items.values_list("pk", flat=True) if passes(pk)]
    ids.sort(key=lambda pk: (disputes.get(pk, -1), labels[pk]), reverse=True)
    return ItemList(ids, disputes, open_returns)


def _item_row(campaign_item: CampaignItem, labels: Sequence[Label], share: float | None, returned: int) -> ItemRow:
    keys = [key for label in labels if (key := verdict_key(label.verdict()))]
    protocol = campaign_item.campaign.protocol
    words = {verdict_key(label.verdict()): describe(label.verdict(), protocol) for label in reversed(labels)}
    verdicts = [(words[key], count) for key, count in Counter(keys).most_common()]
    adjudicated = ""
    if hasattr(campaign_item, "adjudication"):
        adjudicated = describe(campaign_item.adjudication.verdict(), protocol)
    return ItemRow(campaign_item, len(labels), share, verdicts, adjudicated, returned)


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
    note: str  # of an unanswered return
    revisions: list[Any]


def answers_to(campaign_item: CampaignItem) -> list[Answer]:
    """The responses in canonical order."""
    names = material.names_to_mask() if campaign_item.campaign.blind else None
    answers = []
    for letter, response in zip(LETTERS, campaign_item.item.ordered_responses(), strict=False):
        text = response.text if response.status != Response.Status.ERROR else ""
        if names is not None:
            masked = bank.text.masking.mask(text, names, placeholder=bank.text.masking.MARK)
            html = bank.text.rendering.markdown(masked, masked=True)
        else:
            html = bank.text.rendering.markdown(text)
        answers.append(Answer(letter, response.model.name, html, not text.strip()))
    return answers


def labels_on(campaign_item: CampaignItem) -> list[ItemLabel]:
    """The labels of an item, oldest first, excluded ones included."""
    labels = Label.objects.filter(assignment__campaign_item=campaign_item)
    labels = labels.select_related("annotator", "assignment", "campaign").prefetch_related("returns", "revisions")
    rows, protocol = [], campaign_item.campaign.protocol
    for label in labels.order_by("pk"):
        note = next((returned.note for returned in label.returns.all() if returned.answered_at is None), "")
        shown = label.assignment.order if len(label.assignment.order) > 1 else ""
        order = " then ".join(LETTERS[int(position)] for position in shown)
        revisions = [(describe(revision.verdict, protocol), revision.given_at) for revision in label.revisions.all()]
        rows.append(ItemLabel(label, label.annotator.name, describe(label.verdict(), protocol), order, note, revisions))
    return rows


def neighbours(campaign: Campaign, campaign_item: CampaignItem) -> tuple[int | None, int | None]:
    """The items before and after this one in the list of disputed items without an adjudication."""
    adjudications = Adjudication.objects.filter(campaign_item__campaign=campaign)
    adjudicated = set(adjudications.values_list("campaign_item", flat=True))
    disputed = list_items(campaign, show="disputed").ids
    waiting = [pk for pk in disputed if pk not in adjudicated or pk == campaign_item.pk]
    if campaign_item.pk not in waiting:
        return None, waiting[0] if waiting else None
    index = waiting.index(campaign_item.pk)
    return (waiting[index - 1] if index else None), (waiting[index + 1] if index + 1 < len(waiting) else None)


COLUMN_BY_PROTOCOL = {
    "pairwise-criteria": "choice",
    "pair": "choice",
    "pair-graded": "choice",
    "batch": "ranking",
    "components": "parts",
    "choice-extraction": "option",
    "yes-no": "answer",
    LABEL: "option",
    "review": "agree",
}  # all other protocols: a score

NONE_OF_THEM = "X"


@dataclass(frozen=True, slots=True)
class VerdictInput:
    """What the form asks for: a column, and its choices or the answers or parts that get a number."""

    column: str
    choices: list[tuple[str, str]] = field(default_factory=list)  # (value, words)
    situations: list[tuple[int, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the answers or parts that get a number each
    chosen: dict[str, Any] = field(default_factory=dict)  # the verdict that stands in the form

    @property
    def selected(self) -> str:
        """The choice that is selected."""
        value = self.chosen.get(self.column)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """(name, current number) for each answer of a ranking or part with points."""
        value = self.chosen.get(self.column)
        if self.column == "ranking":
            ranks = {position: rank for rank, group in enumerate(value or [], 1) for position in group}
            return [(name, str(ranks.get(position, ""))) for position, name in enumerate(self.names)]
        return [(name, f"{value[name]:g}" if value and name in value else "") for name in self.names]


def verdict_input(
    campaign_item: CampaignItem, verdicts: Iterable[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> VerdictInput:
    """What the form asks about an item. ``verdicts`` are its labels, ``chosen`` the current verdict."""
    campaign = campaign_item.campaign
    column = COLUMN_BY_PROTOCOL.get(campaign.protocol, "score")
    chosen = dict(chosen)
    match column:
        case "choice":
            words = {"left": "A is better", "tie": "Tie", "right": "B is better", "undecided": "Unable to decide"}
            ballot = ballots.of(campaign)
            allowed = ballot.choices if isinstance(ballot, Pair) else list(words)
            situations = ballot.situations if isinstance(ballot, Pair) else {}
            choices = [(ballots.LEFT_RIGHT[name].value, text) for name, text in words.items() if name in allowed]
            numbered = [(number, str(text)) for number, text in situations.items()]
            return VerdictInput(column, choices, numbered, chosen=chosen)
        case "option" if campaign.protocol == LABEL:
            categories = [category["value"] for category in ballots.of(campaign).settings["categories"]]
            names = dict.fromkeys([*categories, *(verdict["option"] for verdict in verdicts if verdict.get("option"))])
            return VerdictInput(column, [(name, name) for name in names], chosen=chosen)
        case "option":
            options = [(key, f"{key}. {text}") for key, text in campaign_item.item.sample.options.items()]
            return VerdictInput(column, [*options, (NONE_OF_THEM, "None of them")], chosen=chosen)
        case "answer" | "agree":
            return VerdictInput(column, [("yes", "Yes"), ("no", "No")], chosen=chosen)
        case "ranking":
            letters = [f"Answer {'ABCDEFGH'[n]}" for n in range(campaign_item.item.places.count())]
            return VerdictInput(column, names=letters, chosen=chosen)
        case "parts":
            keys = list(dict.fromkeys(key for verdict in verdicts for key in verdict.get("parts") or {}))
            return VerdictInput(column, names=keys, chosen=chosen)
    return VerdictInput(column, [(f"{value:g}", words) for value, words in score_choices(campaign)], chosen=chosen)


def score_choices(campaign: Campaign) -> list[tuple[float, str]]:
    """The steps of the scale with their labels."""
    choices = []
    for step in ballots.of(campaign).settings["scale"]:
        value, label = float(step["value"]), str(step.get("label") or "")
        choices.append((value, f"{value:g}" + (f", {label}" if label and label != f"{value:g}" else "")))
    return choices


def read_verdict(question: VerdictInput, posted: Any) -> dict[str, Any]:
    """The verdict columns from a submitted form. Raises BadInput."""
    column = question.column
    if column in ("ranking", "parts"):
        return {column: _read_numbers(question, posted.getlist("number"))}
    value = posted.get("verdict", "")
    if value not in dict(question.choices):
        raise BadInput("Choose a verdict.")
    if column in ("answer", "agree"):
        return {column: value == "yes"}
    if column == "score":
        return {"score": float(value)}
    if value == Choice.UNDECIDED and question.situations:
        situation = posted.get("situation", "")
        if situation not in {str(number) for number, _ in question.situations}:
            raise BadInput("Say which situation it is.")
        return {"choice": value, "situation": int(situation)}
    return {column: value}


def _read_numbers(question: VerdictInput, texts: Sequence[str]) -> Any:
    """Points by part, or groups of positions by rank. Raises BadInput."""
    numbers = [number for text in texts if (number := _number(text)) is not None]
    if not numbers or len(numbers) != len(texts) or len(numbers) != len(question.names):
        raise BadInput("Enter a number for each.")
    if question.column == "parts":
        if min(numbers) < 0:
            raise BadInput("Points must be 0 or more.")
        return dict(zip(question.names, numbers, strict=True))
    ranks = sorted(set(numbers))
    return [[position for position, number in enumerate(numbers) if number == rank] for rank in ranks]


def _number(text: str) -> float | None:
    try:
        number = float(text) if text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e6 else None


def initial_verdict(campaign_item: CampaignItem, verdicts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The verdict a form starts with: the adjudicated one, else gold, else the one all labels agree on."""
    adjudication = getattr(campaign_item, "adjudication", None)
    if adjudication is not None:
        adjudicated: dict[str, Any] = adjudication.verdict()
        return adjudicated
    if campaign_item.gold:
        return dict(campaign_item.gold)
    labels = [dict(verdict) for verdict in verdicts]
    name = main_column(labels[0]) if labels else None
    unanimous = name and all(label.get(name) == labels[0][name] for label in labels)
    return {name: labels[0][name]} if name and unanimous else {}


@transaction.atomic
def adjudicate(*, campaign_item: CampaignItem, by: User, verdict: Mapping[str, Any], comment: str = "") -> Adjudication:
    """Decide an item, in canonical order, leaving its labels alone. Replaces an earlier decision. Raises BadInput."""
    if main_column(verdict) is None:
        raise BadInput("Choose a verdict.")
    columns: dict[str, Any] = {name: verdict.get(name) for name in COLUMNS if name != "reason"}
    adjudication, _ = Adjudication.objects.update_or_create(
        campaign_item=campaign_item, defaults=columns | {"by": by, "comment": clean_note(comment)}
    )
    return adjudication


def withdraw_adjudication(*, campaign_item: CampaignItem) -> None:
    """Remove the decision, so that the labels count again."""
    Adjudication.objects.filter(campaign_item=campaign_item).delete()
