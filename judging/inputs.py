"""What an action takes is described once, by a serializer (ADR 33); here forms and commands take their fields from it.

The API checks its data by the serializer itself. A form adds labels and widgets and a command the spelling of its
options; both give what was typed to the serializer, so that all three refuse it at the same field in the same words.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.core.management.base import CommandError, CommandParser
from rest_framework import serializers

from accounts.forms import Styled

NUMBERS: dict[type, type] = {serializers.IntegerField: int, serializers.FloatField: float}
Input = type[serializers.Serializer[Any]]
WHOLE_SENTENCES = ("unknown", "does_not_exist")  # codes of errors that need no name of a field before them


def fields_of(takes: Input) -> dict[str, Any]:
    """The fields of an input by name."""
    return dict(takes().fields.items())


def form_field(field: Any, label: str | None, widget: forms.Widget | None = None) -> forms.Field:
    """The field of a form for the field of an input."""
    options: dict[str, Any] = {"label": label, "help_text": field.help_text or "", "required": field.required}
    if isinstance(field, serializers.BooleanField):
        return forms.BooleanField(**options)
    if not field.required:
        options["initial"] = field.default or None
    if isinstance(field, serializers.IntegerField):
        return forms.IntegerField(min_value=field.min_value, max_value=field.max_value, **options)
    if isinstance(field, serializers.FloatField):
        return forms.FloatField(min_value=field.min_value, max_value=field.max_value, **options)
    return forms.CharField(max_length=getattr(field, "max_length", None), widget=widget, **options)


class InputForm(Styled):
    """A form of an action: it has the fields of its input, and is valid where that is."""

    takes: ClassVar[Input]
    labels: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = {name: form_field(field, self.labels.get(name)) for name, field in fields_of(self.takes).items()}
        self.base_fields = own | self.base_fields  # type: ignore[misc]  # of this form, in front of its own
        super().__init__(*args, **kwargs)

    def clean(self) -> dict[str, Any]:
        """The values as the action takes them."""
        typed = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        given = self.takes(data=typed)
        if not given.is_valid():
            add_errors(self, given)
            return typed
        return dict(given.validated_data)


def add_errors(form: forms.Form, given: serializers.Serializer[Any]) -> None:
    """Show what is wrong with an input at the form's own fields, or above them."""
    errors: dict[str, list[Any]] = dict(given.errors)
    for name, words in errors.items():
        if name not in form.errors:
            form.add_error(name if name in form.fields else None, [str(each) for each in words])


def add_arguments(
    parser: CommandParser,
    takes: Input,
    names: Sequence[str],
    *,
    required: Sequence[str] = (),
    spelled: Mapping[str, str] | None = None,
) -> None:
    """Add the options of a command for these fields of an input.

    ``required``: those that the command needs, though the input does not; ``spelled``: other names of options.
    """
    fields = fields_of(takes)
    for name in names:
        field = fields[name]
        options: dict[str, Any] = {"help": field.help_text}
        if isinstance(field, serializers.BooleanField):
            options["action"] = "store_true"
        else:
            options["required"] = field.required or name in required
        if type(field) in NUMBERS:
            options["type"] = NUMBERS[type(field)]
        parser.add_argument(f"--{(spelled or {}).get(name, name).replace('_', '-')}", **options)


def checked(takes: Input, typed: Mapping[str, Any]) -> Any:
    """The input of a command, valid; options that were not given are left out. Raises CommandError."""
    given = takes(data={name: value for name, value in typed.items() if value is not None})
    if not given.is_valid():
        name, words = next(iter(given.errors.items()))
        raise CommandError(str(words[0]) if words[0].code in WHOLE_SENTENCES else f"{name}: {words[0]}")
    return given
