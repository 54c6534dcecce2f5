"""A few labels by people and many by a judge, as one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray, check_finite, check_lengths, dense_codes
from stats.figures import number_of
from stats.proportions import mean_with_error, widened
from stats.ranks import Place, places
from stats.results import Estimate, InvalidCount

PPI = "ppi++, cross-fitted, by group"
FEWEST_LABELS, FEWEST_LABELLED_GROUPS = 50, 30  # with fewer the interval does not cover
FOLDS = 10


@dataclass(frozen=True, slots=True)
class PowerTuned:
    """``weight`` is lambda: 0 uses people's labels alone, 1 trusts the judge as far as its labels allow. None with too
    few labels. ``influence``: what each group, by its label, adds to the deviation of the value, and ``df`` the degrees
    of freedom of its error; see ``places_of``.
    """

    estimate: Estimate
    weight: float | None
    influence: dict[Any, float] = field(default_factory=dict)
    df: float = 0.0


def missing_labels(*, labels: int, groups: int) -> str:
    """What is missing for ``prediction_powered`` to have an interval that covers, in words; empty if nothing is."""
    missing = []
    if labels < FEWEST_LABELS:
        missing.append(f"{number_of(FEWEST_LABELS - labels, 'more label')} on items that the judge judged, too")
    if groups < FEWEST_LABELLED_GROUPS:
        more = number_of(FEWEST_LABELLED_GROUPS - groups, "more group")
        missing.append(f"labels in {more} (pictures, prompts)")
    return f"needs {' and '.join(missing)}" if missing else ""


def prediction_powered(
    *,
    labels: npt.ArrayLike,
    judged: npt.ArrayLike,
    unlabelled: npt.ArrayLike,
    cluster: npt.ArrayLike,
    unlabelled_cluster: npt.ArrayLike,
    ends: tuple[float, float],
    weight: float | None = None,
    level: float = 0.95,
) -> PowerTuned:
    """The mean of people's labels, made sharper by a judge (Angelopoulos et al., arXiv 2301.09633 and 2311.01453).

    ``labels`` and ``judged`` (n,) are people's and the judge's verdicts on the same items, between ``ends``;
    ``unlabelled`` (N,) the judge's on further ones. theta = weight mean(F_U) + mean(Y - weight F). Without ``weight``
    it is cov(Y, F) / ((1 + n / N) var F), cut to [0, 1], for each of ten parts of the groups computed from the other
    nine (cross-fitting: a weight tuned on the rows that it is applied to makes the interval too narrow); the result's
    is their mean. Standard error clustered by group (``cluster``, ``unlabelled_cluster``: labels of the same groups);
    interval within ``ends``, t with as many equal groups as weigh the same as those with labels, less one. Fewer than
    50 labels, or labels in fewer than 30 groups: no value, and the reason says what is missing. Raises LengthMismatch,
    NotFinite, and InvalidCount for no further items.
    """
    y, f, u = (np.asarray(values, dtype=np.float64) for values in (labels, judged, unlabelled))
    groups, of_unlabelled = np.asarray(cluster), np.asarray(unlabelled_cluster)
    check_lengths(labels=y, judged=f, cluster=groups)
    check_lengths(unlabelled=u, unlabelled_cluster=of_unlabelled)
    check_finite(labels=y, judged=f, unlabelled=u)
    n, further = len(y), len(u)
    if not further:
        raise InvalidCount("no further items")
    codes, count = dense_codes(np.concatenate([groups, of_unlabelled]))
    sizes = np.bincount(dense_codes(groups)[0])
    if reason := missing_labels(labels=n, groups=len(sizes)):
        return PowerTuned(Estimate(None, n + further, None, PPI, reason, groups=count), None)
    ends = widened(ends, y, f, u)
    # Each group is in one part; labelled groups are spread evenly over the parts.
    part = dense_codes(groups)[0] % FOLDS
    weights = np.full(n, weight) if weight is not None else np.empty(n)
    for fold in range(FOLDS) if weight is None else ():
        weights[part == fold] = _weight(y[part != fold], f[part != fold], u)
    mean_weight = float(weights.mean())
    rectified = y - weights * f
    value = mean_weight * float(u.mean()) + float(rectified.mean())
    influence = np.concatenate([(rectified - rectified.mean()) / n, mean_weight * (u - u.mean()) / further])
    by_group = np.bincount(codes, weights=influence, minlength=count)
    error = sqrt(count / (count - 1) * float(by_group @ by_group))
    labels_of = np.empty(count, dtype=object)
    labels_of[codes] = np.concatenate([groups, of_unlabelled])
    df = n * n / float(sizes @ sizes) - 1
    estimate = mean_with_error(
        min(ends[1], max(ends[0], value)),
        error if error > 1e-12 else 0.0,
        n=n + further,
        groups=count,
        df=df,
        ends=ends,
        level=level,
        method=PPI,
    )
    known = estimate.interval is not None
    return PowerTuned(
        estimate,
        mean_weight,
        dict(zip(labels_of, sqrt(count / (count - 1)) * by_group, strict=True)),
        df if known else 0.0,
    )


def places_of(powered: Sequence[PowerTuned], *, rng: np.random.Generator) -> list[Place]:
    """The places of models by their corrected means, of those with a value. What two models share in one group cancels
    in their difference.
    """
    labels = {label: at for at, label in enumerate(dict.fromkeys(label for one in powered for label in one.influence))}
    table = np.zeros((len(powered), len(labels)))
    for model, one in enumerate(powered):
        table[model, [labels[label] for label in one.influence]] = list(one.influence.values())
    theta = np.array([one.estimate.value for one in powered], dtype=np.float64)
    return places(theta=theta, covariance=table @ table.T, df=np.array([one.df for one in powered]), rng=rng)


def _weight(y: FloatArray, f: FloatArray, u: FloatArray) -> float:
    # The variance over all that the judge said, as the estimator's authors pool it.
    spread = float(np.concatenate([f, u]).var())
    together = float(np.mean((y - y.mean()) * (f - f.mean())))
    return max(0.0, min(1.0, together / ((1 + len(y) / len(u)) * spread))) if spread > 0 else 0.0
