"""The base of all protocols: the material of a call, and their common settings and rendering."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, QuerySet

from bank import exposure
from bank.models import Item, ItemResponse
from judging.protocols import prompts
from judging.protocols.baselines import Baseline
from judging.protocols.replies import ParsedVerdict, Place
from judging.protocols.settings import (
    CONTEXTS,
    NAMES,
    ONE_STEP,
    UNANSWERED,
    BadSettings,
    Printed,
    Settings,
    boolean,
    check_names,
    one_of,
    request_settings,
    whole,
    with_printed,
)

ORDERS = ("both", "shuffled", "fixed")
KINDS_OF_REFERENCE = ("exact_reference", "soft_reference", "answer_key")


class CannotAsk(ValueError):
    """No call can be made for this item; says what is missing."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion of a sample, as judges see it."""

    key: str
    kind: str
    text: str
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """An option as the model saw it: the label shown, the sample's own label, the text."""

    shown: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Material:
    """The material of one call, in presented order. All of it is data; none of it is an instruction."""

    instruction: str
    question_type: str
    hint: str
    answers: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    options: tuple[Option, ...]
    scale: tuple[tuple[float, str], ...]  # the possible scores, lowest first, each with its word
    images: int  # number of images sent with the prompt
    descriptions: tuple[str, ...]  # of images that are described instead of shown
    objects: tuple[str, ...]  # found in those images
    withheld: bool  # the sample has images that the settings keep from the judge
    nonce: str  # part of the tags around the material; its authors cannot know it

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.shown for option in self.options)


def prompt_setting(protocol: str, chosen: Mapping[str, Any]) -> str:
    """The canonical name of the chosen prompt. Raises BadSettings."""
    value = chosen.get("prompt", "default")
    if not isinstance(value, str):
        raise BadSettings("prompt: must be the name of a prompt, or NAME@VERSION.")
    try:
        return prompts.chosen(protocol, value)
    except prompts.UnknownPrompt as error:
        raise BadSettings(f"prompt: {error}") from None


class Protocol(ABC):
    """One way of asking a judge. Subclasses define what is asked and how the reply is read.

    ``settings`` returns canonical settings with every default filled in; ``render`` returns the text of the prompt (the
    images are sent beside it); ``parse`` returns the verdict in presented order, or raises NoVerdict.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    words: ClassVar[str]  # what is asked, in a few words
    kind: ClassVar[str]  # of the items it judges: score, pair, batch
    verdict_kind: ClassVar[str]  # the boards that count its verdicts, see leaderboard.kinds
    answers: ClassVar[int] = 1  # of an item; where items of one kind have more or fewer, the fewest
    units: ClassVar[str] = "answers"  # its items, in words
    needs_answer: ClassVar[bool] = True  # or a sample can be judged by itself
    needs_options: ClassVar[bool] = False  # of the sample
    needs_criteria: ClassVar[tuple[str, ...]] = ()  # kinds of which a sample must have one
    may_hold: ClassVar[int] = exposure.TEXTS  # of closed inputs (bank.exposure.Inputs): what its judge may be shown
    lacking: ClassVar[str] = ""  # said where no sample has what is needed
    reasonings: ClassVar[tuple[str, ...]] = ("none", "first", "after")
    defaults: ClassVar[Mapping[str, Any]] = {}
    graded: ClassVar[bool] = False  # the verdict says how much better an answer is
    weighted: ClassVar[bool] = False  # the verdict is a number, so log-probabilities can give a weighted score
    fixed: ClassVar[tuple[str, ...]] = ()  # settings that cannot be changed
    own_settings: ClassVar[tuple[str, ...]] = ()  # that no other protocol has
    printed: ClassVar[Printed | None] = None  # how the paper that it comes from asks
    example: ClassVar[Mapping[str, Any]] = {}  # of settings without a default, to try a template out
    # What a prompt must tell the judge to write so that the reply can be read: patterns with a description.
    answer_forms: ClassVar[tuple[tuple[str, str], ...]]
    baselines: ClassVar[Mapping[str, Baseline]] = {}  # the built-in judges that give such verdicts

    def _check_fixed(self, chosen: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        for name in self.fixed:
            if chosen.get(name, values[name]) != values[name]:
                raise BadSettings(f"{name}: always {str(values[name]).lower()} in {self.name}; leave it out.")

    def _check_steps(self, steps: Any, reasoning: Any) -> None:
        if isinstance(steps, str):
            one_of("step_calls", steps, tuple(ONE_STEP))
            if reasoning != "first" or "three-step" not in self.reasonings:
                raise BadSettings("step_calls: one step goes before the reasoning first, in score, pair and batch.")
        elif boolean("step_calls", steps) and reasoning != "three-step":
            raise BadSettings("step_calls: asks each step by itself, so it needs the reasoning three-step.")

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        chosen = with_printed(chosen, self.printed)
        check_names(chosen, (*NAMES, *self.own_settings))
        if chosen.get("structured") and type(self).verdict_schema is Protocol.verdict_schema:
            raise BadSettings(f"structured: {self.name} has no JSON reply; leave it out.")
        values = {"order": "both", "criteria": True, "context": "image", "reasoning": "first"} | dict(self.defaults)
        if self.answers == 1:
            values["order"] = "fixed"
        self._check_fixed(chosen, values)
        values |= chosen
        steps = values.get("step_calls", False)
        self._check_steps(steps, values["reasoning"])
        if self.answers == 1 and values["order"] != "fixed":
            raise BadSettings("order: a single answer has no order; leave it out.")
        unanswered = one_of("unanswered", values.get("unanswered", UNANSWERED[0]), UNANSWERED)
        if unanswered == "loses" and type(self).lowest is Protocol.lowest:
            raise BadSettings(f"unanswered: {self.name} has no lowest verdict; choose no-verdict or asked.")
        return {
            "order": one_of("order", values["order"], ORDERS),
            "criteria": boolean("criteria", values["criteria"]),
            "context": one_of("context", values["context"], CONTEXTS),
            "reasoning": one_of("reasoning", values["reasoning"], self.reasonings),
            "prompt": prompt_setting(self.name, values),
            "repeats": whole("repeats", values.get("repeats", 1)),
            **({"step_calls": steps} if steps else {}),
            **({"unanswered": unanswered} if unanswered != UNANSWERED[0] else {}),
        } | request_settings(values, temperature=0)

    def render(self, prompt: prompts.Prompt, material: Material, settings: Settings) -> str:
        """The text of the prompt. Raises CannotAsk if the item lacks what the protocol asks about, or if the template
        produces too much text."""
        try:
            return prompt.render(self.values(material, settings))
        except prompts.TooMuch as error:
            raise CannotAsk(str(error)) from None

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        """The variables of the template."""
        described = bool(material.descriptions or material.objects)
        picture = (
            "shown" if material.images else "described" if described else "withheld" if material.withheld else "none"
        )
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
            "picture": picture,
            "reasoning": settings["reasoning"],
            "nonce": material.nonce,
        }

    def verdict_line(self, settings: Settings) -> Place:
        """Whether the verdict is on the first or the last line of the reply."""
        return "first" if settings.get("reasoning") == "after" else "last"

    def fitting(self, items: QuerySet[Item]) -> QuerySet[Item]:
        """Those of these items, of its kind, that it can be asked about."""
        if self.answers > 1 or not self.needs_answer:
            return items
        return items.filter(Exists(ItemResponse.objects.filter(item=OuterRef("pk"))))

    @abstractmethod
    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict: ...

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any] | None:
        """The JSON schema of the verdict alone, for structured output; None if it is not a single value."""
        return None

    def schema(self, material: Material, settings: Settings) -> dict[str, Any] | None:
        """The JSON schema of a reply: the verdict, with the analysis before or after it like the reasoning."""
        verdict = self.verdict_schema(material, settings)
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
        """The possible scores."""
        return [value for value, _ in material.scale]

    def without_call(self, material: Material) -> dict[str, Any] | None:
        """The verdict, if the answer itself states it and no call is needed."""
        return None

    def name_of(self, place: int) -> str:
        """The prompt's name for the answer at a presented place."""
        return "The answer"

    def best(self, material: Material, place: int) -> str:
        """The reply that most favours the answer at this presented place; empty where a verdict says what an answer
        means, not how good it is, so that no attack could inflate it.
        """
        return ""

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        """The verdict by which the answers at these presented places lose; empty where there is none."""
        return {}

    def fallback(self, material: Material, seed: bytes) -> dict[str, Any] | None:
        """A substitute, marked as such, for a reply without a verdict; None leaves it missing."""
        return None
