import pandas as pd
import pytest

from stats.proportions import FEW_GROUPS, wilson
from stats.reliability import steadiness


def test_the_modal_share_and_the_items_with_a_majority_of_repeats():
    rows = [
        *[("a", "first")] * 3,
        *[("b", "first"), ("b", "second"), ("b", "tie")],
        *[("c", "first"), ("c", "first"), ("c", "tie")],
        *[("d", "tie"), ("d", "first")],
    ]
    table = pd.DataFrame(rows, columns=["item", "verdict"]).assign(group=lambda frame: frame["item"])
    of_three = steadiness(table, asked=3)
    # d has two verdicts of the three asked for: a repeat without one is no agreement.
    assert of_three.consistency.value == pytest.approx((1 + 1 / 3 + 2 / 3 + 1 / 3) / 4)
    assert (of_three.consistency.interval, of_three.consistency.reason) == (None, FEW_GROUPS)
    assert (of_three.mcc.value, of_three.mcc.n) == (0.5, 4)
    assert of_three.mcc.interval == wilson(successes=2, n=4)
    assert steadiness(table.sample(frac=1, random_state=1), asked=3) == of_three


def test_items_of_one_group_are_not_independent():
    rows = [(item, "first" if item % 3 or repeat else "second") for item in range(60) for repeat in range(3)]
    table = pd.DataFrame(rows, columns=["item", "verdict"])
    alone = steadiness(table.assign(group=table["item"]), asked=3).consistency
    shared = steadiness(table.assign(group=table["item"] // 5), asked=3).consistency
    assert shared.value == pytest.approx(alone.value) == pytest.approx((40 + 20 * 2 / 3) / 60)
    assert (alone.groups, shared.groups) == (60, 12)
    assert 0 < shared.interval.low < shared.value < shared.interval.high < 1


def test_rankings_are_verdicts_too_and_nothing_at_all_is_none():
    table = pd.DataFrame({"item": [1, 1], "verdict": [(0.0, 1.0), (0.0, 1.0)], "group": ["x", "x"]})
    assert steadiness(table, asked=2).mcc.value == 1
    assert steadiness(table.iloc[:0], asked=2).consistency.value is None
