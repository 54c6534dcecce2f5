"""What the pages of one benchmark share: heading, tabs, controls, and their cache."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from accounts.http import page_of
from accounts.rules import allowed
from bank.intake import parquet
from leaderboard.benchmarks import BenchmarkCounts, benchmark_counts, versions_of
from leaderboard.boards.base import Board
from leaderboard.boards.standing import rounds_beside_people, rounds_of
from leaderboard.hidden import of_one_source, sealed_items, unseen_runs
from leaderboard.kept.values import until_changed
from leaderboard.registry import TABLES
from leaderboard.scope import CLOSED, SAMPLES, BadScope, Scope
from leaderboard.show import pickers
from leaderboard.show.table import SHOW, Chooser, Table
from leaderboard.sight import Sight, Withheld
from leaderboard.view import OF_PEOPLE, OF_VERDICTS, OF_VOTES, Address, read_address
from stats.figures import listed, number_of

TABS = (
    ("Overview", "benchmark"),
    ("Models", "models"),
    ("Judges", "judges"),
    ("Agreement", "agreement"),
    ("Bias", "bias"),
    ("Go together", "correlation"),
)


def frame(request: HttpRequest, address: Address, board: str, selects: list[pickers.Select]) -> dict[str, Any]:
    """Heading, tabs and controls."""
    names = {select.name for select in selects}
    in_sight, more = pickers.folded(selects)
    page = address.page.removeprefix("leaderboard:")
    kept_along = {"kind", "sort", "all", "anchor", "depth", SHOW} - names
    return {
        "section": "leaderboards",
        "address": address,
        "benchmark": address.benchmark,
        "versions": versions_of(address.benchmark, request.user),
        "counts": _counts_of(address),
        "current": board,
        "tabs": [
            (label, page, address.to(f"leaderboard:{page}", **address.view((*SAMPLES, *OF_PEOPLE))))
            for label, page in TABS
        ],
        "kinds": pickers.kind_segments(address) if page in pickers.SWITCHED else [],
        "views": pickers.view_segments(address) if page in pickers.WAYS else [],
        "selects": in_sight,
        "more": more,
        "printed": _as_printed(address, names),
        "beyond": _beyond_visitors(address, board),
        "hidden": address.kept(*sorted(kept_along)),
        "filtered": any(select.on for select in selects),
        "clear": reverse(address.page, args=[address.name]),
        "compare_link": _compare_link(address, board),
        "snapshots_link": address.to("leaderboard:snapshot-list"),
        "may_import": allowed(request.user, "write-judging"),
    }


def _as_printed(address: Address, names: set[str]) -> tuple[str, str]:
    """The paper whose way to count this board can take, and the link that counts so."""
    kind = address.kind
    if not kind.printed or not set(kind.printed) <= names:
        return "", ""
    return kind.paper, address.to(address.page, **(address.params | dict(kind.printed)))


def _beyond_visitors(address: Address, board: str) -> str:
    """What the figures of a live board count for staff and those of visitors do not, or not always, in words; "" for
    nothing.
    """
    if not address.staff or board in ("benchmark", "snapshots"):
        return ""
    runs, items = unseen_runs(address.benchmark, staff=False), sealed_items(address.benchmark)
    here = address.benchmark.runs.filter(pk__in=runs).count()
    parts = [f"leave out {number_of(here, 'run')}"] if here else []
    of_items = number_of(len(items), "item")
    if items:
        which = f"{of_items} of hidden splits or campaigns under way"
        parts.append(f"count {which} as a whole and as of their last closed state, or leave them out")
    return listed(parts)


def standing_of(address: Address, scope: Scope, *, beside_people: bool = False) -> dict[str, Any]:
    """As of when a board of the view stands below staff, where judges are compared with people or not; for staff, the
    way to the other state: the one that everybody sees, or the one with open rounds.
    """
    public = replace(scope, staff=False, pseudonyms=False)
    rounds = rounds_beside_people(public) if beside_people else rounds_of(of_one_source(public))
    live = address.staff
    other = address.link(state=CLOSED if live else None) if rounds.items and address.may("read-hidden") else ""
    return {"rounds": rounds, "rounds_shown_live": live, "rounds_other": other}


LONG = 12  # rows from which a table can be filtered by their names


def beside_filters(table: Table, chooser: Chooser | None, *, rows: str, told: bool = False) -> dict[str, Any]:
    """What stands beside the filters and changes only what is shown. ``rows``: what they are; ``told``: whether tests
    tell them apart.
    """
    count = len(table.rows)
    return {"typed": f"{count} {rows}" if count >= LONG else "", "chooser": chooser, "told": told}


def _compare_link(address: Address, board: str) -> str:
    if board not in ("models", "judges"):
        return ""
    try:
        scope = Scope(address.benchmark, address.kind, staff=address.staff)
    except BadScope:  # of a page that says so
        return ""
    if Sight(scope).only_editions:
        return ""
    names = OF_VOTES if board == "models" else OF_VERDICTS
    return address.to(f"leaderboard:{board}-compare", **address.view(names))


def _counts_of(address: Address) -> BenchmarkCounts:
    benchmark, staff = address.benchmark, address.staff
    key = ("counts", benchmark.pk, staff)
    return until_changed(key, lambda: benchmark_counts([benchmark], address.viewer)[0], benchmark=benchmark.pk)


def fragment(template: str, address: Address, context: dict[str, Any]) -> SafeString:
    """A board as HTML."""
    return mark_safe(render_to_string(template, {"address": address} | context))  # noqa: S308 (from templates)


File = tuple[str, str, str]  # label, link, file name


def downloads(name: str, address: Address, scope: Scope, board: Board[Any]) -> list[File]:
    """The rows of a board as the API gives them, under the view of this page, and as Parquet."""
    view = {"source": scope.source, "run": str(scope.run or ""), "kind": scope.kind.in_address or ""}
    files = table_files(name, address, data=board.data, **view)
    if parquet.available():
        asked = {name: value for name, value in (address.params | view).items() if name in (*OF_VOTES, "elo")}
        link = address.to("leaderboard:board-file", name, "parquet", **asked)
        files.append(("These rows as Parquet", link, f"{scope.benchmark.slug}-{name}-{board.data}.parquet"))
    return files


def table_files(
    name: str, address: Address, *, rows: str = "These rows", data: str = "", **parameters: str
) -> list[File]:
    """A table under this page's address, as the API gives it. ``rows``: what the menu calls it; ``data``: a fingerprint
    in its file's name. ``parameters`` are the table's own, or replace those of the page.
    """
    table = TABLES[name]
    view = address.params | {"kind": address.kind.name} | parameters
    query = {"benchmark": str(address.benchmark)}
    query |= {key: view[key] for key in (*table.view, *table.takes) if view.get(key)}
    base = reverse(f"api-leaderboard-{name}")
    stem = "-".join(filter(None, (address.benchmark.slug, name, parameters.get("part"), data)))
    return [
        (f"{rows} as {shape.upper()}", f"{base}?{urlencode(query | {'format': shape})}", f"{stem}.{shape}")
        for shape in ("csv", "json")
    ]


PAGE = 50  # rows


def paged(request: HttpRequest, address: Address, rows: Any, size: int = PAGE) -> tuple[Page[Any], str]:
    """The rows of the page that is asked for, and what its links to other pages say of the view."""
    others = {name: value for name, value in address.params.items() if name != "page"}
    return page_of(request, rows, size), urlencode(others)


def refused(request: HttpRequest, address: Address, error: BadScope) -> HttpResponse:
    """The requested view does not exist, or not for this viewer; the message says what exists."""
    title = "Only staff see this view" if isinstance(error, Withheld) else "This view does not exist"
    usual = replace(address, params={})  # what it asks for may be no kind of board at all
    context = frame(request, usual, address.page.removeprefix("leaderboard:"), [])
    context |= {"problem": str(error), "title": title}
    return render(request, "leaderboard/refused.html", context, status=400)


Shown = Callable[..., HttpResponse]


def of_benchmark(page: str, *parameters: str) -> Callable[[Shown], Shown]:
    """The page of a benchmark, which gets its address. A view of it that there is none of is refused in words."""

    def declare(view: Shown) -> Shown:
        @wraps(view)
        def answer(request: HttpRequest, name: str, **rest: Any) -> HttpResponse:
            here = f"leaderboard:{page.format(**rest)}"
            address = read_address(request, here, name, parameters=parameters)
            try:
                return view(request, address, **rest)
            except BadScope as error:
                return refused(request, address, error)

        answer.parameters = parameters  # type: ignore[attr-defined]
        return answer

    return declare
