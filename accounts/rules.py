"""All access rules, in one table.

A page's view is decorated with ``@requires("rule")``; an API class has ``access_rule = "rule"``. ``AccessMiddleware``
answers 404 for views without a rule. A script needs a token with the rule's scope besides. QuerySets decide which
*objects* somebody sees (``visible_to``); others are 404.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth.models import AnonymousUser
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.models import Role, Scope, Token, User

ANONYMOUS = "anonymous"
EVERYBODY = frozenset({ANONYMOUS, *Role.values})
SIGNED_IN = frozenset(Role.values)
STAFF = frozenset({Role.CURATOR, Role.ADMINISTRATOR})


class Rule(NamedTuple):
    """Who has a right, and the scope that a token needs to use it. No token allows more than its owner's role."""

    roles: frozenset[str]
    scope: Scope


RULES: dict[str, Rule] = {
    "read-public": Rule(EVERYBODY, Scope.READ),  # public leaderboards, public samples
    "be-signed-in": Rule(SIGNED_IN, Scope.READ),
    "label": Rule(frozenset({Role.ANNOTATOR, *STAFF}), Scope.LABEL),  # own assignments only
    "read-labels": Rule(frozenset({Role.RESEARCHER, *STAFF}), Scope.READ),  # others' labels; pseudonymous below staff
    "read-judging": Rule(frozenset({Role.RESEARCHER, *STAFF}), Scope.READ),  # campaigns, judges, runs
    "write-judging": Rule(STAFF, Scope.RUN),
    "write-campaigns": Rule(STAFF, Scope.RUN),
    "submit": Rule(frozenset({Role.RESEARCHER, *STAFF}), Scope.SUBMIT),  # own submissions; staff see all
    "manage-submissions": Rule(STAFF, Scope.RUN),
    "read-bank": Rule(STAFF, Scope.READ),  # private benchmarks, and samples in every state
    "write-bank": Rule(STAFF, Scope.RUN),  # benchmarks, samples, capabilities; every change is kept; uploads
    "review-samples": Rule(STAFF, Scope.RUN),  # others' samples only
    "read-criteria": Rule(STAFF, Scope.READ),  # and each read is logged
    "read-analyses": Rule(STAFF, Scope.READ),  # what judges wrote; below, the redacted ones that two people released
    # What rests on hidden inputs: verdicts on hidden splits, live boards, runs that go on.
    "read-hidden": Rule(STAFF, Scope.READ),
    # Prices, durations and failures call by call: they tell how long hidden text is.
    "read-calls": Rule(STAFF, Scope.READ),
    "read-names": Rule(STAFF, Scope.READ),  # who labelled; below, pseudonyms
    "publish": Rule(STAFF, Scope.RUN),  # benchmarks, editions of boards
    "administer": Rule(frozenset({Role.ADMINISTRATOR}), Scope.RUN),
}

LACKS_SCOPE = "This token lacks the scope “{scope}”. Make one that has it on your page of tokens."

View = TypeVar("View", bound=Callable[..., Any])
Viewer = User | AnonymousUser


class Undeclared(LookupError):
    """A rule that is not in the table."""


def role_of(viewer: Viewer) -> str:
    return viewer.role if isinstance(viewer, User) and viewer.is_active else ANONYMOUS


def allowed(viewer: Viewer, rule: str) -> bool:
    """Whether this viewer has the right. Raises Undeclared for an unknown rule."""
    try:
        return role_of(viewer) in RULES[rule].roles
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


def before_second_factor(view: View) -> View:
    """A page that staff meet also while they lack the second factor that is required of them."""
    view.before_second_factor = True  # type: ignore[attr-defined]
    return view


def rule_of(view: Any) -> str | None:
    """The rule of a view or of its class."""
    for holder in (view, getattr(view, "cls", None), getattr(view, "view_class", None)):
        rule = getattr(holder, "access_rule", None)
        if rule is not None:
            return str(rule)
    return None


def scopes_of(role: str) -> list[Scope]:
    """The scopes that a token of this role can make use of."""
    usable = {rule.scope for rule in RULES.values() if role in rule.roles}
    return [scope for scope in Scope if scope in usable]


def rule_of_action(view: Any, action: str | None) -> str | None:
    """The rule of an API class for one of its actions, which may have one of its own in ``access_rules``."""
    own: dict[str | None, str] = getattr(view, "access_rules", {})
    return own.get(action, getattr(view, "access_rule", None))


def demand(request: Request, rule: str) -> None:
    """For what a call asks besides: raises PermissionDenied unless the person and the token may do that, too."""
    if not allowed(request.user, rule):
        raise PermissionDenied
    scope = RULES[rule].scope
    if isinstance(request.auth, Token) and scope not in request.auth.scopes:
        raise PermissionDenied(LACKS_SCOPE.format(scope=scope))


class Declared(BasePermission):
    """Applies the table to API classes: the role of the person, and the scopes of the token if one was sent."""

    def has_permission(self, request: Request, view: Any) -> bool:
        actions = [getattr(view, "action", None)]
        if request.method == "OPTIONS":  # allowed for anyone who may use one of the route's methods
            actions = list(getattr(view, "action_map", {}).values()) or actions
        rules = {rule_of_action(view, action) for action in actions}
        needed = {RULES[rule].scope for rule in rules if rule is not None and allowed(request.user, rule)}
        if isinstance(request.auth, Token) and needed.isdisjoint(request.auth.scopes):
            if needed:
                self.message = LACKS_SCOPE.format(scope=min(needed))
            return False
        return bool(needed)
