"""Scores of benchmarks that are not held here: curators type them below the correlations that they take part in."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.http import done, form_page, of_this_site, person
from accounts.rules import allowed, requires
from bank.views.common import faults_in
from leaderboard.boards.correlation import outside
from leaderboard.views.forms import OutsideForm
from leaderboard.views.gone import gone


@requires("read-public")
@form_page
def outside_scores(request: HttpRequest) -> HttpResponse:
    """Takes the form and goes back to where it was; what is wrong is shown beside what was typed."""
    if request.method != "POST":
        return gone(request, "outside-scores")
    if not allowed(request.user, "write-bank"):
        return HttpResponse(status=403)
    form = OutsideForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        with faults_in(form):
            scores = outside.read_scores(data.pop("scores"))
            number = outside.set_scores(scores=scores, by=person(request), **data)
            back = of_this_site(request, request.POST.get("path", ""))
            return done(request, f"{data['board']}: {number:,} scores.", back or "leaderboard:index")
    context = {"section": "leaderboards", "form": form, "path": request.POST.get("path", "")}
    return render(request, "leaderboard/outside.html", context, status=400)
