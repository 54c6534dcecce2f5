"""Limits on sign-in attempts. Each attempt is counted before its password is checked.

There are ten failures per quarter of an hour for a name from one place, a hundred from one place for all names, and
fifty for a name from all places. A browser in which the person has signed in before is recognized by a cookie: it has
ten attempts of its own and no other limits, so nobody can lock a person out from elsewhere. One update of one row does
the counting, so simultaneous guesses are all counted.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as lazy

from accounts.http import client_address, network_of
from accounts.models import SignInCount

WINDOW = timedelta(minutes=15)
MAX_NAME_AND_PLACE = 10
MAX_PLACE = 100
MAX_NAME = 50
COOKIE_AGE = timedelta(days=180)
COOKIE = "known_browser"
MAX_PEOPLE = 4  # sharing one browser
TOO_MANY = lazy("Too many attempts. Wait 15 minutes, then try again.")
PATH = "/accounts/"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A counted attempt: whether it may proceed, and the subjects it was counted under."""

    allowed: bool
    subjects: Sequence[str]
    first_refused: bool = False  # the first one over the limit

    def succeeded(self) -> None:
        """Reset the person's own count and take this attempt off the others."""
        own, *others = self.subjects
        SignInCount.objects.filter(subject=own).delete()
        for subject in sorted(others):
            SignInCount.objects.filter(subject=subject, count__gt=0).update(count=F("count") - 1)


def begin(request: HttpRequest, name: str) -> Attempt:
    """Count an attempt to sign in with this name."""
    name, place = name.casefold(), network_of(client_address(request))
    browser = _recognized(request).get(_subject("name", name))
    if browser:
        limits = {_subject("browser", name, browser): MAX_NAME_AND_PLACE}
    else:
        limits = {
            _subject("both", name, place): MAX_NAME_AND_PLACE,
            _subject("place", place): MAX_PLACE,
            _subject("name", name): MAX_NAME,
        }
    for subject, limit in limits.items():
        # An attempt refused by one limit does not count for the next, so it cannot lock out others.
        if (count := _counted(subject)) > limit:
            return Attempt(False, list(limits), first_refused=count == limit + 1)
    return Attempt(True, list(limits))


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """Set the cookie by which this browser is recognized next time."""
    browsers = {**_recognized(request), _subject("name", name.casefold()): secrets.token_urlsafe(16)}
    newest = dict(list(browsers.items())[-MAX_PEOPLE:])
    response.set_cookie(
        COOKIE,
        signing.dumps(newest, salt=COOKIE, compress=True),
        max_age=COOKIE_AGE,
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _recognized(request: HttpRequest) -> dict[str, str]:
    try:
        browsers = signing.loads(request.COOKIES.get(COOKIE, ""), salt=COOKIE, max_age=COOKIE_AGE)
    except signing.BadSignature:
        return {}
    return browsers if isinstance(browsers, dict) else {}


def _subject(*parts: str) -> str:
    """A hashed subject, which does not reveal the name or place."""
    return salted_hmac("accounts.attempts", "\x1f".join(parts), algorithm="sha256").hexdigest()


def _counted(subject: str) -> int:
    """Count one attempt. Returns the count in the current quarter of an hour."""
    now = timezone.now()
    SignInCount.objects.filter(since__lte=now - 2 * WINDOW).delete()
    rows = SignInCount.objects.filter(subject=subject)
    expired = Q(since__lte=now - WINDOW)
    count = Case(When(expired, then=1), default=F("count") + 1)
    since = Case(When(expired, then=Value(now)), default=F("since"))
    while True:
        with transaction.atomic():
            SignInCount.objects.bulk_create([SignInCount(subject=subject, since=now)], ignore_conflicts=True)
            if rows.update(count=count, since=since):  # otherwise another request has just pruned it
                return rows.values_list("count", flat=True).get()
