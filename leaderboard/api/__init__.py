"""API of leaderboard: the rows of the pages and the command, as JSON, JSON Lines or CSV."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from bank.models import Benchmark
from leaderboard.api.described import rows_as
from leaderboard.kept.pages import AGAIN_AFTER, WAITS, answered
from leaderboard.registry import Table, rows_of
from leaderboard.rows import Row
from leaderboard.scope import BadScope
from leaderboard.show.files import csv_text, json_lines
from leaderboard.view import PARAMETERS

Parameters = dict[str, str]
NO_ROWS_YET = {(202, "application/json"): inline_serializer("BeingComputed", {"detail": serializers.CharField()})}
WHICH_BENCHMARK = "SLUG (its newest version) or SLUG@VERSION"


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


def waits(request: Request) -> Response:
    """The answer while a job computes the rows for the first time."""
    return Response({"detail": WAITS}, status=202, headers={"Retry-After": str(AGAIN_AFTER)})


class RowsView(APIView):
    """Rows, as JSON, JSON Lines or CSV."""

    renderer_classes = [JSONRenderer, JsonLinesRenderer, CsvRenderer]
    pagination_class = None
    filter_backends: list[Any] = []


class TableView(RowsView):
    """The rows of a table, see ``leaderboard.registry``."""

    table: Table

    def get(self, request: Request) -> HttpResponse:
        given = self._parameters(request)
        try:
            benchmark = Benchmark.objects.visible_to(request.user).select_related("anchor").named(given["benchmark"])
        except Benchmark.DoesNotExist:
            raise NotFound from None

        def draw() -> Response:
            try:
                return Response(rows_of(self.table, benchmark, given, request.user).rows)
            except BadScope as error:
                raise ValidationError({"detail": str(error)}) from None

        return answered(
            request,
            draw,
            takes=("format", "benchmark", *self.table.view, *self.table.takes),
            named=given["benchmark"],
            alone=self.table.alone,
            accept=request.accepted_renderer.media_type,
            waits=waits,
        )

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


def as_rows(
    name: str, rows_are: Mapping[type[Row], Mapping[str, type]], *, stands: bool = False
) -> dict[tuple[int, str], Any]:
    """The answer of an operation that gives rows, in each of its formats."""
    texts = {(200, renderer.media_type): str for renderer in (JsonLinesRenderer, CsvRenderer)}
    return {(200, "application/json"): rows_as(name, rows_are, stands=stands)} | texts


def view_of(name: str, table: Table) -> Callable[..., Any]:
    """The view of a table, which its ``make`` describes."""
    of_table = [PARAMETERS[name] for name in (*table.view, *table.takes)]
    parameters = [
        OpenApiParameter("benchmark", str, OpenApiParameter.QUERY, required=True, description=WHICH_BENCHMARK),
        *(
            OpenApiParameter(each.name, str, OpenApiParameter.QUERY, required=each.required, description=each.help)
            for each in of_table
        ),
    ]
    attributes = {"__doc__": table.make.__doc__, "table": table, "access_rule": table.rule}
    described = extend_schema(parameters=parameters, responses=as_rows(name, table.rows_are, stands=True) | NO_ROWS_YET)
    view: type[APIView] = described(type("Rows", (TableView,), attributes))
    return view.as_view()
