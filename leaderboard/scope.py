"""The question that votes and boards read: benchmark, source of verdicts, filters, and what numbers count where
researchers differ, which is chosen on pages, by command and API, and written into every row.

A new definition is an object here, a field of ``Scope`` with its name, and the boards that follow it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet

from bank import guard
from bank.models import Benchmark, Response
from judging.protocols.settings import AS_PRINTED

if TYPE_CHECKING:
    from leaderboard.kinds.base import Kind

HUMANS, INDIVIDUALS, ADJUDICATED = "humans", "individuals", "adjudicated"
PEOPLE = (HUMANS, INDIVIDUALS, ADJUDICATED)
ELO = ("online-bootstrap", "online")
NO_ELO = "none"
SAMPLES = ("level", "question_type", "split")


# ---- definitions ----


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways: how it is called in a control, and what a page says of numbers made with it (or nothing)."""

    label: str
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """``name``: of the parameter and of the field of ``Scope``; ``ways`` by value; ``arises``: whether the question
    does for a kind of verdict; ``values``: those of a kind, its default first, where they are not all ways in order.
    """

    name: str
    label: str
    help: str
    always_said: bool = False  # on pages, also where it is the default
    ways: Mapping[str, Way]
    arises: Callable[["Kind"], bool] = lambda kind: kind.pairwise
    values: Callable[["Kind"], Sequence[str]] | None = None

    def of_kind(self, kind: "Kind") -> Sequence[str]:
        """The values that a kind of verdict can take, its default first."""
        if self.values:
            return self.values(kind)
        return tuple(self.ways) if self.arises(kind) else ()

    def default(self, kind: "Kind") -> str:
        """Its value where none is asked for."""
        return next(iter(self.of_kind(kind) or self.ways))


NO_TIES, HALF, DROPPED = "none", "half", "drop"
EXCLUDE, AS_TIE, WRONG = "exclude", "tie", "wrong"
NO_CONTROL, LENGTH, STYLE = "none", "length", "style"
ONCE, THRICE = "1", "3"
BY_LABEL, AS_POPE = "label", "pope"
BOTH_ORDERS, ANY_ORDER = "both", "any"
MEAN, POOLED = "0", "1"
OF_WEIGHTS, OF_TEN = "weights", "ten"


def _of_failures(kind: "Kind") -> Sequence[str]:
    if kind.pairwise:
        return EXCLUDE, AS_TIE, WRONG
    return (WRONG, EXCLUDE) if kind.keyed else (EXCLUDE,)


TIES = Definition(
    name="ties",
    label="Ties",
    help="what a tie counts in win rates: none (default), half, or drop: ties are left out",
    always_said=True,
    ways={
        NO_TIES: Way("not won", "ties are not won"),
        HALF: Way("half won", "a tie is half a win"),
        DROPPED: Way("left out", "ties are left out"),
    },
)
FAILURES = Definition(
    name="failures",
    label="Unreadable replies",
    help="what an item without a readable verdict or answer counts: exclude (default, but for answers compared with "
    "keys), tie (pairs only), or wrong: lost, not right",
    ways={
        EXCLUDE: Way("left out", "unreadable replies are left out"),
        AS_TIE: Way("count as a tie", "unreadable replies count as ties"),
        WRONG: Way("count as lost or wrong", "unreadable replies count as lost or wrong"),
    },
    values=_of_failures,
)
CONTROL = Definition(
    name="control",
    label="Hold equal",
    help="what is taken out of the strengths of models: none (default), length, style (markdown: headers, bold words, "
    "lists), or length,style",
    ways={
        NO_CONTROL: Way("nothing"),
        LENGTH: Way("length", "strengths and ranks have length taken out"),
        STYLE: Way("style: headers, bold, lists", "strengths and ranks have style taken out"),
        f"{LENGTH},{STYLE}": Way("length and style", "strengths and ranks have length and style taken out"),
    },
)
WEIGHT = Definition(
    name="weight",
    label="Much better counts",
    help="how often a vote for a much better answer counts in strengths: 1 (default), or 3 as in Arena-Hard",
    ways={ONCE: Way("as better"), THRICE: Way("three times", "in strengths a strong vote counts three times")},
)
READING = Definition(
    name="reading",
    label="Yes or no is read",
    help="how yes or no is read in an answer: label (default: what says neither counts as neither), or pope: as POPE's "
    "own script does, yes unless the first sentence holds no or not",
    ways={
        BY_LABEL: Way("as the answer's own word; else neither"),
        AS_POPE: Way(
            "as POPE's script: yes unless it says no or not", "answers are read as POPE's own script reads them"
        ),
    },
    arises=lambda kind: kind.keyed and not kind.rotates,
)
ORDERS = Definition(
    name="orders",
    label="Of two orders",
    help="which pairs count that a judge was asked about in both orders: both (default: those with a verdict in each), "
    "or any: the order that has a verdict counts, as JudgeBench has it",
    ways={
        BOTH_ORDERS: Way("both must have a verdict"),
        ANY_ORDER: Way("one verdict is enough", "of two orders the one that has a verdict counts"),
    },
)
POOL = Definition(
    name="pool",
    label="Data sets",
    help="1: a judge's numbers over all data sets pool their items; 0 (default): they are the mean over data sets",
    ways={MEAN: Way("each counts alike"), POOLED: Way("items are pooled")},
    arises=lambda kind: True,
)
TOTAL = Definition(
    name="total",
    label="Points are",
    help="what the points of an answer are a share of: weights (default: the sum of its components' weights), or ten, "
    "as MIA-Bench has it, where the weights of two instructions sum to 8",
    ways={
        OF_WEIGHTS: Way("of the weights' sum"),
        OF_TEN: Way("of ten", "points are of ten, whatever the weights sum to"),
    },
    arises=lambda kind: kind.by_weights,
)
DEFINITIONS = {
    definition.name: definition for definition in (TIES, FAILURES, ORDERS, CONTROL, WEIGHT, READING, TOTAL, POOL)
}
JUDGED = (FAILURES.name, ORDERS.name, POOL.name)  # what boards of judges follow

# ---- the view ----

# Every parameter of a view.
VIEW = ("source", "run", "kind", "campaign", "anchor", "majority", "elo", *DEFINITIONS, AS_PRINTED, *SAMPLES, "state")
CLOSED = "closed"  # the state that everybody sees, where staff see more


OPEN, HELD, WHOLE = "open", "held", "whole"  # halves of a benchmark that holds one out


class BadScope(ValueError):
    """The requested view does not exist or is ambiguous; the message says what exists."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One view of a benchmark. An empty field means the default, or no filter.

    ``staff``: the viewer may see what verdicts that quote criteria reveal about single samples. ``edition``: the
    result will be published, see ``leaderboard.editions``; then it leaves out the models ``without``, and shows
    those in ``whole`` without levels. ``half``: which samples count where a half is held out; without it those that are
    not, and of verdicts that are compared with nobody else's all (``hidden.of_one_source``). ``pseudonyms``: annotators
    have no names for this viewer, though they are staff to the benchmark.
    """

    benchmark: Benchmark
    kind: "Kind"
    source: str = HUMANS
    run: int | None = None
    singly: bool = False  # below staff, count only samples whose verdicts are seen one by one
    alike: bool = False  # count the run's finished likes with it: same judge, protocol and settings
    campaign: str = ""
    anchor: str = ""
    majority: str = ""
    elo: str = ELO[0]
    ties: str = NO_TIES
    failures: str = ""
    orders: str = BOTH_ORDERS
    control: str = NO_CONTROL
    weight: str = ONCE
    reading: str = BY_LABEL
    total: str = OF_WEIGHTS
    pool: str = MEAN
    level: str = ""
    question_type: str = ""
    split: str = ""
    half: str = ""
    staff: bool = False
    pseudonyms: bool = False
    edition: bool = False
    without: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The majority rule in force."""
        return self.majority or self.benchmark.majority

    @property
    def by_people(self) -> bool:
        """Whether people's verdicts count, and no judge's."""
        return self.run is None and self.source in PEOPLE

    @property
    def names(self) -> bool:
        """Whether annotators appear by name."""
        return self.staff and not self.pseudonyms

    @property
    def narrowed(self) -> bool:
        """Whether a filter leaves samples or labels out."""
        return bool(self.level or self.question_type or self.split or self.campaign)

    def judged_by(self, judge: str) -> "Scope":
        return replace(self, source=judge)


def changed(scope: Scope) -> list[Definition]:
    """The definitions that the view does not have at their default."""
    return [
        definition
        for definition in DEFINITIONS.values()
        if getattr(scope, definition.name) not in ("", definition.default(scope.kind))
    ]


def is_printed(scope: Scope) -> bool:
    """Whether the view counts as the paper of its kind of verdict does."""
    printed = scope.kind.printed
    return bool(printed) and all(getattr(scope, name) == value for name, value in printed.items())


def in_words(scope: Scope, *names: str) -> str:
    """What a page says of these definitions, as they are in force; nothing of what goes without saying."""
    said = [DEFINITIONS[name] for name in names if DEFINITIONS[name].of_kind(scope.kind)]
    off_default = changed(scope)
    words = (each.ways[getattr(scope, each.name)].said for each in said if each.always_said or each in off_default)
    return "; ".join(filter(None, (*words, f"as printed in {scope.kind.paper}" if is_printed(scope) else "")))


@guard.working()
def answers_shown(*, staff: bool) -> QuerySet[Response]:
    """The answers whose models are named: below staff, none of submissions that wait for their release."""
    responses = Response.objects.all()
    return responses if staff else responses.filter(Q(submission=None) | Q(submission__released_at__isnull=False))
