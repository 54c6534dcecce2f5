"""Pages of runs, and the front page of judging."""

from functools import partial
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from accounts.http import form_page, page_of, posted
from accounts.models import User
from accounts.rules import allowed, requires, through
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.views.common import act, faults_in
from judging import protocols
from judging.collecting import collectors
from judging.extras import juries
from judging.extras.attack_report import report_for
from judging.forms import AttackForm, CollectForm, JuryForm, RequestForm, RunForm, as_form
from judging.inputs import add_errors
from judging.judgments import analyses, provenance, releases
from judging.models import OVERLAP, Judgment, Run
from judging.runs import actions, item_sets, plan, queries, tryouts
from judging.runs.estimates import Estimate, estimate
from judging.runs.inputs import ResumeIn, RunIn
from judging.views import PAGE, SignedInRequest, page

OF_RUN = through(Run, "benchmark__slug")
SHOWN = ("all", "failed", "undecided")


@requires("read-judging")
def index(request: SignedInRequest) -> HttpResponse:
    runs = queries.own_first(queries.runs_for(request.user), request.user)
    shown = page_of(request, runs, PAGE)
    rows = queries.listed(list(shown.object_list), viewer=request.user)
    context = {
        "page": shown,
        "runs": [row for row in rows if not row.is_aside],
        "aside": [row for row in rows if row.is_aside],
        "judges": queries.judges_with_counts(),
        "worker": queries.worker_seen(),
    }
    return page(request, "judging/index.html", context)


def _run(request: SignedInRequest, pk: int) -> Run:
    return get_object_or_404(queries.runs_for(request.user), pk=pk)


def _seen(request: SignedInRequest, pk: int) -> Run:
    """The run for a page. What is hidden from this viewer is empty, so never save it."""
    return analyses.run_as_seen(_run(request, pk), request.user)


def _permissions(run: Run, *, writes: bool, is_jury: bool) -> dict[str, bool]:
    """Actions open to this viewer on a run now; whoever may not ``release`` its analyses sees what is released."""
    judgments = run.kind == Run.Kind.JUDGMENTS
    active = run.state in Run.GOING
    paused = run.state in Run.HALTED
    can_change_state = writes and not run.imported
    return {
        "pause": can_change_state and active,
        "resume": can_change_state and paused,
        "cancel": can_change_state and (active or paused),
        "retry": writes and run.can_retry,
        "compare": judgments,
        "clone": writes and judgments and run.judge.can_run,
        "find_doubts": writes and judgments and run.judge.baseline != OVERLAP,
        "release": judgments and not run.judge.baseline and not is_jury,
    }


def _is_as_printed(protocol: Any, run: Run) -> bool:
    return bool(protocol and protocol.printed and protocol.printed.holds(run.settings))


def _run_context(request: SignedInRequest, pk: int) -> dict[str, Any]:
    run = _seen(request, pk)
    show = request.GET.get("show", "all")
    if show not in SHOWN:
        raise Http404("unknown filter")
    progress = queries.progress(run, viewer=request.user)
    protocol = protocols.all_by_name().get(run.protocol) or collectors.COLLECTORS.get(run.protocol)
    members = juries.members_of(run)
    writes = allowed(request.user, "write-judging", of=run.benchmark)
    return {
        "can": _permissions(run, writes=writes, is_jury=bool(members)),
        "item_set": item_sets.description(run.item_set),
        "collected": queries.recent_texts(run, viewer=request.user, failed=show == "failed"),
        "run": run,
        "protocol": protocol,
        "printed": _is_as_printed(protocol, run),
        "items": queries.item_count(run),
        "progress": progress,
        "rows": queries.recent(run, viewer=request.user, show=show),
        "all_items": tryouts.all_items(run),
        "show": show,
        "says": queries.endpoint_says(run, viewer=request.user) if progress.failures or run.state_reason else "",
        "unread_reply": queries.unread_reply(run, viewer=request.user),
        "live": run.state in Run.GOING,
        "worker": queries.worker_seen(),
        "lacking": queries.workers_without_pictures(run),
        "moved": report_for(run, request.user) if run.kind == Run.Kind.ATTACKS else None,
        "members": Run.objects.filter(pk__in=members).select_related("judge"),
        "standing": None if progress.withheld else releases.release_counts(run),
        "for_staff": provenance.for_staff(run) if allowed(request.user, "publish", of=run.benchmark) else 0,
        "stale": bool(members) and not progress.withheld and juries.is_stale(run),
    }


@requires("read-judging", of=OF_RUN)
def run_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return page(request, "judging/run.html", _run_context(request, pk))


@requires("read-judging", of=OF_RUN)
def run_progress(request: SignedInRequest, pk: int) -> HttpResponse:
    """The live part of a run's page. It reloads itself as long as the run is active."""
    return page(request, "judging/_run_progress.html", _run_context(request, pk))


def _initial(request: SignedInRequest) -> dict[str, Any]:
    """Initial values of a new run: those in the URL, on top of those of the run named as ``from``."""
    values = request.GET.dict()
    key = whole_number(values.pop("from", None))
    run = queries.runs_for(request.user).filter(pk=key, kind=Run.Kind.JUDGMENTS).first() if key is not None else None
    return (as_form(run) if run else {}) | values


def started_from(request: SignedInRequest, form: RunForm) -> HttpResponse | None:
    """Start the run of judgments or attacks if its form was submitted and is valid; otherwise None."""
    if request.method != "POST" or not form.is_valid():
        return None
    tries = "try" in request.POST
    to = "leaderboard:run-tryout" if tries else "judging:run-detail"
    with faults_in(form):
        items = tryouts.draw(_selected(form)["items"]) if tries else None
        return start_from_form(form, by=request.user, to=to, items=items, tryout=tries)
    return None


def _selected(form: RunForm) -> dict[str, Any]:
    """The selection in a valid form, as ``estimate`` takes it. Raises BadInput."""
    data = form.cleaned_data
    protocol, settings, item_set = actions.read_settings(data["protocol"], form.settings())
    items = plan.judgeable_items(benchmark=data["benchmark"], protocol=protocol)
    return {
        "judge": data["judge"],
        "benchmark": data["benchmark"],
        "protocol": protocol,
        "settings": settings,
        "items": item_sets.items(item_set, benchmark=data["benchmark"], query=items),
    }


@requires("write-judging")
def run_new(request: SignedInRequest) -> HttpResponse:
    form = RunForm(request.POST or None, initial=_initial(request))
    if response := started_from(request, form):
        return response
    context = estimated(form) | {"form": form, "tried": tryouts.ITEMS, "judges": form.fields["judge"].queryset.exists()}  # type: ignore[attr-defined]
    return page(request, "judging/run-new.html", context, refused=bool(form.errors))


@requires("write-judging")
def run_estimate(request: SignedInRequest) -> HttpResponse:
    """The estimate for the run in the form. The page posts it: an address has no room for many categories."""
    sent = request.POST or request.GET
    context = collecting_estimated(CollectForm(sent)) if "endpoint" in sent else estimated(_run_form(sent))
    return page(request, "judging/_run_estimate.html", context)


@requires("write-judging")
@require_safe
def run_choices(request: SignedInRequest) -> HttpResponse:
    """The protocols of the chosen judge on the chosen benchmark, and the benchmark's splits and levels."""
    if "judge" not in request.GET:
        return page(request, "judging/_run_choices.html", {"form": CollectForm(request.GET)})
    form = _run_form(request.GET)
    response = page(request, "judging/_run_choices.html", {"form": form})
    if form.protocol_chosen != request.GET.get("protocol"):
        trigger_client_event(response, "protocol-changed", after="settle")
    return response


def _run_form(sent: QueryDict) -> RunForm:
    return AttackForm(sent) if "attacks" in sent else RunForm(sent)


def estimated(form: RunForm) -> dict[str, Any]:
    """The estimate for the run of a form, or its faults."""
    if not form.is_bound:
        offers = form.offers
        form = type(form)(_untouched_values(form))
        form.offers = offers  # of the same judge and benchmark
    if not form.data.get("judge") or not form.data.get("benchmark"):
        return {}
    if not form.possible:
        return {"faults": ["No protocol fits this judge and benchmark; the reasons stand under the protocol."]}
    if not form.is_valid():
        return {"faults": _faults(form)}
    try:
        found = _estimate(form)
    except BadInput as error:
        return _refused(error, form)
    return {"estimate": found, "nothing_asked": 0 < found.items == found.absent}


def collecting_estimated(form: CollectForm) -> dict[str, Any]:
    """The tasks of a collecting run as a form has it, and how much of it would fail for sure; or the form's faults."""
    if not form.is_bound:
        form = CollectForm(_untouched_values(form))
    if not form.is_valid():
        return {"faults": _faults(form)}
    given = RunIn(data=form.as_input())
    if not given.is_valid():
        add_errors(form, given)
        return {"faults": _faults(form)}
    try:
        planned = given.collecting()
    except BadInput as error:
        return _refused(error, form)
    failing = planned.failing
    return {
        "collecting": planned,
        "lacking": len({task.sample_id for task in failing}),
        "nothing_asked": 0 < len(planned.missing) == len(failing),
    }


def _refused(error: BadInput, form: RequestForm) -> dict[str, Any]:
    """Why the run of a form cannot be, with the field that mends it where one is known."""
    faults: dict[str, Any] = {"faults": [str(error)]}
    if isinstance(error, actions.CannotSee) and error.cure:
        faults |= {"cure": form[error.cure], "named": error.named}
    return faults


def _faults(form: RequestForm) -> list[str]:
    faults = [
        f"{form[name].label}: {text}" for name, texts in form.errors.items() if name in form.fields for text in texts
    ]
    return faults or [str(text) for text in form.non_field_errors()]


def _estimate(form: RunForm) -> Estimate:
    data, selected = form.cleaned_data, _selected(form)
    judged = {name: selected[name] for name in ("judge", "benchmark", "protocol", "settings")}
    actions.check_judge(**judged, budget=data["budget"])
    return estimate(**selected, limit=data["limit"], attacks=data.get("attacks") or (), reuse=data["reuse"])


def _untouched_values(form: RequestForm) -> dict[str, Any]:
    """What the form would send unchanged."""
    values = {}
    for name, field in form.fields.items():
        value = form.get_initial_for_field(field, name)
        if value in (None, ""):
            value = next((key for key, _ in getattr(field, "choices", [])), "")
        if isinstance(form, RunForm) and name == "protocol":
            value = form.protocol_chosen
        values[name] = getattr(value, "value", value)
    return values


def _act(request: SignedInRequest, pk: int, action: Any, success: str, **values: Any) -> HttpResponse:
    act(request, action, success, run=_run(request, pk), **values)
    return redirect("judging:run-detail", pk)


@require_POST
@requires("write-judging", of=OF_RUN)
def run_pause(request: SignedInRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.pause_run, "The run pauses. Calls in flight may still finish.")


@require_POST
@requires("write-judging", of=OF_RUN)
def run_resume(request: SignedInRequest, pk: int) -> HttpResponse:
    named = request.POST.get("budget", "").strip() if allowed(request.user, "write-judging") else ""
    given = ResumeIn(data={"budget": named or None})  # what a run may cost is not for who curates one benchmark
    # What is no number is refused like any other impossible budget.
    budget = given.validated_data["budget"] if given.is_valid() else 0.0
    return _act(request, pk, actions.resume_run, "The run continues as soon as a worker takes it.", budget=budget)


@require_POST
@requires("write-judging", of=OF_RUN)
def run_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.cancel_run, "The run is cancelled. Its verdicts stay.")


@require_POST
@requires("publish", of=OF_RUN)
def run_saw_nothing(request: SignedInRequest, pk: int) -> HttpResponse:
    """Note of a judge whose verdicts came from a file that it saw nothing hidden."""
    say = partial(provenance.say_saw_nothing, by=request.user)
    return _act(request, pk, say, "Noted. These verdicts are for everybody now.")


@require_POST
@requires("write-judging", of=OF_RUN)
def run_retry(request: SignedInRequest, pk: int) -> HttpResponse:
    statuses = request.POST.getlist("status")
    if not set(statuses) <= set(Judgment.Status.values):
        raise Http404("unknown status")
    return _act(
        request,
        pk,
        actions.retry_failed,
        "{} judgments will be made again.",
        statuses=statuses,
        reason=request.POST.get("reason"),
    )


def start_from_form(
    form: RequestForm, *, by: User, to: str = "judging:run-detail", **others: Any
) -> HttpResponse | None:
    """Start a run as a form says and go to its page ``to``; None, with the error in the form, if that fails."""
    given = RunIn(data=form.as_input())
    if not given.is_valid():
        add_errors(form, given)
        return None
    with faults_in(form):
        return redirect(to, given.start(by=by, **others).pk)
    return None


@requires("write-judging")
def collect_new(request: SignedInRequest) -> HttpResponse:
    form = CollectForm(request.POST or None, initial=request.GET.dict())
    started = form.is_valid() and start_from_form(form, by=request.user)
    if started:
        return started
    context = collecting_estimated(form) | {"form": form}
    return page(request, "judging/collect-new.html", context, refused=bool(form.errors))


@requires("write-judging")
@form_page
def jury_new(request: SignedInRequest) -> HttpResponse:
    form = JuryForm(posted(request))
    if form.is_valid():
        with faults_in(form):
            return redirect("judging:run-detail", juries.make_jury(**form.cleaned_data, by=request.user).pk)
    return page(request, "judging/jury-new.html", {"form": form}, refused=bool(form.errors))


@require_POST
@requires("write-judging")
def jury_compute(request: SignedInRequest, pk: int) -> HttpResponse:
    """Recompute a jury's verdicts from the current runs of its members."""
    run = _run(request, pk)
    members = list(Run.objects.filter(pk__in=juries.members_of(run)).select_related("judge", "benchmark"))
    if not members:
        raise Http404("not a jury")
    words = "The jury's verdicts are recomputed from the current runs of its members."
    act(request, juries.make_jury, words, name=run.judge.name, runs=members)
    return redirect("judging:run-detail", pk)
