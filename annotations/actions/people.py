"""Accounts: made, given a role or another password, switched off and on. An administrator always stays."""

import logging
import secrets

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from knox.models import AuthToken

from annotations.actions.campaigns import make_annotator
from bank.actions import BadInput
from bank.models import User
from bank.models.people import Role

LOG = logging.getLogger("evalsite.people")


@transaction.atomic
def make_account(*, name: str, role: str, password: str | None = None, email: str = "") -> tuple[User, str]:
    """A new account and its password, which is made up where none is given. Raises BadInput."""
    person = User(username=name, role=_role(role), email=email)
    try:
        User._meta.get_field("username").run_validators(name)
    except ValidationError as error:
        raise BadInput(" ".join(error.messages)) from None
    password = _set_password(person, password)
    taken = BadInput(_("Somebody has this name already; choose another."))
    if User.objects.filter(username__iexact=name).exists():
        raise taken
    try:
        with transaction.atomic():
            person.save()
    except IntegrityError:
        raise taken from None
    if person.role == Role.ANNOTATOR:
        make_annotator(person)
    return person, password


@transaction.atomic
def set_role(*, person: User, role: str, by: User | None = None) -> None:
    """Another role, from the next request on. Raises BadInput for one's own: nobody locks themselves out."""
    if by == person and role != person.role:
        raise BadInput("Your own role stays: another administrator can change it.")
    before, person.role = person.role, _role(role)
    person.save(update_fields=["role"])
    if person.role == Role.ANNOTATOR:
        make_annotator(person)
    LOG.info("%s: %s became %s, by %s", person, before, person.role, by or "command")


@transaction.atomic
def set_active(*, person: User, active: bool, by: User) -> None:
    """Switch an account off, with its tokens, or on again. What it made stays. Raises BadInput for one's own."""
    if by == person:
        raise BadInput("You cannot switch your own account off.")
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        AuthToken.objects.filter(user=person).delete()
    LOG.info("%s: switched %s, by %s", person, "on" if active else "off", by)


@transaction.atomic
def new_password(*, person: User, password: str | None = None, by: User | None = None) -> str:
    """Another password, made up where none is given: signs the person out everywhere, tokens too. Raises BadInput."""
    password = _set_password(person, password)
    person.save(update_fields=["password"])
    AuthToken.objects.filter(user=person).delete()
    LOG.info("%s: new password, by %s", person, by or "command")
    return password


def _set_password(person: User, password: str | None) -> str:
    if password is None:
        password = secrets.token_urlsafe(12)
    else:
        try:
            validate_password(password, person)
        except ValidationError as error:
            raise BadInput(" ".join(error.messages)) from None
    person.set_password(password)
    return password


def _role(role: str) -> str:
    if role not in Role.values:
        raise BadInput(f"There is no role {role[:40]!r}. There are: {', '.join(Role.values)}.")
    return role
