import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from stats.correlation import CONSTANT, correlation_difference, pearson, spearman, tau_b, williams
from stats.jackknife import PERFECT
from stats.proportions import FEW_GROUPS
from stats.results import InvalidCount, LengthMismatch, NotFinite

BOTH = pytest.mark.parametrize(
    ("ours", "theirs"), [(pearson, reference.pearsonr), (spearman, reference.spearmanr)], ids=["pearson", "spearman"]
)


def columns(n: int = 60, seed: int = 3):
    draw = np.random.default_rng(seed)
    x = draw.integers(1, 6, n)
    return x, np.clip(x + draw.integers(-2, 3, n), 1, 5)


def fisher(value, without):
    """Value and bounds from the values without one of the groups: tanh(atanh v ± t SE), by hand."""
    groups = len(without)
    deviations = np.arctanh(without) - np.arctanh(value)
    margin = reference.t(groups - 1).ppf(0.975) * np.sqrt((groups - 1) / groups * (deviations**2).sum())
    return np.tanh(np.arctanh(value) - margin), np.tanh(np.arctanh(value) + margin)


def test_williams_gives_the_case_of_its_reference():
    """n = 103, r .4, .5, .1: t = -.8913, p = .375 (psych::r.test, after Steiger 1980)."""
    test = williams(r_first=0.4, r_second=0.5, r_between=0.1, n=103)
    assert round(test.statistic, 4) == -0.8913
    assert round(test.p, 3) == 0.375
    assert test.df == 100


def test_williams_refuses_what_cannot_be():
    with pytest.raises(InvalidCount):
        williams(r_first=0.4, r_second=0.5, r_between=0.1, n=3)
    with pytest.raises(NotFinite):
        williams(r_first=0.9, r_second=0.9, r_between=1.0, n=30)


@BOTH
def test_the_value_is_scipys(ours, theirs):
    x, y = columns()
    assert ours(x=x, y=y, cluster=np.arange(60)).estimate.value == pytest.approx(theirs(x, y)[0], abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30))
def test_taus_value_is_scipys(rows):
    x, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    ours, theirs = float(tau_b(x, y, np.ones((1, len(rows))))[0]), reference.kendalltau(x, y).statistic
    assert ours == pytest.approx(theirs, nan_ok=True)


@BOTH
def test_on_normal_columns_the_interval_and_p_are_near_those_that_assume_them(ours, theirs):
    """Fisher 1921 for r; Bonett and Wright 2000 for rho."""
    draw = np.random.default_rng(8)
    x = draw.standard_normal(400)
    y = 0.1 * x + draw.standard_normal(400)
    result = ours(x=x, y=y, cluster=np.arange(400))
    value = result.estimate.value
    margin = 1.959964 * np.sqrt((1 + (value**2 / 2 if ours is spearman else 0)) / 397)
    expected = np.tanh(np.arctanh(value) - margin), np.tanh(np.arctanh(value) + margin)
    assert (result.estimate.interval.low, result.estimate.interval.high) == pytest.approx(expected, abs=0.02)
    assert result.p == pytest.approx(theirs(x, y)[1], abs=0.02)


@BOTH
def test_the_interval_is_that_of_leaving_out_one_group_at_a_time(ours, theirs):
    x, y = columns(40, seed=5)
    group = np.repeat(np.arange(20), 2)
    estimate = ours(x=x, y=y, cluster=group).estimate
    without = np.array([theirs(x[group != g], y[group != g])[0] for g in range(20)])
    expected = fisher(estimate.value, without)
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx(expected, abs=1e-9)
    assert estimate.se == pytest.approx(np.sqrt(19 / 20 * np.square(without - estimate.value).sum()))
    assert (estimate.n, estimate.groups) == (40, 20)


@BOTH
def test_each_stratum_is_correlated_by_itself_and_counts_the_same(ours, theirs):
    x, y = columns(90, seed=6)
    stratum, group = np.repeat(["a", "b", "c"], [20, 30, 40]), np.arange(90) // 3
    x = x + np.select([stratum == "b", stratum == "c"], [10, 20])  # pooled, the data sets' means would correlate
    value = ours(x=x, y=y, cluster=group, stratum=stratum).estimate.value
    within = [theirs(x[stratum == name], y[stratum == name])[0] for name in "abc"]
    assert value == pytest.approx(np.mean(within), abs=1e-9)


def test_a_stratum_without_a_correlation_does_not_count():
    x, y = columns(40)
    stratum = np.repeat(["a", "b"], 20)
    y[stratum == "b"] = 3
    value = pearson(x=x, y=y, cluster=np.arange(40), stratum=stratum).estimate.value
    assert value == pytest.approx(reference.pearsonr(x[:20], y[:20])[0])


@BOTH
def test_rows_that_repeat_each_other_tell_no_more_than_one_of_them(ours, theirs):
    x, y = columns(30)
    once = ours(x=x, y=y, cluster=np.arange(30)).estimate
    four = ours(x=np.repeat(x, 4), y=np.repeat(y, 4), cluster=np.repeat(np.arange(30), 4)).estimate
    assert four.n == 120
    assert four.value == pytest.approx(theirs(x, y)[0])
    assert four.interval.high - four.interval.low == pytest.approx(once.interval.high - once.interval.low, rel=1e-6)
    apart = ours(x=np.repeat(x, 4), y=np.repeat(y, 4), cluster=np.arange(120)).estimate.interval
    assert apart.high - apart.low < 0.6 * (once.interval.high - once.interval.low)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 14)), min_size=1, max_size=40))
def test_order_of_rows_and_names_of_groups_change_nothing_and_nothing_is_nan(rows):
    x, y, cluster = (np.array(column) for column in zip(*rows, strict=True))
    for ours in (pearson, spearman):
        result = ours(x=x, y=y, cluster=cluster)
        again = ours(x=x[::-1], y=y[::-1], cluster=[f"c{c}" for c in cluster[::-1]])
        estimate = result.estimate
        assert estimate.n == len(rows)
        assert (estimate.interval is None) == (result.p is None) == (again.p is None)
        if estimate.value is None:
            assert again.estimate.value is None
            assert len(set(x)) == 1 or len(set(y)) == 1
        else:
            assert estimate.value == pytest.approx(again.estimate.value, abs=1e-9)
            assert -1 <= estimate.value <= 1
        if estimate.interval:
            assert -1 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 1
            assert (result.p < 0.05) == (estimate.interval.low > 0 or estimate.interval.high < 0)
        else:
            assert estimate.reason


def test_constant_perfect_and_few_columns_say_so():
    constant = pearson(x=[3, 3, 3, 3], y=[1, 2, 3, 4], cluster=range(4))
    assert (constant.estimate.value, constant.p, constant.estimate.reason) == (None, None, CONSTANT)
    perfect = pearson(x=range(10), y=range(10), cluster=range(10)).estimate
    assert (perfect.value, perfect.interval, perfect.reason) == (pytest.approx(1), None, PERFECT)
    x, y = columns()
    few = spearman(x=x, y=y, cluster=np.arange(60) % 7)
    assert (few.estimate.value is None, few.estimate.reason, few.p) == (False, FEW_GROUPS, None)


def test_bad_columns_are_refused():
    with pytest.raises(LengthMismatch):
        pearson(x=[1, 2], y=[1], cluster=[0, 1])
    with pytest.raises(NotFinite):
        pearson(x=[1, np.nan], y=[1, 2], cluster=[0, 1])


# ---- two judges beside the same people ----


def judges(n=80, seed=9):
    draw = np.random.default_rng(seed)
    people = draw.integers(1, 6, n)
    close, far = (np.clip(people + draw.integers(-reach, reach + 1, n), 1, 5) for reach in (1, 3))
    return {"first": close, "second": far, "reference": people}


def compared(name="pearson", **options):
    columns = judges() | options
    n = len(columns["first"])
    rows = {"cluster": np.arange(n) // 4, "stratum": np.zeros(n)} | options
    return correlation_difference(**columns | rows, name=name)


@BOTH
def test_the_difference_of_two_correlations_and_its_interval_by_hand(ours, theirs):
    columns, group = judges(), np.arange(80) // 4
    result = compared(ours.__name__)

    def half(rows):
        first, second = (theirs(columns[name][rows], columns["reference"][rows])[0] for name in ("first", "second"))
        return (first - second) / 2

    value = half(group >= 0)
    assert result.difference.value == pytest.approx(2 * value) == pytest.approx(result.first - result.second)
    low, high = fisher(value, np.array([half(group != g) for g in range(20)]))
    interval = result.difference.interval
    assert (interval.low, interval.high) == pytest.approx((2 * low, 2 * high))
    assert result.p < 0.05


def test_swapping_the_judges_turns_their_difference():
    straight, turned = compared(), compared(first=judges()["second"], second=judges()["first"])
    assert turned.difference.value == pytest.approx(-straight.difference.value)
    assert turned.difference.interval.low == pytest.approx(-straight.difference.interval.high)
    assert turned.p == pytest.approx(straight.p)


def test_a_judge_does_not_differ_from_itself_and_a_constant_one_has_no_correlation():
    same = compared(second=judges()["first"])
    assert (same.difference.value, same.difference.interval, same.p) == (0, None, None)
    assert same.difference.reason
    constant = compared(second=np.full(80, 3))
    assert (constant.second, constant.difference.value, constant.difference.reason) == (None, None, CONSTANT)
    assert constant.first is not None
