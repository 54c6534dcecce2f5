"""Points for weighted components as shares of their weights.

The weights are criteria's: they are read by ``bank.keys.parts_for_boards``, which logs it. A category is named
below staff only where its components are public.
"""

from collections.abc import Iterable

import pandas as pd

import bank.keys
from leaderboard.scope import Scope

NO_WEIGHTS = "The samples have no weighted components, so points cannot be held against their weights."
HUNDRED = 100.0  # percent, as MIA-Bench prints its scores
OTHER = "others"


def shares_of(scope: Scope, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Verdicts whose ``value`` is points by component (a dict), as percentages of the weights.

    First one row a verdict: ``value`` = points / sum of the sample's weights. Then one row a component, with its
    ``category``. And what has to be said. A verdict that lacks a component of its sample does not count.
    """
    ids = sorted(set(frame["sample"].tolist()))
    parts = bank.keys.parts_for_boards(benchmark=scope.benchmark, sample_ids=ids)
    whole, single = [], []
    left_out = 0
    for row in frame.to_dict("records"):
        wanted = parts.get(row["sample"], [])
        given = row["value"]
        if not wanted or any(part.key not in given for part in wanted):
            left_out += 1
            continue
        points = sum(given[part.key] for part in wanted)
        whole.append(row | {"value": HUNDRED * points / sum(part.weight for part in wanted)})
        single += [
            {name: row[name] for name in ("item", "model", "group")}
            | {"category": part.category or OTHER, "value": HUNDRED * given[part.key] / part.weight}
            for part in wanted
            if scope.staff or part.public
        ]
    notes = [f"{left_out} verdicts lack a component of their sample and are not counted."] if left_out else []
    notes = notes if whole else [NO_WEIGHTS]
    columns = ["item", "model", "group", "category", "value"]
    return pd.DataFrame(whole, columns=list(frame.columns)), pd.DataFrame(single, columns=columns), notes


def order_of(categories: Iterable[str]) -> list[str]:
    """Categories by how many points were given in them, the most first."""
    counted = pd.Series(list(categories), dtype=object).value_counts()
    return [str(name) for name in sorted(counted.index, key=lambda name: (-counted[name], name))]
