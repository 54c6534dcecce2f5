"""Frozen views: making one, its page and files, the history of a benchmark's, and what changed between two."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts import jobs
from accounts.http import done, person
from accounts.models import User
from accounts.rules import BY_NAME, class_of, requires
from bank.models import Benchmark
from leaderboard.boards.standing import state_of
from leaderboard.frozen import actions
from leaderboard.frozen import page as snapshots_page
from leaderboard.kept.pages import is_large, prepared
from leaderboard.kept.values import until_changed
from leaderboard.models import Snapshot
from leaderboard.pages import benchmark as benchmark_page
from leaderboard.registry import BOARDS
from leaderboard.scope import BadScope
from leaderboard.show import files
from leaderboard.view import OF_VOTES, Address, board_scope
from leaderboard.views import boards as boards_views
from leaderboard.views.frame import frame, of_benchmark
from leaderboard.views.gone import gone

NOW = "now"  # in place of a snapshot's code


@requires("freeze-views", of=BY_NAME)
@require_POST
@of_benchmark("{what}", *OF_VOTES, "elo")
def snapshot_new(request: HttpRequest, address: Address, what: str) -> HttpResponse:
    """Freeze the public view that the address names, and go to it; the same view of the same data is one snapshot. Over
    many verdicts a job does it, and the list of snapshots shows it then.
    """
    if what not in BOARDS:
        raise Http404("no such board")
    benchmark, by = address.benchmark, person(request)
    if is_large(benchmark.pk):
        jobs.defer("freeze", benchmark=benchmark.pk, what=what, params=address.params, by=by.pk)
        words = "The view is being frozen. It stands here as soon as it is."
        return done(request, words, "leaderboard:snapshot-list", address.name)
    return redirect("leaderboard:snapshot-detail", _frozen(address, what, by).code)


def _frozen(address: Address, what: str, by: User) -> Snapshot:
    scope = replace(board_scope(address, what), staff=False)
    board = BOARDS[what](scope)
    view = address.params | ({"kind": scope.kind.name} if what != "agreement" else {})
    if scope.run is not None:
        view["run"] = str(scope.run)
    elif what == "models":
        view["source"] = scope.source
    return actions.freeze(what=what, scope=scope, view=view, board=board, by=by)


def freeze(benchmark: int, what: str, params: dict[str, str], by: int) -> None:
    """The job that freezes a view, unless there is no such view any more."""
    viewer, found = User.objects.get(pk=by), Benchmark.objects.get(pk=benchmark)
    with suppress(BadScope):
        _frozen(Address(viewer, f"leaderboard:{what}", str(found), found, params), what, viewer)


def _found(request: HttpRequest, code: str) -> Snapshot:
    return get_object_or_404(Snapshot.objects.visible_to(request.user).select_related("benchmark", "by"), code=code)


@requires("read-public")
def snapshot_detail(request: HttpRequest, code: str) -> HttpResponse:
    """A frozen view: its rows, what made them, and files; printable."""
    if request.GET.get("view") in ("beside", "moved"):
        return gone(request, "beside-today", code=code, other=NOW)
    return _snapshot(request, code)


@prepared()
def _snapshot(request: HttpRequest, code: str) -> HttpResponse:
    snapshot = _found(request, code)
    snapshots = Snapshot.objects.visible_to(request.user).filter(benchmark=snapshot.benchmark, what=snapshot.what)
    others = [other for other in snapshots if other.pk != snapshot.pk and snapshots_page.same_view(other, snapshot)]
    live = _live(request, snapshot)
    now = _as_of_now(live, snapshot)
    made = snapshots_page.made_of(snapshot)
    title = snapshots_page.title_of(snapshot)
    permalink = request.build_absolute_uri(request.path)
    context = {
        "section": "leaderboards",
        "snapshot": snapshot,
        "title": title,
        "board": boards_views.frozen(live, snapshot, made),
        "table": snapshots_page.rows_table(snapshot),
        "aside": snapshot.what == "models",
        "is_there": now is not None,
        "changed": len(snapshots_page.changes(snapshot, now)) if now else 0,
        "causes": snapshots_page.causes(snapshot, now, live) if now else [],
        "same_data": now is not None and now.fingerprint == snapshot.fingerprint,
        "citations": snapshots_page.citations(snapshot, title, permalink),
        "made": made,
        "notes": snapshot.made_from.get("notes", []),
        "others": others,
        "live": live.link(),
        "shapes": files.offered(),
    }
    return render(request, "leaderboard/snapshot.html", context)


@requires("read-public")
@require_safe
@prepared(by_role=True)
@of_benchmark("benchmark")
def leads(request: HttpRequest, address: Address) -> HttpResponse:
    """Who leads on a benchmark, which judge is nearest to people, and what moved since its newest snapshot: a row of
    the index, which loads it.
    """

    def drawn() -> str:
        page = benchmark_page.build_benchmark_page(address)
        frozen = Snapshot.objects.visible_to(request.user).filter(benchmark=address.benchmark, what="models")
        newest = frozen.order_by("-pk").first()
        now = _as_of_now(_live(request, newest), newest) if newest else None
        changed = len(snapshots_page.changes(newest, now)) if newest and now else 0
        context = {"entry": page.entry, "snapshot": newest, "changed": changed}
        return render_to_string("leaderboard/_leads.html", context)

    key = ("leads", address.name, class_of(request.user))
    return HttpResponse(until_changed(key, drawn, benchmark=address.benchmark.pk))


@requires("read-public")
def snapshot_file(request: HttpRequest, code: str, shape: str) -> HttpResponse:
    """The rows of a snapshot as a file; JSON holds what made them, too."""
    snapshot = _found(request, code)
    stem = f"{snapshot.benchmark.slug}-{snapshot.what}-{snapshot.code}"
    if shape == "json":
        return files.as_json(snapshots_page.as_json(snapshot), stem)
    return files.answer(snapshot.rows, shape, stem)


@requires("read-public")
@prepared()
@of_benchmark("snapshot-list", "of", "entry")
def snapshot_list(request: HttpRequest, address: Address) -> HttpResponse:
    """The snapshots of a benchmark, and one model or judge over those of one view."""
    line = snapshots_page.line_of(address)
    selected = line.chosen
    context: dict[str, Any] = frame(request, address, "", []) | {
        "snapshots": [(snapshot, snapshots_page.title_of(snapshot)) for snapshot in line.every],
        "chosen": selected,
    }
    if selected is not None:
        context |= {"entries": snapshots_page.entries_of(selected), "entry": line.entry}
        context |= {"history": snapshots_page.history(line), "plot": snapshots_page.plot_of(line)}
        context["plot_link"] = address.to("leaderboard:plot", "history", of=selected.code, entry=line.entry)
        context["chosen_title"] = snapshots_page.title_of(selected)
    return render(request, "leaderboard/snapshots.html", context)


def _live(request: HttpRequest, snapshot: Snapshot) -> Address:
    """The view that was frozen, as it is now."""
    page, benchmark = f"leaderboard:{snapshot.what}", snapshot.benchmark
    return Address(request.user, page, str(benchmark), benchmark, dict(snapshot.scope))


def _as_of_now(live: Address, snapshot: Snapshot) -> Snapshot | None:
    """What the frozen view would be if it were frozen now; None where there is no such view any more."""
    try:
        scope = replace(board_scope(live, snapshot.what), staff=False)
        board = BOARDS[snapshot.what](scope)
    except BadScope:
        return None
    if not board.rows:
        return None
    return actions.as_of_now(what=snapshot.what, scope=scope, view=snapshot.scope, board=board)


@requires("read-public")
@prepared()
def snapshot_changes(request: HttpRequest, code: str, other: str) -> HttpResponse:
    """What changed from one snapshot to another of the same board, or to ``now``."""
    before = _found(request, code)
    live = _live(request, before)
    now = _as_of_now(live, before) if other == NOW else None
    after = now or _found(request, other)
    if (before.what, before.benchmark.slug) != (after.what, after.benchmark.slug):
        raise Http404("snapshots of different boards")
    context = {
        "section": "leaderboards",
        "before": before,
        "after_link": reverse("leaderboard:snapshot-detail", args=[after.code]) if after.pk else live.link(),
        "after": after,
        "title": snapshots_page.title_of(after),
        "rows": snapshots_page.changes(before, after),
        "causes": snapshots_page.causes(before, after, live),
        "same_data": after.fingerprint == before.fingerprint,
    }
    return render(request, "leaderboard/snapshot-changes.html", context)


@requires("read-public")
@prepared(by_role=True)
@of_benchmark("{what}", *OF_VOTES, "elo")
def board_file(request: HttpRequest, address: Address, what: str, shape: str) -> HttpResponse:
    """The rows of a board's view as a file."""
    if what not in BOARDS:
        raise Http404("no such board")
    scope = board_scope(address, what)
    board = BOARDS[what](scope)
    state = state_of(scope, what)
    return files.answer(
        [row | state for row in board.as_json()], shape, f"{address.benchmark.slug}-{what}-{board.data}"
    )
