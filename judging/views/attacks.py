"""Pages of tests of judges with attacks."""

from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404

from accounts.http import page_of
from accounts.rules import requires, through
from bank.forms.fields import whole_number
from bank.models import with_answers
from judging.extras import attacks
from judging.forms import AttackForm
from judging.judgments.filters import STATUSES
from judging.models import Run, Trial
from judging.runs import queries
from judging.views import SignedInRequest, page
from judging.views.judgments import prompt_page
from judging.views.runs import estimated, started_from

OF_TRIAL = through(Trial, "run__benchmark__slug")
PAGE_OF_TRIALS = 100


@requires("write-judging")
def attack_new(request: SignedInRequest) -> HttpResponse:
    form = AttackForm(request.POST or None, initial=request.GET.dict() | {"attacks": list(attacks.ALL)})
    if response := started_from(request, form):
        return response
    context = estimated(form) | {"form": form, "attacks": attacks.ALL.values(), "judges": True}
    return page(request, "judging/run-new.html", context, refused=bool(form.errors))


@requires("read-analyses")
def trial_list(request: SignedInRequest) -> HttpResponse:
    """The trials of a run, for one attack or all; by default of the newest run."""
    runs = queries.runs_for(request.user).filter(kind=Run.Kind.ATTACKS)
    run_id = whole_number(request.GET.get("run"))
    run = get_object_or_404(runs, pk=run_id) if run_id is not None else runs.first()
    attack, status = request.GET.get("attack", ""), request.GET.get("status", "")
    if attack not in ("", *attacks.ALL) or status not in ("", *STATUSES):
        raise Http404("unknown attack or status")
    rows = _with_items(Trial.objects.filter(run=run))
    rows = rows.filter(status=status) if status else rows
    rows = rows.filter(attack=attack) if attack else rows
    shown = page_of(request, rows, PAGE_OF_TRIALS)
    trials = list(shown.object_list)
    context = {
        "run": run,
        "page": shown,
        "query": urlencode({"run": run.pk if run else "", "attack": attack, "status": status}),
        "attack": attacks.ALL.get(attack),
        "status": STATUSES.get(status, ""),
        "rows": trials,
        "plain": _plain(trials),
    }
    return page(request, "judging/trials.html", context)


@requires("read-analyses", of=OF_TRIAL)
def trial_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One trial: how the answer was changed, and what the judge wrote."""
    trial = get_object_or_404(_with_items(Trial.objects.all()).select_related("run__judge"), pk=pk)

    context = {
        "trial": trial,
        "run": trial.run,
        "attack": attacks.ALL.get(trial.attack),
        "plain": _plain([trial]).get(trial.pk),
        "attempts": trial.attempts,
    }
    return page(request, "judging/trial.html", context)


@requires("read-analyses", of=OF_TRIAL)
def trial_prompt(request: SignedInRequest, pk: int) -> HttpResponse:
    """The prompt of a trial, with criteria; the access log gets one record in the reader's name."""
    return prompt_page(request, Trial.objects.all(), pk)


def _with_items(rows: QuerySet[Trial]) -> QuerySet[Trial]:
    return rows.select_related("item__sample").prefetch_related(with_answers("item__")).order_by("pk")


def _plain(trials: list[Trial]) -> dict[int, Trial]:
    """The trial of the same item, order and repeat without an attack, by the key of each trial."""
    items = {trial.item_id for trial in trials}
    rows = Trial.objects.filter(run__in={trial.run_id for trial in trials}, item__in=items, attack="")
    by_key = {(row.run_id, row.item_id, row.order, row.repeat): row for row in rows.select_related("item")}
    plain = {trial.pk: by_key.get((trial.run_id, trial.item_id, trial.order, trial.repeat)) for trial in trials}
    return {pk: row for pk, row in plain.items() if row and row.pk != pk}
