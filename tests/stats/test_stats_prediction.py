from dataclasses import replace

import numpy as np
import pytest

from stats.prediction import FEWEST_LABELLED_GROUPS, FEWEST_LABELS, missing_labels, places_of, prediction_powered
from stats.proportions import ONE_OUTWEIGHS
from stats.results import InvalidCount

Y = [int(digit) for digit in "1110010110"]
F = [int(digit) for digit in "1100011110"]
U = [1] * 60 + [0] * 40


def powered(labels, judged, unlabelled, **options):
    """Each row a group of its own, unless `options` say otherwise."""
    n, further = len(labels), len(unlabelled)
    rows = {"cluster": np.arange(n), "unlabelled_cluster": np.arange(n, n + further), "ends": (0, 1)}
    return prediction_powered(labels=labels, judged=judged, unlabelled=unlabelled, **(rows | options))


def test_prediction_powered_inference_gives_its_reference_case():
    """theta .6 at lambda 1 and tuned, lambda 5/14 (arXiv 2301.09633, 2311.01453), its rows ten times over."""
    labels, judged = np.repeat(Y, 10), np.repeat(F, 10)  # every part of the groups has each of the rows
    plain = powered(labels, judged, U * 10, weight=1).estimate
    assert plain.value == pytest.approx(0.6)
    # Variances with divisor n give (.89334 - .30666) / 2 z = .14967 for the rows once: here a tenth of its square, and
    # G/(G-1) for 1,100 groups.
    assert plain.se == pytest.approx(0.14967 / np.sqrt(10) * np.sqrt(1100 / 1099), abs=1e-5)
    tuned = powered(labels, judged, U * 10)
    assert tuned.estimate.value == pytest.approx(0.6)
    together, spread = np.cov(Y, F, ddof=0)[0, 1], np.var(F + U)
    assert tuned.weight == pytest.approx(together / ((1 + 90 / 1000) * spread))  # of nine parts in ten
    assert tuned.estimate.se < plain.se


def test_too_few_labels_have_no_value_and_the_reason_says_how_many_are_missing():
    one_by_one = powered(Y * 4, F * 4, U)
    assert (one_by_one.estimate.value, one_by_one.estimate.interval, one_by_one.weight) == (None, None, None)
    assert one_by_one.estimate.reason.startswith("needs 10 more labels")
    in_pictures = powered(Y * 10, F * 10, U, cluster=np.arange(100) // 5)
    assert in_pictures.estimate.value is None
    assert in_pictures.estimate.reason == "needs labels in 10 more groups (pictures, prompts)"
    assert missing_labels(labels=50, groups=30) == ""
    one_more = "needs 1 more label on items that the judge judged, too and labels in 1 more group (pictures, prompts)"
    assert missing_labels(labels=FEWEST_LABELS - 1, groups=FEWEST_LABELLED_GROUPS - 1) == one_more


def test_a_judge_that_says_the_same_of_everything_gets_no_weight():
    alone = powered(Y * 10, [1] * 100, [1] * 50)
    assert alone.weight == 0
    assert alone.estimate.value == pytest.approx(0.6)


def test_rows_that_repeat_each_other_tell_no_more_than_one_of_them():
    draw = np.random.default_rng(4)
    truth = draw.random(600) < 0.6
    judged = np.where(draw.random(600) < 0.85, truth, ~truth)
    once = powered(truth[:100], judged[:100], judged[100:], weight=0.5).estimate
    labelled, further = np.repeat(np.arange(100), 3), np.repeat(np.arange(100, 600), 3)
    thrice = powered(
        truth[labelled],
        judged[labelled],
        judged[further],
        weight=0.5,
        cluster=labelled,
        unlabelled_cluster=further,
    ).estimate
    assert (thrice.value, thrice.se) == (pytest.approx(once.value), pytest.approx(once.se))
    assert 0 <= thrice.interval.low < thrice.value < thrice.interval.high <= 1


def test_where_one_group_has_nearly_all_labels_there_is_no_interval():
    draw = np.random.default_rng(5)
    truth = draw.random(800) < 0.6
    judged = np.where(draw.random(800) < 0.85, truth, ~truth)

    def of_groups(cluster):
        return powered(truth[:300], judged[:300], judged[300:], cluster=cluster).estimate

    lopsided = of_groups(np.maximum(np.arange(300) - 260, 0))
    assert (lopsided.value is None, lopsided.interval, lopsided.reason) == (False, None, ONE_OUTWEIGHS)
    assert of_groups(np.arange(300) % 40).interval is not None


def test_too_little_is_refused():
    with pytest.raises(InvalidCount):
        powered(Y * 10, F * 10, [])


def two_models(rng, *, gap, groups=60):
    """Two models in the same groups, which are hard for both, with labels in five of six; and what a judge says."""
    hard = rng.normal(size=groups)
    found = []
    for better in (gap, 0.0):
        labels = hard + better + 0.5 * rng.normal(size=groups)
        judged = labels + 0.5 * rng.normal(size=groups)
        labelled = np.arange(groups) < groups * 5 // 6
        found.append(
            prediction_powered(
                labels=labels[labelled],
                judged=judged[labelled],
                unlabelled=judged[~labelled],
                cluster=np.arange(groups)[labelled],
                unlabelled_cluster=np.arange(groups)[~labelled],
                ends=(-9, 9),
            )
        )
    return found


def test_models_are_ranked_by_their_corrected_means_and_what_they_share_cancels():
    rng = np.random.default_rng(1)
    better, worse = two_models(rng, gap=0.6)
    first, second = places_of([better, worse], rng=rng)
    assert (first.rank, second.rank, first.tier, second.tier) == (1, 2, 1, 2)
    assert second.behind.difference == pytest.approx(better.estimate.value - worse.estimate.value)
    assert second.behind.error < 0.8 * np.hypot(better.estimate.se, worse.estimate.se)
    for powered in (better, worse):
        assert np.hypot.reduce(list(powered.influence.values())) == pytest.approx(powered.estimate.se)


def test_of_equal_models_few_are_told_apart():
    rng, told = np.random.default_rng(2), 0
    for _ in range(300):
        first, second = places_of(two_models(rng, gap=0.0), rng=rng)
        told += first.tier != second.tier
    assert told / 300 < 0.09


def test_a_model_without_an_interval_has_a_place_in_the_order_alone():
    powered = two_models(np.random.default_rng(3), gap=0.6)
    unknown = [replace(one, df=0.0) for one in powered]
    assert [place.tier for place in places_of(unknown, rng=np.random.default_rng(0))] == [None, None]
