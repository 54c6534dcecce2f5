"""Strengths and win rates of models with length and style taken out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bank.models import Item
from leaderboard import votes
from leaderboard.methods import SEED
from leaderboard.rows import UNKNOWN, Number, Row, number
from leaderboard.scope import LENGTH, NO_CONTROL, Scope
from leaderboard.votes import arrays
from leaderboard.votes.covariates import covariates, lengths
from stats import controlled
from stats.arrays import BoolArray
from stats.bradley_terry import BradleyTerry
from stats.results import Estimate

if TYPE_CHECKING:
    from leaderboard.boards.models.pairs import Battle

MOST_PAIRS = 50_000  # of a benchmark; beyond, words are counted on request alone: the first time takes 20 us an answer
NO_TEXTS = "the texts of the answers are not here"
ON_REQUEST = "Of so many pairs, length-controlled win rates are computed only where length is taken out (control)."


@dataclass(frozen=True, kw_only=True)
class Coefficient(Row):
    """What a covariate (a - b) / (a + b) is worth, natural log of the odds to win: ``value`` per standard deviation
    ``sd`` of it, ``twice`` for an answer that has twice as much. ``unit``: what was counted.
    """

    value: Number = UNKNOWN
    twice: Number = UNKNOWN
    sd: float | None = None
    unit: str


@dataclass(frozen=True, eq=False, slots=True)
class Strengths:
    fit: BradleyTerry
    coefficients: dict[str, Coefficient] = field(default_factory=dict)
    notes: Sequence[str] = ()


def strengths(scope: Scope, battle: "Battle") -> Strengths:
    """The models' strengths, with what the view takes out of them."""
    if scope.control == NO_CONTROL:
        return Strengths(battle.rated())
    items = battle.frame["item"].to_numpy()
    answers = covariates(scope, items, scope.control)
    rows = answers.known
    fit = controlled.fit(
        a=battle.a[rows],
        b=battle.b[rows],
        y=battle.y[rows],
        covariates={name: values[rows] for name, values in answers.values.items()},
        models=battle.names,
        group=battle.frame["group"].cat.codes.to_numpy()[rows],
        item=items[rows],
        weight=None if battle.weight is None else battle.weight[rows],
        rng=np.random.default_rng(SEED),
    )
    coefficients = {
        name: Coefficient(
            value=number(found.value), twice=number(found.twice), sd=found.sd or None, unit=answers.units[name]
        )
        for name, found in fit.coefficients.items()
    }
    return Strengths(fit.strengths, coefficients, _left_out("strengths", items, rows))


def _left_out(what: str, items: npt.NDArray[np.integer[Any]], known: BoolArray) -> list[str]:
    """A note on the items of which a text is missing."""
    missing = len(np.unique(items[~known]))
    if not missing:
        return []
    return [f"{missing:,} of {len(np.unique(items)):,} items lack the text of an answer and do not count in {what}."]


@dataclass(frozen=True, eq=False, slots=True)
class LengthControlled:
    """By model, its win rate against the anchor if its answers were as long; ``unit`` of length."""

    rates: dict[str, Estimate] = field(default_factory=dict)
    unit: str = ""
    notes: Sequence[str] = ()


def length_controlled(scope: Scope, battle: "Battle", anchor: str) -> LengthControlled:
    """Of all models but the anchor; nothing without one. Repeats of an item count once, ties as half a win, continuous
    preferences as they are.
    """
    if not anchor:
        return LengthControlled()
    pairs = arrays.items_by_kind(scope.benchmark).get(Item.Kind.PAIR, 0)
    if pairs > MOST_PAIRS and LENGTH not in scope.control.split(","):
        return LengthControlled(notes=[ON_REQUEST])
    code = battle.place[anchor]
    first, second = (np.flatnonzero(side == code) for side in (battle.b, battle.a))
    rows = np.concatenate([first, second])
    frame = pd.DataFrame(
        {
            "item": battle.frame["item"].to_numpy()[rows],
            "group": battle.frame["group"].cat.codes.to_numpy()[rows],
            "model": np.concatenate([battle.a[first], battle.b[second]]),
            "won": np.concatenate([battle.y[first], 1 - battle.y[second]]),
            "sign": np.repeat([1, -1], [len(first), len(second)]),
        }
    ).sort_values("item", kind="stable", ignore_index=True)
    if "weight" in battle.frame:
        frame = frame.groupby("item", as_index=False).mean().astype({"model": int, "group": int})
    items, every = frame["item"].to_numpy(), arrays.pair_items(scope.benchmark)
    frame["sample"] = every.sample[votes.locate(every.item, items)[1]]
    (one, other), unit = lengths(scope, items)
    known = (one > 0) & (other > 0)
    counted = frame[known]
    rates = controlled.length_controlled_rates(
        won=counted["won"].to_numpy(),
        difference=((one - other) * frame["sign"].to_numpy())[known],
        sample=counted["sample"].to_numpy(),
        cluster=counted["group"].to_numpy(),
        part=counted["model"].to_numpy(),
        parts=len(battle.names),
    )
    played = set(frame["model"])
    of_model = {
        name: rate if rate.n else Estimate(None, 0, None, controlled.LC_METHOD, NO_TEXTS)
        for place, (name, rate) in enumerate(zip(battle.names, rates, strict=True))
        if place in played
    }
    return LengthControlled(
        of_model, unit if known.any() else "", _left_out("length-controlled win rates", items, known)
    )
