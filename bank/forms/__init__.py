"""Forms of the bank's pages, and what the forms of all rooms are made of."""

from typing import Any

from django import forms


class Clean(forms.CharField):
    """Text without characters that the database refuses."""

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return text.replace("\r\n", "\n").replace("\r", "\n")


class BenchmarkChoice(forms.ModelChoiceField):
    """A benchmark by title, and by version where it is not the first."""

    def label_from_instance(self, benchmark: Any) -> str:
        return str(benchmark.titled)
