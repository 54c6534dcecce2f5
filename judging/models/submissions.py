"""How what researchers submit is judged, and the queue in which it waits."""

from django.db import models

from accounts.models import User
from bank.models import Benchmark, Submission
from judging.models.runs import Run

WHEN_TOLD: list[str] = []  # what the apps above do once submissions are told: functions of their rows, as paths


class SubmissionJudging(models.Model):
    """A benchmark's judge for submissions: the judge, protocol and settings of ``like``, so that they share its board.

    Budgets are in US dollars; None is no limit. Days end at midnight UTC. Where prompts hold criteria, a submission
    counts with the price of ordinary prompts (``judging.collecting.submissions``), whatever its calls cost.
    ``publishes``: the day after a submission was judged, the next edition of its board is published, if nothing speaks
    against it.
    """

    benchmark = models.OneToOneField(Benchmark, on_delete=models.CASCADE, related_name="submission_judging")
    like = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    active = models.BooleanField(default=True)
    per_submission = models.FloatField(null=True, blank=True)
    per_day = models.FloatField(null=True, blank=True)
    publishes = models.BooleanField(default=False, db_default=False)
    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    changed_at = models.DateTimeField(auto_now=True)


class QueuedSubmission(models.Model):
    """A submission whose turn has come. Those that wait for the first time have no row."""

    class State(models.TextChoices):
        WAITING = "waiting"  # again, for the next day's budget
        JUDGING = "judging"
        JUDGED = "judged"
        STOPPED = "stopped"  # for the reason given

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="queued")
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="+")
    state = models.CharField(max_length=7, choices=State.choices)
    reason = models.TextField(blank=True)  # holds no figures: submitters read it
    ordinary_cost = models.FloatField(null=True)  # US dollars, by prompts of ordinary length; None without prices
    day = models.DateField()  # UTC, on which the run was last given money
    spent_before = models.FloatField(default=0)  # US dollars, that the run had spent until then
    finished_at = models.DateTimeField(null=True)
    told = models.BooleanField(default=False)  # its sender was told of the end
