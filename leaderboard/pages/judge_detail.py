"""The public page of a judge beside people: its agreement, its biases, what it costs, how steady it is, its card."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed
from judging.judgments.analyses import sees_usage
from judging.models import Judge, Run
from judging.runs.juries import members_of
from leaderboard import boards, queries
from leaderboard.boards import cached, standin, variance
from leaderboard.boards.bias import BiasRow
from leaderboard.boards.judge_board import MAJORITY, JudgeRow, JudgesBoard
from leaderboard.figures import (
    dollars,
    in_brackets,
    number_of,
    percent,
    two,
    whole,
)
from leaderboard.kinds import Kind, available
from leaderboard.metrics import CONSISTENCY, READABLE, TIE_RATE, Metric
from leaderboard.pages import bias as bias_page
from leaderboard.pages import marks, plots, prices
from leaderboard.pages import standin as standin_page
from leaderboard.pages.address import Address, named, settings_in_words
from leaderboard.pages.provenance import Fact, priced, verdicts_link
from leaderboard.pages.table import BLANK
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import Scope

FAR = 6.0  # times a strong bias, where the axis of biases ends


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """A judge beside people on one benchmark: its number, one more person's, and the best baseline's."""

    title: str
    kind: str
    metric: str
    link: str
    rows: str
    settings: str
    n: str
    value: str
    bar: SafeString
    person: str
    stand_in: str
    passes: bool | None
    people: str  # where the judge stands in place of each person


@dataclass(frozen=True, slots=True)
class BiasLine:
    benchmark: str
    bias: str
    words: str
    value: str
    css: str
    interval: str
    bar: SafeString
    n: str
    link: str


@dataclass(frozen=True, slots=True)
class StandIn:
    """The alternative annotator test of a run in words, and the judge in place of each person."""

    run: int
    of: str
    said: str
    passes: bool | None
    numbers: str
    link: str
    people: list[tuple[str, str, str, str]]  # name, advantage, n, result


@dataclass(frozen=True, slots=True)
class JudgePage:
    lead: str
    stand_ins: list[StandIn]
    lines: list[AgreementLine]
    axis: SafeString
    biases: list[BiasLine]
    biases_axis: SafeString
    cost: "Cost | None"
    steady: list[Fact]
    steady_of: str
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a judge costs on one benchmark: itself and the others by agreement with people, and its own figures."""

    of: str
    plot: SafeString
    facts: list[Fact]
    link: str


@dataclass(frozen=True, slots=True)
class _Judged:
    """A judge's run beside people on one benchmark."""

    address: Address
    scope: Scope
    kind: Kind
    board: JudgesBoard
    run: Run
    row: JudgeRow

    @property
    def metric(self) -> Metric:
        return self.kind.metric(self.row.metric, ())

    def write(self, value: float | None) -> str:
        """The metric's value, a share in percent."""
        return percent(value) if self.metric.is_share else two(value)

    @property
    def unit(self) -> str:
        return "%" if self.metric.is_share else ""

    @property
    def person(self) -> Number | None:
        ceiling = self.board.against[MAJORITY].ceiling.get(self.row.metric)
        return ceiling.number if ceiling else None

    @property
    def floor(self) -> float | None:
        """The best of the baselines."""
        better = min if self.metric.lower_is_better else max
        baselines = Run.objects.filter(pk__in=self.board.runs).exclude(judge__baseline="").values_list("pk", flat=True)
        values = [_value_of(self.board, run, self.row.metric).value for run in baselines]
        return better((value for value in values if value is not None), default=None)


def _value_of(board: JudgesBoard, run: int, metric: str) -> Number:
    """The metric against the majority over all data sets."""
    row = board.overall().get(run, {}).get(metric)
    return row.value if row else UNKNOWN


def judge_page(judge: Judge, viewer: Viewer) -> JudgePage | None:
    """None for a judge with no verdict on a benchmark that the viewer may see, unless the viewer may see all runs."""
    found = sorted(_judged(judge, viewer), key=lambda on: -on.row.n)
    runs = _visible_runs(judge, viewer)
    if not runs and not allowed(viewer, "read-judging"):
        return None
    ends = [end for on in found for end in (*on.row.value.ends, on.person.value if on.person else None, on.floor)]
    scale = marks.axis(ends, width=marks.WIDE)
    shares = all(on.metric.is_share for on in found)
    measured = [one for on in found for one in _measured_biases(on)]
    bias_scale = _bias_scale(measured)
    return JudgePage(
        lead=_lead(judge, found),
        stand_ins=[test for on in found if (test := _stand_in_panel(on))],
        lines=[_agreement_line(on, scale) for on in found],
        axis=marks.axis_head(scale, (lambda value: whole(100 * value)) if shares else two),
        biases=[_bias_line(on, row, bias_scale) for on, row in measured],
        biases_axis=marks.axis_head(bias_scale, lambda value: "" if value else "0"),
        cost=next((cost for on in found if (cost := _cost(on))), None),
        steady=_steady(found[0]) if found else [],
        steady_of=f"{found[0].address.benchmark.titled}, {found[0].kind.title.lower()}" if found else "",
        facts=_facts(judge, runs),
    )


def _visible_runs(judge: Judge, viewer: Viewer) -> list[Run]:
    visible = [benchmark.pk for benchmark in queries.newest_visible(viewer)]
    runs = Run.objects.visible_to(viewer).filter(judge=judge, benchmark__in=visible, kind=Run.Kind.JUDGMENTS)
    return list(runs.select_related("benchmark").order_by("pk"))


def _judged(judge: Judge, viewer: Viewer) -> Iterator[_Judged]:
    staff = allowed(viewer, "read-hidden")
    visible = {benchmark.pk: benchmark for benchmark in queries.newest_visible(viewer)}
    for pk in dict.fromkeys(run.benchmark_id for run in _visible_runs(judge, viewer)):
        benchmark = visible[pk]
        for kind in available(benchmark, "judges", staff=staff):
            address = Address(viewer, "leaderboard:judges", named(benchmark), benchmark, {"kind": kind.name})
            scope = address.scope()
            board = cached(scope, "judges", boards.judges)
            main = kind.metric("", {row.metric for row in board.rows}).name
            rows = [
                row
                for of_run in board.overall().values()
                if (row := of_run.get(main)) and row.judge == judge.name and row.value.value is not None
            ]
            by_run = Run.objects.select_related("judge").in_bulk([row.run for row in rows])
            for row in rows:
                yield _Judged(address, scope, kind, board, by_run[row.run], row)


def _lead(judge: Judge, found: Sequence[_Judged]) -> str:
    if not found:
        return "People have labelled nothing that it judged, so there is nothing to compare it with."
    on = found[0]
    said = f"{on.metric.label} {on.write(on.row.value.value)}{on.unit} {in_brackets(on.row.value, on.write)}".strip()
    person = (
        f"; one more person {on.write(on.person.value)}{on.unit}" if on.person and on.person.value is not None else ""
    )
    return f"{said} on {number_of(on.row.n, 'item')} of {on.address.benchmark.titled} that people labelled{person}."


def _agreement_line(on: _Judged, scale: marks.Axis) -> AgreementLine:
    stand_in, passes = _stand_in(on)
    ceiling = on.person.value if on.person else None
    return AgreementLine(
        title=on.address.benchmark.titled,
        kind=on.kind.title.lower(),
        metric=f"{on.metric.label}{' %' if on.unit else ''}",
        link=on.address.link(),
        rows=verdicts_link(on.address, on.run, metric=on.metric.name) or on.address.link(),
        settings=settings_in_words(on.run.protocol, on.run.settings),
        n=whole(on.row.n),
        value=on.write(on.row.value.value),
        bar=marks.interval_bar(scale, *on.row.value.ends, ceiling=ceiling, reference=on.floor),
        person=on.write(ceiling),
        stand_in=stand_in,
        passes=passes,
        people=f"#stand-in-{on.run.pk}" if passes is not None else "",
    )


def _stand_in_row(on: _Judged) -> standin.StandInRow | None:
    """None for a baseline, and of kinds without such a test."""
    if on.run.judge.is_baseline or not on.kind.stand_in:
        return None
    return next((row for row in standin.stand_ins(on.scope, standin.EPSILON).rows if row.run == on.run.pk), None)


def _stand_in(on: _Judged) -> tuple[str, bool | None]:
    """Whether the judge may stand in for an annotator, in words."""
    row = _stand_in_row(on)
    if row is None or row.passes is None:
        return row.reason if row else "", None
    rate = two(row.winning_rate)
    return (f"yes, {rate}" if row.passes else f"not proven, {rate}"), row.passes


def _stand_in_panel(on: _Judged) -> StandIn | None:
    row = _stand_in_row(on)
    if row is None:
        return None
    people, numbers = len(row.annotators), ""
    said = f"Too few people: {row.reason}" if row.passes is None else ""
    if row.passes is not None:
        said = f"May stand in for one of {people} people: {'yes' if row.passes else 'not proven'}"
        numbers = (
            f"{standin_page.standin_cell(row).small.capitalize()}; half of them is enough (winning rate "
            f"{two(row.winning_rate)}, margin for its lower price {100 * row.epsilon:g} points). It is at least as "
            f"close to the others as the person left out on {percent(row.advantage)}% of the items."
        )
    return StandIn(
        run=on.run.pk,
        of=f"{on.address.benchmark.titled}, {on.kind.title.lower()}",
        said=said,
        passes=row.passes,
        numbers=numbers,
        link=f"{on.address.link()}#stand-in",
        people=[
            (f"Person {number}", percent(person.advantage), whole(person.n), _result(person))
            for number, person in enumerate(row.annotators, start=1)
        ],
    )


def _result(person: standin.TestedAnnotator) -> str:
    return "too few items" if person.rejected is None else "as good" if person.rejected else "not proven"


def _measured_biases(on: _Judged) -> Iterator[tuple[_Judged, BiasRow]]:
    """The biases that were measured."""
    if not on.kind.biases or on.run.judge.is_baseline:
        return
    for row in cached(on.scope, "bias", boards.bias_of).rows:
        if row.run == on.run.pk and row.value.value is not None:
            yield on, row


def _strong(on: _Judged, row: BiasRow) -> float:
    """From where the bias is a strong one, in its own unit."""
    return bias_page.limits(row.bias, on.kind)[1]


def _bias_scale(measured: Sequence[tuple[_Judged, BiasRow]]) -> marks.Axis:
    """One axis for biases of several units, on which 1 is where each is strong."""
    ends = [
        abs(end) / _strong(on, row)
        for on, row in measured
        for end in bias_page.told(row, on.kind).ends
        if end is not None
    ]
    far = min(FAR, max([1.5, *ends]))
    return marks.Axis(-far, far, (-1.0, 0.0, 1.0), marks.WIDE)


def _bias_line(on: _Judged, row: BiasRow, scale: marks.Axis) -> BiasLine:
    """A bias with its interval; a mark where the interval leaves people's line."""
    write: Any = bias_page.write_of(on.kind)
    strong, number = _strong(on, row), bias_page.told(row, on.kind)
    value, low, high = (None if end is None else end / strong for end in number.ends)
    rows = cached(on.scope, "bias", boards.bias_of).rows
    people = bias_page.people_in(next((of for of in rows if of.run is None and of.bias == row.bias), None), on.kind)
    return BiasLine(
        benchmark=on.address.benchmark.titled,
        bias=bias_page.LABELS[row.bias],
        words=bias_page.words_of(row.bias, on.kind),
        value=write(number.value),
        css=bias_page.css_of(row, on.kind, people),
        interval=in_brackets(number, write),
        bar=marks.interval_bar(
            scale, value, low, high, write=lambda share: write(share * strong), ceiling=people / strong
        ),
        n=whole(row.n),
        link=on.address.to("leaderboard:bias", kind=on.kind.in_address),
    )


def _cost(on: _Judged) -> Cost | None:
    """None where the viewer may not see what the run cost, or nobody knows."""
    running = on.board.running.get(on.run.pk)
    if on.run.judge.is_baseline or running is None or running.cost is None or not sees_usage(on.run, on.address.viewer):
        return None
    facts = [Fact("1,000 verdicts", dollars(running.cost))]
    facts += [] if running.seconds is None else [Fact("A call", f"{running.seconds:.3g} s")]
    return Cost(on.address.benchmark.titled, _prices(on) if running.cost else BLANK, facts, on.address.link())


def _prices(on: _Judged) -> SafeString:
    """This judge among those whose price is known."""
    plot = prices.plot_of_judges(on.address, on.scope, on.board, fewest=1)
    return plots.points(replace(plot, own=str(on.run.judge), floor=None), width=310, height=260) if plot else BLANK


def _steady(on: _Judged) -> list[Fact]:
    """How steady a judge is, in percent with intervals; only what was measured."""
    same_in_orders = next((row.detail.consistent for _, row in _measured_biases(on) if row.detail.consistent), UNKNOWN)
    again, readable, ties = (
        _value_of(on.board, on.run.pk, metric.name) for metric in (CONSISTENCY, READABLE, TIE_RATE)
    )
    people = on.board.against[MAJORITY].ceiling.get(TIE_RATE.name)
    of_people = f"; people {percent(people.number.value)}%" if people and people.number.value is not None else ""
    numbers = (
        ("Same in both orders", same_in_orders, ""),
        ("Same if asked again", again, ""),
        (READABLE.label, readable, ""),
        (TIE_RATE.label, ties, of_people),
    )
    facts = [
        Fact(term, f"{percent(value.value)}% {in_brackets(value, percent)}".strip() + more)
        for term, value, more in numbers
        if value.value is not None
    ]
    parts = _parts(on)
    return [*facts, Fact("Verdicts differ by", parts)] if parts else facts


def _parts(on: _Judged) -> str:
    """``item 81%, order 2%, rest 17%``: the shares of the variance of its verdicts."""
    if not on.kind.on_scale:
        return ""
    rows = [row for row in cached(on.scope, "variance", variance.of_judges).rows if row.run == on.run.pk]
    return ", ".join(f"{row.part} {whole(100 * (row.share.value or 0))}%" for row in rows)


def _facts(judge: Judge, runs: Sequence[Run]) -> list[Fact]:
    members = {pk for run in runs for pk in members_of(run)}
    judges = Judge.objects.filter(runs__pk__in=members).order_by("name").distinct()
    kind = "built-in baseline" if judge.is_baseline else "jury" if members else "model" if judge.model else "from files"
    reported = next((run.reported_model for run in reversed(runs) if run.reported_model), "")
    facts = [
        Fact("Kind", f"{kind}, simulated" if judge.simulated else kind),
        Fact("Members", ", ".join(map(str, judges))),
        Fact("Model", judge.model or reported, mono=True),
        Fact("Answers as", reported if judge.model and reported != judge.model else "", mono=True),
        Fact("Family", judge.family),
        Fact("Price, in and out", priced(judge)),
        Fact("Runs", ", ".join(str(run.pk) for run in runs)),
    ]
    return [fact for fact in facts if fact.text]
