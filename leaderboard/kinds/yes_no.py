"""Answers to questions of yes or no, compared with their keys (POPE)."""

from collections.abc import Callable

import pandas as pd
from django.db.models import Exists, OuterRef

from bank import guard
from bank.models import Benchmark, Response
from bank.submissions.marked_responses import counted
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from leaderboard.kinds.choice import Keyed
from leaderboard.scope import Scope
from stats.answer_text import answer_in
from stats.figures import percent

LOOKED_AT = 20  # answers read to decide whether questions are yes/no questions


class YesNo(Keyed):
    name = "yes-no"
    title = "Yes or no"
    aliases = ("yes_no",)
    column = "answer"
    question = "yes_no"
    shape = Shape(
        NumberColumn("accuracy", "Accuracy %", percent, "Share of right answers; one that says neither is not right"),
        "right %",
        "accuracy: an answer that says neither yes nor no is not right",
        beside=(
            NumberColumn("precision", "Precision %", percent, "Of the answers yes, how many are right"),
            NumberColumn("recall", "Recall %", percent, "Of the questions whose answer is yes, how many were found"),
            NumberColumn("f1", "F1 %", percent, "Harmonic mean of precision and recall"),
            NumberColumn("yes_ratio", "Yes %", percent, "Share of answers that say yes: a tendency, not a score"),
        ),
    )

    def numbers(self, scope: Scope, frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
        """Yes and no as words."""
        return frame.assign(value=frame["value"].map({True: "yes", False: "no"}))

    @guard.working()
    def has_models(self, benchmark: Benchmark, has_verdicts: Callable[[Kind], bool]) -> bool:
        """Whether most answers to questions without options say yes or no, judged by the first answered ones."""
        answers = Response.objects.filter(counted()).exclude(text="")
        questions = benchmark.samples.filter(Exists(answers.filter(sample=OuterRef("pk"))), options={})
        sample_ids = list(questions.order_by("position", "pk").values_list("pk", flat=True)[:LOOKED_AT])
        texts = answers.filter(sample__in=sample_ids).order_by("sample__position", "pk").values_list("text", flat=True)
        readings = [answer_in(text) for text in texts[:LOOKED_AT]]
        return bool(readings) and sum(reading is not None for reading in readings) * 2 > len(readings)
