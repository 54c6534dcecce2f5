import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from stats.correlation import kendall, pearson, spearman, williams
from stats.results import InvalidCount, LengthMismatch, NotFinite


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def columns(n: int = 60, seed: int = 3):
    draw = np.random.default_rng(seed)
    x = draw.integers(1, 6, n)
    return x, np.clip(x + draw.integers(-2, 3, n), 1, 5)


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


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(pearson, reference.pearsonr), (spearman, reference.spearmanr), (kendall, reference.kendalltau)],
)
def test_value_and_p_are_scipys(ours, theirs):
    x, y = columns()
    found = ours(x=x, y=y, cluster=np.arange(60), rng=rng())
    value, p = theirs(x, y)
    assert found.estimate.value == pytest.approx(value, abs=1e-12)
    assert found.p == pytest.approx(p, rel=1e-9)


def test_the_interval_of_independent_rows_is_fishers():
    """tanh(atanh r ± z / sqrt(n - 3)), Fisher 1921; scipy computes the same."""
    x, y = columns()
    interval = pearson(x=x, y=y, cluster=np.arange(60), rng=rng()).estimate.interval
    theirs = reference.pearsonr(x, y).confidence_interval()
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    rho = spearman(x=x, y=y, cluster=np.arange(60), rng=rng()).estimate
    margin = 1.959964 * np.sqrt((1 + rho.value**2 / 2) / 57)  # Bonett and Wright 2000
    assert rho.interval.low == pytest.approx(np.tanh(np.arctanh(rho.value) - margin), abs=1e-6)


@pytest.mark.parametrize("ours", [pearson, spearman])
def test_rows_that_share_a_cluster_widen_the_interval(ours):
    x, y = columns(30)
    once = ours(x=x, y=y, cluster=np.arange(30), rng=rng()).estimate.interval
    four = ours(x=np.repeat(x, 4), y=np.repeat(y, 4), cluster=np.repeat(np.arange(30), 4), rng=rng()).estimate
    assert four.n == 120
    assert four.interval.high - four.interval.low > 0.7 * (once.high - once.low)
    naive = ours(x=np.repeat(x, 4), y=np.repeat(y, 4), cluster=np.arange(120), rng=rng()).estimate.interval
    assert naive.high - naive.low < 0.6 * (once.high - once.low)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=40))
def test_order_of_rows_and_names_of_clusters_change_nothing_and_nothing_is_nan(rows):
    x, y, cluster = (np.array(column) for column in zip(*rows, strict=True))
    for ours in (pearson, spearman):
        found = ours(x=x, y=y, cluster=cluster, rng=rng(), replicates=50)
        again = ours(x=x[::-1], y=y[::-1], cluster=[f"c{c}" for c in cluster[::-1]], rng=rng(), replicates=50)
        assert found.estimate.n == len(rows)
        if found.estimate.value is None:
            assert again.estimate.value is None
            assert len(set(x)) == 1 or len(set(y)) == 1
        else:
            assert found.estimate.value == pytest.approx(again.estimate.value, abs=1e-9)
            assert -1 <= found.estimate.value <= 1


def test_constant_scores_have_no_correlation_and_say_so():
    found = pearson(x=[3, 3, 3, 3], y=[1, 2, 3, 4], cluster=range(4), rng=rng())
    assert (found.estimate.value, found.p) == (None, None)
    assert "constant" in found.estimate.reason


def test_bad_columns_are_refused():
    with pytest.raises(LengthMismatch):
        pearson(x=[1, 2], y=[1], cluster=[0, 1], rng=rng())
    with pytest.raises(NotFinite):
        pearson(x=[1, np.nan], y=[1, 2], cluster=[0, 1], rng=rng())


def test_every_replicate_is_ranked_anew():
    """A Spearman bootstrap by hand, drawing the same clusters, agrees with ours."""
    x, y = columns(40, seed=5)
    cluster = np.repeat(np.arange(20), 2)
    found = spearman(x=x, y=y, cluster=cluster, rng=rng(), replicates=3000).estimate.interval
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"x": x, "y": y}).groupby(cluster)
    groups = [group.to_numpy() for _, group in table]
    by_hand = []
    for _ in range(1500):
        rows = np.concatenate([groups[g] for g in draw.integers(0, 20, 20)])
        by_hand.append(reference.spearmanr(rows[:, 0], rows[:, 1])[0])
    low, high = np.quantile(by_hand, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)
