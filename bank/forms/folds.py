"""Fields that stay folded until somebody wants them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms


@dataclass(frozen=True, slots=True)
class Fold:
    """``said`` tells what the fields hold, so that nothing must be opened to be known. With an error it is open."""

    title: str
    fields: Sequence[forms.BoundField]
    said: str

    @property
    def is_open(self) -> bool:
        return any(field.errors for field in self.fields)
