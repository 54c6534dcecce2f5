"""Small files in which other tools' users met faults: empty cells, NaN, labels without a verdict or a name.

They lie in tests/data/reported, each with what it is about in its name.
"""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from bank.models import Response, Sample
from judging.models import Judgment

FILES = Path(__file__).resolve().parent.parent / "data" / "reported"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def bring(what, name, benchmark, *arguments, format="generic"):
    """What the command says; its words are the error's where it refuses."""
    out, err = StringIO(), StringIO()
    try:
        path = str(FILES / name)
        call_command(f"import_{what}", format, path, "--benchmark", benchmark, *arguments, stdout=out, stderr=err)
    except CommandError as error:
        return f"{out.getvalue()}{err.getvalue()}{error}"
    return out.getvalue() + err.getvalue()


def board(benchmark, *arguments):
    out = StringIO()
    call_command("leaderboard", "models", "--benchmark", benchmark, *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def two_answers(media):
    bring("benchmark", "s-samples.jsonl", "s")
    bring("responses", "s-responses.jsonl", "s")


def test_options_called_none_and_na_are_options_and_told(media):
    told = bring("benchmark", "none-option.tsv", "n", format="auto")
    assert told.count("says what programs write for an empty cell; it is kept as the text of the option") >= 3
    options = {sample.key: sample.options for sample in Sample.objects.all()}
    assert options["1"]["A"] == "None"
    assert list(options["2"].values()) == ["NA", "null", "nan", "N/A"]
    bring("responses", "pred-nan.tsv", "n", "--model", "m", format="auto")
    assert list(Response.objects.values_list("text", flat=True)) in (["nan"], [""])


def test_a_judgment_without_a_choice_is_kept_as_such_and_nan_is_refused(two_answers):
    assert "1 judgment" in bring("judgments", "judg-null.jsonl", "s")
    kept = Judgment.objects.get()
    assert (kept.choice, kept.status, kept.reason) == (None, "parse_failed", "null preference")
    assert "judg.jsonl, line 2: NaN is not JSON" in bring("judgments", "judg.jsonl", "s")
    assert Judgment.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ls-empty-result.json", "record 1: the label holds no verdict"),
        ("ls-no-annotator.json", "record 1: annotator: is missing; name it with --annotator"),
        ("ls-lead-time-null.json", "1 label."),
        ("ls-predictions-ids.json", "1 label."),
    ],
)
def test_labels_of_label_studio_with_a_gap_are_told_or_come_in(two_answers, name, words):
    assert words in bring("labels", name, "s", format="label-studio")


def test_an_answer_that_is_an_error_has_no_score_and_is_no_zero(media):
    bring("benchmark", "na-samples.jsonl", "na")
    bring("responses", "na-resp.jsonl", "na")
    bring("judgments", "na-judg.jsonl", "na")
    told = board("na", "--kind", "score")
    assert "good   2.00   1" in told
    assert "broken" not in told


def test_a_model_that_only_lost_widens_nobodys_range(media):
    for what, name in (("benchmark", "samples"), ("responses", "responses"), ("labels", "labels")):
        bring(what, f"winless-{name}.jsonl", "w")
    ranges = {line.split()[2]: line.split()[1] for line in board("w").splitlines()[1:4]}
    assert ranges == {"A": "(1–2)", "B": "(1–2)", "C": "(1–3)"}
