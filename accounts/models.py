"""Users with sessions, tokens and notices, teams and grants, the audit log, webhooks, the installation key, counts of
sign-in tries.
"""

from importlib import import_module
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as lazy
from knox.models import AbstractAuthToken

from accounts.crypto import EncryptedTextField
from accounts.fields import doer


class Role(models.TextChoices):
    """``accounts.rules`` says what each may do. A guest came by an invitation: the role gives nothing by itself."""

    GUEST = "guest", lazy("Guest")
    ANNOTATOR = "annotator", lazy("Annotator")
    RESEARCHER = "researcher", lazy("Researcher")
    CURATOR = "curator", lazy("Curator")
    ADMINISTRATOR = "administrator", lazy("Administrator")


class Scope(models.TextChoices):
    """What a token for the API may be used for; ``accounts.rules`` says which each rule needs."""

    READ = "read", lazy("read what you may read")
    LABEL = "label", lazy("take items and label them")
    SUBMIT = "submit", lazy("submit responses, and read your submissions")
    RUN = "run", lazy("start runs, and change whatever staff may change")


class User(AbstractUser):  # type: ignore[django-manager-missing]  # knox has no types
    """Somebody who signs in."""

    role = models.CharField(max_length=16, choices=Role.choices, default=Role.ANNOTATOR)
    # Language and appearance of pages, on every device; see accounts.forms.Preferences.
    preferences = models.JSONField(default=dict, blank=True, db_default={})

    granted: "dict[str, frozenset[Right]] | None" = None  # set on the object when accounts.rules first asks

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known")]

    def end_tokens(self) -> None:
        """Refuse all tokens for the API that were made before."""
        Token.objects.filter(user=self).delete()


class Right(models.TextChoices):
    """What a grant gives for one benchmark, beside what the role gives; each includes those before it.
    ``accounts.rules`` says which rules that is.
    """

    VIEW = "view", "see it while it is private"
    LABEL = "label", "label in its campaigns"
    CURATE = "curate", "curate it, as curators do"
    RELEASE = "release", "publish it and its boards"

    @property
    def included(self) -> "list[Right]":
        """This one and those that it includes."""
        return list(Right)[: list(Right).index(self) + 1]

    def gives(self, *, invited: bool) -> "frozenset[Right]":
        """The rights that a grant of this one gives."""
        return frozenset([self] if invited else self.included)


class Team(models.Model):
    """A list of people that rights are granted to together."""

    name = models.CharField(max_length=80, unique=True)
    members = models.ManyToManyField(User, related_name="teams")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """A right of a person or of a team for every version of one benchmark.

    ``invited``: it came with an invitation, and ends with their last campaign there. It lets a guest label what they
    are given, and shows nothing else of the benchmark while that is private.
    """

    benchmark = models.CharField(max_length=80)  # its slug
    person = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="grants")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True, related_name="grants")
    right = models.CharField(max_length=7, choices=Right.choices)
    invited = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["benchmark", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(person__isnull=False, team=None) | models.Q(person=None, team__isnull=False),
                name="grant_of_person_or_team",
            ),
            models.CheckConstraint(condition=models.Q(right__in=Right.values), name="grant_right_known"),
            models.UniqueConstraint(fields=["benchmark", "person"], name="grant_of_person_once"),
            models.UniqueConstraint(fields=["benchmark", "team"], name="grant_of_team_once"),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.person or self.team}, {self.right}"

    @property
    def words(self) -> str:
        """What it lets them do."""
        return "label what they are given there" if self.invited else Right(self.right).label


class SignOn(models.Model):
    """By whom a person is known elsewhere: an OpenID provider and its name for them; see accounts.sign_on."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ons")
    issuer = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="sign_on_once")]


class SecondFactor(models.Model):
    """What makes a person's codes; see accounts.second_factor. Without ``made_at`` it is not set up yet."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    secret = EncryptedTextField()
    step = models.PositiveBigIntegerField(default=0)  # of the last code that was taken
    recovery = models.JSONField(default=list)  # hashes of the codes that were not used
    made_at = models.DateTimeField(null=True)


class Hashed(str):
    """What a HashedField holds in the database."""


class HashedField(models.CharField):
    """Stored and found by the HMAC-SHA256 of its value under SECRET_KEY, in hex: the database does not tell it."""

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        return value if value is None else Hashed(value)

    def get_prep_value(self, value: Any) -> Any:
        if value is None or isinstance(value, Hashed):
            return value
        return Hashed(salted_hmac("accounts.sessions", str(value), algorithm="sha256").hexdigest())


class Session(AbstractBaseSession):
    """A session, under the hash of the key in its cookie: a row of a copied database is no cookie."""

    session_key = HashedField(max_length=64, primary_key=True)

    @classmethod
    def get_session_store_class(cls) -> Any:
        return import_module(settings.SESSION_ENGINE).SessionStore


class Token(AbstractAuthToken):
    """A token for the API, by its hash. It lies in knox's own table, so that those made before it had scopes stay."""

    name = models.CharField(max_length=60, blank=True)  # what its owner calls it
    scopes = models.JSONField(default=list)  # of Scope
    last_used = models.DateTimeField(null=True)  # to the minute
    tell_at = models.DateTimeField(null=True)  # when its owner is next told that it ends

    class Meta:
        db_table = "knox_authtoken"


class InstallationKey(models.Model):
    """32 random bytes in hex, the key of every hash over hidden text. One row; see accounts.installation_key.

    It is encrypted with CRITERIA_KEYS like everything hidden, so decrypting it tells whether those keys belong to this
    database.
    """

    secret = EncryptedTextField()
    created_at = models.DateTimeField(auto_now_add=True)


class AppendOnly(models.QuerySet[Any]):
    """Rows that are never changed or deleted; of entries, only who somebody is may be erased."""

    def erase(self, entry: "AuditEntry", *, erased: str) -> None:
        values = {"name": entry.name, "about": entry.about, "address": entry.address, "erased": erased}
        models.QuerySet.update(self.filter(pk=entry.pk), **values)

    def update(self, **values: Any) -> int:
        raise TypeError("The audit log is append-only.")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("The audit log is append-only.")


class AuditEntry(models.Model):
    """An entry of the audit log, chained to the one before it. Only ``accounts.audit.record`` writes it."""

    number = models.PositiveBigIntegerField(unique=True)  # from 1, without gaps
    at = models.DateTimeField(db_index=True)
    action = models.CharField(max_length=40)  # one of accounts.audit.ACTIONS
    who = doer(db_index=False)
    name = models.CharField(max_length=150, blank=True)  # at that time, or as typed
    command = models.CharField(max_length=100, blank=True)  # if no person is known
    about = models.CharField(max_length=200, blank=True)
    address = models.CharField(max_length=45, blank=True)
    details = models.JSONField(default=dict)
    digest = models.CharField(max_length=64)  # over this entry and the digest before it, keyed
    erased = models.CharField(max_length=64, blank=True, db_default="")  # vouches for an entry without its names

    objects = AppendOnly.as_manager()

    class Meta:
        ordering = ["-number"]
        indexes = [
            models.Index(fields=["action", "number"], name="audit_of_action"),
            models.Index(fields=["who", "number"], name="audit_of_person"),
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.action}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("The audit log is append-only.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("The audit log is append-only.")


class AuditHead(models.Model):
    """The end of the audit log. One row, locked while an entry is added, so entries are added one at a time."""

    number = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)


class SignInCount(models.Model):
    """Sign-in attempts of one name, place or browser, hashed; see accounts.attempts."""

    subject = models.CharField(max_length=64, unique=True)
    since = models.DateTimeField(db_index=True)
    count = models.PositiveIntegerField(default=0)


class Notice(models.Model):
    """Something that a person is told. ``key`` says about what and when, so that nothing is told twice."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices", db_index=False
    )
    key = models.CharField(max_length=100)
    text = models.CharField(max_length=300)
    link = models.CharField(max_length=300)  # a path of the site
    at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True, blank=True)
    mailed = models.BooleanField(default=False)  # or never will be

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["person", "key"], name="notice_once")]
        indexes = [models.Index(fields=["person"], condition=models.Q(read_at=None), name="notice_unread")]

    def __str__(self) -> str:
        return self.text


class Job(models.Model):
    """Work that waits, where the database is SQLite; elsewhere Procrastinate has tables for it. See ``accounts.jobs``.

    A row goes when its work is done. What was begun when the worker died is begun again by the next one.
    """

    name = models.CharField(max_length=40)
    arguments = models.JSONField(default=dict)
    not_before = models.DateTimeField(db_index=True)
    priority = models.SmallIntegerField(default=0)  # the highest first
    once = models.CharField(max_length=200)  # two that wait have never the same
    begun = models.BooleanField(default=False)

    class Meta:
        ordering = ["-priority", "not_before", "pk"]
        constraints = [models.UniqueConstraint(fields=["once"], condition=models.Q(begun=False), name="job_waits_once")]

    def __str__(self) -> str:
        return self.once


class Mail(models.Model):
    """A mail that waits to be sent; workers send and then delete it."""

    to = models.EmailField()
    subject = models.CharField(max_length=200)
    text = EncryptedTextField()  # it may hold a link that sets a password
    tries = models.PositiveSmallIntegerField(default=0)
    not_before = models.DateTimeField(db_index=True)


class SavedView(models.Model):
    """A page with its filters that a person keeps under a name."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views", db_index=False
    )
    name = models.CharField(max_length=80)
    path = models.CharField(max_length=2_000)  # of the site, with its query

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["person", "name"], name="saved_view_name")]

    def __str__(self) -> str:
        return self.name


class Webhook(models.Model):
    """An address that is told of events; see accounts.webhooks."""

    url = models.CharField(max_length=500)
    events = models.JSONField(default=list)  # of accounts.webhooks.EVENTS
    secret = EncryptedTextField()  # what deliveries are signed with
    active = models.BooleanField(default=True)
    failing_since = models.DateTimeField(null=True)  # nothing was taken since
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.url


class Delivery(models.Model):
    """What a webhook is told once, and what became of it."""

    id = models.UUIDField(primary_key=True, default=uuid4)  # the same each time it is sent
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=40)
    key = models.CharField(max_length=100)
    body = models.TextField()  # to the byte what is signed
    created_at = models.DateTimeField(auto_now_add=True)
    not_before = models.DateTimeField(null=True, db_index=True)  # when it is tried next; None: no more
    tries = models.PositiveSmallIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True)  # of HTTP, at the last try
    words = models.CharField(max_length=200, blank=True)  # why there was none

    class Meta:
        ordering = ["-created_at"]
        constraints = [models.UniqueConstraint(fields=["webhook", "key"], name="delivery_once")]

    def __str__(self) -> str:
        return f"{self.event}: {self.key}"

    @property
    def is_taken(self) -> bool:
        """Whether the other side said that it has it."""
        return self.status is not None and 200 <= self.status < 300
