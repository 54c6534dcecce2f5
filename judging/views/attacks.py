"""Pages of trying judges with attacks."""

from typing import cast
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.http import PageRequest
from accounts.models import User
from accounts.rules import requires
from bank.forms.fields import whole_number
from judging import protocols
from judging.forms import AttackForm
from judging.models import Attempt, Run, Trial
from judging.protocols import prompts
from judging.runs import attacks, queries, requests
from judging.runs.queries import STATUSES
from judging.views import HERE
from judging.views.runs import estimated, judging_begun

SHOWN = 100  # trials on a page


@requires("write-judging")
def attack_new(request: HttpRequest) -> HttpResponse:
    form = AttackForm(request.POST or None, initial=request.GET.dict() | {"attacks": list(attacks.ALL)})
    if done := judging_begun(request, form):
        return done
    context = estimated(form) | {"form": form, "attacks": attacks.ALL.values(), "judges": True}
    return render(request, "judging/run-new.html", HERE | context, status=422 if form.errors else 200)


@requires("read-analyses")
def trial_list(request: HttpRequest) -> HttpResponse:
    """Trials of a run, of one attack or all; without a run in the address those of the newest."""
    runs = queries.runs_for(request.user).filter(kind=Run.Kind.ATTACKS)
    key = whole_number(request.GET.get("run", ""))
    run = get_object_or_404(runs, pk=key) if key is not None else runs.first()
    attack, status = request.GET.get("attack", ""), request.GET.get("status", "")
    if attack not in ("", *attacks.ALL) or status not in ("", *STATUSES):
        raise Http404("no such attack or status")
    rows = _with_items(Trial.objects.filter(run=run))
    rows = rows.filter(status=status) if status else rows
    rows = rows.filter(attack=attack) if attack else rows
    page = Paginator(rows, SHOWN).get_page(request.GET.get("page"))
    found = list(page.object_list)
    context = {
        "run": run,
        "page": page,
        "query": urlencode({"run": run.pk if run else "", "attack": attack, "status": status}),
        "attack": attacks.ALL.get(attack),
        "status": STATUSES.get(status, ""),
        "rows": found,
        "plain": _plain(found),
    }
    return render(request, "judging/trials.html", HERE | context)


@requires("read-analyses")
def trial_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One trial: what was done to the answer, and what the judge said."""
    trial = get_object_or_404(_with_items(Trial.objects.all()).select_related("run__judge"), pk=pk)
    same_job = {name: getattr(trial, name) for name in trial.KEY}
    context = {
        "trial": trial,
        "run": trial.run,
        "attack": attacks.ALL.get(trial.attack),
        "plain": _plain([trial]).get(trial.pk),
        "attempts": Attempt.objects.filter(run=trial.run, **same_job),
    }
    return render(request, "judging/trial.html", HERE | context)


@requires("read-analyses")
def trial_prompt(request: PageRequest, pk: int) -> HttpResponse:
    """The prompt of a trial, with criteria; the access log gets one record in the reader's name."""
    trial = get_object_or_404(Trial.objects.select_related("run__judge", "run__benchmark", "item__sample"), pk=pk)
    try:
        asked = requests.request_of_judgment(trial, user=cast(User, request.user))
    except (prompts.UnknownPrompt, protocols.CannotAsk):
        raise Http404("no prompt of ours made this trial") from None
    context = {"trial": trial, "run": trial.run, "asked": asked, "same": asked.sha256 == trial.prompt_sha256}
    template = "judging/_judgment_prompt.html" if request.htmx else "judging/prompt.html"
    return render(request, template, HERE | context)


def _with_items(rows: QuerySet[Trial]) -> QuerySet[Trial]:
    return rows.select_related("item__sample").prefetch_related("item__places__response__model").order_by("pk")


def _plain(trials: list[Trial]) -> dict[int, Trial]:
    """The same item as it is, in the same order and repeat, by the key of each trial under attack."""
    items = {trial.item_id for trial in trials}
    rows = Trial.objects.filter(run__in={trial.run_id for trial in trials}, item__in=items, attack="")
    known = {(row.run_id, row.item_id, row.order, row.repeat): row for row in rows.select_related("item")}
    found = {trial.pk: known.get((trial.run_id, trial.item_id, trial.order, trial.repeat)) for trial in trials}
    return {pk: row for pk, row in found.items() if row and row.pk != pk}
