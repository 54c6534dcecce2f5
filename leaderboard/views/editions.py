"""Publishing an edition of a board that depends on hidden inputs."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts.http import form_page, person
from accounts.rules import BY_NAME, requires
from judging.models import Run
from judging.protocols.in_words import settings_in_words
from leaderboard import editions
from leaderboard.editions.page import revealed_by
from leaderboard.hidden import hidden_split
from leaderboard.models import Edition
from leaderboard.pages.sealed import sealed_of
from leaderboard.scope import BadScope
from leaderboard.view import Address
from leaderboard.views.frame import of_benchmark


@requires("publish", of=BY_NAME)
@form_page
@of_benchmark("models", "kind", "split", "what")
def edition_new(request: HttpRequest, address: Address) -> HttpResponse:
    """What the next edition would tell, whose verdicts it counts, and the button that publishes it."""
    what = Edition.What.JUDGES if address.params.get("what") == Edition.What.JUDGES else Edition.What.MODELS
    sight = address.sight(what)
    scope = sight.scope
    if not sight.sealed:
        raise BadScope("Nothing hidden is in this board: everybody sees it live.")
    runs = [] if what == Edition.What.JUDGES else editions.runs_to_read(scope)
    board = address.to(f"leaderboard:{what}", **address.view(("kind", "split")))
    asked = request.POST.get("run") if request.method == "POST" else request.GET.get("run")
    run: Run | None = next((run for run in runs if str(run.pk) == asked), None)
    if asked is None and runs:
        run = editions.usual_run(scope)
    view: dict[str, Any] = {"benchmark": scope.benchmark, "kind": scope.kind, "split": scope.split, "run": run}
    view["judges"] = what == Edition.What.JUDGES
    problem, draft = _published(request, view) if request.method == "POST" else "", None
    if problem is None:
        return redirect(board)
    try:
        draft = editions.draft(**view)
    except editions.Refused as error:
        problem = str(error)
    last = sight.edition
    context = {
        "section": "leaderboards",
        "address": address,
        "benchmark": scope.benchmark,
        "what": what,
        "kind": scope.kind,
        "split": hidden_split(scope),
        "last": last,
        "runs": [(run, settings_in_words(run.protocol, run.settings)) for run in runs],
        "chosen": run,
        "draft": draft,
        "number": last.number + 1 if last else 1,
        "revealed": revealed_by(draft) if draft else None,
        "sealed": sealed_of(scope.benchmark),
        "refused": problem,
        "problem": problem or (draft.problem if draft else ""),
        "board": board,
        "view": [(key, value) for key, value in address.view(("kind", "split", "what")).items() if value],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "leaderboard/edition-new.html", context, status=status)


def _published(request: HttpRequest, view: dict[str, Any]) -> str | None:
    """Why it was not published; None where it was."""
    try:
        edition = editions.publish(**view, by=person(request))
    except editions.Refused as error:
        return str(error)
    messages.success(request, f"Edition {edition.number} is published.")
    return None
