"""Submissions: researchers send a model's responses and read its scores; curators see all and keep the rules."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from accounts import csv
from accounts.http import attached, done, filters_of, form_page, page_of, posted
from accounts.models import User
from accounts.rules import allowed, requires
from bank.forms.fields import whole_number
from bank.intake import exports
from bank.models import Benchmark, Submission, SubmissionScore
from bank.submissions import Exceeded, Refused, actions, ladder
from bank.views.common import faults_in, told
from judging.collecting import submissions as queue
from leaderboard import submissions
from leaderboard.pages.model import on_boards
from leaderboard.submissions import page as shown
from leaderboard.views.forms import OPEN, JudgingForm, Reason, RulesForm, SubmissionForm

PAGE = 50
MARKS = 100
SCORED = "Scored again with the current keys. What its sender was told stays told."
FAULTS = ["kind", "place", "field", "reason"]


def _visible(request: HttpRequest) -> Any:
    return Submission.objects.visible_to(request.user).select_related("benchmark", "by", "model", "changed_by")


def _benchmark(request: HttpRequest, name: str) -> Benchmark:
    try:
        return Benchmark.objects.visible_to(request.user).named(name)
    except Benchmark.DoesNotExist:
        raise Http404("no such benchmark") from None


@requires("submit")
@require_safe
def submission_list(request: HttpRequest) -> HttpResponse:
    """One's own submissions, for staff everybody's; and what may be submitted to."""
    viewer = cast(User, request.user)
    queryset = _visible(request)
    filters = filters_of(request, ("benchmark", "state"), 200)
    benchmarks = Benchmark.objects.filter(pk__in=queryset.order_by().values("benchmark")).order_by("title", "pk")
    if (benchmark := whole_number(filters.get("benchmark"))) is not None:
        queryset = queryset.filter(benchmark=benchmark)
    if (state := filters.get("state")) in Submission.State.values:
        queryset = queryset.filter(state=state)
    page = page_of(request, queryset, PAGE)
    context = {
        "section": "submissions",
        "page": page,
        "rows": list(zip(page, shown.headlines(page, viewer), strict=True)),
        "offers": submissions.offers(viewer, timezone.now()),
        "staff": allowed(viewer, "manage-submissions"),
        "chosen": filters,
        "filtered": bool(filters),
        "benchmarks": benchmarks,
        "states": Submission.State.choices,
        "closed": _without_rules(viewer),
        "query": urlencode(filters),
    }
    return render(request, "leaderboard/submissions.html", context)


def _without_rules(viewer: User) -> list[Benchmark]:
    """For staff: the benchmarks that take no submissions yet."""
    if not allowed(viewer, "manage-submissions"):
        return []
    return list(Benchmark.objects.exclude(submission_rules__open=True).order_by("title", "pk"))


@requires("submit")
@form_page
def submission_new(request: HttpRequest) -> HttpResponse:
    """The form. A file is checked at once, then stored and scored; or the page says why it did not pass."""
    person = cast(User, request.user)
    initial = {"benchmark": _asked(request)}
    data, files = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = SubmissionForm(data, files, benchmarks=submissions.open_benchmarks(person), initial=initial)
    context: dict[str, Any] = {"section": "submissions", "form": form}
    status = 200
    if form.is_valid():
        try:
            answer = _take(request, form, person, context)
            if answer is not None:
                return answer
        except Exceeded as error:
            form.add_error(None, str(error))
            context["retry_after"], status = error.retry_after, 429
        except Refused as error:
            form.add_error(None, str(error))
    context["offers"] = submissions.offers(person, timezone.now())
    response = render(request, "leaderboard/submission-new.html", context, status=status)
    if "retry_after" in context:
        response["Retry-After"] = str(context["retry_after"])
    return response


def _asked(request: HttpRequest) -> Any:
    name = request.GET.get("benchmark", "")
    try:
        return Benchmark.objects.visible_to(request.user).named(name).pk if name else None
    except Benchmark.DoesNotExist:
        return None


def _take(request: HttpRequest, form: SubmissionForm, person: User, context: dict[str, Any]) -> HttpResponse | None:
    """Submit, or only check; None where the form is shown again with what the check found."""
    data = form.cleaned_data
    made = submissions.take(
        person=person,
        benchmark=data["benchmark"],
        model=data["model"],
        file=data["file"],
        organisation=data["organisation"],
        is_open=OPEN[data["weights"]],
        check_only="check" in request.POST,
    )
    if isinstance(made, Submission):
        return redirect("leaderboard:submission-detail", made.pk)
    context |= {"checked": made, "faults": made.faults()}
    if max(made.problem_count, made.missing_count, made.extra_count) > shown.FIRST:
        context["all_faults"] = "".join(csv.lines(FAULTS, shown.fault_rows(made.faults())))
    return None


@requires("submit")
@require_safe
def submission_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """What was submitted, its scores and what exactly each number is about; or why it did not pass."""
    submission = get_object_or_404(_visible(request), pk=pk)
    marks = submissions.marks_of(submission)
    page = page_of(request, marks, MARKS)
    blocks = shown.blocks(submission, request.user)
    context = {
        "section": "submissions",
        "submission": submission,
        "blocks": blocks,
        "faults": submission.problems,
        "judged": shown.judged(submission, request.user),
        "on_boards": on_boards(submission.model, request.user) if submission.model else None,
        "page": page,
        "staff": allowed(request.user, "manage-submissions"),
        "ledger": submissions.ledger_of(submission) if allowed(request.user, "manage-submissions") else None,
        "kept": any(block.kept for block in blocks),
        "next": shown.next_of(submission, request.user, blocks),
    }
    return render(request, "leaderboard/submission.html", context)


@requires("submit")
@require_safe
def submission_problems(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Every fault of a file that did not pass, as CSV."""
    submission = get_object_or_404(_visible(request), pk=pk)
    rows = shown.fault_rows(submission.problems)
    return csv.download(f"submission-{pk}-problems.csv", FAULTS, rows)


@requires("submit")
@require_safe
def submission_marks(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The marked answers, those whose keys are open to everybody, as CSV."""
    submission = get_object_or_404(_visible(request), pk=pk)
    rows = (
        [mark.response.sample.key, mark.response.sample.split, mark.response.variant, mark.option, mark.right]
        for mark in submissions.marks_of(submission).iterator(chunk_size=1000)
    )
    header = ["sample", "split", "variant", "option", "right"]
    return csv.download(f"submission-{pk}-answers.csv", header, rows)


Change = Callable[[HttpRequest, Submission], str]


def _changing(rule: str) -> Callable[[Change], Callable[[HttpRequest, int], HttpResponse]]:
    """A view that changes a submission and goes back to it, with a message about the change or why it was refused."""

    def made(change: Change) -> Callable[[HttpRequest, int], HttpResponse]:
        @requires(rule)
        @require_POST
        @wraps(change)
        def view(request: HttpRequest, pk: int) -> HttpResponse:
            submission = get_object_or_404(_visible(request), pk=pk)
            with told(request, Refused):
                messages.success(request, change(request, submission))
            return redirect("leaderboard:submission-detail", pk)

        return view

    return made


def _by(request: HttpRequest) -> dict[str, Any]:
    """Who changes it, when, and why."""
    form = Reason(request.POST)
    reason = str(form.cleaned_data["reason"]) if form.is_valid() else ""
    return {"by": cast(User, request.user), "reason": reason, "now": timezone.now()}


@_changing("submit")
def submission_withdraw(request: HttpRequest, submission: Submission) -> str:
    """Take a submission out of what counts; it stays listed."""
    actions.withdraw(submission=submission, **_by(request))
    return f"{submission.name} is withdrawn. It stays listed."


@_changing("manage-submissions")
def submission_restore(request: HttpRequest, submission: Submission) -> str:
    """Undo a withdrawal, with a reason."""
    actions.restore(submission=submission, **_by(request))
    return f"{submission.name} is restored. {SCORED}"


@_changing("manage-submissions")
def submission_judge_again(request: HttpRequest, submission: Submission) -> str:
    """Let a submission whose judging was stopped queue again."""
    queue.judge_again(submission=submission)
    return f"{submission.name} is in the queue again."


@_changing("manage-submissions")
def submission_release(request: HttpRequest, submission: Submission) -> str:
    """Let the model's exact figures be told: that of the kept half now, others with the next edition."""
    by, more = cast(User, request.user), "more" in request.POST
    actions.release(submission=submission, now=timezone.now(), by=by, more=more)
    return f"{submission.name} is released, and {submission.by} is told so."


@_changing("manage-submissions")
def submission_rescore(request: HttpRequest, submission: Submission) -> str:
    """Score it again after keys or rules have changed."""
    actions.rescore(submission=submission)
    return SCORED


@requires("manage-submissions")
@require_safe
def submission_export(request: HttpRequest) -> HttpResponseBase:
    """Every submission with its main numbers, as CSV."""
    header = ["id", "benchmark", "model", "organisation", "by", "state", "reason", "sent", "split", "part", "kind", "n"]
    measures = list(shown.NAMES)

    def rows() -> Any:
        for submission in _visible(request).order_by("pk").iterator(chunk_size=500):
            model = submission.model
            start = [submission.pk, str(submission.benchmark), submission.name]
            start += [model.organisation if model else "", submission.by.username, submission.state]
            start += [submission.reason, submission.created_at.isoformat()]
            scores = list(SubmissionScore.objects.visible_to(request.user, submission))
            for score in scores:
                values = [(score.numbers.get(name) or {}).get("value") for name in measures]
                yield [*start, score.split, score.part, score.kind, score.n, *values]
            if not scores:
                yield [*start, "", "", "", "", *([""] * len(measures))]

    return csv.download("submissions.csv", [*header, *measures], rows())


@requires("submit")
@require_safe
def submission_template(request: HttpRequest, name: str) -> HttpResponseBase:
    """The samples to answer, as a file to fill in."""
    benchmark = _benchmark(request, name)
    shape = request.GET.get("shape", "jsonl")
    if shape not in submissions.SHAPES or (shape == "tsv" and not submissions.may_be_tsv(benchmark)):
        raise Http404("no such shape")
    circular = request.GET.get("circular") == "1"
    rows = submissions.template_rows(benchmark, request.GET.get("split"), circular=circular)
    return submissions.template_file(rows, shape, name=f"{benchmark.slug}-responses")


@requires("submit")
@require_safe
def submission_questions(request: HttpRequest, name: str) -> HttpResponseBase:
    """The questions to answer and their pictures, as a zip."""
    benchmark = _benchmark(request, name)
    records = exports.questions(benchmark, cast(User, request.user))
    pieces = exports.zipped(records=records, shape="jsonl", what="questions")
    filename = f"{benchmark.slug}-{benchmark.version}-questions.zip"
    return attached(StreamingHttpResponse(pieces, content_type=exports.ZIP), filename, kept=False)


@requires("manage-submissions")
@form_page
def submission_rules(request: HttpRequest, name: str) -> HttpResponse:
    """Which splits are hidden, and what researchers may send."""
    benchmark = _benchmark(request, name)
    rules = actions.rules_of(benchmark)
    splits = sorted(set(benchmark.samples.order_by().values_list("split", flat=True).distinct()))
    data, person = posted(request), cast(User, request.user)
    form = RulesForm(data, rules=rules, splits=splits)
    judging = JudgingForm(data, benchmark=benchmark)
    if form.is_valid() and judging.is_valid():
        with faults_in(form):
            with transaction.atomic():
                actions.set_rules(by=person, benchmark=benchmark, **form.cleaned_data)
                judging.save(by=person, benchmark=benchmark)
            return done(request, "The rules are changed.", "leaderboard:submission-rules", benchmark)
    context = {
        "section": "submissions",
        "benchmark": benchmark,
        "rules": rules,
        "form": form,
        "judging": judging,
        "splits": submissions.needed_splits(benchmark, rules),
        "count": benchmark.submissions.count(),
        "tellings": ladder.tellings(benchmark),
        "most_told": ladder.MOST_TOLD,
    }
    return render(request, "leaderboard/submission-rules.html", context)
