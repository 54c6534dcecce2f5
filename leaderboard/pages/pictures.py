"""The pictures of boards, which are shared: what agreement with people and what a rating costs, or where no prices are
known the numbers with their intervals.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.urls import reverse

from judging.judgments.analyses import sees_usage
from judging.models import Run
from leaderboard.boards import seen
from leaderboard.boards.base import ModelRow, ModelsBoard
from leaderboard.boards.biases import page as bias_page
from leaderboard.boards.judges.board import JudgeRow, JudgesBoard
from leaderboard.boards.models.page import is_provisional
from leaderboard.boards.models.pairs import PairsBoard
from leaderboard.boards.models.scored_page import shape_of
from leaderboard.lookups import known_models, runs_of
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import Metric
from leaderboard.rows import Number
from leaderboard.scope import BadScope, Scope
from leaderboard.show.plots import FEWEST, Figure, ForestRow, Plot, Point, Rows
from leaderboard.show.sharing import titled
from leaderboard.show.singly import singly
from leaderboard.show.table import tick_of
from leaderboard.sight import JUDGES, Sight
from leaderboard.view import PEOPLE_IN_WORDS, Address, source_of
from stats.figures import dollars, listed, number_of, signed, tick, whole, with_interval


@dataclass(frozen=True, slots=True)
class Picture:
    """``png``: where it is; ``under``: what it shows; ``alt``: the same with its title, for those who do not see it."""

    png: str
    under: str
    alt: str


def shared(address: Address, names: Sequence[str]) -> Picture | None:
    """The first of these pictures that there is something to draw of; none where that fails."""
    return singly("The picture to share", lambda: _first(address, names), lambda words: None)


def _first(address: Address, names: Sequence[str]) -> Picture | None:
    try:
        drawn = ((name, figure) for name in names if (figure := PICTURES[name].of(address)))
        name, figure = next(drawn, ("", None))
    except BadScope:  # there is no such board here
        return None
    png = address.to("leaderboard:picture", name, "png", **address.view()) if figure else ""
    return Picture(png, figure.under, titled(figure)) if figure else None


def of_judges(address: Address) -> Plot | None:
    """Agreement with people against the price of 1,000 verdicts; None where fewer than three judges have one."""
    sight = address.sight(JUDGES)
    return plot_of_judges(address, sight, seen.judges(sight.scope))


def plot_of_judges(address: Address, sight: Sight, board: JudgesBoard, fewest: int = FEWEST) -> Plot | None:
    scope = sight.scope
    if not (board.against and sight.live):
        return None
    metric = scope.kind.metric("", board.measured)
    runs = runs_of(board.overall())
    rows = _measured(board, runs, metric)
    found = [_point(address, board, runs[pk], row, metric) for pk, row in rows.items()]
    points = [point for point in found if point is not None]
    person = board.person(metric.name).number
    n = max((row.n for row in rows.values()), default=0)
    plot = Plot(
        title="What agreement with people costs",
        under=f"Judges on {whole(n)} items of {address.benchmark.titled}, {metric.within_sentence} with people"
        + (", in %" if metric.is_share else ""),
        across="price of 1,000 verdicts, US dollars",
        points=points,
        write=(lambda value: f"{100 * value:.3g}") if metric.is_share else tick,
        unit=metric.unit,
        person=person if person.value is not None else None,
        floor=_floor(rows, runs, metric),
    )
    return plot if len(points) >= fewest and n >= PROVISIONAL else None


def _measured(board: JudgesBoard, runs: Mapping[int, Run], metric: Metric) -> dict[int, JudgeRow]:
    """The rows by run that have a number of this metric."""
    rows = {}
    for pk, of_run in board.overall().items():
        row = of_run.get(metric.name)
        if pk in runs and row is not None and row.value.value is not None:
            rows[pk] = row
    return rows


def _floor(rows: Mapping[int, JudgeRow], runs: Mapping[int, Run], metric: Metric) -> tuple[str, float] | None:
    """The best baseline, in words and as a number."""
    baselines = {pk: rows[pk].value.value or 0.0 for pk, run in runs.items() if pk in rows and run.judge.is_baseline}
    if not baselines or metric.lower_is_better:
        return None
    best = max(baselines, key=lambda pk: baselines[pk])
    return f"{runs[best].judge.titled.lower()} {metric.write(baselines[best])}", baselines[best]


def judges_in_rows(address: Address) -> Rows | None:
    """Judges by how far they agree with people, beside one more person; None where none was asked enough."""
    sight = address.sight(JUDGES)
    scope = sight.scope
    board = seen.judges(scope)
    if not (board.against and sight.live):
        return None
    metric = scope.kind.metric("", board.measured)
    runs = runs_of(board.overall())
    measured = _measured(board, runs, metric)
    found = [row for pk, row in measured.items() if not runs[pk].judge.is_baseline and row.n >= PROVISIONAL]
    found.sort(key=lambda row: row.value.value or 0.0, reverse=not metric.lower_is_better)
    named = Counter(str(runs[row.run].judge) for row in found)
    n = max((row.n for row in found), default=0)
    title, person = "Judges beside people", None
    one_more = board.person(metric.name).number
    if one_more.value is not None:
        title, person = "Judges beside one more person", one_more

    def label(run: Run) -> str:
        return f"{run.judge}, run {run.pk}" if named[str(run.judge)] > 1 else str(run.judge)

    return _rows(
        title=title,
        under=f"{metric.label} with people on {number_of(n, 'item')} of {address.benchmark.titled}"
        f"{', in %' if metric.is_share else ''}{_intervals(row.value for row in found)}",
        rows=[ForestRow(label(runs[row.run]), row.value) for row in found],
        write=metric.tick,
        figure=metric.write,
        unit=metric.unit,
        person=person,
    )


def _intervals(numbers: Iterable[Number]) -> str:
    return ", with 95% intervals" if any(number.between for number in numbers) else ""


def _rows(**parts: Any) -> Rows | None:
    return Rows(**parts) if parts["rows"] else None


def _point(address: Address, board: JudgesBoard, run: Run, row: JudgeRow, metric: Metric) -> Point | None:
    """None for a baseline, and where the price is not known, or not to this viewer."""
    running = board.running.get(run.pk)
    if run.judge.is_baseline or running is None or not running.cost or not sees_usage(run, address.viewer):
        return None
    words = f"{dollars(running.cost)} for 1,000 verdicts, {with_interval(row.value, metric.write)}"
    link = reverse("leaderboard:judge-detail", args=[run.judge_id])
    return Point(str(run.judge), running.cost, row.value, words, link)


def of_models(address: Address) -> Plot | None:
    """Ratings against the price of a million tokens; None where fewer than three models have both."""
    source = source_of(address)
    scope = source.scope
    board = seen.models(scope)
    if not board.rated or source.sight.only_editions:
        return None
    board = cast(PairsBoard, board)
    known = known_models(row.model for row in board.rows)
    prices = {name: model.price_out for name, model in known.items() if model.price_out}
    rows = [
        row
        for row in board.rows
        if row.model in prices and row.bt.value is not None and not is_provisional(row, scope.anchor)
    ]
    points = [
        Point(
            known.shown(row.model),
            prices[row.model],
            row.bt,
            f"{dollars(prices[row.model])} for a million tokens, {with_interval(row.bt, signed)}",
            known[row.model].page,
        )
        for row in rows
    ]
    plot = Plot(
        title="What a rating costs",
        under=f"Models on {address.benchmark.titled}, Bradley–Terry rating, 0 is the average model",
        across="price of a million tokens of an answer, US dollars",
        points=points,
        write=tick_of(signed),
    )
    return plot if len(points) >= FEWEST else None


def _by_rank(board: ModelsBoard, column: str, anchor: str) -> list[tuple[ModelRow, Number]]:
    """The rows that have a number in this column and are ranked by enough, with that number."""
    numbers = [(row, row.number(column)) for row in board.rows if not is_provisional(row, anchor)]
    known = [(row, number) for row, number in numbers if number.value is not None]

    def place(pair: tuple[ModelRow, Number]) -> tuple[int, float]:
        row, number = pair
        return row.rank or len(known), -(number.value or 0.0)

    return sorted(known, key=place)


def models_in_rows(address: Address) -> Rows | None:
    """Models by their rating or main number; None where none has been counted enough."""
    source = source_of(address)
    scope = source.scope
    board = seen.models(scope)
    if source.sight.only_editions:
        return None
    main, anchor = shape_of(scope, board).main, scope.anchor if board.rated else ""
    column, figure, unit = ("bt", signed, 1.0) if board.rated else (main.name, main.write, scope.kind.shape.unit)
    numbers = _by_rank(board, column, anchor)
    known = known_models(row.model for row, _ in numbers)
    counted = number_of(board.items, "pair" if board.rated else scope.kind.counted_word)
    by, intervals = _decided_by(scope, board), _intervals(number for _, number in numbers)
    if board.rated:
        under = f"Bradley–Terry ratings by {counted} that {by} decided{intervals}; 0 is the average model"
    else:
        under = f"{main.title} on {counted}{f' by {by}' if by else ''}{intervals}"
    return _rows(
        title=f"Models on {address.benchmark.titled}",
        under=under,
        rows=[ForestRow(known.shown(row.model), number, quiet=row.model == anchor) for row, number in numbers],
        write=tick_of(figure),
        figure=figure,
        unit=unit,
        zero=board.rated,
    )


def _decided_by(scope: Scope, board: ModelsBoard) -> str:
    if scope.kind.keyed:
        return ""
    judges = sorted({str(run.judge) for run in runs_of(board.runs).values()})
    return listed(judges) if judges and scope.source not in PEOPLE_IN_WORDS else "people"


def biases_in_rows(address: Address) -> Rows | None:
    """The bias that sways a judge most, of all judges."""
    board = seen.bias_of(address.scope())
    return bias_page.picture_of(board, address.kind, address.benchmark.titled)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture: the board that it is of, and what it shows; None where there is nothing to draw."""

    board: str
    of: Callable[[Address], Figure | None]


OF_JUDGES, OF_MODELS, OF_BIAS = ("judges-price", "judges"), ("models-price", "models"), ("bias",)  # of a board
PICTURES = {
    "judges-price": Drawn("judges", of_judges),
    "judges": Drawn("judges", judges_in_rows),
    "models-price": Drawn("models", of_models),
    "models": Drawn("models", models_in_rows),
    "bias": Drawn("bias", biases_in_rows),
}
