"""Whose account it is that an OpenID provider speaks of, and which role the provider's claims give.

A person is known by issuer and subject alone. A mail address connects nothing: who types another's into their account
here would get that person's role.
"""

import re
import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import actions, audit, sessions
from accounts.models import Role, SignOn, User

HOW = "single sign-on"
UNFIT = re.compile(r"[^\w.@+-]+")
LONGEST_NAME = 140  # a number may follow


def come(claims: Mapping[str, Any], *, connect: User | None = None) -> User:
    """Whoever these checked claims are about, with today's role; ``connect``: who is signed in, and connects their
    account. Raises ValidationError.
    """
    role = role_by(claims)
    with transaction.atomic():
        person = _person_of(claims, connect, role)
        if person is not None:
            _follow(person, role)
    if person is None or not (role or not settings.SSO_ROLE_CLAIM):
        raise ValidationError(_("You may sign in there, and have no role here. Ask whoever keeps this site."))
    if not person.is_active:
        raise ValidationError(_("This account is switched off."))
    return person


def connects(request: HttpRequest) -> str:
    """What stands in the link with which somebody connects their account: no other site can make it."""
    if not request.user.is_authenticated:
        return ""
    return str(request.session.setdefault("connects", secrets.token_urlsafe(16)))


def role_by(claims: Mapping[str, Any]) -> str:
    """The role that the claims give: of the first value in SSO_ROLES that they hold, else SSO_DEFAULT_ROLE."""
    values = _claim(claims, settings.SSO_ROLE_CLAIM)
    held = {values} if isinstance(values, str) else {str(value) for value in values or ()}
    return next((role for value, role in settings.SSO_ROLES.items() if value in held), settings.SSO_DEFAULT_ROLE)


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, or by a path such as Keycloak's ``realm_access.roles``."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _person_of(claims: Mapping[str, Any], connect: User | None, role: str) -> User | None:
    known = {"issuer": settings.SSO_ISSUER, "subject": str(claims["sub"])}
    found = SignOn.objects.filter(**known).select_related("person").first()
    if found is not None:
        if connect is not None and connect != found.person:
            raise ValidationError(_("You are connected with another account here."))
        return found.person
    if not role and (connect is None or settings.SSO_ROLE_CLAIM):
        return None
    if connect is None:
        email = str(claims.get("email") or "") if claims.get("email_verified") is True else ""
        connect, _none = actions.make_account(
            name=_free_name(claims), role=role, email=email, no_password=True, how=HOW
        )
    else:
        audit.record("sign-on-connected", by=connect, about=connect.username)
    SignOn.objects.create(person=connect, **known)
    return connect


def _free_name(claims: Mapping[str, Any]) -> str:
    said = next((str(claims[name]) for name in ("preferred_username", "name", "email") if claims.get(name)), "person")
    name = free = UNFIT.sub("-", said).strip("-")[:LONGEST_NAME] or "person"
    number = 1
    while User.objects.filter(username__iexact=free).exists():
        number += 1
        free = f"{name}-{number}"
    return free


def _follow(person: User, role: str) -> None:
    """Give the role that the claims give, where they do; without one take all that was there."""
    if settings.SSO_ROLE_CLAIM and person.role != (role or Role.ANNOTATOR):
        actions.set_role(person=person, role=role or Role.ANNOTATOR, how=HOW)
    if not role and settings.SSO_ROLE_CLAIM:
        person.end_tokens()
        sessions.end(person)
    if not settings.SSO_PASSWORDS and person.has_usable_password():
        person.set_unusable_password()
        person.save(update_fields=["password"])
