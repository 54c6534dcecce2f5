import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.paired import (
    CLUSTERED_NEWCOMBE,
    MCNEMAR,
    NEWCOMBE,
    SIGN_FLIPS,
    change,
    difference,
    mcnemar,
    newcombe,
)
from stats.proportions import FEW_GROUPS
from stats.results import InvalidCount


def test_mcnemar_gives_the_exact_p_of_its_reference():
    """[[59, 6], [16, 80]]: p = .05248 (exact, two-sided; Fay 2010, exact2x2)."""
    assert round(mcnemar(only_first=6, only_second=16).p, 5) == 0.05248


def test_without_discordant_items_nothing_speaks_against_equality():
    assert mcnemar(only_first=0, only_second=0).p == 1
    with pytest.raises(InvalidCount):
        mcnemar(only_first=-1, only_second=3)


def test_single_rows_take_mcnemar_and_shared_samples_flip_signs():
    first, second = np.array([1] * 75 + [0] * 86), np.array([1] * 59 + [0] * 16 + [1] * 6 + [0] * 80)
    alone = difference(first=first, second=second, cluster=np.arange(161), rng=np.random.default_rng(1))
    assert (alone.method, round(alone.p, 5)) == (MCNEMAR, 0.05248)
    assert alone.statistic == pytest.approx(10 / 161)
    twice = difference(
        first=np.repeat(first, 3),
        second=np.repeat(second, 3),
        cluster=np.repeat(np.arange(161), 3),
        rng=np.random.default_rng(1),
    )
    assert twice.method == SIGN_FLIPS
    assert twice.p == pytest.approx(alone.p, abs=0.02)  # three copies of a row are not three rows


def test_paired_proportions_get_the_interval_that_newcombe_published():
    """Newcombe 1998, Statistics in Medicine 17:2635, Table II: 36, 12, 2, 0 by method 10 is .0569 to .3404."""
    published = newcombe(both=36, only_first=12, only_second=2, neither=0)
    assert (round(published.low, 4), round(published.high, 4)) == (0.0569, 0.3404)
    before, after = [1] * 36 + [0] * 12 + [1] * 2, [1] * 48 + [0] * 2
    moved = change(before=before, after=after, cluster=range(50), ends=(0, 1))
    assert (moved.value, moved.n, moved.interval) == (pytest.approx(0.2), 50, published)
    certain = change(before=[0] * 10, after=[1] * 10, cluster=range(10), ends=(0, 1))
    assert (certain.value, certain.method) == (1, NEWCOMBE)
    assert 0.5 < certain.interval.low < certain.interval.high == 1
    shared = change(before=[0, 0, 1, 0], after=[1, 1, 1, 0], cluster=[1, 1, 2, 2], ends=(0, 1))
    assert (shared.value, shared.n, shared.interval, shared.reason) == (0.5, 4, None, FEW_GROUPS)


def test_the_error_of_a_change_is_the_clustered_one_of_the_differences():
    """By hand: SE² = G/(G-1) sum_g (sum of the deviations in g)² / n² (Miller 2024, arXiv 2411.00640)."""
    draw = np.random.default_rng(2)
    before, after, cluster = draw.integers(1, 6, 40), draw.integers(1, 6, 40), np.arange(40) // 4
    moved = change(before=before, after=after, cluster=cluster, ends=(1, 5))
    gap = after - before
    sums = [(gap[cluster == g] - gap.mean()).sum() for g in range(10)]
    assert moved.se == pytest.approx(np.sqrt(10 / 9 * np.square(sums).sum()) / 40)
    assert (moved.method, moved.groups) == (CLUSTERED_NEWCOMBE, 10)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 14)), min_size=1, max_size=60),
    st.booleans(),
)
def test_the_interval_of_a_change_holds_it_stays_on_the_scale_and_turns_with_the_columns(rows, binary):
    before, after, cluster = (np.array(column) for column in zip(*rows, strict=True))
    ends = (0, 1) if binary else (1, 5)
    if binary:
        before, after = before > 3, after > 3
    moved = change(before=before, after=after, cluster=cluster, ends=ends)
    back = change(before=after, after=before, cluster=cluster, ends=ends)
    assert back.value == pytest.approx(-moved.value)
    if moved.interval is None:
        assert moved.reason == back.reason != ""
    else:
        most = ends[1] - ends[0]
        assert -most <= moved.interval.low <= moved.value <= moved.interval.high <= most
        assert (back.interval.low, back.interval.high) == pytest.approx((-moved.interval.high, -moved.interval.low))


def test_rows_that_repeat_each_other_tell_no_more_than_one_of_them():
    before, after = np.array([1] * 20 + [0] * 20), np.array([1] * 12 + [0] * 8 + [1] * 16 + [0] * 4)
    single = change(before=before, after=after, cluster=np.arange(40), ends=(0, 1))
    five = change(
        before=np.repeat(before, 5), after=np.repeat(after, 5), cluster=np.repeat(np.arange(40), 5), ends=(0, 1)
    )
    widths = [estimate.interval.high - estimate.interval.low for estimate in (single, five)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_swapping_the_two_turns_the_difference_and_keeps_p(rows):
    a, b, cluster = (np.array(column) for column in zip(*rows, strict=True))
    one = difference(first=a, second=b, cluster=cluster, rng=np.random.default_rng(1), flips=200)
    other = difference(first=b, second=a, cluster=cluster, rng=np.random.default_rng(1), flips=200)
    assert one.statistic == pytest.approx(-other.statistic)
    assert one.p == other.p
    assert 0 < one.p <= 1


def test_no_items_in_common_is_refused():
    with pytest.raises(InvalidCount):
        difference(first=[], second=[], cluster=[], rng=np.random.default_rng(1))
