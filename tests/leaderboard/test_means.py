"""One verdict an item out of several."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.votes.scores import mean_by_item, mean_of

VALUES = {
    "scores": st.floats(1, 5),
    "words": st.sampled_from(["first", "second", "tie", "undecided"]),
    "rankings": st.permutations([0.0, 1.0, 2.0]).map(lambda places: (tuple(places),)),
    "points": st.fixed_dictionaries({"colour": st.floats(0, 3), "place": st.floats(0, 3)}),
}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_the_mean_by_item_is_the_mean_of_each_item_by_itself(kind, data):
    rows = data.draw(st.lists(st.tuples(st.integers(1, 5), VALUES[kind]), min_size=1, max_size=30))
    frame = pd.DataFrame(rows, columns=["item", "value"])
    found = mean_by_item(frame).set_index("item")["value"]
    expected = {item: mean_of(part["value"]) for item, part in frame.groupby("item")}
    assert found.to_dict() == (expected if kind != "scores" else pytest.approx(expected))


def test_votes_as_categories_are_told_in_their_order_where_several_are_as_frequent():
    votes = pd.Categorical(["tie", "first", "second", "second"], categories=["tie", "second", "first"])
    frame = pd.DataFrame({"item": [1, 1, 2, 2], "value": votes})
    assert mean_by_item(frame)["value"].tolist() == ["tie", "second"]
    assert [mean_of(part["value"]) for _, part in frame.groupby("item")] == ["tie", "second"]


def test_no_verdicts_have_no_mean():
    assert mean_by_item(pd.DataFrame({"item": [], "value": []})).empty
