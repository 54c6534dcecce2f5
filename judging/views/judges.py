"""Pages of judges."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from accounts.rules import allowed, requires
from bank.errors import BadInput
from bank.forms.fields import whole_number
from judging.endpoints import judges
from judging.endpoints.inputs import JudgeIn
from judging.endpoints.probing import probe_judge
from judging.forms import JudgeForm
from judging.inputs import fields_of
from judging.models import Judge
from judging.runs import queries
from judging.views import HERE, PAGE


@requires("read-judging")
def judge_detail(request: HttpRequest, pk: int) -> HttpResponse:
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
    return render(request, "judging/judge.html", HERE | context)


def _initial(request: HttpRequest) -> dict[str, Any]:
    """The values of the judge named as ``from`` in the URL, to change its limits and prices."""
    key = whole_number(request.GET.get("from", ""))
    judge = Judge.objects.filter(pk=key).exclude(base_url="").first() if key is not None else None
    return {name: getattr(judge, name) for name in fields_of(JudgeIn)} if judge else {}


@requires("write-judging")
def judge_new(request: HttpRequest) -> HttpResponse:
    form = JudgeForm(request.POST or None, initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        try:
            judge = judges.add_judge(**form.cleaned_data)
        except BadInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            return redirect("judging:judge-detail", judge.pk)
    return render(request, "judging/judge-new.html", HERE | {"form": form}, status=422 if form.errors else 200)


@require_POST
@requires("write-judging")
def judge_probe(request: HttpRequest, pk: int) -> HttpResponse:
    """Test with a few short calls what its endpoint can do."""
    try:
        probe_judge(judge=get_object_or_404(Judge, pk=pk))
    except BadInput as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The test results are stored; runs that start from now on use them.")
    return redirect("judging:judge-detail", pk)
