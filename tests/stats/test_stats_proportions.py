import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.proportions import (
    CLUSTER_T,
    STUDENT_T,
    WILSON,
    WILSON_ON_CLUSTERS,
    mean,
    proportion,
    rate,
    rate_by_sizes,
    rates,
    wilson,
)
from stats.results import Estimate, Interval, InvalidCount, InvalidOutcome, LengthMismatch, NotFinite


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_intervals_of_newcombe_1998_table_1(successes, n, low, high):
    interval = wilson(successes=successes, n=n)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_stays_within_0_and_1_and_holds_the_share(counts, level):
    successes, n = counts
    interval = wilson(successes=successes, n=n, level=level)
    assert 0 <= interval.low <= successes / n <= interval.high <= 1
    mirrored = wilson(successes=n - successes, n=n, level=level)
    assert mirrored.low == pytest.approx(1 - interval.high, abs=1e-12)


def test_a_proportion_of_nothing_is_none_with_a_reason():
    assert proportion(successes=0, n=0) == Estimate(None, 0, None, WILSON, "nothing was counted")


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (1, 0)])
def test_impossible_counts_are_refused(successes, n):
    with pytest.raises(InvalidCount):
        proportion(successes=successes, n=n)


def test_one_row_per_cluster_is_wilson():
    estimate = rate(hits=[1, 0, 1, 1], cluster=["a", "b", "c", "d"])
    assert estimate.interval == wilson(successes=3, n=4)
    assert (estimate.value, estimate.n, estimate.method) == (0.75, 4, WILSON)


def test_several_rows_per_cluster_use_the_clustered_error_of_miller_2024():
    # By hand: mean 4/6; cluster sums of the deviations 2/3, -1/3, -1/3; SE² = 3/2 (4 + 1 + 1)/9 / 36; t(2) = 4.3027.
    estimate = rate(hits=[1, 1, 1, 0, 1, 0], cluster=[1, 1, 2, 2, 3, 3])
    margin = 4.302652729911275 * np.sqrt(1.5 * 6 / 9 / 36)
    assert estimate.value == pytest.approx(4 / 6)
    assert estimate.method == estimate.interval.method == CLUSTER_T
    assert estimate.interval.low == pytest.approx(max(0, 4 / 6 - margin))
    assert estimate.interval.high == pytest.approx(min(1, 4 / 6 + margin))


def test_the_clustered_error_is_that_of_statsmodels():
    statsmodels = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    cluster = rng.integers(0, 40, 300)
    values = rng.normal(size=300) + rng.normal(size=40)[cluster]
    clusters = len(np.unique(cluster))
    fit = statsmodels.OLS(values, np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}, use_t=True
    )
    interval = mean(values=values, cluster=cluster).interval
    error = fit.bse[0] * np.sqrt(clusters / (clusters - 1))
    assert (interval.high - interval.low) / 2 / error == pytest.approx(2.0227, abs=2e-3)  # t(39) at 95%


@pytest.mark.parametrize("hits", [[1] * 6, [0] * 6, [1, 0, 1, 0, 1, 0]])
def test_clusters_without_variation_fall_back_to_wilson_on_their_number(hits):
    estimate = rate(hits=hits, cluster=[1, 1, 2, 2, 3, 3])
    expected = wilson(successes=3 * np.mean(hits), n=3, method=WILSON_ON_CLUSTERS)
    assert estimate.interval == expected
    assert estimate.method == WILSON_ON_CLUSTERS


def test_one_cluster_of_several_rows_has_a_value_and_no_interval():
    for estimate in (rate(hits=[1, 0, 1], cluster=[7, 7, 7]), mean(values=[1, 0, 1], cluster=[7, 7, 7])):
        assert estimate.value == pytest.approx(2 / 3)
        assert estimate.interval is None
        assert "one cluster" in estimate.reason


def test_a_mean_with_one_row_per_cluster_is_students():
    estimate = mean(values=[1.0, 2.0, 3.0, 4.0], cluster=[1, 2, 3, 4])
    margin = 3.182446305284263 * np.std([1, 2, 3, 4], ddof=1) / 2
    assert estimate.method == STUDENT_T
    assert estimate.interval.low == pytest.approx(2.5 - margin)


def test_a_mean_of_nothing_and_a_mean_without_variation_say_so():
    assert mean(values=[], cluster=[]).value is None
    same = mean(values=[5.0, 5.0, 5.0], cluster=[1, 2, 3])
    assert (same.value, same.interval) == (5.0, None)
    assert "alike" in same.reason


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=60), st.randoms())
def test_a_rate_does_not_depend_on_the_order_of_rows_or_the_names_of_clusters(rows, random):
    estimate = rate(hits=[hit for _, hit in rows], cluster=[f"sample {cluster}" for cluster, _ in rows])
    random.shuffle(rows)
    again = rate(hits=[hit for _, hit in rows], cluster=[-cluster for cluster, _ in rows])
    assert again.value == pytest.approx(estimate.value)
    assert (again.interval is None) == (estimate.interval is None)
    if estimate.interval:
        assert again.interval.low == pytest.approx(estimate.interval.low)
        assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 1


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 9), st.booleans()), min_size=1, max_size=60
    ),
    st.integers(0, 4),
)
def test_rates_of_parts_are_the_rate_of_each_and_few_clusters_give_way_to_finer_ones(rows, fewest):
    part, cluster, finer, hits = (np.array(column) for column in zip(*rows, strict=True))
    found = rates(hits=hits, cluster=cluster, part=part, parts=4, finer=finer, fewest=fewest)
    for one in range(4):
        mine = part == one
        few = len(set(cluster[mine].tolist())) < fewest
        alone = rate(hits=hits[mine], cluster=(finer if few else cluster)[mine])
        assert (found[one].value, found[one].n, found[one].method) == (alone.value, alone.n, alone.method)
        assert (found[one].interval is None) == (alone.interval is None)
        if alone.interval:
            assert found[one].interval.low == pytest.approx(alone.interval.low, abs=1e-12)


def test_values_that_are_not_hits_and_columns_of_unequal_length_are_refused():
    with pytest.raises(InvalidOutcome):
        rate(hits=[0.5], cluster=[1])
    with pytest.raises(LengthMismatch, match="hits has 2, cluster has 1"):
        rate(hits=[1, 0], cluster=[1])


def test_no_estimate_and_no_interval_can_hold_a_nan():
    with pytest.raises(NotFinite):
        Estimate(float("nan"), 3, None, "any")
    with pytest.raises(NotFinite):
        Interval(0.0, float("nan"), 0.95, "any")
    with pytest.raises(NotFinite):
        Interval(1.0, 0.0, 0.95, "any")


def test_an_interval_by_sizes_of_clusters_depends_on_no_cluster_and_covers_where_their_rows_are_alike():
    rng, covered = np.random.default_rng(5), 0
    sizes = rng.integers(1, 8, 40)
    cluster = np.repeat(np.arange(40), sizes)
    for _ in range(400):
        hits = np.repeat(rng.random(40) < 0.7, sizes)
        interval = rate_by_sizes(hits=int(hits.sum()), n=len(hits), cluster=cluster).interval
        covered += interval.low <= 0.7 <= interval.high
    assert covered >= 0.93 * 400
    assert rate_by_sizes(hits=7, n=9, cluster=np.arange(9)) == proportion(successes=7, n=9)
    one, other = (rate_by_sizes(hits=4, n=8, cluster=[0, 0, 0, 1, 2, 3, 4, last]) for last in (5, 6))
    assert one == other
