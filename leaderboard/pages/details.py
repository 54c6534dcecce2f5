"""The public pages of a model and of a judge: all boards that it is on, its history, what sways it, and its card."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed
from bank.models import Benchmark, EvaluatedModel, Response
from judging.models import Judge, Run
from judging.runs.juries import members_of
from leaderboard import boards, queries
from leaderboard.boards import cached, standin
from leaderboard.boards.base import ModelRow, ModelsBoard
from leaderboard.boards.bias import BiasRow
from leaderboard.boards.judge_board import ALL, MAJORITY, JudgeRow, JudgesBoard
from leaderboard.figures import (
    NONE,
    in_brackets,
    number_of,
    percent,
    rank_range,
    signed,
    signed_points,
    two,
    whole,
    without_zeros,
)
from leaderboard.kinds import Kind, available
from leaderboard.models import Snapshot
from leaderboard.pages import bias as bias_page
from leaderboard.pages import marks, profile, scored
from leaderboard.pages import models as models_page
from leaderboard.pages import snapshots as snapshots_page
from leaderboard.pages.address import PEOPLE_IN_WORDS, Address, settings_in_words, source_of
from leaderboard.pages.provenance import Fact, verdicts_link
from leaderboard.rows import Number
from leaderboard.scope import BadScope, Scope

HUNDRED = marks.Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), marks.WIDE)
MOST_LEVELS = 16
FAR = 6.0  # times a strong bias, where the axis of biases ends
BLANK = SafeString()


@dataclass(frozen=True, slots=True)
class BoardLine:
    """A model on one board: its place among ``of`` ranked models, its number, and where all others stand."""

    title: str
    by: str
    link: str
    rows: str  # what is behind the number
    rank: str
    ranks: str
    of: str
    value: str
    bar: SafeString
    n: str


@dataclass(frozen=True, slots=True)
class LevelLine:
    name: str
    rows: str  # what is behind the number
    value: str
    bar: SafeString
    n: str


@dataclass(frozen=True, slots=True)
class ModelPage:
    lead: str
    boards: list[BoardLine]
    axis: SafeString
    levels: list[LevelLine]
    levels_of: str
    levels_axis: SafeString
    history: SafeString
    history_of: str
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class _OnBoard:
    """A model's row on one board."""

    address: Address
    scope: Scope
    board: ModelsBoard
    row: ModelRow

    @property
    def number(self) -> Number:
        return self.row.number(scored.shape_of(self.scope, self.board).main.name)


def model_page(model: EvaluatedModel, viewer: Viewer) -> ModelPage | None:
    """None for a model of which the viewer may see neither a board nor an answer, unless the viewer is staff."""
    found = _boards_of(model.name, viewer)
    answers = Response.objects.visible_to(viewer).filter(model=model)
    if not (found or allowed(viewer, "read-bank") or answers.exists()):
        return None
    first = found[0] if found else None
    levels, axis, measure = _levels(first) if first else ([], BLANK, "")
    history, followed = _history(first) if first else (BLANK, "")
    return ModelPage(
        lead=_lead(first) if first else "Not on a public board yet.",
        boards=[_board_line(on) for on in found],
        axis=marks.axis_head(HUNDRED, lambda value: whole(100 * value)),
        levels=levels,
        levels_of=f"{_title(first)}, {measure}" if first else "",
        levels_axis=axis,
        history=history,
        history_of=f"{_title(first)}, {followed}" if first else "",
        facts=_model_facts(model),
    )


@dataclass(frozen=True, slots=True)
class OnBoards:
    """A model's lines on all boards, with their axis."""

    boards: list[BoardLine]
    axis: SafeString


def on_boards(model: EvaluatedModel, viewer: Viewer) -> OnBoards:
    return OnBoards(
        [_board_line(on) for on in _boards_of(model.name, viewer)],
        marks.axis_head(HUNDRED, lambda value: whole(100 * value)),
    )


def _boards_of(name: str, viewer: Viewer) -> list[_OnBoard]:
    """Where the model has a rank first, the larger boards first among them."""
    return sorted(_find_on_boards(name, viewer), key=lambda on: (on.row.rank is None, -on.row.n))


def _find_on_boards(name: str, viewer: Viewer) -> Iterator[_OnBoard]:
    answered = Response.objects.filter(model__name=name).order_by().values("sample__benchmark")
    staff = allowed(viewer, "read-hidden")
    visible = {benchmark.pk for benchmark in queries.newest_visible(viewer)}
    for benchmark in Benchmark.objects.filter(pk__in=answered).select_related("anchor").order_by("pk"):
        for kind in available(benchmark, "models", staff=staff) if benchmark.pk in visible else ():
            address = Address(viewer, "leaderboard:models", _named(benchmark), benchmark, {"kind": kind.name})
            try:
                scope = source_of(address).scope
                board = cached(scope, "models", boards.models)
            except BadScope:
                continue
            row = next((row for row in board.rows if row.model == name), None)
            if row is not None:
                yield _OnBoard(address, scope, board, row)


def _named(benchmark: Benchmark) -> str:
    return str(benchmark) if benchmark.version != "1" else benchmark.slug


def _title(on: _OnBoard) -> str:
    return on.address.benchmark.titled


def _lead(on: _OnBoard) -> str:
    shape = scored.shape_of(on.scope, on.board)
    label, unit = (shape.main.label.removesuffix(", %"), "%" if shape.main.label.endswith(", %") else "")
    said = f"{label} {shape.main.write(on.number.value)}{unit} {in_brackets(on.number, shape.main.write)}".strip()
    place = "" if on.row.rank is None else f", rank {on.row.place} of {_ranked(on.board)}"
    return f"{said} over {number_of(on.row.n, 'item')} of {_title(on)}{place}."


def _ranked(board: ModelsBoard) -> int:
    return sum(row.rank is not None for row in board.rows)


def _board_line(on: _OnBoard) -> BoardLine:
    shape, kind = scored.shape_of(on.scope, on.board), on.scope.kind
    main, hundred = shape.main, shape.hundred
    scale = HUNDRED if hundred else marks.Axis(*kind.ends(on.address.benchmark), (), marks.WIDE)
    others = [row.number(main.name).value for row in on.board.rows if row.model != on.row.model]

    def at(value: float | None) -> float | None:
        return value if value is None or not hundred else value / hundred

    few = models_page.is_provisional(on.row, on.scope.anchor)
    bar = marks.interval_bar(
        scale,
        *(at(end) for end in on.number.ends),
        write=lambda value: main.write(value * hundred if hundred else value),
        provisional=few,
        others=[at(value) for value in others],
    )
    source = on.scope.source
    return BoardLine(
        title=f"{_title(on)}, {kind.title.lower()}",
        by="" if kind.keyed else PEOPLE_IN_WORDS.get(source, source),
        link=on.address.link(),
        rows=on.address.to(kind.rows_page, model=on.row.model, kind=kind.in_address),
        rank=NONE if few or on.row.rank is None else str(on.row.place),
        ranks="" if few else rank_range(on.row.place, on.row.rank_low, on.row.rank_high),
        of=str(_ranked(on.board)),
        value=main.write(on.number.value),
        bar=bar,
        n=whole(on.row.n),
    )


def _levels(on: _OnBoard) -> tuple[list[LevelLine], SafeString, str]:
    """The levels of a board, each beside the median of the other models; and the axis."""
    shape = scored.shape_of(on.scope, on.board)
    main = shape.main
    names = [name for name in on.row.levels if name][:MOST_LEVELS]
    if len(names) < 2:
        return [], BLANK, ""
    numbers = {name: level.number(main.name) for name in names if (level := on.row.level(name))}
    scale = marks.axis([end for number in numbers.values() for end in number.ends], width=marks.WIDE, unit=shape.unit)
    lines = []
    for name, number in numbers.items():
        others = [
            value
            for row in on.board.rows
            if row.model != on.row.model
            and (level := row.level(name))
            and (value := level.number(main.name).value) is not None
        ]
        level = on.row.level(name)
        middle = [median(others)] if others else []
        lines.append(
            LevelLine(
                name=name.rpartition(" / ")[2],
                rows=profile.rows_of(on.address, on.scope, on.row.model, name),
                value=main.write(number.value),
                bar=marks.interval_bar(scale, *number.ends, write=main.write, others=middle),
                n=whole(level.n if level else None),
            )
        )
    return lines, marks.axis_head(scale, lambda value: without_zeros(main.write(value))), main.label.lower()


def _history(on: _OnBoard) -> tuple[SafeString, str]:
    """The model's number over the snapshots of its first board, and what it is called."""
    snapshots = [
        snapshot
        for snapshot in Snapshot.objects.visible_to(on.address.viewer).filter(
            benchmark=on.address.benchmark, what="models"
        )
        if on.row.model in snapshots_page.entries_of(snapshot)
    ]
    if not snapshots:
        return BLANK, ""
    same = [each for each in reversed(snapshots) if snapshots_page.same_view(each, snapshots[0])]  # newest last
    line = snapshots_page.Line(snapshots, snapshots[0], same, on.row.model)
    return snapshots_page.plot_of(line), snapshots_page.followed_in(line)


def _model_facts(model: EvaluatedModel) -> list[Fact]:
    facts = [
        Fact("Organisation", model.organisation),
        Fact("Family", model.family),
        Fact("Weights", "" if model.open is None else "open" if model.open else "closed"),
        Fact("Licence", model.licence),
        Fact("Parameters", model.parameters),
        Fact("Released", f"{model.released.day} {model.released:%B %Y}" if model.released else ""),
        Fact("Price, in and out", _priced(model)),
        Fact("Home page", model.homepage.partition("://")[2].rstrip("/"), model.homepage),
    ]
    return [fact for fact in facts if fact.text]


def _priced(priced: EvaluatedModel | Judge) -> str:
    """``$2.5 and $10 a million tokens``; empty where nothing is known."""
    prices = [f"${price:g}" for price in (priced.price_in, priced.price_out) if price is not None]
    return f"{' and '.join(prices)} a million tokens" if prices else ""


# ---- judges ----


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


@dataclass(frozen=True, slots=True)
class SwayLine:
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
    """The alternative annotator test in words, and the judge in place of each person."""

    of: str
    said: str
    passes: bool | None
    numbers: str
    link: str
    people: list[tuple[str, str, str, str]]  # name, advantage, n, result


@dataclass(frozen=True, slots=True)
class JudgePage:
    lead: str
    stand_in: StandIn | None
    lines: list[AgreementLine]
    axis: SafeString
    sways: list[SwayLine]
    sways_axis: SafeString
    facts: list[Fact]


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
    def person(self) -> Number | None:
        ceiling = self.board.against[MAJORITY].ceiling.get(self.row.metric)
        return ceiling.number if ceiling else None

    @property
    def floor(self) -> float | None:
        """The best of the baselines."""
        better = min if self.kind.metrics[0].lower_is_better else max
        runs = Run.objects.filter(pk__in=self.board.runs).exclude(judge__baseline="").values_list("pk", flat=True)
        of_baselines = set(runs)
        values = [
            row.value.value
            for row in self.board.rows
            if row.run in of_baselines
            and (row.metric, row.reference, row.source_dataset) == (self.row.metric, MAJORITY, ALL)
            and row.value.value is not None
        ]
        return better(values, default=None)


def judge_page(judge: Judge, viewer: Viewer) -> JudgePage | None:
    """None for a judge with no verdict on a benchmark that the viewer may see, unless the viewer may see all runs."""
    found = sorted(_judged(judge, viewer), key=lambda on: -on.row.n)
    runs = _visible_runs(judge, viewer)
    if not runs and not allowed(viewer, "read-judging"):
        return None
    ends = [end for on in found for end in (*on.row.value.ends, on.person.value if on.person else None, on.floor)]
    scale = marks.axis(ends, width=marks.WIDE)
    swayed = [one for on in found for one in _sways(on)]
    sway_scale = _sway_scale(swayed)
    return JudgePage(
        lead=_judge_lead(judge, found),
        stand_in=next((test for on in found if (test := _stand_in_panel(on))), None),
        lines=[_agreement_line(on, scale) for on in found],
        axis=marks.axis_head(scale, two),
        sways=[_sway(on, row, sway_scale) for on, row in swayed],
        sways_axis=marks.axis_head(sway_scale, lambda value: "" if value else "0"),
        facts=_judge_facts(judge, runs),
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
            address = Address(viewer, "leaderboard:judges", _named(benchmark), benchmark, {"kind": kind.name})
            scope = address.scope()
            board = cached(scope, "judges", boards.judges)
            rows = [
                row
                for row in board.rows
                if (row.judge, row.reference, row.metric, row.source_dataset)
                == (judge.name, MAJORITY, kind.metrics[0].name, ALL)
                and row.value.value is not None
            ]
            by_run = Run.objects.select_related("judge").in_bulk([row.run for row in rows])
            for row in rows:
                yield _Judged(address, scope, kind, board, by_run[row.run], row)


def _judge_lead(judge: Judge, found: Sequence[_Judged]) -> str:
    if not found:
        return "People have labelled nothing that it judged, so there is nothing to compare it with."
    on = found[0]
    metric = on.kind.metrics[0]
    said = f"{metric.label} {two(on.row.value.value)} {in_brackets(on.row.value, two)}".strip()
    person = f"; one more person {two(on.person.value)}" if on.person and on.person.value is not None else ""
    return f"{said} on {number_of(on.row.n, 'item')} of {on.address.benchmark.titled} that people labelled{person}."


def _agreement_line(on: _Judged, scale: marks.Axis) -> AgreementLine:
    metric = on.kind.metrics[0]
    stand_in, passes = _stand_in(on)
    ceiling = on.person.value if on.person else None
    return AgreementLine(
        title=on.address.benchmark.titled,
        kind=on.kind.title.lower(),
        metric=metric.label,
        link=on.address.link(),
        rows=verdicts_link(on.address, on.run) or on.address.link(),
        settings=settings_in_words(on.run.protocol, on.run.settings),
        n=whole(on.row.n),
        value=two(on.row.value.value),
        bar=marks.interval_bar(scale, *on.row.value.ends, ceiling=ceiling, reference=on.floor),
        person=two(ceiling),
        stand_in=stand_in,
        passes=passes,
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
    return (f"yes, {rate}" if row.passes else f"not yet, {rate}"), row.passes


def _stand_in_panel(on: _Judged) -> StandIn | None:
    row = _stand_in_row(on)
    if row is None:
        return None
    people, numbers = len(row.annotators), ""
    said = f"Too few people: {row.reason}" if row.passes is None else ""
    if row.passes is not None:
        said = f"{'May' if row.passes else 'Not yet: may not'} stand in for one of {people} people"
        numbers = (
            f"Winning rate {two(row.winning_rate)}, 0.5 passes (cost advantage {row.epsilon:g}). On "
            f"{percent(row.advantage)}% of the items it is at least as close to the others as the person left out."
        )
    return StandIn(
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
    return "too few items" if person.rejected is None else "as good" if person.rejected else "not shown"


def _sways(on: _Judged) -> Iterator[tuple[_Judged, BiasRow]]:
    """The biases that were measured."""
    if not on.kind.biases or on.run.judge.is_baseline:
        return
    for row in cached(on.scope, "bias", boards.bias_of).rows:
        if row.run == on.run.pk and row.value.value is not None:
            yield on, row


def _strong(on: _Judged, row: BiasRow) -> float:
    """From where the bias is a strong one, in its own unit."""
    return on.kind.scale_width * bias_page.LIMITS[row.bias][1]


def _sway_scale(swayed: Sequence[tuple[_Judged, BiasRow]]) -> marks.Axis:
    """One axis for biases of several units, on which 1 is where each is strong."""
    ends = [abs(end) / _strong(on, row) for on, row in swayed for end in row.value.ends if end is not None]
    far = min(FAR, max([1.5, *ends]))
    return marks.Axis(-far, far, (-1.0, 0.0, 1.0), marks.WIDE)


def _sway(on: _Judged, row: BiasRow, scale: marks.Axis) -> SwayLine:
    """A bias with its interval; a mark where the interval leaves 0 out."""
    write: Any = signed_points if bias_page.is_share(row.bias, on.kind) else signed
    strong = _strong(on, row)
    value, low, high = (None if end is None else end / strong for end in row.value.ends)
    return SwayLine(
        benchmark=on.address.benchmark.titled,
        bias=bias_page.LABELS[row.bias],
        words=bias_page.words_of(row.bias, on.kind),
        value=write(row.value.value),
        css=bias_page.css_of(row.bias, row, on.kind),
        interval=in_brackets(row.value, write),
        bar=marks.interval_bar(scale, value, low, high, write=lambda share: write(share * strong)),
        n=whole(row.n),
        link=on.address.to("leaderboard:bias", kind=on.kind.in_address),
    )


def _judge_facts(judge: Judge, runs: Sequence[Run]) -> list[Fact]:
    members = {pk for run in runs for pk in members_of(run)}
    names = Run.objects.filter(pk__in=members).order_by("judge__name").values_list("judge__name", flat=True).distinct()
    kind = "built-in baseline" if judge.is_baseline else "jury" if members else "model" if judge.model else "from files"
    reported = next((run.reported_model for run in reversed(runs) if run.reported_model), "")
    facts = [
        Fact("Kind", f"{kind}, simulated" if judge.simulated else kind),
        Fact("Members", ", ".join(names)),
        Fact("Model", judge.model or reported, mono=True),
        Fact("Answers as", reported if judge.model and reported != judge.model else "", mono=True),
        Fact("Family", judge.family),
        Fact("Price, in and out", _priced(judge)),
        Fact("Runs", ", ".join(str(run.pk) for run in runs)),
    ]
    return [fact for fact in facts if fact.text]
