"""What a judge made of the few items that a new run was tried on: beside people, in both orders, with its replies; and,
where too little of it can be read, what to change.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from accounts.models import User
from bank.models import Item, with_answers
from bank.text.durations import lasting
from judging import protocols
from judging.judgments import analyses
from judging.models import Judgment, Run
from judging.protocols import replies
from judging.runs import plan, tryouts
from judging.runs.estimates import Estimate, estimate
from leaderboard.boards.behind import item_page as one_item
from leaderboard.boards.behind import votes_page
from stats.figures import NONE, dollars

WORDS = {"first": "First", "second": "Second", "tie": "Tie"}
FEWEST_TOKENS = 512
LONGEST_QUOTED = 40  # characters of a judge's own words for a verdict
CUT_OFF = ("truncated", "empty")
AS_TIE = "counts as a tie"
REFUSED = ("refused", "filtered")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the verdict in words, and the judge's reply before, at and after the line that it was read from."""

    judgment: Judgment
    title: str
    verdict: str
    readable: bool
    was_asked: bool
    usage: str
    reply: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TriedItem:
    """A row: what people say and what the judge says of the same answers. ``state`` is agrees, differs, order, unread,
    asking or alone (there is nothing to compare).
    """

    item: Item
    models: str
    people: str
    votes: str
    judge: str
    turned: str
    state: str
    matches: str  # agrees or differs with people, by both orders together
    note: str
    seconds: str
    calls: list[Call]

    @property
    def is_compared(self) -> bool:
        """Whether it counts in how often judge and people agree."""
        return bool(self.matches) and self.state in ("agrees", "differs", "order")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why replies cannot be read, and the number of them that speaks for it, in words of ``_tryout.html``;
    ``fix``: the change to try; ``more``: what else its words say.
    """

    name: str
    calls: int
    fix: str = ""
    more: int | str | None = None


@dataclass(frozen=True, slots=True)
class Tryout:
    items: list[TriedItem]
    chosen: TriedItem | None
    causes: list[Cause]
    readable: int
    needed: int
    of: int  # items that the judge was asked about
    planned: Estimate | None
    minutes: str
    asked: int  # replies so far
    read: int  # of them
    compared: int  # items with a verdict of people
    agreeing: int
    trials: int
    spent: str
    cost: str  # of the items that are left
    room: int  # tokens that a reply is allowed next
    has_turned: bool
    units: str
    forms: str  # the words that a reply is to end in

    @property
    def is_badly_read(self) -> bool:
        return self.read < tryouts.READABLE * self.asked

    @property
    def may_go_on(self) -> bool:
        return self.readable >= self.needed


def tryout_of(run: Run, viewer: User, *, chosen: int | None) -> Tryout:
    """The items of the run in their order; ``chosen``: the item whose replies are shown, else the first that differs.

    What the judge wrote is the caller's to show to those alone who may read analyses.
    """
    protocol = protocols.get(run.protocol)
    tried = _all_tried(run, protocol, viewer)
    judged = [row for row in tried if row.calls]
    calls: list[Call] = []
    for row in judged:
        calls += [call for call in row.calls if call.was_asked]
    readable, needed = tryouts.readable(run), tryouts.needed(run)
    planned, causes = None, []
    if run.state not in Run.GOING:
        planned = _planned(run, protocol)
        if readable < needed and not run.judge.is_baseline:
            causes = _causes(run, protocol, calls)
    matches = [row.matches for row in judged if row.is_compared]
    return Tryout(
        items=tried,
        chosen=_chosen(judged, chosen),
        causes=causes,
        readable=readable,
        needed=needed,
        of=tryouts.asked(run),
        planned=planned,
        minutes=_minutes(run, calls, planned),
        asked=len(calls),
        read=sum(call.readable for call in calls),
        compared=len(matches),
        agreeing=matches.count("agrees"),
        trials=tryouts.trials(run).count(),
        spent=NONE if run.judge.price_in is None else dollars(tryouts.spent(run)),
        cost=dollars(planned.cost if planned else None),
        room=_room(run),
        has_turned=any(row.turned for row in tried),
        units=protocol.units,
        forms=_forms(protocol),
    )


def _all_tried(run: Run, protocol: protocols.Protocol, viewer: User) -> list[TriedItem]:
    items = run.items.select_related("sample__benchmark").prefetch_related("sample__images", with_answers())
    judgments = Judgment.objects.seen_by(viewer).filter(run=run).select_related("run__judge", "item")
    by_item: dict[int, list[Judgment]] = {}
    for judgment in analyses.as_seen(judgments.order_by("repeat", "order"), viewer):
        by_item.setdefault(judgment.item_id, []).append(judgment)
    return [_tried(run, protocol, item, by_item.get(item.pk, []), viewer) for item in items.order_by("pk")]


def _chosen(judged: Sequence[TriedItem], pk: int | None) -> TriedItem | None:
    """The item with this id, else the first that differs, else the first."""
    asked = [row for row in judged if row.item.pk == pk]
    differing = [row for row in judged if row.state not in ("agrees", "alone")]
    return next(iter([*asked, *differing, *judged]), None)


def _forms(protocol: protocols.Protocol) -> str:
    """``Answer1 or Answer2``."""
    return " or ".join(words for _, words in protocol.answer_forms)


def verdict_lines(protocol: protocols.Protocol) -> str:
    """What a prompt can say to ask for the verdict in the form that its protocol reads."""
    return f"\n\nEnd with a line of its own, and nothing after it: {_forms(protocol)}"


def _tried(
    run: Run, protocol: protocols.Protocol, item: Item, judgments: Sequence[Judgment], viewer: User
) -> TriedItem:
    people = one_item.people_on(item, viewer, rule=item.sample.benchmark.majority)
    calls = [_call(run, protocol, item, judgment) for judgment in judgments]
    turned: list[Call] = []
    models = votes = matches = ""
    if item.kind == Item.Kind.PAIR:
        models = " and ".join(response.model.name for response in item.ordered_responses())
        matches = votes_page.match(one_item.combined(judgments) if judgments else None, people.compared)
        if people.verdict and not people.split:
            votes = f"{people.counts.get(people.verdict, 0)} of {people.total}"
        if run.orders == "both":
            turned = [call for call in calls if call.judgment.order == "10"]
    state, note = _state(run, calls, matches, people)
    return TriedItem(
        item=item,
        models=models,
        people=_people_said(people),
        votes=votes,
        judge=_said([call for call in calls if call not in turned]),
        turned=_said(turned),
        state=state,
        matches=matches,
        note=note,
        seconds=_mean_seconds(calls),
        calls=calls,
    )


def _mean_seconds(calls: Sequence[Call]) -> str:
    seconds = [call.judgment.latency for call in calls if call.judgment.latency is not None]
    return f"{sum(seconds) / len(seconds):.1f} s" if seconds else NONE


def _people_said(people: one_item.PeopleVotes) -> str:
    if people.split:
        return votes_page.NO_MAJORITY
    if people.verdict:
        return WORDS.get(people.verdict, people.verdict)
    return "split" if people.total else NONE


def _state(run: Run, calls: Sequence[Call], matches: str, people: one_item.PeopleVotes) -> tuple[str, str]:
    """The state of a row, and a word about it."""
    if not calls:
        return "asking", ""
    if unasked := next((call for call in calls if not call.was_asked), None):
        return "alone", unasked.judgment.reason
    if unread := next((call for call in calls if not call.readable), None):
        return "unread", _why_unread(run, unread.judgment)
    if len({call.verdict for call in calls}) > 1 and calls[0].judgment.item.kind == Item.Kind.PAIR:
        return "order", f"{AS_TIE}: {matches}" if matches else AS_TIE
    if people.verdict and not (people.compared or people.split):
        return "alone", "held out"
    return (matches, "") if matches else ("alone", "people are split" if people.verdict else "nobody has labelled it")


def _said(calls: Sequence[Call]) -> str:
    return ", ".join(dict.fromkeys(call.verdict for call in calls))


def _why_unread(run: Run, judgment: Judgment) -> str:
    limit = run.settings.get("max_tokens")
    if judgment.status == Judgment.Status.TRUNCATED and limit:
        return f"reply stops at {limit:,} tokens"
    return judgment.reason or judgment.get_status_display().lower()


def _call(run: Run, protocol: protocols.Protocol, item: Item, judgment: Judgment) -> Call:
    readable = judgment.status == Judgment.Status.OK
    asked = judgment.reason not in plan.NOT_ASKED.values()
    word = one_item.verdict_word(item, judgment) if readable else None
    turned = item.kind == Item.Kind.PAIR and judgment.order == "10"
    received = judgment.completion_tokens
    limit = run.settings.get("max_tokens")
    tokens = "" if received is None else f"{received:,} of {limit:,} tokens" if limit else f"{received:,} tokens"
    return Call(
        judgment=judgment,
        title="order turned" if turned else "first order" if item.kind == Item.Kind.PAIR else "reply",
        verdict=WORDS.get(word or "", word or NONE) if readable else "unreadable" if asked else NONE,
        readable=readable,
        was_asked=asked,
        usage=tokens,
        reply=_marked(protocol, judgment),
    )


def _marked(protocol: protocols.Protocol, judgment: Judgment) -> tuple[str, str, str]:
    """A reply before, at and after the line that the verdict was read from; where it was cut off, the end says so."""
    said = (judgment.raw or "").strip()
    if not said:
        return judgment.reason or "Nothing was kept.", "", ""
    if judgment.status == Judgment.Status.TRUNCATED:
        return said, " [stops here]", ""
    if judgment.status != Judgment.Status.OK or "reasoning" not in judgment.run.settings:
        return said, "", ""
    place = protocol.verdict_line(judgment.run.settings)
    try:
        line = replies.verdict_line(said, place=place, missing="").value
    except replies.NoVerdict:
        return said, "", ""
    at = said.rfind(line) if place == "last" else said.find(line)
    return said[:at], line, said[at + len(line) :]


def _planned(run: Run, protocol: protocols.Protocol) -> Estimate | None:
    """What the run would take over the items that are left."""
    if not (tryouts.all_items(run) and run.tryout):
        return None
    return estimate(
        judge=run.judge,
        benchmark=run.benchmark,
        protocol=protocol,
        settings=run.settings,
        items=tryouts.untried(run),
        reuse=run.reuse,
    )


def _minutes(run: Run, calls: Sequence[Call], planned: Estimate | None) -> str:
    """How long the run would take, by the median of the tried calls and as many at once as the judge may have."""
    seconds = [call.judgment.latency for call in calls if call.judgment.latency is not None]
    if not seconds or planned is None:
        return ""
    total = planned.calls * median(seconds) / max(1, run.judge.concurrency)
    if run.judge.rpm:
        total = max(total, 60 * planned.calls / run.judge.rpm)
    return lasting(max(1, total))


def _causes(run: Run, protocol: protocols.Protocol, calls: Sequence[Call]) -> list[Cause]:
    """Why replies could not be read, the likeliest first: each with the number of calls that speaks for it."""
    status = Counter(call.judgment.status for call in calls)
    said = Counter(call.judgment.reason for call in calls if call.judgment.status == "error").most_common(1)
    limit = run.settings.get("max_tokens") if status["truncated"] else None
    found = [
        *_not_read(run, protocol, calls),
        Cause("cut-off" if status["truncated"] else "empty", sum(status[name] for name in CUT_OFF), "tokens", limit),
        Cause("error", status["error"], more=said[0][0] if said else ""),
        Cause("refused", sum(status[name] for name in REFUSED)),
    ]
    return sorted((cause for cause in found if cause.calls), key=lambda cause: -cause.calls)


def _holds_form(protocol: protocols.Protocol, text: str) -> bool:
    """Whether it has a form that answers take."""
    return any(re.search(form, text) for form, _ in protocol.answer_forms)


def _other_reasoning(run: Run, protocol: protocols.Protocol) -> str:
    """The change to try: the verdict alone, or reasons before it."""
    if run.settings.get("reasoning") != "none":
        return "alone" if "none" in protocol.reasonings else ""
    return "reasons" if "first" in protocol.reasonings else ""


def _not_read(run: Run, protocol: protocols.Protocol, calls: Sequence[Call]) -> list[Cause]:
    """Replies that end, but in no verdict: because the prompt names no form, the judge uses words of its own, or the
    verdict shares its line with others or stands on another one.
    """
    unread = [call.judgment.raw or "" for call in calls if call.judgment.status == "parse_failed"]
    prompt = tryouts.prompt_of(run).text
    if not _holds_form(protocol, prompt):
        return [Cause("no-form", len(unread), "verdict")]
    fix = _other_reasoning(run, protocol)
    place = protocol.verdict_line(run.settings)
    lines = [_line_of(said, place) for said in unread]
    holds = [_holds_form(protocol, line) for line in lines]
    rest = [(line, said) for line, said, held in zip(lines, unread, holds, strict=True) if not held]
    other = [line for line, said in rest if not _holds_one(protocol, said)]
    own_words = Counter(line for line in other if len(line) <= LONGEST_QUOTED).most_common(1)
    named = "" if verdict_lines(protocol) in prompt else "verdict"
    return [
        Cause("words", len(other), named, own_words[0][0] if own_words else ""),
        Cause("line", sum(holds), fix, place),
        Cause("place", len(rest) - len(other), fix, place),
    ]


def _line_of(said: str, place: replies.Place) -> str:
    """The line on which the verdict should stand; empty where it is quoted, or there is none."""
    try:
        return replies.verdict_line(said, place=place, missing="").value.strip()
    except replies.NoVerdict:
        return ""


def _holds_one(protocol: protocols.Protocol, said: str) -> bool:
    """Whether a reply has a verdict in the words of the prompt anywhere."""
    return replies.has_judgement_within(said) or any(re.search(form, said) for form, _ in protocol.answer_forms)


def _room(run: Run) -> int:
    """How many tokens a reply that was cut off, or empty, is allowed next."""
    return max(FEWEST_TOKENS, 2 * (run.settings.get("max_tokens") or 0))


def changes_of(run: Run, fix: str) -> dict[str, Any]:
    """The settings that a cause's cure changes."""
    if fix == "tokens":
        return {"max_tokens": _room(run)}
    reasoning = {"alone": "none", "reasons": "first"}.get(fix)
    return {"reasoning": reasoning, "step_calls": None} if reasoning else {}
