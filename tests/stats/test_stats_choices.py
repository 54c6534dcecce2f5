"""Which option a text names, what yes or no it says, and the measures made from them."""

import numpy as np
import pytest

from stats.answer_text import answer_in, option_in
from stats.answers import choice_scores, shown_as, yes_no_scores

ABCD = ("A", "B", "C", "D")


@pytest.mark.parametrize(
    ("text", "option"),
    [
        # MMBench, arXiv 2307.06281, 4.2, step 1: "C", "C.", "C)", "C,", "C)." among the words of the output
        ("C", "C"),
        ("C.", "C"),
        ("C)", "C"),
        ("I would say C, clearly", "C"),
        ("It must be C).", "C"),
        ("(C)", "C"),
        ("**C**", "C"),
        ("c", "C"),
        ("$\\boxed{C}$", "C"),
        ("C) teddy bear", "C"),
        ("The answer is C.", "C"),
        ("The answer is B, not C", "B"),
        ("The correct option is A", "A"),
        ("<think>B? Or C?</think>\nD", "D"),
        ("A", "A"),
        ("A.", "A"),
        ("A, because it is big", "A"),
        ("So it is A", "A"),
        # its footnote: an A in a sentence may be the article
        ("A cat is on the mat", None),
        ("A cat, so (B)", "B"),
        ("The answer is A cat", None),
        ("The answer is a teddy bear.", None),
        ("B or C", None),
        ("Both A and B", None),
        ("teddy bear", None),
        ("ABCD", None),
        ("", None),
    ],
)
def test_the_label_that_a_text_names(text, option):
    assert option_in(text, ABCD) == option


def test_a_label_behind_a_rotation_is_the_option_that_stood_there():
    """Figure 3 of MMBench: with the options 4, 3, 2, 1 the second pass shows 3, 2, 1, 4, and its key is D."""
    assert [shown_as("D", ABCD, shift=shift) for shift in range(4)] == ["D", "A", "B", "C"]
    assert [shown_as(label, ABCD, shift=shift) for shift, label in enumerate("ADCB")] == ["A"] * 4
    assert shown_as("A", ABCD, order=["C", "A", "D", "B"]) == "C"


def test_circular_is_right_only_where_every_rotation_is():
    scores = choice_scores(vanilla=[1, 1, 0, 1], circular=[1, 0, 0, 0], options=[4, 4, 2, 2], cluster=list("abcd"))
    assert (scores.vanilla.value, scores.circular.value, scores.vanilla.n) == (0.75, 0.25, 4)
    assert scores.vanilla.interval.low < 0.75 < scores.vanilla.interval.high
    assert scores.chance == pytest.approx(0.375)
    assert choice_scores(vanilla=[1], circular=None, options=[3], cluster=["a"]).circular is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", True),
        ("yes, there is no doubt", True),
        ("No.", False),
        ("**No**", False),
        ("There is no dog in the picture", False),
        ("The answer is yes.", True),
        ("Yes and no", None),
        ("I have no idea", None),
        ("Perhaps", None),
        ("", None),
    ],
)
def test_the_yes_or_no_that_a_text_says(text, answer):
    assert answer_in(text) is answer


def test_yes_no_measures_by_hand():
    """8 questions: TP 3, FP 1, TN 2, one yes missed by a no and one by an evasion."""
    scores = yes_no_scores(
        key=[1, 1, 1, 1, 1, 0, 0, 0],
        said=[1, 1, 1, 0, -1, 1, 0, 0],
        cluster=np.arange(8),
    )
    assert scores.accuracy.value == 5 / 8
    assert scores.precision.value == 3 / 4
    assert scores.recall.value == 3 / 5
    assert scores.f1.value == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert scores.yes_ratio.value == 4 / 8
    assert all(0 <= e.interval.low <= e.value <= e.interval.high <= 1 for e in (scores.f1, scores.recall))


def test_where_nobody_says_yes_there_is_no_precision():
    scores = yes_no_scores(key=[0, 0], said=[0, 0], cluster=[1, 2])
    assert scores.precision.value is None
    assert scores.f1.value is None
    assert scores.accuracy.value == 1
