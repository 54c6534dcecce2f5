"""Tables of the bank. The hidden ones are in ``bank.criteria`` and handed out by nobody else."""

from bank.criteria.tables import AccessedSample, CriteriaAccess  # and with them the hidden tables are registered
from bank.models.catalogue import Benchmark, Capability, PictureStorage, Sample, SampleImage
from bank.models.drafts import Draft
from bank.models.exports import ExportFile
from bank.models.held_out import HeldOutHalf
from bank.models.imports import Import, ImportRange, visible_stretches
from bank.models.items import Item, ItemResponse, with_answers
from bank.models.recipes import Recipe
from bank.models.responses import EvaluatedModel, Response, models_with
from bank.models.reviews import ReviewRound, SampleReview, SampleRevision
from bank.models.submissions import (
    ExactTotal,
    FileLease,
    ResponseMark,
    Submission,
    SubmissionCount,
    SubmissionRules,
    SubmissionScore,
    ToldScore,
)
from bank.models.uploads import KeptMap, Upload
from bank.models.verdict import Verdict

__all__ = [
    "AccessedSample",
    "Benchmark",
    "Capability",
    "CriteriaAccess",
    "Draft",
    "EvaluatedModel",
    "ExactTotal",
    "ExportFile",
    "FileLease",
    "HeldOutHalf",
    "Import",
    "ImportRange",
    "Item",
    "ItemResponse",
    "KeptMap",
    "PictureStorage",
    "Recipe",
    "Response",
    "ResponseMark",
    "ReviewRound",
    "Sample",
    "SampleImage",
    "SampleReview",
    "SampleRevision",
    "Submission",
    "SubmissionCount",
    "SubmissionRules",
    "SubmissionScore",
    "ToldScore",
    "Upload",
    "Verdict",
    "models_with",
    "visible_stretches",
    "with_answers",
]
