"""What the pages of one benchmark share: heading, tabs, controls, and their cache."""

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from accounts.rules import allowed, role_of
from bank.intake import parquet
from leaderboard import queries
from leaderboard.boards import Board
from leaderboard.cache import until_changed
from leaderboard.definitions import JUDGED
from leaderboard.hidden import Withheld, is_kept_back
from leaderboard.pages import address as addresses
from leaderboard.pages.address import Address
from leaderboard.scope import BadScope, Scope
from leaderboard.tables import TABLES
from leaderboard.view import OF_VERDICTS, OF_VOTES, PEOPLE, SAMPLES

TABS = (
    ("Overview", "benchmark"),
    ("Models", "models"),
    ("Judges", "judges"),
    ("Agreement", "agreement"),
    ("Bias", "bias"),
    ("Correlation", "correlation"),
)


def board_page(
    request: HttpRequest,
    board: str,
    name: str,
    *,
    parameters: Sequence[str],
    main: Callable[[HttpRequest, Address], str],
) -> HttpResponse:
    """A board with its frame. The HTML from ``main`` is kept until something changes that it may show."""
    page = f"leaderboard:{board}"
    address = addresses.read(request, page, name, parameters=parameters)
    query = tuple(sorted((key, value) for key, value in request.GET.items() if key in parameters))
    try:
        html = until_changed(
            (page, name, role_of(request.user), query),
            lambda: main(request, address),
            benchmark=None if board == "correlation" else address.benchmark.pk,  # that one is about others, too
        )
    except BadScope as error:
        return refused(request, address, error)
    heading = f"{board.capitalize()} on {address.benchmark.title}"
    context = {"section": "leaderboards", "heading": heading, "main": mark_safe(html)}  # noqa: S308 (from templates)
    return render(request, "leaderboard/board.html", context)


def frame(request: HttpRequest, address: Address, board: str, selects: list[addresses.Select]) -> dict[str, Any]:
    """Heading, tabs and controls."""
    names = {select.name for select in selects}
    in_sight, more = addresses.folded(selects)
    kept_along = {"kind", "sort", "all", "anchor", "depth"} - names
    return {
        "section": "leaderboards",
        "address": address,
        "benchmark": address.benchmark,
        "versions": queries.versions_of(address.benchmark, request.user),
        "counts": _counts_of(address),
        "current": board,
        "tabs": [
            (label, page, address.to(f"leaderboard:{page}", **address.view((*SAMPLES, *PEOPLE))))
            for label, page in TABS
        ],
        "selects": in_sight,
        "more": more,
        "hidden": [(name, value) for name, value in address.params.items() if name in kept_along],
        "filtered": any(select.on for select in selects),
        "clear": reverse(address.page, args=[address.name]),
        "compare_link": _compare_link(address, board),
        "snapshots_link": address.to("leaderboard:snapshot-list"),
        "may_import": allowed(request.user, "write-judging"),
    }


def _compare_link(address: Address, board: str) -> str:
    if board not in ("models", "judges"):
        return ""
    try:
        scope = Scope(address.benchmark, address.kind, staff=address.staff)
    except BadScope:  # of a page that says so
        return ""
    if is_kept_back(scope):
        return ""
    names = OF_VOTES if board == "models" else OF_VERDICTS
    return address.to(f"leaderboard:{board}-compare", **address.view(names))


def _counts_of(address: Address) -> queries.BenchmarkCounts:
    benchmark, staff = address.benchmark, address.staff
    key = ("counts", benchmark.pk, staff)
    return until_changed(key, lambda: queries.benchmark_counts([benchmark], address.viewer)[0], benchmark=benchmark.pk)


def fragment(template: str, address: Address, context: dict[str, Any]) -> SafeString:
    """A board as HTML."""
    return mark_safe(render_to_string(template, {"address": address} | context))  # noqa: S308 (from templates)


def downloads(board_name: str, address: Address, scope: Scope, board: Board) -> list[tuple[str, str, str]]:
    """The rows as the API gives them, under the view of this page: (label, link, file name)."""
    view = address.params | {"source": scope.source, "run": str(scope.run or "")}
    names = (*OF_VOTES, "elo") if board_name == "models" else (*OF_VERDICTS, *JUDGED)
    view["kind"] = scope.kind.in_address or ""
    query = {"benchmark": str(scope.benchmark)} | {name: view[name] for name in names if view.get(name)}
    base = reverse(f"api-leaderboard-{board_name}")
    stem = f"{scope.benchmark.slug}-{board_name}-{board.data}"
    files = [
        (f"These rows as {shape.upper()}", f"{base}?{urlencode(query | {'format': shape})}", f"{stem}.{shape}")
        for shape in ("csv", "json")
    ]
    if parquet.available():
        link = address.to("leaderboard:board-file", board_name, "parquet", **{name: view.get(name) for name in names})
        files.append(("These rows as Parquet", link, f"{stem}.parquet"))
    return files


def table_files(
    name: str, address: Address, *, rows: str = "These rows", **parameters: str
) -> list[tuple[str, str, str]]:
    """A table under this page's address, as the API gives it: (label, link, file name).

    ``rows`` is what the menu calls it. ``parameters`` are the table's own, or replace those of the page.
    """
    table = TABLES[name]
    view = address.params | {"kind": address.kind.name} | parameters
    query = {"benchmark": str(address.benchmark)}
    query |= {key: view[key] for key in (*table.view, *table.takes) if view.get(key)}
    base = reverse(f"api-leaderboard-{name}")
    stem = "-".join(filter(None, (address.benchmark.slug, name, parameters.get("part"))))
    return [
        (f"{rows} as {shape.upper()}", f"{base}?{urlencode(query | {'format': shape})}", f"{stem}.{shape}")
        for shape in ("csv", "json")
    ]


def refused(request: HttpRequest, address: Address, error: BadScope) -> HttpResponse:
    """The requested view does not exist, or not for this viewer; the message says what exists."""
    title = "Only staff see this view" if isinstance(error, Withheld) else "This view does not exist"
    context = frame(request, address, address.page.removeprefix("leaderboard:"), [])
    context |= {"problem": str(error), "title": title}
    return render(request, "leaderboard/refused.html", context, status=400)
