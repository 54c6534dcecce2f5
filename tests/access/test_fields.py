"""What leaves by the API is named, column by column; a new column is kept until somebody says that it may leave."""

import importlib

import pytest
from rest_framework import serializers

from bank.intake import exports

# Columns that no serializer hands out. A column of these models that is neither here nor in a serializer fails below:
# put it where it belongs, on purpose.
KEPT = {
    "Benchmark": "hidden_splits source_format checked_at edition",
    "Sample": "closed metadata status_reason author edition quality_hints position",
    "EvaluatedModel": "simulated",
    "Response": "submission origin",
    "Item": "content_hash recipe outside blind blind_since held",
    "Submission": "name changed_by",
    "Upload": "files received pieces folder secret tries cancelling shown",
    "Judge": "paced_until any_host any_address created_at key",
    "Recipe": "by",
    "Evaluation": "judge model_name by",
    "Webhook": "by",
    "Delivery": "webhook key body",
    "HeldOutRelease": "id board",
    "Run": """failing_since announced held recipe evaluation items_hash criteria_fingerprint reported live by told
        tryout abilities batches planned verdicts failures undecided priced""",
    "Judgment": "analysis raw reason_hash call_key",
    "PromptTemplate": "by",
    "Campaign": """finished_opened_at share consent completion_code return_url
        held shows_criteria order plan rule practice_pass gold_rate gold_pass gold_least gold_stops seed
        imported open_to_all created_at closed_at by guidelines_version guidelines_change guidelines_changed_at""",
    "Snapshot": "id tables by",
    "Edition": "run board cells inputs by",
    "OutsideScore": "by",
    "Draft": "by",
    "ExportFile": "by maker asked tries place secret",
    "Label": "extraction reason assignment idempotency_key excluded changed_late",
}
# Models that have no serializer of their own and must never get one by accident.
NEVER = {
    *("Criterion", "CriterionRevision", "CriteriaAccess", "AccessedSample", "User"),
    *(
        "InstallationKey",
        "AuditEntry",
        "AuditHead",
        "SignInCount",
        "Notice",
        "Mail",
        "SavedView",
        "Token",
        "SignOn",
        "SecondFactor",
    ),
    *(
        "AnalysisRelease",
        "Attempt",
        "Collected",
        "Trial",
        "RunTask",
        "RunHold",
        "RunClaim",
        "JudgeShare",
        "CampaignItem",
        "Assignment",
        "Membership",
        "LabelReturn",
        "Invitation",
        "GuidelinePicture",
        "Consent",
        "SubmissionScore",
        "ResponseMark",
        "ToldScore",
        "FileLease",
        "SampleRevision",
        "SampleReview",
        "SubmissionJudging",
        "QueuedSubmission",
    ),
}
ROOMS = ("bank", "judging", "annotations", "leaderboard")
APIS = (
    "bank.api",
    "bank.api.uploads",
    "bank.api.exports",
    "judging.api.urls",
    "annotations.api.views",
    "leaderboard.api.outside",
    "leaderboard.api.recipes",
    "leaderboard.api.submissions",
    "leaderboard.api.snapshots",
    "leaderboard.api.editions",
    "leaderboard.api.held_out",
    "annotations.api.running",
)


def made_of_models():
    for name in APIS:
        importlib.import_module(name)
    waiting = [serializers.ModelSerializer]
    while waiting:
        for one in waiting.pop().__subclasses__():
            waiting.append(one)
            if one.__module__.split(".")[0] in ROOMS:
                yield one


@pytest.mark.check("A10")
def test_every_column_of_what_the_api_serves_is_let_out_or_kept_by_name():
    served, unnamed = {}, []
    for one in made_of_models():
        assert isinstance(one.Meta.fields, tuple), f"{one.__name__} names its fields one by one"
        served.setdefault(one.Meta.model, set()).update(one.Meta.fields)
    assert {model.__name__ for model in served} == set(KEPT)
    assert not {model.__name__ for model in served} & NEVER
    for model, fields in served.items():
        kept = set(KEPT[model.__name__].split())
        assert not kept & fields, model.__name__
        unnamed += [
            f"{model.__name__}.{f.name}" for f in model._meta.local_concrete_fields if f.name not in kept | fields
        ]
    assert unnamed == []


@pytest.mark.parametrize(("what", "held"), [("samples", {"criteria", "answer"}), ("judgments", {"analysis", "raw"})])
@pytest.mark.check("A10")
def test_what_is_exported_is_named_and_hidden_text_only_where_it_is_asked_for(what, held):
    assert held <= set(exports.COLUMNS[what])
    others = {name for table, names in exports.COLUMNS.items() if table != what for name in names}
    assert not held & others - {"answer"}  # a label's answer is yes or no
    hidden = {"criteria_fingerprint", "seed", "position", "password", "idempotency_key", "excluded"}
    assert not hidden & others
