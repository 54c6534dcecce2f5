"""Accounts: creating them, roles, passwords, switching them off and on, erasing who they are of. An administrator
always remains.

The audit log records each action with the person who did it, or else the command or page.
"""

import secrets
from collections.abc import Callable

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import audit, mail, sessions
from accounts.models import Grant, Mail, Notice, Role, SavedView, SecondFactor, SignOn, User

_followers: list[tuple[Role, Callable[[User], object]]] = []
_erasers: list[Callable[[User], object]] = []


def on_role(role: Role, follow: Callable[[User], object]) -> None:
    """Register ``follow``, which is called with everyone who is given this role. For apps above this one."""
    _followers.append((role, follow))


def on_erasure(erase_too: Callable[[User], object]) -> None:
    """Register what erases a person's name and address in tables of an app above this one, before they go here."""
    _erasers.append(erase_too)


@transaction.atomic
def make_account(
    *,
    name: str,
    role: str,
    password: str | None = None,
    no_password: bool = False,
    email: str = "",
    by: User | None = None,
    how: str = "",
) -> tuple[User, str]:
    """Create an account. Returns it and its password, generated if none is given; ``no_password``: they sign in in
    another way. Raises ValidationError.
    """
    name = User.normalize_username(name)
    person = User(username=name, role=_role(role), email=email)
    User._meta.get_field("username").run_validators(name)
    if no_password:
        person.set_unusable_password()
    password = "" if no_password else _set_password(person, password)
    taken = ValidationError(_("This name is taken. Choose another."))
    if User.objects.filter(username__iexact=name).exists():
        raise taken
    try:
        with transaction.atomic():
            person.save()
    except IntegrityError:
        raise taken from None
    _tell_followers(person)
    audit.record("account-made", by=by, command=how, about=name, role=role)
    return person, password


@transaction.atomic
def set_role(*, person: User, role: str, by: User | None = None, how: str = "") -> None:
    """Change a role, effective from the next request. Raises ValidationError for one's own role, to avoid lock-outs."""
    if by == person and role != person.role:
        raise ValidationError("You cannot change your own role. Another administrator can.")
    before, person.role = person.role, _role(role)
    person.save(update_fields=["role"])
    _tell_followers(person)
    if role != before:
        audit.record("role-changed", by=by, command=how, about=person.username, old=before, new=role)


@transaction.atomic
def set_active(*, person: User, active: bool, by: User) -> None:
    """Switch an account off, with its tokens, or on again. Its data stays. Raises ValidationError for one's own."""
    if by == person:
        raise ValidationError("You cannot switch your own account off.")
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        person.end_tokens()
    audit.record("account-switched", by=by, about=person.username, now="on" if active else "off")


@transaction.atomic
def new_password(*, person: User, password: str | None = None, by: User | None = None, how: str = "") -> str:
    """Set or generate a password, and sign the person out everywhere. Raises ValidationError."""
    password = _set_password(person, password)
    person.save(update_fields=["password"])
    person.end_tokens()
    audit.record("password-changed", by=by, command=how, about=person.username)
    return password


@transaction.atomic
def set_email(*, person: User, email: str, by: User) -> None:
    """Change where notices and links for a new password go; the old address is told. Raises ValidationError."""
    if email == person.email:
        return
    if email:
        User._meta.get_field("email").run_validators(email)
    if person.email and mail.is_set_up():
        text = _(
            "The account {name} of evalsite has another e-mail address now. If it was not you, tell whoever keeps it."
        )
        mail.queue(person.email, _("Your e-mail address at evalsite"), text.format(name=person.username))
    person.email = email
    person.save(update_fields=["email"])
    audit.record("address-changed", by=by, about=person.username)


@transaction.atomic
def erase(*, person: User, by: User | None = None, how: str = "") -> str:
    """Erase who a person is, for good. What they did stays, under the name that is returned. Raises ValidationError."""
    others = User.objects.filter(role=Role.ADMINISTRATOR, is_active=True).exclude(pk=person.pk)
    if by == person or not others.exists():
        raise ValidationError("Another administrator has to do that: one always remains.")
    names = {name for name in (person.username, person.email) if name}
    for erase_too in _erasers:
        erase_too(person)
    person.end_tokens()
    for rows in (Grant, Notice, SavedView, SecondFactor, SignOn):
        rows.objects.filter(person=person).delete()
    person.teams.clear()
    Mail.objects.filter(to__iexact=person.email).delete()
    sessions.end(person)
    kept = {"pk": person.pk, "role": person.role, "date_joined": person.date_joined, "is_active": False}
    erased = User(**kept, username=f"erased-{secrets.token_hex(5)}")
    erased.set_unusable_password()
    erased.save(force_update=True)
    audit.erase(person, names, now_called=erased.username)
    audit.record("account-erased", by=by, command=how, about=erased.username)
    return erased.username


def mail_password_link(*, person: User) -> None:
    """Mail a link with which the person sets a password. Raises ValidationError."""
    if not (person.email and person.is_active and mail.is_set_up()):
        raise ValidationError("A link can be mailed to an account with an address, where mail is set up.")
    mail.queue_password_link(person)


def _tell_followers(person: User) -> None:
    for role, follow in _followers:
        if person.role == role:
            follow(person)


def _set_password(person: User, password: str | None) -> str:
    if password is None:
        password = secrets.token_urlsafe(12)
    else:
        validate_password(password, person)
    person.set_password(password)
    return password


def _role(role: str) -> str:
    if role not in Role.values:
        raise ValidationError(f"Unknown role: {role[:40]!r}. Choose one of: {', '.join(Role.values)}.")
    return role
