"""One item and everybody's verdict on it, as far as a viewer may see it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase

import pandas as pd

from accounts.rules import Viewer, allowed
from annotations.models import Adjudication, Label
from bank.models import Item
from bank.models.verdict import Verdict
from judging.models import Judgment, Run
from leaderboard.boards.behind.single_labels import sees_labels
from leaderboard.hidden import held_out_in
from stats.verdicts import combine_orders, majority, without_majority


@dataclass(frozen=True, slots=True)
class OneVote:
    """A verdict as stored: ``choice`` in canonical order, or None with the reason as ``status``."""

    who: str
    choice: str | None  # for items that are no pairs: the verdict in words
    situation: int | None
    status: str = ""
    order: str = "01"
    repeat: int = 0
    campaign: str = ""
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class JudgeVotes:
    """One judge's run on an item: its votes by order and repeat, and the combined verdict."""

    run: Run
    votes: list[OneVote]
    verdict: str | None


@dataclass(frozen=True, slots=True)
class PeopleVotes:
    """People's verdicts on an item. ``votes`` is empty for viewers who may only see the counts; ``compared`` is what
    judges are compared with, nothing where the item is held out of that or people have no majority.
    """

    verdict: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    votes: list[OneVote] = field(default_factory=list)
    adjudicated: str | None = None
    under_way: bool = False  # people label it blind, so nothing is told
    compared: str | None = None
    split: bool = False  # no majority, which counts as a tie

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _is_split(item: Item, verdict: str | None, counts: Mapping[str, int]) -> bool:
    """Whether people have no majority on a pair, see ``without_majority``."""
    if verdict is None or item.kind != Item.Kind.PAIR:
        return False
    first, tie, second, undecided = (counts.get(choice, 0) for choice in ("first", "tie", "second", "undecided"))
    return bool(without_majority(verdict=[verdict], first=[first], even=[tie + undecided], second=[second])[0])


def people_on(item: Item, viewer: Viewer, *, rule: str) -> PeopleVotes:
    """People's verdicts on an item, as far as the viewer may see them: with names for staff, with pseudonyms for
    researchers, only counts for everybody else; nothing while people label it blind.
    """
    single = sees_labels(viewer)
    if item.hides_authors_from(viewer):
        return PeopleVotes(under_way=True)
    labels = _labels_on(item, viewer)
    first_labels = _first_labels(labels)
    words = {label.pk: verdict_word(item, label) for label in labels}
    frame = pd.DataFrame({"item": item.pk, "choice": [words[label.pk] for label in first_labels.values()]}).dropna()
    if frame.empty:
        verdict = None
    elif item.kind == Item.Kind.PAIR:
        verdict = majority(labels=frame, rule=rule)["choice"].iloc[0]
    else:
        verdict = _aggregate(item, first_labels.values())
    counts = {str(choice): int(n) for choice, n in frame["choice"].value_counts().items()}
    is_split = _is_split(item, verdict, counts)
    held_out = item.sample_id in held_out_in(item.sample.benchmark)
    told = PeopleVotes(
        verdict=verdict, compared=None if held_out or is_split else verdict, split=is_split, counts=counts
    )
    if not single:
        return told
    named = allowed(viewer, "read-names")
    votes = [_vote_of_label(label, words[label.pk], first_labels, named=named) for label in labels]
    with_verdict = [vote for vote in votes if vote.choice is not None]
    return replace(told, votes=with_verdict, adjudicated=None if frame.empty else _adjudicated(item))


def _labels_on(item: Item, viewer: Viewer) -> list[Label]:
    labels = Label.objects.seen_by(viewer).of_answers().filter(item=item)
    labels = labels.exclude(assignment__campaign_item__practice=True)
    if item.kind == Item.Kind.PAIR:
        labels = labels.filter(choice__isnull=False)
    return list(labels.select_related("annotator", "campaign").order_by("pk"))


def _first_labels(labels: Iterable[Label]) -> dict[int, Label]:
    """The label of each annotator that counts."""
    first: dict[int, Label] = {}
    for label in labels:
        if not label.excluded:
            first.setdefault(label.annotator_id, label)
    return first


def _vote_of_label(label: Label, words: str | None, first_labels: Mapping[int, Label], *, named: bool) -> OneVote:
    return OneVote(
        who=label.annotator.shown(named=named),
        choice=words,
        situation=label.situation,
        campaign=label.campaign.name,
        excluded=label.excluded or label.pk != first_labels[label.annotator_id].pk,
    )


def _adjudicated(item: Item) -> str | None:
    decided = Adjudication.objects.filter(campaign_item__item=item, campaign_item__reviewed__isnull=True)
    last = decided.filter(choice__isnull=False).order_by("-pk").first()
    return last.choice if last else None


def verdict_word(item: Item, verdict: Verdict) -> str | None:
    """A verdict in a word: the choice for a pair, or the score, sum of points, ranking, option or answer."""
    if item.kind == Item.Kind.PAIR:
        return verdict.choice
    if verdict.ranking is not None:
        return " > ".join(" = ".join(ascii_uppercase[place] for place in group) for group in verdict.ranking)
    if verdict.parts is not None:
        return f"{sum(verdict.parts.values()):g} points"
    if verdict.score is not None:
        return f"{verdict.score:g}"
    if verdict.option:
        return f"option {verdict.option}"
    return None if verdict.answer is None else "yes" if verdict.answer else "no"


def _aggregate(item: Item, labels: Iterable[Label]) -> str | None:
    """People's mean score or points on an item; None for other kinds of verdicts."""
    values: list[float] = []
    for label in labels:
        if label.parts is not None or label.score is not None:
            values.append(sum(label.parts.values()) if label.parts is not None else float(label.score or 0))
    return f"{sum(values) / len(values):.3g}" if values and item.kind == Item.Kind.SCORE else None


def judges_on(items: Iterable[Item], viewer: Viewer) -> dict[int, list[JudgeVotes]]:
    """Every run's verdicts on each item, by its id, that the viewer may see, judge by judge; never an analysis."""
    by_pk = {item.pk: item for item in items}
    visible = Judgment.objects.seen_by(viewer).filter(item__in=by_pk).select_related("run__judge")
    rows = visible.defer("analysis", "raw")
    by_run: dict[tuple[int, int], list[Judgment]] = defaultdict(list)
    for judgment in rows.order_by("run__judge__name", "run", "repeat", "order"):
        by_run[judgment.item_id, judgment.run_id].append(judgment)
    found: dict[int, list[JudgeVotes]] = {pk: [] for pk in by_pk}
    for (pk, _), rows_of in by_run.items():
        item = by_pk[pk]
        over_calls = combined(rows_of) if item.kind == Item.Kind.PAIR else _only(item, rows_of)
        found[pk].append(JudgeVotes(rows_of[0].run, [_one_vote(item, row) for row in rows_of], over_calls))
    return found


def _only(item: Item, rows: list[Judgment]) -> str | None:
    """The verdict if all rows agree, otherwise None."""
    verdicts = {verdict_word(item, row) for row in rows}
    return verdicts.pop() if len(verdicts) == 1 else None


def _one_vote(item: Item, judgment: Judgment) -> OneVote:
    return OneVote(
        who="",
        choice=verdict_word(item, judgment),
        situation=judgment.situation,
        status=judgment.get_status_display(),
        order=judgment.order,
        repeat=judgment.repeat,
    )


def combined(rows: Sequence[Judgment]) -> str | None:
    """One verdict over orders and repeats; None if an order is missing or two verdicts are equally frequent."""
    frame = pd.DataFrame([(row.item_id, row.repeat, row.order, row.choice) for row in rows])
    frame.columns = pd.Index(["item", "repeat", "order", "choice"])
    outcomes = combine_orders(judgments=frame, orders=2 if rows[0].run.orders == "both" else 1).outcomes
    counts = outcomes["choice"].value_counts()
    if not len(counts) or (len(counts) > 1 and counts.iloc[0] == counts.iloc[1]):
        return None
    return str(counts.index[0])
