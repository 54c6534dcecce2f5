from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.results import UnknownVerdict
from stats.verdicts import VERDICTS, UnknownRule, majority

LETTERS = {"F": "first", "S": "second", "T": "tie", "U": "undecided"}


def of(votes, rule):
    table = majority(labels=pd.DataFrame({"item": "i", "choice": [LETTERS[vote] for vote in votes]}), rule=rule)
    return table.loc["i", "choice"]


@pytest.mark.parametrize(
    ("votes", "mllm_bench", "plurality"),
    [
        ("FFS", "first", "first"),
        ("FSS", "second", "second"),
        ("FS", "undecided", "tie"),
        ("FSU", "undecided", "tie"),
        ("FUU", "undecided", "undecided"),
        ("FFUU", "first", "tie"),
        ("FFSUU", "first", "tie"),
        ("FFTU", "first", "first"),
        ("FFTTU", "undecided", "tie"),
        ("FTU", "undecided", "tie"),
        ("FFFSSTTT", "first", "tie"),
        ("TTF", "undecided", "tie"),
        ("UUTFS", "undecided", "undecided"),
        ("U", "undecided", "undecided"),
        ("T", "undecided", "tie"),
    ],
)
def test_the_two_rules_of_the_protocol(votes, mllm_bench, plurality):
    assert of(votes, "mllm-bench") == mllm_bench
    assert of(votes, "plurality") == plurality


def test_the_counts_stand_beside_the_verdict():
    labels = pd.DataFrame({"item": ["b", "a", "b", "b"], "choice": ["first", "tie", "undecided", "first"]})
    table = majority(labels=labels, rule="plurality")
    assert table.index.tolist() == ["b", "a"]
    assert table.columns.tolist() == ["choice", "first", "second", "tie", "undecided"]
    assert table.loc["b"].tolist() == ["first", 2, 0, 0, 1]


def test_missing_verdicts_are_not_counted_and_an_item_without_any_is_no_row():
    labels = pd.DataFrame({"item": [1, 1, 2], "choice": ["second", None, None]})
    assert majority(labels=labels, rule="mllm-bench")["choice"].to_dict() == {1: "second"}
    assert majority(labels=labels.iloc[:0], rule="mllm-bench").empty


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(VERDICTS)), max_size=60), st.randoms())
def test_plurality_is_the_most_common_verdict_in_any_order_of_rows(rows, random):
    labels = pd.DataFrame(rows, columns=["item", "choice"])
    table = majority(labels=labels, rule="plurality")
    for item, group in labels.groupby("item"):
        (top, times), *rest = Counter(group["choice"]).most_common()
        assert table.loc[item, "choice"] == ("tie" if rest and rest[0][1] == times else top)
    random.shuffle(rows)
    again = majority(labels=pd.DataFrame(rows, columns=["item", "choice"]), rule="plurality")
    pd.testing.assert_frame_equal(again.sort_index(), table.sort_index())


@given(st.lists(st.sampled_from("FSTU"), min_size=1, max_size=9))
def test_turning_the_pair_round_turns_the_verdict_round(votes):
    turn = {"first": "second", "second": "first"}
    turned = [{"F": "S", "S": "F"}.get(vote, vote) for vote in votes]
    for rule in ("mllm-bench", "plurality"):
        verdict = of(votes, rule)
        assert of(turned, rule) == turn.get(verdict, verdict)


def test_an_unknown_rule_and_an_unknown_verdict_are_refused():
    labels = pd.DataFrame({"item": [1], "choice": ["left"]})
    with pytest.raises(UnknownRule, match="mllm-bench, plurality"):
        majority(labels=labels, rule="median")
    with pytest.raises(UnknownVerdict):
        majority(labels=labels, rule="plurality")
