"""Plots: two pages of their own (win rates of pairs, profiles of models), and every plot as a file."""

from collections.abc import Callable, Sequence

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.text import get_valid_filename

from accounts.rules import requires
from leaderboard import boards, queries
from leaderboard.boards import cached, standin
from leaderboard.boards.pairs import PairsBoard
from leaderboard.definitions import JUDGED
from leaderboard.pages import address as addresses
from leaderboard.pages import agreement as agreement_page
from leaderboard.pages import bias as bias_page
from leaderboard.pages import correlation as correlation_page
from leaderboard.pages import judges as judges_page
from leaderboard.pages import marks, plots, provenance
from leaderboard.pages import matrix as matrix_page
from leaderboard.pages import models as models_page
from leaderboard.pages import profile as profile_page
from leaderboard.pages import snapshots as snapshots_page
from leaderboard.pages import standin as standin_page
from leaderboard.pages.address import Address
from leaderboard.scope import BadScope
from leaderboard.view import OF_VERDICTS, OF_VOTES
from leaderboard.views.frame import board_page, frame, table_files

OF_MODELS = (*OF_VOTES, "elo", "depth", *models_page.FILTERS, *profile_page.SIDES)
OF_JUDGES = (*OF_VERDICTS, *JUDGED, "metric", "reference", "sort", "who", "all", "page")


@requires("read-public")
def matrix(request: HttpRequest, name: str) -> HttpResponse:
    """How often each model won against each other one."""
    return board_page(request, "matrix", name, parameters=(*OF_VOTES, *matrix_page.BLOCKS), main=_matrix)


def _matrix(request: HttpRequest, address: Address) -> str:
    source = addresses.source_of(address)
    board = matrix_page.board_of(address, source.scope)
    selects = [*addresses.verdict_selects(address, source), *matrix_page.selects(address, board)]
    context = frame(request, address, "models", selects)
    context |= {"views": addresses.view_segments(address), "note": source.note, "scale": marks.heat_scale()}
    if board.of:
        context |= {
            "page": matrix_page.page_of(address, source.scope, board),
            "reading": matrix_page.READING,
            "plot": plot_link(address, "matrix"),
            "facts": provenance.source_facts(source.scope, board, address.viewer),
        }
    return render_to_string("leaderboard/matrix.html", context, request)


@requires("read-public")
def profile(request: HttpRequest, name: str) -> HttpResponse:
    """Up to four models, level by level."""
    return board_page(request, "profile", name, parameters=(*OF_VOTES, "depth", *profile_page.SIDES), main=_profile)


def _profile(request: HttpRequest, address: Address) -> str:
    source = addresses.source_of(address)
    board = cached(source.scope, "models", boards.models)
    selects = [
        *(profile_page.selects(address, board) if board.rows else []),
        *addresses.verdict_selects(address, source),
    ]
    context = frame(request, address, "models", selects)
    context |= {"views": addresses.view_segments(address), "kinds": addresses.kind_segments(address)}
    context["note"] = source.note
    if board.rows:
        page = profile_page.page_of(address, source.scope, board)
        context |= {
            "page": page,
            "reading": profile_page.reading(page),
            "plot": plot_link(address, "profile"),
            "facts": provenance.source_facts(source.scope, board, address.viewer),
        }
    return render_to_string("leaderboard/profile.html", context, request)


@requires("read-public")
def together(request: HttpRequest, name: str) -> HttpResponse:
    """Each model by people alone, and by people with a judge."""
    return board_page(request, "together", name, parameters=OF_VOTES, main=_together)


def _together(request: HttpRequest, address: Address) -> str:
    scope = address.scope()
    run = standin.run_beside(scope)
    board = standin.together(scope, run) if run is not None else None
    judges = [standin_page.judge_select(scope, run)] if run is not None else []
    selects = [*judges, *addresses.sample_selects(address), *addresses.people_selects(address, scope)]
    context = frame(request, address, "models", selects)
    context |= {"views": addresses.view_segments(address), "kinds": addresses.kind_segments(address)}
    if board is not None and any(row.people.value is not None for row in board.rows):
        context["table"] = standin_page.table_of(address, scope, board)
        context |= {"together": board, "measure": scope.kind.shape.main.label}
        context["reading"] = standin_page.READING
        context["facts"] = provenance.runs_facts(board.runs, address.viewer)
        context["downloads"] = table_files("people-and-judge", address, run=str(run))
    return render_to_string("leaderboard/together.html", context, request)


# ---- plots as files ----


def plot_link(address: Address, what: str) -> str:
    """Where the plot of this view is, as a file."""
    return address.to("leaderboard:plot", what, **address.params)


def _forest(address: Address) -> SafeString:
    scope = addresses.source_of(address).scope
    board = models_page.shown_of(address, cached(scope, "models", boards.models)).board
    if not isinstance(board, PairsBoard):
        raise BadScope("Only boards of pairs have ratings.")
    ratings = models_page.Ratings.of(board, boards.rated_otherwise(scope, board))
    return models_page.forest(board, scope.anchor, ratings)


def _matrix_plot(address: Address) -> SafeString:
    scope = addresses.source_of(address).scope
    board = matrix_page.board_of(address, scope)
    if not board.of:
        return SafeString()
    page = matrix_page.page_of(address, scope, board)
    title = f"Wins of the row against the column, %: {address.benchmark.title}"
    return plots.heatmap(page.others, page.heat, title=title, low="0", high="100")


def _profile_plot(address: Address) -> SafeString:
    scope = addresses.source_of(address).scope
    board = cached(scope, "models", boards.models)
    return profile_page.page_of(address, scope, board).plot if board.rows else SafeString()


def _judges(address: Address) -> SafeString:
    scope = address.scope()
    board = cached(scope, "judges", boards.judges)
    if not board.rows:
        return SafeString()
    page = judges_page.page_of(address, board, kind=scope.kind)
    if not page.heat:
        return SafeString()
    title = f"{page.metric_label} of judges with people: {address.benchmark.title}"
    names = [name or "No level" for name in page.levels]
    return plots.heatmap(names, page.heat, title=title, low=page.heat_low, high=page.heat_high)


def _agreement(address: Address) -> SafeString:
    board = cached(address.scope(), "agreement", boards.agreement_of)
    if not board.rows:
        return SafeString()
    page = agreement_page.page_of(address, board, single=queries.sees_labels(address.viewer))
    title = f"{page.metric_label} of every two: {address.benchmark.title}"
    names = [agreement_page.short_name(name) for name, _ in page.heat]
    return plots.heatmap(names, page.heat, title=title, low=page.heat_low, high=page.heat_high)


def _correlation(address: Address) -> SafeString:
    board = queries.correlated(address.scope(), address.viewer)
    if not board.rows:
        return SafeString()
    rows = correlation_page.page_of(board).heat
    title = f"Spearman's correlation of rankings: {address.benchmark.title}"
    return plots.heatmap([name for name, _ in rows], rows, title=title, low="−1", high="1")


def _bias(address: Address) -> SafeString:
    board = cached(address.scope(), "bias", boards.bias_of)
    return bias_page.plot_of(board, address.params.get("metric", ""), address.kind) if board.rows else SafeString()


def _history(address: Address) -> SafeString:
    return snapshots_page.plot_of(snapshots_page.line_of(address), links=False)


Draw = Callable[[Address], SafeString]
# By the plot's name: the page whose view it is drawn of, what an address may say of that, and who draws it.
PLOTS: dict[str, tuple[str, Sequence[str], Draw]] = {
    "forest": ("models", OF_MODELS, _forest),
    "matrix": ("matrix", (*OF_MODELS, *matrix_page.BLOCKS), _matrix_plot),
    "profile": ("profile", OF_MODELS, _profile_plot),
    "judges": ("judges", OF_JUDGES, _judges),
    "agreement": ("agreement", OF_JUDGES, _agreement),
    "bias": ("bias", OF_JUDGES, _bias),
    "correlation": ("correlation", OF_JUDGES, _correlation),
    "history": ("snapshot-list", ("of", "entry"), _history),
}


@requires("read-public")
def plot(request: HttpRequest, name: str, what: str) -> HttpResponse:
    """A plot as an SVG file; 404 where there is none of this name, or nothing to draw."""
    if what not in PLOTS:
        raise Http404("no such plot")
    board, parameters, draw = PLOTS[what]
    address = addresses.read(request, f"leaderboard:{board}", name, parameters=parameters)
    try:
        svg = draw(address)
    except BadScope as error:
        raise Http404(str(error)) from None
    if not svg:
        raise Http404("nothing to draw")
    return as_file(svg, f"{address.benchmark.slug}-{what}")


def as_file(svg: SafeString, stem: str) -> HttpResponse:
    response = HttpResponse(plots.standing_alone(svg), content_type="image/svg+xml")
    response["Content-Disposition"] = f'attachment; filename="{get_valid_filename(stem)}.svg"'
    return response
