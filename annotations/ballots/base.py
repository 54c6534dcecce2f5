"""The base class of ballots, and what they are made of: material, buttons, form fields."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from bank.forms.fields import whole_number
from judging import protocols
from judging.protocols import Option

Words = str | Promise  # text that is translated when it is displayed
Settings = dict[str, Any]
Scale = Sequence[tuple[float, str]]

COMPONENTS, OPTIONS = "components", "options"
# All answer fields of all protocols. A ballot rejects those that are not its own.
FIELDS = (
    *("choice", "preference", "situation", "score", "ranking", "parts", "option", "answer"),
    *("agree", "grade", "hallucination", "spans"),
)
# Names of the digit keys by default: the first choice has 1, the tenth 0.
KEYS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tie")


class BadVerdict(ValueError):
    """The answer is not valid for this protocol. ``field`` is the wrong part, the message says what is allowed."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class BadSettings(ValueError):
    """A campaign's ballot settings are not valid for its protocol. The message says which and what is allowed."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of an instruction with its weight in points."""

    key: str
    text: str
    weight: float

    @property
    def worth(self) -> str:
        return f"{self.weight:g}"


@dataclass(frozen=True, slots=True)
class Material:
    """What a verdict is about. ``order`` holds canonical positions in presented order.

    ``length`` is the length of the judge's analysis as displayed, in code points; None without an analysis. Of two that
    are compared that of both, 0 if they cannot be displayed.
    """

    order: str
    answers: int = 1
    options: tuple[Option, ...] = ()
    components: tuple[Component, ...] = ()
    length: int | None = None

    @property
    def places(self) -> list[int]:
        """Canonical positions in presented order: ``places[0]`` is the position of the answer shown first."""
        return [int(digit) for digit in self.order]


@dataclass(frozen=True, slots=True)
class Choice:
    """A button: the value it sends, its label, the name of its key, and an additional keyboard letter."""

    value: str
    words: Words
    key: str = ""
    letter: str = ""
    short: Words = ""  # label where there is little room
    about: Words = ""  # what it means, in one sentence
    quiet: bool = False

    @property
    def cap(self) -> str:
        """The default label of its key."""
        return str((KEYS.index(self.key) + 1) % 10) if self.key in KEYS else self.key[:1].upper()

    @property
    def bindable(self) -> bool:
        """Whether its key is one of those that people may change."""
        return self.key in (*KEYS, "undecided")

    @property
    def said(self) -> Words:
        """What a key means, in short."""
        return self.short or self.words or self.value


@dataclass(frozen=True, slots=True)
class Group:
    """One question as a group of buttons. ``chosen`` is the value of the selected one."""

    name: str
    question: Words
    buttons: tuple[Choice, ...]
    chosen: str
    missing: str  # message if no button was chosen
    style: str = ""

    @property
    def lettered(self) -> bool:
        """Whether a button shows its value, the option's letter, before its words."""
        return self.style == "options"


def button_group(
    name: str, question: Words, buttons: Iterable[Choice], values: Mapping[str, Any], missing: str, style: str = ""
) -> Group:
    value = values.get(name)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    chosen = "" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
    return Group(name, question, tuple(buttons), chosen, missing, style)


class Ballot(ABC):
    """A protocol, set up for one campaign.

    ``parse`` turns an answer in presented terms into verdict columns in canonical order, or raises BadVerdict;
    ``present`` is its inverse.
    """

    protocol: ClassVar[str]
    layout: ClassVar[str] = "single"  # of the page: single, pair, ranking, components, review, analyses
    fields: ClassVar[tuple[str, ...]]
    title: ClassVar[Words]
    noun: ClassVar[Words]  # for its items, in the plural
    question: ClassVar[Words]
    advice: ClassVar[Words]
    about: ClassVar[Words] = ""  # for the form that makes a campaign
    rubric_title: ClassVar[Words] = lazy("What the scores mean")
    rubric_style: ClassVar[str] = (
        "opts"  # CSS class of its list: names, if what is explained has a name and not a number
    )
    setting_names: ClassVar[tuple[str, ...]] = ()  # besides those of every ballot

    compared: ClassVar[str] = "pairs of labels"  # what staff are told of how many agree
    alike: ClassVar[Words] = lazy("you and the others chose the same on {same} of {n}")
    usual_seconds: ClassVar[int] = 45  # a label takes, until there are labels to tell it
    shows: ClassVar[str] = ""  # what the page asks about beside the answers: COMPONENTS or OPTIONS
    needs_answer: ClassVar[bool] = False  # or a sample can be labelled by itself
    of_judgments: ClassVar[bool] = False  # what is labelled is a judgment, not an item
    of_two: ClassVar[bool] = False  # judgments, which are compared
    shows_analyses: bool = False  # of the judgments under review
    asks_why: ClassVar[bool] = False  # the comment says why, and must not be empty
    numbered: ClassVar[bool] = False  # adjudicators give each answer or part a number, instead of a decision
    single_votes: ClassVar[bool] = False  # of closed campaigns everybody may read, where the benchmark is public
    lacking: ClassVar[str] = "no item belongs to an approved sample."  # why a benchmark with such items has none for it

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = self.clean_settings(settings) if settings else self.default_settings()

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """The settings with all defaults filled in. ``scale`` is the benchmark's own. Raises BadSettings."""
        allowed = ("confidence", *cls.setting_names)
        unknown = sorted(str(name) for name in set(given) - set(allowed))
        if unknown:
            raise BadSettings(f"{unknown[0][:60]} is not a setting of {cls.protocol}. Settings: {', '.join(allowed)}.")
        return {"confidence": bool_setting("confidence", given.get("confidence", False))}

    @classmethod
    def default_settings(cls, *, scale: Scale = ()) -> Settings:
        """The settings if a campaign has none of its own. ``scale`` is the benchmark's."""
        return cls.clean_settings({}, scale=scale)

    @property
    def kind(self) -> str:
        """Of its items: score, pair, batch; "" for reviews of judgments."""
        return "" if self.of_judgments else protocols.get(self.protocol).kind

    @property
    def asks_confidence(self) -> bool:
        return bool(self.settings["confidence"])

    @property
    def buttons(self) -> Sequence[Choice]:
        """The verdicts that do not depend on the item, as buttons."""
        return ()

    @property
    def keys(self) -> Sequence[Choice]:
        """The keys that give a verdict, for the page before the first item."""
        return [button for button in self.buttons if button.key]

    @property
    def rubric(self) -> Sequence[Choice]:
        """The buttons whose meaning is written beside the answer, in the order of reading; often none."""
        return ()

    @property
    def situations(self) -> Mapping[int, Words]:
        """Reasons to be unable to decide, by number."""
        return {}

    def default_weight(self, key: str) -> float | None:
        """The weight of a component for which the benchmark has none."""
        return None

    def fitting(self, items: QuerySet[Any]) -> QuerySet[Any]:
        """Those of these items, of its kind, on which it can be given."""
        return items.filter(places__isnull=False) if self.needs_answer else items

    @property
    def verdicts(self) -> Sequence[Mapping[str, Any]]:
        """Every verdict that there is, by column; empty where that depends on the item."""
        return ()

    @abstractmethod
    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        """The allowed values of each field, for scripts."""

    @abstractmethod
    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]: ...

    @abstractmethod
    def from_form(self, form: "PostedForm", material: Material) -> dict[str, Any]:
        """The answer in a submitted form, for ``parse``, which rejects invalid values."""

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        """The questions asked by buttons. None where the verdict is given on the answers themselves."""
        return []

    def present(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        """Stored columns in the terms this annotator saw."""
        return {name: columns[name] for name in self.fields if columns.get(name) is not None}

    def decisions(self, options: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
        """What adjudicators may decide, with its words: verdicts as ``verdict_key`` writes them. ``options`` are the
        sample's; ``given`` were named in labels: a file's list of categories is not known.
        """
        return {button.value: str(button.words) for button in self.buttons} | dict(zip(given, given, strict=True))

    def decided(self, decision: str) -> dict[str, Any]:
        """The columns of one of the decisions."""
        return {self.fields[0]: decision}

    def reject_other_fields(self, given: Mapping[str, Any]) -> None:
        for field in FIELDS:
            if field not in self.fields and given.get(field) not in (None, ""):
                raise BadVerdict(
                    field, _("The protocol {protocol} takes no {field}.").format(protocol=self.protocol, field=field)
                )


class PostedForm:
    """Fields of a submitted form, cleaned of what no field may contain."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def text(self, name: str) -> str:
        return str(self.data.get(name, "")).replace("\r\n", "\n").replace("\x00", "")

    def texts(self, name: str) -> list[str]:
        return [str(value) for value in self.data.getlist(name)]

    def whole(self, name: str) -> int | None:
        return whole_number(self.text(name), below=10**9)

    def number(self, name: str) -> float | None:
        return parse_number(self.text(name))

    def yes_no(self, name: str) -> bool | None:
        return {"yes": True, "no": False}.get(self.text(name))


def parse_number(text: str) -> float | None:
    """The number in a text, else None. Accepts a decimal comma."""
    text = text.strip().replace(",", ".")
    try:
        number = float(text) if text.isascii() and len(text) < 30 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def bool_setting(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadSettings(f"{name}: true or false, not {value!r}.")
    return value


def required_bool(given: Mapping[str, Any], field: str) -> bool:
    value = given.get(field)
    if not isinstance(value, bool):
        raise BadVerdict(field, _("Say yes or no."))
    return value
