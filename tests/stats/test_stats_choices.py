"""Which option a text names, what yes or no it says, and the measures made from them."""

import json
import re

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


# Denials, eliminations, questions, two labels, and letters that are part of a name or a unit.
NO_ANSWER = [
    "The answer is not C.",
    "The answer isn't C.",
    "The correct answer is not C",
    "It is not C.",
    "Not C.",
    "I would rule out option C",
    "B is wrong.",
    "D is incorrect",
    "Option B is wrong and option A is right",
    "nan",
    "None",
    "C can be ruled out.",
    "We can eliminate C.",
    "Option C is eliminated.",
    "B is wrong.",
    "D is incorrect",
    "Option B is wrong and option A is right",
    "Option C, which shows a dog, is wrong.",
    "C is not correct.",
    "C isn't right.",
    "(C) is not the answer",
    "**C** is false.",
    "C cannot be the answer.",
    "C can't be right",
    "C does not match the picture.",
    "C is unlikely.",
    "I don't think the answer is C.",
    "I doubt that it is C",
    "I am not sure whether it is C",
    "It is anything but C.",
    "Every option except C.",
    "Any option other than C",
    "Choose any but not D",
    "Neither B nor C",
    "None of A, B and C",
    "Not A, not B, not D",
    "The wrong option is C.",
    "Is it C?",
    "C? No.",
    "I first thought C, at first C seemed right",
    "The answer would be C if the sky were green",
    "B or C",
    "The answer is B or C.",
    "The answer is A and B",
    "It is either (B) or (C).",
    "Both A and B are right",
    "A and C",
    "B, C",
    "B/C",
    "It could be A. It could be D.",
    "Picture B matches, picture C too",
    "The picture shows vitamin C",
    "Oranges are rich in vitamin C.",
    "The answer is vitamin C",
    "It is plan B",
    "Hepatitis B",
    "The temperature is 20 °C",
    "About 20 C",
    "A current of 5 A",
    "It was painted by George C. Scott",
    "He lives in Washington, D.C.",
    "500 B.C.",
    "It is written in C++",
    "It is in C major",
    "blood type B",
    "The programming language C",
    "答案不是C",
    "答案不是 C。",
    "不选C",
    "C不对",
    "C 是错误的",
    "C选项错误",
    "排除C",
    "可以排除选项C",
    "C可以排除",
    "C选项不符合题意",
    "C不正确。",
    "不可能是C",
    "除了C都对",
    "既不是A也不是B",
    "B或C",
    "A和B",
    "A、B都正确",
    "答案是B或者C",
    "维生素C",
    "图中是维生素 C 片",
    "B超检查",
    "C罗",
    "并非C",
    "如果天是绿的，选C吗？",
    "C is less likely",
    "C is a distractor.",
    "C contradicts the picture",
    "C ❌",
    "A ✗ B ✗",
    "A or maybe D",
    "选项C与图片不符",
]
PLAIN_ANSWERS = [
    ("The answer is C, because it does not have wings.", "C"),
    ("C, because it is not big", "C"),
    ("C. There is no dog", "C"),
    ("(D) None of the above", "D"),
    ("D None of the above", "D"),
    ("D. None of the above", "D"),
    ("Answer: B. Wrong", "B"),
    ("B: incorrect", "B"),
    ("C. All the others are wrong.", "C"),
    ("C, the others are not correct", "C"),
    ("The answer is B, not C", "B"),
    ("A is wrong. The answer is B.", "B"),
    ("Without doubt the answer is C", "C"),
    ("There is no doubt that it is C", "C"),
    ("It is not a cat, so the answer is C", "C"),
    ("It is not a cat. C", "C"),
    ("I choose C", "C"),
    ("I would go with B", "B"),
    ("My answer: D", "D"),
    ("Answer: C", "C"),
    ("Answer:\nC", "C"),
    ("Option B", "B"),
    ("Option A is correct.", "A"),
    ("The correct choice is (A) cat", "A"),
    ("I think it's B.", "B"),
    ("A cat, so (B)", "B"),
    ("C teddy bear", "C"),
    ("So it must be option D, the bear.", "D"),
    ("答案是C", "C"),
    ("答案：C", "C"),
    ("答案为 B。", "B"),
    ("选C", "C"),
    ("我选择B。", "B"),
    ("正确答案是D。", "D"),
    ("C。天坛", "C"),
    ("A. 天坛", "A"),
    ("A、天坛", "A"),
    ("C 天坛", "C"),
    ("选C，与图片相符", "C"),
    ("B ✗\nThe answer is C ✓", "C"),
    ("毫无疑问，答案是C", "C"),
    ("因为没有翅膀，所以选C", "C"),
    ("应该选A", "A"),
    ("C是正确的", "C"),
    ("图中的建筑是故宫，选B", "B"),
    ("故选B。", "B"),
    ("B选项正确", "B"),
    ("The object would sink if it were heavy.\nSo the answer is C.", "C"),
    ("Step 1: A is not right.\nStep 2: B is possible.\n\nFinal answer: B", "B"),
]


@pytest.mark.parametrize("text", NO_ANSWER)
def test_a_text_that_denies_a_label_names_two_or_has_it_in_a_name_gives_none(text):
    assert option_in(text, ABCD) is None


@pytest.mark.parametrize(("text", "option"), PLAIN_ANSWERS)
def test_a_plain_answer_gives_its_label_whatever_else_it_denies(text, option):
    assert option_in(text, ABCD) == option


@pytest.mark.parametrize(
    ("text", "labels", "option"),
    [
        ("The answer is 2", ("1", "2", "3"), "2"),
        ("There are 2 dogs", ("1", "2", "3"), None),
        ("It weighs 2.5 kg", ("1", "2", "5"), None),
        ("The answer is not 2", ("1", "2", "3"), None),
        ("The answer is dog", ("foo", "dog"), "dog"),
        ("It is not dog", ("foo", "dog"), None),
        ("The answer is II.", ("I", "II", "III"), "II"),
        ("not the first", ("first", "second"), None),
    ],
)
def test_other_labels_are_denied_by_the_same_words(text, labels, option):
    assert option_in(text, labels) == option


def test_plain_answers_to_the_questions_of_mmbench_are_all_read(shared_data):
    questions = json.loads((shared_data / "mmbench" / "samples_parsed.json").read_text())
    forms = ["{0}", "{0}.", "({0})", "{0}. {1}", "({0}) {1}", "{0} {1}", "The answer is {0}.", "Answer: {0}. {1}"]
    forms += ["The best answer is {0}, because the picture shows {1}.", "I would choose {0}.", "It is {0}, {1}."]
    forms += ["答案是{0}", "选{0}。", "{0}选项正确", "不是其他选项，答案是{0}。"]
    for question in questions:
        for label, says in question["options"].items():
            for form in forms:
                text = form.format(label, says)
                if re.match("A [A-Za-z]", text) or {*re.findall(r"\b[A-D]\b", text)} - {label, *says.split()[:1]}:
                    continue  # an article, or the option's own text names another label
                assert option_in(text, tuple(question["options"])) == label, text


def test_a_yes_or_no_that_is_denied_is_none():
    for text in (
        "The answer is not yes.",
        "The answer is not no",
        "I would not say yes.",
        "It isn't a yes",
        "Yes is wrong",
    ):
        assert answer_in(text) is None, text
    for text in ("I do not see a dog, so no.", "No, there is not", "There is no dog and not a cat"):
        assert answer_in(text) is False, text


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
