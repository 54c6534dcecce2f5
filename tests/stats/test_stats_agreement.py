import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.agreement import (
    MEASURES,
    TOO_MANY_LABELS,
    agreement,
    agreement_decided,
    beyond_chance,
    cohen_kappa,
    pairwise_agreement,
    pairwise_kappa,
)
from stats.jackknife import JACKKNIFE, PERFECT
from stats.proportions import wilson
from stats.results import DuplicateVerdict
from stats.verdicts import VERDICTS, decided, three_way, words

verdicts = st.sampled_from([*VERDICTS, None])


def labels_of(table):
    """Two columns of labels with this confusion table."""
    first, second = np.indices(np.shape(table)).reshape(2, -1)
    return np.repeat(first, np.ravel(table)), np.repeat(second, np.ravel(table))


def kappa(first, second, cluster=None, **options):
    cluster = np.arange(len(first)) if cluster is None else cluster
    return cohen_kappa(first=first, second=second, cluster=cluster, **options)


def test_agreement_counts_all_verdicts_and_undecided_as_a_tie():
    got = agreement(
        first=["first", "tie", "undecided", "first", None],
        second=["first", "undecided", "tie", "second", "first"],
        cluster=range(5),
    )
    assert (got.agree, got.share.n, got.share.value) == (3, 4, 0.75)
    assert got.share.interval == wilson(successes=3, n=4)


def test_agreement_decided_counts_only_where_both_chose_a_side():
    got = agreement_decided(
        first=["first", "tie", "second", "first", "second"],
        second=["first", "first", "undecided", "second", "second"],
        cluster=range(5),
    )
    assert (got.agree, got.share.n) == (2, 3)


@pytest.mark.parametrize(("agree", "n", "percent"), [(147, 167, 88.02), (198, 225, 88.0), (177, 220, 80.45)])
def test_agreement_decided_gives_the_percentages_of_mllm_bench_tables_14_and_15(agree, n, percent):
    second = ["first"] * agree + ["second"] * (n - agree) + ["undecided"] * 20
    got = agreement_decided(first=["first"] * len(second), second=second, cluster=range(len(second)))
    assert (got.agree, got.share.n, round(100 * got.share.value, 2)) == (agree, n, percent)


def test_agreement_of_nothing_is_none():
    assert agreement_decided(first=["tie"], second=["first"], cluster=[1]).share.value is None


@given(st.lists(st.tuples(verdicts, verdicts, st.integers(0, 5)), max_size=40))
def test_agreement_is_the_same_from_either_side_and_within_its_interval(rows):
    first, second, cluster = ([row[i] for row in rows] for i in range(3))
    for measure in (agreement, agreement_decided):
        got = measure(first=first, second=second, cluster=cluster)
        assert measure(first=second, second=first, cluster=cluster) == got
        if got.share.interval:
            assert 0 <= got.share.interval.low <= got.share.value <= got.share.interval.high <= 1


def test_cohens_kappa_and_its_error_are_those_of_the_reference_case():
    # [[20, 5], [10, 15]]: kappa .4 (Wikipedia, "Cohen's kappa"); asymptotic error .12700 (Fleiss, Cohen and Everitt
    # 1969), which the jackknife's is near to.
    got = kappa(*labels_of([[20, 5], [10, 15]]))
    assert got.value == pytest.approx(0.4)
    assert got.se == pytest.approx(0.12700, rel=0.03)
    assert (got.n, got.groups) == (50, 50)


@given(st.lists(st.integers(0, 9), min_size=9, max_size=9).filter(lambda cells: sum(cells) > 1))
def test_cohens_kappa_is_statsmodels_and_with_many_rows_so_is_its_error(cells):
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    table = np.reshape(cells, (3, 3))
    got = kappa(*labels_of(table))
    if got.value is None:
        assert (table.sum(axis=0) * table.sum(axis=1)).sum() == table.sum() ** 2
        return
    with np.errstate(all="ignore"):
        expected = inter_rater.cohens_kappa(table)
    assert got.value == pytest.approx(expected.kappa)
    if got.interval:
        assert -1 < got.interval.low < got.value < got.interval.high < 1
        many = kappa(*labels_of(100 * table))
        assert many.se == pytest.approx(expected.std_kappa / 10, rel=0.05)


def of_table(measure, table, **options):
    first, second = labels_of(table)
    return beyond_chance(measure=measure, first=first, second=second, cluster=np.arange(len(first)), **options)


@given(st.lists(st.integers(0, 9), min_size=16, max_size=16).filter(lambda cells: sum(cells) > 1))
def test_weighted_kappa_is_statsmodels(cells):
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    table = np.reshape(cells, (4, 4))
    for measure, weights in (("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")):
        got = of_table(measure, table)
        if got.value is not None:
            with np.errstate(all="ignore"):
                assert got.value == pytest.approx(inter_rater.cohens_kappa(table, wt=weights).kappa, abs=1e-9)


def test_agreement_beyond_chance_is_that_of_gwets_abstractors():
    # irrCAC 1.0, `cont3x3abstractors`: kappa .7964094, and AC1 of the same table .8493305.
    table = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    assert of_table("kappa", table).value == pytest.approx(0.7964094, abs=5e-8)
    assert of_table("ac1", table).value == pytest.approx(0.8493305, abs=5e-8)


def test_where_one_label_is_rare_gwets_ac1_stays_near_the_agreement_and_kappa_does_not():
    # Gwet 2002, "Kappa statistic is not satisfactory": 118 of 125 in one cell, agreement .944.
    table = [[118, 5], [2, 0]]
    assert of_table("kappa", table).value == pytest.approx(-0.0234, abs=5e-5)
    assert of_table("ac1", table).value == pytest.approx(0.9408, abs=5e-5)


def test_categories_that_nobody_gave_count_in_gwets_chance_alone():
    table = [[20, 5], [10, 15]]
    assert of_table("ac1", table, categories=[0, 1, 2]).value > of_table("ac1", table).value
    assert of_table("kappa", table, categories=[0, 1, 2]) == of_table("kappa", table)


def test_weighted_kappa_of_very_many_numbers_is_none_and_says_why():
    numbers = np.arange(101)
    got = beyond_chance(measure="kappa_linear", first=numbers, second=numbers, cluster=numbers)
    assert (got.value, got.reason) == (None, TOO_MANY_LABELS)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_two_of_many_people_have_the_measure_of_the_two_alone(measure):
    matrix = np.random.default_rng(8).integers(0, 4, (3, 40))
    got = pairwise_kappa(**long_table(matrix), measure=measure, categories=[0, 1, 2, 3])
    for row in got.itertuples(index=False):
        a, b = matrix[int(row.a[1])], matrix[int(row.b[1])]
        alone = beyond_chance(measure=measure, first=a, second=b, cluster=np.arange(40), categories=[0, 1, 2, 3])
        ends = alone.interval
        assert (row.kappa, row.se, row.low, row.high) == pytest.approx((alone.value, alone.se, ends.low, ends.high))


def test_kappa_of_rows_that_share_groups_leaves_out_one_group_at_a_time():
    rng = np.random.default_rng(3)
    first, group = rng.integers(0, 3, 200), np.arange(200) // 4
    second = np.where(rng.random(200) < 0.7, first, rng.integers(0, 3, 200))
    alone, shared = kappa(first, second), kappa(first, second, cluster=group)
    assert JACKKNIFE in shared.method
    assert shared.value == pytest.approx(alone.value)
    without = np.array([kappa(first[group != g], second[group != g]).value for g in range(50)])
    by_hand = np.sqrt(49 / 50 * ((without - shared.value) ** 2).sum())
    assert (shared.se, shared.groups) == (pytest.approx(by_hand), 50)
    order = rng.permutation(200)
    again = kappa(first[order], second[order], cluster=group[order])
    assert (again.value, again.se) == (shared.value, pytest.approx(shared.se))


def test_kappa_over_repeats_is_the_mean_of_their_kappas():
    rng = np.random.default_rng(4)
    people = rng.integers(0, 3, 60)
    judge = np.where(rng.random((2, 60)) < 0.6, people, rng.integers(0, 3, (2, 60)))
    pooled = kappa(
        np.tile(people, 2), judge.ravel(), cluster=np.tile(np.arange(60), 2), stratum=np.repeat(["one", "two"], 60)
    )
    assert pooled.value == pytest.approx(np.mean([kappa(people, repeat).value for repeat in judge]))
    assert pooled.groups == 60


def test_kappa_is_none_where_only_one_label_was_used_and_has_no_interval_without_disagreement():
    same = kappa(["a"] * 5, ["a"] * 5)
    assert (same.value, same.interval) == (None, None)
    assert "the same" in same.reason
    perfect = kappa(["a", "b"] * 5, ["a", "b"] * 5)
    assert (perfect.value, perfect.interval) == (1, None)
    shared = kappa(["a", "b"] * 10, ["a", "b"] * 10, cluster=np.arange(20) // 2)
    assert (shared.value, shared.interval, shared.reason) == (1, None, PERFECT)
    assert kappa([None], ["a"]).value is None


def test_renaming_the_labels_leaves_kappa_as_it_is():
    first, second = labels_of([[7, 2, 1], [3, 8, 0], [1, 1, 9]])
    names = np.array(["z", "a", "m"])
    assert kappa(names[first], names[second]).value == pytest.approx(kappa(first, second).value)


def long_table(matrix):
    rows = [(f"p{i}", j, value) for (i, j), value in np.ndenumerate(matrix)]
    annotator, item, verdict = zip(*rows, strict=True)
    return {"annotator": annotator, "item": item, "verdict": verdict}


@given(st.integers(0, 1000))
def test_pairwise_agreement_counts_every_pair_of_annotators(seed):
    rng = np.random.default_rng(seed)
    matrix = np.array([*VERDICTS, None], dtype=object)[rng.integers(0, 5, (4, 8))]
    for read in (three_way, decided):
        table = long_table(matrix)
        table["verdict"] = words(read(table["verdict"]))
        got = pairwise_agreement(**table)
        expected = []
        for a, b in itertools.combinations(range(4), 2):
            mine, theirs = read(matrix[a]), read(matrix[b])
            both = (mine >= 0) & (theirs >= 0)
            if both.any():
                expected.append((f"p{a}", f"p{b}", int((mine == theirs)[both].sum()), int(both.sum())))
        assert [tuple(row) for row in got.itertuples(index=False)] == expected


def test_pairwise_agreement_agrees_with_agreement_on_the_llmfao_annotators(llmfao):
    pairs = pairwise_agreement(annotator=llmfao["worker"], item=llmfao["item"], verdict=llmfao["choice"])
    assert pairs["n"].sum() == sum(n * (n - 1) // 2 for n in llmfao.groupby("item")["worker"].nunique())
    most = pairs.loc[pairs["n"].idxmax()]
    a, b = (llmfao[llmfao["worker"] == worker].set_index("item")["choice"] for worker in (most["a"], most["b"]))
    both = pd.concat([a, b], axis=1, join="inner")
    single = agreement(first=both.iloc[:, 0], second=both.iloc[:, 1], cluster=both.index)
    assert (single.agree, single.share.n) == (most["agree"], most["n"])


def test_kappa_of_every_pair_of_annotators_is_that_of_the_pair_alone(llmfao):
    pairs = pairwise_kappa(annotator=llmfao["worker"], item=llmfao["item"], verdict=llmfao["choice"])
    for row in pairs.nlargest(20, "n").itertuples():
        a, b = (llmfao[llmfao["worker"] == worker].set_index("item")["choice"] for worker in (row.a, row.b))
        both = pd.concat([a, b], axis=1, join="inner")
        alone = kappa(both.iloc[:, 0], both.iloc[:, 1])
        assert (row.n, row.kappa) == (alone.n, pytest.approx(alone.value))
        if alone.interval:
            ends = alone.interval.low, alone.interval.high
            assert (row.low, row.high, row.se) == pytest.approx((*ends, alone.se))
        else:
            assert np.isnan([row.low, row.high, row.se]).all()


def test_two_labels_of_one_annotator_on_one_item_are_refused():
    with pytest.raises(DuplicateVerdict):
        pairwise_agreement(annotator=["p", "p"], item=[1, 1], verdict=["first", "second"])


def test_no_labels_give_no_pairs():
    assert len(pairwise_agreement(annotator=[], item=[], verdict=[])) == 0
