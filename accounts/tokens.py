"""Tokens for the API: making them, checking them, and telling people before they end. They are django-rest-knox's."""

from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from knox import auth
from rest_framework.exceptions import AuthenticationFailed

from accounts import audit, mail, notices
from accounts.models import Token, User
from accounts.rules import scopes_of

WARNING = timedelta(days=7)  # before its end
MINUTE = timedelta(minutes=1)
INVALID = "This token is unknown, was revoked or has ended. Make another on your page of tokens."


class TokenAuthentication(auth.TokenAuthentication):
    """Knox's check of the header. Notes when the token was used, at most once a minute."""

    def authenticate_credentials(self, token: bytes) -> Any:
        try:
            person, known = super().authenticate_credentials(token)
        except (AuthenticationFailed, UnicodeDecodeError):
            raise AuthenticationFailed(INVALID) from None
        now = timezone.now()
        if known.last_used is None or now - known.last_used >= MINUTE:
            with suppress(DatabaseError):  # one that is locked or full still answers what only reads
                Token.objects.filter(pk=known.pk, last_used=known.last_used).update(last_used=now)
        return person, known


def longest() -> timedelta:
    """How long a token may last."""
    return timedelta(days=settings.TOKEN_MAX_DAYS)


@transaction.atomic
def make_token(
    *,
    person: User,
    scopes: Collection[str] | None = None,
    lasts: timedelta | None = None,
    name: str = "",
    by: User | None = None,
    how: str = "",
    address: str = "",
) -> tuple[Token, str]:
    """Make a token, with all scopes its owner can use unless some are named. Returns it and its text, which is kept
    nowhere. Raises ValidationError.
    """
    usable = scopes_of(person)
    chosen = [scope.value for scope in usable if scopes is None or scope in scopes]
    lasts = lasts or longest()
    if not chosen or set(scopes or ()) - set(usable):
        raise ValidationError(_("Choose what the token may do."))
    if not timedelta(0) < lasts <= longest():
        raise ValidationError(_("A token ends after {days} days at the latest.").format(days=settings.TOKEN_MAX_DAYS))
    tell_at = timezone.now() + lasts - WARNING if lasts > WARNING else None
    made, text = Token.objects.create(person, expiry=lasts, name=name, scopes=chosen, tell_at=tell_at)
    about = person.username if by is None else made.token_key
    audit.record("token-made", by=by, command=how, about=about, address=address, scopes=chosen)
    return made, text


def tell_of_ends() -> None:
    """Tell people which of their tokens end: a week before, and at once where an update gave them an end."""
    now = timezone.now()
    for token in Token.objects.filter(tell_at__lte=now).select_related("user"):
        week_before = token.expiry - WARNING
        with transaction.atomic():
            mine = Token.objects.filter(pk=token.pk, tell_at=token.tell_at)
            if mine.update(tell_at=week_before if week_before > now else None) and token.expiry > now:
                _tell_of_end(token)


def _tell_of_end(token: Token) -> None:
    with mail.in_language_of(token.user):
        day = date_format(timezone.localtime(token.expiry), "DATE_FORMAT")
        text = _("Your token {start}… for the API ends on {day}. Make another before.").format(
            start=token.token_key, day=day
        )
    key = f"token-ends:{token.token_key}:{token.tell_at:%Y-%m-%d}"
    notices.tell(token.user, key=key, text=text, link=reverse("accounts:tokens"))
