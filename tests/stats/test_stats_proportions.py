import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from stats.proportions import (
    CLUSTER_T,
    CLUSTERED_WILSON,
    FEW_GROUPS,
    ONE_OUTWEIGHS,
    WILSON,
    likeness,
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


def test_several_rows_per_group_use_the_clustered_error_of_miller_2024():
    """By hand: SE² = G/(G-1) sum_g (sum of the deviations in g)² / n² (arXiv 2411.00640), t(G - 1) for equal groups."""
    hits = np.array([[1, 1], [1, 0], [1, 0], [0, 0], [1, 1], [0, 1], [1, 1], [0, 0], [1, 1], [1, 1]])
    group = np.repeat(np.arange(10), 2)
    share, average = (
        rate(hits=hits.ravel(), cluster=group),
        mean(values=2 * hits.ravel() + 1.0, cluster=group),
    )
    sums = (hits - 13 / 20).sum(axis=1)
    error = np.sqrt(10 / 9 * (sums**2).sum()) / 20
    assert (share.value, share.n, share.groups, share.method) == (13 / 20, 20, 10, CLUSTERED_WILSON)
    # Wilson's on the effective number p q / SE²; what groups add to it is raised by 10/5 - 10/10 as five have a miss,
    # and a fifth of it is that of rows as alike as these are, shrunk by as much towards .18.
    variation, doubt = 13 / 20 * 7 / 20, 1 / 5
    even = 2 * np.sqrt(14 / 22 * 8 / 22)
    alike = even * ((1 - doubt) * (error**2 / variation - 1 / 20) / (even * (1 / 10 - 1 / 20)) + doubt * 0.18)
    expected = (1 - alike) / 20 + alike / 10
    raised = error**2 / variation + (10 / 5 - 10 / 10) * (error**2 / variation - 1 / 20)
    effective = 1 / ((1 - doubt) * min(raised, 1 / 10) + doubt * expected)
    expected = wilson(successes=13 / 20 * effective, n=effective, df=9)
    assert (share.interval.low, share.interval.high) == pytest.approx((expected.low, expected.high))
    margin = 2.262157 * 2 * error  # t(9) at 95%
    assert (average.method, average.se) == (CLUSTER_T, pytest.approx(2 * error))
    assert (average.interval.low, average.interval.high) == pytest.approx((2.3 - margin, 2.3 + margin))


def test_the_clustered_error_is_that_of_statsmodels():
    statsmodels = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    cluster = rng.integers(0, 40, 300)
    values = rng.normal(size=300) + rng.normal(size=40)[cluster]
    clusters = len(np.unique(cluster))
    fit = statsmodels.OLS(values, np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}, use_t=True
    )
    estimate = mean(values=values, cluster=cluster)
    assert estimate.se == pytest.approx(fit.bse[0] * np.sqrt(clusters / (clusters - 1)))
    # t with the number of equal groups that would weigh the same, less 1 (Kish 1965, section 5.4).
    sizes = np.bincount(cluster)
    margin = t(300**2 / (sizes**2).sum() - 1).ppf(0.975) * estimate.se
    assert estimate.interval.high - estimate.value == pytest.approx(margin)


def test_with_fewer_than_eight_groups_there_is_no_interval_and_the_reason_says_so():
    rng = np.random.default_rng(1)
    for groups in (1, 2, 7):
        hits, cluster = rng.integers(0, 2, 60), np.arange(60) % groups
        for estimate in (rate(hits=hits, cluster=cluster), mean(values=hits * 5.0, cluster=cluster, ends=(0, 5))):
            assert (estimate.n, estimate.groups, estimate.interval, estimate.reason) == (60, groups, None, FEW_GROUPS)
    assert rate(hits=hits, cluster=np.arange(60) % 8).interval
    assert rate(hits=hits[:7], cluster=np.arange(7)).interval == wilson(successes=int(hits[:7].sum()), n=7)


def test_where_one_group_has_nearly_all_rows_there_is_no_interval():
    cluster = np.r_[np.zeros(500, dtype=int), np.arange(1, 10)]
    hits = np.arange(509) % 3 == 0
    for estimate in (rate(hits=hits, cluster=cluster), mean(values=hits * 5.0, cluster=cluster)):
        assert (estimate.groups, estimate.interval, estimate.reason) == (10, None, ONE_OUTWEIGHS)


@given(st.lists(st.integers(1, 6), min_size=8, max_size=40))
def test_none_of_n_is_never_wider_than_one_of_n(sizes):
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    none = np.zeros(len(cluster))
    one = none.copy()
    one[-1] = 1
    for of_all in (lambda hits: hits, lambda hits: 1 - hits):
        widths = []
        for hits in (none, one):
            interval = rate(hits=of_all(hits), cluster=cluster).interval
            widths.append(interval.high - interval.low)
        assert widths[0] <= widths[1]


def test_a_share_of_none_counts_rows_of_a_group_as_slightly_alike():
    """0 of n_eff is 0 to t² / (n_eff + t²), where 1 / n_eff = (1 + (10 - 1) r) / 200, r = .18 x 2 sqrt(pq)."""
    even = 2 * np.sqrt(1 / 202 * 201 / 202)
    effective = 200 / (1 + 9 * 0.18 * even)
    for hits in (np.zeros(200), np.ones(200)):
        estimate = rate(hits=hits, cluster=np.arange(200) // 10)
        assert (estimate.method, estimate.se) == (CLUSTERED_WILSON, None)
        width = estimate.interval.high - estimate.interval.low
        assert width == pytest.approx(2.093024**2 / (effective + 2.093024**2))  # t(19) at 95%


@pytest.mark.parametrize(
    ("hits", "n", "groups", "least", "most"),
    [(0, 200, 20, 0.02, 0.06), (1, 200, 20, 0.03, 0.06), (1, 500, 50, 0.01, 0.02), (1, 260, 13, 0.02, 0.06)],
)
def test_a_rare_share_without_sign_that_groups_differ_has_an_interval_that_says_something(hits, n, groups, least, most):
    estimate = rate(hits=np.arange(n) < hits, cluster=np.arange(n) % groups)
    assert least < estimate.interval.high < most
    assert estimate.interval.high > rate(hits=np.arange(n) < hits, cluster=np.arange(n)).interval.high


def test_what_other_models_show_of_groups_widens_or_narrows_a_rare_share():
    rng = np.random.default_rng(8)
    cluster = np.tile(np.repeat(np.arange(20), 10), 5)
    part = np.repeat(np.arange(5), 200)
    highs = {}
    for name, of_group in (("alike", rng.random((4, 20)) < 0.5), ("apart", np.full((4, 20), 0.5))):
        others = rng.random((4, 200)) < np.repeat(of_group, 10, axis=1)
        hits = np.concatenate([others.ravel(), np.zeros(200, dtype=bool)])
        highs[name] = rates(hits=hits, cluster=cluster, part=part, parts=5)[4].interval.high
        known = likeness(hits=hits, cluster=cluster, part=part, parts=5)
        assert rate(hits=hits[800:], cluster=cluster[800:], likeness=known).interval.high == pytest.approx(highs[name])
    alone = rate(hits=np.zeros(200), cluster=cluster[:200]).interval.high
    assert highs["apart"] < alone < highs["alike"]
    assert highs["alike"] > 1.5 * highs["apart"]


def test_replies_to_one_item_may_be_the_same_again_and_do_not_make_a_share_of_none_surer():
    item = np.repeat(np.arange(100), 6)
    once = rate(hits=np.zeros(100), cluster=np.arange(100) // 2)
    again = rate(hits=np.zeros(600), cluster=item // 2, item=item)
    over_repeats = rate(hits=np.zeros(600), cluster=item // 2, stratum=np.arange(600) % 6)
    for estimate in (again, over_repeats):
        assert estimate.n == 600
        assert estimate.interval.high == pytest.approx(once.interval.high, rel=0.05)
    assert rate(hits=np.zeros(600), cluster=item // 2).interval.high < once.interval.high / 2


def test_neighbouring_numbers_of_groups_differ_in_width_by_less_than_a_third():
    def widths(groups, estimate):
        rng = np.random.default_rng(3)
        cluster = np.repeat(np.arange(groups), 4)
        intervals = [estimate(rng, cluster).interval for _ in range(150)]
        return np.mean([interval.high - interval.low for interval in intervals])

    def share(rng, cluster):
        of_group = rng.beta(2, 3, cluster.max() + 1)
        return rate(hits=rng.random(len(cluster)) < of_group[cluster], cluster=cluster)

    def score(rng, cluster):
        quality = rng.standard_normal(cluster.max() + 1)[cluster] + rng.standard_normal(len(cluster))
        return mean(values=np.clip(np.round(4 + quality), 1, 5), cluster=cluster, ends=(1, 5))

    for estimate in (share, score):
        mean_widths = [widths(groups, estimate) for groups in range(8, 16)]
        for more, fewer in itertools.pairwise(mean_widths):
            assert 3 / 4 < fewer / more < 4 / 3


@given(
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 2), st.booleans()), min_size=1, max_size=80),
)
def test_strata_are_averaged_without_weights(rows):
    cluster, stratum, hits = (np.array(column) for column in zip(*rows, strict=True))
    share = rate(hits=hits, cluster=cluster, stratum=stratum)
    average = mean(values=hits * 3.0, cluster=cluster, stratum=stratum, ends=(0, 3))
    expected = np.mean([hits[stratum == each].mean() for each in np.unique(stratum)])
    assert (share.value, average.value) == (pytest.approx(expected), pytest.approx(3 * expected))
    for estimate, most in ((share, 1), (average, 3)):
        if estimate.interval:
            low, high = estimate.interval.low, estimate.interval.high
            assert 0 <= low <= estimate.value + 1e-12
            assert estimate.value - 1e-12 <= high <= most
        else:
            assert estimate.reason


def test_the_error_over_strata_sums_each_group_over_all_of_them():
    """Two repeats on the same rows: SE² of the mean of each row's two, clustered by group, by hand."""
    rng = np.random.default_rng(6)
    repeats, group = rng.integers(1, 6, (2, 40)).astype(float), np.arange(40) // 4
    pooled = mean(values=repeats.ravel(), cluster=np.tile(group, 2), stratum=np.repeat(["a", "b"], 40), ends=(1, 5))
    of_rows = mean(values=repeats.mean(axis=0), cluster=group, ends=(1, 5))
    assert (pooled.value, pooled.se, pooled.groups) == (pytest.approx(of_rows.value), pytest.approx(of_rows.se), 10)
    assert pooled.interval.low == pytest.approx(of_rows.interval.low)


def test_a_mean_on_a_scale_has_wilsons_interval_along_it():
    values, group = np.array([4.0, 5, 5, 3, 5, 4, 5, 5, 2, 5]), np.arange(10)
    estimate = mean(values=values, cluster=group, ends=(1, 5))
    error = values.std(ddof=1) / np.sqrt(10)
    x, effective = (4.3 - 1) / 4, (3.3 * 0.7) / error**2
    expected = wilson(successes=x * effective, n=effective, df=9)
    assert (estimate.value, estimate.se) == (pytest.approx(4.3), pytest.approx(error))
    assert estimate.interval.low == pytest.approx(1 + 4 * expected.low)
    assert estimate.interval.high == pytest.approx(1 + 4 * expected.high)
    beyond = mean(values=values + 1, cluster=group, ends=(1, 5)).interval
    assert 5 < beyond.high < 6


def test_a_mean_of_nothing_and_a_mean_without_variation_say_so():
    assert mean(values=[], cluster=[]).value is None
    same = mean(values=[5.0] * 9, cluster=range(9), ends=(1, 5))
    assert (same.value, same.interval, same.se) == (5.0, None, None)
    assert "alike" in same.reason
    assert mean(values=[1.0] * 9, cluster=range(9), ends=(0.0, 1.0)) == rate(hits=[1] * 9, cluster=range(9))


@given(st.lists(st.tuples(st.integers(0, 15), st.booleans()), min_size=1, max_size=60), st.randoms())
def test_a_rate_does_not_depend_on_the_order_of_rows_or_the_names_of_clusters(rows, random):
    estimate = rate(hits=[hit for _, hit in rows], cluster=[f"sample {cluster}" for cluster, _ in rows])
    random.shuffle(rows)
    again = rate(hits=[hit for _, hit in rows], cluster=[-cluster for cluster, _ in rows])
    assert again.value == pytest.approx(estimate.value)
    assert (again.interval is None) == (estimate.interval is None)
    if estimate.interval:
        assert again.interval.low == pytest.approx(estimate.interval.low)
        assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 11), st.booleans()), min_size=1, max_size=60))
def test_rates_of_parts_are_the_rate_of_each_with_the_likeness_of_all(rows):
    part, cluster, hits = (np.array(column) for column in zip(*rows, strict=True))
    alike = likeness(hits=hits, cluster=cluster, part=part, parts=4)
    for each, estimate in enumerate(rates(hits=hits, cluster=cluster, part=part, parts=4)):
        assert estimate == rate(hits=hits[part == each], cluster=cluster[part == each], likeness=alike)


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
    one, other = (rate_by_sizes(hits=4, n=10, cluster=[0, 0, 0, 1, 2, 3, 4, 5, 6, last]) for last in (7, 8))
    assert one == other
    assert one.interval
    few = rate_by_sizes(hits=4, n=10, cluster=np.arange(10) % 7)
    assert (few.value, few.interval, few.reason) == (0.4, None, FEW_GROUPS)
