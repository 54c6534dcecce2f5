"""Campaigns: made, copied, changed, and given more items."""

import random
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts.models import User
from annotations import ballots
from annotations.assignment.errors import Refused
from annotations.assignment.leases import release_all, wait_for_annotators
from annotations.campaigns.candidates import REVIEW, ballot_settings, candidates_for, candidates_of, why_no_items
from annotations.campaigns.members import add_annotators
from annotations.campaigns.sampling import Plan, Selection, select_items
from annotations.models import (
    Campaign,
    CampaignItem,
    GuidelinePicture,
    Membership,
)
from bank.errors import BadInput
from bank.models import Benchmark
from judging.models import Run

MAX_OVERLAP = 100

MAX_LEASE_MINUTES = 7 * 24 * 60  # minutes

MAX_DAILY_CAP = 10_000

MAX_GOLD_RATE = 0.5

# How a campaign hands out items and looks at labels: what is set when it is made and may be changed later.
OPTIONS = (
    *("order", "daily_cap", "due", "practice_pass"),
    *("gold_rate", "gold_pass", "gold_least", "gold_stops"),
)


@transaction.atomic
def make_campaign(
    *,
    name: str,
    benchmark: Benchmark,
    protocol: str,
    overlap: int = 1,
    lease_minutes: int = 30,
    annotators: Iterable[User] | None = None,
    guidelines: str = "",
    blind: bool = True,
    shows_criteria: bool = False,
    seed: int | None = None,
    plan: Plan | None = None,
    opened: bool = True,
    ballot: Mapping[str, Any] | None = None,
    run: Run | None = None,
    **options: Any,
) -> Campaign:
    """A campaign over the items of the protocol's kind that ``plan`` takes (all of them without), open at once.

    ``annotators`` None lets every annotator join. ``seed`` decides what the plan leaves open, the order of the items
    and, with the annotator, the sides; drawn when None. ``ballot`` holds settings of the protocol, see
    annotations.ballots; they are fixed here. Reviews are of every judgment that annotators may see, or of those of
    one ``run``. ``options`` are those of ``OPTIONS``. Raises BadInput.
    """
    name = _free_name(name)
    _check_shape(overlap, lease_minutes)
    options = checked_options(options)
    seed = new_seed() if seed is None else seed
    plan = plan or Plan()
    settings = ballot_settings(benchmark=benchmark, protocol=protocol, ballot=ballot or {})
    about: dict[str, Any] = {"benchmark": benchmark, "protocol": protocol, "shows_criteria": shows_criteria, "run": run}
    about["ballot"] = settings
    chosen = select_items(plan=plan, seed=seed, **about)
    if not chosen.candidates:
        if plan != Plan() and candidates_for(**about):
            raise BadInput("The plan takes no item: nothing fits all that it asks for.")
        raise BadInput(why_no_items(benchmark=benchmark, ballot=ballots.get(protocol)))
    campaign = Campaign.objects.create(
        name=name,
        benchmark=benchmark,
        protocol=protocol,
        ballot=settings,
        guidelines=guidelines.strip(),
        overlap=overlap,
        blind=blind,
        shows_criteria=shows_criteria,
        lease_minutes=lease_minutes,
        seed=seed,
        plan=plan.as_json(),
        state=Campaign.State.OPEN if opened else Campaign.State.DRAFT,
        open_to_all=annotators is None,
        **options,
    )
    _store_items(campaign, chosen)
    if annotators is not None:
        add_annotators(campaign=campaign, people=annotators)
    return campaign


def new_seed() -> int:
    return secrets.randbelow(2**31)


def _free_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise BadInput("A campaign needs a name.")
    if len(name) > 200 or not name.isprintable():
        raise BadInput("A campaign's name is one line of at most 200 characters.")
    if Campaign.objects.filter(name=name).exists():
        raise BadInput(f"There is a campaign {name!r} already; choose another name.")
    return name


def _check_shape(overlap: int, lease_minutes: int) -> None:
    if not 1 <= overlap <= MAX_OVERLAP:
        raise BadInput(f"The overlap is a number of annotators per item, 1 to {MAX_OVERLAP}, not {overlap}.")
    if not 1 <= lease_minutes <= MAX_LEASE_MINUTES:
        raise BadInput(f"The lease is a number of minutes, 1 to {MAX_LEASE_MINUTES:,}, not {lease_minutes}.")


def checked_options(options: Mapping[str, Any], *, stored_due: date | None = None) -> dict[str, Any]:
    """The options of a campaign, each within its bounds; a due date that it has already may pass. Raises BadInput."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise BadInput(f"A campaign has no option {unknown[0]!r}.")
    found = dict(options)
    if found.get("order", Campaign.Order.LEAST) not in Campaign.Order.values:
        raise BadInput(f"Items are handed out {', '.join(Campaign.Order.values)}, not {found['order']!r}.")
    cap, due = found.get("daily_cap"), found.get("due")
    if cap is not None and not 1 <= cap <= MAX_DAILY_CAP:
        raise BadInput(f"The cap of a day is a number of labels, 1 to {MAX_DAILY_CAP:,}, not {cap}.")
    if due is not None and not isinstance(due, date):
        raise BadInput("The due date is a date.", "due")
    if due is not None and due != stored_due and _is_past(due):
        raise BadInput(f"The due date {due} has passed: choose today or a later day, or none.", "due")
    for name, lowest, highest, words in (
        ("practice_pass", 0.0, 1.0, "pass mark of the practice round is a share, 0 to 1"),
        ("gold_rate", 0.0, MAX_GOLD_RATE, f"share of hidden gold items is 0 to {MAX_GOLD_RATE}"),
        ("gold_pass", 0.0, 1.0, "mark for hidden gold items is a share, 0 to 1"),
        ("gold_least", 1, 1000, "number of gold items before a warning is 1 to 1,000"),
    ):
        value = found.get(name)
        if value is not None and not lowest <= value <= highest:
            raise BadInput(f"The {words}, not {value:g}.")
    return found


def _is_past(day: date) -> bool:
    """Whether it is over everywhere on Earth: today may be yesterday by the server's clock (UTC)."""
    return day < (timezone.now() - timedelta(hours=12)).date()


@transaction.atomic
def change_campaign(
    *, campaign: Campaign, overlap: int | None = None, lease_minutes: int | None = None, **options: Any
) -> None:
    """Change how a campaign goes on. Its overlap can only grow: what has its labels keeps them. Raises BadInput.

    Before there are labels it may shrink, as far as nobody holds an item beyond it.
    """
    _check_shape(overlap or campaign.overlap, lease_minutes or campaign.lease_minutes)
    before = wait_for_annotators(campaign).overlap
    if overlap is not None and overlap < before:
        if campaign.labels.exists():
            raise BadInput(f"Items have up to {before} labels already: the overlap can grow, not shrink.")
        shared = campaign.campaign_items.filter(gold__isnull=True, practice=False)
        most = shared.aggregate(most=Max("taken"))["most"] or 0
        if most > overlap:
            raise BadInput(
                f"{most} annotators hold one item just now. The overlap can shrink when they are done with it."
            )
    changed = checked_options(options, stored_due=campaign.due)
    if overlap:
        changed["overlap"] = overlap
    if lease_minutes:
        changed["lease_minutes"] = lease_minutes
    for name, value in changed.items():
        setattr(campaign, name, value)
    campaign.save(update_fields=list(changed))


@transaction.atomic
def change_ballot(*, campaign: Campaign, ballot: Mapping[str, Any]) -> None:
    """Set the ballot up anew, while nobody has cast it. Raises BadInput, Refused once there are labels."""
    _check_unlabelled(campaign)
    if campaign.campaign_items.filter(gold__isnull=False).exists():
        raise Refused("Gold and practice items have verdicts on the old terms: make them ordinary items first.")
    before = campaign.ballot
    campaign.ballot = ballot_settings(benchmark=campaign.benchmark, protocol=campaign.protocol, ballot=ballot)
    if campaign.protocol != REVIEW:
        fit = {candidate.pk for candidate in candidates_of(campaign)}
        lost = sum(item not in fit for item in campaign.campaign_items.values_list("item", flat=True))
        if lost:
            campaign.ballot = before
            raise BadInput(f"{lost:,} items of the campaign could not be labelled then.")
    wait_for_annotators(campaign)  # those who began on the old terms are counted
    _check_unlabelled(campaign)
    campaign.save(update_fields=["ballot"])


def _check_unlabelled(campaign: Campaign) -> None:
    if campaign.imported or campaign.labels.exists():
        raise Refused("What annotators may answer is fixed: there are labels. Copy the campaign to ask otherwise.")


@transaction.atomic
def copy_campaign(*, campaign: Campaign, name: str, with_annotators: bool = True) -> Campaign:
    """The same items, settings, guidelines and people under another name and seed, as a draft without labels.

    Gold and practice items are what they were; a due date that has passed is left out. Raises BadInput, Refused for
    labels that came from a file.
    """
    if campaign.imported:
        raise Refused("These labels came from a file; there is nothing to label again.")
    copied = Campaign.objects.get(pk=campaign.pk)
    copied.pk, copied._state.adding = None, True
    copied.name, copied.seed, copied.state = _free_name(name), new_seed(), Campaign.State.DRAFT
    copied.due = None if copied.due and _is_past(copied.due) else copied.due
    copied.save(force_insert=True)
    Campaign.objects.filter(pk=copied.pk).update(created_at=timezone.now())
    names = ("item_id", "reviewed_id", "gold", "practice", "note", "why", "position")
    places = campaign.campaign_items.order_by("position", "pk").values(*names)
    CampaignItem.objects.bulk_create([CampaignItem(campaign=copied, **row) for row in places], batch_size=1000)
    pictures = campaign.pictures.values("name", "sha256", "kind", "width", "height")
    GuidelinePicture.objects.bulk_create([GuidelinePicture(campaign=copied, **row) for row in pictures])
    if with_annotators:
        members = campaign.memberships.filter(withdrawn_at__isnull=True)
        Membership.objects.bulk_create(
            [Membership(campaign=copied, annotator_id=pk) for pk in members.values_list("annotator", flat=True)]
        )
    return copied


@transaction.atomic
def add_items(*, campaign: Campaign, chosen: Selection, priority: int = 0) -> int:
    """Give a campaign more items, behind those it has; how many it had not. Raises Refused."""
    if campaign.imported or campaign.state == Campaign.State.CLOSED:
        raise Refused(f"{campaign.name} takes no more items: it is closed.")
    Campaign.objects.select_for_update().get(pk=campaign.pk)  # two at once: one after the other
    reviews = campaign.protocol == REVIEW
    column = "reviewed" if reviews else "item"
    have = set(campaign.campaign_items.values_list(column, flat=True))
    fresh = [candidate for candidate in chosen.candidates if candidate.pk not in have]
    last = campaign.campaign_items.aggregate(last=Max("position"))["last"]
    _store_items(campaign, Selection(fresh, chosen.why), start=0 if last is None else last + 1, priority=priority)
    return len(fresh)


def _store_items(campaign: Campaign, chosen: Selection, *, start: int = 0, priority: int = 0) -> None:
    """Store what was chosen, in the order in which it is handed out."""
    by_pk = {candidate.pk: candidate for candidate in chosen.candidates}
    if campaign.order == Campaign.Order.FIXED:
        samples = campaign.benchmark.samples.order_by("position", "pk").values_list("pk", flat=True)
        rank = {pk: place for place, pk in enumerate(samples)}
        order = sorted(by_pk, key=lambda pk: (rank[by_pk[pk].sample], pk))
    else:
        order = deal({pk: one.sample for pk, one in by_pk.items()}, rng=random.Random(campaign.seed + start))
    reviews = campaign.protocol == REVIEW
    CampaignItem.objects.bulk_create(
        [
            CampaignItem(
                campaign=campaign,
                item_id=by_pk[pk].item,
                reviewed_id=pk if reviews else None,
                position=position,
                priority=priority,
                why=chosen.why.get(pk, "")[:200],
            )
            for position, pk in enumerate(order, start)
        ],
        batch_size=1000,
    )


def deal(samples: dict[int, int], *, rng: random.Random) -> list[int]:
    """Items (by id, with their sample's id) in the order they are handed out.

    Dealt like cards: a shuffled round with one item of every sample, then the next round. So nobody sees the same
    picture twice in a row, and a campaign that stops early has something on every sample.
    """
    of_sample: dict[int, list[int]] = defaultdict(list)
    for item, sample in samples.items():
        of_sample[sample].append(item)
    for items in of_sample.values():
        rng.shuffle(items)
    order: list[int] = []
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


def open_campaign(*, campaign: Campaign) -> None:
    """Hand out items (again). Raises Refused for labels that came from a file."""
    _set_state(campaign, Campaign.State.OPEN)


def pause_campaign(*, campaign: Campaign) -> None:
    """Hand out nothing more for now; what is open may still be submitted. Raises Refused where it is not open."""
    if campaign.state != Campaign.State.OPEN:
        raise Refused(f"{campaign.name} is {campaign.state}: only an open campaign can pause.")
    _set_state(campaign, Campaign.State.PAUSED)


@transaction.atomic
def close_campaign(*, campaign: Campaign, now: datetime) -> None:
    """End it: leases are freed, nothing more is taken. Raises Refused for labels that came from a file."""
    _set_state(campaign, Campaign.State.CLOSED)
    release_all(campaign=campaign, now=now)


def _set_state(campaign: Campaign, state: str) -> None:
    if campaign.imported:
        raise Refused("These labels came from a file: they are neither opened nor closed.")
    campaign.state = state
    campaign.save(update_fields=["state"])
