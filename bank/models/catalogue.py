"""Benchmarks and their samples: visible to everybody who may see the benchmark."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.crypto import OncePlainJSONField
from accounts.rules import Viewer, allowed, where
from bank.database.unfinished import FinishedManager
from bank.text.names import NameField


class BenchmarkQuerySet(models.QuerySet["Benchmark"]):
    def visible_to(self, viewer: Viewer) -> "BenchmarkQuerySet":
        return self if allowed(viewer, "read-private") else self.filter(known_to(viewer))

    def named(self, name: str) -> "Benchmark":
        """The benchmark called ``SLUG`` (its newest version) or ``SLUG@VERSION``. Raises Benchmark.DoesNotExist."""
        slug, _, version = name.replace("\x00", "").partition("@")
        benchmark = self.filter(slug=slug, **({"version": version} if version else {})).order_by("-pk").first()
        if benchmark is None:
            raise Benchmark.DoesNotExist(f"Unknown benchmark {name!r}.")
        return benchmark

    def newest(self) -> "BenchmarkQuerySet":
        """The newest version of every slug."""
        last = self.model.objects.filter(slug=models.OuterRef("slug")).order_by("-pk").values("pk")[:1]
        return self.filter(pk=models.Subquery(last))


class Benchmark(models.Model):
    """A named, versioned set of samples."""

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        PRIVATE = "private"

    class Majority(models.TextChoices):
        PLURALITY = "plurality"
        MLLM_BENCH = "mllm-bench"

    slug = models.SlugField(max_length=80, db_index=False)
    version = NameField(max_length=40, default="1")
    title = NameField(max_length=200)
    description = models.TextField(blank=True)
    licence = models.CharField(max_length=200, blank=True)
    anchor = models.ForeignKey("bank.EvaluatedModel", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.PRIVATE)
    majority = models.CharField(max_length=12, choices=Majority.choices, default=Majority.PLURALITY)
    score_scale = models.JSONField(default=list, blank=True)  # [{"value": 1, "label": "Poor"}, ...]
    # Nobody below staff sees the answers to these splits, or single verdicts about them. Their samples are public.
    hidden_splits = models.JSONField(default=list, blank=True)
    source_format = models.CharField(max_length=24, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)  # when every sample was last looked at for hints
    edition = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = FinishedManager.from_queryset(BenchmarkQuerySet)()

    class Meta:
        ordering = ["title", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["slug", "version"], name="benchmark_slug_version"),
            models.CheckConstraint(condition=~Q(slug__contains="@"), name="benchmark_slug_without_at"),
        ]

    def __str__(self) -> str:
        return f"{self.slug}@{self.version}"

    @property
    def titled(self) -> str:
        """The display name: the title, and the version unless it is the first."""
        return self.title if self.version == "1" else f"{self.title} {self.version}"

    @property
    def score_ends(self) -> tuple[float, float]:
        """The least and the greatest score; without a scale of its own, 1 and 5."""
        steps = [float(step["value"]) for step in self.score_scale]
        return (min(steps), max(steps)) if len(steps) > 1 else (1.0, 5.0)


def known_to(viewer: Viewer, benchmark: str = "") -> Q:
    """A condition for rows of benchmarks that the viewer may know of; ``benchmark`` is the path to the benchmark."""
    return Q(**{f"{benchmark}visibility": Benchmark.Visibility.PUBLIC}) | where(viewer, "read-private", benchmark)


class Capability(models.Model):
    """A node of a benchmark's capability tree; ``path`` holds the names from the top, joined by " / "."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="capabilities", db_index=False)
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    name = NameField(max_length=200)
    path = models.CharField(max_length=700)
    position = models.PositiveIntegerField(default=0)
    # How many approved samples it is to have, those below it included, and who sees to it (MLLM-Bench, 4.2).
    quota = models.PositiveIntegerField(null=True, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = FinishedManager["Capability"]()

    class Meta:
        ordering = ["position", "pk"]
        constraints = [models.UniqueConstraint(fields=["benchmark", "path"], name="capability_path")]

    def __str__(self) -> str:
        return self.path

    @property
    def level(self) -> str:
        """The name at the top of the tree."""
        return self.path.split(" / ", 1)[0]


def in_hidden_splits(prefix: str = "") -> Q:
    """A condition for samples in hidden splits; ``prefix`` leads to the sample (``item__sample__``)."""
    condition = Q(pk__in=[])
    for pk, splits in Benchmark.objects.exclude(hidden_splits=[]).values_list("pk", "hidden_splits"):
        condition |= Q(**{f"{prefix}benchmark": pk, f"{prefix}split__in": splits})
    return condition


class SampleQuerySet(models.QuerySet["Sample"]):
    def visible_to(self, viewer: Viewer) -> "SampleQuerySet":
        if allowed(viewer, "read-bank"):
            return self
        approved = known_to(viewer, "benchmark__") & Q(status=Sample.Status.APPROVED)
        return self.filter(approved | where(viewer, "read-bank", "benchmark__"))

    def in_use(self) -> "SampleQuerySet":
        return self.filter(status=Sample.Status.APPROVED)

    def verdicts_visible_to(self, viewer: Viewer) -> "SampleQuerySet":
        """Visible samples whose single verdicts the viewer may read: not those of hidden splits."""
        samples = self.visible_to(viewer)
        if allowed(viewer, "read-hidden"):
            return samples
        return samples.filter(~in_hidden_splits() | where(viewer, "read-hidden", "benchmark__"))


class Sample(models.Model):
    """Images and an instruction. What it is judged by is in ``bank.criteria`` and not reachable from here."""

    class Status(models.TextChoices):
        DRAFT = "draft"
        REVIEW = "review"
        EXPERT = "expert"
        APPROVED = "approved"
        REJECTED = "rejected"

    benchmark = models.ForeignKey(
        Benchmark, on_delete=models.CASCADE, related_name="samples", db_index=False
    )  # see Meta
    key = models.CharField(max_length=200)
    instruction = models.TextField()
    hint = models.TextField(blank=True)
    language = models.CharField(max_length=16, blank=True)
    question_type = models.CharField(max_length=40, blank=True)
    options = models.JSONField(default=dict, blank=True)
    split = models.CharField(max_length=40, blank=True)
    capability = models.ForeignKey(Capability, on_delete=models.PROTECT, null=True, blank=True, related_name="samples")
    source = models.CharField(max_length=200, blank=True)
    group = models.CharField(max_length=200, blank=True)
    metadata: Any = OncePlainJSONField(default=dict, blank=True)  # it can hold what a file says of its answers
    closed = models.PositiveSmallIntegerField(default=0, db_default=0)  # Inputs (bank.exposure) that are or were hidden
    # Pictures that the file names but that are not stored here: [{"position", "file", "url", ...}].
    absent_images = models.JSONField(default=list, blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.APPROVED)
    status_reason = models.TextField(blank=True, db_default="")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="samples"
    )
    edition = models.PositiveIntegerField(default=1, db_default=1)  # raised by every change, to detect stale forms
    quality_hints = models.PositiveSmallIntegerField(default=0, db_default=0)  # bits, see bank.samples.quality.HINTS
    position = models.PositiveIntegerField(default=0)

    objects = FinishedManager.from_queryset(SampleQuerySet)()

    class Meta:
        ordering = ["position", "pk"]
        constraints = [models.UniqueConstraint(fields=["benchmark", "key"], name="sample_key")]
        indexes = [
            models.Index(fields=["benchmark", "position", "id"], name="sample_in_order"),
            # Holds all that the sample list filters and sorts by, so that facets are counted without the rows.
            models.Index(
                fields=[
                    *("benchmark", "capability", "question_type", "split", "status"),
                    *("quality_hints", "position", "id"),
                ],
                name="sample_facets",
            ),
            models.Index(fields=["status"], condition=Q(status="expert"), name="sample_to_check"),
            models.Index(fields=["benchmark"], condition=~Q(status="approved"), name="sample_not_approved"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def cluster(self) -> str:
        """What makes samples dependent on one another: their shared image or prompt, else the sample itself."""
        return self.group or self.key

    @property
    def capability_path(self) -> str:
        """The names of its capability from the top; "" without one."""
        return self.capability.path if self.capability else ""

    @property
    def picture(self) -> "SampleImage | None":
        """The first one."""
        return next(iter(self.images.all()), None)


class SampleImage(models.Model):
    """One picture of a sample. The file is named by the hash of its own bytes."""

    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="images", db_index=False)  # see Meta
    position = models.PositiveSmallIntegerField(default=0)
    sha256 = models.CharField(max_length=64, db_index=True)
    original_sha256 = models.CharField(max_length=64)
    phash = models.CharField(
        max_length=16, blank=True, db_default=""
    )  # perceptual: 64 bits in hex, see bank.images.dhash
    kind = models.CharField(max_length=4)  # jpg, png, webp: what the bytes are, whatever the original's name said
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    description = models.TextField(blank=True)
    described_by = models.CharField(max_length=240, blank=True, db_default="")  # the model that wrote it, and its run
    objects_found = models.JSONField(default=list, blank=True)
    source_url = models.TextField(blank=True)

    objects = FinishedManager["SampleImage"]()

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["sample", "position"], name="sample_image_position")]

    @property
    def path(self) -> str:
        """The file's path below the media folder."""
        return f"images/{self.sha256[:2]}/{self.sha256}.{self.kind}"

    def as_dict(self) -> dict[str, Any]:
        return {"width": self.width, "height": self.height, "description": self.description}


class PictureStorage(models.Model):
    """Which media folder belongs to this database, by the token in one of its files; at most one row."""

    token = models.CharField(max_length=32)
