import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.agreement import beyond_chance
from stats.jackknife import PERFECT
from stats.proportions import FEW_GROUPS
from stats.reliability import UnknownMetric, fleiss_kappa, gwet, krippendorff_alpha
from stats.results import UnequalRaters

# Krippendorff 2011, "Computing Krippendorff's alpha-reliability": four observers, twelve units.
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, np.nan, np.nan, np.nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, np.nan, 3],
        [np.nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, np.nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, np.nan],
    ]
)
# Fleiss 1971 as reworked by Wikipedia, "Fleiss' kappa": ten units, five categories, fourteen raters.
FOURTEEN_RATERS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


def long_table(matrix):
    """Unit and value of a matrix (annotators, units)."""
    return {"unit": np.tile(np.arange(matrix.shape[1]), matrix.shape[0]), "value": matrix.ravel()}


def alpha(table, metric):
    return krippendorff_alpha(**table, metric=metric)


def fleiss(counts):
    unit, value = np.indices(counts.shape).reshape(2, -1)
    times = counts.ravel()
    return fleiss_kappa(unit=np.repeat(unit, times), value=np.repeat(value, times))


@pytest.mark.parametrize(("metric", "expected"), [("nominal", 0.7434), ("ordinal", 0.8154), ("interval", 0.8491)])
def test_alpha_is_that_of_krippendorffs_four_observers(metric, expected):
    got = alpha(long_table(FOUR_OBSERVERS), metric)
    assert round(got.value, 4) == expected
    assert got.n == 40  # the unit with one label does not count
    assert got.interval.low <= got.value <= got.interval.high <= 1


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
@given(seed=st.integers(0, 1000))
def test_alpha_is_evalicas(metric, seed):
    evalica = pytest.importorskip("evalica")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    matrix = rng.integers(1, 6, (4, 15)).astype(float)
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    expected = evalica.alpha(pandas.DataFrame(matrix), distance=metric, solver="naive").alpha
    assert alpha(long_table(matrix), metric).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_alpha_does_not_depend_on_the_order_of_rows(metric):
    rng = np.random.default_rng(2)
    table = long_table(rng.integers(1, 6, (3, 40)).astype(float))
    order = rng.permutation(len(table["unit"]))
    shuffled = {name: column[order] for name, column in table.items()}
    assert alpha(shuffled, metric) == alpha(table, metric)


def test_nominal_alpha_takes_words_and_ordinal_alpha_only_their_order():
    matrix = FOUR_OBSERVERS.astype(object)
    named = np.array([None if np.isnan(v) else f"label {v}" for v in FOUR_OBSERVERS.ravel()]).reshape(matrix.shape)
    assert alpha(long_table(named), "nominal").value == pytest.approx(0.7434, abs=5e-5)
    assert alpha(long_table(FOUR_OBSERVERS**3), "ordinal").value == pytest.approx(0.8154, abs=5e-5)
    assert alpha(long_table(1000 + 7 * FOUR_OBSERVERS), "interval").value == pytest.approx(0.8491, abs=5e-5)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_alpha_of_one_value_only_is_none_with_a_reason(metric):
    got = alpha(long_table(np.full((3, 5), 0.3)), metric)
    assert (got.value, got.interval) == (None, None)
    assert "the same" in got.reason


def test_alpha_without_pairable_labels_is_none():
    assert alpha({"unit": [1, 2, 3], "value": [1, 2, 3]}, "nominal").value is None
    assert alpha({"unit": [], "value": []}, "interval").value is None


def test_alpha_of_perfect_agreement_is_1_without_an_interval():
    got = alpha(long_table(np.tile([1.0, 2, 3, 1] * 3, (3, 1))), "nominal")
    assert (got.value, got.interval, got.reason) == (1, None, PERFECT)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_the_error_of_alpha_is_that_of_leaving_out_one_group_of_units_at_a_time(metric):
    rng = np.random.default_rng(5)
    quality = rng.integers(1, 6, 48)
    table = long_table(np.clip(quality + rng.integers(-1, 2, (3, 48)), 1, 5).astype(float))
    group = table["unit"] // 4
    whole = krippendorff_alpha(**table, metric=metric, cluster=group)
    without = [alpha({name: column[group != g] for name, column in table.items()}, metric).value for g in range(12)]
    assert whole.value == pytest.approx(alpha(table, metric).value)
    fisher = np.arctanh(without) - np.arctanh(whole.value)
    margin = 2.200985 * np.sqrt(11 / 12 * (fisher**2).sum())  # t(11) at 95%
    assert whole.interval.high == pytest.approx(np.tanh(np.arctanh(whole.value) + margin))
    assert whole.se == pytest.approx(np.sqrt(11 / 12 * ((np.array(without) - whole.value) ** 2).sum()))
    few = krippendorff_alpha(**table, metric=metric, cluster=table["unit"] // 7)
    assert (few.value, few.interval, few.reason) == (pytest.approx(whole.value), None, FEW_GROUPS)


def test_an_unknown_metric_is_refused():
    with pytest.raises(UnknownMetric):
        alpha({"unit": [1], "value": [1]}, "ratio")


def test_fleiss_kappa_is_that_of_the_fourteen_raters():
    got = fleiss(FOURTEEN_RATERS)
    assert round(got.value, 5) == 0.20993
    assert got.n == 140
    assert got.interval.low <= got.value <= got.interval.high


@given(st.integers(0, 1000))
def test_fleiss_kappa_is_statsmodels(seed):
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    counts = np.random.default_rng(seed).multinomial(6, [0.5, 0.3, 0.2], size=12)
    assert fleiss(counts).value == pytest.approx(inter_rater.fleiss_kappa(counts))


def test_fleiss_kappa_refuses_units_with_different_numbers_of_raters():
    with pytest.raises(UnequalRaters, match="1 to 2 labels"):
        fleiss(np.array([[2, 0], [1, 0]]))
    with pytest.raises(UnequalRaters):
        fleiss(np.array([[1, 0], [1, 0]]))


def test_fleiss_kappa_of_one_category_or_of_nothing_is_none():
    assert fleiss(np.array([[3], [3]])).value is None
    assert fleiss(np.zeros((0, 2), dtype=int)).value is None


def test_units_are_told_apart_where_their_counts_do_not_fit_one_number():
    # 40 labels per unit over 30 values: 41^30 possible rows.
    rng = np.random.default_rng(3)
    unit, value = np.repeat(np.arange(60), 40), rng.integers(0, 30, 2400)
    value[rng.random(2400) < 0.4] = 7
    got = alpha({"unit": unit, "value": value}, "nominal")
    counts = np.zeros((60, 30))
    np.add.at(counts, (unit, value), 1)
    observed = (40**2 - (counts**2).sum(axis=1)).sum() / 39
    expected = (2400**2 - (counts.sum(axis=0) ** 2).sum()) / 2399
    assert got.value == pytest.approx(1 - observed / expected)


@pytest.mark.parametrize(("measure", "expected"), [("ac1", 0.77544), ("ac2", 0.91400)])
def test_gwets_coefficients_are_those_of_his_four_raters(measure, expected):
    """Krippendorff's table is also Gwet's `cac.raw4raters`: AC1 as irrCAC's vignette "overview" prints it, and AC2
    with quadratic weights as its vignette "weighting" does (coeff.val .914, pa .9753788, pe .7137044).
    """
    got = gwet(**long_table(FOUR_OBSERVERS), measure=measure)
    assert round(got.value, 5) == expected
    assert got.n == 40
    assert got.interval.low <= got.value <= got.interval.high <= 1


@pytest.mark.parametrize("measure", ["ac1", "ac2"])
def test_two_peoples_coefficient_is_the_same_as_a_table_or_as_a_list(measure):
    rng = np.random.default_rng(3)
    first, second, item = rng.integers(1, 6, 60), rng.integers(1, 6, 60), np.arange(60)
    listed = gwet(unit=np.tile(item, 2), value=np.r_[first, second], measure=measure)
    tabled = beyond_chance(measure=measure, first=first, second=second, cluster=item)
    assert listed.value == pytest.approx(tabled.value)
    assert listed.interval.low == pytest.approx(tabled.interval.low)
