from random import Random

import numpy as np
import pytest

from stats import elo
from stats.bradley_terry import Votes
from stats.results import InvalidOutcome


def simulated(rng, *, models, votes):
    theta = np.linspace(-0.8, 0.8, models)
    a = rng.integers(0, models, votes)
    b = (a + rng.integers(1, models, votes)) % models
    y = rng.binomial(1, 1 / (1 + np.exp(theta[b] - theta[a]))).astype(float)
    y[rng.random(votes) < 0.2] = 0.5
    return {"a": a, "b": b, "y": y, "models": [f"m{i}" for i in range(models)]}


def plain_bootstrap(votes, *, replicates, seed):
    """FastChat's bootstrap as it stands in its code: resample all votes, pass over them from 1000."""
    draw = Random(seed)
    rows = list(zip(votes["a"].tolist(), votes["b"].tolist(), votes["y"].tolist(), strict=True))
    ratings = []
    for _ in range(replicates):
        current = [1000.0] * len(votes["models"])
        for i, j, outcome in draw.choices(rows, k=len(rows)):
            change = 4 * (outcome - 1 / (1 + 10 ** ((current[j] - current[i]) / 400)))
            current[i] += change
            current[j] -= change
        ratings.append(current)
    return np.quantile(ratings, [0.025, 0.5, 0.975], axis=0)


def test_online_elo_is_that_of_the_pizza_example():
    # The example of evalica's README, at K = 30: pizza beats burger, sushi beats burger, pizza ties sushi.
    ratings = elo.online(a=[0, 2, 0], b=[1, 1, 2], y=[1, 1, 0.5], models=["pizza", "burger", "sushi"], k=30)
    assert {name: round(rating.value, 4) for name, rating in ratings.items()} == {
        "pizza": 1014.9721,
        "burger": 970.6472,
        "sushi": 1014.3807,
    }


def test_online_elo_is_evalicas_on_the_llmfao_votes(llmfao):
    evalica = pytest.importorskip("evalica")
    names = llmfao.attrs["models"]
    winner = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
    expected = evalica.elo(
        llmfao["a"].map(names.__getitem__).tolist(),
        llmfao["b"].map(names.__getitem__).tolist(),
        [winner[y] for y in llmfao["y"]],
    ).scores
    ratings = elo.online(a=llmfao["a"], b=llmfao["b"], y=llmfao["y"], models=names)
    assert [ratings[name].value for name in names] == pytest.approx(expected[names].tolist(), abs=1e-6)
    assert sum(rating.n for rating in ratings.values()) == 2 * 8931


def test_online_elo_depends_on_the_order_of_the_votes():
    votes = {"models": ["x", "y"], "a": [0, 0], "b": [1, 1]}
    assert elo.online(**votes, y=[1, 0])["x"].value < 1000 < elo.online(**votes, y=[0, 1])["x"].value


@pytest.mark.parametrize(("models", "votes"), [(5, 6000), (5, 600)], ids=["only the last draws", "whole resamples"])
def test_the_bootstrap_is_that_of_the_plain_loop(models, votes):
    rows = simulated(np.random.default_rng(1), models=models, votes=votes)
    wins = Votes.checked(**rows).wins()
    steps = elo._truncation(wins, 4 * np.log(10) / 400, 400)[1]
    assert (steps < votes) == (votes == 6000)
    plain = plain_bootstrap(rows, replicates=500, seed=2)
    ratings = elo.online_bootstrap(**rows, rng=np.random.default_rng(3), replicates=2000)
    spread = (plain[2] - plain[0]) / 3.92
    for model, name in enumerate(rows["models"]):
        got = ratings[name]
        # Monte Carlo: a median of 500 has an error of 0.056 spreads, a 2.5% point 0.12.
        assert got.value == pytest.approx(plain[1, model], abs=4 * 0.063 * spread[model])
        assert got.interval.low == pytest.approx(plain[0, model], abs=4 * 0.135 * spread[model])
        assert got.interval.high == pytest.approx(plain[2, model], abs=4 * 0.135 * spread[model])


def test_the_bootstrap_keeps_the_sum_of_ratings_and_holds_its_medians():
    rows = simulated(np.random.default_rng(4), models=6, votes=300)
    ratings = elo.online_bootstrap(**rows, rng=np.random.default_rng(5), replicates=300)
    assert sum(rating.value for rating in ratings.values()) == pytest.approx(6000, abs=20)
    for rating in ratings.values():
        assert rating.interval.low <= rating.value <= rating.interval.high
        assert rating.method == rating.interval.method == "online-bootstrap"


def test_the_bootstrap_is_the_same_for_the_same_seed_in_any_order_of_votes():
    rows = simulated(np.random.default_rng(6), models=4, votes=200)
    order = np.random.default_rng(7).permutation(200)
    shuffled = {**rows, **{name: rows[name][order] for name in ("a", "b", "y")}}
    first = elo.online_bootstrap(**rows, rng=np.random.default_rng(8), replicates=50)
    assert elo.online_bootstrap(**shuffled, rng=np.random.default_rng(8), replicates=50) == first


def test_a_model_that_only_wins_has_a_bootstrap_rating():
    ratings = elo.online_bootstrap(
        a=[0] * 20, b=[1] * 20, y=[1.0] * 20, models=["x", "y"], rng=np.random.default_rng(1), replicates=20
    )
    assert ratings["x"].value > 1000 > ratings["y"].value


def test_a_model_without_votes_has_no_rating():
    votes = {"a": [0], "b": [1], "y": [1.0], "models": ["x", "y", "z"]}
    for ratings in (elo.online(**votes), elo.online_bootstrap(**votes, rng=np.random.default_rng(1), replicates=9)):
        assert (ratings["z"].value, ratings["z"].interval, ratings["z"].n) == (None, None, 0)
        assert ratings["z"].reason
    even = elo.online_bootstrap(
        a=[0] * 9, b=[1] * 9, y=[0.5] * 9, models=["x", "y"], rng=np.random.default_rng(1), replicates=9
    )
    assert (even["x"].value, even["x"].interval, even["x"].reason) == (pytest.approx(1000), None, elo.ALIKE)
    nothing = {"a": [], "b": [], "y": [], "models": ["x"]}
    assert elo.online_bootstrap(**nothing, rng=np.random.default_rng(1))["x"].value is None


def test_an_outcome_beyond_a_win_and_a_loss_is_refused():
    with pytest.raises(InvalidOutcome):
        elo.online(a=[0], b=[1], y=[1.2], models=["x", "y"])
