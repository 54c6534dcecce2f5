"""Multiple choice: how many samples were right, once or in every rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stats.arrays import check_lengths
from stats.proportions import rate
from stats.results import Estimate


def shown_as(label: str, labels: Sequence[str], *, shift: int = 0, order: Sequence[str] | None = None) -> str:
    """The option that stood behind a label: of ``order``, or of the rotation where place i shows option i + shift.

    Raises ValueError for a label that is not one of ``labels``.
    """
    place = list(labels).index(label)
    return order[place] if order is not None else labels[(place + shift) % len(labels)]


@dataclass(frozen=True, slots=True)
class ChoiceScores:
    """``vanilla``: right in the pass without rotation. ``circular``: right in every rotation (None: none were sent)."""

    vanilla: Estimate
    circular: Estimate | None
    chance: float | None  # expected of a vanilla pass that draws an option for each sample


def choice_scores(
    *, vanilla: npt.ArrayLike, circular: npt.ArrayLike | None, options: npt.ArrayLike, cluster: npt.ArrayLike
) -> ChoiceScores:
    """VanillaEval and CircularEval (MMBench, 4.1) of n samples, each an array of shape (n,).

    ``vanilla`` and ``circular`` are 0 or 1, ``options`` the number of options of each sample, ``cluster`` what samples
    share. Intervals as ``proportions.rate``. A text without an option is not right. Raises LengthMismatch and
    InvalidOutcome.
    """
    number = np.asarray(options, dtype=np.float64)
    check_lengths(vanilla=np.asarray(vanilla), options=number)
    return ChoiceScores(
        vanilla=rate(hits=vanilla, cluster=cluster),
        circular=None if circular is None else rate(hits=circular, cluster=cluster),
        chance=float((1 / number).mean()) if len(number) else None,
    )
