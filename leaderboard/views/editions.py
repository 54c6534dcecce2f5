"""Publishing an edition of a board that depends on hidden keys or weights."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.models import User
from accounts.rules import requires
from leaderboard.boards import editions
from leaderboard.hidden import hidden_split, newest_edition, rests_on_hidden
from leaderboard.pages import address as addresses
from leaderboard.pages.address import settings_in_words
from leaderboard.scope import BadScope
from leaderboard.views.frame import refused


@requires("publish")
@require_http_methods(["GET", "HEAD", "POST"])
def edition_new(request: HttpRequest, name: str) -> HttpResponse:
    """What an edition is, whose readings it counts, and the button that publishes it."""
    address = addresses.read(request, "leaderboard:models", name, parameters=("kind", "split"))
    try:
        scope = address.scope()
        if not rests_on_hidden(scope):
            raise BadScope("Nothing hidden is in this board: everybody sees it live.")
        runs = editions.runs_to_read(scope)
    except BadScope as error:
        return refused(request, address, error)
    board = address.to("leaderboard:models", **address.params)
    usual, problem = editions.usual_run(scope), ""
    if request.method == "POST":
        run_id = request.POST.get("run", "")
        run = next((candidate for candidate in runs if str(candidate.pk) == run_id), None)
        try:
            edition = editions.publish(
                benchmark=scope.benchmark, kind=scope.kind, split=scope.split, run=run, by=cast(User, request.user)
            )
        except editions.Refused as error:
            problem, usual = str(error), run
        else:
            messages.success(request, f"Edition {edition.number} is published.")
            return redirect(board)
    context = {
        "section": "leaderboards",
        "address": address,
        "benchmark": scope.benchmark,
        "kind_title": scope.kind.title,
        "split": hidden_split(scope),
        "last": newest_edition(scope),
        "runs": [(run, settings_in_words(run.protocol, run.settings)) for run in runs],
        "chosen": usual,
        "nobody": "none: answers that name no option count as such" if scope.kind.keyed else "people, mean",
        "problem": problem,
        "board": board,
    }
    return render(request, "leaderboard/edition-new.html", context, status=422 if problem else 200)
