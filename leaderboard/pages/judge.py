"""The public page of a judge beside people: its agreement, its biases, what it costs, how steady it is, its card."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed
from judging import protocols
from judging.extras.juries import members_of
from judging.judgments.analyses import sees_usage
from judging.models import Judge, Run
from judging.protocols.in_words import settings_in_words
from leaderboard.benchmarks import newest_visible
from leaderboard.boards import seen
from leaderboard.boards.agreement import variance
from leaderboard.boards.biases import page as bias_page
from leaderboard.boards.biases.board import BiasRow
from leaderboard.boards.biases.page import Biases
from leaderboard.boards.empty import why_no_judges
from leaderboard.boards.judges import stand_in as standin
from leaderboard.boards.judges import stand_in_page as standin_page
from leaderboard.boards.judges.board import JudgeRow, JudgesBoard
from leaderboard.kinds import Kind, available
from leaderboard.lookups import runs_of
from leaderboard.metrics import CONSISTENCY, READABLE, TIE_RATE, Metric
from leaderboard.pages import pictures
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import Scope
from leaderboard.show import marks, plots
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.provenance import Fact, priced, verdicts_link
from leaderboard.show.table import BLANK, Column, Table, axis_of, drawn, interval_of, names, table, text
from leaderboard.sight import JUDGES, Sight
from leaderboard.view import Address, named
from stats.figures import NONE, dollars, in_brackets, number_of, percent, two, whole_percent, with_interval

FAR = 6.0  # times a strong bias, where the axis of biases ends


@dataclass(frozen=True, slots=True)
class StandIn:
    """The alternative annotator test of a run in words, and the judge in place of each person."""

    run: int
    of: str
    said: str
    passes: bool | None
    numbers: str
    link: str
    people: Table


@dataclass(frozen=True, slots=True)
class _Person:
    """One in whose place a judge was put."""

    number: int
    tested: standin.TestedAnnotator


@dataclass(frozen=True, slots=True)
class JudgePage:
    lead: str
    stand_ins: list[StandIn]
    lines: Table
    biases: Table
    cost: "Cost | None"
    steady: list[Fact]
    steady_of: str
    kind: str
    members: list[Judge]
    reported: str  # what its newest run answers as
    price: str
    runs: list[int]


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
    sight: Sight
    kind: Kind
    board: JudgesBoard
    run: Run
    row: JudgeRow

    @property
    def scope(self) -> Scope:
        return self.sight.scope

    @property
    def metric(self) -> Metric:
        return self.kind.metric(self.row.metric, ())

    @property
    def unit(self) -> str:
        return "%" if self.metric.is_share else ""

    @property
    def person(self) -> Number:
        return self.board.person(self.row.metric).number

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
    members = set(chain.from_iterable(map(members_of, runs)))
    kind = "built-in baseline" if judge.is_baseline else "jury" if members else "model" if judge.model else "from files"
    steady, steady_of = [], ""
    if found:
        steady, steady_of = _steady(found[0]), f"{found[0].address.benchmark.titled}, {found[0].kind.title.lower()}"
    return JudgePage(
        lead=_lead(judge, found, viewer),
        stand_ins=list(filter(None, map(_stand_in_panel, found))),
        lines=_agreement(judge, found),
        biases=_biases(judge, list(chain.from_iterable(map(_measured_biases, found)))),
        cost=next(filter(None, map(_cost, found)), None),
        steady=steady,
        steady_of=steady_of,
        kind=f"{kind}, simulated" if judge.simulated else kind,
        members=list(Judge.objects.filter(runs__pk__in=members).order_by("name").distinct()),
        reported=next((run.reported_model for run in reversed(runs) if run.reported_model), ""),
        price=priced(judge),
        runs=[run.pk for run in runs],
    )


def _visible_runs(judge: Judge, viewer: Viewer) -> list[Run]:
    visible = [benchmark.pk for benchmark in newest_visible(viewer)]
    runs = Run.objects.visible_to(viewer).filter(judge=judge, benchmark__in=visible, kind=Run.Kind.JUDGMENTS)
    return list(runs.select_related("benchmark").order_by("pk"))


def _judged(judge: Judge, viewer: Viewer) -> Iterator[_Judged]:
    visible = {benchmark.pk: benchmark for benchmark in newest_visible(viewer)}
    for pk in dict.fromkeys(run.benchmark_id for run in _visible_runs(judge, viewer)):
        benchmark = visible[pk]
        for kind in available(benchmark, "judges", staff=allowed(viewer, "read-hidden", of=benchmark)):
            address = Address(viewer, "leaderboard:judges", named(benchmark), benchmark, {"kind": kind.name})
            sight = address.sight(JUDGES)
            board = seen.judges(sight.scope)
            main = kind.metric("", board.measured).name
            rows = [
                row
                for of_run in board.overall().values()
                if (row := of_run.get(main)) and row.judge == judge.name and row.value.value is not None
            ]
            by_run = runs_of(row.run for row in rows)
            for row in rows:
                yield _Judged(address, sight, kind, board, by_run[row.run], row)


def _lead(judge: Judge, found: Sequence[_Judged], viewer: Viewer) -> str:
    if not found:
        return _why_not_compared(judge, viewer)
    on = found[0]
    said = f"{on.metric.label} {with_interval(on.row.value, on.metric.write, on.unit)}"
    person = f"; one more person {on.metric.write(on.person.value)}{on.unit}" if on.person.value is not None else ""
    return f"{said} on {number_of(on.row.n, 'item')} of {on.address.benchmark.titled} that people labelled{person}."


def _why_not_compared(judge: Judge, viewer: Viewer) -> str:
    for run in _visible_runs(judge, viewer):
        params = {"kind": protocols.get(run.protocol).verdict_kind}
        address = Address(viewer, "leaderboard:judges", named(run.benchmark), run.benchmark, params)
        why = why_no_judges(address.scope(), "it")
        return f"{run.benchmark.titled}: {why.in_short} {why.words}"
    return "It has no verdicts here yet."


def _agreement(judge: Judge, found: Sequence[_Judged]) -> Table:
    """On each benchmark beside one more person and the best baseline."""
    others: list[float | None] = []
    for on in found:
        others += [on.person.value, on.floor]
    scale = axis_of(found, lambda on: on.row.value, *others, width=marks.WIDE)
    shares = all(on.metric.is_share for on in found)

    def benchmark(on: _Judged) -> Cell:
        settings = settings_in_words(on.run.protocol, on.run.settings)
        return Cell(on.address.benchmark.titled, on.kind.title.lower(), title=settings, link=on.address.link())

    def verdicts(on: _Judged) -> str:
        return verdicts_link(on.address, on.run, metric=on.metric.name)

    def beside(on: _Judged) -> dict[str, Any]:
        return {"ceiling": on.person.value, "reference": on.floor}

    def stand_in(on: _Judged) -> Cell:
        row = _stand_in_row(on)
        return standin_page.standin_cell(row, on.run) if row else Cell(NONE)

    return table(
        [
            names("Benchmark", benchmark),
            Column("Items", lambda on: on.row.n, opens=verdicts),
            text("Metric", lambda on: f"{on.metric.label}{' %' if on.unit else ''}", css="dim"),
            Column("Value", lambda on: Cell(on.metric.write(on.row.value.value), strong=True), opens=verdicts),
            interval_of(lambda on: on.row.value, scale, whole_percent if shares else two, two, beside, "plotted"),
            Column("A person", lambda on: on.metric.write(on.person.value), css="n wide-only"),
            text("May stand in", stand_in, css="maystand"),
        ],
        found,
        label=f"Agreement of {judge.name} with people",
        caption=f"Agreement of {judge.name} with people, by benchmark",
        css="lines",
    )


def _stand_in_row(on: _Judged) -> standin.StandInRow | None:
    """None for a baseline, and of kinds without such a test."""
    if on.run.judge.is_baseline or not on.kind.stand_in:
        return None
    return next((row for row in standin.stand_ins(on.scope, standin.EPSILON).rows if row.run == on.run.pk), None)


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
        people=table(
            [
                names("In place of", lambda each: f"Person {each.number}"),
                Column(
                    "As close %",
                    lambda each: each.tested.advantage,
                    percent,
                    title="Share of items where it is at least as close to the others",
                ),
                Column("Items", lambda each: each.tested.n, css="n dim"),
                text("Test", lambda each: _result(each.tested)),
            ],
            [_Person(number, tested) for number, tested in enumerate(row.annotators, start=1)],
            label="In place of each person",
            caption="The judge in place of each person",
            css="cmpt",
        ),
    )


def _result(person: standin.TestedAnnotator) -> Cell:
    if person.rejected:
        return Cell("as good", css="good")
    return Cell("too few items" if person.rejected is None else "not proven", css="dim")


@dataclass(frozen=True, slots=True)
class _Bias:
    """A bias of a judge."""

    on: _Judged
    row: BiasRow
    biases: Biases

    @property
    def people(self) -> float | None:
        """Where people stand."""
        return self.biases.people(self.row.bias).value

    @property
    def strong(self) -> float:
        """From where it is a strong one, in its own unit."""
        return bias_page.limits(self.row.bias, self.on.kind)[1]


def _measured_biases(on: _Judged) -> Iterator[_Bias]:
    if not on.kind.biases or on.run.judge.is_baseline:
        return
    board = seen.bias_of(on.scope)
    biases = Biases(board, on.kind)
    for row in board.rows:
        if row.run == on.run.pk and row.value.value is not None:
            yield _Bias(on, row, biases)


def _biases(judge: Judge, measured: Sequence[_Bias]) -> Table:
    """Each with its interval, on one axis for several units, on which 1 is where each is strong; a mark where the
    interval leaves people's line.
    """
    ends = [1.5]
    for each in measured:
        ends += [abs(end) / each.strong for end in each.row.told.ends if end is not None]
    far = min(FAR, max(ends))
    scale = marks.Axis(-far, far, (-1.0, 0.0, 1.0), marks.WIDE)

    def name(each: _Bias) -> Cell:
        bias = each.row.bias
        return Cell(bias_page.LABELS[bias], bias_page.words_of(bias, each.on.kind))

    def value(each: _Bias) -> Cell:
        css, words = each.biases.css(each.row.run, each.row.bias), each.biases.write(each.row.told.value)
        link = each.on.address.to("leaderboard:bias", kind=each.on.kind.in_address)
        return Cell(chips=(Chip(words, css, link=link),)) if css else Cell(words, link=link)

    def bar(each: _Bias) -> SafeString:
        write, strong, people = each.biases.write, each.strong, each.people
        ends = (None if end is None else end / strong for end in each.row.told.ends)
        line = None if people is None else people / strong
        return marks.interval_bar(scale, *ends, write=lambda share: write(share * strong), ceiling=line)

    return table(
        [
            names("Bias", name),
            text("Benchmark", lambda each: each.on.address.benchmark.titled, css="dim"),
            Column("Value", value),
            text("95% interval", lambda each: in_brackets(each.row.told, each.biases.write), css="num wide-only"),
            drawn(scale, lambda value: "" if value else "0", bar, css="plotted"),
            Column("Items", lambda each: each.row.n, css="n dim"),
        ],
        measured,
        label=f"Biases of {judge.name}",
        caption=f"Biases of {judge.name}",
        css="lines",
    )


def _cost(on: _Judged) -> Cost | None:
    """None where the viewer may not see what the run cost, or nobody knows."""
    running = on.board.running.get(on.run.pk)
    if on.run.judge.is_baseline or running is None or running.cost is None or not sees_usage(on.run, on.address.viewer):
        return None
    facts = [Fact("1,000 verdicts", dollars(running.cost))]
    facts += [] if running.seconds is None else [Fact("A call", f"{running.seconds:.3g} s")]
    drawn = BLANK
    if running.cost and (plot := pictures.plot_of_judges(on.address, on.sight, on.board, fewest=1)):
        # This judge among those whose price is known.
        drawn = plots.points(replace(plot, own=str(on.run.judge), floor=None), width=310, height=260)
    return Cost(on.address.benchmark.titled, drawn, facts, on.address.link())


def _steady(on: _Judged) -> list[Fact]:
    """How steady a judge is, in percent with intervals; only what was measured."""
    in_orders = next(filter(None, (each.row.detail.consistent for each in _measured_biases(on))), UNKNOWN)
    again, readable, ties = (
        _value_of(on.board, on.run.pk, metric.name) for metric in (CONSISTENCY, READABLE, TIE_RATE)
    )
    people = on.board.person(TIE_RATE.name).number.value
    of_people = "" if people is None else f"; people {percent(people)}%"
    numbers = (
        ("Same in both orders", in_orders, ""),
        ("Same if asked again", again, ""),
        (READABLE.label, readable, ""),
        (TIE_RATE.label, ties, of_people),
    )
    facts = [
        Fact(term, with_interval(value, percent, "%") + more)
        for term, value, more in numbers
        if value.value is not None
    ]
    parts = _parts(on)
    return [*facts, Fact("Verdicts differ by", parts)] if parts else facts


def _parts(on: _Judged) -> str:
    """``item 81%, order 2%, rest 17%``: the shares of the variance of its verdicts."""
    if not on.kind.on_scale:
        return ""
    rows = [row for row in variance.of_judges(on.scope).rows if row.run == on.run.pk]
    return ", ".join(f"{row.part} {whole_percent(row.share.value)}%" for row in rows)
