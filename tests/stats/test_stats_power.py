from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from stats.power import MOST_TIMES, Plan, detectable, times_as_many
from stats.ranks import behind, places_of_means
from stats.results import InvalidCount


def test_the_multiplier_is_that_of_the_textbooks():
    """(1.960 + 0.842)² = 7.85 at 5% and 80% power, so that two groups need 16 / d² each (Lehr 1992, Statistics in
    Medicine 11:1099), and 10.5 at 90%.
    """
    assert detectable(1) ** 2 == pytest.approx(7.849, abs=5e-4)
    assert 2 * detectable(1) ** 2 == pytest.approx(16, rel=0.02)
    assert detectable(1, power=0.9) ** 2 == pytest.approx(10.507, abs=5e-4)


def test_a_plan_without_ties_is_that_of_two_independent_shares():
    """Fleiss, Levin and Paik 2003, without correction: n = 2 p q (z + z)² / d² of each, at p = .5 and d = .1 392.4."""
    plan = Plan(items=393, alike=1.0)
    assert plan.items_for(0.1) == 393
    assert plan.detectable() == pytest.approx(0.1, abs=2e-4)


def test_with_as_many_items_as_a_difference_needs_that_difference_is_found_in_four_of_five_sets():
    """Two models with labels by two people on the same items, whose right verdicts are alike by .4 within an item."""
    rng, difference, alike = np.random.default_rng(4), 0.12, 0.4
    plan = Plan(items=1, labels=2, rate=0.5, alike=alike)
    n, found = plan.items_for(difference), 0
    for _ in range(600):
        rates = []
        for rate in (0.5 + difference / 2, 0.5 - difference / 2):
            own = rng.random(n) < rate
            labels = np.where(rng.random((2, n)) < sqrt(alike), own, rng.random((2, n)) < rate)
            rates.append(labels.mean(axis=0))
        change = rates[0] - rates[1]
        found += abs(change.mean()) / (change.std(ddof=1) / sqrt(n)) > norm.ppf(0.975)
    assert found / 600 == pytest.approx(0.8, abs=0.05)


def test_more_labels_help_the_less_the_more_alike_they_are_and_shared_pictures_cost():
    plan = Plan(items=100, labels=1, alike=0.5)
    wide = plan.detectable()
    assert Plan(items=100, labels=100, alike=0.5).detectable() == pytest.approx(wide * sqrt(0.505))
    assert Plan(items=100, labels=100, alike=1.0).detectable() == pytest.approx(Plan(items=100, alike=1.0).detectable())
    assert Plan(items=400, alike=0.5).detectable() == pytest.approx(wide / 2)
    assert Plan(items=100, alike=0.5, in_group=4).detectable() > wide
    assert Plan(items=100, alike=0.5, ties=0.3).detectable() < wide
    assert Plan(items=100, alike=0.5, together=0.5).detectable() < wide


@pytest.mark.parametrize(
    "wrong", [{"items": 0}, {"labels": 0}, {"rate": 1.5}, {"rate": 0.9, "ties": 0.3}, {"alike": -0.1}]
)
def test_a_plan_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidCount):
        Plan(**{"items": 10} | wrong)
    with pytest.raises(InvalidCount):
        Plan(items=10).items_for(0)


def test_how_many_times_as_many_items_follows_from_what_was_seen():
    assert times_as_many(0.1, 0.1) == pytest.approx(7.849, abs=5e-4)
    assert times_as_many(-0.1, 0.1) == times_as_many(0.1, 0.1)
    assert times_as_many(0.5, 0.1) == 1  # seen already
    assert times_as_many(0.0, 0.1) is None
    assert times_as_many(0.1, 0.1 * sqrt(1.01 * MOST_TIMES / 7.849)) is None


def test_each_model_stands_beside_the_next_stronger_with_the_error_of_their_difference():
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    found = behind(theta=np.array([1.0, 3.0, 2.5]), covariance=covariance, df=np.array([9.0, 5.0, 7.0]))
    assert found[1] is None
    assert (found[2].other, found[2].difference, found[2].error, found[2].df) == (1, 0.5, sqrt(3), 5)
    assert (found[0].other, found[0].difference, found[0].error, found[0].df) == (2, 1.5, sqrt(5), 7)
    assert behind(theta=np.array([1.0, 3.0]), covariance=covariance[:2, :2], df=0.0) == [None, None]


def test_what_means_share_on_the_same_items_is_not_in_the_error_of_their_difference():
    rng = np.random.default_rng(2)
    hard, rest = 5 * rng.normal(size=60), rng.normal(size=(2, 60))
    values = hard + rest
    places = places_of_means(
        values=values.ravel(), model=np.repeat([0, 1], 60), models=2, cluster=np.tile(np.arange(60), 2), rng=rng
    )
    gap = next(place.behind for place in places if place.behind)
    assert gap.error == pytest.approx((rest[0] - rest[1]).std(ddof=1) / sqrt(60))
