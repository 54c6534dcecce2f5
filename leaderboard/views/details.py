"""The public page of a model, which staff edit the card of, and that of a judge; what a run made of its first items."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from accounts.http import PageRequest
from accounts.models import User
from accounts.rules import allowed, requires
from bank.forms.fields import whole_number
from bank.forms.models import CardForm
from bank.models import EvaluatedModel
from judging.models import Judge, Run
from judging.runs import tryouts
from leaderboard.pages import tryout
from leaderboard.pages.judge_detail import judge_page
from leaderboard.pages.model_detail import model_page
from leaderboard.pages.snapshots import citation_of


@requires("read-public")
def model_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """A model over all boards that the viewer may see; what staff send is its card."""
    model = get_object_or_404(EvaluatedModel, pk=pk)
    edits = allowed(request.user, "write-bank")
    if request.method == "POST" and not edits:
        raise Http404("no such page")
    form = CardForm(request.POST or None, instance=model) if edits else None
    if form is not None and request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, f"Saved the card of {model.name}.")
        return redirect("leaderboard:model-detail", pk)
    page = model_page(model, request.user)
    if page is None:
        raise Http404("no such model")
    context = {"section": "leaderboards", "model": model, "page": page, "form": form}
    context["citation"] = citation_of(f"{model.name}, all boards", f"model-{pk}", request.build_absolute_uri())
    return render(request, "leaderboard/model.html", context)


@requires("read-public")
def judge_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """A judge beside people on every benchmark that the viewer may see."""
    judge = get_object_or_404(Judge, pk=pk)
    page = judge_page(judge, request.user)
    if page is None:
        raise Http404("no such judge")
    context = {"section": "leaderboards", "judge": judge, "page": page, "staff": allowed(request.user, "read-judging")}
    context["citation"] = citation_of(f"{judge} as a judge", f"judge-{pk}", request.build_absolute_uri())
    return render(request, "leaderboard/judge.html", context)


@requires("write-judging")
@require_safe
def run_tryout(request: PageRequest, pk: int) -> HttpResponse:
    """What a judge made of the items that a new run was tried on; the page renews itself until all is there."""
    runs = Run.objects.filter(kind=Run.Kind.JUDGMENTS).select_related("judge", "benchmark")
    run = get_object_or_404(runs, pk=pk)
    if not tryouts.is_small(run):
        return redirect("judging:run-detail", pk)
    context = {
        "section": "judging",
        "run": run,
        "live": run.state in Run.GOING,
        "all_items": tryouts.all_items(run),
        "tryout": tryout.tryout_of(run, cast(User, request.user), chosen=whole_number(request.GET.get("item", ""))),
    }
    return render(request, "leaderboard/_tryout.html" if request.htmx else "leaderboard/tryout.html", context)
