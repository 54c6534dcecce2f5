"""Pages of judges."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from accounts.rules import allowed, requires
from bank.forms.fields import whole_number
from bank.views.common import act, faults_in
from judging.endpoints import judges
from judging.endpoints.inputs import JudgeIn
from judging.endpoints.probing import probe_judge
from judging.forms import JudgeForm
from judging.inputs import fields_of
from judging.models import Judge
from judging.runs import queries
from judging.views import PAGE, SignedInRequest, page


@requires("read-judging")
def judge_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    judge = get_object_or_404(Judge, pk=pk)
    runs = list(queries.runs_for(request.user).filter(judge=judge)[:PAGE])
    context = {
        "judge": judge,
        "runs": queries.listed(runs, viewer=request.user),
        "ready": judges.readiness(judge) if judge.base_url and allowed(request.user, "write-judging") else None,
        "abilities": judges.abilities(judge),
        "tested_at": parse_datetime(str(judge.abilities.get("at", ""))),
        "hosts": settings.JUDGE_HOSTS,
    }
    return page(request, "judging/judge.html", context)


def _initial(request: SignedInRequest) -> dict[str, Any]:
    """The values of the judge named as ``from`` in the URL, to change its limits and prices."""
    key = whole_number(request.GET.get("from"))
    judge = Judge.objects.filter(pk=key).exclude(base_url="").first() if key is not None else None
    return {name: getattr(judge, name) for name in fields_of(JudgeIn) if name != "key"} if judge else {}


@requires("write-judging")
def judge_new(request: SignedInRequest) -> HttpResponse:
    form = JudgeForm(request.POST or None, initial=_initial(request))
    if form.is_valid():
        with faults_in(form):
            return redirect("judging:judge-detail", judges.add_judge(**form.cleaned_data).pk)
    context = {"form": form, "hosts": settings.JUDGE_HOSTS, "keys": settings.JUDGE_KEYS}
    return page(request, "judging/judge-new.html", context, refused=bool(form.errors))


@require_POST
@requires("write-judging")
def judge_maker(request: SignedInRequest, pk: int) -> HttpResponse:
    """Say whose model it is, of any judge: what was imported has no other page to say it on."""
    words = "Boards of biases compare it with its maker's models from now on."
    judge, family = get_object_or_404(Judge, pk=pk), request.POST.get("family", "")
    act(request, judges.name_maker, words if family.strip() else "It has no maker now.", judge=judge, family=family)
    return redirect("judging:judge-detail", pk)


@require_POST
@requires("write-judging")
def judge_probe(request: SignedInRequest, pk: int) -> HttpResponse:
    """Test with a few short calls what its endpoint can do."""
    words = "The test results are stored; runs that start from now on use them."
    act(request, probe_judge, words, judge=get_object_or_404(Judge, pk=pk))
    return redirect("judging:judge-detail", pk)
