"""What the papers print agrees with what the statistics say, table by table (docs/reproduction.md has the whole list).

The printed numbers are in tests/data/identities.json; ``matches`` there says which of them are misprints.
"""

import json
import re

import numpy as np
import pytest

from stats.answers import yes_no_scores
from stats.proportions import proportion
from stats.rankings import distance, rank_correlation


@pytest.fixture
def printed(identities):
    """``printed(paper, table, rule="")``: the checks on this table whose rule holds the words."""

    def of(paper, table, rule=""):
        found = [one for one in identities if (one["paper"], one["table"]) == (paper, table) and rule in one["rule"]]
        assert found, (paper, table, rule)
        return found

    return of


def test_one_pair_of_counts_gives_the_five_columns_of_pope(printed):
    """ChEF (arXiv 2311.02692), Table 12: accuracy, precision, recall, F1 and the share of yes of 27 rows."""
    wrong = []
    for check in printed("ChEF", "Table 12"):
        tp, fp, yes, no = (check["inputs"][name] for name in ("TP", "FP", "yes", "no"))
        said = np.r_[np.arange(yes) < tp, np.arange(no) < fp].astype(int)
        key = np.r_[np.ones(yes, int), np.zeros(no, int)]
        scores = yes_no_scores(key=key, said=said, cluster=np.arange(yes + no))
        columns = [scores.accuracy, scores.precision, scores.recall, scores.f1, scores.yes_ratio]
        percents = [round(100 * column.value, 2) for column in columns]
        close = np.isclose(percents, check["expected"], atol=0.0151)
        wrong += [] if close.all() else [check["rule"].split(":")[0]]
    assert wrong == ["Random LAMM"]  # at least two of its printed cells are wrong


def test_relative_robustness_follows_from_the_printed_accuracies(printed):
    """ChEF, Table 11: (corrupted - random) / (clean - random); one cell is a copy of the row above."""
    rows = printed("ChEF", "Table 11", "RRM = (corrupted")
    wrong = []
    for check in rows:
        clean, corrupted, random = (check["inputs"][name] for name in ("acc", "acc_crp", "random"))
        low, high = check["inputs"]["interval"]
        assert low - 0.01 <= 100 * (corrupted - random) / (clean - random) <= high + 0.01
        wrong += [] if low - 0.1 <= check["expected"] <= high + 0.1 else [check["rule"].split(":")[0]]
    assert len(rows) == 18
    assert wrong == ["InstructBLIP MMBench"]


def test_the_average_over_models_of_an_ability_is_the_mean_of_their_printed_figures():
    """MMBench (arXiv 2307.06281), 5.3 prints 27.7 and 23.4 (FP-C) and 17.8 (LR); Tables 5 and 6 the sixteen models."""
    dev = [2.8, 1.4, 3.4, 9.0, 21.4, 23.4, 32.4, 38.6, 38.6, 40.7, 38.6, 57.9, 49.0, 35.2, 26.2, 24.8]
    test = [1.6, 0.8, 5.2, 11.2, 17.6, 24.4, 20.0, 33.2, 34.4, 26.8, 36.4, 47.9, 50.4, 20.4, 19.6, 24.0]
    logic = [9.1, 11.4, 1.1, 13.6, 11.4, 21.6, 15.9, 13.1, 14.8, 19.9, 22.2, 48.6, 33.5, 15.3, 17.0, 17.0]
    assert [round(float(np.mean(row)), 1) for row in (dev, test, logic)] == [27.7, 23.4, 17.8]


def test_win_rates_of_mllm_bench_are_wins_of_420(printed):
    """MLLM-Bench (arXiv 2311.13951), Tables 5 and 8."""
    for table in ("Table 5", "Table 8"):
        for check in printed("MLLM-Bench", table, "win rate = wins/420"):
            for model, wins in check["inputs"].items():
                assert f"{proportion(successes=wins, n=420).value + 1e-9:.2f}" == check["expected"][model], model


def test_the_judges_of_mia_bench_rank_alike(printed):
    """MIA-Bench (arXiv 2407.01509), Table 5: Spearman and Kendall of every two of four judges."""
    for check in printed("MIA-Bench", "Table 5", "rank stability"):
        rho = rank_correlation(x=check["inputs"]["a"], y=check["inputs"]["b"], rng=np.random.default_rng(0))
        assert round(rho.spearman.value, 4) == check["got"]["spearman"]
        assert round(rho.kendall, 4) == check["got"]["kendall"]
        assert rho.p < 0.01


def test_claude_and_gpt4_rank_nine_models_as_printed(printed):
    """MLLM-Bench, section 6.5: 0.95 over the printed rates of Table 8 and the public board, ties at mean rank."""
    (check,) = printed("MLLM-Bench", "Table 8 / section 6.5")
    rates = (check["inputs"][name] for name in ("gpt4_rate", "claude_rate"))
    x, y = rates
    rho = rank_correlation(x=x, y=y, rng=np.random.default_rng(0))
    assert round(rho.spearman.value, 3) == 0.954
    assert rho.p < 0.001


def test_agreement_between_people_is_a_count_of_shared_items(printed):
    """MLLM-Bench, Table 15: six pairs of annotators, k of n."""
    for check in printed("MLLM-Bench", "Table 15"):
        agree, n = (int(one) for one in re.findall(r"\d+", json.dumps(check["inputs"]))[:2])
        assert round(proportion(successes=agree, n=n).value, 2) == pytest.approx(float(check["expected"]))


def test_levenshtein_is_that_of_the_ranking_strings():
    """MLLM-as-a-Judge (arXiv 2402.04788), 3.2."""
    assert (distance("ABCD", "BACD"), distance("ABCD", "DCBA"), distance("CDAB", "CDAB")) == (0.5, 1.0, 0.0)
