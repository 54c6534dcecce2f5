"""The start page of curators and administrators: what needs a decision, what is under way, what comes next."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.urls import reverse
from django.utils import timezone

from accounts import mail
from accounts.models import AuditEntry, Role, User
from accounts.rules import allowed
from annotations.labels.monitor import Counts, counts_of
from annotations.models import Campaign
from bank.models import Benchmark, Draft, Item, SampleReview, Upload
from judging.models import AnalysisRelease, Judge, QueuedSubmission, Run
from judging.runs.queries import worker_seen
from leaderboard.benchmarks import BenchmarkCounts, benchmark_counts, newest_visible
from leaderboard.pages.steps import NOW, Step, steps_of

SHOWN = 6  # of what is under way
MOST = 12  # decisions, benchmarks
DAY = timedelta(days=1)
SHOWN_OF_BENCHMARKS = ("samples", "labels", "judges", "baselines")  # these or what follows from them
SETUP = "setup"  # the preference that says whether the list of setting up is hidden


@dataclass(frozen=True, slots=True)
class Decision:
    """Something that stands still until somebody decides: its template has the words. ``of`` is what it is about; ``n``
    how much of it waits; ``since`` when it began to, if that is known; ``sent``: how often a file was.
    """

    template: str
    of: Any
    since: datetime | None
    n: int = 0
    sent: int = 1


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A run or a campaign, ``done`` of ``all``: its template has the words."""

    template: str
    of: Any
    done: int
    all: int
    counts: Counts | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """Whether a worker is at work and mail set up, how many runs wait, and what those of this month have spent; for
    administrators how often signing in ``failed`` within a day.
    """

    works: bool
    queued: int
    spent: float
    mail: bool
    failed: int | None


@dataclass(frozen=True, slots=True)
class Dashboard:
    """``benchmarks``: each with its next step; ``setup``: what is to be set up, where,
    and whether it is done.
    """

    decisions: list[Decision]
    under_way: list[UnderWay]
    benchmarks: list[tuple[BenchmarkCounts, Step]]
    machine: Machine
    setup: list[tuple[str, str, bool]]
    is_hidden: bool  # what is left to set up

    @property
    def set_up(self) -> int:
        return sum(done for _, _, done in self.setup)


def dashboard_of(viewer: User) -> Dashboard:
    now = timezone.now()
    decisions = sorted(_decisions(viewer), key=lambda each: each.since or now, reverse=True)
    return Dashboard(
        decisions=decisions[:MOST],
        under_way=[*_runs_under_way(), *_campaigns_under_way()][: 2 * SHOWN],
        benchmarks=_benchmarks(viewer),
        machine=_machine(viewer, now),
        setup=list(_setup(viewer)),
        is_hidden=viewer.preferences.get(SETUP) == "hidden",
    )


# ---- what needs a decision ----


def _decisions(viewer: User) -> Iterator[Decision]:
    yield from _paused_runs()
    yield from _uploads()
    yield from _complete_campaigns()
    yield from _stopped_submissions()
    yield from _drafts()
    yield from _reviews(viewer)
    yield from _releases(viewer)


def _paused_runs() -> Iterator[Decision]:
    halted = Run.objects.filter(state__in=Run.HALTED).exclude(state_reason="")
    for run in halted.select_related("judge", "benchmark").order_by("-pk")[:MOST]:
        yield Decision("leaderboard/_decision_run.html", run, run.started_at or run.created_at)


def _uploads() -> Iterator[Decision]:
    """Files that were checked, those of one name together."""
    waiting = Upload.objects.filter(state=Upload.State.CHECKED).order_by("-pk")
    by_name: dict[str, list[Upload]] = {}
    for upload in waiting[: 10 * MOST]:
        by_name.setdefault(upload.name, []).append(upload)
    for uploads in list(by_name.values())[:MOST]:
        newest = uploads[0]
        rows = sum(part["rows"] for part in newest.found.get("counted", []))
        yield Decision("leaderboard/_decision_upload.html", newest, newest.changed_at, rows, len(uploads))


def _complete_campaigns() -> Iterator[Decision]:
    complete = list(Campaign.objects.complete().select_related("benchmark").order_by("-pk")[:MOST])
    counts = counts_of(complete)
    for campaign in complete:
        so_far = counts[campaign.pk]
        yield Decision("leaderboard/_decision_campaign.html", campaign, so_far.newest, so_far.labels)


def _stopped_submissions() -> Iterator[Decision]:
    rows = QueuedSubmission.objects.filter(state=QueuedSubmission.State.STOPPED).order_by("-pk")
    for row in rows.select_related("submission__by", "submission__benchmark")[:MOST]:
        yield Decision("leaderboard/_decision_submission.html", row, row.finished_at)


def _drafts() -> Iterator[Decision]:
    waiting = Draft.objects.filter(state=Draft.State.WAITING)
    yield from _by_benchmark("leaderboard/_decision_drafts.html", waiting, "sample__benchmark", "created_at")


def _reviews(viewer: User) -> Iterator[Decision]:
    mine = SampleReview.objects.filter(reviewer=viewer, verdict="", round__closed_at=None)
    yield from _by_benchmark("leaderboard/_decision_reviews.html", mine, "round__benchmark", "round__opened_at")


def _by_benchmark(template: str, waiting: QuerySet[Any], benchmark: str, since: str) -> Iterator[Decision]:
    """One for the waiting rows of each benchmark, by their paths to it and to when they came."""
    for pk, n, newest in waiting.order_by().values_list(benchmark).annotate(n=Count("pk"), newest=Max(since))[:MOST]:
        yield Decision(template, Benchmark.objects.get(pk=pk), newest, n)


def _releases(viewer: User) -> Iterator[Decision]:
    proposed = AnalysisRelease.objects.filter(confirmed_at=None).exclude(proposed_by=viewer).order_by()
    for row in proposed.values("run").annotate(n=Count("pk"), newest=Max("proposed_at"))[:MOST]:
        yield Decision("leaderboard/_decision_release.html", row["run"], row["newest"], row["n"])


# ---- what is under way ----


def _runs_under_way() -> Iterator[UnderWay]:
    for run in Run.objects.filter(state__in=Run.GOING).select_related("judge", "benchmark").order_by("pk")[:SHOWN]:
        done = (run.verdicts or 0) + (run.failures or 0)
        yield UnderWay("leaderboard/_under_way_run.html", run, done, run.planned or 0)


def _campaigns_under_way() -> Iterator[UnderWay]:
    open_campaigns = Campaign.objects.filter(state=Campaign.State.OPEN).select_related("benchmark").order_by("-pk")
    shown = list(open_campaigns[:SHOWN])
    counts = counts_of(shown)
    for campaign in shown:
        so_far = counts[campaign.pk]
        yield UnderWay("leaderboard/_under_way_campaign.html", campaign, so_far.filled, so_far.slots, so_far)


# ---- the rest ----


def _benchmarks(viewer: User) -> list[tuple[BenchmarkCounts, Step]]:
    newest = sorted(newest_visible(viewer), key=lambda benchmark: -benchmark.pk)[:MOST]
    rows = []
    for counts in benchmark_counts(newest, viewer, names=SHOWN_OF_BENCHMARKS):
        steps = steps_of(counts)
        rows.append((counts, next((step for step in steps if step.state == NOW), steps[-1])))
    return rows


def _machine(viewer: User, now: datetime) -> Machine:
    queued = Run.objects.filter(state=Run.State.QUEUED).count()
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    spent = Run.objects.filter(created_at__gte=month).aggregate(spent=Sum("spent"))["spent"] or 0.0
    failed = None
    if allowed(viewer, "administer"):
        failed = AuditEntry.objects.filter(action="sign-in-failed", at__gte=now - DAY).count()
    return Machine(worker_seen(), queued, spent, mail.is_set_up(), failed)


def _setup(viewer: User) -> Iterator[tuple[str, str, bool]]:
    """What a new installation needs once."""
    administers = allowed(viewer, "administer")
    curators = User.objects.filter(role=Role.CURATOR, is_active=True)
    yield "A curator beside the administrator", reverse("people") if administers else "", curators.exists()
    real = Judge.objects.filter(baseline="", simulated=False)
    answered = real.filter(~Q(abilities={}) | Exists(Run.objects.filter(judge=OuterRef("pk"), calls__gt=0)))
    yield "A judge that answers", reverse("judging:judge-new"), answered.exists()
    yield "A benchmark with items", reverse("bank:upload-list"), Item.objects.exists()
    closed = Campaign.objects.filter(state=Campaign.State.CLOSED, imported=False)
    yield "A finished round of labels", reverse("annotations:campaign-new"), closed.exists()
    yield "Mail for invitations and notices", "", mail.is_set_up()
