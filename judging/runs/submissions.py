"""The loop of an online leaderboard: what researchers submit is paired with the anchor and judged, in a fair order and
within budgets. Workers call ``advance_open`` when they look for work; every step is one transaction, and repeating it
changes nothing.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import notices
from accounts.models import User
from bank.errors import BadInput
from bank.models import Benchmark, Item, ItemResponse, Response, Submission
from bank.samples.items import make_items, plan_items
from judging import protocols
from judging.models import JURY, OVERLAP, QueuedSubmission, Run, RunItem, SubmissionJudging
from judging.models.submissions import WHEN_TOLD
from judging.runs import estimates
from judging.runs.actions import cancel_run, check_budget, resume_run, start_run

log = logging.getLogger(__name__)
STORED = (Submission.State.CHECKED, Submission.State.SCORED)
VERDICTS = ("pair", "score", "components", "reference")  # about answers alone, or about one and the anchor's
WAITING, JUDGING, JUDGED, STOPPED = QueuedSubmission.State


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
    alike = {(run.judge_id, run.protocol, run.settings_hash) for run in patterns(benchmark)}
    if (like.judge_id, like.protocol, like.settings_hash) not in alike or like.benchmark_id != benchmark.pk:
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
    return SubmissionJudging.objects.update_or_create(benchmark=benchmark, defaults=values)[0]


# ---- the queue ----


def waiting(benchmark: Benchmark, *, today: date) -> list[Submission]:
    """The submissions that wait, in the order in which they will be judged.

    Next is always the oldest of whoever had the fewest judged on this day, so that nobody waits for somebody's tenth.
    """
    stored = Submission.objects.filter(benchmark=benchmark, state__in=STORED)
    rows = stored.filter(Q(queued=None) | Q(queued__state=WAITING)).order_by("pk").select_related("by", "model")
    had = Counter(
        QueuedSubmission.objects.filter(submission__benchmark=benchmark, day=today).values_list(
            "submission__by", flat=True
        )
    )
    turns = []
    for submission in rows:
        turns.append((had[submission.by_id], submission.pk, submission))
        had[submission.by_id] += 1
    return [submission for *_, submission in sorted(turns, key=lambda turn: turn[:2])]


def spent_on(benchmark: Benchmark, day: date) -> float:
    """What a day's submissions have cost, and may still cost where their runs are not over, in US dollars."""
    rows = QueuedSubmission.objects.filter(submission__benchmark=benchmark, day=day).select_related("run")
    return sum(_committed(row) for row in rows)


def _committed(row: QueuedSubmission) -> float:
    if row.run is None:
        return 0.0
    going = row.state == JUDGING and row.run.budget is not None
    return max(0.0, (row.run.budget or 0.0 if going else row.run.spent) - row.spent_before)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a submission stands. ``place`` from 1 in a queue of ``waiting``; ``done`` of ``planned`` judgments."""

    state: str  # of QueuedSubmission, or withdrawn
    reason: str = ""
    place: int | None = None
    waiting: int = 0
    done: int = 0
    planned: int = 0
    failures: int = 0
    run: Run | None = None
    finished_at: datetime | None = None


def progress(submission: Submission, *, staff: bool) -> Progress | None:
    """None where nobody judges the benchmark's submissions, or nothing of the submission was stored.

    Below staff, a run that held closed criteria tells nothing until the day after its end (``RunQuerySet.unseen_by``).
    """
    judging = judging_of(submission.benchmark)
    row = QueuedSubmission.objects.filter(submission=submission).select_related("run__judge").first()
    if submission.model_id is None or (row is None and (judging is None or not judging.active)):
        return None
    run = row.run if row else None
    told = run is not None and (staff or run.pk not in Run.objects.unseen_by(AnonymousUser()))
    names = {"done": "verdicts", "planned": "planned", "failures": "failures"}
    counts: dict[str, Any] = {name: getattr(run, column) or 0 for name, column in names.items()} if told else {}
    if submission.state not in STORED:
        return Progress("withdrawn", run=run, **counts)
    state = row.state if row else WAITING.value
    reason = row.reason if row else ""
    if run and state == JUDGING and run.state == Run.State.PAUSED:
        reason = f"paused: {run.state_reason}" if run.state_reason else "paused"
    place, length = None, 0
    if state == WAITING:
        order = [queued.pk for queued in waiting(submission.benchmark, today=day_of(timezone.now()))]
        place, length = order.index(submission.pk) + 1 if submission.pk in order else None, len(order)
    return Progress(state, reason, place, length, run=run, finished_at=row.finished_at if row else None, **counts)


# ---- going on ----


def advance_open() -> None:
    """Do what is next in every benchmark's queue."""
    stored = Submission.objects.filter(benchmark=OuterRef("benchmark"), state__in=STORED, queued=None)
    rows = QueuedSubmission.objects.filter(submission__benchmark=OuterRef("benchmark"), state__in=[WAITING, JUDGING])
    for pk in list(SubmissionJudging.objects.filter(Exists(stored) | Exists(rows)).values_list("pk", flat=True)):
        for row in advance(pk):
            tell(row)
    _let_editions_follow()


def _let_editions_follow() -> None:
    """Submissions that were judged before today: what their runs held is told by no time of day any more. A fault of
    what follows is none of the queue.
    """
    due = QueuedSubmission.objects.filter(state=JUDGED, edition_due__lte=day_of(timezone.now()))
    for benchmark in list(due.order_by().values_list("submission__benchmark", flat=True).distinct()):
        rows = list(due.filter(submission__benchmark=benchmark).select_related("run", "submission__benchmark"))
        if due.filter(pk__in=[row.pk for row in rows]).update(edition_due=None):
            for path in WHEN_TOLD:
                try:
                    import_string(path)(rows)
                except Exception:
                    log.exception("What follows a submission's judging failed")


@transaction.atomic
def advance(pk: int) -> list[QueuedSubmission]:
    """Note what has ended and start what is next; returns the submissions that have come to their end."""
    judging = SubmissionJudging.objects.select_for_update().filter(pk=pk).first()
    if judging is None:
        return []
    ended = []
    rows = QueuedSubmission.objects.filter(submission__benchmark=judging.benchmark_id, state__in=[WAITING, JUDGING])
    going = False
    for row in rows.select_related("run__judge", "submission__by", "submission__benchmark"):
        if row.submission.state not in STORED:
            _leave(row)
        elif row.state == JUDGING:
            _follow(row, judging)
            if row.state == JUDGED and judging.publishes:
                row.edition_due = day_of(timezone.now()) + timedelta(days=1)
                row.save(update_fields=["edition_due"])
            going |= row.state == JUDGING and row.run is not None and row.run.state in Run.GOING
            ended += [row] if row.state in (JUDGED, STOPPED) else []
    if judging.active and not going:
        begun = _next(judging)
        ended += [begun] if begun is not None and begun.state in (JUDGED, STOPPED) else []
    return ended


def _follow(row: QueuedSubmission, judging: SubmissionJudging) -> None:
    """Note what has become of the run."""
    run = row.run
    if run is None or run.state == Run.State.CANCELLED:
        _end(row, STOPPED, "its run was cancelled")
    elif run.state == Run.State.FINISHED:
        _end(row, JUDGED)
    elif run.is_out_of_budget and run.budget is not None:
        most = judging.per_submission
        if most is not None and run.budget >= most:
            _end(row, STOPPED, f"a submission may cost ${most:.2f}, and that is used up. A curator can allow more")
        else:
            row.state, row.reason = WAITING, "the day's budget is used up"
            row.save()


def _end(row: QueuedSubmission, state: str, reason: str = "") -> None:
    row.state, row.reason, row.finished_at = state, reason, timezone.now()
    row.save()


def _leave(row: QueuedSubmission) -> None:
    """A submission that was withdrawn leaves the queue, and its run ends unless it is about others, too."""
    run = row.run
    if run is not None and run.state not in (Run.State.FINISHED, Run.State.CANCELLED):
        own = ItemResponse.objects.filter(item=OuterRef("item"), response__submission=row.submission_id)
        if not RunItem.objects.filter(run=run).exclude(Exists(own)).exists():
            cancel_run(run=run)
    row.delete()  # a submission that is restored queues again


def _next(judging: SubmissionJudging) -> QueuedSubmission | None:
    """Start the first in the queue, if the day's budget has room for it."""
    today = day_of(timezone.now())
    order = waiting(judging.benchmark, today=today)
    if not order:
        return None
    left = None if judging.per_day is None else judging.per_day - spent_on(judging.benchmark, today)
    if left is not None and left <= 0:
        return None
    submission = order[0]
    row = QueuedSubmission.objects.filter(submission=submission).select_related("run__judge").first()
    row = row or QueuedSubmission(submission=submission, day=today)
    try:
        items = _items(judging, submission) if row.run is None else []
        cost = _estimate(judging, items)
        most = judging.per_submission
        if cost is not None and most is not None and cost > most:
            raise BadInput(f"judging it would cost about ${cost:.2f}, and a submission may cost ${most:.2f}")
        if cost is not None and left is not None and judging.per_day is not None and min(cost, judging.per_day) > left:
            return None  # it begins on a day that has enough left
        spent = row.run.spent if row.run else 0.0
        grants = [limit for limit in (left, None if most is None else most - spent) if limit is not None]
        budget = spent + min(grants) if grants else None
        if row.run is not None and budget is not None and budget <= (row.run.budget or 0.0):
            if left == judging.per_day:  # a whole day's money bought nothing
                raise BadInput("a single call may cost more than the budget of a day")
            return None  # it was given today's money already
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
    except BadInput as error:
        row.state, row.reason, row.finished_at = STOPPED.value, str(error).rstrip("."), timezone.now()
    row.save()
    return row


def _items(judging: SubmissionJudging, submission: Submission) -> Sequence[Item]:
    """The items of a submission that no run with the same settings judges, made where they are missing."""
    like, benchmark = judging.like, judging.benchmark
    kind = protocols.get(like.protocol).kind
    anchor = benchmark.anchor.name if benchmark.anchor and kind == Item.Kind.PAIR else ""
    if kind == Item.Kind.PAIR and not anchor:
        raise BadInput("the benchmark has no anchor any more")
    make_items(plan_items(kind=kind, benchmark=benchmark, models=[submission.name], anchor=anchor))
    answers = Response.objects.filter(submission=submission, variant="")
    items: QuerySet[Item] = Item.objects.filter(kind=kind, places__response__in=answers)
    if anchor:
        items = items.filter(places__response__in=Response.objects.filter(model=benchmark.anchor_id))
    alike = Run.objects.filter(
        judge=like.judge, benchmark=benchmark, protocol=like.protocol, settings_hash=like.settings_hash
    )
    alike = alike.filter(kind=Run.Kind.JUDGMENTS, imported=False).exclude(state=Run.State.CANCELLED)
    taken = RunItem.objects.filter(item=OuterRef("pk"), run__in=alike)
    in_use = benchmark.samples.in_use()
    return list(items.filter(~Exists(taken), sample__in=in_use).order_by("pk").distinct())


def _estimate(judging: SubmissionJudging, items: Sequence[Item]) -> float | None:
    """US dollars; None for judges without prices."""
    if not items or judging.like.judge.is_baseline:
        return None
    return estimates.estimate(
        judge=judging.like.judge,
        benchmark=judging.benchmark,
        protocol=protocols.get(judging.like.protocol),
        settings=judging.like.settings,
        items=Item.objects.filter(pk__in=[item.pk for item in items]),
    ).cost


@transaction.atomic
def judge_again(*, submission: Submission) -> None:
    """Let a submission that was stopped queue again. Raises BadInput."""
    row = QueuedSubmission.objects.select_for_update().filter(submission=submission, state=STOPPED).first()
    if row is None:
        raise BadInput("Only a submission whose judging was stopped can queue again.")
    if row.run is not None and row.run.state == Run.State.PAUSED:
        row.state, row.reason, row.finished_at = WAITING.value, "", None
        row.save()
    else:
        row.delete()


def tell(row: QueuedSubmission) -> None:
    """Tell whoever submitted."""
    submission = row.submission
    name = f"{submission.name} on {submission.benchmark.title}"
    text = f"{name} is judged." if row.state == JUDGED else f"{name} was not judged: {row.reason}."
    page = reverse("leaderboard:submission-detail", args=[submission.pk])
    notices.tell(submission.by, key=f"submission-{submission.pk}-{row.finished_at:%Y%m%d%H%M%S}", text=text, link=page)


def day_of(now: datetime) -> date:
    """The day by which budgets are counted: UTC's."""
    return now.astimezone(UTC).date()
