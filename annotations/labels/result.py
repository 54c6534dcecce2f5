"""How a campaign went for one of its annotators: what the page at its end tells.

While the round runs, it tells nothing of what others say; after that, single verdicts of others only where everybody
may read them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from string import ascii_uppercase

from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _

from accounts.rules import Viewer
from annotations import ballots
from annotations.assignment.queries import Progress, progress_of
from annotations.labels import own
from annotations.labels.agreement import (
    UNDECIDED,
    LabelRow,
    LabelsByItem,
    Matches,
    label_rows,
    own_and_others,
    with_majority,
)
from annotations.labels.desk import Row, board_of, next_campaign
from annotations.labels.verdicts import describe, majority_word, names_as_shown, verdict_key
from annotations.models import Annotator, Campaign, CampaignItem, Label, Membership
from bank import guard
from stats.disclosure import MIN_SAMPLES
from stats.paired import mcnemar
from stats.results import Estimate

HOLDING = (Campaign.State.DRAFT, Campaign.State.OPEN, Campaign.State.PAUSED)
LOOKED_AT = 5  # items worth another look
CHANCE = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """An item on which they differ from the majority of the others, or that they flagged."""

    assignment: int
    instruction: str
    picture: int | None
    words: str


@dataclass(frozen=True, slots=True)
class Result:
    campaign: Campaign
    progress: Progress
    others: bool  # whether the campaign has items that others label or labelled instead
    closed: bool
    time: float | None  # seconds
    days: int
    pace: float | None  # seconds
    everybody: float | None
    agreed: Matches | None
    gold: Matches | None
    shares: list[tuple[str, Estimate]]  # of the same verdicts, and with whom
    sides: own.Sides
    chance: str
    looks: list[Look]
    settled: int
    board: str
    pseudonym: str
    finished: bool  # their share, or all there was
    public: bool
    message: str
    next: Row | None

    @property
    def next_words(self) -> str:
        if self.next is None:
            return _("Back to home")
        name = self.next.campaign.name
        name = name if len(name) <= 40 else f"{name[:39]}…"
        return _("Next: {name}, {left} left").format(name=name, left=f"{self.next.left:,}")

    @property
    def agreed_words(self) -> str:
        """How often they chose as another person did, in a sentence."""
        if not self.agreed or not self.agreed.n:
            return _("nobody else labelled the same items")
        words = str(ballots.words_of(self.campaign.protocol).alike)
        return words.format(same=f"{self.agreed.same:,}", n=f"{self.agreed.n:,}")

    @property
    def left(self) -> int:
        return self.progress.total - self.progress.done


def result_of(campaign: Campaign, annotator: Annotator, viewer: Viewer) -> Result:
    mine, others = _mine_and_others(label_rows(campaign, every=True), annotator.pk)
    closed = campaign.state == Campaign.State.CLOSED
    items = own.labels_behind_numbers(campaign, annotator) if closed else {}
    fewest = MIN_SAMPLES if campaign.benchmark.hidden_splits else 1
    progress = progress_of(campaign=campaign, annotator=annotator)
    with guard.working():
        labels = Label.objects.filter(campaign=campaign, annotator=annotator)
    spent = labels.aggregate(spent=Sum("seconds"))["spent"]
    sides = own.sides_of(labels.filter(assignment__campaign_item__practice=False))
    member = Membership.objects.filter(campaign=campaign, annotator=annotator).select_related("campaign").first()
    board = board_of(campaign.benchmark, viewer)
    return Result(
        campaign=campaign,
        progress=progress,
        others=campaign.share is None and campaign.campaign_items.filter(practice=False).count() > progress.done,
        closed=closed,
        time=spent or None,
        days=len({row.at.date() for row in mine}),
        pace=_pace(mine),
        everybody=_pace(others),
        agreed=own.own_matches(items, annotator.pk) if closed else None,
        gold=_gold_matches(mine) if closed else None,
        shares=_shares(items, annotator.pk, fewest=fewest),
        sides=sides,
        chance=_chance(sides),
        looks=_looks(campaign, annotator, items, viewer, labels),
        settled=_settled(items, annotator.pk),
        board=board,
        pseudonym=annotator.shown(named=False),
        finished=member is not None and has_finished(member),
        public=bool(board) and campaign.benchmark.visibility == "public",
        message=member.message if member else "",
        next=next_campaign(annotator, besides=campaign),
    )


def has_finished(member: Membership) -> bool:
    """Whether they labelled their share, or all there was for them. A campaign that is closed has nothing left, so that
    whoever labelled in it has finished unless they were to label a share.
    """
    campaign = member.campaign
    progress = progress_of(campaign=campaign, annotator=member.annotator, whole=True)
    if campaign.share is not None and progress.done >= campaign.share:
        return True
    through = progress.done == progress.total and (campaign.share is None or campaign.state != Campaign.State.CLOSED)
    return bool(progress.done) and through and member.stopped_at is None


def _mine_and_others(rows: Iterable[LabelRow], annotator: int) -> tuple[list[LabelRow], list[LabelRow]]:
    mine: list[LabelRow] = []
    others: list[LabelRow] = []
    for row in rows:
        (mine if row.annotator == annotator else others).append(row)
    return mine, others


def _gold_matches(labels: Iterable[LabelRow]) -> Matches | None:
    """How many labels on gold and practice items are right; None without such labels."""
    known = [label.right for label in labels if label.right is not None]
    return Matches(sum(known), len(known)) if known else None


def _pace(rows: Sequence[LabelRow]) -> float | None:
    """The median seconds of these labels."""
    return median([row.seconds for row in rows if row.seconds] or [0]) or None


def _shares(items: LabelsByItem, annotator: int, *, fewest: int) -> list[tuple[str, Estimate]]:
    """With each other person, whom the page calls A, B and so on, and with their majority; each about at least
    ``fewest`` items.
    """
    people = own.own_shares(items, annotator, fewest=fewest)
    named: list[tuple[str, Estimate]] = [
        (_("You and person {letter}").format(letter=letter), share)
        for letter, share in zip(ascii_uppercase, people, strict=False)
    ]
    compared = with_majority(items, annotator)
    if own.items_of(compared) >= fewest:
        named.append((_("You and the majority of the others"), own.share_of(compared)))
    return named


def _chance(sides: own.Sides) -> str:
    """Whether one side was chosen more often than chance explains: which answer stood on it was drawn at random."""
    if not sides.first + sides.second:
        return ""
    p = mcnemar(only_first=sides.first, only_second=sides.second).p or 0.0
    said = _("p {p}").format(p=f"{p:.2f}") if p >= 0.005 else _("p below 0.005")
    words = (
        _("Sides are drawn at random: {first} first against {second} second is within chance ({p}).")
        if p >= CHANCE
        else _("Sides are drawn at random, and {first} first against {second} second is more than chance ({p}).")
    )
    return words.format(first=sides.first, second=sides.second, p=said)


def _settled(items: LabelsByItem, annotator: int) -> int:
    """Items that have a majority with their label, and none without it."""
    settled = 0
    for mine, others in own_and_others(items, annotator):
        verdicts = [label.verdict for label in others]
        # Of a ranking or of points each decision is compared, and none of them is an item.
        if len(mine.decisions) == 1 and len(verdicts) > 1 and majority_word(verdicts) is None:
            settled += majority_word([*verdicts, mine.verdict]) is not None
    return settled


def _looks(
    campaign: Campaign, annotator: Annotator, items: LabelsByItem, viewer: Viewer, own_labels: QuerySet[Label]
) -> list[Look]:
    """Items on which the others differ, then those that they flagged; at most LOOKED_AT."""
    looks = _differing(campaign, annotator, items, viewer)
    flagged = own_labels.filter(excluded=False, assignment__campaign_item__practice=False).exclude(flags=[])
    for label in flagged.select_related("item__sample").order_by("pk")[:LOOKED_AT]:
        said = "; ".join(str(ballots.FLAGS.get(flag, flag)) for flag in label.flags)
        looks.append(_look_at(label, _("you flagged it: {flags}").format(flags=said)))
    return list({look.assignment: look for look in reversed(looks)}.values())[::-1][:LOOKED_AT]


def _differing(campaign: Campaign, annotator: Annotator, items: LabelsByItem, viewer: Viewer) -> list[Look]:
    """Only items whose verdicts the viewer may read, and that nobody is labelling elsewhere."""
    if campaign.protocol not in ballots.BALLOTS or not ballots.get(campaign.protocol).single_votes:
        return []
    open_items = CampaignItem.objects.filter(campaign__state__in=HOLDING).values("item")
    looks: list[Look] = []
    for _share, campaign_item, majority, same, total in _against_majority(items, annotator.pk):
        if len(looks) == LOOKED_AT:
            break
        stored = Label.objects.seen_by(viewer).filter(assignment__campaign_item=campaign_item, excluded=False)
        stored = stored.exclude(item__in=open_items)
        given = {label.annotator_id: label for label in stored.select_related("assignment", "item__sample")}
        if annotator.pk in given:
            looks.append(_look(campaign, given, annotator.pk, majority, (same, total)))
    return looks


def _against_majority(items: LabelsByItem, annotator: int) -> list[tuple[float, int, str, int, int]]:
    """Items with a majority of the others against somebody, the largest first: its share, campaign item, verdict, how
    many gave it and of how many.
    """
    differing = []
    for mine, others in own_and_others(items, annotator):
        majority = majority_word(label.verdict for label in others)
        if len(others) > 1 and majority is not None and majority != mine.verdict:
            same = sum(label.verdict == majority for label in others)
            differing.append((same / len(others), mine.campaign_item, majority, same, len(others)))
    return sorted(differing, key=lambda row: (-row[0], -row[3], row[1]))


def _look(campaign: Campaign, given: dict[int, Label], annotator: int, majority: str, counts: tuple[int, int]) -> Look:
    """The verdicts in words, with the answers named as this annotator saw them."""
    mine = given[annotator]
    keys = {label.annotator_id: verdict_key(label.verdict()) or "" for label in given.values()}
    other = next(label for label in given.values() if UNDECIDED.get(key := keys[label.annotator_id], key) == majority)
    names = names_as_shown(mine.assignment.order, campaign.protocol)
    said = [describe(label.verdict(), campaign.protocol, letters=names) for label in (mine, other)]
    words = _("you: {own}; {same} of the {others} others: {other}")
    return _look_at(mine, words.format(own=said[0], other=said[1], same=counts[0], others=counts[1]))


def _look_at(label: Label, words: str) -> Look:
    sample = label.item.sample
    picture = sample.images.order_by("position").values_list("position", flat=True).first()
    return Look(label.assignment_id, sample.instruction, picture, words)
