"""API of leaderboard: the rows of the pages and the command, as JSON or CSV."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rules import allowed
from bank.models import Benchmark
from leaderboard import boards
from leaderboard.boards import cached
from leaderboard.files import csv_text
from leaderboard.kinds import KINDS, default_of
from leaderboard.pages.address import run_number
from leaderboard.scope import BadScope, Scope, scope_of

SCOPE = ("source", "run", "kind", "campaign", "anchor", "majority", "elo", "level", "question_type", "split")
WORDS = {
    "benchmark": "SLUG (its newest version) or SLUG@VERSION",
    "source": "humans (default, the majority per item), individuals (every label), adjudicated, or a judge's name",
    "run": "the number of a run, if a judge has runs with different settings",
    "kind": f"{', '.join(KINDS)}; default: the first for which the benchmark has data",
    "campaign": "labels of this campaign only",
    "anchor": "the model that all others are compared with; default: the benchmark's",
    "majority": "plurality or mllm-bench; default the benchmark's",
    "elo": "online-bootstrap (default), online, or none: over a million votes the first takes ten seconds",
    "level": "a capability, as its path from the top, joined by ' / '",
    "question_type": "samples of this type only",
    "split": "samples of this split only",
}
PARAMETERS = [
    OpenApiParameter(name, str, OpenApiParameter.QUERY, required=name == "benchmark", description=words)
    for name, words in WORDS.items()
]


class CsvRenderer(BaseRenderer):
    """Rows as flat cells; see ``leaderboard.rows``. An error is one line of text."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> str:
        if not isinstance(data, list):
            return f"{data}\n"
        return csv_text(data)


class BoardView(APIView):
    """A board: a list of rows."""

    access_rule = "read-public"
    renderer_classes = [JSONRenderer, CsvRenderer]
    pagination_class = None
    filter_backends: list[Any] = []

    what: str  # the board whose default kind applies
    also: tuple[str, ...] = ()  # parameters in addition to those of every board

    def get(self, request: Request) -> Response:
        try:
            return Response(self.rows(request, self._scope(request)))
        except BadScope as error:
            raise ValidationError({"detail": str(error)}) from None

    def rows(self, request: Request, scope: Scope) -> Any:
        return cached(scope, self.what, boards.BOARDS[self.what]).as_json()

    def _scope(self, request: Request) -> Scope:
        params = {name: str(value) for name, value in request.query_params.items() if name != "format"}
        accepted = (*WORDS, *self.also)
        unknown = set(params) - set(accepted)
        if unknown:
            raise ValidationError(
                dict.fromkeys(sorted(unknown), f"Not a parameter here. There are: {', '.join(accepted)}.")
            )
        if not params.get("benchmark"):
            raise ValidationError({"benchmark": "Say which: SLUG or SLUG@VERSION."})
        try:
            benchmark = Benchmark.objects.visible_to(request.user).select_related("anchor").named(params["benchmark"])
        except Benchmark.DoesNotExist:
            raise NotFound from None
        scope_params = {name: params[name].replace("\x00", "") for name in SCOPE if name in params}
        staff = allowed(request.user, "read-hidden")
        try:
            run = run_number(scope_params.pop("run", ""))
            kind = scope_params.pop("kind", "") or default_of(benchmark, self.what, staff=staff)
            return scope_of(benchmark=benchmark, kind=kind, run=run, staff=staff, **scope_params)
        except BadScope as error:
            raise ValidationError({"detail": str(error)}) from None


@extend_schema(parameters=PARAMETERS, responses=OpenApiTypes.OBJECT)
class Models(BoardView):
    """The board of models, by its kind.

    Pairs: rank with its range, wins, ties, losses, win rate, Elo and Bradley-Terry, by level too. Scores, components:
    the mean, by level or category. Multiple choice: one pass, circular, by level, how options were found. Yes or no:
    accuracy, precision, recall, F1 and the share of yes.
    """

    what = "models"


@extend_schema(parameters=PARAMETERS, responses=OpenApiTypes.OBJECT)
class Judges(BoardView):
    """The board of judges: every metric of every judge against people, by majority and by single labels."""

    what = "judges"


@extend_schema(parameters=PARAMETERS, responses=OpenApiTypes.OBJECT)
class Agreement(BoardView):
    """Agreement of every two annotators, of each with each judge, and of the majority with both.

    Annotators appear by pseudonym, for curators and administrators by name.
    """

    what = "agreement"


@extend_schema(parameters=PARAMETERS, responses=OpenApiTypes.OBJECT)
class Bias(BoardView):
    """The biases of each judge, and of people: position, length, own family (self), and leniency (high_score)."""

    what = "bias"
