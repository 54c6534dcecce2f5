"""Which runs boards compare, and what the overlap baseline may tell whom."""

import pandas as pd

from judging.models import OVERLAP, Run
from leaderboard import votes
from leaderboard.boards.base import PROVISIONAL
from leaderboard.scope import PEOPLE as PEOPLE_SOURCES
from leaderboard.scope import Scope


def judge_groups(scope: Scope) -> list[list[Run]]:
    """The runs to compare: one group a judge, protocol and settings."""
    runs = votes.judged_runs(scope)
    if scope.run is not None:
        runs = runs.filter(pk=scope.run)
    elif scope.source not in PEOPLE_SOURCES:
        runs = runs.filter(judge__name=scope.source)
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs.order_by("judge__name", "pk"):
        groups.setdefault((run.judge.name, run.protocol, run.settings_hash), []).append(run)
    return list(groups.values())


def hides_oracle(scope: Scope, runs: list[Run], frame: pd.DataFrame, items: pd.DataFrame) -> bool:
    """The criteria-overlap baseline tells about criteria: below staff only over 30 samples or more, never narrowed.

    Two narrow views could be subtracted from one another; hence no filter at all.
    """
    if scope.staff or runs[0].judge.baseline != OVERLAP:
        return False
    seen = items["sample"].reindex(frame["item"].unique()).nunique()
    return scope.narrowed or seen < PROVISIONAL
