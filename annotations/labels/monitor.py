"""A campaign in numbers, for its pages: how far it is, how fast, and how well."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import groupby
from math import ceil
from statistics import median
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.rules import Viewer, allowed
from annotations import ballots
from annotations.labels.agreement import (
    LabelRow,
    LabelsByItem,
    Matches,
    agreement_with_others,
    by_item,
    one_by_one,
    pairs_of_labels,
)
from annotations.labels.verdicts import describe, main_column
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank import exposure, guard
from bank.models import with_answers
from bank.models.catalogue import known_to
from bank.models.verdict import Choice
from stats.figures import whole
from stats.paired import mcnemar
from stats.results import Estimate

RECENT = 20

# Flags on the way somebody labels. They are hints to look, not verdicts.
MIN_FLAGGED = 20  # with fewer labels nothing is flagged

FAST, FAST_SHARE = 1 / 3, 0.25  # a third of the campaign's median time, for a quarter of their labels

CHANCE = 0.001  # probability that it happens by chance

ONE_SIDE = 0.7

LONG_RUN = 8

PACE_DAYS = 7


def visible_campaigns(viewer: Viewer) -> QuerySet[Campaign]:
    """Every campaign for staff; those on benchmarks that they may know of for researchers."""
    campaigns = Campaign.objects.select_related("benchmark")
    return campaigns if allowed(viewer, "read-private") else campaigns.filter(known_to(viewer, "benchmark__"))


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a campaign is, the same on every page and whoever looks: its ``items`` to label, the ``slots`` of them,
    which are the labels wanted, and how many of these are ``filled``. ``labels`` are all that count, with those of gold
    and beyond the overlap; ``week``: in the last seven days. Of its ``annotators``, ``people`` have given some.
    """

    items: int
    slots: int
    filled: int
    labels: int
    week: int
    people: int
    annotators: int
    newest: datetime | None

    @property
    def of_people(self) -> str:
        """``3 of 4``: who have labelled, of all who are in it; ``4`` where all have."""
        every = whole(self.annotators)
        return every if self.people == self.annotators else f"{whole(self.people)} of {every}"


@guard.working()
def counts_of(campaigns: Iterable[Campaign]) -> dict[int, Counts]:
    """By campaign. Excluded labels, gold and practice items count for nothing; of decoys no more than was asked for."""
    overlap = {campaign.pk: campaign.overlap for campaign in campaigns}
    places = CampaignItem.objects.filter(campaign__in=overlap, practice=False, gold__isnull=True)
    items = dict(places.order_by().values_list("campaign").annotate(n=Count("pk")))
    labels = Label.objects.counted().filter(campaign__in=overlap).order_by()
    since = timezone.now() - timedelta(days=PACE_DAYS)
    given = labels.values("campaign").annotate(
        n=Count("pk"),
        week=Count("pk", filter=Q(created_at__gte=since)),
        newest=Max("created_at"),
        people=Count("annotator", distinct=True),
        plain=Count(
            "pk", filter=Q(assignment__campaign_item__gold__isnull=True, assignment__campaign_item__decoy=False)
        ),
    )
    by_campaign = {row["campaign"]: row for row in given}
    filled = Counter({pk: row["plain"] for pk, row in by_campaign.items()})
    decoys = labels.filter(assignment__campaign_item__decoy=True, assignment__campaign_item__gold__isnull=True)
    for pk, _, n in decoys.values_list("campaign", "assignment__campaign_item").annotate(n=Count("pk")):
        filled[pk] += min(n, overlap[pk])
    members = Membership.objects.filter(campaign__in=overlap, withdrawn_at__isnull=True).order_by()
    in_it = dict(members.values_list("campaign").annotate(n=Count("pk")))
    is_member = members.filter(campaign=OuterRef("campaign"), annotator=OuterRef("annotator"))
    gone = labels.exclude(Exists(is_member)).values_list("campaign").annotate(n=Count("annotator", distinct=True))
    left = dict(gone)
    nothing: dict[str, Any] = {"n": 0, "week": 0, "people": 0, "newest": None}
    return {
        pk: Counts(
            items=items.get(pk, 0),
            slots=items.get(pk, 0) * n,
            filled=filled[pk],
            labels=row["n"],
            week=row["week"],
            people=row["people"],
            annotators=in_it.get(pk, 0) + left.get(pk, 0),
            newest=row["newest"],
        )
        for pk, n in overlap.items()
        for row in [by_campaign.get(pk, nothing)]
    }


@dataclass(frozen=True, slots=True)
class Member:
    """One annotator in a campaign."""

    annotator: Annotator  # with ``belongs``: still a member
    name: str  # for staff the account name, else the pseudonym
    membership: Membership | None
    activity: dict[str, Any]  # see ``_activity``
    labels: int
    seconds: float | None  # median
    per_hour: float | None  # labels per hour of work
    first: int  # as shown: the left one
    tie: int
    second: int
    undecided: int
    agreed: Matches  # with the majority of the others
    kappa: Estimate | None
    gold: Matches
    flags: list[tuple[str, str]]  # name and the counts behind it
    last_seen: datetime | None


@dataclass(frozen=True, slots=True)
class Depth:
    """How many items have this many labels."""

    labels: int
    items: int
    of: int


@dataclass(frozen=True, slots=True)
class Monitor:
    """A campaign as staff watch it. Hidden gold and practice items are counted separately. ``unseen``: labels that this
    viewer does not see one by one, so that times, agreement and who chose which side leave them out.
    """

    items: int
    gold: int
    practice: int
    decoys: int  # of the items
    slots: int
    labels: int
    held: int
    complete: int
    seconds: float | None
    agreed: Matches
    compared: str  # what is counted there
    flagged: int
    commented: int
    excluded: int
    late: int  # changed when others' verdicts may have been read
    pairs: bool
    done_by: date | None  # at the pace of the last week
    members: list[Member]
    depths: list[Depth]
    filled: int = field(default=0)  # of the slots
    unseen: int = field(default=0)
    hurried: str = field(default="")  # why the median time cannot be true

    @property
    def beyond(self) -> int:
        """Labels that fill no slot: of gold, and of decoys that have theirs."""
        return self.labels - self.filled

    @property
    def share(self) -> float | None:
        return self.filled / self.slots if self.slots else None


def monitor_of(campaign: Campaign, rows: Sequence[LabelRow], viewer: Viewer) -> Monitor:
    """``rows``: ``every`` label that this viewer may see, see ``label_rows``."""
    activity, decisions = _activity(campaign), by_item(one_by_one(row for row in rows if not row.late))
    seconds = _median(_times(rows))
    kinds = campaign.campaign_items.aggregate(
        items=Count("pk", filter=Q(gold__isnull=True, practice=False)),
        gold=Count("pk", filter=Q(gold__isnull=False, practice=False)),
        practice=Count("pk", filter=Q(practice=True)),
        decoys=Count("pk", filter=Q(decoy=True)),
    )
    so_far = counts_of([campaign])[campaign.pk]
    counts = _labels_by_item(campaign)
    counts[0] = kinds["items"] - counts.total()
    depth = max([campaign.overlap, *counts])
    with guard.working():
        all_labels = Label.objects.filter(campaign=campaign)
    extra = all_labels.aggregate(
        flagged=Count("pk", filter=~Q(flags=[])),
        commented=Count("pk", filter=~Q(comment="")),
        excluded=Count("pk", filter=Q(excluded=True)),
        late=Count("pk", filter=Q(changed_late=True)),
    )
    pairs = [first.verdict == second.verdict for first, second in pairs_of_labels(decisions)]
    return Monitor(
        **kinds,
        **extra,
        slots=so_far.slots,
        labels=so_far.labels,
        held=sum(did["held"] for did in activity.values()),
        complete=sum(n for labels, n in counts.items() if labels >= campaign.overlap),
        seconds=seconds,
        agreed=Matches(sum(pairs), len(pairs)),
        compared=ballots.words_of(campaign.protocol).compared,
        pairs=any(row.raw in Choice.values for row in rows),
        done_by=_done_by(rows, so_far.slots - so_far.filled) if campaign.state == Campaign.State.OPEN else None,
        members=_members(campaign, rows, decisions, activity, seconds, viewer),
        depths=[Depth(n, counts[n], kinds["items"]) for n in range(depth, -1, -1)],
        filled=so_far.filled,
        hurried=_hurried(campaign, rows, seconds),
        unseen=max(0, so_far.labels - len(rows)),
    )


@guard.working()
def _labels_by_item(campaign: Campaign) -> Counter[int]:
    """How many items have how many labels; a decoy no more than was asked for."""
    labels = Label.objects.counted().filter(campaign=campaign, assignment__campaign_item__gold__isnull=True).order_by()
    places = labels.values_list("assignment__campaign_item", "assignment__campaign_item__decoy").annotate(n=Count("pk"))
    return Counter(min(n, campaign.overlap) if decoy else n for _, decoy, n in places)


def _times(labels: Iterable[LabelRow]) -> list[float]:
    """The seconds that labels took, where they are known."""
    return [label.seconds for label in labels if label.seconds is not None]


def _median(times: Sequence[float]) -> float | None:
    return median(times) if times else None


def _members(
    campaign: Campaign,
    rows: Sequence[LabelRow],
    decisions: LabelsByItem,
    activity: Mapping[int, dict[str, Any]],
    seconds: float | None,
    viewer: Viewer,
) -> list[Member]:
    """The annotators of a campaign, those with most labels first."""
    by_annotator: dict[int, list[LabelRow]] = defaultdict(list)
    for row in rows:
        by_annotator[row.annotator].append(row)
    # Those that several have labelled, mostly few: they are gone through for each annotator.
    items = {item: labels for item, labels in decisions.items() if len(labels) > 1}
    shares = {verdict: count / len(rows) for verdict, count in Counter(row.shown for row in rows).items()}
    memberships = {member.annotator_id: member for member in Membership.objects.filter(campaign=campaign)}
    given = _labels_by_annotator(campaign)
    members = []
    for annotator in _annotators(campaign, {*given, *activity}):
        labels = by_annotator[annotator.pk]
        # For imported labels the order of the answers is not always known.
        flags = [] if campaign.imported else flags_of(labels, seconds, shares)
        name = annotator.shown(named=allowed(viewer, "read-names"))
        membership, did = memberships.get(annotator.pk), activity.get(annotator.pk, {})
        member = _member(annotator, name, labels, items, membership, did, flags)
        members.append(replace(member, labels=given.get(annotator.pk, 0)))
    return sorted(members, key=lambda member: (-member.labels, member.name))


@guard.working()
def _labels_by_annotator(campaign: Campaign) -> dict[int, int]:
    labels = Label.objects.counted().filter(campaign=campaign).order_by()
    return dict(labels.values_list("annotator").annotate(n=Count("pk")))


def _done_by(rows: Sequence[LabelRow], left: int) -> date | None:
    """The expected day of the last label, at last week's pace."""
    now = timezone.now()
    recent = [row.at for row in rows if row.at > now - timedelta(days=PACE_DAYS)]
    if left <= 0 or len(recent) < MIN_FLAGGED:
        return None
    days = max(1.0, (now - min(recent)).total_seconds() / 86_400)
    ahead = ceil(left / (len(recent) / days))
    return timezone.localdate(now + timedelta(days=ahead)) if ahead < 3650 else None


def _annotators(campaign: Campaign, labelled: Iterable[int]) -> QuerySet[Annotator]:
    member = Membership.objects.filter(annotator=OuterRef("pk"), campaign=campaign)
    return (
        Annotator.objects.filter(Exists(member) | Q(pk__in=list(labelled)))
        .select_related("person")
        .annotate(belongs=Exists(member.filter(withdrawn_at__isnull=True)))
        .order_by("pk")
    )


def _activity(campaign: Campaign) -> dict[int, dict[str, Any]]:
    """By annotator: open assignments, excluded labels, and times of the last actions."""
    rows = Assignment.objects.filter(campaign_item__campaign=campaign).order_by().values("annotator")
    rows = rows.annotate(
        held=Count("pk", filter=Q(state=Assignment.State.LEASED), distinct=True),
        excluded=Count("pk", filter=Q(label__excluded=True), distinct=True),
        leased=Max("leased_at"),
        drafted=Max("draft_at"),
        labelled=Max("label__changed_at"),
    )
    return {row["annotator"]: dict(row) for row in rows}


def flags_of(labels: Sequence[LabelRow], usual: float | None, shares: Mapping[str, float]) -> list[tuple[str, str]]:
    """Oddities in how somebody labels: too fast, the same verdict many times in a row, one side far too often.

    ``usual`` is the median time in the campaign, ``shares`` that of each verdict in it, as shown.
    """
    if len(labels) < MIN_FLAGGED:
        return []
    said = {
        "too fast": _too_fast(labels, usual),
        "straight-lining": _straight_lining(labels, shares),
        "one-sided": _one_sided(labels),
    }
    return [(name, words) for name, words in said.items() if words]


def _too_fast(labels: Sequence[LabelRow], usual: float | None) -> str:
    times = _times(labels)
    if not usual or len(times) < MIN_FLAGGED:
        return ""
    fast = sum(seconds < FAST * usual for seconds in times)
    return f"{fast} of {len(times)} in under {FAST * usual:.0f} s" if fast > FAST_SHARE * len(times) else ""


def _hurried(campaign: Campaign, rows: Sequence[LabelRow], seconds: float | None) -> str:
    """Against what a label of the protocol takes: their own median tells nothing where everybody is too fast."""
    ballot = ballots.BALLOTS.get(campaign.protocol)
    if campaign.imported or ballot is None or seconds is None or len(_times(rows)) < MIN_FLAGGED:
        return ""
    is_fast = seconds < FAST * ballot.usual_seconds
    return f"a label of this kind takes about {ballot.usual_seconds} s" if is_fast else ""


def _straight_lining(labels: Sequence[LabelRow], shares: Mapping[str, float]) -> str:
    runs = [(verdict, len(list(group))) for verdict, group in groupby(label.shown for label in labels)]
    verdict, length = max(runs, key=lambda run: run[1])
    # The chance of a run this long anywhere in their labels, if this verdict came with its share in the campaign.
    unlikely = length >= LONG_RUN and len(labels) * min(shares.get(verdict, 1), 0.99) ** length < CHANCE
    return f"the same verdict {length} times in a row" if unlikely else ""


def _one_sided(labels: Sequence[LabelRow]) -> str:
    left, right = (sum(label.shown == side for label in labels) for side in (Choice.FIRST, Choice.SECOND))
    most, decided = max(left, right), left + right
    often = decided >= MIN_FLAGGED and most >= ONE_SIDE * decided
    if not often or mcnemar(only_first=left, only_second=right).p >= CHANCE:
        return ""
    return f"{most} of {decided} for the {'left' if left > right else 'right'} answer"


def _member(
    annotator: Annotator,
    name: str,
    labels: Sequence[LabelRow],
    items: LabelsByItem,
    membership: Membership | None,
    activity: dict[str, Any],
    flags: list[tuple[str, str]],
) -> Member:
    shown, raw = Counter(label.shown for label in labels), Counter(label.raw for label in labels)
    times = _times(labels)
    seen = [activity[name] for name in ("leased", "drafted", "labelled") if activity.get(name)]
    agreed, kappa = agreement_with_others(items, annotator.pk)
    gold = [label.right for label in labels if label.right is not None]
    return Member(
        annotator=annotator,
        name=name,
        membership=membership,
        activity=activity,
        labels=len(labels),
        seconds=_median(times),
        per_hour=3600 * len(times) / sum(times) if sum(times) else None,
        first=shown[Choice.FIRST],
        tie=raw[Choice.TIE],
        second=shown[Choice.SECOND],
        undecided=raw[Choice.UNDECIDED],
        agreed=agreed,
        kappa=kappa,
        gold=Matches(sum(gold), len(gold)),
        flags=flags,
        last_seen=max(seen, default=None),
    )


@dataclass(frozen=True, slots=True)
class RecentLabel:
    """One of the newest labels."""

    label: Label
    who: str
    better: str  # a name, or how neither is
    over: str
    verdict: str  # of what is no pair, in words
    flags: list[str]


def recent_labels(campaign: Campaign, viewer: Viewer, *, noted: bool = False) -> list[RecentLabel]:
    """The newest labels. With ``noted`` only those with a flag or a comment."""
    place = "assignment__campaign_item"
    labels = Label.objects.seen_by(viewer).filter(campaign=campaign).order_by("-changed_at", "-pk").with_words(viewer)
    if noted:
        labels = labels.filter(~Q(flags=[]) | ~Q(comment=""), exposure.words_seen(viewer, held="campaign__held"))
    # Found before anything is joined to them: else the database joins all labels, and sorts them with it.
    newest = labels.filter(pk__in=list(labels.values_list("pk", flat=True)[:RECENT]))
    judges = (f"{place}__{judgment}__run__judge" for judgment in ("reviewed", "against"))  # of few campaigns
    newest = newest.select_related("annotator", "item__sample", place)
    rows = []
    for label in newest.prefetch_related(with_answers("item__"), *judges):
        names = [response.model.name for response in label.item.ordered_responses()]
        first, second = label.assignment.campaign_item.reviewed, label.assignment.campaign_item.against
        if first and second:  # whose analyses are compared
            names = [first.run.judge.name, second.run.judge.name]
        better, over = "", ""
        if len(names) == 2:
            better, over = names if label.choice == Choice.FIRST else names[::-1]
        who = label.annotator.shown(named=allowed(viewer, "read-names"))
        columns = label.verdict()
        verdict = describe(columns, campaign.protocol, letters=names) if main_column(columns) != "choice" else ""
        if not label.in_words:
            label.comment, label.flags = "", []
        flags = [ballots.FLAGS.get(flag, flag) for flag in label.flags]
        rows.append(RecentLabel(label, who, better, over, verdict, flags))
    return rows
