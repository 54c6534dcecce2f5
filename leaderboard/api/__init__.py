"""API of leaderboard: the rows of the pages and the command, as JSON, JSON Lines or CSV."""

from collections.abc import Callable
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
from leaderboard.boards import standin
from leaderboard.definitions import DEFINITIONS
from leaderboard.files import csv_text, json_lines
from leaderboard.kinds import KINDS
from leaderboard.pages.address import run_number
from leaderboard.scope import BadScope, Scope, scope_of
from leaderboard.tables import MEASURES, RANKINGS, VIEW, Asked, Table, checked_epsilon

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


OF_TABLES = {
    "epsilon": f"by how much a judge may do worse than a person, 0 to 1; default {standin.EPSILON:g}",
    "a": "one: a model's name, or of judges a run as run-3",
    "b": "the other",
}
PARTS = {"correlation": RANKINGS, "compare": MEASURES}


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


class TableView(APIView):
    """The rows of a table, see ``leaderboard.tables``."""

    renderer_classes = [JSONRenderer, JsonLinesRenderer, CsvRenderer]
    pagination_class = None
    filter_backends: list[Any] = []
    table: Table

    def get(self, request: Request) -> Response:
        try:
            parameters = self._parameters(request)
            asked = self._asked(request, parameters)
            return Response(self.table.make(self._scope(request, parameters, asked), asked).rows)
        except BadScope as error:
            raise ValidationError({"detail": str(error)}) from None

    def _parameters(self, request: Request) -> Parameters:
        parameters = {
            name: str(value).replace("\x00", "")[:700]
            for name, value in request.query_params.items()
            if name != "format"
        }
        accepted = ("benchmark", *self.table.view, *self.table.takes)
        if unknown := parameters.keys() - set(accepted):
            words = f"Not a parameter here. There are: {', '.join(accepted)}."
            raise ValidationError(dict.fromkeys(sorted(unknown), words))
        if not parameters.get("benchmark"):
            raise ValidationError({"benchmark": "Say which: SLUG or SLUG@VERSION."})
        return parameters

    def _asked(self, request: Request, parameters: Parameters) -> Asked:
        return Asked(
            viewer=request.user,
            named="source" in parameters or "run" in parameters,
            epsilon=checked_epsilon(parameters.get("epsilon", standin.EPSILON)),
            part=parameters.get("part", ""),
            a=parameters.get("a", ""),
            b=parameters.get("b", ""),
        )

    def _scope(self, request: Request, parameters: Parameters, asked: Asked) -> Scope:
        try:
            benchmark = (
                Benchmark.objects.visible_to(request.user).select_related("anchor").named(parameters["benchmark"])
            )
        except Benchmark.DoesNotExist:
            raise NotFound from None
        view = {name: parameters[name] for name in VIEW if name in parameters}
        staff = allowed(request.user, "read-hidden")
        run = run_number(view.pop("run", ""))
        kind = view.pop("kind", "") or self.table.default_kind(benchmark, asked, staff=staff)
        return scope_of(benchmark=benchmark, kind=kind, run=run, staff=staff, **view)


def view_of(name: str, table: Table) -> Callable[..., Any]:
    """The view of a table, which its ``make`` describes."""
    words = OF_TABLES | {"part": f"{', '.join(PARTS.get(name, ()))}; default the first"}
    parameters = [parameter for parameter in PARAMETERS if parameter.name in ("benchmark", *table.view)]
    for word in table.takes:
        required = word in ("a", "b")
        parameters.append(
            OpenApiParameter(word, str, OpenApiParameter.QUERY, required=required, description=words[word])
        )
    attributes = {"__doc__": table.make.__doc__, "table": table, "access_rule": table.rule}
    described = extend_schema(parameters=parameters, responses=OpenApiTypes.OBJECT)
    view: type[APIView] = described(type("Rows", (TableView,), attributes))
    return view.as_view()
