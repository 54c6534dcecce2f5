"""The half that a benchmark holds out: drawing it, and asking for a judge's figures on it."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.models import User
from accounts.rules import requires
from bank.errors import BadInput
from leaderboard import actions
from leaderboard.boards.held_out import releases
from leaderboard.hidden import held_out_in
from leaderboard.models import HeldOutRelease
from leaderboard.pages import address as addresses
from leaderboard.pages.address import settings_in_words
from leaderboard.pages.held_out import table_of
from leaderboard.views.frame import table_files


@requires("publish")
@require_http_methods(["GET", "HEAD", "POST"])
def held_out(request: HttpRequest, name: str) -> HttpResponse:
    """Whether a half is held out, who asked for what of it, and the button that draws it or asks."""
    address = addresses.read_address(request, "leaderboard:judges", name, parameters=())
    problem = _done(request, str(address.benchmark)) if request.method == "POST" else ""
    if problem is None:
        return redirect("leaderboard:held-out", name)
    told = releases(address.benchmark)
    context = {
        "section": "leaderboards",
        "benchmark": address.benchmark,
        "board": address.link(),
        "half": getattr(address.benchmark, "held_out_half", None),
        "samples": len(held_out_in(address.benchmark)),
        "told": told,
        "table": table_of(told),
        "runs": [
            (run, settings_in_words(run.protocol, run.settings)) for run in actions.compared_runs(address.benchmark)
        ],
        "downloads": table_files("held-out", address, rows="All metrics") if told else [],
        "problem": problem,
    }
    return render(request, "leaderboard/held-out.html", context, status=422 if problem else 200)


def _done(request: HttpRequest, benchmark: str) -> str | None:
    """What is wrong with what was sent; None where it was done."""
    asked = actions.HeldOutIn(
        data={"benchmark": benchmark} | {key: request.POST[key] for key in ("draw", "run") if key in request.POST}
    )
    if not asked.is_valid():
        return str(next(iter(asked.errors.values()))[0])
    try:
        made = actions.hold_out(**asked.validated_data, by=cast(User, request.user))
    except BadInput as error:
        return str(error)
    words = f"Request {made.number} is answered." if isinstance(made, HeldOutRelease) else "A half is held out."
    messages.success(request, words)
    return None
