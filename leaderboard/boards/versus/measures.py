"""What a comparison is made of: paired measures, whole and by level."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from leaderboard.boards.base import Row, level_names, number
from leaderboard.methods import FEWEST_CLUSTERS, SEED
from leaderboard.scope import BadScope, Scope
from stats.multiple import benjamini_hochberg
from stats.paired import change, difference
from stats.results import Estimate


@dataclass(frozen=True, eq=False, slots=True)
class Versus:
    """``measures``: rows ``{measure, a, b, difference (with ends), p, n, method, significant}``, a minus b.

    ``levels``: the first measure's difference by level, as ``{level, difference (with ends), n}``. ``table``: the items
    that both have, index ``item`` or ``sample`` (then ``item`` is one to open), columns ``a``, ``b``, ``people`` (where
    there are), ``apart`` (how far from one another, 0 where they agree). ``unit`` says what the differences count in.
    ``single``: whether the table may be shown below staff.
    """

    a: str
    b: str
    unit: str
    measures: list[Row]
    levels: list[Row]
    table: pd.DataFrame
    by: str = "item"
    single: bool = True
    notes: list[str] = field(default_factory=list)
    runs: tuple[int, ...] = ()
    by_level: str = ""  # the measure of ``levels`` where it is not the first
    of_sets: bool = False  # whether ``levels`` are source data sets


def measure(name: str, a: float | None, b: float | None, change: Estimate, p: float | None, method: str) -> Row:
    return {"measure": name, "a": a, "b": b} | number("difference", change) | {"p": p, "n": change.n, "method": method}


def of_rows(name: str, frame: pd.DataFrame, *, shares: bool = True) -> Row:
    """The mean difference of ``a`` and ``b`` on the same rows, which may share a ``group``; of numbers between 0 and 1
    unless ``shares`` is False.
    """
    if frame.empty:
        return measure(name, None, None, Estimate(None, 0, None, "", "nothing in common"), None, "")
    a, b = frame["a"].to_numpy(np.float64), frame["b"].to_numpy(np.float64)
    cluster = clusters_of(frame)
    test = difference(first=a, second=b, cluster=cluster, rng=np.random.default_rng(SEED))
    apart = change(before=b, after=a, cluster=cluster, shares=shares)
    return measure(name, float(a.mean()), float(b.mean()), apart, test.p, test.method)


def clusters_of(frame: pd.DataFrame) -> Any:
    """The ``group`` of each row; where they are too few, each row is one, as on the boards."""
    group = frame["group"]
    return group.to_numpy() if group.nunique() >= FEWEST_CLUSTERS else np.arange(len(frame))


def fixed(frame: pd.DataFrame) -> list[str]:
    """What has to be said where rows that share a group stand by themselves."""
    groups = frame["group"].nunique()
    if groups >= min(FEWEST_CLUSTERS, len(frame)):
        return []
    return [f"{groups} prompts or pictures are too few to generalise from: they are treated as fixed, items as drawn."]


def by_level_of(scope: Scope, frame: pd.DataFrame, *, shares: bool = True) -> list[Row]:
    """By source data set where there are several, else by level; none where there is one only."""
    names = level_names(scope)
    if "dataset" in frame and frame["dataset"].nunique() > 1:
        frame, names = frame.assign(level=frame["dataset"]), sorted(frame["dataset"].unique())
    found = []
    for level in names:
        mine = frame[frame["level"] == level]
        if len(mine):
            a, b = mine["a"].to_numpy(np.float64), mine["b"].to_numpy(np.float64)
            apart = change(before=b, after=a, cluster=clusters_of(mine), shares=shares)
            found.append({"level": level} | number("difference", apart) | {"n": len(mine)})
    return found if len(found) > 1 else []


def tested_together(found: Versus) -> Versus:
    """With the tests that count at 5% after Benjamini-Hochberg marked."""
    tested = [row for row in found.measures if row["p"] is not None]
    for row in found.measures:
        row["significant"] = None
    if tested:
        for row, counts in zip(tested, benjamini_hochberg(p=[row["p"] for row in tested]), strict=True):
            row["significant"] = bool(counts)
    return found


def refuse_unknown(known: set[str], *names: str) -> None:
    for name in names:
        if name not in known:
            raise BadScope(f"{name!r} has nothing to compare under this view.")
