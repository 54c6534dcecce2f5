"""Whether a judge says the same again: its verdicts on an item over repeats (MLLM-as-a-Judge, Table 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stats.proportions import mean, rate
from stats.results import Estimate


@dataclass(frozen=True, slots=True)
class Steadiness:
    """``consistency``: the mean share of an item's most frequent verdict; ``mcc``: the share of items on which more
    than half of the repeats are identical.
    """

    consistency: Estimate
    mcc: Estimate


def steadiness(verdicts: pd.DataFrame) -> Steadiness:
    """Of a table with the columns ``item``, ``verdict`` (of any kind) and ``group``, one row an item and repeat.

    Rows of one group (an image, a prompt) depend on one another; intervals are those of ``proportions.mean`` and
    ``rate``.
    """
    sizes = verdicts.groupby(["item", "verdict"], sort=False).size()
    most = sizes.groupby(level="item").max()
    modal = (most / verdicts.groupby("item").size().reindex(most.index)).to_numpy(np.float64)
    group = verdicts.groupby("item")["group"].first().reindex(most.index).to_numpy()
    return Steadiness(mean(values=modal, cluster=group), rate(hits=modal > 0.5, cluster=group))
