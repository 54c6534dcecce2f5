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
from judging import protocols
from judging.judgments import analyses
from judging.models import Judgment, Run
from judging.protocols import replies
from judging.runs import plan, tryouts
from judging.runs.estimates import Estimate, estimate
from judging.templatetags.judgments import dollars
from leaderboard.figures import NONE, number_of, whole
from leaderboard.pages import one_item
from leaderboard.pages import votes as votes_page

WORDS = {"first": "First", "second": "Second", "tie": "Tie"}
FEWEST_TOKENS = 512  # what a reply that was cut off, or empty, is allowed next
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
    note: str
    seconds: str
    calls: list[Call]


@dataclass(frozen=True, slots=True)
class Figure:
    label: str
    value: str
    note: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """Why replies cannot be read, the number of them that speaks for it, and its cure: a change to try (``fix``) or a
    page to go to (``to``: judge or form).
    """

    calls: int
    title: str
    words: str
    button: str
    fix: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Tryout:
    items: list[TriedItem]
    chosen: TriedItem | None
    figures: list[Figure]
    causes: list[Cause]
    readable: int
    needed: int
    of: int  # items that the judge was asked about
    planned: Estimate | None
    minutes: str
    asked: int  # replies so far
    has_turned: bool
    units: str

    @property
    def may_go_on(self) -> bool:
        return self.readable >= self.needed


def tryout_of(run: Run, viewer: User, *, chosen: int | None) -> Tryout:
    """The items of the run in their order; ``chosen``: the item whose replies are shown, else the first that differs.

    What the judge wrote is the caller's to show to those alone who may read analyses.
    """
    items = run.items.select_related("sample__benchmark").prefetch_related("sample__images", with_answers())
    judgments = Judgment.objects.seen_by(viewer).filter(run=run).select_related("run__judge", "item")
    by_item: dict[int, list[Judgment]] = {}
    for judgment in analyses.as_seen(judgments.order_by("repeat", "order"), viewer):
        by_item.setdefault(judgment.item_id, []).append(judgment)
    protocol = protocols.get(run.protocol)
    tried = [_tried(run, protocol, item, by_item.get(item.pk, []), viewer) for item in items.order_by("pk")]
    judged = [row for row in tried if row.calls]
    selected = next((row for row in judged if row.item.pk == chosen), None)
    selected = selected or next((row for row in judged if row.state not in ("agrees", "alone")), None)
    calls = [call for row in judged for call in row.calls if call.was_asked]
    over = run.state not in Run.GOING
    planned = _planned(run, protocol) if over else None
    minutes = _minutes(run, calls, planned)
    readable, needed = tryouts.readable(run), tryouts.needed(run)
    return Tryout(
        items=tried,
        chosen=selected or next(iter(judged), None),
        figures=_figures(run, protocol, judged, calls, planned, minutes),
        causes=_causes(run, protocol, calls) if over and readable < needed and not run.judge.is_baseline else [],
        readable=readable,
        needed=needed,
        of=tryouts.asked(run),
        planned=planned,
        minutes=minutes,
        asked=len(calls),
        has_turned=any(row.turned for row in tried),
        units=protocol.units,
    )


def verdict_lines(protocol: protocols.Protocol) -> str:
    """What a prompt can say to ask for the verdict in the form that its protocol reads."""
    forms = " or ".join(words for _, words in protocol.answer_forms)
    return f"\n\nEnd with a line of its own, and nothing after it: {forms}"


def _tried(
    run: Run, protocol: protocols.Protocol, item: Item, judgments: Sequence[Judgment], viewer: User
) -> TriedItem:
    people = one_item.people_on(item, viewer, rule=item.sample.benchmark.majority)
    pair = item.kind == Item.Kind.PAIR
    calls = [_call(run, protocol, item, judgment) for judgment in judgments]
    turned = [call for call in calls if pair and call.judgment.order == "10" and run.orders == "both"]
    straight = [call for call in calls if call not in turned]
    verdict = one_item.combined(judgments) if pair and judgments else None
    matches = votes_page.match(verdict, people.compared) if pair else ""
    state, note = _state(run, calls, matches, people)
    agreeing = people.counts.get(people.verdict or "", 0)
    seconds = [call.judgment.latency for call in calls if call.judgment.latency is not None]
    return TriedItem(
        item=item,
        models=" and ".join(response.model.name for response in item.ordered_responses()) if pair else "",
        people=WORDS.get(people.verdict or "", people.verdict or ("split" if people.total else NONE)),
        votes=f"{agreeing} of {people.total}" if pair and people.verdict else "",
        judge=_said(straight),
        turned=_said(turned),
        state=state,
        note=note,
        seconds=f"{sum(seconds) / len(seconds):.1f} s" if seconds else NONE,
        calls=calls,
    )


def _said(calls: Sequence[Call]) -> str:
    return ", ".join(dict.fromkeys(call.verdict for call in calls))


def _state(run: Run, calls: Sequence[Call], matches: str, people: one_item.PeopleVotes) -> tuple[str, str]:
    """The state of a row, and a word about it."""
    if not calls:
        return "asking", ""
    if unasked := next((call for call in calls if not call.was_asked), None):
        return "alone", unasked.judgment.reason
    if unread := next((call for call in calls if not call.readable), None):
        limit = run.settings.get("max_tokens")
        if unread.judgment.status == Judgment.Status.TRUNCATED and limit:
            return "unread", f"reply stops at {limit:,} tokens"
        return "unread", unread.judgment.reason or unread.judgment.get_status_display().lower()
    if len({call.verdict for call in calls}) > 1 and calls[0].judgment.item.kind == Item.Kind.PAIR:
        return "order", f"{AS_TIE}: {matches}" if matches else AS_TIE
    if people.verdict and not people.compared:
        return "alone", "held out"
    return (matches, "") if matches else ("alone", "people are split" if people.verdict else "nobody has labelled it")


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
    if total < 1:
        return "under 1 s"
    return f"{total / 3600:.1f} h" if total >= 5400 else f"{total / 60:.0f} min" if total >= 90 else f"{total:.0f} s"


def _figures(
    run: Run,
    protocol: protocols.Protocol,
    judged: Sequence[TriedItem],
    calls: Sequence[Call],
    planned: Estimate | None,
    minutes: str,
) -> list[Figure]:
    if not calls:
        return []
    readable = sum(call.readable for call in calls)
    figures = [
        Figure("Readable replies", f"{readable} of {len(calls)}", is_bad=readable < tryouts.READABLE * len(calls))
    ]
    compared = [row for row in judged if row.state in ("agrees", "differs") or row.note.startswith(f"{AS_TIE}: ")]
    if compared:
        agreeing = sum(row.state == "agrees" or row.note.endswith(": agrees") for row in compared)
        figures.append(Figure("Agrees with people", f"{agreeing} of {len(compared)}", protocol.units))
    else:
        figures.append(Figure("Agrees with people", NONE, "nothing to compare"))
    if run.judge.is_baseline:
        return figures
    number = tryouts.trials(run).count()
    money = dollars(tryouts.spent(run)) if run.judge.price_in is not None else NONE
    figures.append(Figure("Spent", money, number_of(number, "trial") if number > 1 else ""))
    if planned is not None:
        cost = NONE if planned.cost is None else dollars(planned.cost)
        orders = "both orders" if run.orders == "both" else number_of(planned.calls, "call")
        figures.append(Figure(f"The other {whole(planned.items)} {protocol.units}", cost, orders))
        figures.append(Figure("Time for them", minutes or NONE, f"{run.judge.concurrency} at once"))
    return figures


def _causes(run: Run, protocol: protocols.Protocol, calls: Sequence[Call]) -> list[Cause]:
    """Why replies could not be read, the likeliest first: each with the number of calls that speaks for it."""
    status = Counter(call.judgment.status for call in calls)
    number = sum(status[name] for name in REFUSED)
    words = f"{number} of {len(calls)} replies are refusals, or were stopped by a filter."
    found = [
        _no_form(run, protocol, calls, status["parse_failed"]),
        _too_short(run, status, len(calls)),
        _failed(calls, status["error"]),
        Cause(number, "The judge refuses.", words, "Choose another judge", to="form"),
    ]
    return sorted((cause for cause in found if cause.calls), key=lambda cause: -cause.calls)


def _no_form(run: Run, protocol: protocols.Protocol, calls: Sequence[Call], number: int) -> Cause:
    """Replies that end, but in no verdict."""
    told, prompt = f"of {len(calls)} replies", tryouts.prompt_of(run)
    if not any(re.search(form, prompt.text) for form, _ in protocol.answer_forms):
        words = f"{number} {told} end in words of the judge's own, from which nothing can be read."
        return Cause(
            number, "The prompt asks for no form of verdict.", words, "Add the verdict line and try", "verdict"
        )
    unread = [call.judgment.raw or "" for call in calls if call.judgment.status == "parse_failed"]
    within = sum(replies.has_judgement_within(said) for said in unread)
    title = "The verdict is not on a line of its own."
    words = f"{within} {told} hold one further up." if within else f"{number} {told} do not end as the prompt asks."
    if run.settings.get("reasoning") != "none" and "none" in protocol.reasonings:
        return Cause(number, title, words, "Ask for the verdict alone and try", "alone")
    if run.settings.get("reasoning") == "none" and "first" in protocol.reasonings:
        return Cause(number, title, words, "Let it give reasons first and try", "reasons")
    return Cause(number, title, words, "Change the form", to="form")


def _too_short(run: Run, status: Counter[str], asked: int) -> Cause:
    number, limit = sum(status[name] for name in CUT_OFF), run.settings.get("max_tokens")
    allowed = max(FEWEST_TOKENS, 2 * (limit or 0))
    button = f"Allow {allowed:,} tokens and try"
    if status["truncated"]:
        at = f"at the limit of {limit:,} tokens" if limit else "at the limit of the endpoint"
        return Cause(number, "Replies are cut off.", f"{number} of {asked} end {at}.", button, "tokens")
    words = f"{number} of {asked} say nothing. A model that thinks first may need more room."
    return Cause(number, "Replies are empty.", words, button, "tokens")


def _failed(calls: Sequence[Call], number: int) -> Cause:
    said = Counter(call.judgment.reason for call in calls if call.judgment.status == "error").most_common(1)
    why = f" Mostly: {said[0][0]}." if said and said[0][0] else ""
    words = f"{number} of {len(calls)} calls ended in an error.{why}"
    return Cause(number, "The endpoint does not answer as it should.", words, "Look at the judge", to="judge")


def changes_of(run: Run, fix: str) -> dict[str, Any]:
    """The settings that a cause's cure changes."""
    if fix == "tokens":
        return {"max_tokens": max(FEWEST_TOKENS, 2 * (run.settings.get("max_tokens") or 0))}
    reasoning = {"alone": "none", "reasons": "first"}.get(fix)
    return {"reasoning": reasoning, "step_calls": None} if reasoning else {}
