"""The half that a benchmark holds out: drawing it, and asking for a judge's figures on it."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.http import done, form_page, person
from accounts.rules import BY_NAME, requires
from bank.views.common import faults_in
from judging.protocols.in_words import settings_in_words
from leaderboard.held_out import actions
from leaderboard.held_out.board import releases
from leaderboard.held_out.page import table_of
from leaderboard.hidden import held_out_in
from leaderboard.models import HeldOutRelease
from leaderboard.view import Address
from leaderboard.views.forms import HeldOutForm
from leaderboard.views.frame import of_benchmark, table_files


@requires("publish", of=BY_NAME)
@form_page
@of_benchmark("judges")
def held_out(request: HttpRequest, address: Address) -> HttpResponse:
    """Whether a half is held out, who asked for what of it, and the button that draws it or asks."""
    benchmark = address.benchmark
    form = HeldOutForm(request.POST.dict() | {"benchmark": str(benchmark)} if request.method == "POST" else None)
    if form.is_valid():
        with faults_in(form):
            made = actions.hold_out(**form.cleaned_data, by=person(request))
            told = f"Request {made.number} is answered." if isinstance(made, HeldOutRelease) else "A half is held out."
            return done(request, told, "leaderboard:held-out", address.name)
    told_before = releases(benchmark)
    context = {
        "section": "leaderboards",
        "benchmark": benchmark,
        "board": address.link(),
        "half": getattr(benchmark, "held_out_half", None),
        "samples": len(held_out_in(benchmark)),
        "told": told_before,
        "table": table_of(told_before),
        "runs": [(run, settings_in_words(run.protocol, run.settings)) for run in actions.compared_runs(benchmark)],
        "downloads": table_files("held-out", address, rows="All metrics") if told_before else [],
        "form": form,
    }
    return render(request, "leaderboard/held-out.html", context, status=422 if form.errors else 200)
