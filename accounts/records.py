"""Records: dataclasses that do not change."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """The class as a dataclass that is frozen and has slots, which type checkers know."""
    return dataclass(frozen=True, slots=True)(cls)
