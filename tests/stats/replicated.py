"""Bradley-Terry strengths of many resamples of the votes: what the sandwich says by formula, by drawing."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from stats.arrays import BoolArray, FloatArray, IntArray, blocks
from stats.bradley_terry import Votes, inverse_information, solve

_SETTLED = 1e-5  # natural log, a thousandth of what resamples of a million votes differ by
_MOST_STEPS = 100


def strengths(*, votes: Votes, rng: np.random.Generator, replicates: int = 1000) -> FloatArray:
    """Natural-log strengths with mean 0 of each resample, (replicates, models); a row of NaN where a resample has no
    finite ones. The votes themselves must have (see `strengths.rateable`).

    Votes of the same pair and outcome are alike, so a resample is a Poisson draw of how often each occurs (the Poisson
    bootstrap: Chamandy et al. 2012). It is solved from the strengths of the whole, with their information, by Newton's
    method; that information differs from its own too little to cost more than a few steps.
    """
    size = len(votes.models)
    i, j, outcome, times = _counts(votes)
    pair, where = np.unique(i * size + j, return_inverse=True)
    i, j = pair // size, pair % size
    wins = votes.wins()
    theta = solve(wins)
    bread = inverse_information(theta, wins)
    found = np.full((replicates, size), np.nan)
    for row in found:
        drawn = rng.poisson(times).astype(np.float64)
        played, won = (
            np.bincount(where, weights=weights, minlength=len(pair)).astype(np.float64)
            for weights in (drawn, drawn * (outcome / 2))
        )
        table = np.zeros((size, size), dtype=np.bool_)
        table[i, j], table[j, i] = won > 0, played > won
        if _is_reached(table) and _is_reached(table.T):
            row[:] = _solved(won, played, i, j, theta, bread)
    return found


def _is_reached(wins: BoolArray) -> bool:
    """Whether every model is reached from the first along wins."""
    reached = np.zeros(len(wins), dtype=np.bool_)
    new = np.arange(len(wins)) == 0
    while new.any():
        reached |= new
        new = wins[new].any(axis=0) & ~reached
    return bool(reached.all())


def _solved(
    won: FloatArray, played: FloatArray, i: IntArray, j: IntArray, start: FloatArray, bread: FloatArray
) -> FloatArray:
    theta, size = start, len(start)
    for _ in range(_MOST_STEPS):
        residual = won - played * expit(theta[i] - theta[j])
        slope = np.bincount(i, weights=residual, minlength=size) - np.bincount(j, weights=residual, minlength=size)
        step = bread @ slope
        theta = theta + step
        if np.abs(step).max() < _SETTLED:
            return theta
    return np.full(size, np.nan)


def _counts(votes: Votes) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The lower and the higher model, the outcome for the lower (0, 1, 2 halves) and how often: once for each."""
    size = len(votes.models)
    times = np.zeros(size * size * 3, dtype=np.int64)
    for rows in blocks(len(votes.y)):
        a, b, twice = votes.a[rows].astype(np.int64), votes.b[rows], (2 * votes.y[rows]).astype(np.int64)
        turned = a > b
        cell = np.where(turned, (b * size + a) * 3 + 2 - twice, (a * size + b) * 3 + twice)
        times += np.bincount(cell, minlength=len(times))
    cell = np.flatnonzero(times)
    return cell // 3 // size, cell // 3 % size, cell % 3, times[cell]
