"""BLEU of a set of texts (Papineni et al. 2002), as sacrebleu computes it, with an interval by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stats.arrays import dense_codes
from stats.proportions import jackknifed, no_interval
from stats.results import Estimate

METHOD = "BLEU, delete-a-group jackknife"
MISSING = "BLEU needs sacrebleu: `make setup EXTRAS=bleu` in a clone, or the wheel with [bleu]"


def bleu(*, said: Sequence[str], references: Sequence[str], cluster: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Corpus BLEU from 0 to 1 of n texts with one reference each; ``cluster`` (n,) holds what texts share.

    sacrebleu's tokenization and smoothing. The interval leaves out each group. Without sacrebleu there is no value, and
    the reason says what to install.
    """
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        return Estimate(None, len(said), None, METHOD, MISSING)
    if not len(said):
        return Estimate(None, 0, None, METHOD, "nothing was counted", groups=0)
    metric = BLEU(effective_order=True)
    scores: list[Any] = [metric.sentence_score(text, [truth]) for text, truth in zip(said, references, strict=True)]
    parts = np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores], dtype=np.int64)
    codes, groups = dense_codes(cluster)
    of_group = np.zeros((groups, parts.shape[1]), dtype=np.int64)
    np.add.at(of_group, codes, parts)
    total = parts.sum(axis=0)

    def score(sums: npt.NDArray[np.int64]) -> float:
        counts, totals = sums[:4].tolist(), sums[4:8].tolist()
        result = BLEU.compute_bleu(counts, totals, int(sums[8]), int(sums[9]), smooth_method="exp")
        return float(result.score) / 100

    value = min(1.0, score(total))
    sizes = np.bincount(codes, minlength=groups).astype(np.float64)
    effective = len(said) ** 2 / float(sizes @ sizes)
    if reason := no_interval(groups=groups, effective=effective):
        return Estimate(value, len(said), None, METHOD, reason, groups=groups)
    without = np.array([score(total - row) for row in of_group])
    return jackknifed(value, without, n=len(said), effective=effective, level=level, method=METHOD)
