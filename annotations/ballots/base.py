"""What ballots are made of: the material of an item, and what all protocols share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from bank.forms.fields import whole_number
from judging.protocols import Option

Words = str | Promise  # a text that is translated when it is shown
Settings = dict[str, Any]
Scale = Sequence[tuple[float, str]]

# Every field that some protocol takes; a protocol refuses the others.
FIELDS = (
    *("choice", "situation", "score", "ranking", "parts", "option", "answer"),
    *("agree", "grade", "hallucination", "spans"),
)
# The names of the keys that give the choices their usual digits: the first choice has 1, the last of ten 0.
KEYS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tie")


class BadVerdict(ValueError):
    """What was sent is no verdict of this protocol; ``field`` names the part, the message says what it takes."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class BadSettings(ValueError):
    """What a campaign wants is no setting of its protocol; says which and what it takes."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of an instruction that is worth points."""

    key: str
    text: str
    weight: float

    @property
    def worth(self) -> str:
        return f"{self.weight:g}"


@dataclass(frozen=True, slots=True)
class Material:
    """What an item offers to be judged. ``order`` holds canonical positions in presented order.

    ``length`` is that of the judge's analysis as it is displayed, in characters (code points); None without one.
    """

    order: str
    answers: int = 1
    options: tuple[Option, ...] = ()
    components: tuple[Component, ...] = ()
    length: int | None = None

    @property
    def places(self) -> list[int]:
        """``places[0]`` is the canonical position of what stood first."""
        return [int(digit) for digit in self.order]


@dataclass(frozen=True, slots=True)
class Choice:
    """A button of the ballot: what it sends, its words, the name of its key, and a keyboard letter beside it."""

    value: str
    words: Words
    key: str = ""
    letter: str = ""
    short: Words = ""  # on a phone
    about: Words = ""  # what it means, in a sentence
    quiet: bool = False

    @property
    def cap(self) -> str:
        """What its key is usually called."""
        return str((KEYS.index(self.key) + 1) % 10) if self.key in KEYS else self.key[:1].upper()


class Ballot(ABC):
    """A protocol as the annotators of one campaign meet it.

    ``read`` takes what was given in presented terms and returns the verdict columns in canonical order, or raises
    BadVerdict; ``shown`` is its inverse.
    """

    protocol: ClassVar[str]
    kind: ClassVar[str]  # of the items: score, pair, batch; "" for judgments under review
    fields: ClassVar[tuple[str, ...]]
    title: ClassVar[Words]
    noun: ClassVar[Words]  # what the items are called, in the plural
    question: ClassVar[Words]
    advice: ClassVar[Words]
    about: ClassVar[Words] = ""  # for the page on which a campaign is made
    names: ClassVar[tuple[str, ...]] = ()  # of settings, beside those that every ballot has

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = self.settled(settings or {})

    @classmethod
    def settled(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """The settings with every default filled in; ``scale`` is the benchmark's own. Raises BadSettings."""
        unknown = sorted(str(name) for name in set(given) - {"confidence", *cls.names})
        if unknown:
            known = ", ".join(("confidence", *cls.names))
            raise BadSettings(f"{unknown[0][:60]} is not a setting of {cls.protocol}. Settings: {known}.")
        return {"confidence": flag("confidence", given.get("confidence", False))}

    @property
    def asks_confidence(self) -> bool:
        return bool(self.settings["confidence"])

    @abstractmethod
    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        """What may be answered, field by field, for scripts."""

    @abstractmethod
    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]: ...

    @abstractmethod
    def posted(self, form: "Form", material: Material) -> dict[str, Any]:
        """What a form holds so far, as ``read`` takes it; what is no number or no choice is left to it to refuse."""

    def shown(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        """Stored columns as this annotator gave them."""
        return {name: columns[name] for name in self.fields if columns.get(name) is not None}

    def refuse_others(self, given: Mapping[str, Any]) -> None:
        for field in FIELDS:
            if field not in self.fields and given.get(field) not in (None, ""):
                raise BadVerdict(
                    field, _("The protocol {protocol} takes no {field}.").format(protocol=self.protocol, field=field)
                )


class Form:
    """A posted form, read without trust."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def text(self, name: str) -> str:
        return str(self.data.get(name, "")).replace("\r\n", "\n").replace("\x00", "")

    def texts(self, name: str) -> list[str]:
        return [str(value) for value in self.data.getlist(name)]

    def whole(self, name: str) -> int | None:
        return whole_number(self.text(name), below=10**9)

    def number(self, name: str) -> float | None:
        return number_in(self.text(name))

    def yes_no(self, name: str) -> bool | None:
        return {"yes": True, "no": False}.get(self.text(name))


def number_in(text: str) -> float | None:
    """The number that a text is, else None. A comma may stand for the point."""
    text = text.strip().replace(",", ".")
    try:
        number = float(text) if text.isascii() and len(text) < 30 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadSettings(f"{name}: true or false, not {value!r}.")
    return value


def yes_or_no(given: Mapping[str, Any], field: str) -> bool:
    value = given.get(field)
    if not isinstance(value, bool):
        raise BadVerdict(field, _("Say yes or no."))
    return value
