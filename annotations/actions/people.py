"""Accounts: made, given a role or another password, switched off and on. An administrator always stays.

Each is in the audit log, by the person who did it or, where that is nobody, by the command or page that did.
"""

import secrets

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from knox.models import AuthToken

from accounts import audit
from annotations.actions.campaigns import make_annotator
from bank.actions import BadInput
from bank.models import User
from bank.models.people import Role


@transaction.atomic
def make_account(
    *, name: str, role: str, password: str | None = None, email: str = "", by: User | None = None, how: str = ""
) -> tuple[User, str]:
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
    audit.record("account-made", by=by, command=how, about=name, role=role)
    return person, password


@transaction.atomic
def set_role(*, person: User, role: str, by: User | None = None, how: str = "") -> None:
    """Another role, from the next request on. Raises BadInput for one's own: nobody locks themselves out."""
    if by == person and role != person.role:
        raise BadInput("Your own role stays: another administrator can change it.")
    before, person.role = person.role, _role(role)
    person.save(update_fields=["role"])
    if person.role == Role.ANNOTATOR:
        make_annotator(person)
    if role != before:
        audit.record("role-changed", by=by, command=how, about=person.username, old=before, new=role)


@transaction.atomic
def set_active(*, person: User, active: bool, by: User) -> None:
    """Switch an account off, with its tokens, or on again. What it made stays. Raises BadInput for one's own."""
    if by == person:
        raise BadInput("You cannot switch your own account off.")
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        AuthToken.objects.filter(user=person).delete()
    audit.record("account-switched", by=by, about=person.username, now="on" if active else "off")


@transaction.atomic
def new_password(*, person: User, password: str | None = None, by: User | None = None, how: str = "") -> str:
    """Another password, made up where none is given: signs the person out everywhere, tokens too. Raises BadInput."""
    password = _set_password(person, password)
    person.save(update_fields=["password"])
    AuthToken.objects.filter(user=person).delete()
    audit.record("password-changed", by=by, command=how, about=person.username)
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
