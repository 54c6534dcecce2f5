"""Right verdicts for many items at once, for hidden gold and practice: from a file, or from another campaign."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from annotations import ballots
from annotations.assignment import material
from annotations.assignment.errors import Refused
from annotations.ballots import BadVerdict
from annotations.labels.actions import clean_note
from annotations.labels.verdicts import main_column, majority_word, word
from annotations.models import Adjudication, Assignment, Campaign, CampaignItem, Label
from bank.errors import BadInput
from bank.intake.formats import generic
from bank.intake.formats.reading import BadFile, Problem
from bank.intake.formats.records import LabelRecord
from bank.intake.parquet import NoPyarrow
from bank.models import Item
from bank.models.verdict import COLUMNS, turned

GOLD = "gold"


@dataclass(frozen=True, slots=True)
class Known:
    """An item of a campaign and its right verdict, in canonical order."""

    place: CampaignItem
    verdict: dict[str, Any]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What can be marked, and why the rest cannot, in words."""

    known: list[Known]
    problems: list[str]


def in_file(campaign: Campaign, path: Path) -> Found:
    """The verdicts of a file of labels in the generic format (JSON Lines, CSV, Parquet), of this campaign's items.

    A row needs ``sample`` and the verdict; ``responses`` only where the campaign has several items of the sample, or
    to say which answer is which. ``note`` is shown in practice. Raises BadInput for a file that cannot be read.
    """
    if campaign.protocol == "review":
        raise BadInput("Reviews are about judgments, which a file does not name: take them from a campaign.")
    places = _places(campaign)
    notes: list[str] = []

    def complete(row: dict[str, Any]) -> dict[str, Any]:
        note = row.pop("note", "") or row.pop("comment", "")
        notes.append(note if isinstance(note, str) else "")
        of_sample = places.get(str(row.get("sample") or ""), [])
        if not of_sample:
            raise ValueError(f"the campaign has no item of the sample {str(row.get('sample') or '')[:60]!r}")
        row.setdefault("responses", None)
        if not row["responses"]:
            if len(of_sample) > 1:
                raise ValueError(f"the campaign has {len(of_sample)} items of this sample: name the responses")
            row["responses"] = [{"model": model, "variant": variant} for model, variant in of_sample[0][1]]
        return {"annotator": GOLD, "kind": of_sample[0][0].item.kind} | row

    known, problems = [], []
    try:
        # A row is completed just before it is read, so the newest note is its own.
        for row in generic.labels(path, complete):
            if isinstance(row, Problem):
                problems.append(str(row))
                continue
            try:
                known.append(_known(campaign, row.data, places[row.data.sample], notes[-1]))
            except ValueError as error:
                problems.append(f"{row.where}: {error}")
    except (BadFile, NoPyarrow) as error:
        raise BadInput(str(error)) from None
    if not known and not problems:
        raise BadInput("The file holds no row.")
    return Found(_each_once(known), problems)


def in_campaign(campaign: Campaign, source: Campaign, *, most: int | None = None) -> Found:
    """The adjudicated verdicts of another campaign, else what more than half of two labels or more say.

    On items that both have and nobody has begun here; at most so many, drawn by this campaign's seed.
    """
    if source.pk == campaign.pk or source.protocol != campaign.protocol:
        raise BadInput(f"Choose another campaign of the protocol {campaign.protocol}.")
    column = "reviewed_id" if campaign.protocol == "review" else "item_id"
    fresh = campaign.campaign_items.filter(taken=0, gold__isnull=True, assignments__isnull=True)
    places = {getattr(place, column): place for place in fresh.select_related("item__sample", "campaign")}
    decided = _decided(source, column)
    known = []
    problems = []
    for about in sorted(set(places) & set(decided)):
        try:
            known.append(Known(places[about], _fits(campaign, places[about], decided[about])))
        except ValueError as error:
            problems.append(f"{places[about].item.sample.key}: {error}")
    if most is not None and len(known) > most:
        known = random.Random(campaign.seed).sample(known, most)
    return Found(known, problems)


def _places(campaign: Campaign) -> dict[str, list[tuple[CampaignItem, list[tuple[str, str]]]]]:
    """The items by their sample's key, each with its responses in canonical order."""
    found: dict[str, list[tuple[CampaignItem, list[tuple[str, str]]]]] = defaultdict(list)
    items = campaign.campaign_items.select_related("item__sample", "campaign")
    for place in items.prefetch_related("item__places__response__model"):
        answers = sorted(place.item.places.all(), key=lambda one: one.position)
        found[place.item.sample.key].append((place, [(a.response.model.name, a.response.variant) for a in answers]))
    return found


def _known(campaign: Campaign, row: LabelRecord, places: Iterable[tuple[CampaignItem, Any]], note: str) -> Known:
    """What a row says. Raises ValueError."""
    named = [(one.model, one.variant) for one in row.responses]
    for place, answers in places:
        if sorted(named) == sorted(answers):
            verdict = turned(row.columns(), order=[answers.index(one) for one in named])
            return Known(place, _fits(campaign, place, verdict), note)
    raise ValueError("the campaign has no item of these responses")


def _fits(campaign: Campaign, place: CampaignItem, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict as this campaign's ballot takes it. Raises ValueError."""
    ballot = ballots.of(campaign)
    answers = 2 if place.item.kind == Item.Kind.PAIR else max(1, place.item.places.count())
    unturned = Assignment(campaign_item=place, order="".join(map(str, range(answers))))
    about = material.of(unturned, ballot)
    given = ballot.shown({name: verdict.get(name) for name in COLUMNS}, about)
    try:
        read = ballot.read(given, about)
    except BadVerdict as error:
        raise ValueError(f"{error.field}: {error}") from None
    return {name: value for name, value in read.items() if value is not None}


def _each_once(known: list[Known]) -> list[Known]:
    """The last row about an item counts."""
    return list({one.place.pk: one for one in known}.values())


def _decided(source: Campaign, column: str) -> dict[int, dict[str, Any]]:
    """What was decided in a campaign, by item or judgment."""
    labels: dict[int, list[dict[str, Any]]] = defaultdict(list)
    counted = Label.objects.filter(campaign=source, excluded=False, assignment__campaign_item__practice=False)
    for label in counted.select_related("assignment__campaign_item").order_by("pk"):
        labels[getattr(label.assignment.campaign_item, column)].append(label.verdict())
    found = {}
    for about, verdicts in labels.items():
        said = [word(verdict) or "" for verdict in verdicts]
        best = majority_word(said) if len(said) > 1 else None
        if best:
            found[about] = verdicts[said.index(best)]
    for decided in Adjudication.objects.filter(campaign_item__campaign=source).select_related("campaign_item"):
        found[getattr(decided.campaign_item, column)] = decided.verdict()
    return found


@transaction.atomic
def make_known(*, place: CampaignItem, verdict: Mapping[str, Any], note: str = "", practice: bool = False) -> None:
    """Make an item hidden gold, or a practice item, of this right verdict.

    Everybody then gets it. An item that somebody holds or has labelled stays what it is. Raises BadInput, Refused.
    """
    if main_column(verdict) is None:
        raise BadInput("Say which verdict is right.")
    gold = {name: value for name, value in verdict.items() if value is not None}
    if not _untouched(place).update(gold=gold, practice=practice, note=clean_note(note)):
        raise Refused("Somebody has this item, or has labelled it: it stays an ordinary one.")


@transaction.atomic
def make_all_known(*, known: Iterable[Known], practice: bool = False) -> int:
    """Make many items gold or practice, all of them or none; how many. Raises BadInput, Refused naming the sample."""
    marked = list(known)
    for one in marked:
        try:
            make_known(place=one.place, verdict=one.verdict, note=one.note, practice=practice)
        except (BadInput, Refused) as error:
            raise type(error)(f"{one.place.item.sample.key}: {error}") from None
    return len(marked)


@transaction.atomic
def make_ordinary(*, place: CampaignItem) -> None:
    """An item like others again, while nobody has had it. Raises Refused."""
    if not _untouched(place).update(gold=None, practice=False, note=""):
        raise Refused("Annotators have had this item: it stays what it is.")


def _untouched(place: CampaignItem) -> Any:
    begun = Assignment.objects.filter(campaign_item=place).exists()
    return CampaignItem.objects.none() if begun else CampaignItem.objects.filter(pk=place.pk, taken=0)
