"""Pages of runs, and the front page of judging."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.rules import allowed, requires
from bank.errors import BadInput
from bank.forms.fields import whole_number
from judging import protocols
from judging.forms import AttackForm, CollectForm, JuryForm, RunForm, as_form
from judging.judgments import analyses, releases
from judging.models import Judgment, Run
from judging.runs import actions, collecting, item_sets, juries, plan, queries
from judging.runs.actions import start_collecting
from judging.runs.attack_report import report
from judging.runs.compare import CannotCompare, compare
from judging.runs.estimates import Estimate, estimate
from judging.runs.queries import newest
from judging.views import HERE, PAGE

OFFERED = 200  # runs to compare with
SHOWN = ("all", "failed", "undecided")


@requires("read-judging")
def index(request: HttpRequest) -> HttpResponse:
    page = Paginator(queries.runs_for(request.user), PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "runs": queries.listed(list(page.object_list), viewer=request.user),
        "judges": queries.judges_with_counts(),
        "worker": queries.worker_seen(),
    }
    return render(request, "judging/index.html", HERE | context)


def _run(request: HttpRequest, pk: int) -> Run:
    return get_object_or_404(queries.runs_for(request.user), pk=pk)


def _seen(request: HttpRequest, pk: int) -> Run:
    """The run for a page: what is hidden from this viewer is empty, so it is not to be saved."""
    return analyses.run_as_seen(_run(request, pk), request.user)


@dataclass(frozen=True, slots=True)
class Doable:
    """What this viewer may do with a run now."""

    pause: bool
    resume: bool
    cancel: bool
    retry: bool
    compare: bool
    clone: bool
    find_doubts: bool
    release: bool  # of its analyses: who may not, sees what is released

    @classmethod
    def of(cls, run: Run, *, writes: bool, is_jury: bool) -> "Doable":
        judgments = run.kind == Run.Kind.JUDGMENTS
        live, paused = run.state in Run.GOING, run.state == Run.State.PAUSED
        works = writes and not run.imported
        return cls(
            pause=works and live,
            resume=works and paused,
            cancel=works and (live or paused),
            retry=writes and run.can_retry,
            compare=judgments,
            clone=writes and judgments and run.judge.can_run,
            find_doubts=writes and judgments and run.judge.baseline != "criteria-overlap",
            release=judgments and not run.judge.baseline and not is_jury,
        )


def _run_context(request: HttpRequest, pk: int) -> dict[str, Any]:
    run = _seen(request, pk)
    show = request.GET.get("show", "all")
    if show not in SHOWN:
        raise Http404("no such filter")
    progress = queries.progress(run, viewer=request.user)
    protocol = protocols.all_by_name().get(run.protocol) or collecting.COLLECTORS.get(run.protocol)
    members = juries.members_of(run)
    return HERE | {
        "can": Doable.of(run, writes=allowed(request.user, "write-judging"), is_jury=bool(members)),
        "item_set": item_sets.words(run.item_set),
        "collected": newest(run, viewer=request.user, failed=show == "failed"),
        "run": run,
        "protocol": protocol,
        "items": queries.things(run),
        "progress": progress,
        "rows": queries.recent(run, viewer=request.user, show=show),
        "show": show,
        "live": run.state in Run.GOING,
        "worker": queries.worker_seen(),
        "lacking": queries.workers_without_pictures(run),
        "moved": report(run) if run.kind == Run.Kind.ATTACKS and not progress.withheld else None,
        "members": Run.objects.filter(pk__in=members).select_related("judge"),
        "standing": None if progress.withheld else releases.standing(run),
        "stale": bool(members) and not progress.withheld and juries.is_stale(run),
    }


@requires("read-judging")
def run_detail(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "judging/run.html", _run_context(request, pk))


@requires("read-judging")
def run_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The live part of a run's page. It asks for itself again for as long as the run goes on."""
    return render(request, "judging/_run_progress.html", _run_context(request, pk))


@requires("read-judging")
@require_safe
def run_compare(request: HttpRequest) -> HttpResponse:
    """Two runs side by side; without both in the address, what to choose."""
    runs = Run.objects.visible_to(request.user).filter(kind=Run.Kind.JUDGMENTS).select_related("judge", "benchmark")
    keys = [whole_number(request.GET.get(name, "")) for name in ("a", "b")]
    chosen = [runs.filter(pk=key).first() if key is not None else None for key in keys]
    chosen = [run and analyses.run_as_seen(run, request.user) for run in chosen]
    context: dict[str, Any] = {"tab": "runs", "first": chosen[0], "second": chosen[1]}
    if any(run is None and key is not None for run, key in zip(chosen, keys, strict=True)):
        raise Http404("no such run")
    offered = runs.filter(benchmark=chosen[0].benchmark) if chosen[0] else runs
    context["offered"] = offered.order_by("-pk")[:OFFERED]
    context["runs"] = runs.order_by("-pk")[:OFFERED]
    if chosen[0] and chosen[1]:
        try:
            context["comparison"] = compare(chosen[0], chosen[1], viewer=request.user)
        except CannotCompare as error:
            context["problem"] = str(error)
    return render(request, "judging/compare.html", HERE | context)


def _initial(request: HttpRequest) -> dict[str, Any]:
    """What a new run begins with: the values of the address, over those of the run that it names as ``from``."""
    given = request.GET.dict()
    key = whole_number(given.pop("from", ""))
    run = queries.runs_for(request.user).filter(pk=key, kind=Run.Kind.JUDGMENTS).first() if key is not None else None
    return (as_form(run) if run else {}) | given


def judging_begun(request: HttpRequest, form: RunForm) -> HttpResponse | None:
    """Start the run of judgments or attacks that a form was sent for; None where it was not, or is at fault."""
    if request.method != "POST" or not form.is_valid():
        return None
    data = form.cleaned_data
    return begun(
        form,
        actions.start_run,
        judge=data["judge"],
        protocol=data["protocol"],
        settings=form.settings(),
        attacks=data.get("attacks"),
        by=cast(User, request.user),
    )


@requires("write-judging")
def run_new(request: HttpRequest) -> HttpResponse:
    form = RunForm(request.POST or None, initial=_initial(request))
    if done := judging_begun(request, form):
        return done
    context = estimated(form) | {"form": form, "judges": form.fields["judge"].queryset.exists()}  # type: ignore[attr-defined]
    return render(request, "judging/run-new.html", HERE | context, status=422 if form.errors else 200)


@requires("write-judging")
def run_estimate(request: HttpRequest) -> HttpResponse:
    """What the run that is being put together would take."""
    form = AttackForm(request.GET) if "attacks" in request.GET else RunForm(request.GET)
    return render(request, "judging/_run_estimate.html", estimated(form))


@requires("write-judging")
@require_safe
def run_parts(request: HttpRequest) -> HttpResponse:
    """The splits and levels of the benchmark that is being chosen."""
    return render(request, "judging/_parts.html", {"parts": RunForm(request.GET).parts})


def estimated(form: RunForm) -> dict[str, Any]:
    """What the run of a form would take, or what is wrong with it."""
    if not form.is_bound:
        form = type(form)(_first_choices(form))
    if not form.data.get("judge") or not form.data.get("benchmark"):
        return {}
    if not form.is_valid():
        faults = [
            f"{form[name].label}: {text}"
            for name, texts in form.errors.items()
            if name in form.fields
            for text in texts
        ]
        return {"faults": faults or [str(text) for text in form.non_field_errors()]}
    try:
        return {"estimate": _estimate(form)}
    except (protocols.BadSettings, item_sets.BadItemSet) as error:
        return {"faults": [str(error)]}


def _estimate(form: RunForm) -> Estimate:
    data = form.cleaned_data
    protocol = protocols.get(data["protocol"])
    chosen = form.settings()
    part = item_sets.canonical(chosen.pop("items", None))
    settings = protocol.settings(chosen)
    items = plan.judgeable_items(benchmark=data["benchmark"], kind=protocol.kind)
    items = item_sets.items(part, benchmark=data["benchmark"], query=items)
    return estimate(
        judge=data["judge"],
        benchmark=data["benchmark"],
        protocol=protocol,
        settings=settings,
        items=items,
        limit=data["limit"],
        attacks=data.get("attacks") or (),
        reuse=data["reuse"],
    )


def _first_choices(form: RunForm) -> dict[str, Any]:
    """What a form that was not touched would send."""
    chosen = {}
    for name, field in form.fields.items():
        value = form.get_initial_for_field(field, name)
        if value in (None, ""):
            value = next((key for key, _ in getattr(field, "choices", [])), "")
        chosen[name] = getattr(value, "value", value)
    return chosen


def _act(request: HttpRequest, pk: int, action: Any, done: str, **values: Any) -> HttpResponse:
    run = _run(request, pk)
    try:
        result = action(run=run, **values)
    except BadInput as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done.format(result))
    return redirect("judging:run-detail", pk)


@require_POST
@requires("write-judging")
def run_pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.pause_run, "The run pauses. Calls in flight may still end.")


@require_POST
@requires("write-judging")
def run_resume(request: HttpRequest, pk: int) -> HttpResponse:
    given = request.POST.get("budget", "").strip()
    try:
        budget = float(given) if given else None
    except ValueError:
        budget = 0.0  # refused as any other that cannot be
    return _act(request, pk, actions.resume_run, "The run goes on as soon as a worker takes it.", budget=budget)


@require_POST
@requires("write-judging")
def run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, actions.cancel_run, "The run is cancelled. Its verdicts stay.")


@require_POST
@requires("write-judging")
def run_retry(request: HttpRequest, pk: int) -> HttpResponse:
    statuses = request.POST.getlist("status")
    if not set(statuses) <= set(Judgment.Status.values):
        raise Http404("no such status")
    return _act(
        request,
        pk,
        actions.retry_failed,
        "{} judgments are made again.",
        statuses=statuses,
        reason=request.POST.get("reason"),
    )


def begun(form: forms.Form, begin: Callable[..., Run], *, by: User, **given: Any) -> HttpResponse | None:
    """Start a run with what a form says of it and go to its page; None, with the fault in the form, where it cannot."""
    data = form.cleaned_data
    shared = {name: data[name] for name in ("benchmark", "limit", "budget", "new", "reuse", "batched")}
    try:
        run = begin(by=by, **shared, **given)
    except BadInput as error:
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return None
    return redirect("judging:run-detail", run.pk)


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


@requires("write-judging")
@require_http_methods(["GET", "HEAD", "POST"])
def jury_new(request: HttpRequest) -> HttpResponse:
    form = JuryForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            run = juries.make_jury(**form.cleaned_data, by=cast(User, request.user))
        except BadInput as error:
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
    except BadInput as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The jury's verdicts are computed from its members' runs as they are now.")
    return redirect("judging:run-detail", pk)
