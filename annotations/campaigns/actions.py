"""Making, copying and changing campaigns, adding items, and opening, pausing and closing them."""

import random
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Max
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, mail, notices
from accounts.installation_key import keyed
from accounts.models import User
from annotations import ballots
from annotations.assignment.errors import Refused
from annotations.assignment.leases import release_all, wait_for_annotators
from annotations.assignment.quality import draw_decoys
from annotations.campaigns.announcements import announce_campaign
from annotations.campaigns.blinding import note_blind_in
from annotations.campaigns.candidates import (
    ballot_settings,
    candidates_for,
    candidates_of,
    configured_ballot,
    why_no_items,
)
from annotations.campaigns.inputs import checked_settings, is_past
from annotations.campaigns.members import add_annotators
from annotations.campaigns.sampling import Plan, Selection, select_items
from annotations.models import (
    Campaign,
    CampaignItem,
    GuidelinePicture,
    Membership,
)
from bank.database import analyze
from bank.errors import BadInput
from bank.models import Benchmark
from bank.text.names import as_stored
from judging.models import Run

Subject = TypeVar("Subject")


@transaction.atomic
def make_campaign(
    *,
    name: str,
    benchmark: Benchmark,
    protocol: str,
    annotators: Iterable[User] | None = None,
    guidelines: str = "",
    blind: bool = True,
    shows_criteria: bool = False,
    seed: int | None = None,
    plan: Plan | None = None,
    opened: bool = True,
    ballot: Mapping[str, Any] | None = None,
    run: Run | None = None,
    by: User | None = None,
    **settings: Any,
) -> Campaign:
    """A campaign over the items that ``plan`` selects, by default all that fit the protocol.

    If ``annotators`` is None, every annotator may join, and whoever has the right to label on the benchmark. ``seed``
    decides the plan's random choices, the order of items and, with the annotator, the order of answers; None draws one.
    ``ballot`` has the protocol's settings, see annotations.ballots. Reviews cover every judgment that annotators may
    see, or those of one ``run``; comparisons every two of them, see ``comparisons_for``; both one after the other,
    unless ``order`` says otherwise, so that few people finish some. ``settings`` are ``CampaignSettings``. Raises
    BadInput.
    """
    name = _free_name(name)
    settings = checked_settings({"order": _usual_order(protocol)} | settings)
    seed = new_seed() if seed is None else seed
    plan = plan or Plan()
    asked = ballot_settings(benchmark=benchmark, protocol=protocol, ballot=ballot or {})
    source: dict[str, Any] = {
        "benchmark": benchmark,
        "protocol": protocol,
        "shows_criteria": shows_criteria,
        "run": run,
        "ballot": asked,
    }
    selection = select_items(plan=plan, seed=seed, **source)
    if not selection.candidates:
        if plan != Plan() and candidates_for(**source):
            raise BadInput("The plan selects no items: nothing matches all of its conditions.")
        configured = configured_ballot(benchmark=benchmark, protocol=protocol, ballot=asked)
        raise BadInput(why_no_items(benchmark=benchmark, ballot=configured, shows_criteria=shows_criteria))
    campaign = Campaign.objects.create(
        name=name,
        benchmark=benchmark,
        protocol=protocol,
        ballot=asked,
        guidelines=guidelines.strip(),
        blind=blind,
        shows_criteria=shows_criteria,
        seed=seed,
        plan=plan.as_json(),
        state=Campaign.State.OPEN if opened else Campaign.State.DRAFT,
        open_to_all=annotators is None,
        by=by,
        **settings,
    )
    _store_items(campaign, selection)
    if annotators is not None:
        add_annotators(campaign=campaign, people=annotators, by=by)
    analyze(CampaignItem)  # the next item is looked for among them
    return campaign


def _usual_order(protocol: str) -> str:
    """In which order items are given where nobody says. There are more judgments than people review: spread over all
    of them, none would come to the three reviews that a consensus takes.
    """
    of_judgments = ballots.words_of(protocol).of_judgments
    return Campaign.Order.SHUFFLED.value if of_judgments else Campaign.Order.LEAST.value


def new_seed() -> int:
    return secrets.randbelow(2**31)


def _free_name(name: str) -> str:
    if not (entered := name.strip()):
        raise BadInput("A campaign needs a name.")
    name = as_stored(name)
    if len(name) > 200 or not entered.isprintable():
        raise BadInput("A campaign's name must be one line of at most 200 characters.")
    if Campaign.objects.filter(name=name).exists():
        raise BadInput(f"The name {name!r} is taken by another campaign. Choose another name.")
    return name


@transaction.atomic
def change_campaign(*, campaign: Campaign, **settings: Any) -> None:
    """Change some of ``CampaignSettings``. Raises BadInput.

    The overlap can only grow once there are labels. Before that it may shrink, but not below what annotators hold.
    """
    changes = checked_settings(settings, campaign)
    before = wait_for_annotators(campaign).overlap
    overlap = changes.get("overlap", before)
    if overlap < before:
        if campaign.labels.exists():
            raise BadInput(f"Items already have up to {before} labels, so the overlap can grow but not shrink.")
        ordinary = campaign.campaign_items.filter(gold__isnull=True, practice=False, decoy=False)
        most = ordinary.aggregate(most=Max("taken"))["most"] or 0
        if most > overlap:
            raise BadInput(
                f"{most} annotators are working on one item right now. Shrink the overlap when they are done."
            )
    for name, value in changes.items():
        setattr(campaign, name, value)
    campaign.save(update_fields=list(changes))
    note_blind_in(campaign)


@transaction.atomic
def change_ballot(*, campaign: Campaign, ballot: Mapping[str, Any]) -> None:
    """Change the ballot while there are no labels. Raises BadInput, and Refused once there are labels."""
    _check_unlabelled(campaign)
    if campaign.campaign_items.filter(gold__isnull=False).exists():
        raise Refused("Gold and practice items have verdicts from the old ballot. Make them ordinary items first.")
    before = campaign.ballot
    campaign.ballot = ballot_settings(benchmark=campaign.benchmark, protocol=campaign.protocol, ballot=ballot)
    if not ballots.get(campaign.protocol).of_judgments:
        fitting = {candidate.item for candidate in candidates_of(campaign)}
        lost = sum(item not in fitting for item in campaign.campaign_items.values_list("item", flat=True))
        if lost:
            campaign.ballot = before
            raise BadInput(f"{lost:,} items of the campaign could not be labelled with this ballot.")
    wait_for_annotators(campaign)  # labels by those who started with the old ballot are stored now
    _check_unlabelled(campaign)
    campaign.save(update_fields=["ballot"])


def _check_unlabelled(campaign: Campaign) -> None:
    if campaign.imported or campaign.labels.exists():
        raise Refused("There are labels, so the ballot can no longer change. Copy the campaign to ask something else.")


@transaction.atomic
def copy_campaign(*, campaign: Campaign, name: str) -> Campaign:
    """A draft with the same items, settings, guidelines and people under a new name and seed, without labels.

    Gold and practice items stay marked; a past due date is dropped. Raises BadInput, and Refused for imported labels.
    """
    if campaign.imported:
        raise Refused("These labels came from a file, so there is nothing to label again.")
    copied = Campaign.objects.get(pk=campaign.pk)
    copied.pk, copied._state.adding = None, True
    copied.name, copied.seed, copied.state = _free_name(name), new_seed(), Campaign.State.DRAFT
    copied.due = None if copied.due and is_past(copied.due) else copied.due
    copied.guidelines_version, copied.guidelines_changed_at, copied.guidelines_change = 1, None, ""
    copied.closed_at = copied.finished_opened_at = None
    copied.save(force_insert=True)
    Campaign.objects.filter(pk=copied.pk).update(created_at=timezone.now())
    columns = ("item_id", "reviewed_id", "against_id", "gold", "practice", "note", "why", "position")
    rows = campaign.campaign_items.order_by("position", "pk").values(*columns)
    CampaignItem.objects.bulk_create([CampaignItem(campaign=copied, **row) for row in rows], batch_size=1000)
    draw_decoys(copied)
    pictures = campaign.pictures.values("name", "sha256", "kind", "width", "height")
    GuidelinePicture.objects.bulk_create([GuidelinePicture(campaign=copied, **row) for row in pictures])
    members = campaign.memberships.filter(withdrawn_at__isnull=True).values_list("annotator", flat=True)
    Membership.objects.bulk_create([Membership(campaign=copied, annotator_id=pk) for pk in members])
    return copied


@transaction.atomic
def add_items(*, campaign: Campaign, selection: Selection) -> int:
    """Add items to a campaign, after those it has. Returns how many are new. Raises Refused."""
    if campaign.imported or campaign.state == Campaign.State.CLOSED:
        raise Refused(f"{campaign.name} is closed and takes no more items.")
    Campaign.objects.select_for_update().get(pk=campaign.pk)  # one addition at a time
    existing = {place.subject for place in campaign.campaign_items.only("item_id", "reviewed_id", "against_id")}
    new = [candidate for candidate in selection.candidates if candidate.subject not in existing]
    last = campaign.campaign_items.aggregate(last=Max("position"))["last"]
    _store_items(campaign, Selection(new, selection.why), start=0 if last is None else last + 1)
    return len(new)


def _store_items(campaign: Campaign, selection: Selection, *, start: int = 0) -> None:
    """Store the selected items in the order in which they will be assigned."""
    candidates = {candidate.subject: candidate for candidate in selection.candidates}
    if campaign.order == Campaign.Order.FIXED:
        samples = campaign.benchmark.samples.order_by("position", "pk").values_list("pk", flat=True)
        rank = {pk: index for index, pk in enumerate(samples)}
        order = sorted(candidates, key=lambda subject: (rank[candidates[subject].sample], subject))
    else:
        samples_of = {subject: candidate.sample for subject, candidate in candidates.items()}
        order = deal(samples_of, rng=random.Random(keyed("deal", f"{campaign.seed}:{start}")))
    CampaignItem.objects.bulk_create(
        [
            CampaignItem(
                campaign=campaign,
                item_id=candidates[subject].item,
                **dict(zip(("reviewed_id", "against_id"), candidates[subject].judgments, strict=False)),
                position=position,
                why=selection.why.get(subject, "")[:200],
            )
            for position, subject in enumerate(order, start)
        ],
        batch_size=1000,
    )
    draw_decoys(campaign)
    note_blind_in(campaign)


def deal(samples: Mapping[Subject, int], *, rng: random.Random) -> list[Subject]:
    """What is labelled, given with its sample's id, in the order in which it will be assigned.

    They are dealt like cards: a shuffled round with one item of each sample, then the next round. So nobody sees the
    same picture twice in a row, and a campaign that stops early covers every sample.
    """
    of_sample: dict[int, list[Subject]] = defaultdict(list)
    for item, sample in samples.items():
        of_sample[sample].append(item)
    for items in of_sample.values():
        rng.shuffle(items)
    order: list[Subject] = []
    last = None  # the sample that closed the round before
    while of_sample:
        round_ = list(of_sample)
        rng.shuffle(round_)
        if len(round_) > 1 and round_[0] == last:
            round_[0], round_[-1] = round_[-1], round_[0]
        for sample in round_:
            order.append(of_sample[sample].pop())
            if not of_sample[sample]:
                del of_sample[sample]
        last = round_[-1]
    return order


@transaction.atomic
def open_campaign(*, campaign: Campaign, again: bool = False, by: User | None = None) -> None:
    """Start or resume assigning items. Raises Refused for imported labels, and for a closed campaign without ``again``.

    What people saw when it closed they keep on knowing, so that opening it ``again`` is recorded in the audit log.
    """
    if campaign.state == Campaign.State.CLOSED and not campaign.imported:
        if not again:
            raise Refused(f"{campaign.name} is closed. Opening it again has to be confirmed.")
        audit.record("campaign-opened-again", by=by, about=campaign.name, closed=str(campaign.closed_at or "")[:10])
    _set_state(campaign, Campaign.State.OPEN)


def pause_campaign(*, campaign: Campaign) -> None:
    """Assign nothing new for now; open assignments may still be submitted. Raises Refused if it is not open."""
    if campaign.state != Campaign.State.OPEN:
        raise Refused(f"{campaign.name} is {campaign.state}. Only an open campaign can be paused.")
    _set_state(campaign, Campaign.State.PAUSED)


@transaction.atomic
def close_campaign(*, campaign: Campaign, now: datetime) -> None:
    """Free all leases, accept no more labels and show the rows. Raises Refused for imported labels."""
    _set_state(campaign, Campaign.State.CLOSED)
    campaign.closed_at = now
    campaign.save(update_fields=["closed_at"])
    release_all(campaign=campaign, now=now)
    announce_campaign("campaign.closed", campaign, key=f"{campaign.pk}:{now:%Y%m%d%H%M%S}")
    labelled = User.objects.filter(annotator__labels__campaign=campaign, annotator__labels__excluded=False)
    for person in labelled.distinct():
        with mail.in_language_of(person):
            text = _("{campaign} is closed. Thank you for your labels: see what became of them.")
            text = text.format(campaign=campaign.name)
        key = f"campaign-{campaign.pk}-closed-{now:%Y%m%d%H%M%S}"
        notices.tell(person, key=key, text=text, link=reverse("annotations:done", args=[campaign.pk]))


def _set_state(campaign: Campaign, state: str) -> None:
    if campaign.imported:
        raise Refused("These labels came from a file, so the campaign cannot be opened or closed.")
    campaign.state = state
    campaign.save(update_fields=["state"])
    note_blind_in(campaign)
