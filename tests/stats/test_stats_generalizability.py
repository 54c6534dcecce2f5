import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.generalizability import NO_PAIRS, NO_VARIANCE, components, intraclass

# Shrout and Fleiss 1979, Psychological Bulletin 86:420, Table 2: six targets, four judges.
SIX_TARGETS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
COEFFICIENTS = ("one_way", "agreement", "consistency")


def of_matrix(matrix, **options):
    """Of ratings (items, raters), NaN where one is missing."""
    item, rater = np.indices(matrix.shape).reshape(2, -1)
    there = ~np.isnan(matrix.astype(float)).ravel()
    columns = {"item": item[there], "rater": rater[there], "value": matrix.ravel()[there], "cluster": item[there]}
    return intraclass(**columns | options)


def values(found):
    return [getattr(found, name).value for name in COEFFICIENTS]


def test_intraclass_correlations_are_those_of_shrout_and_fleiss():
    """ICC(1,1), ICC(2,1) and ICC(3,1) of their Table 4: .17, .29, .71."""
    assert [round(value, 2) for value in values(of_matrix(SIX_TARGETS))] == [0.17, 0.29, 0.71]


@given(st.integers(2, 9), st.integers(2, 5), st.integers(0, 1000))
def test_where_no_rating_is_missing_they_are_the_mean_squares_of_the_analysis_of_variance(items, raters, seed):
    """McGraw and Wong 1996, Psychological Methods 1:30, Table 4."""
    matrix = np.random.default_rng(seed).normal(size=(items, raters)) + np.arange(items)[:, None]
    of_items, of_raters, mean = matrix.mean(axis=1), matrix.mean(axis=0), matrix.mean()
    rows = raters * ((of_items - mean) ** 2).sum() / (items - 1)
    columns = items * ((of_raters - mean) ** 2).sum() / (raters - 1)
    within = ((matrix - of_items[:, None]) ** 2).sum() / (items * (raters - 1))
    rest = ((matrix - of_items[:, None] - of_raters + mean) ** 2).sum() / ((items - 1) * (raters - 1))
    assert values(of_matrix(matrix)) == pytest.approx(
        [
            (rows - within) / (rows + (raters - 1) * within),
            (rows - rest) / (rows + (raters - 1) * rest + raters / items * (columns - rest)),
            (rows - rest) / (rows + (raters - 1) * rest),
        ]
    )


def test_missing_ratings_bias_no_coefficient():
    """Ratings of variance 4 by item, 1 by rater and 1 besides, of which two thirds are missing."""
    rng, found = np.random.default_rng(5), []
    for _ in range(200):
        matrix = 2 * rng.normal(size=(60, 1)) + rng.normal(size=(1, 9)) + rng.normal(size=(60, 9))
        matrix[rng.random(matrix.shape) < 2 / 3] = np.nan
        found.append(values(of_matrix(matrix)))
    assert np.mean(found, axis=0) == pytest.approx([4 / 6, 4 / 6, 4 / 5], abs=0.03)


def test_how_strict_a_rater_is_lowers_agreement_and_not_consistency():
    strict = SIX_TARGETS + np.array([0, 100, 0, 0])
    plain, moved = values(of_matrix(SIX_TARGETS)), values(of_matrix(strict))
    assert moved[2] == pytest.approx(plain[2])
    assert moved[1] < plain[1] / 10


def test_over_strata_a_coefficient_is_the_mean_of_theirs():
    rng = np.random.default_rng(6)
    matrices = [rng.normal(size=(20, 3)) + spread * rng.normal(size=(20, 1)) for spread in (1, 3)]
    both = np.concatenate(matrices)
    found = of_matrix(both, stratum=np.repeat([0, 1], 60))
    assert values(found) == pytest.approx(np.mean([values(of_matrix(matrix)) for matrix in matrices], axis=0))


def test_an_interval_is_that_of_leaving_out_one_group_at_a_time():
    matrix = np.random.default_rng(7).normal(size=(30, 3)) + np.arange(30)[:, None] / 10
    group = np.repeat(np.arange(30) // 3, 3)
    found = of_matrix(matrix, cluster=group).agreement
    without = [of_matrix(matrix[np.arange(30) // 3 != left]).agreement.value for left in range(10)]
    by_hand = np.sqrt(9 / 10 * ((np.array(without) - found.value) ** 2).sum())
    assert (found.se, found.groups, found.n) == (pytest.approx(by_hand), 10, 90)
    assert found.interval.low < found.value < found.interval.high


def test_without_two_ratings_of_an_item_there_is_no_coefficient():
    found = intraclass(item=[1, 2, 3], rater=[1, 2, 1], value=[1, 2, 3], cluster=[1, 2, 3])
    assert (found.agreement.value, found.agreement.reason) == (None, NO_PAIRS)
    assert of_matrix(np.zeros((9, 3))).agreement.value is None


# ---- variance components ----


def parts(found):
    return {part.name: part.variance for part in found.parts}


def test_components_are_those_of_shrout_and_fleiss_mean_squares():
    """Their Table 3: between targets 11.24, between judges 32.49, residual 1.02; so (11.24 - 1.02) / 4 and so on."""
    item, rater = np.indices(SIX_TARGETS.shape).reshape(2, -1)
    found = components(value=SIX_TARGETS.ravel(), item=item, prompt=item, crossed=rater, name="person")
    assert parts(found) == pytest.approx({"item": 10.22 / 4, "person": 31.47 / 6, "rest": 1.02}, abs=0.005)
    assert sum(part.share.value for part in found.parts) == pytest.approx(1)
    agreement = of_matrix(SIX_TARGETS).agreement.value
    assert found.parts[0].share.value == pytest.approx(agreement)  # ICC(A,1) is the item's share


def rated(rng, *, prompts, items, orders, repeats, spread, missing=0.0):
    """Verdicts with these standard deviations of prompt, item, order, item by order, and the rest."""
    n = prompts * items
    item, order, _ = np.indices((n, orders, repeats)).reshape(3, -1)
    of_order = np.array([1.0, -1.0] if orders == 2 else np.zeros(orders)) * spread[2] / np.sqrt(2)
    value = (
        spread[0] * rng.normal(size=prompts)[item // items]
        + spread[1] * rng.normal(size=n)[item]
        + of_order[order]
        + spread[3] * rng.normal(size=(n, orders))[item, order]
        + spread[4] * rng.normal(size=len(item))
    )
    there = rng.random(len(item)) >= missing
    return {"value": value[there], "item": item[there], "prompt": item[there] // items, "crossed": order[there]}


def test_components_of_prompts_items_orders_and_repeats_are_unbiased_with_gaps():
    rng, spread = np.random.default_rng(1), (1.0, 1.5, 0.6, 0.5, 0.8)
    design = {"prompts": 30, "items": 3, "orders": 2, "repeats": 3, "spread": spread, "missing": 0.25}
    found = [components(**rated(rng, **design), name="order") for _ in range(150)]
    mean = {name: np.mean([parts(each)[name] for each in found]) for name in parts(found[0])}
    expected = dict(zip(("prompt", "item", "order", "item by order", "rest"), np.square(spread), strict=True))
    assert mean == pytest.approx(expected, rel=0.08)


def test_the_error_of_the_mean_is_how_far_means_scatter():
    rng = np.random.default_rng(2)
    design = {"prompts": 20, "items": 2, "orders": 1, "repeats": 3, "spread": (0.7, 1.0, 0.0, 0.0, 1.2)}
    sets = [rated(rng, **design) for _ in range(400)]
    error = np.sqrt(np.mean([components(**each, name="order").error() ** 2 for each in sets]))
    assert error == pytest.approx(np.std([each["value"].mean() for each in sets]), rel=0.1)


def test_more_items_narrow_everything_and_more_ratings_only_what_people_differ_in():
    rng = np.random.default_rng(3)
    item, person = np.indices((60, 4)).reshape(2, -1)
    value = rng.normal(size=60)[item] + rng.normal(size=240)
    found = components(value=value, item=item, prompt=item, crossed=person, name="person")
    by_name = parts(found)
    expected = by_name["item"] / 60 + by_name["person"] / 4 + by_name["rest"] / 240
    assert found.error() == pytest.approx(np.sqrt(expected))
    assert found.error(items=2) == pytest.approx(
        np.sqrt(by_name["item"] / 120 + by_name["person"] / 4 + by_name["rest"] / 480)
    )
    assert found.error(raters=2) == pytest.approx(
        np.sqrt(by_name["item"] / 60 + by_name["person"] / 8 + by_name["rest"] / 480)
    )


def test_what_nobody_rated_twice_has_no_components():
    once = np.arange(20)
    assert components(value=once, item=once, prompt=once, crossed=once * 0, name="order") is None
    assert components(value=[], item=[], prompt=[], crossed=[], name="order") is None
    same = components(
        value=np.zeros(40), item=once.repeat(2), prompt=once.repeat(2), crossed=once.repeat(2) * 0, name="order"
    )
    assert all((part.share.value, part.share.reason) == (None, NO_VARIANCE) for part in same.parts)
