"""The board of correlations: rankings by people, judges and other benchmarks, their mean rank, repeats; and home."""

import itertools
import re

import numpy as np
import pytest
from scipy.stats import spearmanr

from bank.models import Benchmark
from leaderboard.boards import seen
from leaderboard.boards.correlation.board import correlations, usual_scope
from leaderboard.rows import plain
from leaderboard.view import scope_of
from tests.leaderboard.conftest import MODELS, by_model, judgments, labels, responses, samples
from tests.leaderboard.test_board_pages import Tables, page
from tests.leaderboard.test_graded_boards import scores

pytestmark = pytest.mark.django_db
PAGE = "/leaderboards/grove/correlation/"
RANKED = ("Alder", "Birch", "Cedar")  # Dogwood has ten items: provisional


def strengths(board, *options):
    rows = by_model(board("models", *options))
    return [rows[model]["bt"] for model in RANKED]


def permuted(x, y):
    """The share of all orders of three models that correlate as strongly."""
    own = abs(spearmanr(x, y).statistic)
    return np.mean([abs(spearmanr(x, order).statistic) >= own - 1e-9 for order in itertools.permutations(y)])


def test_people_and_judges_are_correlated_over_the_models_that_are_ranked_in_both(voted, board, client):
    found = correlations(scope_of(benchmark=voted), [])
    assert {(one.key, one.about, len(one.values)) for one in found.rankings} == {
        ("people", "people", 3),
        ("keen", "judge", 3),
        ("dull", "judge", 3),
    }
    people = strengths(board)
    for row in found.as_json():
        if row["a"] == "people":
            other = strengths(board, "--source", row["b"])
            assert row["value"] == pytest.approx(spearmanr(people, other).statistic)
            assert row["p"] == pytest.approx(permuted(people, other))
            assert row["n"] == 3
    for row in plain(found.ranks):
        assert row["mean"] == pytest.approx(np.mean(row["ranks"]))
    assert {row["model"] for row in plain(found.ranks)} == set(RANKED)
    html = page(client, PAGE)
    matrix = next(row for row in Tables(html).rows if row[0] == ["people"])
    assert matrix[1] == ["3"]
    assert "Provisional models are in no ranking" in html
    assert "NaN" not in html


def test_the_spread_over_a_judges_repeats_is_told_by_model(brought, client):
    brought("judgments", judgments("keen", noise=1.5, seed=2, repeats=3))
    grove = Benchmark.objects.get(slug="grove")
    rows = plain(correlations(scope_of(benchmark=grove), []).repeats)
    assert {row["model"] for row in rows} == set(MODELS)
    assert all(row["repeats"] == 3 and row["sd"] >= 0 for row in rows)
    whole = by_model(seen.models(scope_of(benchmark=grove, source="keen")).as_json())
    for row in rows:  # every repeat has the same items: the mean of the rates is the rate of all
        assert row["mean"] == pytest.approx(whole[row["model"]]["win_rate"])
        levels = whole[row["model"]]["levels"]
        assert set(row["levels"]) == set(levels) > {"Perception"}
        for name, level in row["levels"].items():
            assert level["mean"] == pytest.approx(levels[name]["win_rate"])
            assert level["sd"] >= 0
        assert sum(level["n"] for level in row["levels"].values()) == row["n"]
    page = client.get("/leaderboards/grove/correlation/").content.decode()
    assert f"{100 * rows[0]['levels']['Perception']['mean']:.1f} ±" in page


def test_another_benchmark_counts_once_it_ranks_three_of_the_models_and_the_viewer_may_see_it(
    voted, folder, manage, client, client_of
):
    path = folder("samples", [sample | {"images": []} for sample in samples()])
    assert manage("import_benchmark", "generic", path, "--benchmark", "wood", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", responses()), "--benchmark", "wood")[0] == 0
    rated = folder("labels", list(scores(0.2, 1, annotator="Ada")))
    assert manage("import_labels", "generic", rated, "--benchmark", "wood")[0] == 0
    wood = Benchmark.objects.get(slug="wood")
    found = correlations(scope_of(benchmark=voted), [usual_scope(wood, staff=False)])
    (row,) = (row for row in found.as_json() if row["a"] == "people" and "wood" in row["b"])
    assert row["n"] == 3
    assert row["value"] is not None
    assert "wood@1" in page(client, PAGE)
    Benchmark.objects.filter(pk=wood.pk).update(visibility=Benchmark.Visibility.PRIVATE)
    assert "wood@1" not in page(client, PAGE)
    assert "wood@1" in page(client_of("curator"), PAGE)


def test_one_ranking_alone_is_said_in_words(brought, client):
    brought("labels", labels())
    assert "nothing to hold it against" in page(client, PAGE)


def test_home_shows_mean_scores_and_the_judges_that_correlate_with_them(brought, client):
    brought("labels", scores(0.4, 1, annotator="Ada"))
    brought("judgments", [*scores(0.3, 2, judge="keen"), *scores(3, 3, judge="dull")])
    html = page(client, "/")
    rows = seen.models(scope_of(benchmark="grove", kind="score")).as_json()
    assert minis(html, "Best models") == [(row["model"], f"{row['score']:.2f}") for row in rows]
    judged = [
        (row["judge"], f"{row['value']:.2f}")
        for row in seen.judges(scope_of(benchmark="grove", kind="score")).as_json()
        if (row["metric"], row["reference"], row["source_dataset"]) == ("pearson", "majority", "all")
    ]
    assert minis(html, "Judges nearest to people") == sorted(judged, key=lambda pair: -float(pair[1]))


def minis(html, label):
    """Names and values of one of the small tables."""
    (table,) = re.findall(rf'aria-label="{label} on grove">(.*?)</table>', html, re.S)
    return re.findall(r'title="([^"]*)">[^<]*</a></span></th><td class="n"><a[^>]*>([^<]*)</a></td>', table)
