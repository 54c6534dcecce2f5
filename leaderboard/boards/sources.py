"""Which runs boards compare."""

from judging.models import Run
from leaderboard import votes
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
