"""Reads for the campaign pages: how far, how fast, how well."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby
from math import ceil
from statistics import median
from typing import Any

from django.db.models import Count, Exists, F, IntegerField, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.rules import Viewer, allowed
from annotations import ballots
from annotations.labels.agreement import LabelRow, Matches, agreement_with_others, by_item, label_rows
from annotations.labels.verdicts import describe, main_column
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank.models import Benchmark
from bank.models.catalogue import in_hidden_splits
from bank.models.verdict import Choice
from stats.paired import mcnemar
from stats.results import Estimate

RECENT = 20

# What is said about the way somebody labels. A hint to look, never a verdict by itself.
MIN_FLAGGED = 20  # labels: below that nothing is said

FAST, FAST_SHARE = 1 / 3, 0.25  # of the campaign's median time, and of one's labels

CHANCE = 0.001  # how seldom the same would happen by chance

ONE_SIDE = 0.7

LONG_RUN = 8

PACE_DAYS = 7


def visible_campaigns(viewer: Viewer) -> QuerySet[Campaign]:
    """Every campaign for staff; those on public benchmarks for researchers."""
    found = Campaign.objects.select_related("benchmark")
    return found if allowed(viewer, "read-bank") else found.filter(benchmark__visibility=Benchmark.Visibility.PUBLIC)


def with_counts(campaigns: QuerySet[Campaign]) -> QuerySet[Campaign]:
    """Each campaign with item_count, label_count, member_count and slot_count (labels wanted)."""
    outer = OuterRef("pk")
    items = CampaignItem.objects.filter(campaign=outer).order_by().values("campaign").annotate(n=Count("pk"))
    labels = Label.objects.filter(campaign=outer).order_by().values("campaign").annotate(n=Count("pk"))
    last = Label.objects.filter(campaign=outer).order_by().values("campaign").annotate(at=Max("created_at"))
    members = Membership.objects.filter(campaign=outer, withdrawn_at__isnull=True).order_by().values("campaign")
    counted = campaigns.annotate(
        item_count=Coalesce(Subquery(items.values("n"), output_field=IntegerField()), 0),
        label_count=Coalesce(Subquery(labels.values("n"), output_field=IntegerField()), 0),
        member_count=Coalesce(Subquery(members.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0),
        last_label=Subquery(last.values("at")),
    )
    return counted.annotate(slot_count=F("item_count") * F("overlap"))


@dataclass(frozen=True, slots=True)
class Member:
    """One annotator in a campaign."""

    annotator: Annotator
    name: str  # for staff the account's, else the pseudonym
    labels: int
    held: int
    seconds: float | None  # median
    per_hour: float | None  # labels in an hour of work
    first: int  # as shown: the left one
    tie: int
    second: int
    undecided: int
    agreed: Matches  # with the majority of the others
    kappa: Estimate | None
    gold: Matches
    practice: str  # "4 of 5", the last round
    flags: list[tuple[str, str]]  # what, and the counts behind it
    excluded: int
    returned: int
    last_seen: datetime | None
    belongs: bool  # still a member
    warned: bool
    stopped: bool
    failed: bool

    @property
    def kappa_words(self) -> str:
        if self.kappa is None or self.kappa.value is None:
            return "–"
        return f"{self.kappa.value:.2f}".replace("-", "−")

    @property
    def kappa_about(self) -> str:
        if self.kappa is None or self.kappa.value is None:
            return "No item with a majority of others, or one and the same verdict throughout"
        found = self.kappa.interval
        around = f", 95%: {found.low:.2f} to {found.high:.2f}" if found else ", no interval: no disagreement"
        return f"Cohen's kappa with the majority of the others over {self.kappa.n} items{around}"

    @property
    def bar(self) -> list[tuple[str, float, float]]:
        """(class, x, width) of the marks of a bar 56 wide: left, tie or undecided, right."""
        parts = [("w", self.first), ("t", self.tie + self.undecided), ("l", self.second)]
        shown = [(name, count) for name, count in parts if count]
        whole = sum(count for _, count in shown)
        room = 56 - (len(shown) - 1)
        marks, x = [], 0.0
        for name, count in shown:
            width = room * count / whole
            marks.append((name, round(x, 1), round(width, 1)))
            x += width + 1
        return marks


@dataclass(frozen=True, slots=True)
class Depth:
    """How many items have so many labels."""

    labels: int
    items: int
    width: float  # of a bar 120 wide


@dataclass(frozen=True, slots=True)
class Monitor:
    """A campaign as staff watch it. Hidden gold and practice items are counted by themselves."""

    items: int
    gold: int
    practice: int
    slots: int
    labels: int
    held: int
    complete: int
    seconds: float | None
    agreed: Matches
    flagged: int
    commented: int
    excluded: int
    pairs: bool
    done_by: date | None  # at the pace of the last week
    members: list[Member]
    depths: list[Depth]
    filled: int = field(default=0)  # of the slots

    @property
    def done_width(self) -> float:
        """Of a meter 1360 wide."""
        return round(1360 * min(1, self.filled / self.slots), 1) if self.slots else 0

    @property
    def held_width(self) -> float:
        return round(1360 * min(1, self.held / self.slots), 1) if self.slots else 0

    @property
    def percent(self) -> str:
        return f"{100 * self.filled / self.slots:.0f}%" if self.slots else "–"


def monitor_of(campaign: Campaign, viewer: Viewer) -> Monitor:
    rows = label_rows(campaign)
    by_annotator: dict[int, list[LabelRow]] = defaultdict(list)
    for row in rows:
        by_annotator[row.annotator].append(row)
    held = _activity(campaign)
    usual, places = _typical(rows), by_item(rows)
    memberships = {member.annotator_id: member for member in Membership.objects.filter(campaign=campaign)}
    members = [
        _member(
            annotator,
            held.get(annotator.pk, {}),
            rows,
            places,
            usual,
            memberships.get(annotator.pk),
            viewer,
            imported=campaign.imported,
        )
        for annotator in _annotators(campaign, {*by_annotator, *held})
    ]
    members.sort(key=lambda member: (-member.labels, member.name))
    kinds = campaign.campaign_items.aggregate(
        items=Count("pk", filter=Q(gold__isnull=True, practice=False)),
        gold=Count("pk", filter=Q(gold__isnull=False, practice=False)),
        practice=Count("pk", filter=Q(practice=True)),
    )
    items = kinds["items"]
    gold = set(campaign.campaign_items.filter(gold__isnull=False).values_list("pk", flat=True))
    taken = Counter(row.place for row in rows if row.place not in gold)
    counts = Counter(taken.values())
    counts[0] = items - len(taken)
    depth = max([campaign.overlap, *counts])
    extra = Label.objects.filter(campaign=campaign).aggregate(
        flagged=Count("pk", filter=~Q(flags=[])),
        commented=Count("pk", filter=~Q(comment="")),
        excluded=Count("pk", filter=Q(excluded=True)),
    )
    times = [row.seconds for row in rows if row.seconds is not None]
    filled = sum(taken.values())
    slots = items * campaign.overlap
    return Monitor(
        items=items,
        gold=kinds["gold"],
        practice=kinds["practice"],
        slots=slots,
        labels=len(rows),
        held=sum(member.held for member in members),
        complete=sum(n for labels, n in counts.items() if labels >= campaign.overlap),
        seconds=median(times) if times else None,
        agreed=_agreed(rows),
        flagged=extra["flagged"],
        commented=extra["commented"],
        excluded=extra["excluded"],
        pairs=any(row.raw in Choice.values for row in rows),
        done_by=_done_by(rows, slots - filled) if campaign.state == Campaign.State.OPEN else None,
        members=members,
        depths=[Depth(n, counts[n], round(120 * counts[n] / items, 1) if items else 0) for n in range(depth, -1, -1)],
        filled=filled,
    )


def _agreed(rows: Sequence[LabelRow]) -> Matches:
    same = n = 0
    for given in by_item(rows).values():
        counts = Counter(label.said for label in given)
        size = len(given)
        n += size * (size - 1) // 2
        same += sum(times * (times - 1) // 2 for times in counts.values())
    return Matches(same, n)


def _done_by(rows: Sequence[LabelRow], left: int) -> date | None:
    """The day on which the last label would come, at the pace of the last week."""
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
        .annotate(belongs=Exists(member.filter(withdrawn_at__isnull=True)))
        .order_by("pk")
    )


def _activity(campaign: Campaign) -> dict[int, dict[str, Any]]:
    """By annotator: how many assignments are open, what was excluded and returned, and the times of the last acts."""
    rows = Assignment.objects.filter(campaign_item__campaign=campaign).order_by().values("annotator")
    rows = rows.annotate(
        held=Count("pk", filter=Q(state=Assignment.State.LEASED), distinct=True),
        excluded=Count("pk", filter=Q(label__excluded=True), distinct=True),
        returned=Count("label__returns", filter=Q(label__returns__answered_at__isnull=True), distinct=True),
        leased=Max("leased_at"),
        drafted=Max("draft_at"),
        labelled=Max("label__changed_at"),
    )
    return {row["annotator"]: dict(row) for row in rows}


@dataclass(frozen=True, slots=True)
class _Typical:
    """How the campaign's labels are given as a whole."""

    seconds: float | None
    shares: dict[str, float]  # of each verdict as shown


def _typical(rows: Sequence[LabelRow]) -> _Typical:
    times = [row.seconds for row in rows if row.seconds is not None]
    shown = Counter(row.shown for row in rows)
    shares = {said: count / len(rows) for said, count in shown.items()}
    return _Typical(median(times) if times else None, shares)


def flags_of(mine: Sequence[LabelRow], usual: _Typical) -> list[tuple[str, str]]:
    """What is odd in how somebody labels: too fast, the same verdict in a row, one side far more than the other."""
    if len(mine) < MIN_FLAGGED:
        return []
    found = []
    times = [row.seconds for row in mine if row.seconds is not None]
    if usual.seconds and len(times) >= MIN_FLAGGED:
        quick = sum(seconds < FAST * usual.seconds for seconds in times)
        if quick > FAST_SHARE * len(times):
            found.append(("too fast", f"{quick} of {len(times)} in under {FAST * usual.seconds:.0f} s"))
    runs = [(said, len(list(same))) for said, same in groupby(row.shown for row in mine)]
    said, length = max(runs, key=lambda run: run[1])
    # So long a run of this verdict somewhere among their labels, if each came by its share in the campaign.
    if length >= LONG_RUN and len(mine) * min(usual.shares.get(said, 1), 0.99) ** length < CHANCE:
        found.append(("straight-lining", f"the same verdict {length} times in a row"))
    left, right = (sum(row.shown == side for row in mine) for side in (Choice.FIRST, Choice.SECOND))
    most = max(left, right)
    enough = left + right >= MIN_FLAGGED and most >= ONE_SIDE * (left + right)
    if enough and mcnemar(only_first=left, only_second=right).p < CHANCE:
        side = "left" if left > right else "right"
        found.append(("one-sided", f"{most} of {left + right} for the {side} answer"))
    return found


def _member(
    annotator: Annotator,
    held: dict[str, Any],
    rows: Sequence[LabelRow],
    places: Mapping[int, Sequence[LabelRow]],
    usual: _Typical,
    member: Membership | None,
    viewer: Viewer,
    *,
    imported: bool,
) -> Member:
    mine = [row for row in rows if row.annotator == annotator.pk]
    shown, raw = Counter(row.shown for row in mine), Counter(row.raw for row in mine)
    times = [row.seconds for row in mine if row.seconds is not None]
    seen = [held[name] for name in ("leased", "drafted", "labelled") if held.get(name)]
    same, n, kappa = agreement_with_others(places, annotator.pk)
    gold = [row.right for row in mine if row.right is not None]
    tries = member.tries if member else []
    typical = median(times) if times else None
    return Member(
        annotator=annotator,
        name=annotator.name if allowed(viewer, "read-names") else annotator.pseudonym,
        labels=len(mine),
        held=held.get("held", 0),
        seconds=typical,
        per_hour=3600 * len(times) / sum(times) if sum(times) else None,
        first=shown[Choice.FIRST],
        tie=raw[Choice.TIE],
        second=shown[Choice.SECOND],
        undecided=raw[Choice.UNDECIDED],
        agreed=Matches(same, n),
        kappa=kappa,
        gold=Matches(sum(gold), len(gold)),
        practice=f"{tries[-1]['right']} of {tries[-1]['of']}" if tries else "",
        # In what order the answers of a file were shown is not always known.
        flags=[] if imported else flags_of(mine, usual),
        excluded=held.get("excluded", 0),
        returned=held.get("returned", 0),
        last_seen=max(seen, default=None),
        belongs=bool(getattr(annotator, "belongs", False)),
        warned=bool(member and member.warned_at),
        stopped=bool(member and member.stopped_at),
        failed=bool(member and member.qualified is False),
    )


@dataclass(frozen=True, slots=True)
class RecentLabel:
    """One label in the list of the newest."""

    label: Label
    who: str
    better: str  # a name, or how neither is
    over: str
    verdict: str  # of what is no pair, in words
    flags: list[str]


def recent_labels(campaign: Campaign, viewer: Viewer, *, noted: bool = False) -> list[RecentLabel]:
    """The newest labels; ``noted``: only those with a flag or a comment."""
    found = Label.objects.filter(campaign=campaign).select_related("annotator", "item__sample")
    if not allowed(viewer, "read-hidden"):
        found = found.exclude(in_hidden_splits("item__sample__"))
    if noted:
        found = found.filter(~Q(flags=[]) | ~Q(comment=""))
    rows = []
    for label in found.prefetch_related("item__places__response__model").order_by("-changed_at", "-pk")[:RECENT]:
        names = [response.model.name for response in label.item.ordered_responses()]
        better, over = "", ""
        if len(names) == 2:
            better, over = names if label.choice == Choice.FIRST else names[::-1]
        who = label.annotator.name if allowed(viewer, "read-names") else label.annotator.pseudonym
        given = label.verdict()
        if not allowed(viewer, "read-criteria"):
            given.pop("parts", None)  # their names are those of components, which may be hidden
        verdict = describe(given, letters=names) if main_column(given) != "choice" else ""
        rows.append(
            RecentLabel(label, who, better, over, verdict, [ballots.FLAGS.get(flag, flag) for flag in label.flags])
        )
    return rows
