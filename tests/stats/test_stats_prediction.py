import numpy as np
import pytest

from stats.prediction import prediction_powered, rogan_gladen
from stats.results import InvalidCount

Y = [int(digit) for digit in "1110010110"]
F = [int(digit) for digit in "1100011110"]
U = [1] * 60 + [0] * 40


def test_prediction_powered_inference_gives_its_reference_case():
    """theta .6; lambda 1: .30666 to .89334; tuned: .34766 to .85234 (arXiv 2301.09633, 2311.01453)."""
    plain = prediction_powered(labels=Y, judged=F, unlabelled=U, weight=1).estimate
    assert plain.value == pytest.approx(0.6)
    assert (plain.interval.low, plain.interval.high) == pytest.approx((0.30666, 0.89334), abs=1e-5)
    tuned = prediction_powered(labels=Y, judged=F, unlabelled=U)
    assert tuned.estimate.value == pytest.approx(0.6)
    assert (tuned.estimate.interval.low, tuned.estimate.interval.high) == pytest.approx((0.34766, 0.85234), abs=1e-5)
    assert 0 < tuned.weight < 1


def test_a_judge_that_says_the_same_of_everything_gets_no_weight():
    found = prediction_powered(labels=Y, judged=[1] * 10, unlabelled=[1] * 50)
    assert found.weight == 0
    assert found.estimate.value == pytest.approx(0.6)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    draw, covered = np.random.default_rng(4), 0
    for _ in range(400):
        truth = draw.random(600) < 0.6
        judged = np.where(draw.random(600) < 0.85, truth, ~truth)
        found = prediction_powered(labels=truth[:100], judged=judged[:100], unlabelled=judged[100:]).estimate.interval
        covered += found.low <= 0.6 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_rogan_gladen_gives_its_reference_case():
    """p = .5, Sp = .85, Se = .9: .466667 (Rogan and Gladen 1978)."""
    found = rogan_gladen(positive=50, n=100, sensitivity=(90, 100), specificity=(85, 100))
    assert found.value == pytest.approx(0.466667, abs=1e-6)
    assert found.interval.low < found.value < found.interval.high


def test_a_judge_no_better_than_chance_corrects_nothing():
    found = rogan_gladen(positive=50, n=100, sensitivity=(50, 100), specificity=(50, 100))
    assert found.value is None
    assert "chance" in found.reason


def test_too_little_is_refused():
    with pytest.raises(InvalidCount):
        prediction_powered(labels=[1], judged=[1], unlabelled=[1])
    with pytest.raises(InvalidCount):
        rogan_gladen(positive=5, n=4, sensitivity=(1, 1), specificity=(1, 1))
