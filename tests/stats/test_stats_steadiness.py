import pandas as pd
import pytest

from stats.reliability import steadiness


def test_the_modal_share_and_the_items_with_a_majority_of_repeats():
    rows = [
        *[("a", "first")] * 3,
        *[("b", "first"), ("b", "second"), ("b", "tie")],
        *[("c", "first"), ("c", "first"), ("c", "tie")],
        *[("d", "tie"), ("d", "first")],
    ]
    table = pd.DataFrame(rows, columns=["item", "verdict"]).assign(group=lambda frame: frame["item"])
    found = steadiness(table)
    assert found.consistency.value == pytest.approx((1 + 1 / 3 + 2 / 3 + 1 / 2) / 4)
    assert found.consistency.interval.low < found.consistency.value < found.consistency.interval.high
    assert (found.mcc.value, found.mcc.n) == (0.5, 4)
    assert steadiness(table.sample(frac=1, random_state=1)) == found


def test_rankings_are_verdicts_too_and_nothing_at_all_is_none():
    table = pd.DataFrame({"item": [1, 1], "verdict": [(0.0, 1.0), (0.0, 1.0)], "group": ["x", "x"]})
    assert steadiness(table).mcc.value == 1
    assert steadiness(table.iloc[:0]).consistency.value is None
