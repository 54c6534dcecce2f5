import json

import numpy as np
import pandas as pd
import pytest

from stats.alternative import UnknownMeasure, alternative_annotator_test


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
