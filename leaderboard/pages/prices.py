"""What agreement with people costs, and what a rating costs: the pictures of the two boards."""

from typing import cast

from django.urls import reverse

from bank.models import EvaluatedModel
from judging.judgments.analyses import sees_usage
from judging.models import Run
from leaderboard import boards, queries
from leaderboard.boards.base import cached
from leaderboard.boards.judge_board import JudgeRow, JudgesBoard
from leaderboard.boards.pairs import PairsBoard
from leaderboard.hidden import is_kept_back
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import Metric
from leaderboard.pages.address import Address, source_of
from leaderboard.pages.models import as_shown, is_provisional, model_pages, simulated
from leaderboard.pages.plots import FEWEST, Plot, Point
from leaderboard.scope import Scope
from stats.figures import dollars, signed, tick, whole, with_interval


def of_judges(address: Address) -> Plot | None:
    """Agreement with people against the price of 1,000 verdicts; None where fewer than three judges have one."""
    scope = address.scope()
    return plot_of_judges(address, scope, cached(scope, "judges", boards.judges))


def of_judges_at(address: Address) -> str:
    """Where that picture is; empty where there is none."""
    return _at(address, "judges-price") if of_judges(address) else ""


def of_models_at(address: Address) -> str:
    """The same of models."""
    return _at(address, "models-price") if of_models(address) else ""


def _at(address: Address, picture: str) -> str:
    return address.to("leaderboard:picture", picture, "png", **address.view())


def plot_of_judges(address: Address, scope: Scope, board: JudgesBoard, fewest: int = FEWEST) -> Plot | None:
    if not board.against or is_kept_back(scope):
        return None
    metric = scope.kind.metric("", board.measured)
    runs = queries.runs_of(board.overall())
    rows = {
        pk: of_run[metric.name]
        for pk, of_run in board.overall().items()
        if pk in runs and metric.name in of_run and of_run[metric.name].value.value is not None
    }
    found = [_point(address, board, runs[pk], row, metric) for pk, row in rows.items()]
    points = [point for point in found if point is not None]
    baselines = {pk: run.judge for pk, run in runs.items() if pk in rows and run.judge.is_baseline}
    floors = [(judge.titled, rows[pk].value.value or 0.0) for pk, judge in baselines.items()]
    person = board.person(metric.name).number
    floor = max(floors, key=lambda pair: pair[1]) if floors and not metric.lower_is_better else None
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
        floor=(f"{floor[0].lower()} {metric.write(floor[1])}", floor[1]) if floor else None,
    )
    return plot if len(points) >= fewest and n >= PROVISIONAL else None


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
    scope = source_of(address).scope
    board = cached(scope, "models", boards.models)
    if not board.rated or is_kept_back(scope):
        return None
    board = cast(PairsBoard, board)
    priced = EvaluatedModel.objects.filter(price_out__gt=0).values_list("name", "price_out")
    prices = {name: price for name, price in priced if price is not None}
    rows = [
        row
        for row in board.rows
        if row.model in prices and row.bt.value is not None and not is_provisional(row, scope.anchor)
    ]
    pages, invented = model_pages(row.model for row in rows), simulated()
    points = [
        Point(
            as_shown(row.model, invented),
            prices[row.model],
            row.bt,
            f"{dollars(prices[row.model])} for a million tokens, {with_interval(row.bt, signed)}",
            pages.get(row.model, ""),
        )
        for row in rows
    ]
    plot = Plot(
        title="What a rating costs",
        under=f"Models on {address.benchmark.titled}, Bradley–Terry rating, 0 is the average model",
        across="price of a million tokens of an answer, US dollars",
        points=points,
        write=signed,
    )
    return plot if len(points) >= FEWEST else None
