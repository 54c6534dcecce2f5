"""All access rules, in one table.

A page's view is decorated with ``@requires("rule")``; an API class has ``access_rule = "rule"``. ``AccessMiddleware``
answers 404 for views without a rule. A script needs a token with the rule's scope besides. QuerySets decide which
*objects* somebody sees (``visible_to``); others are 404.

A rule is given by the role, or for one benchmark by a grant (ADR 42): ``allowed(..., of=benchmark)`` asks both, and
``where`` is the same as a condition. Code that names no benchmark asks for the role alone: it shows less, never more.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.models import Grant, Right, Role, Scope, Token, User

ANONYMOUS = "anonymous"
EVERYBODY = frozenset({ANONYMOUS, *Role.values})
SIGNED_IN = frozenset(Role.values)
STAFF = frozenset({Role.CURATOR, Role.ADMINISTRATOR})


class Rule(NamedTuple):
    """Who may do something: these roles, and for a benchmark whoever was granted this right. And the scope that a token
    needs for it: no token allows more than its owner may do.
    """

    roles: frozenset[str]
    scope: Scope
    right: Right | None = None


RULES: dict[str, Rule] = {
    "read-public": Rule(EVERYBODY, Scope.READ),  # public leaderboards, public samples
    "be-signed-in": Rule(SIGNED_IN, Scope.READ),  # one's own account
    "freeze-views": Rule(SIGNED_IN - {Role.GUEST}, Scope.READ, Right.LABEL),  # of public boards
    "label": Rule(frozenset({Role.ANNOTATOR, *STAFF}), Scope.LABEL, Right.LABEL),  # own assignments only
    # Others' labels; pseudonymous below staff.
    "read-labels": Rule(frozenset({Role.RESEARCHER, *STAFF}), Scope.READ, Right.CURATE),
    "read-judging": Rule(frozenset({Role.RESEARCHER, *STAFF}), Scope.READ, Right.CURATE),  # campaigns, judges, runs
    "write-judging": Rule(STAFF, Scope.RUN, Right.CURATE),
    "write-campaigns": Rule(STAFF, Scope.RUN, Right.CURATE),
    "submit": Rule(frozenset({Role.RESEARCHER, *STAFF}), Scope.SUBMIT),  # own submissions; staff see all
    "manage-submissions": Rule(STAFF, Scope.RUN),
    "read-private": Rule(STAFF, Scope.READ, Right.VIEW),  # private benchmarks, as the role sees public ones
    "read-bank": Rule(STAFF, Scope.READ, Right.CURATE),  # samples in every state
    # Benchmarks, samples, capabilities; every change is kept; uploads.
    "write-bank": Rule(STAFF, Scope.RUN, Right.CURATE),
    "review-samples": Rule(STAFF, Scope.RUN, Right.CURATE),  # others' samples only
    "read-criteria": Rule(STAFF, Scope.READ, Right.CURATE),  # and each read is logged
    # What judges wrote; below, the redacted ones that two people released.
    "read-analyses": Rule(STAFF, Scope.READ, Right.CURATE),
    # What rests on hidden inputs: verdicts on hidden splits, live boards, runs that go on.
    "read-hidden": Rule(STAFF, Scope.READ, Right.CURATE),
    # Prices, durations and failures call by call: they tell how long hidden text is.
    "read-calls": Rule(STAFF, Scope.READ, Right.CURATE),
    # Who labelled; below, pseudonyms, which are the same on every benchmark: so no grant tells whose they are.
    "read-names": Rule(STAFF, Scope.READ),
    "publish": Rule(STAFF, Scope.RUN, Right.RELEASE),  # benchmarks, editions of boards
    "grant-rights": Rule(STAFF, Scope.RUN),  # for one benchmark; nobody hands on what they were granted
    "administer": Rule(frozenset({Role.ADMINISTRATOR}), Scope.RUN),
}

LACKS_SCOPE = "This token lacks the scope “{scope}”. Make one that has it on your page of tokens."

View = TypeVar("View", bound=Callable[..., Any])
Viewer = User | AnonymousUser


class Of(NamedTuple):
    """Which benchmark a view is about: its short name, from the arguments of the address."""

    benchmark: Callable[[Mapping[str, Any]], str | None]


BY_NAME = Of(lambda arguments: str(arguments["name"]).partition("@")[0])  # of addresses that name it
# Of views about none in particular, which show and change what their viewer has the rule for, and nothing else: a grant
# for any benchmark opens them.
ANYWHERE = Of(lambda arguments: None)


def _named_in_body(arguments: Mapping[str, Any]) -> str | None:
    try:
        sent = arguments["request"].data
    except APIException:  # what cannot be read names nothing
        return None
    return str(sent.get("benchmark")).partition("@")[0] if isinstance(sent, Mapping) else None


# Of what is made by the API for the benchmark that the caller names: a view's ``access_ofs``, by action.
IN_BODY = Of(_named_in_body)


class Named(Protocol):
    """A benchmark, in any of its versions."""

    slug: str


EVERYTHING = ~Q(pk__in=[])


class Undeclared(LookupError):
    """A rule that is not in the table."""


def role_of(viewer: Viewer) -> str:
    return viewer.role if isinstance(viewer, User) and viewer.is_active else ANONYMOUS


def _rule(name: str) -> Rule:
    try:
        return RULES[name]
    except KeyError:
        raise Undeclared(name) from None


def allowed(viewer: Viewer, rule: str, *, of: Named | str | None = None) -> bool:
    """Whether this viewer's role gives the rule, or a grant for the benchmark ``of``, which may be its name. Raises
    Undeclared for an unknown rule.
    """
    if role_of(viewer) in _rule(rule).roles:
        return True
    return of is not None and (of if isinstance(of, str) else of.slug).partition("@")[0] in granted(viewer, rule)


def where(viewer: Viewer, rule: str, benchmark: str = "") -> Q:
    """The rows of benchmarks for which this viewer has the rule; ``benchmark`` is the path to the benchmark. Neither an
    everything nor a nothing among them gets lost in ``|``, as an empty Q would.
    """
    if allowed(viewer, rule):
        return EVERYTHING
    return Q(**{f"{benchmark}slug__in": slugs}) if (slugs := granted(viewer, rule)) else Q(pk__in=[])


def granted(viewer: Viewer, rule: str) -> list[str]:
    """The benchmarks, by slug, for which a grant gives this viewer the rule."""
    right = _rule(rule).right
    return [] if right is None else sorted(slug for slug, rights in grants_of(viewer).items() if right in rights)


def grants_of(viewer: Viewer) -> Mapping[str, frozenset[Right]]:
    """The rights by benchmark that were granted to the viewer or to a team of theirs; read once for the object, and so
    once for a request.
    """
    if not isinstance(viewer, User) or not viewer.is_active or viewer.pk is None:  # somebody of a role
        return {}
    if viewer.granted is None:
        rows = Grant.objects.filter(Q(person=viewer.pk) | Q(team__members=viewer.pk)).order_by()
        found: dict[str, frozenset[Right]] = {}
        for slug, right, invited in rows.values_list("benchmark", "right", "invited"):
            found[slug] = found.get(slug, frozenset()) | Right(right).gives(invited=invited)
        viewer.granted = found
    return viewer.granted


def who(rule: str, *, of: Named | None) -> QuerySet[User]:
    """The people whose role gives the rule, and whom a grant for the benchmark gives it."""
    found, (roles, _, right) = User.objects.filter(is_active=True), _rule(rule)
    if of is None or right is None:
        return found.filter(role__in=roles)
    rights = Grant.objects.filter(benchmark=of.slug, right__in=[each for each in Right if right in each.included])
    rights = rights if right == Right.LABEL else rights.exclude(invited=True)
    in_teams = User.teams.through.objects.filter(team__in=rights.values("team"))
    granted_to = Q(pk__in=rights.exclude(person=None).values("person")) | Q(pk__in=in_teams.values("user"))
    return found.filter(Q(role__in=roles) | granted_to)


def class_of(viewer: Viewer) -> tuple[Any, ...]:
    """What viewers have in common who may see the same: the role, and what was granted besides. Whatever is kept for
    several viewers is kept by it.
    """
    return (role_of(viewer), *sorted((slug, *sorted(rights)) for slug, rights in grants_of(viewer).items()))


def labels_only(viewer: Viewer) -> bool:
    """Whether labelling is what the viewer comes for: annotators, and guests who were let in somewhere."""
    role = role_of(viewer)
    return role == Role.ANNOTATOR or (role == Role.GUEST and bool(granted(viewer, "label")))


def requires(rule: str, *, of: Of | None = None) -> Callable[[View], View]:
    """Declare the rule of a view, and ``of`` which benchmark it is, if a grant opens it as well. AccessMiddleware
    enforces it before the view runs.
    """
    if rule not in RULES:
        raise Undeclared(rule)

    def declare(view: View) -> View:
        view.access_rule, view.access_of = rule, of  # type: ignore[attr-defined]
        return view

    return declare


def through(model: Any, slug: str, argument: str = "pk") -> Of:
    """For addresses with the id of a row, from which ``slug`` leads to the short name of its benchmark."""

    def found(arguments: Mapping[str, Any]) -> str | None:
        try:
            return model._base_manager.filter(**{argument: arguments[argument]}).values_list(slug, flat=True).first()
        except (KeyError, ValueError):  # an address without it, or that is no number
            return None

    return Of(found)


def admitted(rule: str, viewer: Viewer, of: Of | None, arguments: Mapping[str, Any]) -> bool:
    """Whether a door with this rule opens at an address with these arguments."""
    if of is None or allowed(viewer, rule):
        return allowed(viewer, rule)
    slugs = granted(viewer, rule)
    return bool(slugs) and (of is ANYWHERE or of.benchmark(arguments) in slugs)


def before_second_factor(view: View) -> View:
    """A page that staff meet also while they lack the second factor that is required of them."""
    view.before_second_factor = True  # type: ignore[attr-defined]
    return view


def rule_of(view: Any) -> str | None:
    """The rule of a view or of its class."""
    rule = _declared(view, "access_rule")
    return None if rule is None else str(rule)


def opened_by(view: Any) -> Of | None:
    """Of which benchmark a view or its class is, if a grant opens it."""
    return cast(Of | None, _declared(view, "access_of"))


def _declared(view: Any, name: str) -> Any:
    for holder in (view, getattr(view, "cls", None), getattr(view, "view_class", None)):
        declared = getattr(holder, name, None)
        if declared is not None:
            return declared
    return None


def scopes_of(person: User) -> list[Scope]:
    """The scopes that a token of this person can make use of."""
    usable = {rule.scope for name, rule in RULES.items() if person.role in rule.roles or granted(person, name)}
    return [scope for scope in Scope if scope in usable]


def rule_of_action(view: Any, action: str | None) -> str | None:
    """The rule of an API class for one of its actions, which may have one of its own in ``access_rules``."""
    own: dict[str | None, str] = getattr(view, "access_rules", {})
    return own.get(action, getattr(view, "access_rule", None))


def demand(request: Request, rule: str, *, of: Named | str | None = None) -> None:
    """For what a call asks besides: raises PermissionDenied unless the person and the token may do that, too."""
    if not allowed(request.user, rule, of=of):
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
        of = getattr(view, "access_ofs", {}).get(getattr(view, "action", None)) or opened_by(view)
        doors = (request.user, of, {**view.kwargs, "request": request})
        needed = {RULES[rule].scope for rule in rules if rule is not None and admitted(rule, *doors)}
        if isinstance(request.auth, Token) and needed.isdisjoint(request.auth.scopes):
            if needed:
                self.message = LACKS_SCOPE.format(scope=min(needed))
            return False
        return bool(needed)
