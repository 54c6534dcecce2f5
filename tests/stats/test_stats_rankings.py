import itertools
import re

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


def places(order):
    """The ranking of answers A, B, ... written best first, those in brackets sharing a rank."""
    levels, at = {}, 0
    for level in re.findall(r"\(\w+\)|\w", order):
        answers = level.strip("()")
        levels |= dict.fromkeys(answers, at + (len(answers) - 1) / 2)
        at += len(answers)
    return tuple(levels[answer] for answer in sorted(levels))


def between(first, second):
    (value,) = distances(first=[[places(order) for order in first]], second=[[places(order) for order in second]])
    return value


def test_the_mean_carries_n_and_an_interval_by_sample():
    orders = ["ABCD", "ABCD", "BACD", "DCBA"], ["ABCD", "BACD", "ABCD", "ABCD"]
    first, second = ([(places(order),) for order in side] for side in orders)
    assert list(distances(first=first, second=second)) == [0, 0.5, 0.5, 1]
    few = mean_distance(first=first, second=second, cluster=[1, 1, 2, 3])
    assert (few.value, few.n, few.interval, few.reason) == (0.5, 4, None, FEW_GROUPS)
    many = mean_distance(first=first * 10, second=second * 10, cluster=[row // 2 for row in range(40)])
    assert (many.value, many.groups) == (0.5, 20)
    assert 0 < many.interval.low < 0.5 < many.interval.high < 1


def test_a_judge_that_copies_the_order_it_is_shown_is_as_far_as_its_orders_are():
    # Shown ABC and CBA, it answers ABC and CBA. By mean place these tie, and a tie in stored order would be distance 0.
    assert between(["ABC", "CBA"], ["ABC"]) == pytest.approx((0 + 2 / 3) / 2)


def test_ties_stand_for_every_order_that_they_allow():
    assert between(["(AB)C"], ["ABC"]) == pytest.approx((0 + 2 / 3) / 2)
    assert between(["(AB)C"], ["(AB)C"]) == pytest.approx((0 + 2 / 3 + 2 / 3 + 0) / 4)
    every = [distance("ABCD", order) for order in itertools.permutations("ABCD")]
    assert between(["(ABCD)"], ["ABCD"]) == pytest.approx(sum(every) / 24)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=4), st.permutations(range(4)))
def test_the_order_in_which_answers_are_stored_changes_nothing(levels, order):
    first, second = (tuple(map(float, levels)), tuple(map(float, range(len(levels)))))
    turn = [place for place in order if place < len(levels)]
    (before,) = distances(first=[[first]], second=[[second]])
    (after,) = distances(first=[[tuple(first[t] for t in turn)]], second=[[tuple(second[t] for t in turn)]])
    assert after == pytest.approx(before)


def test_of_too_many_orders_a_fixed_draw_is_taken():
    tied, ranked = (0.0,) * 8, tuple(map(float, range(8)))
    drawn = [distances(first=[[tied]], second=[[ranked]])[0] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert 0.7 < drawn[0] < 0.9


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InvalidCount):
        distance("", "")
    with pytest.raises(LengthMismatch):
        distances(first=[[(0.0,)]], second=[])
    with pytest.raises(InvalidCount):
        distances(first=[[]], second=[[(0.0,)]])
    with pytest.raises(InvalidCount):
        distances(first=[[(0.0, 1.0)]], second=[[(0.0,)]])
