"""The start page of curators and administrators: what needs a decision, what is under way, what comes next."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Max, OuterRef, Q, Sum
from django.urls import reverse
from django.utils import timezone

from accounts import mail
from accounts.models import AuditEntry, Role, User
from accounts.rules import allowed
from annotations.models import Campaign
from bank.models import Benchmark, Draft, Item, SampleReview, Upload
from judging.models import AnalysisRelease, Judge, QueuedSubmission, Run
from judging.runs.queries import worker_seen
from leaderboard import queries
from leaderboard.figures import number_of
from leaderboard.pages.steps import NOW, steps_of

SHOWN = 6  # of what is under way
MOST = 12  # decisions, benchmarks
METER = 132  # pixels
DAY = timedelta(days=1)
MAIL_CURE = "Mail: the operator sets EMAIL_URL, as docs/operations.md says, and starts evalsite again."
BACKUP_CURE = "Backup: the operator runs manage.py backup FOLDER --verify, best each night (docs/backup.md)."
SETUP = "setup"  # the preference that says whether the list of setting up is hidden


@dataclass(frozen=True, slots=True)
class Decision:
    """Something that stands still until somebody decides. ``since`` is when it began to wait, if that is known;
    ``dismiss`` names the files that may be cancelled instead.
    """

    icon: str
    title: str
    detail: str
    verb: str
    link: str
    since: datetime | None
    dismiss: str = ""


@dataclass(frozen=True, slots=True)
class UnderWay:
    title: str
    link: str
    count: str
    share: int  # of 132, the width of a meter
    detail: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A line about the machine, and what to do where something is left to do."""

    what: str
    words: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """``benchmarks``: each with the words of its next step and where that is; ``setup``: what is to be set up, where,
    and whether it is done.
    """

    decisions: list[Decision]
    under_way: list[UnderWay]
    benchmarks: list[tuple[queries.BenchmarkCounts, str, str]]
    machine: list[Fact]
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
    halted = Run.objects.filter(state__in=(Run.State.PAUSED, Run.State.WAITING)).exclude(state_reason="")
    for run in halted.select_related("judge", "benchmark").order_by("-pk")[:MOST]:
        done = "" if run.planned is None else f"{run.verdicts or 0:,} of {run.planned:,}, "
        spent = f", ${run.spent:.2f} spent" if run.spent else ""
        yield Decision(
            "player-pause",
            f"Run {run.pk} {'waits' if run.state == Run.State.WAITING else 'is paused'}: {run.state_reason}",
            f"{run.judge} on {run.benchmark.titled}: {done}{number_of(run.calls, 'call')}{spent}",
            "Raise the budget" if run.is_out_of_budget else "See and resume",
            reverse("judging:run-detail", args=[run.pk]),
            run.started_at or run.created_at,
        )


def _uploads() -> Iterator[Decision]:
    """Files that were checked, those of one name together."""
    waiting = Upload.objects.filter(state=Upload.State.CHECKED).order_by("-pk")
    by_name: dict[str, list[Upload]] = {}
    for upload in waiting[: 10 * MOST]:
        by_name.setdefault(upload.name, []).append(upload)
    for name, (newest, *older) in list(by_name.items())[:MOST]:
        rows = sum(part["rows"] for part in newest.found.get("counted", []))
        sent = f", sent {len(older) + 1} times" if older else ""
        yield Decision(
            "upload",
            f"{name} is checked and waits",
            f"{number_of(rows, 'row')}{sent}",
            "See and import",
            reverse("bank:upload-detail", args=[newest.pk]),
            newest.changed_at,
            dismiss=name,
        )


def _complete_campaigns() -> Iterator[Decision]:
    complete = Campaign.objects.complete().annotate(
        n=Count("labels", filter=Q(labels__excluded=False)), newest=Max("labels__created_at")
    )
    for campaign in complete.select_related("benchmark").order_by("-pk")[:MOST]:
        yield Decision(
            "check",
            f"{campaign.name} is complete",
            f"{number_of(campaign.n, 'label')} on {campaign.benchmark.titled}; closing it opens its rows",
            "See and close",
            reverse("annotations:campaign-detail", args=[campaign.pk]),
            campaign.newest,
        )


def _stopped_submissions() -> Iterator[Decision]:
    rows = QueuedSubmission.objects.filter(state=QueuedSubmission.State.STOPPED).order_by("-pk")
    for row in rows.select_related("submission__by", "submission__benchmark")[:MOST]:
        submission = row.submission
        yield Decision(
            "file",
            f"{submission.name} on {submission.benchmark.titled} was not judged",
            f"by {submission.by.username}: {row.reason}",
            "Decide",
            reverse("leaderboard:submission-detail", args=[submission.pk]),
            row.finished_at,
        )


def _drafts() -> Iterator[Decision]:
    waiting = Draft.objects.filter(state=Draft.State.WAITING).order_by().values("sample__benchmark")
    for row in waiting.annotate(n=Count("pk"), newest=Max("created_at"))[:MOST]:
        benchmark = Benchmark.objects.get(pk=row["sample__benchmark"])
        yield Decision(
            "edit",
            f"{number_of(row['n'], 'draft')} for {benchmark.titled}",
            "written by an endpoint, taken by nobody yet",
            "Check the drafts",
            reverse("bank:benchmark-drafts", args=[benchmark]),
            row["newest"],
        )


def _reviews(viewer: User) -> Iterator[Decision]:
    mine = SampleReview.objects.filter(reviewer=viewer, verdict="", round__closed_at=None).order_by()
    for row in mine.values("round__benchmark").annotate(n=Count("pk"), newest=Max("round__opened_at"))[:MOST]:
        benchmark = Benchmark.objects.get(pk=row["round__benchmark"])
        yield Decision(
            "eye",
            f"{number_of(row['n'], 'sample')} of {benchmark.titled} to review",
            "given to you; others wait for your verdict",
            "Review",
            reverse("bank:benchmark-reviews", args=[benchmark]),
            row["newest"],
        )


def _releases(viewer: User) -> Iterator[Decision]:
    proposed = AnalysisRelease.objects.filter(confirmed_at=None).exclude(proposed_by=viewer).order_by()
    for row in proposed.values("run").annotate(n=Count("pk"), newest=Max("proposed_at"))[:MOST]:
        analyses = number_of(row["n"], "analysis", "analyses")
        yield Decision(
            "users",
            f"{analyses} of run {row['run']} proposed for release",
            "a second person has to agree",
            "Read them",
            reverse("judging:run-analyses", args=[row["run"]]),
            row["newest"],
        )


# ---- what is under way ----


def _share(done: int, of: int) -> int:
    return round(METER * min(done / of, 1.0)) if of else 0


def _runs_under_way() -> Iterator[UnderWay]:
    for run in Run.objects.filter(state__in=Run.GOING).select_related("judge", "benchmark").order_by("pk")[:SHOWN]:
        planned, done = run.planned or 0, (run.verdicts or 0) + (run.failures or 0)
        spent = f", ${run.spent:.2f}{f' of ${run.budget:.2f}' if run.budget else ''}" if run.spent else ""
        yield UnderWay(
            f"Run {run.pk}, {run.judge or run.model_name}",
            reverse("judging:run-detail", args=[run.pk]),
            f"{done:,} of {planned:,}" if planned else run.get_state_display(),
            _share(done, planned),
            f"{run.benchmark.titled}{spent}{f'; {run.failures:,} failed' if run.failures else ''}",
        )


def _campaigns_under_way() -> Iterator[UnderWay]:
    open_campaigns = Campaign.objects.filter(state=Campaign.State.OPEN).select_related("benchmark").order_by("-pk")
    for campaign in open_campaigns[:SHOWN]:
        places = campaign.campaign_items.filter(practice=False, gold__isnull=True).count()
        labels = campaign.labels.filter(excluded=False, assignment__campaign_item__practice=False)
        labels = labels.filter(assignment__campaign_item__gold__isnull=True)
        counts = labels.aggregate(n=Count("pk"), people=Count("annotator", distinct=True))
        due = f", due {campaign.due:%-d %b %Y}" if campaign.due else ""
        yield UnderWay(
            campaign.name,
            reverse("annotations:campaign-detail", args=[campaign.pk]),
            f"{counts['n']:,} of {places * campaign.overlap:,}",
            _share(counts["n"], places * campaign.overlap),
            f"{campaign.benchmark.titled}, {number_of(counts['people'], 'person', 'people')}{due}",
        )


# ---- the rest ----


def _benchmarks(viewer: User) -> list[tuple[queries.BenchmarkCounts, str, str]]:
    newest = sorted(queries.newest_visible(viewer), key=lambda benchmark: -benchmark.pk)[:MOST]
    rows = []
    for counts in queries.benchmark_counts(newest, viewer):
        steps = steps_of(counts, viewer, most=0)
        step = next((step for step in steps if step.state == NOW), steps[-1])
        rows.append((counts, *(step.actions or steps[-1].actions)[0]))
    return rows


def _machine(viewer: User, now: datetime) -> list[Fact]:
    queued = Run.objects.filter(state=Run.State.QUEUED).count()
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    spent = Run.objects.filter(created_at__gte=month).aggregate(spent=Sum("spent"))["spent"] or 0.0
    lines = [
        Fact("Worker", "at work" if worker_seen() else "none is running"),
        Fact("Runs that wait", f"{queued:,}"),
        Fact("Spent on runs of this month", f"${spent:.2f}"),
        Fact("Mail", "set up") if mail.is_set_up() else Fact("Mail", "not set up", MAIL_CURE),
    ]
    if allowed(viewer, "administer"):
        failed = AuditEntry.objects.filter(action="sign-in-failed", at__gte=now - DAY).count()
        lines += [Fact("Failed sign-ins, 24 h", f"{failed:,}"), Fact("Backup", "by a command", BACKUP_CURE)]
    return lines


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
