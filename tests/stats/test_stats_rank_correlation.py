"""Spearman between boards, with permutation p."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from stats.rankings import rank_correlation


def found(x, y):
    return rank_correlation(x=x, y=y, rng=np.random.default_rng(0))


def test_wins_and_elo_of_mllm_bench_correlate_as_printed(identities):
    """MLLM-Bench (arXiv 2311.13951), section 5.2: 98.02% over the 26 models of Table 5."""
    check = next(c for c in identities if c["table"] == "Table 5 / section 5.2")
    wins, elo = check["inputs"]["wins"], check["inputs"]["elo"]
    names = sorted(wins)
    rho = found([wins[name] for name in names], [elo[name] for name in names])
    assert round(rho.spearman.value, 4) == 0.9802
    assert rho.p == pytest.approx(1 / 20_001)


def test_few_models_are_tested_over_all_permutations():
    """Four models in the same order: 2 of 24 permutations are as far from 0."""
    rho = found([1, 2, 3, 4], [10, 20, 30, 40])
    assert (rho.spearman.value, rho.kendall) == (pytest.approx(1), pytest.approx(1))
    assert rho.p == pytest.approx(2 / 24)
    assert rho.spearman.interval is None


def test_a_board_of_equal_numbers_says_nothing():
    rho = found([1, 1, 1], [1, 2, 3])
    assert (rho.spearman.value, rho.p) == (None, None)
    assert found([], []).spearman.value is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=6))
def test_rho_is_that_of_scipy_and_p_that_of_its_permutation_test(pairs):
    x, y = zip(*pairs, strict=True)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found(x, y).p is None
        return
    rho = found(x, y)
    assert rho.spearman.value == pytest.approx(reference.spearmanr(x, y).statistic)
    ranks, fixed = reference.rankdata(x), reference.rankdata(y)
    every = [np.corrcoef(order, fixed)[0, 1] for order in permutations(ranks)]
    assert rho.p == pytest.approx(np.mean(np.abs(every) >= abs(rho.spearman.value) - 1e-9))
    assert found(y, x).spearman.value == pytest.approx(rho.spearman.value)
