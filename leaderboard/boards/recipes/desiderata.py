"""Models by what ChEF asks of them besides accuracy (arXiv 2311.02692, Appendix C), and how these go together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Max

from accounts.rules import Viewer
from bank import guard
from bank.models import Recipe, Response
from bank.recipes import store
from leaderboard.boards.base import Board
from leaderboard.boards.recipes import board as boards
from leaderboard.boards.recipes.board import RecipeBoard, RecipeRow
from leaderboard.rows import UNKNOWN, Number, Row, number
from stats.correlation import pearson

FEWEST = 5  # models that a correlation needs
FEW = f"fewer than {FEWEST} models with both"


@dataclass(frozen=True, slots=True)
class Quality:
    """``title`` is its name in the paper and in notes, ``plain`` on pages, ``short`` where there is little room, and
    ``does`` what a model does that is best at it. ``metrics``: those of recipes that measure it, the best first.
    """

    name: str
    title: str
    plain: str
    short: str
    unit: str
    does: str
    metrics: tuple[str, ...]
    needs: str = ""


QUALITIES = {
    quality.name: quality
    for quality in (
        Quality("accuracy", "Accuracy", "Right answers", "Right", "%", "answers best", ("accuracy", "circular")),
        Quality(
            *("calibration", "Calibration", "Knows when it is right", "Knows", "100 less the gap"),
            *("knows best when it is right", ("ece",), "token likelihoods"),
        ),
        Quality(
            *("in_context", "In-context", "Learns from examples", "Learns", "% of what is above chance"),
            *("gains most from examples", ("riam",), "a recipe with examples"),
        ),
        Quality(
            *("following", "Following", "Keeps to the format", "Format", "% of replies"),
            *("keeps best to the format", ("mr",), "a recipe with other labels"),
        ),
        Quality(
            *("language", "Language", "Writes well", "Writes", "marks of 100"),
            *("writes best", ("language",), "a judge that marks reasons"),
        ),
        Quality(
            *("robustness", "Robustness", "Damaged pictures", "Damaged", "% kept"),
            *("keeps most when pictures are damaged", ("rrm",), "a recipe with damage"),
        ),
        Quality(
            *("hallucination", "Hallucination", "Does not invent", "Invents not", "% right, yes or no"),
            *("invents least", ("yes-no",), "questions of yes or no"),
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class DesiderataRow(Row):
    """A model with its accuracy and six qualities, each a share; ``recipes``: the one that measured each."""

    model: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    accuracy: Number = UNKNOWN
    calibration: Number = UNKNOWN
    in_context: Number = UNKNOWN
    following: Number = UNKNOWN
    language: Number = UNKNOWN
    robustness: Number = UNKNOWN
    hallucination: Number = UNKNOWN
    chance: float | None = None
    recipes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class QualityCorrelationRow(Row):
    """Pearson's correlation of two qualities over the models that have both (Figure 7a)."""

    a: str
    b: str
    pearson: Number
    p: float | None = None
    n: int


@dataclass(frozen=True, eq=False, kw_only=True)
class DesiderataBoard(Board[DesiderataRow]):
    """``recipes``: the one that each quality was measured with, of the ``choices``; ``boards`` theirs."""

    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    choices: Mapping[str, Sequence[Recipe]] = field(default_factory=dict)
    boards: Mapping[str, RecipeBoard] = field(default_factory=dict)
    together: Sequence[QualityCorrelationRow] = ()


@guard.working()
def measuring(viewer: Viewer) -> dict[str, list[Recipe]]:
    """By quality, the recipes with answers that measure it and that the viewer may know of: first those of its best
    metric, then the one used last.
    """
    last = dict(Response.all_objects.exclude(recipe=None).order_by().values_list("recipe").annotate(last=Max("pk")))
    metrics = {recipe: store.spec_of(recipe).metric for recipe in store.visible_to(viewer).filter(pk__in=last)}
    return {
        quality.name: sorted(
            (recipe for recipe, metric in metrics.items() if metric in quality.metrics),
            key=lambda recipe, of=quality.metrics: (of.index(metrics[recipe]), -last[recipe.pk]),  # type: ignore[misc]
        )
        for quality in QUALITIES.values()
    }


def desiderata(viewer: Viewer, wanted: Mapping[str, str] | None = None) -> DesiderataBoard:
    """All models with an answer by one of the recipes. ``wanted``: recipes by quality, NAME or NAME@VERSION; others are
    chosen by when they were last used.
    """
    chosen: dict[str, Recipe] = {}
    made: dict[str, RecipeBoard] = {}
    notes: list[str] = []
    choices = measuring(viewer)
    for quality, fitting in choices.items():
        name = (wanted or {}).get(quality, "")
        for recipe in fitting:
            if name not in ("", recipe.name, str(recipe)):
                continue
            board = boards.board(recipe, viewer)
            notes += [f"{QUALITIES[quality].title}, {recipe}: {note}" for note in board.notes]
            if board.rows:
                chosen[quality], made[quality] = recipe, board
                break
    rows = _rows(made)
    in_order = sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.model.casefold()))
    return DesiderataBoard(in_order, notes, recipes=chosen, choices=choices, boards=made, together=together(in_order))


def _rows(made: Mapping[str, RecipeBoard]) -> list[DesiderataRow]:
    """By quality its board: the models with the qualities that they have."""
    rows: dict[str, DesiderataRow] = {}
    for quality_name, board in made.items():
        for row in board.overall():
            of_model = rows.get(row.model, DesiderataRow(model=row.model))
            recipes = of_model.recipes | {quality_name: row.recipe}
            changes: dict[str, Any] = {"recipes": recipes, quality_name: row.value}
            if quality_name == "accuracy":
                changes |= {name: getattr(row, name) for name in ("rank", "rank_low", "rank_high", "tier", "chance")}
            rows[row.model] = replace(of_model, **changes)
    if "accuracy" not in made and "calibration" in made:  # its questions are asked plainly, too
        return [_with_accuracy(row, made["calibration"].overall()) for row in rows.values()]
    return list(rows.values())


def _with_accuracy(row: DesiderataRow, found: Sequence[RecipeRow]) -> DesiderataRow:
    own = next((each for each in found if each.model == row.model), None)
    return row if own is None else replace(row, accuracy=own.accuracy, chance=own.chance)


def together(rows: Sequence[DesiderataRow]) -> list[QualityCorrelationRow]:
    """The correlation of every two qualities; null for fewer than five models."""
    made = []
    names = list(QUALITIES)
    for at, a in enumerate(names):
        for b in names[at + 1 :]:
            pairs = [
                (one.value, other.value)
                for row in rows
                if (one := row.number(a)).value is not None and (other := row.number(b)).value is not None
            ]
            if len(pairs) < FEWEST:
                if pairs:
                    made.append(QualityCorrelationRow(a=a, b=b, pearson=Number(reason=FEW, n=len(pairs)), n=len(pairs)))
                continue
            first, second = zip(*pairs, strict=True)
            found = pearson(x=first, y=second, cluster=range(len(pairs)))
            made.append(QualityCorrelationRow(a=a, b=b, pearson=number(found.estimate), p=found.p, n=len(pairs)))
    return made
