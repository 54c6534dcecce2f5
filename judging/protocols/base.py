"""What protocols are made of: the material of a call, and the settings and the rendering that they share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from bank.models import Item
from judging.protocols import prompts
from judging.protocols.replies import Found, Place
from judging.protocols.settings import (
    CONTEXTS,
    NAMES,
    BadSettings,
    Settings,
    boolean,
    check_names,
    one_of,
    request_settings,
    whole,
)

ORDERS = ("both", "shuffled", "fixed")
KINDS_OF_REFERENCE = ("exact_reference", "soft_reference", "answer_key")


class CannotAsk(ValueError):
    """A call that cannot be made for this item; says what is missing."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a sample is judged by, as judges are shown it."""

    key: str
    kind: str
    text: str
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """A choice as the model saw it: the label it stood behind, the sample's own label, the text."""

    shown: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Material:
    """What one call is about, in presented order. All of it is data: nothing in it is an instruction."""

    instruction: str
    question_type: str
    hint: str
    answers: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    options: tuple[Option, ...]
    scale: tuple[tuple[float, str], ...]  # the scores there are, lowest first, each with its word
    images: int  # how many pictures go with the prompt
    descriptions: tuple[str, ...]  # of pictures that are described instead
    objects: tuple[str, ...]  # found in them
    withheld: bool  # the sample has pictures that the settings keep from the judge
    nonce: str  # marks the borders of the material; nobody who wrote it could know it

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.shown for option in self.options)


class Protocol(ABC):
    """One way of asking a judge. Subclasses say what is asked and how the reply is read.

    ``settings`` returns them with every default filled in, in canonical form; ``render`` the text of the prompt (the
    pictures go beside it); ``parse`` the verdict in presented order, or raises ``judging.verdicts.NoVerdict``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str]  # of the items it judges: score, pair, batch
    verdict_kind: ClassVar[str]  # whose boards its verdicts are counted on, see leaderboard.kinds
    reasonings: ClassVar[tuple[str, ...]] = ("none", "first", "after")
    defaults: ClassVar[Mapping[str, Any]] = {}
    weighted: ClassVar[bool] = False  # the verdict is a number, so that log-probabilities can weigh the scores
    fixed: ClassVar[tuple[str, ...]] = ()  # settings that this protocol does not leave open
    # What a prompt must tell the judge to write, so that the reply can be read: patterns, each with its words.
    answer_forms: ClassVar[tuple[tuple[str, str], ...]]

    def settings(self, given: Mapping[str, Any]) -> Settings:
        check_names(given, NAMES)
        if given.get("structured") and type(self).verdict_schema is Protocol.verdict_schema:
            raise BadSettings(f"structured: {self.name} has no reply in JSON; leave it out.")
        values = {"order": "both", "criteria": True, "context": "image", "reasoning": "first"} | dict(self.defaults)
        if self.kind == Item.Kind.SCORE:
            values["order"] = "fixed"
        for name in self.fixed:
            if given.get(name, values[name]) != values[name]:
                raise BadSettings(f"{name}: {self.name} has it at {str(values[name]).lower()}; leave it out.")
        values |= given
        if self.kind == Item.Kind.SCORE and values["order"] != "fixed":
            raise BadSettings("order: a single answer has no order; leave it out.")
        return {
            "order": one_of("order", values["order"], ORDERS),
            "criteria": boolean("criteria", values["criteria"]),
            "context": one_of("context", values["context"], CONTEXTS),
            "reasoning": one_of("reasoning", values["reasoning"], self.reasonings),
            "prompt": self._prompt(values.get("prompt", "default")),
            "repeats": whole("repeats", values.get("repeats", 1), 1, 100),
        } | request_settings(values, temperature=0)

    def _prompt(self, given: Any) -> str:
        if not isinstance(given, str):
            raise BadSettings("prompt: the name of a prompt, or NAME@VERSION.")
        try:
            return prompts.chosen(self.name, given)
        except prompts.UnknownPrompt as error:
            raise BadSettings(f"prompt: {error}") from None

    def render(self, prompt: prompts.Prompt, material: Material, settings: Settings) -> str:
        """The text of the prompt. Raises CannotAsk where the item lacks what the protocol asks about, or the template
        makes too much of it."""
        try:
            return prompt.render(self.values(material, settings))
        except prompts.TooMuch as error:
            raise CannotAsk(str(error)) from None

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        """What the template may name."""
        described = bool(material.descriptions or material.objects)
        seen = "shown" if material.images else "described" if described else "withheld" if material.withheld else "none"
        return {
            "instruction": material.instruction,
            "question_type": material.question_type or "not stated",
            "hint": material.hint,
            "answers": material.answers,
            "letters": ascii_uppercase[: len(material.answers)],
            "criteria": [criterion.text for criterion in material.criteria] if settings["criteria"] else (),
            "options": material.options,
            "scale": [(f"{value:g}", word) for value, word in material.scale],
            "images": material.images,
            "descriptions": material.descriptions,
            "objects": material.objects,
            "picture": seen,
            "reasoning": settings["reasoning"],
            "nonce": material.nonce,
        }

    def place(self, settings: Settings) -> Place:
        """The line of the reply that carries the verdict."""
        return "first" if settings["reasoning"] == "after" else "last"

    @abstractmethod
    def parse(self, text: str, material: Material, settings: Settings) -> Found: ...

    def verdict_schema(self, material: Material) -> dict[str, Any] | None:
        """The JSON schema of the verdict alone, for endpoints held to one; None where it is no single value."""
        return None

    def schema(self, material: Material, settings: Settings) -> dict[str, Any] | None:
        """The JSON schema of a reply: the verdict, with the analysis before or after it as the reasons are."""
        verdict = self.verdict_schema(material)
        if verdict is None:
            return None
        properties: dict[str, Any] = {"verdict": verdict}
        if settings["reasoning"] == "after":
            properties = {"verdict": verdict, "analysis": {"type": "string"}}
        elif settings["reasoning"] != "none":
            properties = {"analysis": {"type": "string"}, "verdict": verdict}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def scale(self, material: Material) -> Sequence[float]:
        """The scores there are."""
        return [value for value, _ in material.scale]

    def without_call(self, material: Material) -> dict[str, Any] | None:
        """The verdict where none need be asked for: the answer itself says it."""
        return None

    def fallback(self, material: Material, seed: bytes) -> dict[str, Any] | None:
        """The verdict, marked as such, where the judge's reply held none; None keeps it missing."""
        return None
