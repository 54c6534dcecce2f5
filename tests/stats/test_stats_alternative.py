import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtr

from stats.alternative import UnknownMeasure, alternative_annotator_test
from stats.results import DuplicateVerdict


def people(noise: float, *, items: int = 120, annotators: int = 4, seed: int = 1):
    draw = np.random.default_rng(seed)
    truth = draw.integers(1, 6, items)

    def say(noise: float) -> np.ndarray:
        return np.clip(truth + np.rint(draw.normal(0, noise, items)), 1, 5)

    rows = [(f"person {a}", i, v) for a in range(annotators) for i, v in enumerate(say(noise))]
    return pd.DataFrame(rows, columns=["annotator", "item", "value"]), lambda n: pd.DataFrame(
        {"item": range(items), "value": say(n)}
    )


@pytest.mark.parametrize("measure", ["equality", "distance"])
def test_a_judge_as_good_as_people_passes_and_a_coin_does_not(measure):
    labels, judge = people(0.8)
    good = alternative_annotator_test(labels=labels, judge=judge(0.5), measure=measure)
    assert (good.passes, good.winning_rate) == (True, 1.0)
    assert good.advantage > 0.5
    bad = alternative_annotator_test(labels=labels, judge=judge(5.0), measure=measure)
    assert (bad.passes, bad.winning_rate) == (False, 0.0)
    assert bad.advantage < good.advantage


def test_half_of_the_annotators_is_enough():
    """2501.10970, section 3: a winning rate of .5 or more."""
    draw = np.random.default_rng(3)
    truth = draw.integers(1, 6, 200)
    noises = {"careful": 0.1, "as careful": 0.1, "a coin": 9.0, "another coin": 9.0, "judge": 1.0}
    said = {name: np.clip(truth + np.rint(draw.normal(0, noise, 200)), 1, 5) for name, noise in noises.items()}
    judge = pd.DataFrame({"item": range(200), "value": said.pop("judge")})
    labels = pd.DataFrame({"item": range(200), **said}).melt("item", var_name="annotator")
    found = alternative_annotator_test(labels=labels, judge=judge)
    assert (found.winning_rate, found.passes) == (0.5, True)


def test_a_smaller_epsilon_asks_more_of_the_judge():
    labels, judge = people(0.8)
    told = judge(0.9)
    rates = [
        alternative_annotator_test(labels=labels, judge=told, epsilon=epsilon).winning_rate for epsilon in (0, 0.2, 0.9)
    ]
    assert rates == sorted(rates)
    assert rates[-1] == 1


def test_an_annotator_put_in_the_judges_place_has_the_advantage_of_a_tie_at_least():
    labels, _ = people(0.8)
    twin = labels[labels["annotator"] == "person 0"][["item", "value"]]
    found = alternative_annotator_test(labels=labels, judge=twin).annotators[0]
    assert (found.advantage, found.annotator_advantage) == (1.0, 1.0)
    assert found.rejected


def one_by_one(labels, judge, measure, epsilon):
    """The test as the paper has it, on the whole table of people and items: n, both advantages and p by annotator."""
    table = labels.pivot(index="item", columns="annotator", values="value")
    judged = judge.set_index("item")["value"].reindex(table.index).to_numpy(np.float64)
    found = {}
    for name in table:
        own, rest = table[name].to_numpy(), table.drop(columns=name).to_numpy()
        at = np.isfinite(own) & np.isfinite(judged) & np.isfinite(rest).any(axis=1)
        close = []
        for values in (own[at], judged[at]):
            apart = rest[at] - values[:, None]
            if measure == "equality":
                close.append((apart == 0).sum(axis=1) / np.isfinite(apart).sum(axis=1))
            else:
                close.append(-np.sqrt(np.nansum(apart * apart, axis=1) / np.isfinite(apart).sum(axis=1)))
        person, machine = close[0] >= close[1], close[1] >= close[0]
        change, n = person.astype(float) - machine.astype(float), int(at.sum())
        p = None
        if n > 1:
            spread, over = change.std(ddof=1), change.mean() - epsilon
            p = float(stdtr(n - 1, over / (spread / np.sqrt(n)))) if spread > 0 else float(over >= 0)
        found[name] = (n, machine.mean(), person.mean(), p) if n else (0, 0.0, 0.0, None)
    return found


@pytest.mark.parametrize("measure", ["equality", "distance"])
@pytest.mark.parametrize("seed", range(12))
def test_its_figures_are_to_the_last_digit_those_of_each_annotator_left_out_of_the_whole_table(measure, seed):
    draw = np.random.default_rng(seed)
    annotators, items, steps = draw.integers(2, 30), draw.integers(1, 90), draw.choice([1.0, 0.5])
    told = draw.integers(-3, 4, (annotators, items)) * steps + draw.choice([0, 10_000])
    there = draw.random((annotators, items)) < draw.choice([0.1, 0.5, 1.0])
    who, item = np.nonzero(there)
    labels = pd.DataFrame({"annotator": [f"p{at}" for at in who], "item": item, "value": told[who, item]})
    labels.loc[draw.random(len(labels)) < 0.05, "value"] = np.nan
    judge = pd.DataFrame(
        {"item": np.arange(items), "value": draw.choice(told.ravel(), items) + draw.choice([0, 9], items)}
    )
    judge = judge.sample(frac=0.9, random_state=seed)
    found = alternative_annotator_test(
        labels=labels.sample(frac=1, random_state=seed), judge=judge, measure=measure, epsilon=0.1, fewest=1
    )
    got = {one.annotator: (one.n, one.advantage, one.annotator_advantage, one.p) for one in found.annotators}
    expected = one_by_one(labels, judge, measure, 0.1)
    if found.winning_rate is None:
        assert all(p is None for *_, p in expected.values())
    assert got == expected


def test_two_labels_of_one_annotator_on_an_item_are_refused():
    labels, judge = people(0.8)
    with pytest.raises(DuplicateVerdict):
        alternative_annotator_test(labels=pd.concat([labels, labels[:1]]), judge=judge(0.5))


def test_a_thousand_annotators_need_no_table_of_all_of_them_and_all_items():
    """Of 200,000 items the table alone would be 1.6 GB."""
    draw = np.random.default_rng(4)
    item = np.repeat(np.arange(200_000), 2)[: 2 * 200_000 : 20]
    who = [f"p{at:04}" for at in draw.permutation(np.arange(len(item)) % 1000)]
    labels = pd.DataFrame({"annotator": who, "item": item + np.arange(len(item)) % 2, "value": 1.0 * (item % 3)})
    labels = pd.concat([labels, labels.assign(annotator=labels["annotator"] + "x")])
    judge = pd.DataFrame({"item": np.arange(200_001), "value": 1.0})
    tracemalloc.start()
    for measure in ("equality", "distance"):
        assert len(alternative_annotator_test(labels=labels, judge=judge, measure=measure).annotators) == 2000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 * 2**20


def test_too_few_shared_items_are_told_and_nothing_is_decided():
    labels, judge = people(0.8, items=12)
    found = alternative_annotator_test(labels=labels, judge=judge(0.1))
    assert (found.winning_rate, found.passes) == (None, None)
    assert "no annotator shares 30 items" in found.reason
    assert [one.n for one in found.annotators] == [12] * 4


def test_order_of_rows_changes_nothing_and_a_measure_that_is_none_is_refused():
    labels, judge = people(0.8)
    told = judge(1.0)
    shuffled = labels.sample(frac=1, random_state=2)
    assert alternative_annotator_test(labels=labels, judge=told) == alternative_annotator_test(
        labels=shuffled, judge=told.sample(frac=1, random_state=3)
    )
    with pytest.raises(UnknownMeasure):
        alternative_annotator_test(labels=labels, judge=told, measure="pearson")


def test_the_lesion_data_give_every_judge_a_rate_over_six_annotators_at_most(shared_data):
    """LESION of arXiv 2501.10970: 100 images x 5 features."""
    folder = shared_data / "alt-test-lesion"
    human = json.loads((folder / "human_annotations.json").read_text())
    judges = json.loads((folder / "llm_annotations.json").read_text())
    labels = pd.DataFrame(
        [(who, item, value) for who, rows in human.items() for item, value in rows.items() if value is not None],
        columns=["annotator", "item", "value"],
    )
    for rows in judges.values():
        judge = pd.DataFrame([(i, v) for i, v in rows.items() if v is not None], columns=["item", "value"])
        found = alternative_annotator_test(labels=labels, judge=judge, measure="distance", epsilon=0.15)
        assert found.winning_rate is not None
        assert 0 <= found.advantage <= 1
        assert 3 <= len(found.annotators) <= 6
