"""Nominal labels: the category of one text, picture or answer, by people and judges (Calderon et al., arXiv 2501.10970:
the labels that a judge may give in people's place).
"""

from collections.abc import Callable
from typing import NoReturn

from django.db.models import QuerySet

from annotations.models import Label
from bank.models import Benchmark
from bank.models.verdict import LABEL
from judging.models import Run
from leaderboard import metrics
from leaderboard.boards import versus
from leaderboard.boards.versus import Versus
from leaderboard.kinds.base import Kind
from leaderboard.scope import BadScope, Scope

NO_MODELS = (
    "Categories say what a text or picture is, not how good a model's answer is; no board of models counts them."
)


class Nominal(Kind):
    name = "nominal"
    title = "Categories"
    aliases = ("label",)
    column = "option"
    metrics = metrics.CATEGORIES
    stand_in = "equality"
    reference = "majority of people"

    def labels(self) -> QuerySet[Label]:
        return super().labels().filter(campaign__protocol=LABEL)

    def has_models(self, benchmark: Benchmark, has_verdicts: Callable[[Kind], bool]) -> bool:
        return False

    def models(self, scope: Scope) -> NoReturn:
        raise BadScope(NO_MODELS)

    def compare_models(self, scope: Scope, a: str, b: str) -> NoReturn:
        raise BadScope(NO_MODELS)

    def compare_judges(self, scope: Scope, first: list[Run], second: list[Run]) -> Versus:
        return versus.judges_by_readings(scope, first, second)
