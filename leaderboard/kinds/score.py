"""Scores of one answer on the benchmark's scale (MLLM-as-a-Judge: 1 to 5)."""

from annotations.models import LabelQuerySet
from bank.models import Benchmark
from leaderboard import metrics
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from stats.figures import two

MEAN = NumberColumn("score", "Score", two, "Mean score")
IN_WORDS = "mean of the scores, an item counts once"


class Score(Kind):
    name = "score"
    title = "Scores"
    column = "score"
    shape = Shape(MEAN, "mean score", IN_WORDS, ends=(1.0, 5.0), unit=1.0, hundred=None)
    metrics = metrics.SCORES
    biases = ("high_score", "length", "self")
    stand_in = "distance"

    def ends(self, benchmark: Benchmark) -> tuple[float, float]:
        return benchmark.score_ends

    def labels(self) -> LabelQuerySet:
        return super().labels().filter(parts__isnull=True)  # a total of components is no score on the scale
