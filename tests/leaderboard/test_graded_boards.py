"""Boards of scores and rankings: what a judge's numbers say beside people's, within each source data set."""

import json
import random

import numpy as np
import pandas as pd
import pytest
from django.core.management import CommandError, call_command
from scipy import stats as reference

from judging.models import Judgment, Run
from leaderboard import metrics
from leaderboard.boards.base import Board
from leaderboard.boards.seen import agreement_of, judges, models
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from tests.leaderboard.conftest import MODELS, PEOPLE, SAMPLES, STRENGTH

pytestmark = pytest.mark.django_db


def of(board: Board, **wanted) -> dict[str, dict]:
    """The rows that hold these values, by metric."""
    return {row["metric"]: row for row in board.as_json() if all(row[name] == value for name, value in wanted.items())}


def scores(noise: float, seed: int, **who):
    """Scores from 1 to 5 of every answer, the better models higher."""
    draw = random.Random(seed)
    for n in range(SAMPLES):
        for model in MODELS[:3]:
            score = min(5, max(1, round(STRENGTH[model] + 1.5 + draw.gauss(0, noise))))
            yield {"kind": "score", "sample": f"s{n:02}", "responses": [model], "score": score} | who


def rankings(noise: float, seed: int, **who):
    draw = random.Random(seed)
    for n in range(SAMPLES):
        order = sorted(MODELS[:3], key=lambda model: -STRENGTH[model] - draw.gauss(0, noise))
        yield {"kind": "batch", "sample": f"s{n:02}", "responses": list(MODELS[:3]), "ranking": order} | who


def test_scores_correlate_within_the_data_set_and_models_are_ranked_by_their_mean(brought):
    people = [row for seed, name in enumerate(PEOPLE) for row in scores(0.5, seed, annotator=name)]
    told = [row for judge, noise in (("keen", 0.3), ("dull", 3)) for row in scores(noise, 9, judge=judge)]
    brought("labels", people)
    brought("judgments", told)
    board = judges(scope_of(benchmark="grove", kind="score"))
    mean = (
        pd.DataFrame(people).assign(model=lambda f: f["responses"].str[0]).groupby(["sample", "model"])["score"].mean()
    )
    judge = pd.DataFrame([row for row in told if row["judge"] == "keen"])
    judge = judge.assign(model=judge["responses"].str[0]).set_index(["sample", "model"])["score"]
    found = of(board, judge="keen", reference="majority", source_dataset="grove")
    assert found["pearson"]["value"] == pytest.approx(reference.pearsonr(mean, judge.reindex(mean.index))[0])
    assert found["spearman"]["value"] == pytest.approx(reference.spearmanr(mean, judge.reindex(mean.index))[0])
    assert (found["pearson"]["n"], found["pearson"]["coverage"]) == (SAMPLES * 3, 1.0)
    assert found["pearson"]["value_low"] < found["pearson"]["value"] < found["pearson"]["value_high"]
    over_all = of(board, judge="keen", reference="majority", source_dataset="all")
    assert over_all.keys() == {metric.name for metric in metrics.SCORES if metric.compute}
    dull = of(board, judge="dull", reference="majority", source_dataset="grove")
    assert dull["pearson"]["value"] < found["pearson"]["value"]
    assert of(board, judge="keen", reference="individuals", source_dataset="grove")["pearson"]["n"] == SAMPLES * 9

    ranked = models(scope_of(benchmark="grove", kind="score"))
    assert [row["model"] for row in ranked.as_json()] == list(MODELS[:3])
    assert [row["rank"] for row in ranked.as_json()] == [1, 2, 3]
    assert ranked.as_json()[0]["score"] == pytest.approx(mean.xs("Alder", level="model").mean())
    assert ranked.as_json()[0]["score_low"] < ranked.as_json()[0]["score"] < ranked.as_json()[0]["score_high"]
    assert set(ranked.as_json()[0]["levels"]) == {"Perception", "Creation"}
    by_judge = models(scope_of(benchmark="grove", kind="score", source="keen"))
    assert by_judge.as_json()[0]["score"] == pytest.approx(judge.xs("Alder", level="model").mean())


def test_rankings_are_as_far_apart_as_the_strings_that_they_spell(brought):
    brought("labels", rankings(0.4, 1, annotator="Ada"))
    brought("judgments", [*rankings(0.4, 1, judge="twin"), *rankings(9, 2, judge="coin")])
    board = judges(scope_of(benchmark="grove", kind="batch"))
    twin = of(board, judge="twin", reference="majority", source_dataset="grove")["levenshtein"]
    coin = of(board, judge="coin", reference="majority", source_dataset="grove")["levenshtein"]
    assert (twin["value"], twin["n"]) == (0, SAMPLES)
    assert 0.3 < coin["value"] < 1
    with pytest.raises(BadScope, match="Rankings rank answers to one instruction"):
        models(scope_of(benchmark="grove", kind="batch"))


def test_repeats_are_reckoned_one_by_one_and_their_steadiness_told(brought):
    brought("labels", scores(0.5, 1, annotator="Ada"))
    told = [row | {"repeat": repeat} for repeat in range(3) for row in scores(1, 20 + repeat, judge="keen")]
    brought("judgments", told)
    found = of(judges(scope_of(benchmark="grove", kind="score")), reference="majority", source_dataset="grove")
    truth = [row["score"] for row in scores(0.5, 1)]
    each = [reference.pearsonr(truth, [row["score"] for row in scores(1, 20 + repeat)])[0] for repeat in range(3)]
    assert found["pearson"]["value"] == pytest.approx(np.mean(each))
    assert 1 / 3 < found["consistency"]["value"] < 1
    assert found["mcc"]["n"] == SAMPLES * 3


def test_a_repeat_without_a_verdict_agrees_with_nothing_and_coverage_says_so(brought):
    brought("labels", scores(0.5, 1, annotator="Ada"))
    brought("judgments", [row | {"repeat": repeat} for repeat in range(4) for row in scores(0.5, 1, judge="keen")])
    Judgment.objects.filter(repeat__gte=2).delete()  # asked for and lost: the same verdict in two of four
    Judgment.objects.filter(repeat=1).first().delete()
    Run.objects.update(settings=Run.objects.get().settings | {"repeats": 4})
    found = of(judges(scope_of(benchmark="grove", kind="score")), reference="majority", source_dataset="grove")
    items = SAMPLES * 3
    assert found["consistency"]["value"] == pytest.approx((0.5 * (items - 1) + 0.25) / items)
    assert found["mcc"]["value"] == 0
    assert found["mcc"]["coverage"] == pytest.approx((2 * items - 1) / (4 * items))
    assert found["pearson"]["coverage"] == 1


def test_how_many_of_a_judges_verdicts_are_the_same_is_told_as_shares_of_its_items(brought, client_of, capsys):
    """MLLM-as-a-Judge (arXiv 2402.04788), Figure 5."""
    brought("labels", scores(0.5, 1, annotator="Ada"))
    given = {0: (3, 3, 3), 1: (3, 3, 4), 2: (2, 3, 4)}  # of every third item: all alike, two, none
    rows = list(scores(1, 20, judge="keen"))
    brought(
        "judgments",
        [row | {"repeat": repeat, "score": given[n % 3][repeat]} for n, row in enumerate(rows) for repeat in range(3)],
    )
    call_command("leaderboard", "repeats", "--benchmark", "grove", "--kind", "score", "--format", "json")
    told = json.loads(capsys.readouterr().out)
    assert [(row["repeats"], row["alike"], row["n"]) for row in told] == [(3, k, len(rows)) for k in (1, 2, 3)]
    assert [row["share"] for row in told] == pytest.approx([1 / 3] * 3, abs=0.03)
    assert all(row["share_low"] < row["share"] < row["share_high"] for row in told)
    client = client_of("anonymous")
    assert client.get("/api/v1/leaderboards/repeats/?benchmark=grove&kind=score").json() == told
    page = client.get("/leaderboards/grove/judges/?kind=score").text
    assert "how many verdicts are the same" in page
    assert "run" in page.partition('id="repeats"')[2]


def test_scores_and_pairs_of_one_benchmark_do_not_mix(brought):
    brought("labels", [*scores(0.5, 1, annotator="Ada"), *rankings(0.5, 1, annotator="Ada")])
    brought("judgments", [*scores(0.5, 2, judge="keen"), *rankings(0.5, 2, judge="keen")])
    assert judges(scope_of(benchmark="grove")).as_json() == []
    assert {row["kind"] for row in judges(scope_of(benchmark="grove", kind="score")).as_json()} == {"score"}
    with pytest.raises(BadScope, match="only measured on pairs"):
        agreement_of(scope_of(benchmark="grove", kind="score"))


def test_page_command_and_api_say_the_same_of_scores(brought, client_of, capsys):
    brought("labels", scores(0.5, 1, annotator="Ada"))
    brought("judgments", scores(0.5, 2, judge="keen"))
    for what in ("judges", "models"):
        call_command("leaderboard", what, benchmark="grove", kind="score", shape="json")
        printed = json.loads(capsys.readouterr().out)
        assert printed == client_of("anonymous").get(f"/api/v1/leaderboards/{what}/?benchmark=grove&kind=score").json()
        call_command("leaderboard", what, benchmark="grove", kind="score")
        assert "keen" in capsys.readouterr().out or what == "models"
    with pytest.raises(CommandError, match="Unknown kind of board: 'parts'"):
        call_command("leaderboard", "models", benchmark="grove", kind="parts")


def test_the_lesion_data_average_over_features_and_pooling_them_is_something_else(shared_data, manage):
    """Pearson per feature, then the unweighted mean (alt-test data; MLLM-as-a-Judge, Table 2, for the average)."""
    folder = shared_data / "alt-test-lesion"
    for command in ("import_benchmark", "import_labels", "import_judgments"):
        assert manage(command, "alt-test", folder, "--benchmark", "lesion")[0] == 0
    board = judges(scope_of(benchmark="lesion", kind="score"))
    people = json.loads((folder / "human_annotations.json").read_text())
    told = json.loads((folder / "llm_annotations.json").read_text())
    mean = pd.DataFrame(people).mean(axis=1)
    for judge, rows in told.items():
        frame = pd.DataFrame({"mean": mean, "told": pd.Series(rows)}).dropna()
        frame["feature"] = frame.index.str.split("__").str[1]
        each = {name: one["mean"].corr(one["told"]) for name, one in frame.groupby("feature")}
        assert len(each) == 5
        for name, value in each.items():
            row = of(board, judge=judge, reference="majority", source_dataset=name)["pearson"]
            assert (row["value"], row["n"]) == (pytest.approx(value), 100)
        row = of(board, judge=judge, reference="majority", source_dataset="all")["pearson"]
        assert row["value"] == pytest.approx(np.mean(list(each.values())))
        assert abs(row["value"] - frame["mean"].corr(frame["told"])) > 0.02
    assert models(scope_of(benchmark="lesion", kind="score")).notes == [
        "The scores here are for pictures, not for models' answers: see the board of judges."
    ]
