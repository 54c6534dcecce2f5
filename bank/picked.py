"""Some of the values that have names: of a row, a record, a mapping."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

V = TypeVar("V")


def picked(thing: object, names: Iterable[str]) -> dict[str, Any]:
    """The attributes of these names."""
    return {name: getattr(thing, name) for name in names}


def present(values: Mapping[str, V], names: Iterable[str]) -> dict[str, V]:
    """The values of these names, without those that are not there."""
    return {name: values[name] for name in names if name in values}


def filled(values: Mapping[str, V]) -> dict[str, V]:
    """The values that are not empty."""
    return {name: value for name, value in values.items() if value}
