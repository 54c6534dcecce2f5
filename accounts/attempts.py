"""How often somebody may try to sign in. Each attempt is counted before its password is looked at.

Ten failures a quarter of an hour for a name from one place, a hundred from one place whatever the names, fifty for a
name from all places. A browser in which the person has signed in before is known by a cookie: it has ten attempts of
its own and none of the other limits, so nobody can lock a person out from elsewhere. The count is in one update of one
row, so of guesses made at once each counts.
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

from accounts.http import client_address, network_of
from accounts.models import SignInCount

WINDOW = timedelta(minutes=15)
OF_NAME_AT_PLACE = 10
OF_PLACE = 100
OF_NAME = 50
KNOWN_FOR = timedelta(days=180)
COOKIE = "known_browser"
PEOPLE = 4  # who may share one browser
PATH = "/accounts/"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that was counted: whether it may go on, and what it was counted under."""

    allowed: bool
    subjects: Sequence[str]
    first_refused: bool = False  # the limit was reached with this one

    def succeeded(self) -> None:
        """It was no failure: the person's own count begins anew, the others lose this one."""
        own, *others = self.subjects
        SignInCount.objects.filter(subject=own).delete()
        for subject in sorted(others):
            SignInCount.objects.filter(subject=subject, count__gt=0).update(count=F("count") - 1)


def begin(request: HttpRequest, name: str) -> Attempt:
    """Count an attempt to sign in under this name."""
    name, place = name.casefold(), network_of(client_address(request))
    browser = _known(request).get(_subject("name", name))
    if browser:
        limits = {_subject("browser", name, browser): OF_NAME_AT_PLACE}
    else:
        limits = {
            _subject("both", name, place): OF_NAME_AT_PLACE,
            _subject("place", place): OF_PLACE,
            _subject("name", name): OF_NAME,
        }
    for subject, limit in limits.items():
        # What one limit refuses is not counted by the next: who is locked out here locks nobody out there.
        if (count := _counted(subject)) > limit:
            return Attempt(False, list(limits), first_refused=count == limit + 1)
    return Attempt(True, list(limits))


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """Let this browser be known as one in which the person has signed in."""
    known = {**_known(request), _subject("name", name.casefold()): secrets.token_urlsafe(16)}
    last = dict(list(known.items())[-PEOPLE:])
    response.set_cookie(
        COOKIE,
        signing.dumps(last, salt=COOKIE, compress=True),
        max_age=KNOWN_FOR,
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _known(request: HttpRequest) -> dict[str, str]:
    try:
        known = signing.loads(request.COOKIES.get(COOKIE, ""), salt=COOKIE, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return {}
    return known if isinstance(known, dict) else {}


def _subject(*parts: str) -> str:
    """What is counted, without telling who it was."""
    return salted_hmac("accounts.attempts", "\x1f".join(parts), algorithm="sha256").hexdigest()


def _counted(subject: str) -> int:
    """Count one more; how many it are by now in the running quarter of an hour."""
    now = timezone.now()
    SignInCount.objects.filter(since__lte=now - 2 * WINDOW).delete()
    rows = SignInCount.objects.filter(subject=subject)
    over = Q(since__lte=now - WINDOW)
    count = Case(When(over, then=1), default=F("count") + 1)
    since = Case(When(over, then=Value(now)), default=F("since"))
    while True:
        with transaction.atomic():
            SignInCount.objects.bulk_create([SignInCount(subject=subject, since=now)], ignore_conflicts=True)
            if rows.update(count=count, since=since):  # else it was old, and has just been pruned
                return rows.values_list("count", flat=True).get()
