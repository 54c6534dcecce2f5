"""The base of what scripts send; it loads no views, so that commands may use it, too."""

from typing import Any, ClassVar, cast

from django import forms
from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Input of scripts: an unknown field is 400, so that typing mistakes do not go unnoticed.

    ``elsewhere`` says where fields belong that are often sent here.
    """

    elsewhere: ClassVar[dict[str, str]] = {}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(getattr(self, "initial_data", ())) - set(self.fields))
        if unknown:
            words = {name: self.elsewhere.get(name, "There is no such field.") for name in unknown}
            raise serializers.ValidationError(words)
        return attrs


def described(field: forms.Field) -> "serializers.Field[Any, Any, Any, Any]":
    """A field of the form as the API describes it; the form itself checks what is sent."""
    words: dict[str, Any] = {"required": False, "help_text": str(field.help_text or field.label or "")}
    if isinstance(field, forms.MultipleChoiceField):
        return serializers.ListField(child=serializers.CharField(), **words)
    if isinstance(field, forms.ChoiceField):
        return serializers.ChoiceField(cast(Any, field.choices), **words)
    return (
        serializers.BooleanField(**words) if isinstance(field, forms.BooleanField) else serializers.CharField(**words)
    )
