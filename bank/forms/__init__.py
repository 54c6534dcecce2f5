"""Forms of the bank's pages, and what the forms of all rooms are made of."""

from typing import Any

from django import forms


class Styled(forms.Form):
    """A form whose controls look as the style sheet draws them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            ticks = isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple | forms.RadioSelect)
            field.widget.attrs.setdefault("class", "check" if ticks else "input")


class Clean(forms.CharField):
    """Text without characters that the database refuses."""

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return text.replace("\r\n", "\n").replace("\r", "\n")


class BenchmarkChoice(forms.ModelChoiceField):
    """A benchmark by title, and by version where it is not the first."""

    def label_from_instance(self, benchmark: Any) -> str:
        return str(benchmark.titled)
