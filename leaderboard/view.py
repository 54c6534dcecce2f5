"""What may be asked of boards: every parameter of the pages, the API and the command once, and how a view is checked.

A new definition (see ``definitions``) is a parameter by itself; any other is an entry of ``PARAMETERS``, named by the
tables that take it (``leaderboard.tables``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef

from annotations.models import Label
from bank import exposure, guard
from bank.forms.fields import whole_number
from bank.models import Benchmark, Item, Response
from bank.samples.benchmarks import find_benchmark
from bank.text.names import as_stored
from judging.models import Judgment
from judging.protocols.settings import AS_PRINTED
from leaderboard import kinds
from leaderboard.definitions import DEFINITIONS, POOL, POOLED, Definition
from leaderboard.kinds import Kind
from leaderboard.methods import EPSILON
from leaderboard.scope import ELO, NO_ELO, SAMPLES, BadScope, Scope, answers_shown

RANKINGS = ("pairs", "ranks", "repeats", "languages")
MEASURES = ("measures", "levels")
TOGETHER = ("models", "ranks", "levels")
LENGTHS = ("answers", "replies")
PEOPLE = ("campaign", "majority")
# What a page of verdicts of one kind takes, and what one of models does: its votes, and the rows behind them.
OF_VERDICTS = ("kind", *SAMPLES, *PEOPLE)
OF_VOTES = ("kind", "source", "run", "campaign", "anchor", "majority", *DEFINITIONS, *SAMPLES)
NAMES = ("source", "campaign", "anchor", "level")  # compared as they are stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """``help``: what it means; ``metavar`` and ``choices``: of the command's option; ``bare``: what the
    option means without a value; ``required``: whether what takes it needs it.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: Sequence[str] | None = None
    bare: str = ""
    required: bool = False

    @property
    def option(self) -> dict[str, Any]:
        """The arguments of ``add_argument``."""
        options: dict[str, Any] = {"default": "", "help": self.help}
        options |= {"choices": self.choices} if self.choices else {"metavar": self.metavar}
        return options | ({"nargs": "?", "const": self.bare} if self.bare else {})


def _of_definition(definition: Definition) -> Parameter:
    bare = POOLED if definition is POOL else ""
    return Parameter(name=definition.name, help=definition.help, choices=list(definition.ways), bare=bare)


PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            name="source",
            help="humans (default, the majority per item), individuals (every label), adjudicated, or a judge's name",
            metavar="NAME",
        ),
        Parameter(name="run", help="the number of a run, if a judge has runs with different settings", metavar="ID"),
        Parameter(name="kind", help=f"{', '.join(kinds.KINDS)}; default: the first for which the benchmark has data"),
        Parameter(name="campaign", help="labels of this campaign only", metavar="NAME"),
        Parameter(
            name="anchor",
            help="the model that all others are compared with; default: the benchmark's",
            metavar="MODEL",
        ),
        Parameter(name="majority", help="plurality or mllm-bench; default the benchmark's", metavar="RULE"),
        Parameter(
            name="elo",
            help="online-bootstrap (default), online, or none: over a million votes the first takes ten seconds",
            choices=(*ELO, NO_ELO),
        ),
        *map(_of_definition, DEFINITIONS.values()),
        Parameter(
            name=AS_PRINTED,
            help="1: count as the paper does (MLLM-Bench: wins of all items, one vote decides; MIA-Bench: points of "
            "ten); other definitions of the same request come first",
            choices=["1"],
            bare="1",
        ),
        Parameter(name="level", help="a capability, as its path from the top, joined by ' / '", metavar="PATH"),
        Parameter(name="question_type", help="samples of this type only", metavar="TYPE"),
        Parameter(name="split", help="samples of this split only", metavar="NAME"),
        Parameter(
            name="epsilon",
            help=f"by how much a judge may do worse than a person, 0 to 1; default {EPSILON:g}",
            metavar="E",
        ),
        Parameter(name="items", help="planned items of each model; default: the campaign's", metavar="N"),
        Parameter(name="labels", help="planned labels an item; default: the campaign's", metavar="K"),
        Parameter(name="rate", help="the win rate, or share right, a tie being half; default 0.5", metavar="SHARE"),
        Parameter(name="tie_rate", help="the share of ties; default: the campaign's so far, or 0.2", metavar="SHARE"),
        Parameter(
            name="alike",
            help="ICC(1) of two labels on one item; default: the campaign's so far, or 0.5",
            metavar="R",
        ),
        Parameter(name="difference", help="that of two rates, to be found; default 0.05", metavar="SHARE"),
        Parameter(
            name="part",
            help=f"of correlation: {', '.join(RANKINGS)}; of compare: {', '.join(MEASURES)}; of people-and-judge: "
            f"{', '.join(TOGETHER)}; of lengths: {', '.join(LENGTHS)}; of contents: verbs, words, objects",
        ),
        Parameter(name="a", help="one: a model's name, or of judges a run as run-3", metavar="A", required=True),
        Parameter(name="b", help="the other", metavar="B", required=True),
    )
}


def checked_epsilon(text: str | float) -> float:
    """By how much a judge may do worse than a person: from 0 to 1. Raises BadScope."""
    try:
        epsilon = float(text)
    except ValueError:
        epsilon = math.nan
    if not 0 <= epsilon <= 1:
        raise BadScope(f"epsilon is a number from 0 to 1, not {text!r}.")
    return epsilon


def run_number(text: str) -> int | None:
    """The number of a run. Raises BadScope if it is not a number."""
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise BadScope(f"{text!r} is not a run: a run is a whole number.")
    return number


def judge_run(text: str) -> int:
    """The number in ``run-3``, as comparisons name a judge's run; 0 for nothing. Raises BadScope."""
    if not text:
        return 0
    number = whole_number(text.removeprefix("run-"))
    if number is None:
        raise BadScope(f"{text[:30]!r} is not a run: write run-3, for example.")
    return number


# ---- the checked view ----


def scope_of(
    *,
    benchmark: str | Benchmark,
    kind: str | Kind = "",
    run: int | None = None,
    staff: bool = False,
    **asked: Any,
) -> Scope:
    """The checked view of what is ``asked``, parameters of ``VIEW``: empty ones stand for their default, which of kinds
    is pairs. Raises BadScope, or BadInput for an unknown benchmark.
    """
    if isinstance(benchmark, str):
        benchmark = find_benchmark(benchmark)
    if isinstance(kind, str):
        kind = kinds.get(kind) if kind else kinds.USUAL
    asked = {name: as_stored(value) if name in NAMES else value for name, value in asked.items() if value}
    _check_words(asked)
    _check_samples(asked, benchmark)
    anchor = asked.pop("anchor", "")
    if anchor and not _is_known(anchor, benchmark, staff=staff):
        raise BadScope(f"{anchor!r} has no responses in {benchmark}.")
    if asked.pop(AS_PRINTED, ""):
        if not kind.printed:
            raise BadScope(f"No paper says how to count verdicts of kind {kind} otherwise than here.")
        asked = {**kind.printed, **asked}
    fields: dict[str, Any] = {"anchor": anchor or (benchmark.anchor.name if benchmark.anchor else "")}
    fields |= {name: _way(definition, asked.pop(name, ""), kind) for name, definition in DEFINITIONS.items()}
    return Scope(benchmark=benchmark, kind=kind, run=run, staff=staff, **fields, **asked)


def _check_words(asked: Mapping[str, str]) -> None:
    """Raises BadScope for a majority rule or a way to compute Elo that does not exist."""
    rules, ways = Benchmark.Majority.values, (*ELO, NO_ELO)
    if (majority := asked.get("majority")) and majority not in rules:
        raise BadScope(f"Unknown majority rule: {majority!r}. Rules: {', '.join(rules)}.")
    if (elo := asked.get("elo")) and elo not in ways:
        raise BadScope(f"Unknown way to compute Elo: {elo!r}. Ways: {', '.join(ways)}.")


def _check_samples(asked: Mapping[str, str], benchmark: Benchmark) -> None:
    """Raises BadScope for a part of the samples that the benchmark does not have."""
    level = asked.get("level")
    if level and not benchmark.capabilities.filter(path=level).exists():
        tops = benchmark.capabilities.filter(parent=None).values_list("name", flat=True)
        raise BadScope(f"{benchmark} has no level {level!r}. Its top levels: {', '.join(tops) or 'none'}.")
    for name in ("question_type", "split"):
        value = asked.get(name)
        if value and not benchmark.samples.filter(**{name: value}).exists():
            raise BadScope(f"No sample of {benchmark} has the {name.replace('_', ' ')} {value!r}.")


def _way(definition: Definition, value: str, kind: Kind) -> str:
    """The value of a definition for this kind, its default where none is asked for. Raises BadScope."""
    if value and value not in definition.ways:
        raise BadScope(f"Unknown value of {definition.name}: {value!r}. Values: {', '.join(definition.ways)}.")
    default = definition.default(kind)
    if value and value not in (default, *definition.of_kind(kind)):
        raise BadScope(f"{definition.name} {value!r} is not possible for verdicts of kind {kind}.")
    return value or default


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
