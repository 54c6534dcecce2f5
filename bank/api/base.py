"""What all API classes share: cursor pages, filters by allow-list, errors that reveal nothing hidden."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from rest_framework import exceptions, serializers
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from bank.errors import RETRY_AFTER, BadInput, outage
from bank.forms.fields import whole_number
from bank.intake.registry import SHAPES

log = logging.getLogger("django.request")


class Conflict(exceptions.APIException):
    """409 with a message."""

    status_code = 409


@contextmanager
def conflicts(*refusals: type[Exception]) -> Iterator[None]:
    """409 with the words of one of these."""
    try:
        yield
    except refusals as refusal:
        raise Conflict({"detail": str(refusal)}) from None


def sent(request: Request, takes: type[serializers.Serializer[Any]], **how: Any) -> dict[str, Any]:
    """What was sent, as the action takes it; ``how``: ``partial``, where a change names some of it alone."""
    given = takes(data=request.data, **how)
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)


class Pages(CursorPagination):
    """Cursor pages, oldest first. ``page_size`` up to 500; anything else is 400."""

    page_size = 100
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = "pk"

    def get_page_size(self, request: Request) -> int:
        requested = request.query_params.get("page_size")
        if requested is None:
            return self.page_size
        size = whole_number(requested, below=self.max_page_size + 1)
        if not size:
            raise exceptions.ValidationError({"page_size": f"A whole number from 1 to {self.max_page_size}."})
        return size

    def decode_cursor(self, request: Request) -> Any:
        """The position to continue from: every list is ordered by id. Raises NotFound for a forged cursor."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and whole_number(str(cursor.position)) is None:
            raise exceptions.NotFound(self.invalid_cursor_message)
        return cursor


# The answer of an operation that gives a file in one of the shapes of exports.
FILES: dict[tuple[int, str], OpenApiTypes] = {
    (200, media): OpenApiTypes.ANY if media == "application/json" else OpenApiTypes.BINARY
    for media in (shape.content.partition(";")[0] for shape in SHAPES.values())
}


def _names_a_row(model: Any, lookup: str) -> bool:
    """Whether a filter's value is the id of another table's row."""
    return "__" not in lookup and bool(model._meta.get_field(lookup).is_relation)


class PlainJSON(JSONParser):
    """JSON whose text can be stored and sent back. Half of a surrogate pair, or endless nesting, is 400."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise exceptions.ParseError("A text holds half of a surrogate pair, which is no character.") from None
        except RecursionError:
            raise exceptions.ParseError("This is nested too deeply.") from None
        return data


class AllowedFilters(BaseFilterBackend):
    """Filters by allow-list: a view names them in ``filters = {parameter: lookup}``; an unknown parameter is 400.

    In place of a lookup it may name a function of the query set and the value.
    """

    COMMON = frozenset({"cursor", "page_size", "format"})

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        filters: dict[str, str | Callable[[Any, str], Any]] = getattr(view, "filters", {})
        unknown = set(request.query_params) - set(filters) - self.COMMON
        if unknown:
            names = ", ".join(sorted(filters)) or "none"
            raise exceptions.ValidationError(dict.fromkeys(sorted(unknown), f"Not a filter here. Filters: {names}."))
        for name, lookup in filters.items():
            if name in request.query_params:
                value = request.query_params[name]
                try:
                    if "\x00" in value:
                        raise ValueError
                    if not isinstance(lookup, str):
                        queryset = lookup(queryset, value)
                        continue
                    if _names_a_row(queryset.model, lookup) and whole_number(value) is None:
                        raise ValueError
                    queryset = queryset.filter(**{lookup: value})
                except (ValueError, TypeError):
                    raise exceptions.ValidationError({name: "Not a value of this filter."}) from None
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in getattr(view, "filters", {})
        ]


def explain(error: Exception, context: dict[str, Any]) -> Response:
    """Errors as JSON: bad input is 400 at its field. A refusal or a missing object says no more than that; nor does a
    fault of ours.
    """
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, BadInput):
        error = exceptions.ValidationError({error.field or "detail": str(error).split("\n")})
    if answer := exception_handler(error, context):
        return answer
    set_rollback()
    path = context["request"].path
    if words := outage(error):
        log.warning("%s %s", path, words)
        return Response({"detail": words}, status=503, headers={"Retry-After": str(RETRY_AFTER)})
    log.error("Internal Server Error: %s", path, exc_info=error)
    return Response({"detail": "Something broke on our side. It was logged; nothing was half stored."}, status=500)
