"""Rights for one benchmark: granting and ending them, and teams that they are granted to (ADR 42).

The audit log names whom each action is about, so that erasing a person erases them there, too.
"""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts import audit
from accounts.models import Grant, Right, Role, Team, User
from accounts.rules import allowed, grants_of


@transaction.atomic
def grant(*, benchmark: str, to: User | Team, right: str, by: User | None = None, invited: bool = False) -> Grant:
    """Grant somebody a right for all versions of a benchmark (its slug), in place of the one that they had.

    ``invited``: as ``Grant.invited``.
    """
    key: dict[str, Any] = {"benchmark": benchmark, "team" if isinstance(to, Team) else "person": to}
    before = Grant.objects.filter(**key).first()
    made, _ = Grant.objects.update_or_create(**key, defaults={"right": Right(right), "invited": invited})
    if before is None or (right, invited) != (before.right, before.invited):
        how = {"command": "invitation"} if invited else {}
        old = before.right if before else ""
        audit.record("right-granted", by=by, about=str(to), benchmark=benchmark, right=str(right), old=old, **how)
    return made


def let_in(*, person: User, benchmark: str, by: User | None = None) -> None:
    """Grant a guest the right to label what they are given in a benchmark (its slug), unless they have it. Whom
    somebody let see the benchmark goes on seeing it. Nobody else gets anything: they have what their role and grants
    give.
    """
    if person.role != Role.GUEST or not person.is_active or allowed(person, "label", of=benchmark):
        return
    grant(benchmark=benchmark, to=person, right=Right.LABEL, by=by, invited=benchmark not in grants_of(person))
    person.granted = None  # asked for anew


def end_invited(*, person: User, benchmark: str, by: User | None = None) -> None:
    """End what came with an invitation to a campaign of a benchmark (its slug)."""
    for given in Grant.objects.filter(person=person, benchmark=benchmark, invited=True):
        end(grant=given, by=by)


@transaction.atomic
def end(*, grant: Grant, by: User | None = None) -> None:
    """End a right, effective from the next request."""
    given = Grant.objects.select_for_update().filter(pk=grant.pk).first()
    if given is not None:
        given.delete()
        about = str(given.person or given.team)
        audit.record("right-ended", by=by, about=about, benchmark=given.benchmark, right=given.right)


@transaction.atomic
def make_team(*, name: str, by: User | None = None) -> Team:
    """Make a team without members. Raises ValidationError."""
    team = Team(name=" ".join(name.split()))
    team.full_clean()
    team.save()
    audit.record("team-made", by=by, about=team.name)
    return team


@transaction.atomic
def end_team(*, team: Team, by: User | None = None) -> None:
    """End a team, and with it what was granted to it."""
    for granted in team.grants.all():
        end(grant=granted, by=by)
    team.delete()
    audit.record("team-ended", by=by, about=team.name)


@transaction.atomic
def set_member(*, team: Team, person: User, member: bool, by: User | None = None) -> None:
    """Put a person into a team, or take them out. Raises ValidationError for an account that is switched off."""
    if member and not person.is_active:
        raise ValidationError(f"The account {person.username} is switched off.")
    if team.members.filter(pk=person.pk).exists() != member:
        (team.members.add if member else team.members.remove)(person)
        audit.record("team-changed", by=by, about=person.username, team=team.name, now="in" if member else "out")
