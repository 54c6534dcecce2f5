import gzip
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.results import DuplicateVerdict
from stats.verdicts import VERDICTS, Coverage, combine_orders


def judgments(*rows):
    return pd.DataFrame(rows, columns=["item", "repeat", "order", "choice"])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("first", "first", "first"),
        ("second", "second", "second"),
        ("first", "second", "tie"),
        ("undecided", "undecided", "tie"),
        ("first", "undecided", "first"),
        ("undecided", "second", "second"),
        ("tie", "second", "second"),
        ("tie", "undecided", "tie"),
    ],
)
def test_more_votes_over_both_orders_win_and_equal_votes_are_a_tie(one, other, expected):
    for pair in ((one, other), (other, one)):
        rows = judgments(("i", 0, "ab", pair[0]), ("i", 0, "ba", pair[1]))
        assert combine_orders(judgments=rows, orders=2).outcomes["choice"].tolist() == [expected]


def test_an_item_without_one_of_the_orders_is_not_counted_and_the_coverage_says_so():
    rows = judgments(
        ("whole", 0, "ab", "first"),
        ("whole", 0, "ba", "first"),
        ("failed", 0, "ab", "first"),
        ("failed", 0, "ba", None),
        ("half", 0, "ab", "second"),
    )
    combined = combine_orders(judgments=rows, orders=2)
    assert combined.outcomes["item"].tolist() == ["whole"]
    assert combined.coverage == Coverage(counted=1, asked=3)


def test_each_repeat_is_an_outcome_of_its_own():
    rows = judgments(
        *(("i", repeat, order, choice) for repeat, choice in enumerate(["first", "second"]) for order in "xy")
    )
    combined = combine_orders(judgments=rows, orders=2)
    assert combined.outcomes.to_dict("records") == [
        {"item": "i", "repeat": 0, "choice": "first", "first": 2, "second": 0},
        {"item": "i", "repeat": 1, "choice": "second", "first": 0, "second": 2},
    ]


def test_one_order_is_enough_where_only_one_was_asked_for():
    rows = judgments(("i", 0, "ab", "second"), ("j", 0, "ba", "tie"))
    assert combine_orders(judgments=rows, orders=1).outcomes["choice"].tolist() == ["second", "tie"]


def test_no_judgments_give_no_outcomes():
    combined = combine_orders(judgments=judgments(), orders=2)
    assert combined.outcomes.empty
    assert combined.coverage == Coverage(0, 0)


def test_two_judgments_of_the_same_order_are_refused():
    with pytest.raises(DuplicateVerdict):
        combine_orders(judgments=judgments(("i", 0, "ab", "first"), ("i", 0, "ab", "first")), orders=2)


@given(st.lists(st.sampled_from([*VERDICTS, None]), min_size=1, max_size=20), st.randoms())
def test_the_order_of_rows_does_not_matter(choices, random):
    rows = [(index // 2, 0, index % 2, choice) for index, choice in enumerate(choices)]
    first = combine_orders(judgments=judgments(*rows), orders=2)
    random.shuffle(rows)
    again = combine_orders(judgments=judgments(*rows), orders=2)
    assert again.coverage == first.coverage
    sort = ["item", "repeat"]
    left, right = (result.outcomes.sort_values(sort, ignore_index=True) for result in (first, again))
    pd.testing.assert_frame_equal(left, right)


@pytest.mark.parametrize(
    ("model", "wins", "ties", "losses"),
    [
        ("claude-3-5-sonnet-20240620", 396, 15, 9),
        ("gemini-1.5-pro-002", 388, 21, 11),
        ("mistralai__pixtral-12b", 329, 40, 51),
        ("qwen__qwen-2-vl-72b-instruct", 303, 40, 77),
    ],
)
def test_the_released_votes_give_the_rows_of_mllm_bench_table_5(shared_data, model, wins, ties, losses):
    path = shared_data / "mllm-bench" / "votes" / f"{model}_llava_criteria.jsonl.gz"
    if not path.is_file():
        pytest.skip("the votes of mllm-bench are not in the shared data")
    rows = []
    with gzip.open(path, "rt") as lines:
        for vote in map(json.loads, lines):
            item, order = vote["unique_idx"].split("_")
            said = vote["response"]["choices"][0]["message"]["content"].strip().splitlines()[-1]
            anchor_first = vote["model_1"].startswith("llava")
            sides = {"Answer1": "second" if anchor_first else "first", "Answer2": "first" if anchor_first else "second"}
            rows.append((item, 0, order, next((side for word, side in sides.items() if word in said), "undecided")))
    combined = combine_orders(judgments=judgments(*rows), orders=2)
    counts = combined.outcomes["choice"].value_counts()
    assert (counts["first"], counts["tie"], counts["second"]) == (wins, ties, losses)
    assert combined.coverage == Coverage(420, 420)
