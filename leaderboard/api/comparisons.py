"""API of leaderboard: rankings beside each other, and two models or judges."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from leaderboard import queries
from leaderboard.api import PARAMETERS, BoardView
from leaderboard.boards import versus
from leaderboard.pages.versus import run_of
from leaderboard.rows import plain
from leaderboard.scope import Scope

PARTS = ("pairs", "ranks", "repeats", "languages")


def _parameter(name: str, words: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.QUERY, required=required, description=words)


@extend_schema(
    parameters=[*PARAMETERS, _parameter("part", f"{', '.join(PARTS)}; default {PARTS[0]}")],
    responses=OpenApiTypes.OBJECT,
)
class Correlation(BoardView):
    """How far rankings of the same models agree: people's, judges', other benchmarks' and versions'.

    Pairs: Spearman with its interval, Kendall, permutation p, n models. Ranks: the models that every ranking holds.
    Repeats: mean and standard deviation of the win rate over a judge's repeats. Languages (multiple choice, yes or no):
    each model's accuracy in two languages of a benchmark, and the paired difference over the questions that correspond.
    """

    what = "models"
    also = ("part",)

    def rows(self, request: Request, scope: Scope) -> Any:
        part = request.query_params.get("part", PARTS[0])
        if part not in PARTS:
            raise ValidationError({"part": f"There are: {', '.join(PARTS)}."})
        if part == "languages":
            return queries.languages_beside(scope, request.user)
        board = queries.correlated(scope, request.user)
        parts = {"pairs": board.rows, "ranks": board.ranks, "repeats": board.repeats}
        return plain(parts[part])


SIDES = [
    _parameter("a", "one: a model's name, or of judges a run as run-3", required=True),
    _parameter("b", "the other", required=True),
    _parameter("part", "measures (default) or levels"),
]


class _Two(BoardView):
    also = ("a", "b", "part")

    compared: Callable[[Scope, str, str], versus.Versus]

    def rows(self, request: Request, scope: Scope) -> Any:
        a, b = (request.query_params.get(side, "").replace("\x00", "")[:300] for side in ("a", "b"))
        part = request.query_params.get("part", "measures")
        if not a or not b or part not in ("measures", "levels"):
            raise ValidationError({"detail": "Say which two: a and b; part is measures or levels."})
        result = type(self).compared(scope, a, b)
        return [{"a_name": result.a, "b_name": result.b} | row.as_json() for row in getattr(result, part)]


@extend_schema(parameters=[*PARAMETERS, *SIDES], responses=OpenApiTypes.OBJECT)
class CompareModels(_Two):
    """Two models on samples both answered: each measure with the interval of the difference, p and the test."""

    what = "models"
    compared = staticmethod(versus.models)


@extend_schema(parameters=[*PARAMETERS, *SIDES], responses=OpenApiTypes.OBJECT)
class CompareJudges(_Two):
    """Two judges compared with people on the items that both have judged."""

    what = "judges"
    compared = staticmethod(lambda scope, a, b: versus.judges(scope, run_of(a), run_of(b)))
