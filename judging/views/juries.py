"""Pages of juries: make one, compute it anew."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import User
from accounts.rules import requires
from judging import actions, juries, queries
from judging.forms import JuryForm
from judging.models import Run
from judging.views.common import HERE


@requires("write-judging")
@require_http_methods(["GET", "HEAD", "POST"])
def jury_new(request: HttpRequest) -> HttpResponse:
    form = JuryForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            run = juries.make_jury(**form.cleaned_data, by=cast(User, request.user))
        except actions.BadInput as error:
            form.add_error(error.field or None, str(error))
        else:
            return redirect("judging:run-detail", run.pk)
    return render(request, "judging/jury-new.html", HERE | {"form": form}, status=422 if form.errors else 200)


@require_POST
@requires("write-judging")
def jury_compute(request: HttpRequest, pk: int) -> HttpResponse:
    """Compute a jury's verdicts anew from its members' runs as they are now."""
    run = get_object_or_404(queries.runs_for(request.user), pk=pk)
    members = list(Run.objects.filter(pk__in=juries.members_of(run)).select_related("judge", "benchmark"))
    if not members:
        raise Http404("no jury")
    try:
        juries.make_jury(name=run.judge.name, runs=members)
    except actions.BadInput as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The jury's verdicts are computed from its members' runs as they are now.")
    return redirect("judging:run-detail", pk)
