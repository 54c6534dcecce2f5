"""Names of models, judges, annotators, campaigns, capabilities and benchmarks: one way to write each.

What looks the same is the same name, whichever way it comes in: a file, a form, the API or a command.
"""

import unicodedata
from functools import lru_cache
from typing import Any

from django.db import models

JOINERS = "\u200c\u200d"  # emoji, Persian and Indic scripts are spelled with them


@lru_cache(maxsize=10_000)  # files name the same few again and again
def as_stored(name: str) -> str:
    """The name in Unicode's composed form (NFC), without characters that show nothing (but joiners), and with single
    spaces between its words.
    """
    words = " ".join(name.split())
    if words.isascii() and words.isprintable():
        return words
    visible = (c for c in words if c in JOINERS or unicodedata.category(c) not in ("Cc", "Cf"))
    return unicodedata.normalize("NFC", " ".join("".join(visible).split()))


class NameField(models.CharField):
    """A name, written and looked up as ``as_stored`` gives it. To migrations it is a CharField."""

    def deconstruct(self) -> Any:
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.CharField", arguments, options

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return as_stored(value) if isinstance(value, str) else value

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = super().pre_save(model_instance, add)
        if isinstance(value, str):
            value = as_stored(value)
            setattr(model_instance, self.attname, value)
        return value
