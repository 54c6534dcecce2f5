"""Cross-review of samples, as in sections 4.2 and 4.3 of the MLLM-Bench paper, and the history of samples."""

from django.conf import settings
from django.db import models

from accounts.fields import doer
from bank.models.catalogue import Benchmark, Sample

# The six points of the guideline for data collectors (Table 10): name, title, what a reviewer asks.
GUIDELINE = {
    "currency": ("Data currency", "The picture is recent, so models have hardly been trained on it."),
    "licence": ("Licence", "The picture may be shared: a public licence, or taken by the author."),
    "clarity": ("Image clarity", "People can make out what counts, and the short edge has 512 pixels or more."),
    "impartiality": ("Impartiality", "Nothing sensitive, such as geopolitics; nobody is hurt by it."),
    "cohesion": ("Instruction and image", "The instruction is precise, needs the picture and tests the capability."),
    "diversity": ("Diverse answers", "It asks for more than yes or no; the criteria fit the answers it invites."),
}


class ReviewRound(models.Model):
    """One round over samples of a benchmark."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="review_rounds", db_index=False)
    number = models.PositiveIntegerField()
    opened_at = models.DateTimeField(auto_now_add=True)
    opened_by = doer()
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = doer()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["benchmark", "number"], name="review_round_number")]

    def __str__(self) -> str:
        return f"round {self.number}"


class SampleReview(models.Model):
    """One reviewer's review of one sample in a round; without a verdict it is still pending."""

    class Verdict(models.TextChoices):
        FINE = "fine"
        REVISE = "revise"
        REJECT = "reject"

    round = models.ForeignKey(ReviewRound, on_delete=models.CASCADE, related_name="reviews", db_index=False)
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="sample_reviews", db_index=False
    )
    verdict = models.CharField(max_length=6, choices=Verdict.choices, blank=True)
    points = models.JSONField(default=dict, blank=True)  # {point of GUIDELINE: {"ok": bool, "note": str}}
    note = models.TextField(blank=True)
    at = models.DateTimeField(null=True, blank=True)
    revised_at = models.DateTimeField(null=True, blank=True)  # when the sample was changed because of this review

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["round", "sample", "reviewer"], name="sample_review_once"),
            models.CheckConstraint(
                condition=models.Q(verdict="", at__isnull=True) | models.Q(~models.Q(verdict=""), at__isnull=False),
                name="sample_review_verdict_has_time",
            ),
        ]
        indexes = [models.Index(fields=["reviewer", "verdict", "id"], name="sample_review_queue")]

    def __str__(self) -> str:
        return f"{self.round_id}:{self.sample_id}:{self.reviewer_id}"


class SampleRevision(models.Model):
    """One change of a sample: ``changes`` holds the old and the new value by field. Never hidden text."""

    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="revisions")
    edition = models.PositiveIntegerField()  # the sample's, after the change
    by = doer()
    at = models.DateTimeField(auto_now_add=True)
    changes = models.JSONField(default=dict)  # {field: [old, new]}
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.sample_id}.{self.edition}"
