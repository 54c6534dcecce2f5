"""Marking items as hidden gold or practice: one at a time, from a file, or from another campaign's verdicts."""

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from accounts.installation_key import keyed
from annotations import ballots
from annotations.assignment import material
from annotations.assignment.errors import Refused
from annotations.assignment.quality import draw_decoys
from annotations.ballots import BadVerdict
from annotations.campaigns import choosing
from annotations.campaigns.blinding import note_blind_in
from annotations.labels.actions import clean_note
from annotations.labels.verdicts import main_column, majority_word, verdict_key
from annotations.models import Assignment, Campaign, CampaignItem
from bank.errors import BadInput
from bank.intake.formats import generic
from bank.intake.formats.reading import BadFile, Problem
from bank.intake.formats.records import LabelRecord
from bank.intake.parquet import NoPyarrow
from bank.models import with_answers
from bank.models.verdict import COLUMNS, turned

GOLD = "gold"
AnswerKey = tuple[str, str]  # model and variant of a response
ItemsBySample = dict[str, list[tuple[CampaignItem, list[AnswerKey]]]]


@dataclass(frozen=True, slots=True)
class GoldVerdict:
    """A campaign item and its right verdict, in canonical order."""

    campaign_item: CampaignItem
    verdict: dict[str, Any]
    note: str = ""


@dataclass(frozen=True, slots=True)
class GoldVerdicts:
    """Verdicts that can be marked, and why the other rows cannot."""

    verdicts: list[GoldVerdict]
    problems: list[str]
    alike: frozenset[int] = frozenset()  # campaign items of which as much is known elsewhere: decoys come from these


@transaction.atomic
def mark_gold(
    *, campaign_item: CampaignItem, verdict: Mapping[str, Any], note: str = "", practice: bool = False
) -> None:
    """Make an item hidden gold or a practice item with this right verdict. Every annotator then gets it.

    Raises BadInput, and Refused for an item that somebody has been assigned already.
    """
    _mark(campaign_item, verdict, note, practice)
    _after_marking(campaign_item.campaign)


def _mark(campaign_item: CampaignItem, verdict: Mapping[str, Any], note: str, practice: bool) -> None:
    if main_column(verdict) is None:
        raise BadInput("Say which verdict is right.")
    gold = {name: value for name, value in verdict.items() if value is not None}
    columns = {"gold": gold, "practice": practice, "decoy": False, "note": clean_note(note)}
    if not _unassigned(campaign_item).update(**columns):
        raise Refused("Somebody has this item or has labelled it, so it stays an ordinary one.")


def _after_marking(campaign: Campaign, alike: Collection[int] = ()) -> None:
    draw_decoys(campaign, alike)
    note_blind_in(campaign)


@transaction.atomic
def mark_all_gold(verdicts: Iterable[GoldVerdict], *, practice: bool = False, alike: Collection[int] = ()) -> int:
    """Mark all of these items or none; decoys are drawn among those ``alike`` first. Returns how many are marked.

    Raises BadInput, Refused naming the sample.
    """
    count, campaigns = 0, {}
    for gold in verdicts:
        try:
            _mark(gold.campaign_item, gold.verdict, gold.note, practice)
        except (BadInput, Refused) as error:
            raise type(error)(f"{gold.campaign_item.item.sample.key}: {error}") from None
        count, campaigns[gold.campaign_item.campaign_id] = count + 1, gold.campaign_item.campaign
    for campaign in campaigns.values():
        _after_marking(campaign, alike)
    return count


@transaction.atomic
def unmark_gold(*, campaign_item: CampaignItem) -> None:
    """Turn a gold or practice item back into an ordinary one. Raises Refused once it has been assigned."""
    if not _unassigned(campaign_item).update(gold=None, practice=False, note=""):
        raise Refused("Annotators have had this item, so it stays as it is.")
    _after_marking(campaign_item.campaign)


def _unassigned(campaign_item: CampaignItem) -> "QuerySet[CampaignItem]":
    if Assignment.objects.filter(campaign_item=campaign_item).exists():
        return CampaignItem.objects.none()
    return CampaignItem.objects.filter(pk=campaign_item.pk, taken=0)


def gold_from_file(campaign: Campaign, path: Path) -> GoldVerdicts:
    """Verdicts on this campaign's items from a file of labels in the generic format (JSON Lines, CSV, Parquet).

    A row needs ``sample`` and the verdict. It needs ``responses`` only if the campaign has several items of the sample
    or the order of the answers matters. ``note`` is shown in practice. Raises BadInput for an unreadable file.
    """
    if ballots.get(campaign.protocol).of_judgments:
        raise BadInput("These labels are about judgments, which a file cannot name. Take the verdicts from a campaign.")
    items_by_sample = _items_by_sample(campaign)
    notes: list[str] = []

    def complete(row: dict[str, Any]) -> dict[str, Any]:
        notes.append(_take_note(row))
        return _completed(row, items_by_sample)

    verdicts, problems = [], []
    try:
        # ``complete`` is called just before the row is yielded, so the last note belongs to it.
        for row in generic.labels(path, complete):
            if isinstance(row, Problem):
                problems.append(str(row))
                continue
            try:
                verdicts.append(_gold_verdict(campaign, row.data, items_by_sample[row.data.sample], notes[-1]))
            except ValueError as error:
                problems.append(f"{row.where}: {error}")
    except (BadFile, NoPyarrow) as error:
        raise BadInput(str(error)) from None
    if not verdicts and not problems:
        raise BadInput("The file has no rows.")
    last_per_item = {gold.campaign_item.pk: gold for gold in verdicts}
    return GoldVerdicts(list(last_per_item.values()), problems)


def gold_from_campaign(campaign: Campaign, source: Campaign, *, most: int | None = None) -> GoldVerdicts:
    """The adjudicated verdicts of another campaign, or else what a majority of at least two labels says.

    Covers items that are in both campaigns and not yet assigned in this one. ``most`` limits their number; this
    campaign's seed decides which are taken, and the others may become decoys: who knows the other campaign cannot tell
    these from gold. Raises BadInput where nothing is found: for a blind round that goes on and so chooses nothing yet,
    and for one that settled none of these items.
    """
    if source.pk == campaign.pk or source.protocol != campaign.protocol:
        raise BadInput(f"Choose another campaign with the protocol {campaign.protocol}.")
    unassigned = campaign.campaign_items.filter(taken=0, gold__isnull=True, assignments__isnull=True)
    campaign_items = {row.subject: row for row in unassigned.select_related("item__sample", "campaign")}
    settled = _settled_verdicts(source)
    verdicts, problems = [], []
    for subject in sorted(set(campaign_items) & set(settled)):
        campaign_item = campaign_items[subject]
        try:
            verdicts.append(GoldVerdict(campaign_item, _checked_verdict(campaign, campaign_item, settled[subject])))
        except ValueError as error:
            problems.append(f"{campaign_item.item.sample.key}: {error}")
    if not verdicts and source.blind and source.state in Campaign.GOING:
        raise BadInput(f"{source.name} is blind and goes on: its verdicts can choose items once it is closed.")
    if not verdicts and not problems:
        raise BadInput(
            f"{source.name} settled none of the items that nobody has here yet: that takes an adjudication, or two "
            "labels of which most agree."
        )
    known = {gold.campaign_item.pk for gold in verdicts}
    if most is not None and len(verdicts) > most:
        verdicts = random.Random(keyed("practice", str(campaign.seed))).sample(verdicts, most)
    return GoldVerdicts(verdicts, problems, frozenset(known.difference(gold.campaign_item.pk for gold in verdicts)))


def _take_note(row: dict[str, Any]) -> str:
    """The note of a row, which is no part of the format."""
    note = row.pop("note", "") or row.pop("comment", "")
    return note if isinstance(note, str) else ""


def _completed(row: dict[str, Any], items_by_sample: ItemsBySample) -> dict[str, Any]:
    """A row with what it may leave out. Raises ValueError if that is not one thing."""
    sample = str(row.get("sample") or "")
    candidates = items_by_sample.get(sample, [])
    if not candidates:
        raise ValueError(f"the campaign has no item of the sample {sample[:60]!r}")
    row.setdefault("responses", None)
    if not row["responses"]:
        if len(candidates) > 1:
            raise ValueError(f"the campaign has {len(candidates)} items of this sample: name the responses")
        row["responses"] = [{"model": model, "variant": variant} for model, variant in candidates[0][1]]
    return {"annotator": GOLD, "kind": candidates[0][0].item.kind} | row


def _items_by_sample(campaign: Campaign) -> ItemsBySample:
    """The campaign's items by sample key, each with its responses in canonical order."""
    by_sample: ItemsBySample = defaultdict(list)
    campaign_items = campaign.campaign_items.select_related("item__sample", "campaign")
    for campaign_item in campaign_items.prefetch_related(with_answers("item__")):
        places = sorted(campaign_item.item.places.all(), key=lambda place: place.position)
        answers = [(place.response.model.name, place.response.variant) for place in places]
        by_sample[campaign_item.item.sample.key].append((campaign_item, answers))
    return by_sample


def _gold_verdict(
    campaign: Campaign, record: LabelRecord, candidates: Iterable[tuple[CampaignItem, list[AnswerKey]]], note: str
) -> GoldVerdict:
    """The verdict of one row. Raises ValueError."""
    named = record.responses
    for campaign_item, answers in candidates:
        if sorted(named) == sorted(answers):
            verdict = turned(record.columns(), order=[answers.index(answer) for answer in named])
            return GoldVerdict(campaign_item, _checked_verdict(campaign, campaign_item, verdict), note)
    raise ValueError("the campaign has no item of these responses")


def _checked_verdict(campaign: Campaign, campaign_item: CampaignItem, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict after validation by the campaign's ballot. Raises ValueError."""
    ballot = ballots.of(campaign)
    subject = material.material_for(material.unshuffled(campaign_item), ballot)
    presented = ballot.present({name: verdict.get(name) for name in COLUMNS}, subject)
    try:
        columns = ballot.parse(presented, subject)
    except BadVerdict as error:
        raise ValueError(f"{error.field}: {error}") from None
    return {name: value for name, value in columns.items() if value is not None}


def _settled_verdicts(source: Campaign) -> dict[tuple[int, ...], dict[str, Any]]:
    """The adjudicated or majority verdicts of a campaign, by ``CampaignItem.subject``: of those that may choose, since
    which items everybody gets tells them, and practice says what is right.
    """
    labels: dict[tuple[int, ...], list[dict[str, Any]]] = defaultdict(list)
    counted = choosing.labels().counted().filter(campaign=source)
    for label in counted.select_related("assignment__campaign_item").order_by("pk"):
        labels[label.assignment.campaign_item.subject].append(label.verdict())
    settled = {}
    for subject, verdicts in labels.items():
        keys = [verdict_key(verdict) or "" for verdict in verdicts]
        majority = majority_word(keys) if len(keys) > 1 else None
        if majority:
            settled[subject] = verdicts[keys.index(majority)]
    adjudications = choosing.adjudications().filter(campaign_item__campaign=source)
    for adjudication in adjudications.select_related("campaign_item"):
        settled[adjudication.campaign_item.subject] = adjudication.verdict()
    return settled
