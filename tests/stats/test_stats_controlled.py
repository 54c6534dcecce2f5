"""Strengths and win rates with length and style taken out, against the likelihoods written out and maximised."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import t

from stats import bradley_terry, controlled
from stats.answer_style import Style, style_of
from stats.controlled import RIDGE, contrast, length_controlled_rates
from stats.proportions import ONE_OUTWEIGHS

NAMES = ("A", "B", "C")


def drawn(rng, n=240, slope=1.0):
    """Votes of three models, ties among them, and the two covariates that swayed them."""
    a = rng.integers(0, 3, n)
    b = (a + rng.integers(1, 3, n)) % 3
    words, bold = rng.lognormal(4 + 0.2 * np.stack([a, b]), 0.5), rng.poisson(2, (2, n)).astype(float)
    covariates = {"length": contrast(*words), "bold": contrast(*bold)}
    theta = np.array([0.5, 0.0, -0.5])
    won = rng.random(n) < expit(theta[a] - theta[b] + slope * 3 * covariates["length"] + 0.4 * covariates["bold"])
    y = np.where(rng.random(n) < 0.15, 0.5, won)
    return {"a": a, "b": b, "y": y, "group": np.arange(n) // 4, "item": np.arange(n), "covariates": covariates}


def fitted(votes, **more):
    return controlled.fit(**votes, models=NAMES, rng=np.random.default_rng(0), draws=50, **more)


def test_strengths_and_coefficients_maximise_the_likelihood_and_their_errors_are_the_sandwich():
    rng = np.random.default_rng(3)
    votes, weight = drawn(rng), rng.uniform(0.2, 2, 240)
    found = fitted(votes, weight=weight)

    x = np.stack(list(votes["covariates"].values()), axis=1)
    x = x / np.sqrt((weight[:, None] * x * x).sum(axis=0) / weight.sum())
    first, second = np.eye(3)[votes["a"]], np.eye(3)[votes["b"]]
    design = np.hstack([(first - second)[:, :2], x])  # the third model at 0

    def lost(w):
        odds = design @ w
        return -(weight * (votes["y"] * log_expit(odds) + (1 - votes["y"]) * log_expit(-odds))).sum()

    best = minimize(lost, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    theta = np.array([best[0], best[1], 0]) - best[:2].sum() / 3
    assert [found.strengths.ratings[name].strength.value for name in NAMES] == pytest.approx(theta, abs=1e-5)
    assert [each.value.value for each in found.coefficients.values()] == pytest.approx(best[2:], abs=1e-5)

    p = expit(design @ best)
    score = design * (weight * (votes["y"] - p))[:, None]
    by_group = np.stack([score[votes["group"] == g].sum(axis=0) for g in range(60)])
    bread = np.linalg.inv(design.T @ (design * (weight * p * (1 - p))[:, None]))
    variance = bread @ (60 / 59 * by_group.T @ by_group) @ bread
    difference = found.strengths.contrast("A", "B").difference
    of_contrast = np.array([1, -1, 0, 0])
    assert difference.interval.high - difference.value == pytest.approx(
        t(found.strengths.spread.df[:2].min()).ppf(0.975) * np.sqrt(of_contrast @ variance @ of_contrast), rel=1e-4
    )
    assert [each.value.se for each in found.coefficients.values()] == pytest.approx(
        np.sqrt(np.diag(variance))[2:], rel=1e-4
    )


def test_what_twice_as_much_is_worth_is_a_third_of_a_unit_of_the_covariate():
    votes = drawn(np.random.default_rng(4))
    length = fitted(votes).coefficients["length"]
    x = votes["covariates"]["length"]
    assert length.sd == pytest.approx(np.sqrt((x * x).mean()))
    assert length.twice.value == pytest.approx(length.value.value / length.sd / 3)
    assert length.twice.interval.low == pytest.approx(length.value.interval.low / length.sd / 3)


def test_which_answer_stands_first_changes_nothing():
    votes = drawn(np.random.default_rng(5))
    turned = votes | {
        "a": votes["b"],
        "b": votes["a"],
        "y": 1 - votes["y"],
        "covariates": {name: -values for name, values in votes["covariates"].items()},
    }
    one, other = fitted(votes), fitted(turned)
    assert one.strengths.theta == pytest.approx(other.strengths.theta, abs=1e-9)
    assert one.coefficients["bold"].value.interval.low == pytest.approx(
        other.coefficients["bold"].value.interval.low, abs=1e-9
    )


def test_a_model_that_wins_by_length_alone_is_no_stronger_once_length_is_taken_out():
    rng = np.random.default_rng(6)
    n = 3000
    a, b = np.zeros(n, dtype=int), np.ones(n, dtype=int)
    length = contrast(rng.lognormal(5, 0.5, n), rng.lognormal(4.6, 0.5, n))
    y = (rng.random(n) < np.where(length > 0, 0.9, 0.1)).astype(float)
    votes = {"a": a, "b": b, "y": y, "group": np.arange(n), "item": np.arange(n)}
    raw = bradley_terry.fit(**votes, models=("long", "short"), rng=rng).contrast("long", "short")
    found = controlled.fit(**votes, covariates={"length": length}, models=("long", "short"), rng=rng)
    assert raw.difference.interval.low > 0.5
    out = found.strengths.contrast("long", "short").difference
    assert out.interval.low < 0 < out.interval.high
    assert abs(out.value) < 0.15
    assert found.coefficients["length"].value.interval.low > 1


def test_where_the_longer_answer_always_wins_nothing_is_rated_and_the_reason_is_given():
    votes = drawn(np.random.default_rng(7))
    votes["y"] = (votes["covariates"]["length"] > 0).astype(float)
    found = fitted(votes)
    assert {rating.strength.value for rating in found.strengths.ratings.values()} == {None}
    assert "cannot be told" in found.strengths.ratings["A"].strength.reason
    assert found.coefficients["length"].value.value is None


def test_a_covariate_that_is_the_model_cannot_be_told_from_it_and_one_that_never_differs_has_no_coefficient():
    votes = drawn(np.random.default_rng(8))
    of_model = np.array([0.3, 0.1, -0.2])
    same = votes | {"covariates": {"length": of_model[votes["a"]] - of_model[votes["b"]]}}
    assert fitted(same).strengths.rated == ()
    absent = fitted(votes | {"covariates": {"headers": np.zeros(240)}})
    raw = {name: value for name, value in votes.items() if name != "covariates"}
    plain = bradley_terry.fit(**raw, models=NAMES, rng=np.random.default_rng(0), draws=50)
    assert absent.coefficients["headers"].value.value is None
    assert absent.strengths.theta == pytest.approx(plain.theta)
    assert absent.strengths.covariance == pytest.approx(plain.covariance, rel=1e-6)


def test_where_one_group_has_nearly_all_votes_controlled_strengths_have_no_interval_either():
    votes = drawn(np.random.default_rng(14))
    found = fitted(votes | {"group": np.where(np.arange(240) % 10, 0, votes["group"])})
    for rating in found.strengths.ratings.values():
        assert (rating.strength.interval, rating.strength.reason, rating.tier) == (None, ONE_OUTWEIGHS, None)


# ---- the length-controlled win rate ----


def against_anchor(rng, samples=120, slope=1.5):
    """Two models on the same samples; their answers are longer, and shorter, than the anchor's."""
    sample, part = np.tile(np.arange(samples), 2), np.repeat([0, 1], samples)
    gap = np.where(part == 0, 50, -50) + 60 * rng.standard_normal(2 * samples)
    won = (rng.random(2 * samples) < expit(rng.standard_normal(samples)[sample] + slope * gap / 80)).astype(float)
    won[::9] = 0.5
    return {"won": won, "difference": gap, "sample": sample, "cluster": sample // 2, "part": part, "parts": 2}


def test_the_length_controlled_rate_is_that_of_the_regression_with_one_worth_of_length_for_all_models():
    rows = against_anchor(np.random.default_rng(9))
    found = length_controlled_rates(**rows)
    y, part, n = rows["won"], rows["part"], len(rows["won"])
    of_model = np.stack([part == m for m in (0, 1)], axis=1).astype(float)
    apart = rows["difference"] - of_model @ [rows["difference"][part == m].mean() for m in (0, 1)]
    x = np.tanh(rows["difference"] / apart.std())

    def fitted(design, ridge):
        def lost(w):
            odds = design @ w
            return -(y * log_expit(odds) + (1 - y) * log_expit(-odds)).sum() + ridge @ (w**2) / 2

        return minimize(lost, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-9}).x

    plain = np.column_stack([of_model, x])
    first = fitted(plain, np.array([0, 0, RIDGE * n]))
    # How much more than expected the other model wins on the sample, shrunk by one row: one half of it.
    excess = y - expit(plain @ first)
    hard = np.concatenate([excess[part == 1], excess[part == 0]]) / 2
    hard = hard - of_model @ [hard[part == m].mean() for m in (0, 1)]
    hard = hard / (of_model @ [hard[part == m].std() for m in (0, 1)])
    w = fitted(np.column_stack([plain, of_model * hard[:, None]]), RIDGE * np.array([0, 0, n, n / 2, n / 2]))
    at_length = expit(of_model @ w[:2] + (of_model @ w[3:]) * hard)
    for m in (0, 1):
        assert found[m].value == pytest.approx(at_length[part == m].mean(), abs=1e-5)
        assert found[m].interval.low < found[m].value < found[m].interval.high
        assert (found[m].n, found[m].groups) == (120, 60)


def test_without_answers_as_long_as_the_anchors_there_is_no_rate_at_equal_length_and_the_reason_is_given():
    rows = against_anchor(np.random.default_rng(16), samples=200)
    shifted = rows | {"difference": rows["difference"] - np.where(rows["part"] == 1, 150, 0)}
    long, short = length_controlled_rates(**shifted)
    assert long.value is not None
    assert (short.value, short.interval) == (None, None)
    assert short.reason == "fewer than a tenth of its answers are as long as the anchor's: no figure at equal length"
    turned = length_controlled_rates(**shifted | {"difference": -shifted["difference"]})
    assert (
        turned[1].reason == "fewer than a tenth of its answers are as short as the anchor's: no figure at equal length"
    )
    # Two answers in a hundred that are longer are none to speak of.
    few = shifted["difference"].copy()
    few[200:204] = 30
    assert length_controlled_rates(**shifted | {"difference": few})[1].value is None


def test_a_model_that_wins_little_with_much_shorter_answers_is_not_said_to_win_half():
    """A model that answers in a few words, beside two that vary: 3 of 100 of its answers are longer, and won."""
    rng = np.random.default_rng(17)
    n = 400
    gap = np.concatenate([rng.normal(0, 300, 2 * n), rng.normal(-900, 60, n)])
    gap[2 * n : 2 * n + 12] = 50
    won = (rng.random(3 * n) < expit(-0.5 + 1.5 * np.tanh(gap / 300))).astype(float)
    won[2 * n :] = rng.random(n) < 0.02
    won[2 * n : 2 * n + 12] = rng.random(12) < 0.6
    sample, part = np.tile(np.arange(n), 3), np.repeat([0, 1, 2], n)
    found = length_controlled_rates(won=won, difference=gap, sample=sample, cluster=sample, part=part, parts=3)
    assert [rate.value is None for rate in found] == [False, False, True]


def test_a_rate_at_equal_length_far_from_the_raw_one_says_so():
    rng = np.random.default_rng(18)
    gap = 60 + 80 * rng.standard_normal(600)
    won = (rng.random(600) < expit(3 * np.tanh(gap / 80))).astype(float)
    one = {"sample": np.arange(600), "cluster": np.arange(600), "part": np.zeros(600, int), "parts": 1}
    (far,) = length_controlled_rates(won=won, difference=gap, **one)
    assert far.value < won.mean() - 0.1
    assert far.reason == (
        f"{won.mean() - far.value:.2f} below the raw rate, {won.mean():.2f} with ties as half: "
        "it rests on what length is worth"
    )
    (near,) = length_controlled_rates(won=won, difference=gap - 60, **one)
    assert near.reason == ""


def test_preferences_between_win_and_loss_count_as_far_as_they_go():
    rows = against_anchor(np.random.default_rng(19))
    half = rows | {"won": 0.5 + (rows["won"] - 0.5) / 5}
    for hard, soft in zip(length_controlled_rates(**rows), length_controlled_rates(**half), strict=True):
        assert abs(soft.value - 0.5) < abs(hard.value - 0.5)
        assert soft.interval.high - soft.interval.low < (hard.interval.high - hard.interval.low) / 3


def test_with_the_roles_exchanged_the_length_controlled_rate_is_the_rest():
    rows = against_anchor(np.random.default_rng(10))
    exchanged = rows | {"won": 1 - rows["won"], "difference": -rows["difference"]}
    for one, other in zip(length_controlled_rates(**rows), length_controlled_rates(**exchanged), strict=True):
        assert one.value == pytest.approx(1 - other.value, abs=1e-9)
        assert one.interval.low == pytest.approx(1 - other.interval.high, abs=1e-9)


def test_without_differences_of_length_the_rate_is_the_raw_one_and_of_the_anchor_itself_a_half():
    rows = against_anchor(np.random.default_rng(11))
    for m, rate in enumerate(length_controlled_rates(**rows | {"difference": np.zeros(240)})):
        assert rate.value == pytest.approx(rows["won"][rows["part"] == m].mean(), abs=1e-6)
    itself = rows | {"difference": np.zeros(240), "won": np.full(240, 0.5)}
    assert [rate.value for rate in length_controlled_rates(**itself)] == pytest.approx([0.5, 0.5])


def test_wins_by_length_alone_are_a_half_once_answers_are_as_long():
    rng = np.random.default_rng(12)
    gap = 60 + 80 * rng.standard_normal(2000)
    won = (rng.random(2000) < expit(3 * np.tanh(gap / 80))).astype(float)
    (rate,) = length_controlled_rates(
        won=won, difference=gap, sample=np.arange(2000), cluster=np.arange(2000), part=np.zeros(2000, int), parts=1
    )
    assert won.mean() > 0.7
    assert rate.interval.low < 0.5 < rate.interval.high
    assert rate.interval.high - rate.interval.low < 0.1


def test_a_model_that_won_everything_keeps_its_rate_and_a_constant_difference_of_lengths_gives_none():
    rows = against_anchor(np.random.default_rng(13))
    sure = length_controlled_rates(**rows | {"won": np.ones(240)})[0]
    assert sure.value == 1
    assert 0.8 < sure.interval.low < 1
    constant = length_controlled_rates(**rows | {"difference": np.full(240, 7.0)})[0]
    assert (constant.value, "as short as the anchor's" in constant.reason) == (None, True)


# ---- what answers hold ----


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("Plain words. 2 * 3 * 4, snake_case__name and #tag.", Style()),
        ("# One\n\n###### Six\n#not one\n####### seven", Style(headers=2)),
        ("A **bold** word, __another__, ** none ** and **two words**.", Style(bold=3)),
        ("- a\n* b\n  + c\n1. d\n2) e\n-f\n3.14", Style(lists=5)),
        ("```python\n# a comment\n- x\n**y**\n```\n- after", Style(lists=1)),
        ("~~~\n# open to the end", Style()),
        ("````\n```\n# inside\n````\n# outside", Style(headers=1)),
        ("- **Both** of it", Style(bold=1, lists=1)),
        ("", Style()),
    ],
)
def test_markdown_is_counted_outside_fences_of_code(text, style):
    assert style_of(text) == style


@given(st.text(alphabet="#*_-`~ 1.\na", max_size=200))
def test_any_text_has_a_style_and_no_line_more_than_one_header_or_item(text):
    style = style_of(text)
    lines = len(text.splitlines())
    assert style.headers + style.lists <= lines
    assert style.bold <= len(text) // 5
