"""Tables of judging."""

from judging.models.judges import BASELINES, OVERLAP, Judge, PromptTemplate
from judging.models.judgments import (
    AnalysisRelease,
    Attempt,
    Collected,
    Judgment,
    Trial,
    judgment_table_of,
    reason_key,
    table_of,
)
from judging.models.runs import JURY, STRICT, Evaluation, Run, RunItem, RunQuerySet, RunTask, setting_text
from judging.models.submissions import QueuedSubmission, SubmissionJudging
from judging.models.workers import LEASE, SHARE_LEASE, JudgeShare, RunClaim, RunHold, WorkerBeat

__all__ = [
    "BASELINES",
    "JURY",
    "LEASE",
    "OVERLAP",
    "SHARE_LEASE",
    "STRICT",
    "AnalysisRelease",
    "Attempt",
    "Collected",
    "Evaluation",
    "Judge",
    "JudgeShare",
    "Judgment",
    "PromptTemplate",
    "QueuedSubmission",
    "Run",
    "RunClaim",
    "RunHold",
    "RunItem",
    "RunQuerySet",
    "RunTask",
    "SubmissionJudging",
    "Trial",
    "WorkerBeat",
    "judgment_table_of",
    "reason_key",
    "setting_text",
    "table_of",
]
