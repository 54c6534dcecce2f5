"""Scores of benchmarks that are not held here: everybody reads them, curators type them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.http import done, form_page, person, posted
from accounts.rules import allowed, requires
from bank.views.common import faults_in
from leaderboard import outside
from leaderboard.forms import OutsideForm
from leaderboard.models import OutsideScore


@requires("read-public")
@form_page
def outside_scores(request: HttpRequest) -> HttpResponse:
    """All of them by benchmark; ``?board=NAME`` puts one into the form."""
    may_write = allowed(request.user, "write-bank")
    if request.method == "POST" and not may_write:
        return HttpResponse(status=403)
    boards: dict[str, list[OutsideScore]] = {}
    for score in OutsideScore.objects.select_related("by"):
        boards.setdefault(score.board, []).append(score)
    form = OutsideForm(posted(request), initial=_initial(boards, request))
    if form.is_valid():
        data = form.cleaned_data
        with faults_in(form):
            scores = outside.read_scores(data.pop("scores"))
            number = outside.set_scores(scores=scores, by=person(request), **data)
            return done(request, f"{data['board']}: {number:,} scores.", "leaderboard:outside-scores")
    context = {"section": "leaderboards", "boards": boards, "form": form, "may_write": may_write}
    return render(request, "leaderboard/outside.html", context)


def _initial(boards: dict[str, list[OutsideScore]], request: HttpRequest) -> dict[str, object]:
    rows = boards.get(request.GET.get("board", "")[:120], [])
    if not rows:
        return {}
    lines = "\n".join(
        f'"{row.model}",{row.score:g}' if "," in row.model else f"{row.model}, {row.score:g}" for row in rows
    )
    first = rows[0]
    return {"board": first.board, "source": first.source, "lower_is_better": first.lower_is_better, "scores": lines}
