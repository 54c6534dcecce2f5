"""What may be asked of boards: every parameter of the pages, the API and the command once, and how a view is checked.

A new definition (see ``scope``) is a parameter by itself; any other is an entry of ``PARAMETERS``, named by the
tables that take it (``leaderboard.registry``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest
from django.urls import reverse

from accounts.rules import Viewer, allowed
from annotations.models import Label
from bank import exposure, guard
from bank.forms.fields import whole_number
from bank.models import Benchmark, Item, Response
from bank.samples.benchmarks import find_benchmark
from bank.text.names import as_stored
from judging.models import Judgment
from judging.protocols.in_words import settings_in_words
from judging.protocols.settings import AS_PRINTED
from leaderboard import kinds, votes
from leaderboard.kinds import Kind
from leaderboard.methods import EPSILON
from leaderboard.models import Edition
from leaderboard.scope import (
    ADJUDICATED,
    CLOSED,
    DEFINITIONS,
    ELO,
    HUMANS,
    INDIVIDUALS,
    NO_ELO,
    PEOPLE,
    POOL,
    POOLED,
    SAMPLES,
    BadScope,
    Definition,
    Scope,
    answers_shown,
)
from leaderboard.sight import MODELS, Sight

RANKINGS = ("pairs", "ranks", "repeats", "languages")
MEASURES = ("measures", "levels")
TOGETHER = ("models", "ranks", "levels")
LENGTHS = ("answers", "replies")
OF_PEOPLE = ("campaign", "majority", "state")
# What a page of verdicts of one kind takes, and what one of models does: its votes, and the rows behind them.
OF_VERDICTS = ("kind", *SAMPLES, *OF_PEOPLE)
OF_VOTES = ("kind", "source", "run", "campaign", "anchor", "majority", *DEFINITIONS, *SAMPLES, "state")
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
        if self.choices:
            options["choices"] = self.choices
        else:
            options["metavar"] = self.metavar
        if self.bare:
            options |= {"nargs": "?", "const": self.bare}
        return options


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
            name="state",
            help="closed: what everybody sees; staff see more without it, such as votes of open rounds",
            choices=[CLOSED],
            bare=CLOSED,
        ),
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


def check_state(text: str) -> None:
    """Raises BadScope for a state that there is none of."""
    if text not in ("", CLOSED):
        raise BadScope(f"Unknown state: {text!r}. There is {CLOSED}: what everybody sees.")


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
    anchor = _anchor(asked.pop("anchor", ""), benchmark, staff=staff)
    if asked.pop(AS_PRINTED, ""):
        if not kind.printed:
            raise BadScope(f"No paper says how to count verdicts of kind {kind} otherwise than here.")
        asked = {**kind.printed, **asked}
    fields: dict[str, Any] = {"anchor": anchor}
    fields |= {name: _way(definition, asked.pop(name, ""), kind) for name, definition in DEFINITIONS.items()}
    return Scope(benchmark=benchmark, kind=kind, run=run, staff=staff, **fields, **asked)


def _anchor(name: str, benchmark: Benchmark, *, staff: bool) -> str:
    """The model of this name, else the benchmark's own."""
    if not name:
        return benchmark.anchor.name if benchmark.anchor else ""
    if not _is_known(name, benchmark, staff=staff):
        raise BadScope(f"{name!r} has no responses in {benchmark}.")
    return name


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


# ---- addresses ----

PEOPLE_IN_WORDS = {
    HUMANS: "people, majority",
    INDIVIDUALS: "people, each label",
    ADJUDICATED: "people, adjudicated",
}
# Pages that exist in several kinds, and the board whose kinds they have.
BY_KIND = {
    "models": "models",
    "together": "models",
    "judges": "judges",
    "bias": "bias",
    "correlation": "models",
    "answers": "models",
    "models-compare": "models",
    "judges-compare": "judges",
}
RULES_IN_WORDS = {"plurality": "most frequent verdict", "mllm-bench": "MLLM-Bench"}


@dataclass(frozen=True, slots=True)
class Address:
    """A requested page of one benchmark. ``params`` holds the non-empty parameters that the page knows;
    ``name`` is the benchmark as the URL writes it.
    """

    viewer: Viewer
    page: str
    name: str
    benchmark: Benchmark
    params: dict[str, str] = field(default_factory=dict)

    @property
    def staff(self) -> bool:
        """Whether the page shows what staff see."""
        return self.may("read-hidden") and self.params.get("state") != CLOSED

    def may(self, rule: str) -> bool:
        """Whether the viewer has the rule for this benchmark."""
        return allowed(self.viewer, rule, of=self.benchmark)

    def link(self, **changes: str | None) -> str:
        """This page with some parameters changed; None removes one."""
        return self.to(self.page, **(self.params | changes))

    def plot(self, what: str) -> str:
        """A plot of this view, as a file."""
        return self.to("leaderboard:plot", what, **self.params)

    def to(self, page: str, /, *keys: object, **parameters: str | None) -> str:
        """Another page of the same benchmark; ``keys`` identify the object that the page is about, if any."""
        query = {name: value for name, value in parameters.items() if value}
        return reverse(page, args=[self.name, *keys], query=query)

    def kept(self, *names: str) -> list[tuple[str, str]]:
        """Those of these parameters that are there, for hidden fields."""
        return [(name, self.params[name]) for name in names if name in self.params]

    def view(self, names: Sequence[str] = OF_VOTES) -> dict[str, str | None]:
        """The parameters that say which verdicts count, to pass on to another page."""
        return {name: self.params[name] for name in names if name in self.params}

    def scope(self, *, source: str = "", run: int | None = None) -> Scope:
        """The checked scope. Raises BadScope."""
        asked = scope_of(
            benchmark=self.benchmark,
            source=source or self.params.get("source", ""),
            run=run or run_number(self.params.get("run", "")),
            elo=self.params.get("elo", "") or (NO_ELO if votes.is_large(self.benchmark) else ""),
            staff=self.staff,
            kind=self.kind,
            **{name: self._asked(name) for name in OF_VOTES if name not in ("source", "run", "kind", "state")},
        )
        check_state(self.params.get("state", ""))
        return replace(asked, pseudonyms=asked.staff and not self.may("read-names"))

    def sight(self, of: Edition.What | None = None) -> Sight:
        """What the viewer sees of a board in this view, which may have editions of its own. Raises BadScope."""
        return Sight(self.scope(), of)

    def _asked(self, name: str) -> str:
        """A parameter of the view, without definitions that links between kinds keep and this kind does not have."""
        value = self.params.get(name, "")
        definition = DEFINITIONS.get(name)
        other = definition and value in definition.ways and value not in definition.of_kind(self.kind)
        return "" if other else value

    @property
    def kind(self) -> Kind:
        """The kind of board: the requested one, or the first with data; pairs for pages that only have pairs.

        Raises BadScope.
        """
        if "kind" in self.params:
            return kinds.get(self.params["kind"])
        board = BY_KIND.get(self.page.removeprefix("leaderboard:"), "")
        return kinds.default_of(self.benchmark, board, staff=self.staff)


def read_address(request: HttpRequest, page: str, name: str, *, parameters: Sequence[str]) -> Address:
    """The address of a page; 404 for a benchmark that the viewer may not see."""
    try:
        benchmark = Benchmark.objects.visible_to(request.user).select_related("anchor").named(name)
    except Benchmark.DoesNotExist:
        raise Http404("no such benchmark") from None
    asked = {parameter: request.GET.get(parameter, "").strip() for parameter in parameters}
    if "show" in asked:  # a box for each column
        asked["show"] = ",".join(request.GET.getlist("show"))
    params = {parameter: value.replace("\x00", "")[:300] for parameter, value in asked.items() if value}
    return Address(request.user, page, name, benchmark, params)


def named(benchmark: Benchmark) -> str:
    """The benchmark as addresses write it."""
    return str(benchmark) if benchmark.version != "1" else benchmark.slug


@dataclass(frozen=True, slots=True)
class Source:
    """Where the verdicts of a view come from, and a note about that."""

    scope: Scope
    note: str = ""
    runs: Mapping[str, str] = field(default_factory=dict)  # to choose from, if a judge has some with other settings

    @property
    def sight(self) -> Sight:
        """What its viewer sees of the board of models."""
        return Sight(self.scope, MODELS)


def board_scope(address: Address, board: str) -> Scope:
    """The view of a board; of models with a judge's verdicts where there are none by people."""
    return source_of(address).scope if board == "models" else address.scope()


def source_of(address: Address) -> Source:
    """The view's source. The default is people, or a judge if there are no labels.

    For a judge with several settings the run with most items counts; the page offers the others. Raises BadScope.
    """
    note = ""
    scope = address.scope()
    if not address.params.get("source") and "run" not in address.params and Sight(scope, MODELS).live:
        scope, note = votes.in_place_of_people(scope)
    if scope.source in PEOPLE:
        return Source(scope, note)
    runs = list(votes.judged_runs(scope).filter(judge__name=scope.source))
    if len({(run.protocol, run.settings_hash) for run in runs}) < 2:
        return Source(scope, note)
    choices = {str(run.pk): f"{run.pk}: {settings_in_words(run.protocol, run.settings)}" for run in runs}
    most = votes.with_most_items(runs, alone=True)
    assert most
    return Source(replace(scope, run=scope.run or most.pk), note, choices)


def rows_behind(address: Address, sight: Sight, model: str) -> str:
    """Where the rows behind a model's number are; of what is seen as an edition alone, the board itself."""
    kind = sight.scope.kind
    if sight.only_editions:
        return address.to("leaderboard:models", kind=kind.in_address)
    return address.to(kind.rows_page, model=model, kind=kind.in_address)


def rows_at_level(address: Address, sight: Sight, model: str, level: str) -> str:
    """Where the rows behind a model's number at a level are; nowhere for what is seen as an edition alone."""
    kind = sight.scope.kind
    if sight.only_editions or not level or kind.part_word != "level":
        return ""
    path = level if kind.keyed else " / ".join(filter(None, [address.params.get("level", ""), level]))
    return address.to(kind.rows_page, **(address.view() | {"model": model, "level": path}))
