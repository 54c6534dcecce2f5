"""What the API's document says of rows: serializers made from their columns, the fields of the dataclasses.

They describe only; what is sent is what ``Row.as_json`` gives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from inspect import getdoc
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from leaderboard.boards.biases.board import Detail
from leaderboard.boards.models.scores import ScoreRow
from leaderboard.rows import ENDS, SUFFIXES, Number, Row

PLAIN: dict[Any, type[Any]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
}
OF_NUMBER = {"n": int, "groups": int, "method": str}  # the others are floats
NOTES = "Why numbers, or their intervals, are missing."
AS_OF = "Of when the numbers are: of the last closed state or of an edition; null: of now."


class KeptBack(serializers.Serializer[Any]):
    """What is not counted while people label it, blind."""

    items = serializers.IntegerField(help_text="On so many items no label counts that was given since.")
    until = serializers.DateField(allow_null=True, help_text="The last day; null: until the round closes.")


def rows_as(name: str, sorts: Mapping[type[Row], Mapping[str, type]], *, stands: bool = False) -> Any:
    """A list of rows of one sort or of several, each with the columns that stand before its own; ``name``: of several
    together; ``stands``: whether each row says as of when it is.
    """
    made = [serializer_of(cast(Any, row), tuple(before.items()), stands=stands) for row, before in sorts.items()]
    if len(made) == 1:
        return made[0](many=True)
    return PolymorphicProxySerializer(component_name=name, serializers=made, resource_type_field_name=None, many=True)


@cache
def serializer_of(
    row: Any, before: tuple[tuple[str, type], ...] = (), *, within: bool = False, stands: bool = False
) -> type[serializers.Serializer[Any]]:
    """The serializer of a class of rows; ``within`` another one numbers have ends alone, and there are no notes."""
    columns: dict[str, Any] = {name: PLAIN[kind]() for name, kind in before}
    hints = get_type_hints(row)
    needed = row is not Detail  # of which only what applies is written
    headings = row.headings()
    for column in fields(row):
        if issubclass(row, ScoreRow) and column.name == "levels":
            continue
        of_field = _columns(column.name, hints[column.name], within=within, needed=needed)
        if column.name in headings:
            of_field[column.name].help_text = headings[column.name].words
        columns |= of_field
    if not within:
        columns.setdefault("notes", serializers.ListField(child=serializers.CharField(), help_text=NOTES))
    if issubclass(row, ScoreRow):
        columns[row.levels_name] = serializers.DictField(child=serializers.FloatField(allow_null=True))
    if stands:
        columns["as_of"] = serializers.DateTimeField(allow_null=True, help_text=AS_OF)
        columns["kept_back"] = KeptBack(required=False)
    name = f"{row.__name__}Within" if within else row.__name__
    return type(name, (serializers.Serializer,), columns | {"__doc__": getdoc(row)})


def _columns(name: str, hint: Any, *, within: bool, needed: bool) -> dict[str, Any]:
    """The columns of a field: of a number with its interval several."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
    if kinds == [Number]:
        suffixes = ENDS if within else SUFFIXES
        return {
            f"{name}{end}": PLAIN[OF_NUMBER.get(of, float)](allow_null=of != "method", required=needed)
            for end, of in suffixes.items()
        }
    more: dict[str, Any] = {"required": needed} if kinds == [hint] else {"required": needed, "allow_null": True}
    return {name: _field(kinds[0], **more) if len(kinds) == 1 else serializers.JSONField(**more)}


def _field(kind: Any, **more: Any) -> Any:
    if kind in PLAIN:
        return PLAIN[kind](**more)
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Row):
        return serializer_of(cast(Any, kind), within=True)(**more)
    if origin in (dict, Mapping) and inner[1] is not Any:
        return serializers.DictField(child=_field(inner[1]), **more)
    if origin in (list, tuple, Sequence):
        return serializers.ListField(child=_field(inner[0]), **more)
    return serializers.JSONField(**more)
