"""Pages of runs that collect what a model writes."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from accounts.rules import requires
from judging.collecting.start import start_collecting
from judging.request_forms import CollectForm
from judging.views.common import HERE, begun


@requires("write-judging")
def collect_new(request: HttpRequest) -> HttpResponse:
    form = CollectForm(request.POST or None, initial=request.GET.dict())
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        done = begun(
            form,
            start_collecting,
            kind=data["kind"],
            judge=data["endpoint"],
            model=data["model"],
            settings=form.settings(),
            by=cast(User, request.user),
        )
        if done:
            return done
    return render(request, "judging/collect-new.html", HERE | {"form": form}, status=422 if form.errors else 200)
