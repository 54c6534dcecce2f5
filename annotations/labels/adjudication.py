"""The campaign items that staff look at, least agreement first, and the verdicts they enter."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from django.db import transaction

from accounts.models import User
from accounts.rules import Viewer, allowed
from annotations import ballots
from annotations.assignment import material
from annotations.assignment.queries import Answer, presented_answers
from annotations.labels.actions import clean_note
from annotations.labels.verdicts import VERDICT_COLUMNS, describe, disagreement, main_column, verdict_key
from annotations.models import Adjudication, Campaign, CampaignItem, Label
from bank.errors import BadInput
from bank.models.verdict import COLUMNS, Choice

FILTERS = {
    "disputed": "Disputed",
    "agreed": "Agreed",
    "few": "Fewer than two labels",
    "adjudicated": "Adjudicated",
    "gold": "Hidden gold",
    "decoy": "Decoys",
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
    def agreement(self) -> float | None:
        return None if self.disagreement is None else 1 - self.disagreement

    @property
    def kind(self) -> str:
        place = self.campaign_item
        return "practice" if place.practice else "gold" if place.gold is not None else "decoy" if place.decoy else ""


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


def list_items(campaign: Campaign, *, show: str, search: str = "") -> ItemList:
    """The items of a campaign that pass a filter in ``FILTERS`` and whose sample key contains ``search``.

    Least agreement comes first, then most labels.
    """
    campaign_items = campaign.campaign_items.order_by("position", "pk")
    if search:
        campaign_items = campaign_items.filter(item__sample__key__icontains=search)
    labels, disputes = _labels_and_disputes(campaign)
    unanswered = Label.objects.filter(campaign=campaign, returns__isnull=False, returns__answered_at__isnull=True)
    open_returns = Counter(unanswered.values_list("assignment__campaign_item", flat=True))
    match show:
        case "gold" | "practice":
            campaign_items = campaign_items.filter(practice=show == "practice", gold__isnull=False)
        case "decoy":
            campaign_items = campaign_items.filter(decoy=True)
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


def _labels_and_disputes(campaign: Campaign) -> tuple[Counter[int], dict[int, float]]:
    """By campaign item how many labels it has, and how far they disagree where there are two verdicts."""
    keys: dict[int, list[str]] = defaultdict(list)
    labels: Counter[int] = Counter()
    counted = Label.objects.filter(campaign=campaign, excluded=False).order_by("pk")
    for verdict in counted.values("assignment__campaign_item", *VERDICT_COLUMNS).iterator():
        labels[verdict["assignment__campaign_item"]] += 1
        if key := verdict_key(verdict):
            keys[verdict["assignment__campaign_item"]].append(key)
    return labels, {pk: share for pk, of_item in keys.items() if (share := disagreement(of_item)) is not None}


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
class ItemLabel:
    """One label of an item."""

    label: Label
    who: str
    verdict: str
    order: str
    note: str  # of an unanswered return
    revisions: list[Any]


def answers_to(campaign_item: CampaignItem) -> list[tuple[str, str, Answer]]:
    """The responses in canonical order, each with its letter and its model. Where the campaign is blind, the page does
    not show the model until it is asked for.
    """
    models = [response.model.name for response in campaign_item.item.ordered_responses()]
    assignment = material.unshuffled(campaign_item)
    return list(zip(LETTERS, models, presented_answers(assignment, assignment.order), strict=False))


def labels_on(campaign_item: CampaignItem, viewer: Viewer) -> list[ItemLabel]:
    """The labels of an item, oldest first, excluded ones included."""
    labels = Label.objects.filter(assignment__campaign_item=campaign_item)
    labels = labels.select_related("annotator", "assignment", "campaign").prefetch_related("returns", "revisions")
    rows, protocol = [], campaign_item.campaign.protocol
    for label in labels.order_by("pk"):
        note = next((returned.note for returned in label.returns.all() if returned.answered_at is None), "")
        shown = label.assignment.order if len(label.assignment.order) > 1 else ""
        order = " then ".join(LETTERS[int(position)] for position in shown)
        name = label.annotator.shown(named=allowed(viewer, "read-names"))
        revisions = [(describe(revision.verdict, protocol), revision.given_at) for revision in label.revisions.all()]
        rows.append(ItemLabel(label, name, describe(label.verdict(), protocol), order, note, revisions))
    return rows


def neighbours(campaign: Campaign, campaign_item: CampaignItem) -> tuple[int | None, int | None]:
    """The items before and after this one in the list of disputed items without an adjudication."""
    adjudications = Adjudication.objects.filter(campaign_item__campaign=campaign)
    adjudicated = set(adjudications.values_list("campaign_item", flat=True))
    disputed = list_items(campaign, show="disputed").ids
    waiting = [pk for pk in disputed if pk not in adjudicated or pk == campaign_item.pk]
    if campaign_item.pk not in waiting:
        return None, next(iter(waiting), None)
    before, around = waiting.index(campaign_item.pk), [None, *waiting, None]
    return around[before], around[before + 2]


@dataclass(frozen=True, slots=True)
class VerdictInput:
    """A question of the form: one of the choices, or a number for each answer or part."""

    ballot: ballots.Ballot
    choices: list[tuple[str, str]] = field(default_factory=list)  # (value, words)
    situations: list[tuple[int, ballots.Words]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the answers or parts that get a number each
    chosen: Mapping[str, Any] = field(default_factory=dict)  # the verdict that stands in the form

    @property
    def column(self) -> str:
        return self.ballot.fields[0]

    @property
    def selected(self) -> str:
        """The choice that is selected."""
        return verdict_key({self.column: self.chosen.get(self.column)}) or ""

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """(name, current number) for each answer of a ranking or part with points."""
        value = self.chosen.get(self.column)
        if self.column == "ranking":
            ranks = {position: rank for rank, group in enumerate(value or [], 1) for position in group}
            return [(name, str(ranks.get(position, ""))) for position, name in enumerate(self.names)]
        return [(name, f"{value[name]:g}" if value and name in value else "") for name in self.names]


def verdict_input(
    campaign_item: CampaignItem, verdicts: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> VerdictInput:
    """The question of the form about an item. ``verdicts`` are its labels, ``chosen`` the current verdict."""
    ballot = ballots.of(campaign_item.campaign)
    if not ballot.numbered:
        given = [verdict["option"] for verdict in verdicts if verdict.get("option")]
        choices = ballot.decisions(campaign_item.item.sample.options, given)
        return VerdictInput(ballot, list(choices.items()), list(ballot.situations.items()), chosen=chosen)
    names = [f"Answer {letter}" for letter in LETTERS[: campaign_item.item.places.count()]]
    if ballot.fields[0] == "parts":
        names = list(dict.fromkeys(key for verdict in verdicts for key in verdict.get("parts") or {}))
    return VerdictInput(ballot, names=names, chosen=chosen)


def read_verdict(question: VerdictInput, posted: Any) -> dict[str, Any]:
    """The verdict columns from a submitted form. Raises BadInput."""
    if question.ballot.numbered:
        return {question.column: _read_numbers(question, posted.getlist("number"))}
    value = posted.get("verdict", "")
    if value not in dict(question.choices):
        raise BadInput("Choose a verdict.")
    verdict = question.ballot.decided(value)
    if value == Choice.UNDECIDED and question.situations:
        situation = posted.get("situation", "")
        if situation not in {str(number) for number, _ in question.situations}:
            raise BadInput("Say which situation it is.")
        verdict["situation"] = int(situation)
    return verdict


def _read_numbers(question: VerdictInput, texts: Sequence[str]) -> Any:
    """Points by part, or groups of positions by rank. Raises BadInput."""
    numbers = [number for text in texts if (number := ballots.parse_number(text)) is not None]
    if not numbers or len(numbers) != len(texts) or len(numbers) != len(question.names):
        raise BadInput("Enter a number for each.")
    if question.column != "parts":
        return _by_rank(numbers)
    if min(numbers) < 0:
        raise BadInput("Points must be 0 or more.")
    return dict(zip(question.names, numbers, strict=True))


def _by_rank(numbers: Sequence[float]) -> list[list[int]]:
    ranks = sorted(set(numbers))
    return [[position for position, number in enumerate(numbers) if number == rank] for rank in ranks]


def initial_verdict(campaign_item: CampaignItem, verdicts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The verdict a form starts with: the adjudicated one, else gold, else the one all labels agree on."""
    adjudication = getattr(campaign_item, "adjudication", None)
    if adjudication is not None:
        return cast(Adjudication, adjudication).verdict()
    if campaign_item.gold:
        return cast(Mapping[str, Any], campaign_item.gold)
    name = main_column(verdicts[0]) if verdicts else None
    if name and all(verdict.get(name) == verdicts[0][name] for verdict in verdicts):
        return {name: verdicts[0][name]}
    return {}


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
