"""All access rules, in one table.

A page's view is decorated with ``@requires("rule")``; an API class has ``access_rule = "rule"``. ``AccessMiddleware``
answers 404 for views without a rule. QuerySets decide which *objects* somebody sees (``visible_to``); others are 404.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.models import Role, User

ANONYMOUS = "anonymous"
EVERYBODY = frozenset({ANONYMOUS, *Role.values})
SIGNED_IN = frozenset(Role.values)
STAFF = frozenset({Role.CURATOR, Role.ADMINISTRATOR})

RULES: dict[str, frozenset[str]] = {
    "read-public": EVERYBODY,  # public leaderboards, public samples
    "be-signed-in": SIGNED_IN,
    "label": frozenset({Role.ANNOTATOR, *STAFF}),  # own assignments only
    "read-labels": frozenset({Role.RESEARCHER, *STAFF}),  # others' labels; pseudonymous below staff
    "read-judging": frozenset({Role.RESEARCHER, *STAFF}),  # campaigns, judges, runs
    "write-judging": STAFF,
    "write-campaigns": STAFF,
    "submit": frozenset({Role.RESEARCHER, *STAFF}),  # own submissions; staff see all
    "manage-submissions": STAFF,
    "read-bank": STAFF,  # private benchmarks, and samples in every state
    "write-bank": STAFF,  # benchmarks, samples, capabilities; every change is kept; uploads
    "review-samples": STAFF,  # others' samples only
    "read-criteria": STAFF,  # and each read is logged
    "read-analyses": STAFF,  # what judges wrote; below, the redacted ones that two people released
    "read-hidden": STAFF,  # what rests on hidden inputs: verdicts on hidden splits, live boards, runs that go on
    "read-calls": STAFF,  # prices, durations and failures call by call: they tell how long hidden text is
    "read-names": STAFF,  # who labelled; below, pseudonyms
    "publish": STAFF,  # benchmarks, editions of boards
    "administer": frozenset({Role.ADMINISTRATOR}),
}

View = TypeVar("View", bound=Callable[..., Any])
Viewer = User | AnonymousUser


class Undeclared(LookupError):
    """A rule that is not in the table."""


def role_of(viewer: Viewer) -> str:
    return viewer.role if isinstance(viewer, User) and viewer.is_active else ANONYMOUS


def allowed(viewer: Viewer, rule: str) -> bool:
    """Whether this viewer has the right. Raises Undeclared for an unknown rule."""
    try:
        return role_of(viewer) in RULES[rule]
    except KeyError:
        raise Undeclared(rule) from None


def requires(rule: str) -> Callable[[View], View]:
    """Declare the rule of a view. AccessMiddleware enforces it before the view runs."""
    if rule not in RULES:
        raise Undeclared(rule)

    def declare(view: View) -> View:
        view.access_rule = rule  # type: ignore[attr-defined]
        return view

    return declare


def rule_of(view: Any) -> str | None:
    """The rule of a view or of its class."""
    for holder in (view, getattr(view, "cls", None), getattr(view, "view_class", None)):
        rule = getattr(holder, "access_rule", None)
        if rule is not None:
            return str(rule)
    return None


class Declared(BasePermission):
    """Applies the table to API classes. An action may have a rule of its own in ``access_rules``."""

    def has_permission(self, request: Request, view: Any) -> bool:
        own = getattr(view, "access_rules", {})
        actions = [getattr(view, "action", None)]
        if request.method == "OPTIONS":  # allowed for anyone who may use one of the route's methods
            actions = list(getattr(view, "action_map", {}).values()) or actions
        rules = {own.get(action, getattr(view, "access_rule", None)) for action in actions}
        return any(rule is not None and allowed(request.user, rule) for rule in rules)
