"""API of leaderboard: the rows of the pages and the command, as JSON, JSON Lines or CSV."""

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
from leaderboard import boards, votes
from leaderboard.boards import cached
from leaderboard.definitions import DEFINITIONS
from leaderboard.files import csv_text, json_lines
from leaderboard.hidden import shows_edition
from leaderboard.kinds import KINDS, Kind, default_of
from leaderboard.pages.address import run_number
from leaderboard.rows import JSON, with_note
from leaderboard.scope import BadScope, Scope, scope_of
from leaderboard.tables import OF_BOARD, VIEW

Parameters = dict[str, str]
WORDS = {
    "benchmark": "SLUG (its newest version) or SLUG@VERSION",
    "source": "humans (default, the majority per item), individuals (every label), adjudicated, or a judge's name",
    "run": "the number of a run, if a judge has runs with different settings",
    "kind": f"{', '.join(KINDS)}; default: the first for which the benchmark has data",
    "campaign": "labels of this campaign only",
    "anchor": "the model that all others are compared with; default: the benchmark's",
    "majority": "plurality or mllm-bench; default the benchmark's",
    "elo": "online-bootstrap (default), online, or none: over a million votes the first takes ten seconds",
    **{definition.name: definition.help for definition in DEFINITIONS.values()},
    "level": "a capability, as its path from the top, joined by ' / '",
    "question_type": "samples of this type only",
    "split": "samples of this split only",
}
PARAMETERS = [
    OpenApiParameter(name, str, OpenApiParameter.QUERY, required=name == "benchmark", description=words)
    for name, words in WORDS.items()
]


def parameters_of_board(what: str) -> list[OpenApiParameter]:
    """The parameters of a board for the schema."""
    return [parameter for parameter in PARAMETERS if parameter.name in ("benchmark", *OF_BOARD[what])]


class CsvRenderer(BaseRenderer):
    """Rows as flat cells; see ``leaderboard.rows``. An error is one line of text."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> str:
        if not isinstance(data, list):
            return f"{data}\n"
        return csv_text(data)


class JsonLinesRenderer(BaseRenderer):
    """A row a line, with every object in it."""

    media_type = "application/jsonl"
    format = "jsonl"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> str:
        return json_lines(data if isinstance(data, list) else [data])


class BoardView(APIView):
    """A board: a list of rows."""

    access_rule = "read-public"
    renderer_classes = [JSONRenderer, JsonLinesRenderer, CsvRenderer]
    pagination_class = None
    filter_backends: list[Any] = []

    what = ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return "benchmark", *OF_BOARD[self.what]

    def default_kind(self, benchmark: Benchmark, parameters: Parameters, *, staff: bool) -> Kind:
        return default_of(benchmark, self.what, staff=staff)

    def rows(self, scope: Scope, parameters: Parameters) -> list[JSON]:
        return cached(scope, self.what, boards.BOARDS[self.what]).as_json()

    def get(self, request: Request) -> Response:
        try:
            parameters = self._parameters(request)
            return Response(self.rows(self._scope(request, parameters), parameters))
        except BadScope as error:
            raise ValidationError({"detail": str(error)}) from None

    def _parameters(self, request: Request) -> Parameters:
        parameters = {
            name: str(value).replace("\x00", "")[:700]
            for name, value in request.query_params.items()
            if name != "format"
        }
        if unknown := parameters.keys() - set(self.accepted):
            raise ValidationError(
                dict.fromkeys(sorted(unknown), f"Not a parameter here. There are: {', '.join(self.accepted)}.")
            )
        if not parameters.get("benchmark"):
            raise ValidationError({"benchmark": "Say which: SLUG or SLUG@VERSION."})
        return parameters

    def _scope(self, request: Request, parameters: Parameters) -> Scope:
        try:
            benchmark = (
                Benchmark.objects.visible_to(request.user).select_related("anchor").named(parameters["benchmark"])
            )
        except Benchmark.DoesNotExist:
            raise NotFound from None
        view = {name: parameters[name] for name in VIEW if name in parameters}
        staff = allowed(request.user, "read-hidden")
        run = run_number(view.pop("run", ""))
        kind = view.pop("kind", "") or self.default_kind(benchmark, parameters, staff=staff)
        return scope_of(benchmark=benchmark, kind=kind, run=run, staff=staff, **view)


@extend_schema(parameters=parameters_of_board("models"), responses=OpenApiTypes.OBJECT)
class Models(BoardView):
    """The board of models, by its kind.

    Pairs: rank with its range, wins, ties, losses, win rate, Elo and Bradley-Terry, by level too. Scores, components:
    the mean, by level or category. Multiple choice: one pass, circular, by level, how options were found. Yes or no:
    accuracy, precision, recall, F1 and the share of yes.
    """

    what = "models"

    def rows(self, scope: Scope, parameters: Parameters) -> list[JSON]:
        note = ""
        if not {"source", "run"} & parameters.keys() and not shows_edition(scope):
            scope, note = votes.in_place_of_people(scope)
        return with_note(super().rows(scope, parameters), note)


@extend_schema(parameters=parameters_of_board("judges"), responses=OpenApiTypes.OBJECT)
class Judges(BoardView):
    """The board of judges: every metric of every judge against people, by majority and by single labels."""

    what = "judges"


@extend_schema(parameters=parameters_of_board("agreement"), responses=OpenApiTypes.OBJECT)
class Agreement(BoardView):
    """Agreement of every two annotators, of each with each judge, and of the majority with both.

    Annotators appear by pseudonym, for curators and administrators by name.
    """

    what = "agreement"


@extend_schema(parameters=parameters_of_board("bias"), responses=OpenApiTypes.OBJECT)
class Bias(BoardView):
    """The biases of each judge, and of people: position, length, own family (self), and leniency (high_score)."""

    what = "bias"
