"""The order of models when some of them have no finite strength, and the words that say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from stats.arrays import BoolArray, FloatArray, IntArray, ratio

NO_VOTES = "no comparisons"
APART = "not connected to the other models"
ONLY_WINS = "won every comparison: no finite rating"
ONLY_LOSSES = "lost every comparison: no finite rating"
ONE_WAY = "linked to the rated models by wins in one direction only: no finite rating"


@dataclass(frozen=True, slots=True)
class Standing:
    """`rank` counts from 1 and is None for models that are not connected to the ranked ones, of which there
    are `ranked`.

    `reason` is empty for rated models. Both are in the order of the models.
    """

    rank: tuple[int | None, ...]
    reason: tuple[str, ...]
    ranked: int
    warnings: tuple[str, ...]


def standings(*, models: Sequence[str], wins: FloatArray, rated: BoolArray, theta: FloatArray) -> Standing:
    """Order all models: `wins` (M, M), `rated` (M,), `theta` the strengths of the rated ones.

    An unrated model stands above those that it reaches by a chain of wins without being reached by them:
    where the strengths' likelihood has its maximum at infinity, that is their order. Models in a separate
    part of the graph are not ranked.
    """
    ranked = _connected(wins, rated)
    strength = np.zeros(len(wins))
    strength[rated] = theta
    rank: list[int | None] = [None] * len(wins)
    for place, model in enumerate(_order(wins, rated, ranked, strength), start=1):
        rank[model] = place
    reasons = tuple(_reason(wins, rated, ranked, model) for model in range(len(wins)))
    warnings = [
        f"{reason} ({', '.join(models[m] for m in range(len(wins)) if reasons[m] == reason)})"
        for reason in (APART, ONLY_WINS, ONLY_LOSSES, ONE_WAY)
        if reason in reasons
    ]
    return Standing(tuple(rank), reasons, int(ranked.sum()), tuple(warnings))


def _connected(wins: FloatArray, rated: BoolArray) -> BoolArray:
    """The part of the comparison graph that holds the rated models; without any, the part with most models,
    then votes.
    """
    _, label = connected_components(csr_array(wins + wins.T > 0), directed=False)
    if rated.any():
        return np.asarray(label == label[np.argmax(rated)], dtype=np.bool_)
    sizes, votes = np.bincount(label), np.bincount(label, weights=wins.sum(axis=1))
    if votes.max(initial=0) == 0:
        return np.zeros(len(wins), dtype=np.bool_)
    return np.asarray(label == np.lexsort((votes, sizes))[-1], dtype=np.bool_)


def _order(wins: FloatArray, rated: BoolArray, ranked: BoolArray, strength: FloatArray) -> IntArray:
    # Equal strengths differ by rounding: they keep the order of the models.
    keys = [-np.round(strength, 9)]
    if not rated[ranked].all():
        reach = (wins > 0) | np.eye(len(wins), dtype=np.bool_)
        for _ in range(len(wins).bit_length()):
            reach = reach.astype(np.float32) @ reach.astype(np.float32) > 0
        played = wins.sum(axis=1) + wins.sum(axis=0)
        share = np.nan_to_num(ratio(wins.sum(axis=1), played))
        _, label = connected_components(csr_array(wins > 0), directed=True, connection="strong")
        # Whoever reaches more models than reach it comes first; within one such set, strength or share of wins.
        keys = [np.where(rated, keys[0], -share), label, -(reach.sum(axis=1) - reach.sum(axis=0))]
    order = np.lexsort(keys)
    return np.asarray(order[ranked[order]], dtype=np.int64)


def _reason(wins: FloatArray, rated: BoolArray, ranked: BoolArray, model: int) -> str:
    won, lost = wins[model].sum(), wins[:, model].sum()
    if rated[model]:
        return ""
    if won + lost == 0:
        return NO_VOTES
    if not ranked[model]:
        return APART
    if lost == 0:
        return ONLY_WINS
    return ONLY_LOSSES if won == 0 else ONE_WAY
