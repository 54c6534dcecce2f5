"""A kind of verdict: everything that boards, pages and statistics need to know about it, in one object."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pandas as pd
from django.db.models import QuerySet

from annotations import ballots
from annotations.models import Label, LabelQuerySet
from bank import guard
from bank.models import Benchmark
from judging import protocols
from judging.models import Judgment, Run
from leaderboard.metrics import Metric
from leaderboard.scope import Scope
from leaderboard.votes import level_names
from leaderboard.votes.scores import Shares, mean_of


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A number of a row: its field, its heading, how it is formatted, what it means."""

    name: str
    label: str
    write: Callable[[float | None], str]
    title: str

    @property
    def title_in_sentence(self) -> str:
        return f"{self.title[:1].lower()}{self.title[1:]}"


@dataclass(frozen=True, slots=True)
class Shape:
    """How models are shown: the number that ranks, the columns beside it, the ends of the color scale of its levels.

    ``unit`` is the step of its axis (0.01: a share, shown in percent). ``hundred`` is the value that counts as 100 %;
    None for other scales. ``in_words`` says what the number is; ``short`` is its unit next to a few figures.
    """

    main: NumberColumn
    short: str
    in_words: str = ""
    beside: tuple[NumberColumn, ...] = ()
    ends: tuple[float, float] = (0.0, 1.0)
    unit: float = 0.01
    hundred: float | None = 1.0


class Kind:
    """A kind of verdict. Defaults that most kinds share are here; each kind has a file of its own."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()  # other names it goes by
    column: str  # of the verdict
    no_models = ""  # why no board of models counts it; those of other kinds may have editions
    shape: Shape  # of the board of models
    shapes: Mapping[str, Shape] = MappingProxyType({})  # by the number that ranks, where that can be another
    metrics: tuple[Metric, ...] = ()  # of judges; pages show the leading one unasked, or the first
    leading = ""
    hidden: tuple[str, ...] = ()  # kinds of hidden criteria that its numbers depend on
    keyed = False  # answers compared with keys: verdicts only say which option an answer chose
    by_weights = False  # verdicts are points for weighted components
    paper = ""  # whose way to count is ``printed``
    printed: Mapping[str, str] = MappingProxyType({})  # definitions of that way, by name
    pairwise = False  # votes between two models: win rates, strengths, majorities
    biases: tuple[str, ...] = ()  # that can be measured
    scale_width = 1  # roughly how many times wider than a scale from 1 to 5: decides which bias is notable
    stand_in = ""  # how a judge's verdict is compared with one person's: equality or distance
    reference = "mean of people"  # what judges are compared with
    rows_page = "leaderboard:answers"  # where the rows behind a model's number are; of others none
    part_word = "level"
    counted_word = "item"
    compared_by = "Mean score"  # the measure when two models are compared
    compared_in = "scores"
    edition_digits = 2  # decimals in an edition: a number in full would reveal what it is made of
    question = ""  # for answers compared with keys: the kind of question in bank.submissions.marked_responses
    rotates = False  # whether questions are asked in every rotation of their options

    def __str__(self) -> str:
        return self.name

    @cached_property
    def protocols(self) -> tuple[str, ...]:
        """The protocols that give verdicts of this kind."""
        return tuple(name for name, protocol in protocols.all_by_name().items() if protocol.verdict_kind == self.name)

    @cached_property
    def item_kind(self) -> str:
        """The kind of items that it is about."""
        return protocols.get(self.protocols[0]).kind

    @property
    def in_address(self) -> str | None:
        """Its name in URLs; None for the default kind, which is left out."""
        return self.name

    @property
    def has_means(self) -> bool:
        """Whether a judge's verdicts estimate a number of each model together with people's."""
        return self.pairwise or (bool(self.stand_in) and self.by_mean)

    @property
    def on_scale(self) -> bool:
        """Whether its verdicts are numbers, or first, tie and second; rankings are neither."""
        return self.pairwise or (self.by_mean and self.column != "ranking")

    @property
    def by_mean(self) -> bool:
        """Whether people's verdicts on an item are averaged; otherwise the majority counts."""
        return self.reference == Kind.reference

    def metric(self, name: str, measured: Container[str]) -> Metric:
        """The metric of judges with this name; or the leading one, where it is ``measured``: older editions and
        snapshots may lack it.
        """
        lead = self.leading if self.leading in measured else ""
        found = {metric.name: metric for metric in self.metrics}
        return found.get(name) or found.get(lead) or self.metrics[0]

    def ends(self, benchmark: Benchmark) -> tuple[float, float]:
        """The minimum and maximum of the number that ranks models."""
        return self.shape.ends

    # ---- rows with a verdict of this kind ----

    @guard.working()
    def labels(self) -> LabelQuerySet:
        """People's labels with a verdict of this kind.

        Where ballots of several kinds fill its column, a label is of the kind of its campaign's protocol; those of
        campaigns with yet another protocol, as files may bring, are of the first of these kinds.
        """
        labels = Label.objects.filter(**{f"{self.column}__isnull": False})
        if self._is_first:
            others = self._filling - set(self.protocols)
            return labels.exclude(campaign__protocol__in=others) if others else labels
        return labels.filter(campaign__protocol__in=self._filling & set(self.protocols))

    def is_of(self, protocol: str) -> bool:
        """Whether what labels of a campaign with this protocol say in its column is of this kind, see ``labels``."""
        return protocol in self.protocols if protocol in self._filling else self._is_first

    @cached_property
    def _filling(self) -> set[str]:
        """The ballots that fill its column."""
        return {name for name, ballot in ballots.BALLOTS.items() if ballot.fields[0] == self.column}

    @cached_property
    def _is_first(self) -> bool:
        """Whether the first ballot that fills its column is of this kind."""
        first = next(name for name, ballot in ballots.BALLOTS.items() if ballot.fields[0] == self.column)
        return first in self.protocols

    @guard.working()
    def judgments(self, runs: Sequence[Run]) -> QuerySet[Judgment]:
        """The judgments of these runs that have a verdict."""
        return Judgment.objects.filter(run__in=[run.pk for run in runs], status=Judgment.Status.OK)

    def value(self, stored: Any) -> Any:
        """The stored value in the form that is compared and averaged."""
        return stored

    def combined(self, values: "pd.Series[Any]") -> Any:
        """A judge's verdicts on one item, in its presented orders or repeats, as one."""
        return mean_of(values)

    def numbers(self, scope: Scope, frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
        """Rows ``item, value`` in the form in which judges are compared."""
        return frame

    def by_model(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Verdicts, with the ``models`` of their items, as rows about one ``model`` each; "" where it is none's."""
        return frame.assign(model=[models[0] if len(models) == 1 else "" for models in frame["models"]])

    def shares(self, scope: Scope, frame: pd.DataFrame) -> Shares:
        """Verdicts on models as numbers: per verdict, and by the parts (levels, categories) of the board."""
        return Shares(frame, frame.assign(part=frame["level"]), level_names(scope))

    def made_of(self, scope: Scope, frame: pd.DataFrame) -> "pd.Series[str]":
        """For each verdict, the part of its number that follows from hidden criteria, as text."""
        return frame["value"].astype(str)
