"""The desk of an annotator: the campaign in progress, the others by due date, those that have ended, and notices."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import Count, F, Max, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Notice
from accounts.rules import Viewer
from annotations import ballots
from annotations.assignment.notices import open_returns
from annotations.assignment.quality import has_practice, needed_to_pass
from annotations.assignment.queries import Progress, campaigns_of, progress_of
from annotations.campaigns.guidelines import reading_minutes
from annotations.labels import own
from annotations.labels.agreement import LabelsByItem, Matches
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, LabelReturn, Membership
from bank import guard
from bank.models import Benchmark, SampleImage

OPEN, PAUSED, CLOSED = Campaign.State.OPEN, Campaign.State.PAUSED, Campaign.State.CLOSED
ENDED = 10  # campaigns whose agreement is computed
NOTICES = 5
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Practice:
    """The practice round of a campaign, for one annotator."""

    items: int
    needed: int
    passed: bool
    failed: bool
    right: int
    of: int


@dataclass(frozen=True, slots=True)
class Row:
    """A campaign as its annotator sees it."""

    campaign: Campaign
    ballot: ballots.Ballot | None
    progress: Progress
    prepared: bool  # has begun, or has read the guidelines
    began: bool
    newest: datetime | None  # when they last took an item or labelled one
    read: int | None  # the version of the guidelines that they have read
    practice: Practice | None
    usual: float  # seconds of a label: their own pace, or what the protocol usually takes
    agreed: Matches | None = None
    board: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether there is still something to label."""
        return self.campaign.state == OPEN and self.ballot is not None and self.left > 0

    @property
    def ended(self) -> bool:
        return self.campaign.state == CLOSED or (self.campaign.state == OPEN and not self.left and self.began)

    @property
    def left(self) -> int:
        return self.progress.total - self.progress.done

    @property
    def practises(self) -> bool:
        return self.practice is not None and not self.practice.passed

    @property
    def blocked(self) -> bool:
        """Whether they wait for a curator: the practice round was not passed."""
        return self.practice is not None and self.practice.failed

    @property
    def minutes_to_read(self) -> int:
        return reading_minutes(self.campaign.guidelines)

    @property
    def changed(self) -> bool:
        """Whether the guidelines have changed since they read them."""
        return self.read is not None and self.read < self.campaign.guidelines_version

    @property
    def verb(self) -> str:
        """The word on the button: the next step."""
        if not self.prepared:
            return _("Read guidelines") if self.campaign.guidelines else _("See what to do")
        if self.practises:
            return _("Practise")
        return _("Go on") if self.began else _("Start")

    @property
    def link(self) -> str:
        return reverse("annotations:work" if self.prepared else "annotations:prepare", args=[self.campaign.pk])

    @property
    def to_go(self) -> float:
        """Seconds."""
        return self.left * self.usual

    @property
    def days(self) -> int | None:
        """Until it is due."""
        return (self.campaign.due - timezone.now().date()).days if self.campaign.due else None


@dataclass(frozen=True, slots=True)
class Together:
    """How far everybody is. Hidden gold counts as any item, so that the counts do not tell which one it was."""

    done: int
    total: int
    people: int


@dataclass(frozen=True, slots=True)
class Card:
    """The campaign on top, with what its card shows besides its row."""

    row: Row
    together: Together
    keys: list[tuple[str, ballots.Words]]  # the cap of each and what it means
    picture: str  # the address of the picture of their open or last item
    draft_at: datetime | None


@dataclass(frozen=True, slots=True)
class Board:
    """A benchmark that their labels count for."""

    benchmark: Benchmark
    labels: int
    link: str


@dataclass(frozen=True, slots=True)
class Desk:
    name: str
    current: Card | None
    others: list[Row] = field(default_factory=list)
    ended: list[Row] = field(default_factory=list)
    returned: LabelReturn | None = None
    returns: int = 0
    notices: list[Notice] = field(default_factory=list)
    statistics: own.Statistics | None = None
    boards: list[Board] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Campaigns besides the current one in which they can label."""
        return sum(row.goes_on for row in self.others)

    @property
    def ended_labels(self) -> int:
        return sum(row.progress.done for row in self.ended)

    @property
    def greeting(self) -> str:
        """With what is done and left over all campaigns."""
        if self.current is None:
            return _("Hello, {name}.").format(name=self.name)
        rows = [self.current.row, *self.others, *self.ended]
        done, left = sum(row.progress.done for row in rows), sum(row.left for row in rows if row.goes_on)
        words = _("Hello, {name}. {done} done, {left} to go.")
        return words.format(name=self.name, done=f"{done:,}", left=f"{left:,}")

    @property
    def said(self) -> str:
        """The sentence under the greeting."""
        if self.current is None:
            return _("Nothing waits for you.")
        first = _("One campaign in progress") if self.current.row.began else _("One campaign to begin")
        parts = [first]
        if self.waiting:
            parts.append(ngettext("{n} more open", "{n} more open", self.waiting).format(n=self.waiting))
        if self.returns:
            parts.append(
                ngettext(
                    "{n} label came back with a question", "{n} labels came back with a question", self.returns
                ).format(n=self.returns)
            )
        return _(", ").join(parts) + _(".")


def desk_of(annotator: Annotator | None, viewer: Viewer, *, name: str) -> Desk:
    """Everything on somebody's own page."""
    if annotator is None:
        return Desk(name, None)
    closed = own.closed_rounds(annotator, most=ENDED)
    rows = [_campaign_row(campaign, annotator, viewer, closed) for campaign in _campaigns_by_due_date(annotator)]
    current = _current(rows)
    returns = open_returns(annotator, campaigns=[row.campaign for row in rows])
    return Desk(
        name=name,
        current=_card(current, annotator, viewer) if current else None,
        others=[row for row in rows if row is not current and not row.ended],
        ended=_ended(rows),
        returned=returns.select_related("label__campaign", "label__item__sample").first(),
        returns=returns.count(),
        notices=list(Notice.objects.filter(person=annotator.person_id, read_at=None)[:NOTICES]),
        statistics=own.statistics_of(annotator, closed),
        boards=_boards(annotator, viewer),
    )


def _ended(rows: Iterable[Row]) -> list[Row]:
    """Those that were closed last come first."""
    ended = [row for row in rows if row.ended]
    return sorted(ended, key=lambda row: (row.campaign.closed_at or NEVER, row.campaign.pk), reverse=True)


def card_of(campaign: Campaign, annotator: Annotator, viewer: Viewer) -> Card:
    """The card of one campaign, for the page before its first item."""
    return _card(_campaign_row(campaign, annotator, viewer, {}), annotator, viewer)


def next_campaign(annotator: Annotator, *, besides: Campaign) -> Row | None:
    """Where they may go on: what they have begun first, then what is due first."""
    campaigns = _campaigns_by_due_date(annotator).exclude(pk=besides.pk)
    return _current(_campaign_row(campaign, annotator, None, {}) for campaign in campaigns)


def _campaigns_by_due_date(annotator: Annotator) -> QuerySet[Campaign]:
    campaigns = campaigns_of(annotator).filter(imported=False).select_related("benchmark")
    return campaigns.order_by(F("due").asc(nulls_last=True), "pk")


def _current(rows: Iterable[Row]) -> Row | None:
    """Where they were last; else what is due first."""
    open_rows = [row for row in rows if row.goes_on and not row.blocked]
    return max(open_rows, key=lambda row: row.newest or NEVER, default=None)


def _campaign_row(
    campaign: Campaign, annotator: Annotator, viewer: Viewer | None, closed: dict[int, LabelsByItem]
) -> Row:
    progress = progress_of(campaign=campaign, annotator=annotator, whole=True)
    member = Membership.objects.filter(campaign=campaign, annotator=annotator).first()
    mine = Assignment.objects.filter(campaign_item__campaign=campaign, annotator=annotator)
    newest = mine.aggregate(at=Max("leased_at"))["at"]
    read = member.guidelines_read if member else None
    labels = closed.get(campaign.pk)
    return Row(
        campaign=campaign,
        ballot=ballots.of(campaign) if campaign.protocol in ballots.BALLOTS else None,
        progress=progress,
        prepared=(read is not None or newest is not None) and not campaign.asks_consent_of(annotator),
        began=bool(newest),
        newest=newest,
        read=read,
        practice=_practice(campaign, member),
        usual=progress.pace or own.usual_seconds(campaign.protocol)[0],
        agreed=own.own_matches(labels, annotator.pk) if labels else None,
        board=board_of(campaign.benchmark, viewer) if viewer else "",
    )


def _practice(campaign: Campaign, member: Membership | None) -> Practice | None:
    if not has_practice(campaign):
        return None
    items = CampaignItem.objects.assignable().filter(campaign=campaign, practice=True).count()
    needed = needed_to_pass(campaign, items)
    last = (member.tries if member else [])[-1:]
    return Practice(
        items,
        needed,
        passed=bool(member and member.qualified),
        failed=bool(member and member.qualified is False),
        right=last[0]["right"] if last else 0,
        of=last[0]["of"] if last else 0,
    )


def _card(row: Row, annotator: Annotator, viewer: Viewer) -> Card:
    mine = Assignment.objects.filter(campaign_item__campaign=row.campaign, annotator=annotator)
    shown = mine.filter(state=Assignment.State.LEASED).order_by("leased_at").first()
    last = shown or mine.filter(state=Assignment.State.SUBMITTED).order_by("-leased_at").first()
    return Card(
        row=row,
        together=_together(row.campaign),
        keys=keys_of(row.ballot, viewer) if row.ballot else [],
        picture=_picture(last),
        draft_at=shown.draft_at if shown else None,
    )


def _picture(assignment: Assignment | None) -> str:
    """Of an item that they have had: of no other may they see anything."""
    if assignment is None:
        return ""
    first = SampleImage.objects.filter(sample__items__campaign_items=assignment.campaign_item_id).order_by("position")
    position = first.values_list("position", flat=True).first()
    return "" if position is None else reverse("annotations:assignment-image", args=[assignment.pk, position])


@guard.working()
def _together(campaign: Campaign) -> Together:
    total = CampaignItem.objects.filter(campaign=campaign, practice=False).count() * campaign.overlap
    labels = Label.objects.counted().filter(campaign=campaign)
    counts = labels.aggregate(done=Count("pk"), people=Count("annotator", distinct=True))
    return Together(min(counts["done"], total), total, counts["people"])


def keys_of(ballot: ballots.Ballot, viewer: Viewer) -> list[tuple[str, ballots.Words]]:
    """The keys of this ballot as the viewer has bound them, and what they mean."""
    bound = getattr(viewer, "preferences", {}).get("keyboard", {})
    keys = [
        (bound.get(choice.key, choice.cap).upper() if choice.bindable else choice.key, choice.said)
        for choice in ballot.keys
    ]
    return [*keys, ("Enter", _("next"))]


def board_of(benchmark: Benchmark, viewer: Viewer) -> str:
    """The address of the board that labels on this benchmark feed, or "" where the viewer may not see it."""
    return board_link(benchmark) if Benchmark.objects.visible_to(viewer).filter(pk=benchmark.pk).exists() else ""


def board_link(benchmark: Benchmark) -> str:
    """The address of a benchmark's board."""
    return reverse("leaderboard:benchmark", args=[benchmark])


@guard.working()
def _boards(annotator: Annotator, viewer: Viewer) -> list[Board]:
    counted = Label.objects.counted().filter(annotator=annotator)
    of_benchmark = dict(counted.order_by().values_list("campaign__benchmark").annotate(n=Count("pk")))
    benchmarks = Benchmark.objects.visible_to(viewer).filter(pk__in=of_benchmark)
    boards = [Board(benchmark, of_benchmark[benchmark.pk], board_link(benchmark)) for benchmark in benchmarks]
    return sorted(boards, key=lambda board: -board.labels)
