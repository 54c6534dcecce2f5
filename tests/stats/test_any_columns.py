"""What every statistic gives for columns that say little or nothing: an estimate with a reason, never a NaN."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import elo
from stats.agreement import (
    MEASURES,
    agreement,
    agreement_decided,
    beyond_chance,
    cohen_kappa,
    pairwise_agreement,
    pairwise_kappa,
)
from stats.alternative import alternative_annotator_test
from stats.answers import choice_scores, yes_no_scores
from stats.bias import high_scores, length, own_family, position
from stats.bradley_terry import fit
from stats.classification import class_scores, pair_scores
from stats.correlation import correlation_difference, pearson, spearman
from stats.generalizability import intraclass
from stats.paired import change, difference
from stats.prediction import prediction_powered
from stats.proportions import mean, rate, rate_by_sizes, rates
from stats.rankings import mean_distance, rank_correlation
from stats.ranks import places_of_means
from stats.reliability import fleiss_kappa, gwet, krippendorff_alpha, steadiness
from stats.results import Estimate, NotFinite

WORDS = np.array(["first", "second", "tie", "undecided", None], dtype=object)
ORDERS = [(0.0, 1.0, 2.0, 3.0), (1.0, 0.0, 2.0, 3.0), (3.0, 2.0, 1.0, 0.0), (0.5, 0.5, 2.5, 2.5), (1.5, 1.5, 1.5, 1.5)]


def ranked(column):
    return [[ORDERS[int(step) - 1]] for step in column]


def rng():
    return np.random.default_rng(1)


def scores_of(result):
    """All estimates that an object holds."""
    values = [getattr(result, name) for name in result.__slots__]
    return [value for value in values if isinstance(value, Estimate)]


def of_repeats(x, group):
    asked = max(np.bincount(group).max(initial=0), 1)
    return steadiness(pd.DataFrame({"item": group, "verdict": x, "group": group // 2}), asked=int(asked))


def votes(x, y):
    """A vote of model x against model y, if they differ, that x wins, loses or ties."""
    rows = x != y
    return {"a": x[rows] - 1, "b": y[rows] - 1, "y": ((x + y) % 3 / 2)[rows], "models": list("abcde")}


def rated(x, y, group):
    columns = votes(x, y)
    item = np.arange(len(columns["y"]))
    result = fit(**columns, group=group[x != y], item=item, rng=rng(), draws=20)
    contrasts = [result.contrast("a", other).difference for other in "bcde"]
    return [*(rating.strength for rating in result.ratings.values()), *contrasts]


# Of two columns of whole numbers from 1 to 5, shape (n,), and the groups of the rows.
STATISTICS = {
    "rate": lambda x, y, g: [rate(hits=x == y, cluster=g), rate(hits=x == y, cluster=g, stratum=y)],
    "rates": lambda x, y, g: rates(hits=x > 3, cluster=g, part=y - 1, parts=5),
    "rate_by_sizes": lambda x, y, g: [rate_by_sizes(hits=int((x > y).sum()), n=len(x), cluster=g)],
    "mean": lambda x, y, g: [
        mean(values=x, cluster=g),
        mean(values=x, cluster=g, ends=(1, 5)),
        mean(values=x, cluster=g, stratum=y, ends=(1, 5)),
    ],
    "change": lambda x, y, g: [
        change(before=x, after=y, cluster=g, ends=(1, 5)),
        change(before=x > 3, after=y > 3, cluster=g, ends=(0, 1)),
    ],
    "pearson": lambda x, y, g: [
        pearson(x=x, y=y, cluster=g).estimate,
        pearson(x=x, y=y, cluster=g, stratum=g % 2).estimate,
    ],
    "spearman": lambda x, y, g: [
        spearman(x=x, y=y, cluster=g).estimate,
        spearman(x=x, y=y, cluster=g, stratum=g % 2).estimate,
    ],
    "correlation_difference": lambda x, y, g: [
        correlation_difference(
            first=x, second=np.minimum(x, y), reference=y, cluster=g, stratum=g % 2, name=name
        ).difference
        for name in ("pearson", "spearman")
    ],
    "agreement": lambda x, y, g: [
        measure(first=WORDS[x - 1], second=WORDS[y - 1], cluster=g).share for measure in (agreement, agreement_decided)
    ],
    "cohen_kappa": lambda x, y, g: [
        cohen_kappa(first=x, second=y, cluster=g),
        cohen_kappa(first=x, second=y, cluster=g, stratum=g % 2),
        cohen_kappa(first=WORDS[x - 1], second=WORDS[y - 1], cluster=g),
    ],
    "pair_scores": lambda x, y, g: [
        score
        for ties in (True, False)
        for stratum in (None, g % 2)
        for score in scores_of(
            pair_scores(reference=WORDS[x - 1], prediction=WORDS[y - 1], cluster=g, ties=ties, stratum=stratum)
        )
    ],
    "class_scores": lambda x, y, g: [
        score
        for stratum in (None, g % 2)
        for score in scores_of(class_scores(reference=x, prediction=y, cluster=g, stratum=stratum))
    ],
    "yes_no_scores": lambda x, y, g: scores_of(yes_no_scores(key=x > 3, said=np.sign(y - 3), cluster=g)),
    "choice_scores": lambda x, y, g: scores_of(
        choice_scores(vanilla=x > 3, circular=(x > 3) & (y > 3), options=y, cluster=g)
    ),
    "krippendorff_alpha": lambda x, y, g: [
        krippendorff_alpha(unit=g, value=x, metric=metric, cluster=g // 2)
        for metric in ("nominal", "ordinal", "interval")
    ],
    "fleiss_kappa": lambda x, y, g: [
        fleiss_kappa(unit=np.tile(np.arange(len(x)), 2), value=np.r_[x, y], cluster=np.tile(g, 2))
    ],
    "gwet": lambda x, y, g: [gwet(unit=g, value=x, measure=measure, cluster=g // 2) for measure in ("ac1", "ac2")],
    "beyond_chance": lambda x, y, g: [
        beyond_chance(measure=measure, first=x, second=y, cluster=g, stratum=stratum)
        for measure in MEASURES
        for stratum in (None, g % 2)
    ],
    "intraclass": lambda x, y, g: scores_of(
        intraclass(
            item=np.tile(np.arange(len(x)), 2),
            rater=np.repeat([0, 1], len(x)),
            value=np.r_[x, y],
            cluster=np.tile(g, 2),
            stratum=np.tile(g % 2, 2),
        )
    ),
    "steadiness": lambda x, y, g: scores_of(of_repeats(x, g)),
    "position": lambda x, y, g: scores_of(position(straight=WORDS[x - 1], turned=WORDS[y - 1], cluster=g)),
    "length": lambda x, y, g: scores_of(length(won=(x + y + g) % 2, tokens=np.stack([x, y], axis=1), cluster=g)),
    "own_family": lambda x, y, g: [own_family(judge=x, people=y, own=(x + g) % 3 == 0, cluster=g, width=4)],
    "prediction_powered": lambda x, y, g: [
        prediction_powered(
            labels=np.repeat(x, 30),
            judged=np.repeat(y, 30),
            unlabelled=[1, 2],
            cluster=np.repeat(g, 30) * 30 + np.arange(30 * len(x)) % 30,
            unlabelled_cluster=[-1, -2],
            ends=(1, 5),
        ).estimate
    ],
    "mean_distance": lambda x, y, g: [mean_distance(first=ranked(x), second=ranked(y), cluster=g)],
    "rank_correlation": lambda x, y, g: [rank_correlation(x=x[:6], y=y[:6], rng=rng()).spearman],
    "bradley_terry": rated,
    "online_bootstrap": lambda x, y, g: elo.online_bootstrap(**votes(x, y), rng=rng(), replicates=9).values(),
}


def check(estimates):
    for estimate in estimates:
        assert estimate.value is not None or estimate.reason
        assert estimate.se is None or 0 < estimate.se < np.inf
        if estimate.interval is None:
            assert estimate.reason
        else:
            assert estimate.interval.low - 1e-9 <= estimate.value <= estimate.interval.high + 1e-9


@pytest.mark.parametrize("name", STATISTICS)
@given(
    st.one_of(
        st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 11)), max_size=40),
        st.lists(st.tuples(st.just(3), st.integers(3, 4), st.integers(0, 11)), min_size=8, max_size=40),
    )
)
def test_an_estimate_has_a_value_and_an_interval_that_holds_it_or_says_why_not(name, rows):
    x, y, group = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    check(STATISTICS[name](x, y, group))


ROWS = np.arange(24)
CASES = {
    "no rows": (ROWS[:0], ROWS[:0], ROWS[:0]),
    "one row": (ROWS[:1] + 1, ROWS[:1] + 2, ROWS[:1]),
    "one group": (ROWS % 5 + 1, ROWS % 3 + 1, ROWS * 0),
    "one large group": (np.r_[ROWS, ROWS] % 5 + 1, np.r_[ROWS, ROWS] % 3 + 1, np.maximum(np.r_[ROWS, ROWS] - 15, 0)),
    "all alike": (ROWS * 0 + 2, ROWS * 0 + 2, ROWS // 2),
    "one column alike": (ROWS % 5 + 1, ROWS * 0 + 2, ROWS // 2),
    "equal columns": (ROWS % 5 + 1, ROWS % 5 + 1, ROWS // 2),
    "groups alike": (ROWS % 2 + 1, ROWS % 2 + 2, ROWS // 2),
    "all ties": (ROWS * 0 + 3, ROWS * 0 + 3, ROWS),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", STATISTICS)
def test_columns_that_say_little_have_estimates_that_say_so(name, case):
    estimates = list(STATISTICS[name](*CASES[case]))
    check(estimates)
    if case == "no rows":
        assert {estimate.value for estimate in estimates} <= {None}
    if case == "one group":
        assert {estimate.interval for estimate in estimates if estimate.groups == 1 and estimate.n > 1} <= {None}


def test_a_number_that_is_none_is_refused_by_name():
    x, nan, group = np.ones(9), np.full(9, np.nan), np.arange(9)
    refused = {
        "mean": lambda: mean(values=nan, cluster=group, ends=(0.0, 1.0)),
        "change": lambda: change(before=x, after=nan, cluster=group, ends=(0, 1)),
        "difference": lambda: difference(first=x, second=nan, cluster=group, rng=rng()),
        "pearson": lambda: pearson(x=x, y=nan, cluster=group),
        "spearman": lambda: spearman(x=nan, y=x, cluster=group),
        "two correlations": lambda: correlation_difference(
            first=x, second=nan, reference=x, cluster=group, stratum=group * 0, name="pearson"
        ),
        "own family": lambda: own_family(judge=nan, people=x, own=group > 4, cluster=group, width=4),
        "length": lambda: length(won=x, tokens=np.stack([x, nan], axis=1), cluster=group),
        "high scores": lambda: high_scores(judge=nan, people=x),
        "ppi": lambda: prediction_powered(
            labels=x, judged=nan, unlabelled=x, cluster=group, unlabelled_cluster=group, ends=(0, 1)
        ),
        "boards": lambda: rank_correlation(x=x, y=nan, rng=rng()),
        "places": lambda: places_of_means(values=nan, model=group % 2, models=2, cluster=group, rng=rng()),
        "alpha": lambda: krippendorff_alpha(unit=group // 3, value=[1, 2, np.inf] * 3, metric="interval"),
    }
    for statistic in refused.values():
        with pytest.raises(NotFinite):
            statistic()


def test_a_difference_beyond_its_scale_widens_the_scale():
    rows = np.arange(40)
    bias = own_family(judge=np.where(rows % 2, 100 + rows, 0), people=rows * 0, own=rows % 2, cluster=rows, width=4)
    assert bias.value == pytest.approx(120)
    assert bias.interval.low <= bias.value <= bias.interval.high


def test_a_label_that_is_missing_is_not_counted():
    labels, gaps, group = np.array([1.0, 2, 1, 2] * 6), np.array([1.0, 2, np.nan, 2] * 6), np.arange(24)
    present = ~np.isnan(gaps)
    assert cohen_kappa(first=labels, second=gaps, cluster=group) == cohen_kappa(
        first=labels[present], second=gaps[present], cluster=group[present]
    )
    table = {"unit": np.tile(group, 2), "value": np.r_[labels, gaps]}
    known = {name: column[np.r_[present, present]] for name, column in table.items()}
    alphas = [krippendorff_alpha(**rows, metric="interval") for rows in (table, known)]
    assert (alphas[0].value, alphas[0].interval) == (alphas[1].value, alphas[1].interval)


def test_tables_of_annotators_without_rows_are_empty():
    assert pairwise_kappa(annotator=[], item=[], verdict=[]).empty
    assert pairwise_agreement(annotator=["p"], item=[1], verdict=[None]).empty
    alone = alternative_annotator_test(
        labels=pd.DataFrame({"annotator": ["p"], "item": [1], "value": [1.0]}),
        judge=pd.DataFrame({"item": [1], "value": [1.0]}),
    )
    assert (alone.winning_rate, alone.passes) == (None, None)
    assert alone.reason
