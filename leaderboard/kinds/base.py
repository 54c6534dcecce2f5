"""What is known of a kind of verdict: all that boards, pages and statistics ask about it stands in one object."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pandas as pd
from django.db.models import QuerySet

from annotations.models import Label
from bank.models import Benchmark, Item
from judging import protocols
from judging.models import Judgment, Run
from leaderboard.boards import judge_board, scores, versus
from leaderboard.boards.base import ModelsBoard, level_names
from leaderboard.boards.judge_board import JudgesBoard
from leaderboard.boards.versus import Versus
from leaderboard.metrics import Metric
from leaderboard.scope import Scope


@dataclass(frozen=True, slots=True)
class Column:
    """A number of a row: its name there, its head, how it is written, what it means."""

    name: str
    label: str
    write: Callable[[float | None], str]
    title: str


@dataclass(frozen=True, slots=True)
class Shape:
    """How models are shown: the number that ranks, those beside it, the ends of the colours of its levels.

    ``unit`` is the step of its axis (0.01: a share, written in percent); ``hundred`` what is 100 %, None for a scale of
    its own. ``in_words`` says what the number is, ``short`` its unit beside a few figures.
    """

    main: Column
    short: str
    in_words: str = ""
    beside: tuple[Column, ...] = ()
    ends: tuple[float, float] = (0.0, 1.0)
    unit: float = 0.01
    hundred: float | None = 1.0


class Kind:
    """A kind of verdict. What is the same for most stands here; each has a file of its own."""

    name: str
    title: str
    also: tuple[str, ...] = ()  # other names it goes by
    column: str  # of the verdict
    item_kind: str = Item.Kind.SCORE  # of the items that it is about
    shape: Shape  # of the board of models
    shapes: Mapping[str, Shape] = MappingProxyType({})  # by the number that ranks, where that can be another
    metrics: tuple[Metric, ...] = ()  # of judges; the first is shown unasked
    hidden: tuple[str, ...] = ()  # kinds of criteria that its numbers rest on
    keyed = False  # answers compared with keys: verdicts only say what an answer chose
    pairwise = False  # votes between two models: win rates, strengths, majorities
    biases: tuple[str, ...] = ()  # that can be told of it
    wide = 1  # how many times as wide as a scale from 1 to 5, roughly: for what counts as a notable bias
    stand_in = ""  # how a judge's verdict is compared with one person's: equality or distance
    reference = "mean of people"  # what judges are compared with
    rows_page = "leaderboard:answers"  # where the rows behind a model's number are
    board: type[ModelsBoard] = scores.ScoresBoard  # of models
    part_word = "level"
    counted_word = "item"
    compared_by = "Mean score"  # two models
    compared_in = "scores"
    edition_digits = 2  # after the point, in an edition: a number in full would tell what it is made of
    question = ""  # of answers compared with keys, as bank.submissions.marked_responses calls it
    rotates = False  # whether questions are asked in every rotation of their options

    def __str__(self) -> str:
        return self.name

    @cached_property
    def protocols(self) -> tuple[str, ...]:
        """Whose verdicts are of this kind."""
        return tuple(name for name, one in protocols.all_by_name().items() if one.verdict_kind == self.name)

    @property
    def in_address(self) -> str | None:
        """How addresses name it; the usual one is left out."""
        return self.name

    @property
    def by_mean(self) -> bool:
        """Whether people's verdicts on an item are averaged; else most people decide."""
        return self.reference == Kind.reference

    def metric(self, name: str) -> Metric:
        """The metric of judges of that name, else the one shown unasked."""
        return next((one for one in self.metrics if one.name == name), self.metrics[0])

    def ends(self, benchmark: Benchmark) -> tuple[float, float]:
        """The least and the most that the number of the board of models can be."""
        return self.shape.ends

    # ---- which rows hold one ----

    def labels(self) -> QuerySet[Label]:
        """Labels by people that hold a verdict of this kind."""
        return Label.objects.filter(**{f"{self.column}__isnull": False})

    def judgments(self, runs: Sequence[Run]) -> QuerySet[Judgment]:
        """Of these runs those that hold a verdict."""
        return Judgment.objects.filter(run__in=[run.pk for run in runs], status=Judgment.Status.OK)

    def value(self, stored: Any) -> Any:
        """What is compared and averaged, of the column as it is stored."""
        return stored

    def numbers(self, scope: Scope, frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
        """Rows ``item, value`` as judges are compared by them."""
        return frame

    def has_models(self, benchmark: Benchmark, has_verdicts: Callable[["Kind"], bool]) -> bool:
        """Whether there is something for a board of models."""
        return has_verdicts(self)

    def shares(self, scope: Scope, frame: pd.DataFrame) -> scores.Shares:
        """Verdicts on models as numbers, whole and by the parts of the board of models."""
        return scores.Shares(frame, frame.assign(part=frame["level"]), level_names(scope))

    def made_of(self, scope: Scope, frame: pd.DataFrame) -> "pd.Series[str]":
        """For each verdict, what of its number follows from hidden criteria, as text."""
        return frame["value"].astype(str)

    # ---- boards ----

    def models(self, scope: Scope) -> ModelsBoard:
        """The board of models, live."""
        return scores.models(scope)

    def judges(self, scope: Scope) -> JudgesBoard:
        """The board of judges."""
        return judge_board.board(scope, judge_board.Comparison)

    def compare_models(self, scope: Scope, a: str, b: str) -> Versus:
        """Two models on what both have answered."""
        return versus.models_by_scores(scope, a, b)

    def compare_judges(self, scope: Scope, first: list[Run], second: list[Run]) -> Versus:
        """The runs of two judges on what both have judged."""
        return versus.judges_by_scores(scope, first, second)
