"""ChEF's desiderata as numbers, against independent loops and the paper's own rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import desiderata
from stats.results import Estimate, Interval, InvalidCount

# Table 11 of ChEF (arXiv 2311.02692) on ScienceQA, where chance is 35.80: accuracy, accuracy corrupted, RRM in %.
SCIENCEQA = {
    "LLaVA": (46.55, 43.45, 71.13),
    "LAMM": (52.75, 43.89, 47.75),
    "MiniGPT-4": (47.00, 42.29, 57.95),
    "mPLUG": (48.44, 42.87, 55.93),
    "Otter": (50.22, 44.19, 58.16),
    "LAv2": (54.34, 49.31, 72.89),
    "InstructBLIP": (55.18, 49.72, 71.83),
    "Shikra": (45.21, 39.17, 35.81),
    "Kosmos-2": (34.60, 35.48, 26.67),
}
WEIGHTS = (2017, 1176)  # samples of ScienceQA and MMBench, which the paper's overalls follow


def rrm(*, corrupted, accuracy, chance):
    return desiderata.relative(part=[corrupted - chance], whole=[accuracy - chance], cluster=[0], method="RRM").value


@pytest.mark.parametrize("model", SCIENCEQA)
def test_rrm_is_the_papers(model):
    accuracy, corrupted, printed = SCIENCEQA[model]
    # Its percentages have two digits: what lies above chance is known to half a hundredth of a point.
    slack = 100 * 0.01 * (1 + printed / 100) / abs(accuracy - 35.80)
    assert 100 * rrm(corrupted=corrupted, accuracy=accuracy, chance=35.80) == pytest.approx(printed, abs=slack)


def test_the_papers_rrm_of_instructblip_on_mmbench_is_a_misprint():
    # Table 11 prints 52.50, the value of the row above; its own accuracies give 74.6.
    assert 100 * rrm(corrupted=56.04, accuracy=65.73, chance=27.57) == pytest.approx(74.6, abs=0.05)


def test_an_overall_is_the_mean_weighted_by_samples():
    # LLaVA in Tables 10 and 11: RRM 71.13 and 50.03 give 63.36; MR 46.23 and 39.60 give 43.79.
    for parts, printed in (((71.13, 50.03), 63.36), ((46.23, 39.60), 43.79)):
        estimates = [Estimate(value / 100, n, None, "share") for value, n in zip(parts, WEIGHTS, strict=True)]
        assert 100 * desiderata.weighted(estimates, WEIGHTS).value == pytest.approx(printed, abs=0.005)


def test_riam_is_the_mean_gain_over_what_lies_above_chance():
    gains = [shots - 0.5 for shots in (0.5, 0.6, 0.7)]
    found = desiderata.relative(part=gains, whole=[0.5 - 0.25] * 3, cluster=[0] * 3, method="RIAM")
    assert found.value == pytest.approx(0.1 / 0.25)


def plain_ece(confidence, right, key):
    order = sorted(range(len(right)), key=lambda at: (confidence[at], key[at]))
    size, rest = divmod(len(order), 10)
    ece, begin = 0.0, 0
    for number in range(10):
        end = begin + size + (number < rest)
        part = order[begin:end]
        if part:
            gap = sum(confidence[at] for at in part) / len(part) - sum(right[at] for at in part) / len(part)
            ece += len(part) / len(order) * abs(gap)
        begin = end
    return ece


@given(st.lists(st.tuples(st.sampled_from([0.25, 0.4, 0.4, 0.9, 1.0]), st.booleans()), min_size=1, max_size=60))
def test_ece_is_that_of_a_plain_loop_whatever_the_order_of_the_rows(rows):
    confidence, right = [row[0] for row in rows], [int(row[1]) for row in rows]
    key = [f"q{at:03}" for at in range(len(rows))]
    expected = plain_ece(confidence, right, key)
    for order in (list(range(len(rows))), list(reversed(range(len(rows))))):
        result = desiderata.calibration(
            confidence=[confidence[at] for at in order],
            right=[right[at] for at in order],
            key=[key[at] for at in order],
            cluster=[key[at] for at in order],
            rng=np.random.default_rng(0),
        )
        assert 1 - result.score.value == pytest.approx(expected, abs=1e-12)
        assert sum(part.n for part in result.bins) == len(rows)
        interval = result.score.interval
        assert interval is None or 0 <= interval.low <= result.score.value <= interval.high <= 1


def test_the_error_of_an_ece_is_that_of_leaving_out_each_group_with_its_bins_held():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(12), np.arange(4, 16))  # groups of different sizes
    n = len(cluster)
    confidence = rng.uniform(0.3, 1, n)
    right = (rng.random(n) < confidence - 0.2).astype(int)
    result = desiderata.calibration(
        confidence=confidence,
        right=right,
        key=[f"{at:03}" for at in range(n)],
        cluster=cluster,
        rng=np.random.default_rng(0),
    )
    bins = np.array_split(np.argsort(confidence), 10)
    without = []
    for group in range(12):
        off = 0.0
        for rows in bins:
            kept = rows[cluster[rows] != group]
            off += abs(confidence[kept].sum() - right[kept].sum())
        without.append(off / (cluster != group).sum())
    assert result.score.se == pytest.approx(11 / 12**0.5 * np.std(without, ddof=1))


def test_a_calibrated_model_shows_the_ece_that_is_said_of_it():
    rng = np.random.default_rng(5)
    confidence = rng.uniform(0.3, 1, 500)
    shown = []
    for _ in range(200):
        result = desiderata.calibration(
            confidence=confidence,
            right=rng.random(500) < confidence,
            key=[f"{at:03}" for at in range(500)],
            cluster=np.arange(500),
            rng=np.random.default_rng(1),
        )
        shown.append(1 - result.score.value)
    assert np.mean(shown) == pytest.approx(result.calibrated, rel=0.06)
    assert np.mean(np.array(shown) < result.calibrated_high) == pytest.approx(0.95, abs=0.05)


def test_without_answers_there_is_no_calibration():
    result = desiderata.calibration(confidence=[], right=[], key=[], cluster=[], rng=np.random.default_rng(0))
    assert (result.score.value, result.bins) == (None, ())


def test_a_ratio_of_means_has_the_interval_that_fieller_gives():
    rng = np.random.default_rng(2)
    whole = rng.normal(1.0, 1.0, 400)
    part = 0.5 * whole + rng.normal(0, 0.5, 400)
    estimate = desiderata.relative(part=part, whole=whole, cluster=np.arange(400), method="RRM")
    # Independent rows, from the textbook: the roots of (A - rB)² = t² Var(A - rB), found by looking.
    ratios = np.linspace(0.2, 0.8, 200_001)
    a, b = part.mean(), whole.mean()
    cov = np.cov(part, whole) / 400
    inside = (a - ratios * b) ** 2 <= 1.965927**2 * (cov[0, 0] - 2 * ratios * cov[0, 1] + ratios**2 * cov[1, 1])
    assert estimate.value == pytest.approx(a / b)
    assert estimate.interval.low == pytest.approx(ratios[inside].min(), abs=2e-5)
    assert estimate.interval.high == pytest.approx(ratios[inside].max(), abs=2e-5)


def test_where_the_accuracy_may_be_chance_there_is_no_ratio_and_the_reason_is_said():
    rng = np.random.default_rng(2)
    whole = (rng.random(300) < 0.25) - 0.25
    estimate = desiderata.relative(part=whole, whole=whole, cluster=np.arange(300), method="RRM")
    assert estimate.value is None
    assert "chance" in estimate.reason


def test_below_eight_groups_a_ratio_has_a_value_and_no_interval():
    whole = np.array([0.75, 0.75, -0.25, 0.75, 0.75])
    estimate = desiderata.relative(part=whole, whole=whole, cluster=np.arange(5), method="RRM")
    assert (estimate.value, estimate.interval) == (1.0, None)


def test_the_interval_of_an_overall_is_narrower_than_those_of_its_scenarios():
    parts = [
        Estimate(value, 100, Interval(value - 0.1, value + 0.2, 0.95, "x"), "x", groups=100) for value in (0.4, 0.6)
    ]
    overall = desiderata.weighted(parts, (1, 1))
    assert (overall.value, overall.n) == (0.5, 200)
    assert overall.interval.low == pytest.approx(0.5 - 0.1 / 2**0.5)
    assert overall.interval.high == pytest.approx(0.5 + 0.2 / 2**0.5)


def test_an_overall_without_one_of_its_scenarios_is_none():
    parts = [Estimate(0.4, 100, None, "x"), Estimate(None, 0, None, "x", "at chance")]
    assert desiderata.weighted(parts, (1, 1)).value is None
    assert desiderata.weighted(parts, (1, 1)).reason == "at chance"


@given(st.lists(st.floats(-700, 0), min_size=1, max_size=8))
def test_confidences_add_up_to_one_and_keep_the_order(logs):
    shares = desiderata.softmax(logs)
    assert sum(shares) == pytest.approx(1)
    assert logs[shares.index(max(shares))] == pytest.approx(max(logs), abs=1e-12)


def test_a_pool_of_which_nothing_was_returned_has_no_confidences():
    with pytest.raises(InvalidCount):
        desiderata.softmax([float("-inf")])


def test_the_spread_is_the_deviation_of_values_from_their_mean():
    spread = desiderata.spread([0.5, 0.6, 0.7])
    assert (spread.mean, spread.sd, spread.largest, spread.n) == pytest.approx((0.6, 0.1, 0.1, 3))
    assert desiderata.spread([0.5]) is None


@pytest.mark.parametrize(
    ("said", "credit"),
    [(["animal", "dog", "poodle"], 1), (["animal", "dog", "husky"], 2 / 3), (["animal"], 1 / 3), (["plant", "dog"], 0)],
)
def test_down_a_tree_each_right_step_counts(said, credit):
    assert desiderata.tree_credit(said, ["animal", "dog", "poodle"]) == pytest.approx(credit)
