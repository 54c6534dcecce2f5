"""Tables of judging."""

from judging.models.judges import BASELINES, OVERLAP, Judge, PromptTemplate
from judging.models.made import Attempt, Collected, Judgment, JudgmentQuerySet, Trial, judged_by, made_by
from judging.models.runs import LEASE, Run, RunItem, RunQuerySet, RunTask, WorkerBeat

__all__ = [
    "BASELINES",
    "LEASE",
    "OVERLAP",
    "Attempt",
    "Collected",
    "Judge",
    "Judgment",
    "JudgmentQuerySet",
    "PromptTemplate",
    "Run",
    "RunItem",
    "RunQuerySet",
    "RunTask",
    "Trial",
    "WorkerBeat",
    "judged_by",
    "made_by",
]
