import itertools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from stats.bradley_terry import (
    METHOD,
    PROMPTS_FIXED,
    BradleyTerry,
    NotConverged,
    Votes,
    clustered_covariance,
    fit,
    inverse_information,
    rateable,
    solve,
)
from stats.proportions import FEW_GROUPS, ONE_OUTWEIGHS
from stats.ranks import Place, benjamini_hochberg, may_be_best, places_of_means, rank_ranges, tiers
from stats.results import InvalidCount, InvalidOutcome, LengthMismatch
from tests.stats.replicated import strengths

# Wins of the row over the column: the worked example of Wikipedia, "Bradley-Terry model".
EXAMPLE = np.array([[0, 2, 0, 1], [3, 0, 5, 0], [0, 3, 0, 1], [4, 0, 3, 0]], dtype=float)
# Stigler 1994: citations among Biometrika, Comm. Statist., JASA and JRSS-B. To be cited is to win.
CITATIONS = np.array([[0, 730, 498, 221], [33, 0, 68, 17], [320, 813, 0, 142], [284, 276, 325, 0]], dtype=float)


def votes_of(wins):
    """One vote per win, as columns a, b, y."""
    rows = [(i, j) for i, j in itertools.product(range(len(wins)), repeat=2) for _ in range(int(wins[i, j]))]
    a, b = np.array(rows).T
    return a, b, np.ones(len(a))


def fitted(a, b, y, *, group=None, item=None, models=None, seed=1, **options) -> BradleyTerry:
    size = len(y)
    return fit(
        a=a,
        b=b,
        y=y,
        models=models or [f"m{i}" for i in range(int(max(*a, *b)) + 1)],
        group=np.arange(size) if group is None else group,
        item=np.arange(size) if item is None else item,
        rng=np.random.default_rng(seed),
        **options,
    )


def simulated(rng, *, models=5, votes=400, groups=50, spread=1.0):
    theta = rng.normal(0, spread, models)
    a = rng.integers(0, models, votes)
    b = (a + rng.integers(1, models, votes)) % models
    p = 1 / (1 + np.exp(theta[b] - theta[a]))
    drawn = rng.random(votes)
    y = np.where(drawn < 0.75 * p, 1.0, np.where(drawn < 0.75, 0.0, 0.5))
    return a, b, y, rng.integers(0, groups, votes)


def test_strengths_are_those_of_the_wikipedia_example():
    assert np.exp(solve(EXAMPLE)) == pytest.approx([0.640, 1.043, 0.660, 2.270], abs=5e-4)


def test_strengths_and_model_based_errors_are_those_of_stiglers_citations():
    # Turner and Firth 2012, "Bradley-Terry Models in R" (JSS 48:9), section 2.1: against Biometrika.
    theta, covariance = solve(CITATIONS), inverse_information(solve(CITATIONS), CITATIONS)
    assert theta[1:] - theta[0] == pytest.approx([-2.94907, -0.47957, 0.26895], abs=1e-5)
    variance = np.diag(covariance)[1:] + covariance[0, 0] - 2 * covariance[0, 1:]
    assert np.sqrt(variance) == pytest.approx([0.10255, 0.06059, 0.07083], abs=1e-5)


def test_strengths_are_evalicas_on_the_llmfao_votes(llmfao):
    evalica = pytest.importorskip("evalica")
    names = llmfao.attrs["models"]
    winner = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
    scores = evalica.bradley_terry(
        llmfao["a"].map(names.__getitem__).tolist(),
        llmfao["b"].map(names.__getitem__).tolist(),
        [winner[y] for y in llmfao["y"]],
        tolerance=1e-12,
        limit=100_000,
    ).scores
    logs = np.log(scores[names].to_numpy())
    result = fit(**columns(llmfao), rng=np.random.default_rng(1))
    assert result.theta == pytest.approx(logs - logs.mean(), abs=1e-6)


def test_the_13_prompts_of_llmfao_are_too_few_for_its_59_models_and_taken_as_fixed(llmfao):
    result = fit(**columns(llmfao), rng=np.random.default_rng(1))
    assert result.clustered_by == "item"
    assert result.method == PROMPTS_FIXED
    assert {rating.strength.method for rating in result.ratings.values()} == {PROMPTS_FIXED}
    assert result.clusters == 2139
    assert result.notes == ("13 groups are too few for 59 models: clustered by item, prompts are treated as fixed",)
    assert result.warnings == ()
    assert {rating.rank for rating in result.ratings.values()} == set(range(1, 60))


def columns(votes):
    shared = {name: votes[name].to_numpy() for name in ("a", "b", "y", "item")}
    return {**shared, "group": votes["prompt"].to_numpy(), "models": votes.attrs["models"]}


def t_of(result, *models):
    """The quantile of t of a contrast of these: with as many equal groups, less one, as their votes are worth."""
    return t(min(result.spread.effective[list(models)]) - 1).ppf(0.975)


def test_the_sandwich_is_that_of_a_clustered_logistic_regression():
    statsmodels = pytest.importorskip("statsmodels.api")
    a, b, y, group = simulated(np.random.default_rng(3), groups=60)
    design = np.zeros((len(y), 5))
    design[np.arange(len(y)), a], design[np.arange(len(y)), b] = 1, -1
    # Ties as half: a binomial share of 0.5. The first model is the reference.
    regression = statsmodels.GLM(y, design[:, 1:], family=statsmodels.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": group, "use_correction": False}, tol=1e-12
    )
    result = fitted(a, b, y, group=group)
    assert result.clustered_by == "group"
    groups = result.clusters
    for model in range(1, 5):
        contrast = result.contrast(f"m{model}", "m0")
        error = regression.bse[model - 1] * np.sqrt(groups / (groups - 1))
        half = (contrast.difference.interval.high - contrast.difference.interval.low) / 2
        assert contrast.difference.value == pytest.approx(regression.params[model - 1], abs=1e-6)
        assert half == pytest.approx(t_of(result, model, 0) * error, rel=1e-4)


def test_votes_are_clustered_by_group_as_soon_as_groups_exceed_models():
    a, b, y, _ = simulated(np.random.default_rng(3), models=5, votes=400)
    for groups, method in ((5, PROMPTS_FIXED), (6, METHOD), (12, METHOD)):
        result = fitted(a, b, y, group=np.arange(400) % groups, item=np.arange(400) // 2)
        assert result.method == result.ratings["m0"].strength.method == method
        assert result.clusters == (groups if method == METHOD else 200)
        assert result.contrast("m0", "m1").difference.groups == min(result.spread.groups[:2])


def test_clusters_of_one_pair_and_clusters_in_blocks_give_the_plain_sum_of_outer_products(monkeypatch):
    rng = np.random.default_rng(4)
    a, b, y, _ = simulated(rng, votes=300)
    votes = Votes.checked(a=a, b=b, y=y, models=list("abcde"), weight=rng.random(300))
    wins = votes.wins()
    theta = solve(wins)
    low, high = np.minimum(a, b), np.maximum(a, b)
    of_one_pair = np.unique((low * 5 + high) * 7 + rng.integers(0, 7, 300), return_inverse=True)[1]
    for cluster in (of_one_pair, rng.permutation(np.arange(300) % 90)):
        clusters = cluster.max() + 1
        scores = np.zeros((clusters, 5))
        residual = votes.weight * (y - 1 / (1 + np.exp(theta[b] - theta[a])))
        np.add.at(scores, (cluster, a), residual)
        np.add.at(scores, (cluster, b), -residual)
        bread = inverse_information(theta, wins)
        expected = bread @ scores.T @ scores @ bread * clusters / (clusters - 1)
        for block in (1_000_000, 100):
            monkeypatch.setattr("stats.bradley_terry._BLOCK", block)
            got = clustered_covariance(votes=votes, theta=theta, wins=wins, cluster=cluster, clusters=clusters)
            assert got == pytest.approx(expected, abs=1e-12)


def test_clustered_intervals_hold_the_truth_where_vote_level_ones_do_not():
    # Five votes per sample that share the sample's own preference; the truth is the fit to very many samples.
    def draw(rng, samples):
        theta = np.array([0.6, 0.0, -0.6]) + rng.normal(0, 0.9, (samples, 3))
        sample = np.repeat(np.arange(samples), 5)
        a = rng.integers(0, 3, len(sample))
        b = (a + rng.integers(1, 3, len(sample))) % 3
        p = 1 / (1 + np.exp(theta[sample, b] - theta[sample, a]))
        return a, b, (rng.random(len(sample)) < p).astype(float), sample

    rng = np.random.default_rng(7)
    a, b, y, _ = draw(rng, 100_000)
    truth = solve(Votes.checked(a=a, b=b, y=y, models=list("abc")).wins())
    held = {"clustered": 0, "by vote": 0}
    for _ in range(300):
        a, b, y, sample = draw(rng, 60)
        for name, group in (("clustered", sample), ("by vote", np.arange(len(y)))):
            interval = fitted(a, b, y, group=group, draws=10).contrast("m0", "m2").difference.interval
            held[name] += interval.low <= truth[0] - truth[2] <= interval.high
    assert 0.92 <= held["clustered"] / 300 <= 0.98
    assert held["by vote"] < held["clustered"]


def test_swapping_the_winners_flips_all_strengths():
    a, b, y, group = simulated(np.random.default_rng(8))
    straight, flipped = fitted(a, b, y, group=group), fitted(a, b, 1 - y, group=group)
    assert flipped.theta == pytest.approx(-straight.theta, abs=1e-9)
    assert flipped.covariance == pytest.approx(straight.covariance, abs=1e-9)


@given(st.integers(0, 10_000))
@pytest.mark.check("I6")
def test_nothing_depends_on_the_order_of_votes_the_side_of_a_model_or_the_names_of_clusters(seed):
    rng = np.random.default_rng(seed)
    a, b, y, group = simulated(rng, votes=200, groups=40)
    first = fitted(a, b, y, group=group)
    rows, turned = rng.permutation(len(y)), rng.random(len(y)) < 0.5
    a, b, y = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, 1 - y, y)
    again = fitted(a[rows], b[rows], y[rows], group=[f"image {g}" for g in group[rows]])
    assert again.theta == pytest.approx(first.theta, abs=1e-9)
    assert again.covariance == pytest.approx(first.covariance, abs=1e-9)
    assert {name: (r.rank, r.tier) for name, r in again.ratings.items()} == {
        name: (r.rank, r.tier) for name, r in first.ratings.items()
    }


@given(st.integers(0, 10_000))
def test_relabelling_the_models_relabels_the_ratings(seed):
    rng = np.random.default_rng(seed)
    a, b, y, group = simulated(rng, votes=300)
    first = fitted(a, b, y, group=group)
    order = rng.permutation(5)
    again = fitted(order[a], order[b], y, group=group, models=[f"m{i}" for i in np.argsort(order)])
    for name, rating in first.ratings.items():
        assert again.ratings[name].strength.value == pytest.approx(rating.strength.value, abs=1e-9)
        assert (again.ratings[name].rank, again.ratings[name].tier) == (rating.rank, rating.tier)


@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(10, 300))
def test_ranks_lie_within_their_ranges_and_values_within_their_intervals(seed, models, votes):
    rng = np.random.default_rng(seed)
    a, b, y, group = simulated(rng, models=models, votes=votes, groups=40, spread=1.5)
    result = fitted(a, b, y, group=group, models=[f"m{i}" for i in range(models)], draws=200)
    ranked = [rating for rating in result.ratings.values() if rating.rank is not None]
    assert sorted(rating.rank for rating in ranked) == list(range(1, len(ranked) + 1))
    for rating in ranked:
        assert 1 <= rating.rank_low <= rating.rank <= rating.rank_high <= len(ranked)
        if rating.strength.interval:
            assert rating.strength.interval.low <= rating.strength.value <= rating.strength.interval.high
    if len(result.theta):
        assert result.theta.sum() == pytest.approx(0, abs=1e-9)
    by_strength = sorted((r for r in ranked if r.strength.value is not None), key=lambda r: r.rank)
    values = [round(rating.strength.value, 9) for rating in by_strength]
    assert values == sorted(values, reverse=True)


def test_rank_ranges_are_narrow_where_models_differ_and_wide_where_they_do_not():
    covariance = 0.01 * (np.eye(3) - 1 / 3)
    low, high = rank_ranges(theta=np.array([2.0, 0, -2]), covariance=covariance, rng=np.random.default_rng(1))
    assert (low.tolist(), high.tolist()) == ([1, 2, 3], [1, 2, 3])
    low, high = rank_ranges(theta=np.zeros(3), covariance=covariance, rng=np.random.default_rng(1))
    assert (low.tolist(), high.tolist()) == ([1, 1, 1], [3, 3, 3])


def test_a_tier_begins_where_a_model_of_an_earlier_one_is_significantly_better():
    theta, covariance = np.array([1.0, 0.95, -0.5, -1.45]), 0.01 * (np.eye(4) - 1 / 4)
    assert tiers(theta=theta, covariance=covariance, df=999).tolist() == [1, 1, 2, 3]
    assert tiers(theta=theta, covariance=100 * covariance, df=999).tolist() == [1, 1, 1, 1]


def test_a_contrast_uses_the_covariance_of_the_two_models():
    a, b, y, group = simulated(np.random.default_rng(9))
    result = fitted(a, b, y, group=group)
    contrast, reverse = result.contrast("m0", "m3"), result.contrast("m3", "m0")
    variance = result.covariance[0, 0] + result.covariance[3, 3] - 2 * result.covariance[0, 3]
    half = (contrast.difference.interval.high - contrast.difference.interval.low) / 2
    assert half == pytest.approx(t_of(result, 0, 3) * np.sqrt(variance), rel=1e-4)
    assert reverse.difference.value == pytest.approx(-contrast.difference.value)
    assert reverse.p == pytest.approx(contrast.p)
    excluded = contrast.difference.interval.low > 0 or contrast.difference.interval.high < 0
    assert excluded == (contrast.p < 0.05)


def test_a_weight_of_two_is_the_vote_twice():
    a, b, y, group = simulated(np.random.default_rng(10))
    double = np.arange(len(y)) % 3 == 0
    weighted = fitted(a, b, y, group=group, weight=1.0 + double)
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(double)])
    repeated = fitted(a[rows], b[rows], y[rows], group=group[rows])
    assert weighted.theta == pytest.approx(repeated.theta, abs=1e-9)
    assert weighted.covariance == pytest.approx(repeated.covariance, abs=1e-9)


def test_a_model_that_only_won_has_no_rating_but_stands_first():
    a, b, y, group = simulated(np.random.default_rng(11), models=4, votes=300, groups=60)
    a, b, y = np.concatenate([a, [4] * 6]), np.concatenate([b, [0, 1, 2, 3, 0, 1]]), np.concatenate([y, [1.0] * 6])
    result = fitted(a, b, y, group=np.concatenate([group, np.arange(6)]))
    champion = result.ratings["m4"]
    assert (champion.strength.value, champion.strength.interval, champion.tier) == (None, None, None)
    assert champion.strength.n == 6
    assert (champion.rank, champion.rank_low, champion.rank_high) == (1, 1, 5)
    assert result.warnings == ("won every comparison: no finite rating (m4)",)
    # The others are rated as if it were not there, one place further down.
    others = fitted(a[:300], b[:300], y[:300], group=group)
    assert result.theta == pytest.approx(others.theta, abs=1e-9)
    for name, rating in others.ratings.items():
        assert result.ratings[name].strength.value == pytest.approx(rating.strength.value, abs=1e-9)
        assert result.ratings[name].rank == rating.rank + 1
    assert result.contrast("m4", "m0").difference.value is None
    assert "won every comparison" in result.contrast("m0", "m4").difference.reason


def lopsided(rng):
    """104 votes between two models in ten groups, 95 of them in one."""
    group = np.repeat(np.arange(10), [95, *[1] * 9])
    return np.zeros(104, dtype=int), np.ones(104, dtype=int), (rng.random(104) < 0.8).astype(float), group


def test_where_one_group_has_nearly_all_votes_strengths_have_no_interval_and_nobody_is_better():
    a, b, y, group = lopsided(np.random.default_rng(12))
    result = fitted(a, b, y, group=group)
    assert result.clustered_by == "group"
    for rating in result.ratings.values():
        assert (rating.strength.interval, rating.strength.reason) == (None, ONE_OUTWEIGHS)
        assert (rating.rank_low, rating.rank_high, rating.tier) == (1, 2, None)
    contrast = result.contrast("m0", "m1")
    assert (contrast.difference.interval, contrast.difference.reason, contrast.p) == (None, ONE_OUTWEIGHS, None)
    few = fitted(a, b, y, group=np.arange(len(y)) % 7)
    assert {rating.strength.reason for rating in few.ratings.values()} == {FEW_GROUPS}


def test_a_model_whose_votes_come_from_one_group_has_no_interval_while_the_others_keep_theirs():
    rng = np.random.default_rng(13)
    a, b, y, group = simulated(rng, models=3, votes=600, groups=60)
    a, b = np.concatenate([a, [3] * 40]), np.concatenate([b, rng.integers(0, 3, 40)])
    y, group = np.concatenate([y, [1.0] * 30, [0.0] * 10]), np.concatenate([group, [7] * 40])
    result = fitted(a, b, y, group=group)
    alone = result.ratings["m3"]
    assert (alone.strength.interval, alone.strength.groups) == (None, 1)
    assert (alone.rank_low, alone.rank_high) == (1, 4)
    assert all(result.ratings[name].strength.interval for name in ("m0", "m1", "m2"))
    assert result.contrast("m3", "m2").p is None
    assert result.best[3]


def test_means_of_which_one_group_has_nearly_all_rows_have_an_order_and_no_tiers():
    rng = np.random.default_rng(14)
    group = np.tile(np.repeat(np.arange(10), [95, *[1] * 9]), 2)
    model = np.repeat([0, 1], 104)
    values = rng.standard_normal(208) + 2 * model
    of_two = {"values": values, "model": model, "models": 2, "rng": rng}
    assert places_of_means(**of_two, cluster=group) == [Place(2, None, None, None), Place(1, None, None, None)]
    assert places_of_means(**of_two, cluster=np.tile(np.arange(104) % 7, 2))[0].tier is None
    found = places_of_means(**of_two, cluster=np.tile(np.arange(104), 2))
    assert found == [Place(2, 2, 2, 2, best=False, behind=found[0].behind), Place(1, 1, 1, 1, best=True)]
    assert found[0].behind
    assert (found[0].behind.other, found[0].behind.df) == (1, 103)


def test_no_model_has_a_better_tier_than_a_stronger_one_whatever_their_numbers_of_votes():
    rng = np.random.default_rng(15)
    for _ in range(40):
        theta, error = rng.normal(0, 0.5, 12), rng.choice([0.05, 0.1, 0.5], 12)
        tier = tiers(theta=theta, covariance=np.diag(error**2), df=50)
        in_order = tier[np.argsort(-theta)]
        assert (np.diff(in_order) >= 0).all()
        assert (in_order <= np.arange(1, 13)).all()
        p = 2 * t(50).sf(np.abs(theta[:, None] - theta) / np.sqrt(error[:, None] ** 2 + error**2))
        pairs = np.triu_indices(12, 1)
        apart = benjamini_hochberg(p=p[pairs])
        assert (tier[pairs[0]][apart] != tier[pairs[1]][apart]).all()
        told = {frozenset(pair) for pair in np.transpose(pairs)[apart].tolist()}
        for model, other in pairwise(np.argsort(-theta).tolist()):
            begins = any(frozenset((above, other)) in told for above in np.flatnonzero(tier == tier[model]).tolist())
            assert tier[other] == tier[model] + begins


def test_models_that_may_be_best_hold_the_best_one_as_often_as_it_says_and_fewer_where_models_differ():
    rng = np.random.default_rng(16)
    covariance = 0.04 * np.eye(6)
    held, sizes = [], []
    for theta in (np.zeros(6), np.array([0.0, 0, 0, -1, -1, -1]), np.array([0.3, 0, -0.3, -0.6, -0.9, -3])):
        sets = [
            may_be_best(theta=rng.multivariate_normal(theta, covariance), covariance=covariance, rng=rng, draws=400)
            for _ in range(200)
        ]
        held.append(np.mean([among[0] for among in sets]))
        sizes.append(np.mean([among.sum() for among in sets]))
    assert min(held) >= 0.92
    assert sizes[0] > 5.4
    assert sizes[2] < 3


def test_a_model_that_only_lost_widens_nobodys_range_and_one_that_only_won_does():
    # Of ten prompts: A beats B seven times of ten, and both always beat C.
    a, b = [0] * 10 + [0] * 10 + [1] * 10, [1] * 10 + [2] * 20
    y, prompt = [1.0] * 7 + [0.0] * 3 + [1.0] * 20, list(range(10)) * 3
    result = fitted(a, b, y, models=["A", "B", "C"], group=prompt)
    ranges = {name: (rating.rank, rating.rank_low, rating.rank_high) for name, rating in result.ratings.items()}
    assert ranges == {"A": (1, 1, 2), "B": (2, 1, 2), "C": (3, 1, 3)}
    turned = fitted(b, a, y, models=["A", "B", "C"], group=prompt)
    assert [turned.ratings[name].rank_high for name in "ABC"] == [3, 3, 3]


def test_a_model_that_only_lost_stands_last():
    wins = np.array([[0, 5, 3], [4, 0, 2], [0, 0, 0]])
    result = fitted(*votes_of(wins))
    assert result.rated == ("m0", "m1")
    assert [rating.rank for rating in result.ratings.values()] == [1, 2, 3]
    assert result.warnings[-1] == "lost every comparison: no finite rating (m2)"


def test_two_models_of_which_one_always_wins_are_ordered_without_ratings():
    result = fitted([0, 0, 0], [1, 1, 1], [0.0, 0.0, 0.0])
    assert result.rated == ()
    assert [rating.rank for rating in result.ratings.values()] == [2, 1]
    assert [(rating.rank_low, rating.rank_high) for rating in result.ratings.values()] == [(1, 2), (1, 2)]


def test_groups_linked_in_one_direction_only_are_said_to_be_so():
    # m0 and m1 beat each other, m2 to m4 beat each other, and the first two always beat the rest.
    wins = np.zeros((5, 5))
    wins[0, 1] = wins[1, 0] = wins[2, 3] = wins[3, 4] = wins[4, 2] = 3
    wins[1, 2] = 4
    result = fitted(*votes_of(wins))
    assert result.rated == ("m2", "m3", "m4")
    assert {result.ratings[name].rank for name in ("m0", "m1")} == {1, 2}
    assert "in one direction only: no finite rating (m0, m1)" in result.warnings[-1]


def test_models_that_are_not_connected_have_no_rank():
    wins = np.zeros((6, 6))
    wins[0, 1] = wins[1, 2] = wins[2, 0] = 2
    wins[3, 4] = wins[4, 3] = 2
    result = fitted(*votes_of(wins), models=list("abcdef"))
    assert result.rated == ("a", "b", "c")
    assert {result.ratings[name].rank for name in "abcdef"} == {None}, "of two groups nobody is known to be first"
    assert result.islands == 2
    assert result.ratings["d"].strength.reason == "not connected to the other models"
    assert result.ratings["f"].strength.reason == "no comparisons"
    assert "not connected to the other models (d, e)" in result.warnings


def test_no_votes_give_no_ratings_and_no_error():
    result = fit(a=[], b=[], y=[], models=["a", "b"], group=[], item=[], rng=np.random.default_rng(1))
    assert {rating.strength.value for rating in result.ratings.values()} == {None}
    assert result.n == 0


def test_few_items_are_said_to_give_rough_intervals():
    result = fitted([0, 1] * 5, [1, 0] * 5, [1.0, 1.0, 1.0, 0.0, 1.0] * 2, group=[0] * 10)
    assert result.clustered_by == "item"
    assert result.warnings == ("only 10 items for 2 models: the intervals are rough",)
    assert result.ratings["m0"].strength.interval is not None


def test_votes_that_are_all_ties_have_a_rating_and_no_interval():
    result = fitted([0, 1, 2] * 20, [1, 2, 0] * 20, [0.5] * 60)
    assert [rating.strength.value for rating in result.ratings.values()] == pytest.approx([0, 0, 0])
    assert {rating.strength.interval for rating in result.ratings.values()} == {None}
    assert {(rating.rank_low, rating.rank_high, rating.tier) for rating in result.ratings.values()} == {(1, 3, None)}


def test_one_item_has_a_rating_and_no_interval():
    result = fitted([0, 1], [1, 0], [1.0, 1.0], group=[0, 0], item=[0, 0])
    assert result.ratings["m0"].strength.reason == FEW_GROUPS
    assert result.contrast("m0", "m1").p is None


def test_wins_on_which_whole_newton_steps_overshoot_still_converge():
    wins = np.array([[0, 27254, 0, 0], [0, 0, 0, 33], [933657, 0, 0, 0], [0, 113153, 44, 0]], dtype=float)
    theta = solve(wins)
    expected = (wins + wins.T) / (1 + np.exp(theta[None, :] - theta[:, None]))
    assert expected.sum(axis=1) == pytest.approx(wins.sum(axis=1), rel=1e-6)


def test_strengths_solve_the_likelihood_equations_however_the_wins_are_spread():
    rng = np.random.default_rng(12)
    for _ in range(200):
        size = rng.integers(2, 20)
        wins = np.floor(10 ** rng.uniform(0, 6, (size, size)) * (rng.random((size, size)) < rng.uniform(0.1, 1)))
        np.fill_diagonal(wins, 0)
        rated = rateable(wins)
        wins = wins[np.ix_(rated, rated)]
        theta = solve(wins)
        expected = (wins + wins.T) / (1 + np.exp(theta[None, :] - theta[:, None]))
        assert expected.sum(axis=1) == pytest.approx(wins.sum(axis=1), rel=1e-6, abs=1e-6 * wins.sum())


def test_strengths_that_do_not_exist_or_do_not_settle_are_refused(monkeypatch):
    with pytest.raises(NotConverged, match="separable"):
        solve(np.zeros((2, 2)))
    monkeypatch.setattr("stats.bradley_terry._MOST_STEPS", 1)
    with pytest.raises(NotConverged, match="settle"):
        solve(EXAMPLE)


def test_the_rateable_set_is_the_largest_one_linked_both_ways():
    wins = np.zeros((5, 5))
    wins[0, 1] = wins[1, 0] = 9
    wins[2, 3] = wins[3, 4] = wins[4, 2] = 1
    assert rateable(wins).tolist() == [False, False, True, True, True]
    assert not rateable(np.triu(np.ones((3, 3)), k=1)).any()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"y": [2.0, 1.0]}, InvalidOutcome),
        ({"a": [0, 7]}, InvalidOutcome),
        ({"a": [-1, 0]}, InvalidOutcome),
        ({"b": [0, 1]}, InvalidOutcome),
        ({"models": ["x", "x"]}, InvalidOutcome),
        ({"y": [1.0]}, LengthMismatch),
        ({"group": [0]}, LengthMismatch),
        ({"weight": [1.0, -1.0]}, InvalidCount),
        ({"weight": [1.0, np.nan]}, InvalidCount),
    ],
)
def test_votes_that_cannot_be_are_refused(change, error):
    votes = {"a": [0, 0], "b": [1, 1], "y": [1.0, 0.0], "models": ["x", "y"], "group": [0, 1], "item": [0, 1], **change}
    with pytest.raises(error):
        fit(**votes, rng=np.random.default_rng(1))


def test_strengths_of_resamples_spread_as_the_sandwich_over_votes_says():
    """White's covariance of independent votes is what the bootstrap of votes estimates (Efron 1979)."""
    rng = np.random.default_rng(4)
    truth, n = np.array([0.8, 0.2, -0.3, -0.7]), 4000
    a = rng.integers(0, 4, n)
    b = (a + rng.integers(1, 4, n)) % 4
    y = np.where(rng.random(n) < 0.2, 0.5, (rng.random(n) < 1 / (1 + np.exp(truth[b] - truth[a]))).astype(float))
    votes = Votes.checked(a=a, b=b, y=y, models=list("abcd"))
    drawn = strengths(votes=votes, rng=rng, replicates=3000)
    wins = votes.wins()
    theta = solve(wins)
    sandwich = clustered_covariance(votes=votes, theta=theta, wins=wins, cluster=np.arange(n), clusters=n)
    assert drawn.mean(axis=0) == pytest.approx(theta, abs=0.01)
    assert np.cov(drawn.T).ravel() == pytest.approx(sandwich.ravel(), abs=0.12 * sandwich.max())


def test_a_resample_without_finite_strengths_is_none():
    votes = Votes.checked(a=[0, 0, 0, 1], b=[1, 1, 1, 0], y=[1, 1, 1, 1], models=["a", "b"])
    drawn = strengths(votes=votes, rng=np.random.default_rng(0), replicates=50)
    lost = np.isnan(drawn).any(axis=1)
    assert 10 < lost.sum() < 40
    assert np.isfinite(drawn[~lost]).all()
