"""What researchers send in: a benchmark's rules, each submission with its scores, and how many there were."""

import secrets
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

from accounts.crypto import EncryptedJSONField, EncryptedTextField
from accounts.fields import doer
from accounts.rules import allowed
from bank.models.catalogue import Benchmark, known_to
from bank.models.responses import EvaluatedModel, Response

if TYPE_CHECKING:
    from bank.models.catalogue import Viewer


def new_seed() -> str:
    return secrets.token_hex(16)


class SubmissionRules(models.Model):
    """What a benchmark accepts from researchers. A benchmark without a row accepts nothing."""

    benchmark = models.OneToOneField(Benchmark, on_delete=models.CASCADE, related_name="submission_rules")
    open = models.BooleanField(default=False)
    per_day = models.PositiveIntegerField(null=True, blank=True, default=5)
    in_all = models.PositiveIntegerField(null=True, blank=True, default=50)
    count_failed = models.BooleanField(default=False)
    required_splits = models.JSONField(default=list, blank=True)  # none named: all
    private_half = models.BooleanField(default=True)
    # Decides which half a sample with a closed key is in; not changed once somebody has submitted.
    seed = EncryptedTextField(default=new_seed, editable=False)
    notes = models.TextField(blank=True)
    changed_by = doer()
    changed_at = models.DateTimeField(auto_now=True)


class SubmissionQuerySet(models.QuerySet["Submission"]):
    def visible_to(self, viewer: "Viewer") -> "SubmissionQuerySet":
        """Staff see all, others their own to benchmarks they may see."""
        if allowed(viewer, "manage-submissions"):
            return self
        if not viewer.is_authenticated:
            return self.none()
        return self.filter(known_to(viewer, "benchmark__"), by=viewer)


class Submission(models.Model):
    """Responses of one model that somebody sent in as one file, including files that did not pass."""

    class State(models.TextChoices):
        CHECKED = "checked"  # stored, and nothing in it has a key to be scored by
        SCORED = "scored"
        FAILED = "failed"  # nothing of it is stored but what was wrong
        WITHDRAWN = "withdrawn"

    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="submissions")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="submissions")
    name = models.CharField(max_length=200)  # of the model, also where none was made
    model = models.ForeignKey(EvaluatedModel, on_delete=models.PROTECT, null=True, related_name="submissions")
    file_name = models.CharField(max_length=200, blank=True)
    file_sha256 = models.CharField(max_length=64)
    counts = models.JSONField(default=dict)
    problems = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.CHECKED)
    reason = models.TextField(blank=True)  # of the last change of state by a person
    changed_by = doer()
    changed_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)  # when the kept half's score was shown to the submitter
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"submission {self.pk}"


class SubmissionScoreQuerySet(models.QuerySet["SubmissionScore"]):
    def visible_to(self, viewer: "Viewer", submission: Submission) -> "SubmissionScoreQuerySet":
        """The scores the viewer may see of a submission they may see."""
        scores = self.filter(submission=submission)
        if allowed(viewer, "read-hidden") or submission.released_at is not None:
            return scores
        return scores.exclude(part=SubmissionScore.Part.KEPT)


class SubmissionScore(models.Model):
    """The result for one part of one split. Read it through ``visible_to``: the kept half is for staff.

    Numbers of parts that are not ``open`` are for staff as well.
    """

    class Part(models.TextChoices):
        WHOLE = "whole"
        SHOWN = "shown"  # the half of the samples with closed keys whose score may be told at once
        KEPT = "kept"  # the other half, until it is released

    class Kind(models.TextChoices):
        CHOICE = "choice"
        YES_NO = "yes_no"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="+", db_index=False)
    split = models.CharField(max_length=40, blank=True)
    hidden = models.BooleanField()
    part = models.CharField(max_length=5, choices=Part.choices)
    kind = models.CharField(max_length=6, choices=Kind.choices)
    open = models.BooleanField(default=False)  # everybody may see each of its keys; else below staff see ToldScore
    n = models.PositiveIntegerField()
    numbers: Any = EncryptedJSONField()  # not rounded
    at = models.DateTimeField(auto_now_add=True)

    objects = SubmissionScoreQuerySet.as_manager()

    class Meta:
        ordering = ["split", "part", "kind"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "split", "part", "kind", "open"], name="score_once_each")
        ]


class ToldScore(models.Model):
    """What a submitter was told about one split and kind of question whose keys are not all open. It never changes."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="told_scores", db_index=False)
    split = models.CharField(max_length=40, blank=True)
    kind = models.CharField(max_length=6, choices=SubmissionScore.Kind.choices)
    kept = models.BooleanField(default=False)  # of the kept half, at its release
    value = models.FloatField(null=True)  # the share right that was told; None: no better than the best, or than chance
    best = models.FloatField(null=True)  # the person's best told share then; None: nothing better than chance was told
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["submission", "split", "kind", "kept"], name="told_once")]


class ExactTotal(models.Model):
    """An exact total about a submission's answers that was told, to anybody in any place; it never changes.

    See ``bank.submissions.totals``.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="exact_totals", db_index=False)
    digest = models.CharField(max_length=64)  # keyed, of what it is made of
    of = models.CharField(max_length=200)  # what it is, in words
    samples = models.PositiveIntegerField()  # behind it
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["submission", "digest"], name="exact_total_once")]


class ResponseMark(models.Model):
    """One response compared with a public key. Read it through ``bank.submissions.scoring.marks``."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="mark")
    option = models.CharField(max_length=60, blank=True)  # as the sample names it, or yes or no; empty: none was found
    right = models.BooleanField()


class SubmissionCount(models.Model):
    """How often somebody submitted to a benchmark in a period: ``all``, a day, or an hour of checks."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="+", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    period = models.CharField(max_length=24)
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["benchmark", "person", "period"], name="submission_count_once")]


class FileLease(models.Model):
    """Until when a person's file is being read; no second one is read meanwhile."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()
