"""The base of what scripts send; it loads no views, so that commands may use it, too."""

from typing import Any, ClassVar

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
