"""The loop of an online leaderboard: what researchers submit is paired with the anchor and judged, in a fair order and
within budgets. A job calls ``advance_open`` when something has changed; every step is one transaction, and repeating it
changes nothing.

Time and money of calls whose prompts hold criteria tell how long these are, so of them a submitter learns neither: the
queue is shown as it stood at midnight (UTC), and budgets count what prompts of ordinary length would cost (the template
with two criteria of together 280 characters, ``judging.runs.estimates``).
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import notices
from accounts.jobs import defer
from accounts.models import User
from bank import guard
from bank.errors import BadInput
from bank.models import Benchmark, Item, ItemResponse, Response, Submission
from bank.samples.items import make_items, plan_items
from bank.submissions.announcements import announce_submission
from judging import protocols
from judging.judgments.analyses import on_the_day
from judging.models import JURY, OVERLAP, QueuedSubmission, Run, RunItem, SubmissionJudging
from judging.models.submissions import WHEN_TOLD
from judging.runs import estimates
from judging.runs.actions import cancel_run, check_budget, resume_run, start_run

log = logging.getLogger(__name__)
STORED = (Submission.State.CHECKED, Submission.State.SCORED)
VERDICTS = ("pair", "score", "components", "reference")  # about answers alone, or about one and the anchor's
WAITING, JUDGING, JUDGED, STOPPED = QueuedSubmission.State
# A run with criteria pauses when it has spent this many times the ordinary cost: a net against a judge that runs away,
# wide enough that no ordinary length of criteria reaches it.
NET = 10
TOO_DEAR = "it would cost more than a submission may"
TOO_DEAR_FOR_A_DAY = "it would cost more than all submissions of a day may"
CANCELLED = "its run was cancelled"
USED_UP = "what a submission may cost is used up. A curator can allow more"
NO_ANCHOR = "the benchmark has no anchor any more"
TOLD_REASONS = (TOO_DEAR, TOO_DEAR_FOR_A_DAY, CANCELLED, NO_ANCHOR)  # they depend on nothing that is hidden
OTHER_REASON = "a curator knows why"


# ---- rules ----


def judging_of(benchmark: Benchmark) -> SubmissionJudging | None:
    """How the benchmark's submissions are judged, whether that is active or not."""
    rows = SubmissionJudging.objects.filter(benchmark=benchmark)
    return rows.select_related("like__judge", "benchmark__anchor").first()


def patterns(benchmark: Benchmark) -> list[Run]:
    """The runs that submissions can be judged like, newest first, one for each judge, protocol and settings."""
    runs = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS, imported=False)
    runs = runs.exclude(settings__has_key=JURY).exclude(state=Run.State.CANCELLED).exclude(judge__baseline=OVERLAP)
    alike: dict[tuple[int, str, str], Run] = {}
    for run in runs.order_by("-pk").select_related("judge"):
        if run.judge.can_run and protocols.get(run.protocol).verdict_kind in VERDICTS:
            alike.setdefault((run.judge_id, run.protocol, run.settings_hash), run)
    return list(alike.values())


@transaction.atomic
def set_judging(
    *,
    by: User | None,
    benchmark: Benchmark,
    like: Run,
    active: bool = True,
    per_submission: float | None = None,
    per_day: float | None = None,
    publishes: bool | None = None,
) -> SubmissionJudging:
    """Have a benchmark's submissions judged like a run; ``publishes`` stays as it is if None. Raises BadInput."""
    if like.benchmark_id != benchmark.pk or like.alike not in [run.alike for run in patterns(benchmark)]:
        raise BadInput(
            f"Submissions cannot be judged like run {like.pk}: it takes a run on {benchmark} of a judge that can be "
            "asked, over pairs or single answers.",
            "like",
        )
    if protocols.get(like.protocol).kind == Item.Kind.PAIR and benchmark.anchor_id is None:
        raise BadInput(f"{benchmark} has no anchor to compare submissions with. Choose one on its page.", "like")
    for budget in (per_submission, per_day):
        check_budget(like.judge, budget)
    values = {"like": like, "active": active, "per_submission": per_submission, "per_day": per_day, "changed_by": by}
    values |= {} if publishes is None else {"publishes": publishes}
    defer("follow_runs")
    return SubmissionJudging.objects.update_or_create(benchmark=benchmark, defaults=values)[0]


# ---- the queue ----


def waiting(benchmark: Benchmark) -> list[Submission]:
    """The submissions that wait, in the order in which they will be judged.

    Next is always the oldest of whoever had the fewest judged today, so that nobody waits for somebody's tenth.
    """
    stored = Submission.objects.filter(benchmark=benchmark, state__in=STORED)
    rows = stored.filter(Q(queued=None) | Q(queued__state=WAITING)).order_by("pk").select_related("by", "model")
    of_today = QueuedSubmission.objects.filter(submission__benchmark=benchmark, day=day_of(timezone.now()))
    had = Counter(of_today.values_list("submission__by", flat=True))
    turns = []
    for submission in rows:
        turns.append((had[submission.by_id], submission.pk, submission))
        had[submission.by_id] += 1
    return [submission for *_, submission in sorted(turns, key=lambda turn: turn[:2])]


def spent_on(benchmark: Benchmark, day: date) -> float:
    """The cost of a day's submissions, and what they may still cost where their runs are not over, in US dollars."""
    rows = QueuedSubmission.objects.filter(submission__benchmark=benchmark, day=day).select_related("run")
    return sum(_committed(row) for row in rows)


def _committed(row: QueuedSubmission) -> float:
    if row.run is None:
        return 0.0
    if row.run.held:
        return row.ordinary_cost or 0.0
    going = row.state == JUDGING and row.run.budget is not None
    return max(0.0, (row.run.budget or 0.0 if going else row.run.spent) - row.spent_before)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a submission stands. ``place`` from 1 in a queue of ``waiting``; ``done`` of ``planned`` judgments.

    None stands for what this viewer is not told.
    """

    state: str  # of QueuedSubmission, or withdrawn
    reason: str = ""
    place: int | None = None
    waiting: int | None = None
    done: int | None = None
    planned: int | None = None
    failures: int | None = None
    run: Run | None = None
    finished_at: datetime | None = None
    told_next: datetime | None = None  # when more of it is told, where that is once a day


def progress(submission: Submission, *, staff: bool) -> Progress | None:
    """None where nobody judges the benchmark's submissions, or nothing of the submission was stored."""
    judging = judging_of(submission.benchmark)
    row = QueuedSubmission.objects.filter(submission=submission).select_related("run__judge").first()
    if submission.model_id is None or (row is None and (judging is None or not judging.active)):
        return None
    if not staff and _holds_criteria(judging, row):
        return _as_at_midnight(submission, row)
    progress = _of_row(row)
    if submission.state not in STORED:
        return replace(progress, state="withdrawn")
    if row is not None:
        reason = _reason(row, judging, staff=staff)
        progress = replace(progress, reason=reason, finished_at=_ended(row, staff=staff))
    return _in_the_queue(progress, submission) if progress.state == WAITING else progress


def _ended(row: QueuedSubmission, *, staff: bool) -> datetime | None:
    """When a submission came to its end; below staff the day alone."""
    return row.finished_at if staff or row.finished_at is None else on_the_day(row.finished_at)


def _of_row(row: QueuedSubmission | None) -> Progress:
    """The state of the queue's row, with the counts of its run."""
    made = Progress(row.state if row else WAITING.value, waiting=0, done=0, planned=0, failures=0)
    run = row.run if row else None
    if run is None:
        return made
    done, planned, failures = run.verdicts or 0, run.planned or 0, run.failures or 0
    return replace(made, run=run, done=done, planned=planned, failures=failures)


def _in_the_queue(made: Progress, submission: Submission) -> Progress:
    """With its place in the queue, from 1, and how many wait."""
    order = [queued.pk for queued in waiting(submission.benchmark)]
    place = order.index(submission.pk) + 1 if submission.pk in order else None
    return replace(made, place=place, waiting=len(order))


def _holds_criteria(judging: SubmissionJudging | None, row: QueuedSubmission | None) -> bool:
    """Whether the judge's prompts hold criteria, or will."""
    if row is not None and row.run is not None:
        return bool(row.run.held)
    return judging is None or bool(judging.like.held)


def _reason(row: QueuedSubmission, judging: SubmissionJudging | None, *, staff: bool) -> str:
    run = row.run
    if run and row.state == JUDGING and run.state == Run.State.PAUSED:
        return f"paused: {run.state_reason}" if staff and run.state_reason else "paused"
    return _reason_for_staff(row, judging) if staff else _told_reason(row)


def _reason_for_staff(row: QueuedSubmission, judging: SubmissionJudging | None) -> str:
    if row.reason in (TOO_DEAR, TOO_DEAR_FOR_A_DAY) and judging is not None and row.ordinary_cost is not None:
        limit = _limit_in_words(judging.per_submission if row.reason == TOO_DEAR else judging.per_day)
        return f"{row.reason}: about ${row.ordinary_cost:.2f} by ordinary prompts{limit}"
    return row.reason


def _limit_in_words(most: float | None) -> str:
    return "" if most is None else f", of ${most:.2f}"


def _told_reason(row: QueuedSubmission) -> str:
    """Why it was not judged, as its sender reads it."""
    if not row.reason or row.reason in TOLD_REASONS or (row.run is not None and not row.run.held):
        return row.reason
    return OTHER_REASON


def _as_at_midnight(submission: Submission, row: QueuedSubmission | None) -> Progress:
    """Its state when the day (UTC) began; neither its place nor any counts."""
    midnight = datetime.combine(day_of(timezone.now()) + timedelta(days=1), time.min, UTC)
    if row is None or row.state == WAITING or row.day >= day_of(timezone.now()):
        stored = submission.state in STORED
        return Progress(WAITING.value, told_next=midnight) if stored else Progress("withdrawn")
    run = row.run
    if submission.state not in STORED:
        return Progress("withdrawn", run=run)
    if not is_told(row):
        return Progress(JUDGING.value, run=run, told_next=midnight)
    reason = _told_reason(row) if row.state == STOPPED else ""
    return Progress(row.state, reason, run=run, finished_at=_ended(row, staff=False))


def is_told(row: QueuedSubmission) -> bool:
    """Whether its sender may know that it has come to its end: on the next day, where prompts held criteria."""
    if row.state not in (JUDGED, STOPPED) or row.finished_at is None:
        return False
    held = _holds_criteria(judging_of(row.submission.benchmark), row)
    return not held or day_of(row.finished_at) < day_of(timezone.now())


# ---- going on ----


def advance_open() -> None:
    """Do what is next in every benchmark's queue, and tell of submissions at their end whoever may know of it now."""
    stored = Submission.objects.filter(benchmark=OuterRef("benchmark"), state__in=STORED, queued=None)
    rows = QueuedSubmission.objects.filter(submission__benchmark=OuterRef("benchmark"), state__in=[WAITING, JUDGING])
    for pk in list(SubmissionJudging.objects.filter(Exists(stored) | Exists(rows)).values_list("pk", flat=True)):
        advance(pk)
    ended = QueuedSubmission.objects.filter(told=False, state__in=[JUDGED, STOPPED], submission__state__in=STORED)
    judged: dict[int, list[QueuedSubmission]] = {}
    for row in ended.select_related("run", "submission__by", "submission__benchmark").order_by("pk"):
        if is_told(row) and tell(row) and row.state == JUDGED:
            judged.setdefault(row.submission.benchmark_id, []).append(row)
    for of_benchmark in judged.values():
        for path in WHEN_TOLD:
            try:
                import_string(path)(of_benchmark)
            except Exception:  # what follows is none of the queue
                log.exception("What follows a submission's judging failed")


@transaction.atomic
def advance(pk: int) -> None:
    """Note what has ended and start what is next."""
    judging = SubmissionJudging.objects.select_for_update().filter(pk=pk).first()
    if judging is None:
        return
    rows = QueuedSubmission.objects.filter(submission__benchmark=judging.benchmark_id, state__in=[WAITING, JUDGING])
    going = False
    for row in rows.select_related("run__judge", "submission__by", "submission__benchmark"):
        if row.submission.state not in STORED:
            _leave(row)
        elif row.state == JUDGING:
            _follow(row, judging)
            going |= row.state == JUDGING and row.run is not None and row.run.state in Run.GOING
    if judging.active and not going:
        _next(judging)


def _follow(row: QueuedSubmission, judging: SubmissionJudging) -> None:
    """Note what has become of the run."""
    run = row.run
    if run is None or run.state == Run.State.CANCELLED:
        _end(row, STOPPED, CANCELLED)
    elif run.state == Run.State.FINISHED:
        _end(row, JUDGED)
    elif run.is_out_of_budget and run.budget is not None and not run.held:
        most = judging.per_submission
        if most is not None and run.budget >= most:
            _end(row, STOPPED, USED_UP)
        else:
            row.state, row.reason = WAITING, "the day's budget is used up"
            row.save()


def _end(row: QueuedSubmission, state: str, reason: str = "") -> None:
    row.state, row.reason, row.finished_at = state, reason, timezone.now()
    row.save()


def _leave(row: QueuedSubmission) -> None:
    """A submission that was withdrawn leaves the queue, and its run ends unless it is about others, too."""
    run = row.run
    if run is not None and run.state not in Run.ENDED:
        own = ItemResponse.objects.filter(item=OuterRef("item"), response__submission=row.submission_id)
        if not RunItem.objects.filter(run=run).exclude(Exists(own)).exists():
            cancel_run(run=run)
    row.delete()  # a submission that is restored queues again


def _next(judging: SubmissionJudging) -> None:
    """Start the first in the queue, if the day's budget has room for it."""
    today = day_of(timezone.now())
    order = waiting(judging.benchmark)
    if not order:
        return
    left = None if judging.per_day is None else judging.per_day - spent_on(judging.benchmark, today)
    if left is not None and left <= 0:
        return
    row = QueuedSubmission.objects.filter(submission=order[0]).select_related("run__judge").first()
    row = row or QueuedSubmission(submission=order[0], day=today)
    try:
        if _begin(judging, row, today=today, left=left):
            row.save()
    except BadInput as error:
        _end(row, STOPPED, str(error).rstrip("."))


def _begin(judging: SubmissionJudging, row: QueuedSubmission, *, today: date, left: float | None) -> bool:
    """Judge a submission, or go on with it; False where there is not enough of the day's budget.

    Raises BadInput where it can never be judged.
    """
    held = _holds_criteria(judging, row)
    items = _items(judging, row.submission) if row.run is None else []
    if items:
        row.ordinary_cost = _estimate(judging, items)
    cost = row.ordinary_cost if items or held else None
    if cost is not None and not _affordable(judging, cost, held=held, left=left):
        return False
    spent = row.run.spent if row.run else 0.0
    budget = _budget(judging, spent=spent, left=left, cost=cost, held=held)
    if row.run is not None and budget is not None and budget <= (row.run.budget or 0.0) and not held:
        if left == judging.per_day:  # a whole day's money bought nothing
            raise BadInput("a single call may cost more than the budget of a day")
        return False  # it was given today's money already
    row.day, row.spent_before, row.state, row.reason = today, spent, JUDGING.value, ""
    if row.run is not None:
        if row.run.state == Run.State.PAUSED:
            resume_run(run=row.run, budget=budget)
    elif items:
        row.run = start_run(
            judge=judging.like.judge,
            benchmark=judging.benchmark,
            protocol=judging.like.protocol,
            settings=judging.like.settings,
            items=items,
            budget=budget,
            by=judging.changed_by,
        )
    else:
        row.state, row.finished_at = JUDGED.value, timezone.now()  # other runs judge all of it
    return True


def _affordable(judging: SubmissionJudging, cost: float, *, held: bool, left: float | None) -> bool:
    """Whether what is left of the day is enough; else it begins on another day. Raises BadInput where none ever is."""
    if judging.per_submission is not None and cost > judging.per_submission:
        raise BadInput(TOO_DEAR)
    if judging.per_day is None or left is None:
        return True
    if held and cost > judging.per_day:
        raise BadInput(TOO_DEAR_FOR_A_DAY)
    return min(cost, judging.per_day) <= left


def _budget(
    judging: SubmissionJudging, *, spent: float, left: float | None, cost: float | None, held: bool
) -> float | None:
    """The money that the run may have spent in all before it pauses; None for no limit."""
    if held:
        limited = judging.per_submission is not None or judging.per_day is not None
        return spent + NET * cost if limited and cost is not None else None
    most = judging.per_submission
    grants = [limit for limit in (left, None if most is None else most - spent) if limit is not None]
    return spent + min(grants) if grants else None


@guard.working()
def _items(judging: SubmissionJudging, submission: Submission) -> Sequence[Item]:
    """The items of a submission that no run with the same settings judges, made where they are missing."""
    like, benchmark = judging.like, judging.benchmark
    kind = protocols.get(like.protocol).kind
    anchor = benchmark.anchor.name if benchmark.anchor and kind == Item.Kind.PAIR else ""
    if kind == Item.Kind.PAIR and not anchor:
        raise BadInput(NO_ANCHOR)
    make_items(plan_items(kind=kind, benchmark=benchmark, models=[submission.name], anchor=anchor))
    answers = Response.objects.filter(submission=submission, variant="")
    items: QuerySet[Item] = Item.objects.filter(kind=kind, places__response__in=answers)
    if anchor:
        items = items.filter(places__response__in=Response.objects.filter(model=benchmark.anchor_id))
    alike = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS, imported=False, **like.alike)
    taken = RunItem.objects.filter(item=OuterRef("pk"), run__in=alike.exclude(state=Run.State.CANCELLED))
    in_use = benchmark.samples.in_use()
    return list(items.filter(~Exists(taken), sample__in=in_use).order_by("pk").distinct())


def _estimate(judging: SubmissionJudging, items: Sequence[Item]) -> float | None:
    """US dollars, by prompts of ordinary length; None for judges without prices."""
    if not items or judging.like.judge.is_baseline:
        return None
    return estimates.estimate(
        judge=judging.like.judge,
        benchmark=judging.benchmark,
        protocol=protocols.get(judging.like.protocol),
        settings=judging.like.settings,
        items=Item.objects.filter(pk__in=[item.pk for item in items]),
        ordinary=True,
    ).cost


@transaction.atomic
def judge_again(*, submission: Submission) -> None:
    """Let a submission that was stopped queue again. Raises BadInput."""
    row = QueuedSubmission.objects.select_for_update().filter(submission=submission, state=STOPPED).first()
    if row is None:
        raise BadInput("Only a submission whose judging was stopped can queue again.")
    defer("follow_runs")
    if row.run is not None and row.run.state == Run.State.PAUSED:
        row.state, row.reason, row.finished_at, row.told = WAITING.value, "", None, False
        row.save()
    else:
        row.delete()


@transaction.atomic
def tell(row: QueuedSubmission) -> bool:
    """Tell whoever submitted, once; whether this was the time."""
    if not QueuedSubmission.objects.filter(pk=row.pk, told=False).update(told=True):
        return False
    submission = row.submission
    name = f"{submission.name} on {submission.benchmark.title}"
    with guard.serving(lambda: submission.by):
        text = f"{name} is judged." if row.state == JUDGED else f"{name} was not judged: {_told_reason(row)}."
    page = reverse("leaderboard:submission-detail", args=[submission.pk])
    key = f"{submission.pk}-{row.finished_at:%Y%m%d%H%M%S}"
    notices.tell(submission.by, key=f"submission-{key}", text=text, link=page)
    announce_submission("submission.scored" if row.state == JUDGED else "submission.failed", submission, key=key)
    return True


def day_of(now: datetime) -> date:
    """The day by which budgets are counted: UTC's."""
    return now.astimezone(UTC).date()
