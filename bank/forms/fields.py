"""Fields and parsing that the forms of every app share."""

from typing import Any

from django import forms


class CleanCharField(forms.CharField):
    """Text without characters that the database refuses."""

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return text.replace("\r\n", "\n").replace("\r", "\n")


def long_text(rows: int, placeholder: str = "", **more: Any) -> CleanCharField:
    """A text of several lines, which may be empty."""
    attrs = {"rows": rows} | ({"placeholder": placeholder} if placeholder else {})
    return CleanCharField(required=False, widget=forms.Textarea(attrs=attrs), **more)


def tick(label: str | None = None, **more: Any) -> forms.BooleanField:
    return forms.BooleanField(required=False, label=label, **more)


class BenchmarkChoice(forms.ModelChoiceField):
    """A benchmark by title, and by version unless it is the first."""

    def label_from_instance(self, benchmark: Any) -> str:
        return str(benchmark.titled)


def whole_number(text: str | None, *, below: int = 10**18) -> int | None:
    """The whole number in a text; None for any other text, and for numbers that are not ``below`` the limit.

    ASCII digits only: no sign, no space, no digits of other scripts, nothing too large for a column.
    """
    if not text or len(text) > 18 or not (text.isascii() and text.isdigit()):
        return None
    return number if (number := int(text)) < below else None
