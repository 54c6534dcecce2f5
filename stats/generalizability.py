"""How much of what ratings differ by is the item, the rater, and the rest: intraclass correlations and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from stats.arrays import FloatArray, IntArray, check_finite, check_lengths, dense_codes, ratio
from stats.jackknife import Blocks, Scale, Table, jackknife, mean_over
from stats.results import Estimate

NO_PAIRS = "no two raters have an item in common, or all ratings are the same"
ICC = ("ICC(1)", "ICC(A,1)", "ICC(C,1)")


@dataclass(frozen=True, slots=True)
class Intraclass:
    """The reliability of a single rating, by the names of McGraw and Wong (1996); in Shrout and Fleiss (1979) these are
    ICC(1,1), ICC(2,1) and ICC(3,1).

    ``one_way``: raters differ by item; ``agreement``: how high a rater rates counts as error; ``consistency``: it does
    not.
    """

    one_way: Estimate
    agreement: Estimate
    consistency: Estimate


def intraclass(
    *,
    item: npt.ArrayLike,
    rater: npt.ArrayLike,
    value: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Intraclass:
    """Intraclass correlations of a long table (n,), a row for each rating, of which any may be missing.

    From half the mean squared difference of two ratings of one item (W), by one rater (R), with neither in common (B),
    and of two items, whoever rated them (T): ICC(1) = 1 - W / T, ICC(A,1) = 1 - W / B, ICC(C,1) = (B - W) / R. Where
    every rater rates every item, these are the mean squares of the analysis of variance in other words; where ratings
    are missing, each pair of ratings that is there counts once (Koch 1968, Technometrics 10:551). ``stratum`` as in
    ``cohen_kappa``. Interval: jackknife by group, on Fisher's scale; it is about other items and these raters. Raises
    LengthMismatch, NotFinite.
    """
    numbers = np.asarray(value, dtype=np.float64)
    strata, parts = dense_codes(np.zeros(len(numbers)) if stratum is None else stratum)
    of_item, of_rater, groups = np.asarray(item), np.asarray(rater), np.asarray(cluster)
    check_lengths(item=of_item, rater=of_rater, value=numbers, cluster=groups, stratum=strata)
    check_finite(value=numbers)
    people, count = dense_codes(of_rater)
    units, _ = dense_codes(dense_codes(of_item)[0] * parts + strata)
    numbers = numbers - (numbers.mean() if len(numbers) else 0.0)  # for the digits
    terms, first = _terms(units, people, count, numbers, strata, parts)
    table = Blocks.of(groups[first]).sums(terms)

    def estimate(at: int) -> Estimate:
        return jackknife(
            table=table,
            statistic=mean_over(lambda sums: _coefficients(sums, count)[at], parts),
            n=len(numbers),
            scale=Scale.FISHER,
            method=ICC[at],
            undefined=NO_PAIRS,
            level=level,
        )

    return Intraclass(estimate(0), estimate(1), estimate(2))


def _terms(
    units: IntArray, people: IntArray, count: int, numbers: FloatArray, strata: IntArray, parts: int
) -> tuple[csr_array, IntArray]:
    """What each unit adds to the sums of its stratum: pairs within it and their squared differences, then how many
    ratings, their sum and their sum of squares by each rater. And a row of each unit.
    """
    _, first, sizes = np.unique(units, return_index=True, return_counts=True)
    sums, squares = (np.bincount(units, weights=column, minlength=len(first)) for column in (numbers, numbers**2))
    within = np.stack([sizes * (sizes - 1), sizes * squares - sums**2], axis=1)
    width = 2 + 3 * count
    start = strata * width
    by_rater = [np.ones(len(numbers)), numbers, numbers**2]
    rated = csr_array(
        (
            np.concatenate(by_rater),
            (np.tile(units, 3), np.concatenate([start + 2 + part * count + people for part in range(3)])),
        ),
        shape=(len(first), parts * width),
    )
    at = (strata[first] * width)[:, None] + np.arange(2)
    pairs = csr_array(
        (within.ravel(), (np.repeat(np.arange(len(first)), 2), at.ravel())), shape=(len(first), parts * width)
    )
    return csr_array(rated + pairs), first


def _coefficients(sums: FloatArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    pairs, differences = sums[:, 0], sums[:, 1]
    n, total, squares = (sums[:, 2 + part * count : 2 + (part + 1) * count] for part in range(3))
    same_rater = (n * (n - 1)).sum(axis=1), (n * squares - total**2).sum(axis=1)
    all_n, all_total = n.sum(axis=1), total.sum(axis=1)
    others = all_n * (all_n - 1) - pairs, all_n * squares.sum(axis=1) - all_total**2 - differences
    neither = others[0] - same_rater[0], others[1] - same_rater[1]
    within, by_rater = ratio(differences, pairs), ratio(same_rater[1], same_rater[0])
    between, apart = ratio(others[1], others[0]), ratio(neither[1], neither[0])
    return 1 - ratio(within, between), 1 - ratio(within, apart), ratio(apart - within, by_rater)


# ---- variance components ----


NO_VARIANCE = "nothing varies, or nothing is rated twice: its parts cannot be told apart"
PROMPT, ITEM, REST = "prompt", "item", "rest"


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the variance of one rating: how much, never below 0, and which ``share`` of all of it."""

    name: str
    variance: float
    share: Estimate
    levels: int


@dataclass(frozen=True, slots=True)
class Components:
    """The parts of the variance of one rating, and what makes the error of the mean over all items: ``ratings`` of each
    item on average.
    """

    parts: tuple[Component, ...]
    ratings: float

    def error(self, *, items: float = 1, raters: float = 1) -> float:
        """The standard error of the mean with so many times as many items, in prompts of the same size, and so many
        times as many ratings of each, by others where people rate. The orders of a pair are no sample of orders.
        """
        levels = {part.name: part.levels for part in self.parts}
        of_part = {PROMPT: items, ITEM: items, "person": raters}
        total = 0.0
        for part in self.parts:
            if part.name == REST:
                total += part.variance / (levels[ITEM] * items * self.ratings * raters)
            elif part.name in of_part:
                total += part.variance / (part.levels * of_part[part.name])
            elif ITEM in part.name:
                total += part.variance / (part.levels * items)
        return sqrt(total)


def components(
    *,
    value: npt.ArrayLike,
    item: npt.ArrayLike,
    prompt: npt.ArrayLike,
    crossed: npt.ArrayLike,
    name: str,
    level: float = 0.95,
) -> Components | None:
    """Of what ratings (n,) differ by, how much is the prompt (or picture), the item within it, who or what is
    ``crossed`` with items, by this ``name`` (the person; the order of a pair), and the rest.

    Crossed random effects (Cronbach, Gleser, Nanda and Rajaratnam 1972; Brennan 2001, Generalizability Theory, 3 and 7)
    by moments: half the mean squared difference of two ratings that have a prompt, an item or what is crossed in common
    holds the variances of what they differ in. Without gaps this is the analysis of variance; with gaps each pair of
    ratings that is there counts once (Koch 1968). Where an item has several ratings at one level of what is crossed,
    both together are a part, too, "item by ..."; else they are in the rest. Intervals of shares: jackknife by prompt.
    None of nothing. Raises LengthMismatch, NotFinite.
    """
    numbers = np.asarray(value, dtype=np.float64)
    check_lengths(value=numbers, item=np.asarray(item), prompt=np.asarray(prompt), crossed=np.asarray(crossed))
    check_finite(value=numbers)
    if not len(numbers):
        return None
    numbers = numbers - numbers.mean()
    (items, n_items), (prompts, n_prompts), (others, n_others) = map(dense_codes, (item, prompt, crossed))
    both, n_both = dense_codes(items * n_others + others)
    nested = {ITEM: items, f"{ITEM} by {name}": both, PROMPT: prompts}
    nested[f"{PROMPT} by {name}"] = prompts * n_others + others
    counts = {ITEM: n_items, f"{ITEM} by {name}": n_both, PROMPT: n_prompts, name: n_others}
    effects = [PROMPT] if n_prompts < n_items else []
    effects += [ITEM, *([name] if n_others > 1 else [])]
    effects += [f"{ITEM} by {name}"] if n_others > 1 and n_both < len(numbers) else []
    table = _sums_of(prompts, numbers, nested, others, n_others)

    def parts(sums: FloatArray) -> FloatArray:
        """(B, parts): of each effect and of the rest; NaN where two of them cannot be told apart."""
        pairs, differences = _pairs(sums, [*nested], name, n_others)
        known = [*effects, REST]
        rows, sides = [], []
        for common in ("", *effects):
            of_pair = [ratio(pairs[_union(common, effect, name)], pairs[common]) for effect in effects]
            rows.append(np.stack([*(1 - share for share in of_pair), np.ones(len(sums))], axis=1))
            sides.append(ratio(differences[common], pairs[common]))
        equations, right = np.stack(rows, axis=1), np.stack(sides, axis=1)
        solvable = np.isfinite(equations).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
        solvable[solvable] &= np.abs(np.linalg.det(equations[solvable])) > 1e-9
        found = np.full((len(sums), len(known)), np.nan)
        found[solvable] = np.linalg.solve(equations[solvable], right[solvable][..., None])[..., 0]
        return np.where(found < 1e-12, np.where(np.isnan(found), np.nan, 0.0), found)

    whole = parts(np.asarray(table.times @ table.rows, dtype=np.float64)[None])[0]

    def share(at: int, called: str) -> Estimate:
        return jackknife(
            table=table,
            statistic=lambda sums: ratio((of := parts(sums))[:, at], of.sum(axis=1)),
            n=len(numbers),
            scale=Scale.SHARE,
            method=f"share of variance, {called}",
            undefined=NO_VARIANCE,
            level=level,
        )

    found = [
        Component(called, float(whole[at]), share(at, called), counts.get(called, len(numbers)))
        for at, called in enumerate([*effects, REST])
        if np.isfinite(whole[at])
    ]
    return Components(tuple(found), len(numbers) / n_items) if found else None


def _union(common: str, effect: str, name: str) -> str:
    """What two ratings have in common that share both; an item lies within its prompt."""
    parts = {part for each in (common, effect) if each for part in each.split(" by ")}
    inner = ITEM if ITEM in parts else PROMPT if PROMPT in parts else ""
    return f"{inner} by {name}" if inner and name in parts else inner or (name if name in parts else "")


def _sums_of(
    prompts: IntArray, numbers: FloatArray, nested: dict[str, IntArray], others: IntArray, n_others: int
) -> Table:
    """What each prompt adds: of each nested key the pairs within it and their squared differences, then by level of
    what is crossed how many ratings, their sum and their sum of squares.
    """
    count = int(prompts.max()) + 1
    columns = []
    for codes in nested.values():
        size = np.bincount(codes)
        total, squares = np.bincount(codes, weights=numbers), np.bincount(codes, weights=numbers**2)
        of_code = np.zeros(len(size), dtype=np.int64)
        of_code[codes] = prompts
        for each in (size * (size - 1.0), size * squares - total**2):
            columns.append(np.bincount(of_code, weights=each, minlength=count))
    cells = prompts * n_others + others
    for each in (np.ones(len(numbers)), numbers, numbers**2):
        columns += list(np.bincount(cells, weights=each, minlength=count * n_others).reshape(-1, n_others).T)
    return Blocks.of(np.arange(count)).sums(csr_array(np.stack(columns, axis=1)))


def _pairs(
    sums: FloatArray, nested: list[str], name: str, n_others: int
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """How many ordered pairs of ratings have each key in common, and half their squared differences, (B,) each."""
    pairs = {key: sums[:, 2 * at] for at, key in enumerate(nested)}
    differences = {key: sums[:, 2 * at + 1] for at, key in enumerate(nested)}
    levels = sums[:, 2 * len(nested) :].reshape(len(sums), 3, n_others)
    for key, (n, total, squares) in (
        (name, np.moveaxis(levels, 1, 0)),
        ("", np.moveaxis(levels.sum(axis=2, keepdims=True), 1, 0)),
    ):
        pairs[key] = (n * (n - 1)).sum(axis=1)
        differences[key] = (n * squares - total**2).sum(axis=1)
    return pairs, differences
