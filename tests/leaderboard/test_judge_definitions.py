"""What numbers of judges count where researchers differ: data sets, and the two orders of a pair."""

import pytest
from django.core.management.base import CommandError

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


# JudgeBench (arXiv 2410.12784, Table 1), o1-mini on pairs of GPT-4o's answers: pairs, and right ones, by category;
# 58.44, 62.24, 82.14, 78.57 and over all 65.71 %.
JUDGEBENCH = {"Knowledge": (154, 90), "Reasoning": (98, 61), "Math": (56, 46), "Coding": (42, 33)}


@pytest.fixture
def judgebench(manage, folder):
    """Texts of our own, as many in each data set as the paper counts; people have one label on each."""
    pair = {"kind": "pair", "protocol": "pair", "responses": ["A", "B"]}
    tables = {"benchmark": [], "responses": [], "labels": [], "judgments": []}
    for source, (n, right) in JUDGEBENCH.items():
        for at in range(n):
            key = f"{source} {at}"
            tables["benchmark"].append({"key": key, "instruction": f"Solve {key}.", "source": source})
            tables["responses"] += [{"sample": key, "model": model, "text": f"{key}: {model}"} for model in "AB"]
            tables["labels"].append(pair | {"sample": key, "annotator": "key", "choice": "first"})
            told = "first" if at < right else "second"
            tables["judgments"].append(pair | {"sample": key, "judge": "J", "choice": told})
    for what, rows in tables.items():
        assert manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", "jb")[0] == 0


def test_a_number_over_data_sets_is_pooled_over_their_items_on_request(judgebench, board, client_of):
    def accuracy(*options):
        rows = board("judges", *options, benchmark="jb")
        kept = [row for row in rows if (row["metric"], row["reference"]) == ("accuracy_with_tie", "majority")]
        return {row["source_dataset"]: row for row in kept}

    mean, pooled = accuracy(), accuracy("--pool")
    assert round(100 * pooled["all"]["value"], 2) == 65.71
    assert (pooled["all"]["n"], pooled["all"]["value"]) == (350, pytest.approx(230 / 350))
    assert mean["all"]["value"] == pytest.approx((0.5844 + 0.6224 + 0.8214 + 0.7857) / 4, abs=1e-4)
    assert pooled["all"]["value_method"] == "pooled over 4 data sets, wilson"
    assert [pooled[source] for source in JUDGEBENCH] == [mean[source] for source in JUDGEBENCH]
    assert pooled["all"]["value_low"] < pooled["all"]["value"] < pooled["all"]["value_high"]
    client = client_of("curator")
    asked = client.get("/api/v1/leaderboards/judges/?benchmark=jb&pool=1").json()
    assert asked == board("judges", "--pool", benchmark="jb")
    shown = client.get("/leaderboards/jb/judges/?pool=1").text
    assert "pooled over 4 data sets" in shown
    assert ">.66<" in shown or ">0.66<" in shown
    assert '<option value="1" selected' in shown
    assert "&amp;pool=1" in shown  # the files of this page
    with pytest.raises(CommandError, match="--pool says nothing about models"):
        board("models", "--pool", benchmark="jb")
