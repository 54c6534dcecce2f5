"""What a judge made of the few items that a new run was tried on: beside people, in each order, with its replies."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from accounts.models import User
from bank.models import Item, SampleImage
from judging.judgments import analyses
from judging.models import Judgment, Run
from leaderboard.figures import NONE, number_of, whole
from leaderboard.pages import one_item
from leaderboard.pages import votes as votes_page

LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the answers in the order shown, the verdict in words, and what the judge wrote."""

    judgment: Judgment
    order: str
    verdict: str
    readable: bool
    usage: str


@dataclass(frozen=True, slots=True)
class TriedItem:
    item: Item
    image: SampleImage | None
    people: str
    calls: list[Call]
    match: str  # "agrees", "differs" or ""
    order_matters: bool


@dataclass(frozen=True, slots=True)
class Tryout:
    items: list[TriedItem]
    chosen: TriedItem | None
    figures: list[tuple[str, str]]  # (number, what it counts)


def tryout_of(run: Run, viewer: User, *, chosen: int | None) -> Tryout:
    """The items of the run in their order; ``chosen``: the item whose replies are shown, else the first that differs.

    What the judge wrote is the caller's to show to those alone who may read analyses.
    """
    items = run.items.select_related("sample__benchmark").prefetch_related("sample__images").order_by("pk")
    judgments = Judgment.objects.seen_by(viewer).filter(run=run).select_related("run__judge", "item")
    by_item: dict[int, list[Judgment]] = {}
    for judgment in analyses.as_seen(judgments.order_by("repeat", "order"), viewer):
        by_item.setdefault(judgment.item_id, []).append(judgment)
    tried = [_tried(item, by_item.get(item.pk, []), viewer) for item in items]
    judged = [item for item in tried if item.calls]
    selected = next((item for item in tried if item.item.pk == chosen), None)
    selected = selected or next((item for item in judged if item.order_matters or item.match == "differs"), None)
    return Tryout(tried, selected or next(iter(judged), None), _figures(judged))


def _tried(item: Item, judgments: Sequence[Judgment], viewer: User) -> TriedItem:
    people = one_item.people_on(item, viewer, rule=item.sample.benchmark.majority)
    pair = item.kind == Item.Kind.PAIR
    calls = [_call(item, judgment) for judgment in judgments]
    said = {call.verdict for call in calls if call.readable}
    verdict = one_item.combined(judgments) if pair and judgments else None
    images = list(item.sample.images.all())
    return TriedItem(
        item=item,
        image=images[0] if images else None,
        people=_in_words(item, people.verdict),
        calls=calls,
        match=votes_page.match(verdict, people.verdict) if pair else "",
        order_matters=pair and len(said) > 1,
    )


def _call(item: Item, judgment: Judgment) -> Call:
    readable = judgment.status == Judgment.Status.OK
    shown = ", ".join(LETTERS[int(place)] for place in judgment.order) if item.kind != Item.Kind.SCORE else "Verdict"
    verdict = (
        _in_words(item, one_item.verdict_word(item, judgment)) if readable else judgment.get_status_display().lower()
    )
    seconds = f"{judgment.latency:.1f} s" if judgment.latency is not None else ""
    tokens = f"{judgment.completion_tokens:,} tokens" if judgment.completion_tokens is not None else ""
    return Call(judgment, shown, verdict, readable, ", ".join(filter(None, (seconds, tokens))))


def _in_words(item: Item, verdict: str | None) -> str:
    if verdict is None:
        return NONE
    return {"first": "A", "second": "B"}.get(verdict, verdict) if item.kind == Item.Kind.PAIR else verdict


def _figures(tried: Sequence[TriedItem]) -> list[tuple[str, str]]:
    calls = [call for item in tried for call in item.calls]
    if not calls:
        return []
    readable = sum(call.readable for call in calls)
    figures = [(f"{readable} of {len(calls)}", "replies readable")]
    compared = [item for item in tried if item.match]
    if compared:
        agreeing = sum(item.match == "agrees" for item in compared)
        figures.append((f"{agreeing} of {len(compared)}", "agree with people"))
    if any(len(item.calls) > 1 for item in tried):
        changed = sum(item.order_matters for item in tried)
        figures.append((f"{changed} of {number_of(len(tried), 'item')}", "change with the order"))
    seconds = [call.judgment.latency for call in calls if call.judgment.latency is not None]
    if seconds:
        figures.append((f"{median(seconds):.1f} s", "a call, median"))
    tokens = [
        (call.judgment.prompt_tokens, call.judgment.completion_tokens)
        for call in calls
        if call.judgment.prompt_tokens is not None and call.judgment.completion_tokens is not None
    ]
    if tokens:
        sent, received = (whole(round(median(counts))) for counts in zip(*tokens, strict=True))
        figures.append((f"{sent} and {received}", "tokens in and out, median"))
    return figures
