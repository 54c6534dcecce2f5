"""Every plot of a board as a file."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import get_valid_filename

from accounts.http import attached
from accounts.rules import requires
from leaderboard.boards import seen
from leaderboard.boards.agreement import page as agreement_page
from leaderboard.boards.base import Board
from leaderboard.boards.behind.single_labels import sees_labels
from leaderboard.boards.biases import page as bias_page
from leaderboard.boards.correlation import page as correlation_page
from leaderboard.boards.correlation.board import correlated
from leaderboard.boards.judges import page as judges_page
from leaderboard.boards.models import matrix_page
from leaderboard.boards.models import page as models_page
from leaderboard.boards.models.pairs import PairsBoard
from leaderboard.frozen import page as snapshots_page
from leaderboard.kept.pages import answered, prepared
from leaderboard.lookups import known_models
from leaderboard.pages import pictures
from leaderboard.scope import JUDGED, BadScope
from leaderboard.show import drawing, plots, sharing
from leaderboard.show.sharing import Source
from leaderboard.view import OF_VERDICTS, OF_VOTES, Address, read_address, source_of

OF_MODELS = (*OF_VOTES, "elo", "depth", *models_page.FILTERS)
OF_JUDGES = (*OF_VERDICTS, *JUDGED, "metric", "reference", "sort", "who", "all", "page")


def _forest(address: Address) -> SafeString:
    scope = source_of(address).scope
    every = seen.models(scope)
    known = known_models(row.model for row in every.rows)
    board = models_page.filtered_board(address, every, known).board
    if not board.rated:
        raise BadScope("Only boards of pairs have ratings.")
    board = cast(PairsBoard, board)
    ratings = models_page.Ratings.of(board, seen.rated_otherwise(scope, board))
    return models_page.forest(board, known, scope.anchor, ratings)


def _matrix_plot(address: Address) -> SafeString:
    scope = source_of(address).scope
    page = matrix_page.build_matrix_page(address, scope, _drawable(matrix_page.board_of(address, scope)))
    title = f"Wins of the row against the column, %: {address.benchmark.title}"
    return plots.heatmap(page.table, title=title, low="0", high="100")


B = TypeVar("B", bound=Board[Any])


def _drawable(board: B) -> B:
    """Raises BadScope where it has no rows."""
    if not board.rows:
        raise BadScope("nothing to draw")
    return board


def _judges(address: Address) -> SafeString:
    scope = address.scope()
    board = _drawable(seen.judges(scope))
    page = judges_page.build_judges_page(address, board, kind=scope.kind)
    title = f"{page.metric_label} of judges with people: {address.benchmark.title}"
    return plots.heatmap(page.table, title=title, low="15 or more below one more person", high="level or better")


def _agreement(address: Address) -> SafeString:
    board = _drawable(seen.agreement_of(address.scope()))
    page = agreement_page.build_agreement_page(address, board, single=sees_labels(address.viewer))
    title = f"{page.metric_label} of every two: {address.benchmark.title}"
    return plots.heatmap(page.matrix, title=title, low=page.heat_low, high=page.heat_high)


def _correlation(address: Address) -> SafeString:
    board = _drawable(correlated(address.scope(), address.viewer))
    title = f"Spearman's correlation of rankings: {address.benchmark.title}"
    return plots.heatmap(correlation_page.build_correlation_page(board).matrix, title=title, low="−1", high="1")


def _bias(address: Address) -> SafeString:
    board = _drawable(seen.bias_of(address.scope()))
    return bias_page.plot_of(board, address.params.get("metric", ""), address.kind)


def _history(address: Address) -> SafeString:
    return snapshots_page.plot_of(snapshots_page.line_of(address), links=False)


Draw = Callable[[Address], SafeString]
# By the plot's name: the page whose view it is drawn of, what an address may say of that, and who draws it.
PLOTS: dict[str, tuple[str, Sequence[str], Draw]] = {
    "forest": ("models", OF_MODELS, _forest),
    "matrix": ("matrix", (*OF_MODELS, *matrix_page.BLOCKS), _matrix_plot),
    "judges": ("judges", OF_JUDGES, _judges),
    "agreement": ("agreement", OF_JUDGES, _agreement),
    "bias": ("bias", OF_JUDGES, _bias),
    "correlation": ("correlation", OF_JUDGES, _correlation),
    "history": ("snapshot-list", ("of", "entry"), _history),
}


@requires("read-public")
@prepared(*OF_VOTES, by_role=True)
def picture(request: HttpRequest, name: str, what: str, shape: str) -> HttpResponse:
    """A picture to share, as SVG or as PNG of 1200 x 630 pixels; 404 where there is none, or nothing to draw."""
    if what not in pictures.PICTURES or shape not in ("svg", "png"):
        raise Http404("no such picture")
    drawn = pictures.PICTURES[what]
    address = read_address(request, f"leaderboard:{drawn.board}", name, parameters=OF_VOTES)
    try:
        figure = drawn.of(address)
    except BadScope as error:
        raise Http404(str(error)) from None
    if figure is None:
        raise Http404("nothing to draw")
    stem, benchmark = f"{address.benchmark.slug}-{what}", address.benchmark
    source = Source(request.get_host(), benchmark.titled, benchmark.slug, timezone.now())
    if shape == "svg":
        return as_file(sharing.card(figure, source), stem)
    response = HttpResponse(sharing.png(figure, source), content_type="image/png")
    response["Content-Disposition"] = f'inline; filename="{get_valid_filename(stem)}.png"'
    return response


@requires("read-public")
def plot(request: HttpRequest, name: str, what: str) -> HttpResponse:
    """A plot as an SVG file; 404 where there is none of this name, or nothing to draw."""
    if what not in PLOTS:
        raise Http404("no such plot")
    alone, takes = what != "correlation", PLOTS[what][1]
    return answered(request, lambda: _plot(request, name, what), takes=takes, named=name, alone=alone, by_role=True)


def _plot(request: HttpRequest, name: str, what: str) -> HttpResponse:
    if what not in PLOTS:
        raise Http404("no such plot")
    board, parameters, draw = PLOTS[what]
    address = read_address(request, f"leaderboard:{board}", name, parameters=parameters)
    try:
        svg = draw(address)
    except BadScope as error:
        raise Http404(str(error)) from None
    if not svg:
        raise Http404("nothing to draw")
    return as_file(svg, f"{address.benchmark.slug}-{what}")


def as_file(svg: SafeString, stem: str) -> HttpResponse:
    response = HttpResponse(drawing.standing_alone(svg), content_type="image/svg+xml")
    return attached(response, f"{get_valid_filename(stem)}.svg")
