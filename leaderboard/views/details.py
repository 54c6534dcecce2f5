"""The public page of a model, which staff edit the card of, and that of a judge; what a run made of its first items."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.http import PageRequest, done
from accounts.models import User
from accounts.rules import allowed, requires
from bank.forms.fields import whole_number
from bank.forms.models import CardForm
from bank.models import EvaluatedModel
from bank.views.common import told
from judging import protocols
from judging.models import Judge, Run
from judging.runs import tryouts
from leaderboard.frozen.page import citation_of
from leaderboard.kept.pages import prepared
from leaderboard.pages import tryout
from leaderboard.pages.judge import judge_page
from leaderboard.pages.model import model_page
from leaderboard.views.forms import TryoutForm


@requires("read-public")
@prepared()
def model_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """A model over all boards that the viewer may see; what staff send is its card."""
    model = get_object_or_404(EvaluatedModel, pk=pk)
    edits = allowed(request.user, "write-bank")
    if request.method == "POST" and not edits:
        raise Http404("no such page")
    form = CardForm(request.POST or None, instance=model) if edits else None
    if form is not None and request.method == "POST" and form.is_valid():
        form.save()
        return done(request, f"Saved the card of {model.name}.", "leaderboard:model-detail", pk)
    page = model_page(model, request.user)
    if page is None:
        raise Http404("no such model")
    context = {"section": "leaderboards", "model": model, "page": page, "form": form}
    where = request.build_absolute_uri(request.path)
    context["citation"] = citation_of(f"{model.name}, all boards", f"model-{pk}", where)
    return render(request, "leaderboard/model.html", context)


@requires("read-public")
@prepared()
def judge_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """A judge beside people on every benchmark that the viewer may see."""
    judge = get_object_or_404(Judge, pk=pk)
    page = judge_page(judge, request.user)
    if page is None:
        raise Http404("no such judge")
    context = {"section": "leaderboards", "judge": judge, "page": page, "staff": allowed(request.user, "read-judging")}
    where = request.build_absolute_uri(request.path)
    context["citation"] = citation_of(f"{judge.titled} as a judge", f"judge-{pk}", where)
    return render(request, "leaderboard/judge.html", context)


def _tried_run(pk: int) -> Run:
    return get_object_or_404(Run.objects.filter(kind=Run.Kind.JUDGMENTS).select_related("judge", "benchmark"), pk=pk)


@requires("write-judging")
@require_safe
def run_tryout(request: PageRequest, pk: int) -> HttpResponse:
    """What a judge made of the items that a new run was tried on; the page renews itself until all is there."""
    run = _tried_run(pk)
    if not tryouts.is_small(run):
        return redirect("judging:run-detail", pk)
    shown = tryout.tryout_of(run, cast(User, request.user), chosen=whole_number(request.GET.get("item", "")))
    context = {
        "section": "judging",
        "run": run,
        "live": run.state in Run.GOING,
        "tried": run.run_items.count(),
        "all_items": tryouts.all_items(run),
        "tryout": shown,
    }
    if request.htmx:
        return render(request, "leaderboard/_tryout.html", context)
    if not run.judge.is_baseline:
        name, version = tryouts.next_prompt(run)
        context |= {"prompt": tryouts.prompt_of(run), "next_prompt": f"{name} {version}", "form": TryoutForm(run=run)}
    return render(request, "leaderboard/tryout.html", context)


@requires("write-judging")
@require_POST
def run_try_again(request: PageRequest, pk: int) -> HttpResponse:
    """Try the items again as the page says, or with the cure of what kept replies from being read."""
    run, fix = _tried_run(pk), request.POST.get("fix", "")
    form = TryoutForm(request.POST, run=run)
    if not form.is_valid():
        messages.error(request, " ".join(f"{form[name].label}: {errors[0]}" for name, errors in form.errors.items()))
        return redirect("leaderboard:run-tryout", pk)
    text, person = form.cleaned_data["text"], cast(User, request.user)
    if fix == "verdict":
        text = (text or tryouts.prompt_of(run).text) + tryout.verdict_lines(protocols.get(run.protocol))
    changes = form.changes() | tryout.changes_of(run, fix)
    with told(request):
        run = tryouts.try_again(run=run, by=person, text=text, changes=changes, others="others" in request.POST)
    return redirect("leaderboard:run-tryout", run.pk)


@requires("write-judging")
@require_POST
def run_go_on(request: PageRequest, pk: int) -> HttpResponse:
    """Start the run over all items as it was tried."""
    run = _tried_run(pk)
    with told(request):
        return redirect("judging:run-detail", tryouts.go_on(run=run, by=cast(User, request.user)).pk)
    return redirect("leaderboard:run-tryout", pk)
