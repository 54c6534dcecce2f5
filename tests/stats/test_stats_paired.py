import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.paired import MCNEMAR, NEWCOMBE, SIGN_FLIPS, change, difference, mcnemar, newcombe
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
    found = newcombe(both=36, only_first=12, only_second=2, neither=0)
    assert (round(found.low, 4), round(found.high, 4)) == (0.0569, 0.3404)
    before, after = [1] * 36 + [0] * 12 + [1] * 2, [1] * 48 + [0] * 2
    moved = change(before=before, after=after, cluster=range(50))
    assert (moved.value, moved.n, moved.interval) == (pytest.approx(0.2), 50, found)
    certain = change(before=[0] * 10, after=[1] * 10, cluster=range(10))
    assert (certain.value, certain.method) == (1, NEWCOMBE)
    assert 0.5 < certain.interval.low < certain.interval.high == 1
    shared = change(before=[0, 0, 1, 0], after=[1, 1, 1, 0], cluster=[1, 1, 2, 2])
    assert (shared.value, shared.n, shared.method) == (0.5, 4, "cluster-t")


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
