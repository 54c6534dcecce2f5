"""Reads for the pages of judges and runs."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, Exists, Max, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from accounts.models import Role, User
from accounts.rules import Viewer, allowed
from bank import guard
from bank.models import with_answers
from judging.endpoints.answers import Outcome, sentence
from judging.judgments import analyses
from judging.judgments.filters import STATUSES
from judging.models import JURY, Attempt, Collected, Judge, Judgment, Run, RunItem, WorkerBeat, table_of
from judging.runs import plan
from judging.work import curve
from judging.work.budget import typical_call
from judging.work.run_kinds import needs_pictures

ROWS = 14  # recent results on a run's page
SAID = 100  # failed calls that are looked through for what the endpoint says
OUTCOMES = {
    "rate": "Rate limit (429)",
    "transient": "The endpoint failed",
    "timeout": "No whole reply in time",
    "unreachable": "The endpoint cannot be reached",
}
NOTES = {
    "parse_failed": "raw reply kept, counts as unscored",
    "refused": "raw reply kept, counts as unscored",
    "filtered": "counts as unscored",
    "truncated": "raw reply kept, counts as unscored",
    "empty": "counts as unscored",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Judgments of a run without a verdict that share a status and reason."""

    run: Run
    status: str
    reason: str
    count: int
    last: datetime | None  # None for viewers who may not see times
    link: str  # to the judgment, or to the list of them; "" if neither is shown

    @property
    def can_retry(self) -> bool:
        """Responses of a model are never changed, not even a refusal; of one that is no answer nobody is asked."""
        return not self.not_asked and (self.run.judges or self.status == "error")

    @property
    def not_asked(self) -> bool:
        return self.reason in plan.NOT_ASKED.values()

    @property
    def title(self) -> str:
        if self.run.imported:
            return self.status
        if self.not_asked or (self.reason and self.status in ("error", "parse_failed")):
            return self.reason[:1].upper() + self.reason[1:]
        return STATUSES[self.status]

    @property
    def note(self) -> str:
        if self.not_asked:
            return "no call was made"
        if self.run.judges:
            return NOTES.get(self.status, "no verdict")
        return "no text" if self.status == "error" else "kept as the model's response"


@dataclass(frozen=True, slots=True)
class Spark:
    """A run's rate over time as a drawing of 368 x 72."""

    line: str
    area: str
    ticks: list[tuple[str, float]]  # label and height
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """A run's progress."""

    total: int
    usage: bool  # False for viewers who may not see rate, prices and times: those are empty
    withheld: bool = False  # only the total is shown; everything else is empty
    done: int = 0  # verdicts
    failed: int = 0  # judgments without one
    undecided: int = 0
    in_flight: int = 0
    limit: int = 0
    rate: float | None = None
    spent: float = 0.0
    expected: float | None = None
    left: timedelta | None = None
    until: datetime | None = None
    spark: Spark | None = None
    failures: list[Failure] = field(default_factory=list)
    retrying: list[tuple[str, int]] = field(default_factory=list)  # calls waiting for another attempt, and why
    limited: bool = False  # the endpoint asks for fewer calls
    pause: int = 0  # seconds of pause it asked for
    is_fruitless: bool = False  # it has ended without a single result
    workers: list[str] = field(default_factory=list)  # names of those working on it

    @property
    def unasked(self) -> int:
        """Of those without a verdict, how many were never asked for; 0 for viewers who may not see it."""
        return sum(failure.count for failure in self.failures if failure.not_asked)

    @property
    def faulty(self) -> int:
        return self.failed - self.unasked

    @property
    def retryable(self) -> int:
        return sum(failure.count for failure in self.failures if failure.can_retry)

    @property
    def percent(self) -> float:
        return 100 * self.done / self.total if self.total else 0.0

    @property
    def failed_percent(self) -> float:
        return 100 * self.faulty / (self.done + self.failed) if self.faulty else 0.0


ASIDE = ~Q(judge__baseline="") | Q(kind=Run.Kind.MARKS)


def runs_for(viewer: Viewer) -> QuerySet[Run]:
    return Run.objects.visible_to(viewer).select_related("judge", "benchmark", "by")


def own_first(runs: QuerySet[Run], viewer: User) -> QuerySet[Run]:
    """The viewer's own runs first, those of built-in judges and marks of recipes last; newest first within each."""
    rank = Case(When(ASIDE, then=2), When(by=viewer, then=0), default=1)
    return runs.order_by(rank, "-pk")


def progress(run: Run, *, viewer: Viewer) -> Progress:
    """Count a run's judgments, and read what the workers holding it report."""
    counted = listed([run], viewer=viewer)[0]
    usage = analyses.sees_usage(run, viewer)
    if counted.done is None or counted.failed is None:
        return Progress(total=counted.total, usage=usage, withheld=True)
    holds = list(run.holds.live()) if run.state == Run.State.RUNNING else []
    told = Progress(
        total=counted.total,
        usage=usage,
        done=counted.done,
        failed=counted.failed,
        undecided=_undecided(run),
        in_flight=sum(hold.in_flight for hold in holds),
        failures=_failures(run, viewer),
        is_fruitless=counted.is_fruitless,
        workers=[hold.worker for hold in holds],
    )
    reports = [hold.live for hold in holds]
    told = _with_reports(told, run, reports)
    return _with_usage(told, run, reports) if usage else told


def _with_reports(told: Progress, run: Run, reports: Sequence[dict[str, Any]]) -> Progress:
    """With what workers report of the endpoint: how many calls it takes at once, and what waits for another try."""
    retrying: Counter[str] = Counter()
    for report in reports:
        retrying.update(report.get("retrying", {}))
    pause = max((int(report.get("pause") or 0) for report in reports), default=0)
    return replace(
        told,
        limit=sum(int(report.get("limit") or 0) for report in reports) or run.judge.concurrency,
        retrying=[(OUTCOMES.get(why, why), count) for why, count in retrying.items()],
        limited=pause > 0 or any(report.get("limited") for report in reports),
        pause=pause,
    )


def _with_usage(told: Progress, run: Run, reports: Sequence[dict[str, Any]]) -> Progress:
    """With rate, cost and time left."""
    rate = sum(float(report.get("rate") or 0) for report in reports)
    open_calls = max(0, told.total - told.done - told.failed)
    left = timedelta(seconds=open_calls / rate) if rate and open_calls else None
    cost_per_call = typical_call(run)
    return replace(
        told,
        rate=rate or None,
        spent=run.spent,
        expected=run.spent + open_calls * cost_per_call if cost_per_call else None,
        left=left,
        until=timezone.now() + left if left else None,
        spark=_spark(run, reports),
    )


@guard.working()
def _failures(run: Run, viewer: Viewer) -> list[Failure]:
    """Failures by status and, for staff only, by reason, which can reveal something hidden; the commonest first."""
    with_reasons, table = allowed(viewer, "read-calls", of=run.benchmark), table_of(run).objects
    failed = table.filter(run=run, status__in=STATUSES)  # lists the statuses so that the index is used
    groups = failed.values("status", *(["reason_hash"] if with_reasons else []))
    rows = list(groups.annotate(n=Count("pk"), last=Max("created_at"), newest=Max("pk")))
    newest = [row["newest"] for row in rows]
    reasons = dict(table.filter(pk__in=newest).values_list("pk", "reason")) if with_reasons else {}
    failures = [
        Failure(
            run=run,
            status=row["status"],
            reason=reasons.get(row["newest"], ""),
            count=row["n"],
            last=row["last"] if analyses.sees_usage(run, viewer) else None,
            link=_link_to_failures(run, row["status"], row["newest"] if row["n"] == 1 else None, trials=with_reasons),
        )
        for row in rows
    ]
    return sorted(failures, key=lambda failure: -failure.count)


MOST_TOLD = 3  # reasons of failures


def failures_in_words(run: Run) -> tuple[list[str], bool]:
    """For who may run commands: how many calls of a run ended without a result and why, the commonest first; and
    whether any was made at all, and so can be made again.
    """
    failures = _failures(run, User(role=Role.ADMINISTRATOR))
    lines = [f"{failure.count:,} x {failure.status}: {failure.reason or 'no reason given'}" for failure in failures]
    others = sum(failure.count for failure in failures[MOST_TOLD:])
    lines = lines[:MOST_TOLD] + ([f"{others:,} x for other reasons"] if others else [])
    return lines, not all(failure.not_asked for failure in failures)


@guard.working()
def not_asked(runs: Sequence[int]) -> tuple[int, bool]:
    """Items of which these runs asked nobody, since an answer is none; and whether such an answer lost."""
    loses = Run.objects.filter(pk__in=runs, settings__unanswered="loses").exists()
    rows = Judgment.objects.filter(run__in=runs, reason_hash__in=plan.not_asked_keys())
    if not loses:
        rows = rows.filter(status__in=list(plan.NOT_ASKED))  # by the index, unless asked for distinct items
    return len(set(rows.order_by().values_list("item", flat=True))), loses


@guard.working()
def unasked(runs: Sequence[int]) -> dict[int, int]:
    """Of each run, how many judgments lack a verdict because an answer is none, so that nobody was asked."""
    rows = Judgment.objects.filter(run__in=runs, status__in=list(plan.NOT_ASKED), reason_hash__in=plan.not_asked_keys())
    return dict(rows.order_by().values_list("run").annotate(n=Count("pk")))


def endpoint_says(run: Run, *, viewer: Viewer) -> str:
    """What the endpoint said most often where calls failed lately, in its own words; "" for viewers who may not see it.

    It may quote the prompt: what it said of one item alone is left to that item's own page, if others failed.
    """
    if not allowed(viewer, "read-calls", of=run.benchmark) or run.imported:
        return ""
    failed = Attempt.objects.filter(Q(http_status__gte=400) | Q(outcome=Outcome.GARBAGE), run=run).order_by("-pk")
    said: dict[str, set[Any]] = {}
    for subject, sample, detail in failed.values_list("item", "sample", "detail")[:SAID]:
        if words := sentence(detail or ""):
            said.setdefault(words, set()).add((subject, sample))
    if not said:
        return ""
    words, about = max(said.items(), key=lambda pair: len(pair[1]))
    is_of_one = len(about) == 1 and (len(said) > 1 or run.reads_criteria)
    return "" if is_of_one else words


@guard.working()
def unread_reply(run: Run, *, viewer: Viewer) -> Judgment | None:
    """A reply of a run that paused since none could be read; None for viewers who may not read what judges wrote."""
    if not run.is_unread or not allowed(viewer, "read-analyses", of=run.benchmark):
        return None
    return run.judgments.exclude(raw__isnull=True).order_by("-pk").first()


def _link_to_failures(run: Run, status: str, only: int | None, *, trials: bool) -> str:
    if run.kind == Run.Kind.JUDGMENTS:
        detail_page, list_page, parameter = "judging:judgment-detail", "judging:judgment-list", "show"
    elif run.kind == Run.Kind.ATTACKS and trials:
        detail_page, list_page, parameter = "judging:trial-detail", "judging:trial-list", "status"
    else:
        return ""
    return reverse(detail_page, args=[only]) if only else f"{reverse(list_page)}?run={run.pk}&{parameter}={status}"


def item_count(run: Run) -> int:
    """How many items a run judges; for a collecting run, how many texts it collects."""
    if run.planned is None or not run.judges:
        return run.planned or run.run_items.count()
    return run.planned // plan.judgments_per_item(run)


@guard.working()
def _undecided(run: Run) -> int:
    if run.undecided is not None:
        return run.undecided
    return Judgment.objects.filter(run=run, choice="undecided").count()


def recent(run: Run, *, viewer: Viewer, show: str) -> list[Judgment]:
    """A run's newest judgments that this viewer may see; ``show`` is all, failed or undecided."""
    rows = Judgment.objects.seen_by(viewer).filter(run=run)
    if show == "failed":
        rows = rows.exclude(status="ok")
    elif show == "undecided":
        rows = rows.filter(choice="undecided")
    rows = rows.select_related("item__sample", "run").defer("analysis", "raw")
    rows = rows.prefetch_related("item__sample__images", with_answers("item__")).order_by("-pk")[:ROWS]
    return analyses.as_seen(rows, viewer)


def worker_seen() -> bool:
    """Whether a worker reported within the last minute."""
    return WorkerBeat.objects.living().exists()


def workers_without_pictures(run: Run) -> list[str]:
    """The live workers that cannot take the run because they lack its images."""
    if run.state in Run.ENDED or not needs_pictures(run):
        return []
    return list(WorkerBeat.objects.living().filter(lacks_pictures=True).order_by("name").values_list("name", flat=True))


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in a list. ``done`` and ``failed`` are None if they are withheld from the viewer. ``unasked``: of those
    without a verdict, how many were never asked for; 0 for viewers who may not see it.
    """

    run: Run
    total: int
    done: int | None
    failed: int | None
    unasked: int

    @property
    def faulty(self) -> int:
        return (self.failed or 0) - self.unasked

    @property
    def withheld(self) -> bool:
        return self.done is None

    @property
    def is_aside(self) -> bool:
        """Of a built-in judge, or the marks of a recipe, one run a model: ``ASIDE`` of the database."""
        return bool(self.run.judge.baseline) or self.run.kind == Run.Kind.MARKS

    @property
    def is_fruitless(self) -> bool:
        """Whether the run has ended without a single result."""
        return self.run.state == Run.State.FINISHED and self.faulty > 0 and not self.done


def _judged(runs: Sequence[Run]) -> dict[int, dict[str, int]]:
    """The judgments ``n`` and verdicts ``ok`` of the runs that do not count them themselves."""
    uncounted = [run.pk for run in runs if None in (run.verdicts, run.failures)]
    rows = Judgment.objects.filter(run__in=uncounted).order_by().values("run")
    return {row["run"]: row for row in rows.annotate(n=Count("pk"), ok=Count("pk", filter=Q(status="ok")))}


def _items_of(runs: Sequence[Run]) -> Counter[int]:
    """The items of the runs that do not say how many judgments they plan."""
    unplanned = [run.pk for run in runs if run.planned is None and not run.imported]
    counted = RunItem.objects.filter(run__in=unplanned).order_by().values_list("run").annotate(n=Count("pk"))
    return Counter(dict(counted))


def _done_and_failed(run: Run, judged: Mapping[str, int]) -> tuple[int, int]:
    done = judged["ok"] if run.verdicts is None else run.verdicts
    return done, judged["n"] - judged["ok"] if run.failures is None else run.failures


def _planned(run: Run, items: int) -> int:
    return items * plan.judgments_per_item(run) if run.planned is None else run.planned


@guard.working()
def listed(runs: Sequence[Run], *, viewer: Viewer) -> list[Listed]:
    """Runs as this viewer may see them, with their counts, in a few queries for all."""
    unseen = set(Run.objects.unseen_by(viewer))
    withheld = unseen | set(Run.objects.filter(pk__in=[run.pk for run in runs]).uncounted_by(viewer))
    judged, items = _judged(runs), _items_of(runs)
    not_asked_for = unasked([run.pk for run in runs]) if allowed(viewer, "read-calls") else {}
    result = []
    for run in runs:
        done, failed = _done_and_failed(run, judged.get(run.pk, {"n": 0, "ok": 0}))
        total = done + failed if run.imported else _planned(run, items[run.pk])
        seen = analyses.run_as_seen(run, viewer, unseen=unseen)
        hidden = run.pk in withheld
        without = 0 if hidden else not_asked_for.get(run.pk, 0)
        result.append(Listed(seen, total, None if hidden else done, None if hidden else failed, without))
    return result


def judges_with_counts() -> QuerySet[Judge]:
    of_jury = Run.objects.filter(judge=OuterRef("pk"), settings__has_key=JURY)
    runs = Run.objects.filter(judge=OuterRef("pk")).order_by().values("judge").annotate(n=Count("pk")).values("n")
    judges = Judge.objects.annotate(run_count=Coalesce(Subquery(runs), 0), is_jury=Exists(of_jury))
    return judges.order_by("baseline", Case(When(base_url="", then=1), default=0), "name")


# -- drawings ----------------------------------------------------------------------------------------------------------


LEFT, RIGHT, TOP, FLOOR = 34.0, 366.0, 8.0, 58.0


def _spark(run: Run, reports: Sequence[dict[str, Any]]) -> Spark | None:
    """From the reports of the workers on the run and of those that have left it."""
    total = curve.merged(*(report.get("curve") for report in (run.live, *reports)))
    points: list[int] = total.get("points") or []
    if len(points) < 3 or not any(points):
        return None
    rates = [number / total["width"] for number in points]
    top = _round_up(max(rates))
    step = (RIGHT - LEFT) / (len(rates) - 1)
    height = (FLOOR - TOP) / top
    line = " ".join(f"{LEFT + n * step:.1f},{FLOOR - rate * height:.1f}" for n, rate in enumerate(rates))
    start = datetime.fromisoformat(total["from"])
    return Spark(
        line=line,
        area=f"{LEFT},{FLOOR} {line} {RIGHT},{FLOOR}",
        ticks=[(_short(top * part), FLOOR - (FLOOR - TOP) * part) for part in (0, 0.5, 1)],
        start=start,
        end=start + timedelta(seconds=total["width"] * len(points)),
    )


def _short(number: float) -> str:
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _round_up(value: float) -> float:
    """The next round number that is easy to halve: 2, 4, 6, 8, 10, 20, ..."""
    scale = 10.0 ** max(-2, math.ceil(math.log10(value)) - 1)
    return next(step * scale for step in (2, 4, 6, 8, 10) if value <= step * scale)


def recent_texts(run: Run, *, viewer: Viewer, failed: bool) -> list[Collected]:
    """The newest rows of a collecting run, for staff only."""
    if run.judges or not allowed(viewer, "read-calls", of=run.benchmark):
        return []
    rows = Collected.objects.filter(run=run).select_related("sample", "response")
    if failed:
        rows = rows.exclude(status=Collected.Status.OK)
    return list(rows.order_by("-pk")[:ROWS])
