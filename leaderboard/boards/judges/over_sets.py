"""Numbers over several source data sets, each of which counts alike."""

from collections.abc import Callable, Mapping

import pandas as pd

from stats.parts import over_parts
from stats.results import Estimate

Frames = Mapping[str, pd.DataFrame]


def by_data_set(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each ``dataset``, by name."""
    return {str(name): part for name, part in rows.groupby("dataset", observed=True)}


def are_apart(rows: pd.DataFrame) -> bool:
    """Whether no ``group`` of these rows lies in several data sets."""
    return bool((rows.groupby("group", observed=True)["dataset"].nunique() < 2).all())


def mean_over_sets(rows: pd.DataFrame, estimate: Callable[[pd.DataFrame], Estimate]) -> Estimate:
    """The mean over data sets of rows with ``dataset`` and ``group``; ``estimate`` gives it, but not its interval."""
    whole = estimate(rows)
    parts = {name: estimate(part) for name, part in by_data_set(rows).items()}
    return over_parts(whole, parts, apart=are_apart(rows))
