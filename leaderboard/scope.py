"""A view of a leaderboard: benchmark, source of verdicts, filters."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotations.models import Label
from bank import exposure, guard
from bank.models import Benchmark, Item, Response
from bank.samples.benchmarks import find_benchmark
from bank.text.names import as_stored
from judging.models import Judgment
from leaderboard.definitions import BOTH_ORDERS, BY_LABEL, DEFINITIONS, MEAN, NO_CONTROL, NO_TIES, ONCE

if TYPE_CHECKING:
    from leaderboard.kinds.base import Kind

HUMANS, INDIVIDUALS, ADJUDICATED = "humans", "individuals", "adjudicated"
PEOPLE = (HUMANS, INDIVIDUALS, ADJUDICATED)
ELO = ("online-bootstrap", "online")
NO_ELO = "none"
FILTERS = ("level", "question_type", "split")


class BadScope(ValueError):
    """The requested view does not exist or is ambiguous; the message says what exists."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One view of a benchmark. An empty field means the default, or no filter.

    ``staff``: the viewer may see what verdicts that quote criteria reveal about single samples. ``edition``: the
    result will be published, see ``leaderboard.boards.editions``; then it leaves out the models ``without``, and shows
    those in ``whole`` without levels.
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
    pool: str = MEAN
    level: str = ""
    question_type: str = ""
    split: str = ""
    staff: bool = False
    edition: bool = False
    without: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The majority rule in force."""
        return self.majority or self.benchmark.majority

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


@guard.working()
def _is_known(model: str, benchmark: Benchmark, *, staff: bool) -> bool:
    """Whether this viewer may know that the model has answers here. Boards of pairs name the models in verdicts."""
    of_model = {"model__name": model, "sample__benchmark": benchmark}
    if answers_shown(staff=staff).filter(**of_model).exists():
        return True
    by_judges, by_people = exposure.counted(held="run__held"), exposure.counted(held="campaign__held")
    judged = Exists(Judgment.objects.filter(by_judges, item=OuterRef("pk"), status=Judgment.Status.OK))
    labelled = Exists(Label.objects.filter(by_people, item=OuterRef("pk"), excluded=False))
    pairs = Item.objects.filter(kind=Item.Kind.PAIR, places__response__in=Response.objects.filter(**of_model))
    return pairs.filter(judged | labelled).exists()


def _way(name: str, value: str, kind: "Kind") -> str:
    """The value of a definition for this kind, its default where none is asked for. Raises BadScope."""
    definition = DEFINITIONS[name]
    if value and value not in definition.ways:
        raise BadScope(f"Unknown value of {name}: {value!r}. Values: {', '.join(definition.ways)}.")
    default = definition.default(kind)
    if value and value not in (default, *definition.of_kind(kind)):
        raise BadScope(f"{name} {value!r} is not possible for verdicts of kind {kind}.")
    return value or default


def scope_of(
    *,
    benchmark: str | Benchmark,
    kind: "str | Kind" = "",
    source: str = "",
    run: int | None = None,
    campaign: str = "",
    anchor: str = "",
    majority: str = "",
    elo: str = "",
    ties: str = "",
    failures: str = "",
    orders: str = "",
    control: str = "",
    weight: str = "",
    reading: str = "",
    pool: str = "",
    level: str = "",
    question_type: str = "",
    split: str = "",
    staff: bool = False,
) -> Scope:
    """A validated scope; the default kind is pairs. Raises BadScope, or BadInput for an unknown benchmark."""
    from leaderboard import kinds  # not at the top: kinds import boards, which import this module

    if isinstance(benchmark, str):
        benchmark = find_benchmark(benchmark)
    source, campaign, anchor, level = map(as_stored, (source, campaign, anchor, level))
    if isinstance(kind, str):
        kind = kinds.get(kind) if kind else kinds.USUAL
    if majority and majority not in Benchmark.Majority.values:
        raise BadScope(f"Unknown majority rule: {majority!r}. Rules: {', '.join(Benchmark.Majority.values)}.")
    if elo and elo not in (*ELO, NO_ELO):
        raise BadScope(f"Unknown way to compute Elo: {elo!r}. Ways: {', '.join((*ELO, NO_ELO))}.")
    if anchor and not _is_known(anchor, benchmark, staff=staff):
        raise BadScope(f"{anchor!r} has no responses in {benchmark}.")
    if level and not benchmark.capabilities.filter(path=level).exists():
        tops = benchmark.capabilities.filter(parent=None).values_list("name", flat=True)
        raise BadScope(f"{benchmark} has no level {level!r}. Its top levels: {', '.join(tops) or 'none'}.")
    for name, value in (("question_type", question_type), ("split", split)):
        if value and not benchmark.samples.filter(**{name: value}).exists():
            words = name.replace("_", " ")
            raise BadScope(f"No sample of {benchmark} has the {words} {value!r}.")
    return Scope(
        benchmark=benchmark,
        kind=kind,
        source=source or HUMANS,
        run=run,
        campaign=campaign,
        anchor=anchor or (benchmark.anchor.name if benchmark.anchor else ""),
        majority=majority,
        elo=elo or ELO[0],
        ties=_way("ties", ties, kind),
        failures=_way("failures", failures, kind),
        orders=_way("orders", orders, kind),
        control=_way("control", control, kind),
        weight=_way("weight", weight, kind),
        reading=_way("reading", reading, kind),
        pool=_way("pool", pool, kind),
        level=level,
        question_type=question_type,
        split=split,
        staff=staff,
    )
