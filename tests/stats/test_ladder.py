"""The Ladder tells steps: never more than the score, never one that is not above the best by a whole step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import ladder

MARKS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 12)), min_size=1, max_size=200)


@given(MARKS, st.floats(0, 1))
def test_what_is_told_is_above_the_best_and_at_most_the_score_in_steps_of_ten_samples(marks, best):
    hits, base, cluster = (np.array(column) for column in zip(*marks, strict=True))
    size = ladder.step(hits=hits, base=base, cluster=cluster)
    assert size >= ladder.LEAST
    assert size % ladder.LEAST == 0
    share = ladder.told(hits=hits, base=base, best=best, cluster=cluster)
    if share is None:
        assert hits.sum() <= best * len(hits) + size + 1e-6
    else:
        assert best < share <= hits.mean() + 1e-12
        assert share * len(hits) / ladder.LEAST == pytest.approx(round(share * len(hits) / ladder.LEAST))


@given(MARKS)
def test_no_order_of_the_samples_matters(marks):
    shuffled = marks[::-1]
    told = [
        ladder.told(hits=[m[0] for m in of], base=[m[1] for m in of], best=0.2, cluster=[m[2] for m in of])
        for of in (marks, shuffled)
    ]
    assert told[0] == told[1]


def test_a_difference_within_three_standard_errors_is_not_told():
    base = np.repeat([1, 0], 100)
    assert ladder.step(hits=1 - base, base=base, cluster=np.arange(200)) == 50  # 3 x sqrt(200) = 42.4, and G/(G-1)
    assert ladder.step(hits=base, base=base, cluster=np.arange(200)) == 10


def test_samples_of_one_picture_count_as_one():
    base = np.repeat([0, 1], [50, 50])
    alone, together = np.arange(100), np.maximum(np.arange(100), 49)
    assert ladder.told(hits=np.ones(100), base=base, best=0.5, cluster=alone) == 1.0
    assert ladder.told(hits=np.ones(100), base=base, best=0.5, cluster=together) is None


def test_nothing_is_told_of_no_samples():
    assert ladder.told(hits=[], base=[], best=0.0, cluster=[]) is None


def test_of_scores_by_their_share_alone_a_step_is_told_and_what_is_no_better_is_not():
    assert ladder.step_of(420) == 50
    assert ladder.told_in_turn([0.61, 0.66, 0.75], 420) == [pytest.approx(250 / 420), None, pytest.approx(300 / 420)]
    assert ladder.told_in_turn([0.0, 1.0], 40) == [0.0, 1.0]
    assert ladder.told_in_turn([1.0, 0.5], 9) == [None, None], "of fewer than ten"
    assert ladder.told_in_turn([], 420) == []
