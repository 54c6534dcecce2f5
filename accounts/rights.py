"""Rights for one benchmark: granting and ending them, and teams that they are granted to (ADR 42).

The audit log names whom each action is about, so that erasing a person erases them there, too.
"""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts import audit
from accounts.models import Grant, Right, Team, User


@transaction.atomic
def grant(*, benchmark: str, to: User | Team, right: str, by: User | None = None) -> Grant:
    """Grant somebody a right for all versions of a benchmark (its slug), in place of the one that they had."""
    key: dict[str, Any] = {"benchmark": benchmark, "team" if isinstance(to, Team) else "person": to}
    before = Grant.objects.filter(**key).values_list("right", flat=True).first()
    made, _ = Grant.objects.update_or_create(**key, defaults={"right": Right(right)})
    if right != before:
        audit.record("right-granted", by=by, about=str(to), benchmark=benchmark, right=str(right), old=before or "")
    return made


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
