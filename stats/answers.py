"""Answers compared with keys: how many are right, in multiple choice and in yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stats.arrays import check_lengths, ratio
from stats.jackknife import Blocks, Scale, jackknife
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


# ---- Yes or no questions: what a text says, and accuracy, precision, recall, F1 and the share of yes ----


NO_YES = "neither the key nor the answers hold a yes"


@dataclass(frozen=True, slots=True)
class YesNoScores:
    """``precision`` and ``recall`` are those of yes; ``yes_ratio`` is the share of all answers that say yes."""

    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    yes_ratio: Estimate


def yes_no_scores(
    *, key: npt.ArrayLike, said: npt.ArrayLike, cluster: npt.ArrayLike, likeness: float | None = None
) -> YesNoScores:
    """The measures of POPE (arXiv 2305.10355) for n questions; every array has shape (n,).

    ``key`` is 1 for yes and 0 for no; ``said`` the same, or -1 for an answer that says neither: it is not right, and a
    yes that it missed counts against recall. ``likeness``: of right answers of a group, see ``rate``. Shares have the
    interval of ``proportions.rate``; F1 Wilson's on the effective number that the jackknife by group gives. Raises
    LengthMismatch.
    """
    true, answers, groups = np.asarray(key), np.asarray(said), np.asarray(cluster)
    check_lengths(key=true, said=answers, cluster=groups)
    yes = answers == 1
    hit, missed = yes & (true == 1), ~yes & (true == 1)
    blocks = Blocks.of(groups)
    f1 = jackknife(
        table=blocks.table(np.select([hit, yes, missed], [0, 1, 2], 3), 4),
        statistic=lambda n: ratio(2 * n[:, 0], 2 * n[:, 0] + n[:, 1] + n[:, 2]),
        n=len(true),
        scale=Scale.SHARE,
        method="F1",
        undefined=NO_YES,
    )
    return YesNoScores(
        accuracy=rate(hits=answers == true, cluster=groups, likeness=likeness),
        precision=rate(hits=hit[yes], cluster=groups[yes]),
        recall=rate(hits=yes[true == 1], cluster=groups[true == 1]),
        f1=f1,
        yes_ratio=rate(hits=yes, cluster=groups),
    )
