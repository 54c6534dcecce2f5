"""Two models, or two judges, side by side."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.rules import requires
from judging.models import Run
from judging.runs.compare import CannotCompare, compare
from leaderboard.boards import seen
from leaderboard.boards.behind import votes_page
from leaderboard.boards.versus import board as two
from leaderboard.boards.versus import page as versus_page
from leaderboard.boards.versus.two_runs import build_two_runs
from leaderboard.kept.pages import prepared
from leaderboard.kept.values import until_changed
from leaderboard.lookups import known_models
from leaderboard.scope import DEFINITIONS, SAMPLES, BadScope, Scope, in_words
from leaderboard.show import pickers, provenance
from leaderboard.view import OF_PEOPLE, OF_VERDICTS, OF_VOTES, Address, judge_run, source_of
from leaderboard.views.frame import frame, of_benchmark, paged, table_files


@requires("read-public")
@prepared()
@of_benchmark("models-compare", *OF_VOTES, "a", "b", "page")
def models(request: HttpRequest, address: Address) -> HttpResponse:
    """Two models: a paired test, the interval of their difference, by level, and the samples where they differ."""
    source = source_of(address)
    scope = source.scope
    names = sorted((row.model for row in seen.models(scope).rows), key=str.casefold)
    a, b = address.params.get("a", ""), address.params.get("b", "")
    result = _kept(address, lambda: seen.two_models(scope, a, b)) if a and b else None
    selects = [
        *versus_page.side_selects(address, names),
        *pickers.verdict_selects(address, source),
    ]
    return _page(request, address, scope, "models", selects, result)


@requires("read-public")
@prepared("judge", "run")
@of_benchmark("judges-compare", *OF_VERDICTS, "a", "b", "page")
def judges(request: HttpRequest, address: Address) -> HttpResponse:
    """Two judges compared with people on the same items, and for researchers with each other: what is set otherwise,
    how far they agree, where they differ. The board's checkboxes send ``judge=run-3&judge=run-5``, a run's page
    ``run=3``.
    """
    ticked = request.GET.getlist("judge") or [f"run-{pk}" for pk in request.GET.getlist("run")]
    for side, run in zip(("a", "b"), ticked, strict=False):
        address.params.setdefault(side, run[:30])
    scope = address.scope()
    choices = versus_page.judge_choices(scope)
    runs = [judge_run(address.params.get(side, "")) for side in ("a", "b")]
    if len(ticked) > 2:
        raise BadScope("Choose two judges: this page compares two at a time.")
    first, second = runs
    beside = _beside(address, first, second)
    result = None
    try:
        result = _kept(address, lambda: seen.two_judges(scope, first, second)) if first and second else None
    except BadScope:
        if not beside:
            raise  # else one of them is on no board: it goes on, or was tried out
    selects = [
        *versus_page.side_selects(address, choices),
        *pickers.sample_selects(address),
        *pickers.people_selects(address, scope),
    ]
    return _page(request, address, scope, "judges", selects, result, **beside)


def _beside(address: Address, first: int, second: int) -> dict[str, Any]:
    """Two runs beside each other by the verdicts that the viewer may see one by one, or why they are not compared."""
    if not address.may("read-judging"):
        return {}
    runs = Run.objects.visible_to(address.viewer).filter(benchmark=address.benchmark, kind=Run.Kind.JUDGMENTS)
    found = runs.select_related("judge", "benchmark").in_bulk([first, second])
    if len(found) < 2:
        return {}
    try:
        beside = compare(found[first], found[second], viewer=address.viewer)
    except CannotCompare as error:
        return {"apart": str(error)}
    return {"beside": beside, "tables": build_two_runs(beside)}


def _kept(address: Address, make: Callable[[], two.Versus]) -> two.Versus:
    """Kept until something changes: comparisons are rare, but people page through them."""
    key = (address.page, address.name, address.staff, tuple(sorted(address.params.items())))
    return until_changed(key, make, benchmark=address.benchmark.pk)


def _page(
    request: HttpRequest,
    address: Address,
    scope: Scope,
    board: str,
    selects: list[Any],
    result: two.Versus | None,
    **more: Any,
) -> HttpResponse:
    sides = [select for select in selects if select.name in ("a", "b")]
    shown = selects if result or more else [select for select in selects if select not in sides]
    context = frame(request, address, board, shown) | {"found": result, "what": board, "sides": sides} | more
    context["hidden"] = address.kept("kind", "anchor")
    context["view"] = [(key, value) for key, value in address.params.items() if key not in ("a", "b", "page")]
    context["clear"] = address.link(**dict.fromkeys((*SAMPLES, *OF_PEOPLE, "page")))
    context["back"] = address.to(f"leaderboard:{board}", **address.view())
    if result is not None:
        table, held_back = versus_page.differing_items(result, scope, address)
        page, query = paged(request, address, table)
        known = known_models([result.a, result.b])
        rows = versus_page.rows(address, result, page.object_list, versus_page.yes_and_no(board, scope.kind))
        context |= {
            "page": page,
            "two": " against ".join(known.shown(name) for name in (result.a, result.b)),
            "versus": versus_page.build_versus_page(result),
            "rows": rows,
            "differ": len(table),
            "columns": versus_page.columns_in_words(result, board, scope.kind),
            "not_listed": held_back,
            "pictures": votes_page.has_pictures(rows),
            "query": query,
            "downloads": [
                *table_files("compare", address, rows="The measures"),
                *(table_files("compare", address, rows="By level", part="levels") if result.levels else []),
            ],
            "facts": provenance.runs_facts(result.runs, address.viewer),
            "defined": in_words(scope, *DEFINITIONS) if board == "models" else "",
        }
    return render(request, "leaderboard/versus.html", context)
