import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from stats.bias import difference_of_means, high_scores, length, own_family, position
from stats.proportions import FEW_GROUPS, NO_VARIATION, ONE_OUTWEIGHS, mean
from stats.verdicts import VERDICTS


@pytest.mark.check("F14")
def test_each_pair_of_verdicts_is_consistent_or_biased_to_the_place_that_it_names():
    """The cases of MLLM-Bench's Figure 2: canonical verdicts of the straight order and of the turned one."""
    cases = {
        ("first", "first"): "same",
        ("second", "second"): "same",
        ("undecided", "undecided"): "same",
        ("tie", "undecided"): "same",
        ("first", "second"): "first",  # whatever stood first won, twice
        ("second", "first"): "second",
        ("first", "undecided"): "first",
        ("undecided", "second"): "first",
        ("second", "tie"): "second",
        ("tie", "first"): "second",
    }
    for (straight, turned), kind in cases.items():
        found = position(straight=[straight], turned=[turned])
        shares = {"same": found.consistent, "first": found.first, "second": found.second}
        assert {name: share.value for name, share in shares.items()} == {n: float(n == kind) for n in shares}, straight


@given(st.lists(st.tuples(*[st.sampled_from([*VERDICTS, None])] * 2), max_size=30))
def test_the_shares_add_up_and_turning_all_swaps_the_places(rows):
    straight, turned = [a for a, _ in rows], [b for _, b in rows]
    found, swapped = position(straight=straight, turned=turned), position(straight=turned, turned=straight)
    assert found.consistent.n == sum(a is not None and b is not None for a, b in rows)
    if found.consistent.n:
        assert found.consistent.value + found.first.value + found.second.value == pytest.approx(1)
        assert (found.first.value, found.second.value) == (swapped.second.value, swapped.first.value)
        assert found.test.p == swapped.test.p


def lengths(n=400, slope=1.5, seed=2):
    draw = np.random.default_rng(seed)
    tokens = draw.integers(5, 200, (n, 2))
    change = tokens[:, 0] - tokens[:, 1]
    shown = np.tanh(change / change.std())
    won = (draw.random(n) < 1 / (1 + np.exp(-slope * shown))).astype(float)
    return won, tokens, shown


def test_the_slope_is_that_of_statsmodels_with_clustered_errors():
    won, tokens, shown = lengths()
    cluster = np.repeat(np.arange(100), 4)
    found = length(won=won, tokens=tokens, cluster=cluster).slope
    fitted = sm.GLM(won, sm.add_constant(shown), family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    assert found.value == pytest.approx(fitted.params[1], abs=1e-6)
    error = (found.interval.high - found.value) / 1.984217  # t with 99 degrees of freedom
    assert error == pytest.approx(fitted.bse[1] * np.sqrt(100 / 99), rel=1e-4)


def test_the_slope_counts_groups_by_what_they_weigh_and_one_that_has_nearly_all_pairs_leaves_no_interval():
    won, tokens, _ = lengths()
    n = len(won)
    lopsided = length(won=won, tokens=tokens, cluster=np.maximum(np.arange(n) - 360, 0)).slope
    assert (lopsided.value is None, lopsided.interval, lopsided.reason) == (False, None, ONE_OUTWEIGHS)
    sizes = np.array([120, *[10] * 28])
    uneven = length(won=won, tokens=tokens, cluster=np.repeat(np.arange(29), sizes)).slope
    weigh = n * n / (sizes @ sizes)
    assert (uneven.interval.high - uneven.value) / uneven.se == pytest.approx(t.ppf(0.975, weigh - 1))


def test_the_longer_answer_is_counted_where_lengths_differ():
    found = length(won=[1, 0, 1, 1], tokens=[[9, 1], [9, 1], [1, 9], [5, 5]], cluster=range(4)).longer
    assert (found.value, found.n) == (1 / 3, 3)


def test_what_cannot_be_fitted_says_why():
    same = length(won=[1, 0], tokens=[[5, 5], [7, 7]], cluster=[0, 1])
    assert same.slope.value is None
    assert "do not differ" in same.slope.reason
    parted = length(won=[1, 1, 0, 0], tokens=[[9, 1], [8, 2], [1, 9], [2, 8]], cluster=range(4))
    assert parted.slope.value is None
    assert "every longer answer won" in parted.slope.reason
    assert length(won=[], tokens=[], cluster=[]).slope.value is None
    won, tokens, _ = lengths(70)
    few = length(won=won, tokens=tokens, cluster=np.arange(70) // 10).slope
    assert (few.value is None, few.interval, few.reason) == (False, None, FEW_GROUPS)


def test_own_family_is_the_extra_that_the_judge_gives_its_kin():
    draw = np.random.default_rng(3)
    people = draw.integers(1, 5, 300).astype(float)
    own = np.arange(300) % 3 == 0
    judge = people + 0.2 + 0.5 * own
    exact = own_family(judge=judge, people=people, own=own, cluster=np.arange(300) // 3, width=4)
    assert (exact.value, exact.interval, exact.reason) == (pytest.approx(0.5), None, NO_VARIATION)
    none = own_family(judge=judge, people=people, own=own * False, cluster=np.arange(300), width=4)
    assert none.value is None
    assert "own family" in none.reason


def test_the_error_of_own_family_is_that_of_a_regression_with_clustered_errors():
    draw = np.random.default_rng(3)
    cluster = np.arange(300) // 5
    people, own = draw.integers(1, 5, 300).astype(float), draw.random(300) < 0.3
    judge = people + 0.5 * own + draw.standard_normal(60)[cluster] + draw.standard_normal(300)
    extra = own_family(judge=judge, people=people, own=own, cluster=cluster, width=4)
    regression = sm.OLS(judge - people, sm.add_constant(own.astype(float))).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    assert extra.value == pytest.approx(regression.params[1])
    assert extra.se == pytest.approx(regression.bse[1] * np.sqrt(60 / 59))
    assert -8 <= extra.interval.low < extra.value < extra.interval.high <= 8


def test_scores_are_laid_side_by_side():
    found = high_scores(judge=[5, 5, 4, 4], people=[2, 3.5, 4, 4])
    assert found.scale == (2, 4, 5)
    assert (found.judge, found.people, found.n) == ((0, 0.5, 0.5), (0.25, 0.75, 0), 4)


def test_a_difference_of_two_means_on_the_same_rows_has_the_error_of_the_paired_one():
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(20), 6)
    easy = rng.standard_normal(20)[group]  # moves both
    judge, people = easy + 0.3 * rng.standard_normal((2, 120))
    found = difference_of_means(
        values=np.r_[judge, people], first=np.repeat([True, False], 120), cluster=np.r_[group, group], most=20.0
    )
    paired = mean(values=judge - people, cluster=group, ends=(-20.0, 20.0))
    assert found.value == pytest.approx(paired.value)
    assert found.se == pytest.approx(paired.se)
    assert (found.low, found.high) == pytest.approx((paired.low, paired.high))
    alone = [mean(values=of, cluster=group).se for of in (judge, people)]
    assert found.se < 0.5 * np.hypot(*alone)
