import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.classification import (
    FEW_OF_CLASS,
    NO_PAIRS,
    class_scores,
    macro_f1,
    macro_precision,
    macro_recall,
    pair_scores,
)
from stats.proportions import CLUSTERED_WILSON, FEW_GROUPS, WILSON, t_quantile, wilson
from stats.results import LengthMismatch, UnknownVerdict
from stats.verdicts import VERDICTS

verdicts = st.sampled_from([*VERDICTS, None])


def scores(reference, prediction, *, ties, cluster=None, stratum=None):
    cluster = np.arange(len(reference)) if cluster is None else cluster
    return pair_scores(reference=reference, prediction=prediction, cluster=cluster, ties=ties, stratum=stratum)


def test_macro_scores_are_those_computed_by_hand():
    table = np.array([[5.0, 1, 0], [2, 3, 1], [0, 0, 4]])
    assert macro_f1(table) == pytest.approx((10 / 13 + 6 / 10 + 8 / 9) / 3)
    assert macro_recall(table) == pytest.approx((5 / 6 + 3 / 6 + 1) / 3)
    assert macro_precision(table) == pytest.approx((5 / 7 + 3 / 4 + 4 / 5) / 3)


def test_a_class_that_neither_side_has_does_not_count():
    table = np.array([[3.0, 1, 0], [0, 4, 0], [0, 0, 0]])
    assert macro_recall(table) == pytest.approx((3 / 4 + 1) / 2)


def test_a_class_that_only_the_prediction_has_counts_with_nothing_right():
    table = np.array([[3.0, 0, 1], [0, 4, 0], [0, 0, 0]])
    assert macro_recall(table) == pytest.approx((3 / 4 + 1 + 0) / 3)
    assert macro_f1(table) == pytest.approx((6 / 7 + 1 + 0) / 3)
    assert macro_precision(table.T) == pytest.approx(macro_recall(table))


def test_with_ties_an_undecided_verdict_counts_as_a_tie():
    got = scores(["first", "tie", "undecided", "second"], ["first", "undecided", "tie", "first"], ties=True)
    assert got.labels == ("first", "second", "tie")
    assert got.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 2]]
    assert (got.accuracy.value, got.accuracy.n) == (0.75, 4)


def test_without_ties_a_pair_is_dropped_where_either_is_a_tie_or_undecided():
    got = scores(
        ["first", "tie", "second", "first", "second"], ["first", "first", "undecided", "second", "second"], ties=False
    )
    assert got.confusion.tolist() == [[1, 1], [0, 1]]
    assert got.accuracy.n == got.f1.n == got.recall.n == 3


def test_a_missing_verdict_drops_the_pair():
    got = scores(["first", None, "second"], ["first", "first", np.nan], ties=True)
    assert got.accuracy.n == 1


def test_accuracy_is_wilson_with_one_row_per_cluster_and_clustered_otherwise():
    reference, prediction = ["first"] * 4 + ["second"] * 4, ["first"] * 3 + ["second"] * 4 + ["first"]
    assert scores(reference, prediction, ties=True).accuracy.method == WILSON
    shared = scores(reference * 4, prediction * 4, ties=True, cluster=np.arange(32) // 3)
    assert shared.accuracy.method == CLUSTERED_WILSON
    few = scores(reference, prediction, ties=True, cluster=[0, 1, 2, 3] * 2)
    for estimate in (few.accuracy, few.f1, few.recall):
        assert (estimate.value is None, estimate.interval, estimate.reason) == (False, None, FEW_GROUPS)


def test_a_faultless_judge_has_an_interval_below_1():
    got = scores(["first", "second"] * 10, ["first", "second"] * 10, ties=False)
    for estimate in (got.accuracy, got.f1, got.recall):
        assert estimate.value == 1
        assert estimate.interval.high == 1
    assert got.accuracy.interval == wilson(successes=20, n=20)
    # Of as many groups, with t instead of z.
    assert got.f1.interval.low == pytest.approx(20 / (20 + t_quantile(0.95, 19) ** 2))
    assert got.f1.interval.low == pytest.approx(0.8203, abs=1e-4)


def test_no_pair_that_counts_gives_none_with_a_reason():
    got = scores(["tie", "first"], ["first", None], ties=False)
    assert (got.accuracy.value, got.f1.value, got.recall.value) == (None, None, None)
    assert got.f1.reason == NO_PAIRS
    assert got.accuracy.reason
    assert got.confusion.tolist() == [[0, 0], [0, 0]]


def test_the_error_of_a_macro_score_is_that_of_leaving_out_one_group_at_a_time():
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(60), 4)
    reference = np.array(VERDICTS[:3])[rng.integers(0, 3, 240)]
    prediction = np.where(rng.random(240) < 0.6, reference, np.array(VERDICTS[:3])[rng.integers(0, 3, 240)])
    whole = scores(reference, prediction, ties=True, cluster=cluster)
    for name in ("f1", "recall"):
        score = getattr(whole, name)
        without = [
            getattr(scores(reference[cluster != g], prediction[cluster != g], ties=True), name).value for g in range(60)
        ]
        error = np.sqrt(59 / 60 * np.square(np.array(without) - score.value).sum())
        assert score.se == pytest.approx(error)
        # Wilson's on the effective number of rows: v (1 - v) / SE², t(59).
        effective = score.value * (1 - score.value) / error**2
        expected = wilson(successes=score.value * effective, n=effective, df=59)
        assert (score.interval.low, score.interval.high) == pytest.approx((expected.low, expected.high))
        # The bootstrap over groups (Efron 1979) spreads as far.
        drawn = rng.integers(0, 60, (400, 60))
        tables = np.zeros((60, 3, 3))
        np.add.at(tables, (cluster, *(np.searchsorted(VERDICTS[:3], column) for column in (reference, prediction))), 1)
        spread = {"f1": macro_f1, "recall": macro_recall}[name](tables[drawn].sum(axis=1)).std()
        assert error == pytest.approx(spread, rel=0.15)


def test_each_score_over_repeats_is_the_mean_of_those_of_the_repeats():
    rng = np.random.default_rng(3)
    people = np.array(VERDICTS[:3])[rng.integers(0, 3, 60)]
    repeats = [np.where(rng.random(60) < right, people, "first") for right in (0.5, 0.9)]
    pooled = scores(
        np.tile(people, 2),
        np.concatenate(repeats),
        ties=True,
        cluster=np.tile(np.arange(60), 2),
        stratum=np.repeat([0, 1], 60),
    )
    each = [scores(people, repeat, ties=True) for repeat in repeats]
    for name in ("accuracy", "f1", "recall"):
        estimate = getattr(pooled, name)
        assert estimate.value == pytest.approx(np.mean([getattr(one, name).value for one in each]))
        assert (estimate.groups, estimate.interval is None) == (60, False)


@given(st.lists(st.tuples(verdicts, verdicts, st.integers(0, 6)), max_size=40), st.booleans(), st.randoms())
def test_every_score_lies_within_its_interval_and_does_not_depend_on_the_order_of_rows(rows, ties, random):
    first = scores([r[0] for r in rows], [r[1] for r in rows], ties=ties, cluster=[r[2] for r in rows])
    for estimate in (first.accuracy, first.f1, first.recall):
        assert (estimate.value is None) == (estimate.n == 0)
        if estimate.interval:
            assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 1
        else:
            assert estimate.reason
    random.shuffle(rows)
    again = scores([r[0] for r in rows], [r[1] for r in rows], ties=ties, cluster=[f"s{r[2]}" for r in rows])
    assert again.f1 == first.f1
    assert again.recall == first.recall


@given(st.lists(st.tuples(st.sampled_from(VERDICTS[:2]), st.sampled_from(VERDICTS[:2])), min_size=3, max_size=40))
def test_turning_every_pair_round_changes_no_score(rows):
    turn = {"first": "second", "second": "first"}
    straight = scores([r[0] for r in rows], [r[1] for r in rows], ties=True)
    turned = scores([turn[r[0]] for r in rows], [turn[r[1]] for r in rows], ties=True)
    assert turned.f1.value == pytest.approx(straight.f1.value)
    assert turned.recall.value == pytest.approx(straight.recall.value)
    assert turned.accuracy == straight.accuracy


def test_words_outside_the_vocabulary_and_unequal_columns_are_refused():
    with pytest.raises(UnknownVerdict, match="'A' is none of first"):
        scores(["A"], ["first"], ties=True)
    with pytest.raises(LengthMismatch):
        scores(["first"], ["first", "second"], ties=True)


def test_labels_of_any_kind_have_the_classes_that_occur_and_no_interval_where_one_is_rare():
    reference = ["cat"] * 12 + ["dog"] * 12 + [None]
    prediction = ["cat"] * 10 + ["dog"] * 13 + ["eel"] + ["dog"]
    got = class_scores(reference=reference, prediction=prediction, cluster=np.arange(25))
    assert got.labels == ("cat", "dog", "eel")
    assert got.confusion.tolist() == [[10, 2, 0], [0, 11, 1], [0, 0, 0]]
    assert (got.accuracy.value, got.accuracy.n) == (21 / 24, 24)
    assert got.f1.value == pytest.approx((20 / 22 + 22 / 25 + 0) / 3)
    assert (got.f1.interval, got.f1.reason) == (None, FEW_OF_CLASS)
    assert got.accuracy.interval
    often = class_scores(reference=reference, prediction=[*prediction[:23], "dog", None], cluster=np.arange(25))
    assert often.f1.interval.low < often.f1.value < often.f1.interval.high


@given(st.lists(st.tuples(verdicts, verdicts, st.integers(0, 9)), min_size=1, max_size=60))
def test_votes_are_compared_alike_as_verdicts_and_as_labels(rows):
    first, second, cluster = zip(*rows, strict=True)
    decided = [[None if word in ("tie", "undecided") else word for word in side] for side in (first, second)]
    of_pairs = scores(first, second, ties=False, cluster=np.array(cluster))
    of_labels = class_scores(reference=decided[0], prediction=decided[1], cluster=np.array(cluster))
    for name in ("accuracy", "f1", "recall", "precision"):
        assert getattr(of_pairs, name).value == pytest.approx(getattr(of_labels, name).value)


def test_a_perfect_score_over_unequal_groups_is_no_surer_than_groups_that_weigh_as_much():
    classes = np.array(["first", "second"] * 60)
    sizes = np.array([40, *[4] * 20])
    f1 = scores(classes, classes, ties=False, cluster=np.repeat(np.arange(21), sizes)).f1
    weigh = 120**2 / float(sizes @ sizes)
    assert f1.value == 1
    assert f1.interval.low == pytest.approx(wilson(successes=weigh, n=weigh, df=weigh - 1).low)
