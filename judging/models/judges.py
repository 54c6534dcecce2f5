"""Judges and the prompt templates that staff write for them."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models

from accounts.crypto import EncryptedTextField
from accounts.models import User
from bank.database.unfinished import FinishedManager
from bank.text.names import NameField

OVERLAP = "criteria-overlap"  # its verdicts reveal the criteria
BASELINES = {  # with what they do, in plain words
    "random": "A coin",
    "first": "Always the first answer",
    "longest": "Always the longer answer",
    OVERLAP: "Words of the criteria",
}


class Route(NamedTuple):
    """How an endpoint is reached: its address, the private addresses that it may resolve to (None: any), what stands
    behind each path, the headers sent with each call, and the header of the key ("": Authorization, as Bearer).
    """

    base_url: str
    listed: tuple[str, ...] | None = None
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    key_header: str = ""


class Judge(models.Model):
    """An LLM behind an OpenAI-compatible endpoint, a built-in baseline, or the author of imported judgments."""

    name = NameField(max_length=200, unique=True)
    base_url = models.URLField(max_length=500, blank=True)
    model = models.CharField(max_length=200, blank=True)
    key_env = models.CharField(max_length=100, blank=True)  # the variable that holds the key where a worker runs
    key = EncryptedTextField(blank=True, default="", db_default="")  # or the key itself, sealed
    # The header that the key is sent in; empty: Authorization, as Bearer.
    key_header = models.CharField(max_length=60, blank=True, default="", db_default="")
    # What stands behind each path, without the question mark.
    query = models.CharField(max_length=200, blank=True, default="", db_default="")
    headers = models.TextField(blank=True, default="", db_default="")  # sent with each call: "Name: value", a line each
    baseline = models.CharField(max_length=20, blank=True)  # one of BASELINES
    family = models.CharField(max_length=100, blank=True)
    concurrency = models.PositiveIntegerField(default=16)
    rpm = models.PositiveIntegerField(null=True, blank=True)
    tpm = models.PositiveIntegerField(null=True, blank=True)
    timeout = models.PositiveIntegerField(default=120)  # seconds one call may take
    # Minutes before a run whose endpoint fails is tried again, the first time, the second and so on.
    waits = models.CharField(max_length=100, default="1,5,15,30,60", db_default="1,5,15,30,60")
    give_up_after = models.PositiveIntegerField(default=1_440, db_default=1_440)  # minutes of nothing but errors
    paced_until = models.DateTimeField(null=True, blank=True)  # call starts up to here are reserved, over all workers
    price_in = models.FloatField(null=True, blank=True)  # US dollars per million tokens
    price_cached = models.FloatField(null=True, blank=True)  # of tokens sent that the endpoint had read before
    price_out = models.FloatField(null=True, blank=True)
    abilities = models.JSONField(default=dict, blank=True)
    any_host = models.BooleanField(default=False)  # added by command: not limited to JUDGE_HOSTS
    # Its name may resolve to a private address: added before that was checked.
    any_address = models.BooleanField(default=False, db_default=False)
    simulated = models.BooleanField(default=False, db_default=False)  # its verdicts are invented, as the demo's are
    created_at = models.DateTimeField(auto_now_add=True)

    objects = FinishedManager["Judge"]()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} (simulated)" if self.simulated else self.name

    @property
    def titled(self) -> str:
        """Its name for readers: of a baseline what it does; says itself that it is simulated."""
        return BASELINES.get(self.baseline, str(self))

    @property
    def is_baseline(self) -> bool:
        return bool(self.baseline)

    @property
    def can_run(self) -> bool:
        return bool(self.baseline or self.base_url)

    @property
    def listed(self) -> Sequence[str] | None:
        """The private addresses that its name may resolve to besides public ones; None: any."""
        hosts: Sequence[str] = settings.JUDGE_HOSTS
        return None if self.any_host or self.any_address else hosts

    @property
    def route(self) -> Route:
        listed = None if self.listed is None else tuple(self.listed)
        headers = tuple(
            (name.strip().lower(), value.strip())
            for name, _, value in (line.partition(":") for line in self.headers.splitlines())
        )
        return Route(self.base_url, listed, self.query, headers, self.key_header.lower())

    @property
    def host(self) -> str:
        """Host and port of its endpoint."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def at_host(self) -> str:
        """How messages about its endpoint begin."""
        return f"{self.name} at {self.host}"


class PromptTemplate(models.Model):
    """A version of a prompt that staff wrote. Never changed; a version that no run used may be deleted."""

    protocol = models.CharField(max_length=30)
    name = models.CharField(max_length=40)
    version = models.PositiveIntegerField()
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    note = models.CharField(max_length=300, blank=True)  # what is different, for people who choose
    as_published = models.BooleanField(default=False)  # a paper's own prompt: without fences around what it shows
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["protocol", "name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["protocol", "name", "version"], name="prompt_template_once"),
        ]

    def __str__(self) -> str:
        return f"{self.protocol}.{self.name} {self.version}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise ValueError("A version of a prompt is never changed; add a new version.")
        super().save(*args, **kwargs)
