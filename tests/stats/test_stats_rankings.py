import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.proportions import FEW_GROUPS
from stats.rankings import distance, distances, mean_distance
from stats.results import InvalidCount, LengthMismatch


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [("kitten", "sitting", 3 / 7), ("ABCD", "BACD", 0.5), ("ABCD", "DCBA", 1.0), ("ABCD", "ABCD", 0.0)],
)
def test_the_distance_of_known_pairs(first, second, value):
    """kitten/sitting: Levenshtein's textbook case; rankings as in MLLM-as-a-Judge (arXiv 2402.04788, 3.2)."""
    assert distance(first, second) == pytest.approx(value)


@given(st.permutations("ABCD"), st.permutations("ABCD"))
def test_it_is_symmetric_and_relabelling_changes_nothing(first, second):
    renamed = dict(zip("ABCD", "DABC", strict=True))
    assert distance(first, second) == distance(second, first)
    assert distance(first, second) == distance([renamed[x] for x in first], [renamed[x] for x in second])


def test_the_mean_carries_n_and_an_interval_by_sample():
    first, second = ["ABCD", "ABCD", "BACD", "DCBA"], ["ABCD", "BACD", "ABCD", "ABCD"]
    assert list(distances(first=first, second=second)) == [0, 0.5, 0.5, 1]
    few = mean_distance(first=first, second=second, cluster=[1, 1, 2, 3])
    assert (few.value, few.n, few.interval, few.reason) == (0.5, 4, None, FEW_GROUPS)
    many = mean_distance(first=first * 10, second=second * 10, cluster=[row // 2 for row in range(40)])
    assert (many.value, many.groups) == (0.5, 20)
    assert 0 < many.interval.low < 0.5 < many.interval.high < 1


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InvalidCount):
        distance("", "")
    with pytest.raises(LengthMismatch):
        distances(first=["A"], second=[])
