"""A view of a leaderboard: benchmark, source of verdicts, filters."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet

from bank import guard
from bank.models import Benchmark, Response
from judging.protocols.settings import AS_PRINTED
from leaderboard.definitions import BOTH_ORDERS, BY_LABEL, DEFINITIONS, MEAN, NO_CONTROL, NO_TIES, OF_WEIGHTS, ONCE

if TYPE_CHECKING:
    from leaderboard.kinds.base import Kind

HUMANS, INDIVIDUALS, ADJUDICATED = "humans", "individuals", "adjudicated"
PEOPLE = (HUMANS, INDIVIDUALS, ADJUDICATED)
ELO = ("online-bootstrap", "online")
NO_ELO = "none"
SAMPLES = ("level", "question_type", "split")
# Every parameter of a view.
VIEW = ("source", "run", "kind", "campaign", "anchor", "majority", "elo", *DEFINITIONS, AS_PRINTED, *SAMPLES)


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


@guard.working()
def answers_shown(*, staff: bool) -> QuerySet[Response]:
    """The answers whose models are named: below staff, none of submissions that wait for their release."""
    responses = Response.objects.all()
    return responses if staff else responses.filter(Q(submission=None) | Q(submission__released_at__isnull=False))
