"""A recipe, checked: the same in YAML, in the API's body and in the database.

A recipe asks its scenario's questions under one or more **conditions** (with so many examples, with such labels,
corrupted), in one or more **turns**. Its metric decides which conditions are needed.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bank import corruptions
from bank.errors import BadInput
from bank.recipes.verbalizers import GROUPS, Verbalizer, of_group

MOST_SHOTS = 8
MOST_POOL = 100
MOST_CLASSES = 20_000
MOST_PARTS = MOST_CLASSES + 2_000  # beginnings, ends and values of a recipe's YAML
MOST_DEPTH = 50  # lists and mappings in one another: PyYAML takes half a minute for 100,000
NAME = r"^[a-z0-9][a-z0-9-]{0,79}$"
Short = Annotated[str, Field(min_length=1, max_length=200)]
Template = Annotated[str, Field(min_length=1, max_length=20_000)]
OPTIONS, YES_NO, TREE = "options", "yes-no", "tree"
PLAIN, CORRUPTED = "", "corrupted"
ALONE = f"{CORRUPTED}-"  # begins the name of a condition with one corruption alone


class Part(BaseModel):
    """Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Scenario(Part):
    """Questions of a benchmark. ``sample`` draws so many of them by the recipe's seed."""

    benchmark: Short
    split: Annotated[str, Field(max_length=40)] = ""
    levels: tuple[Short, ...] = ()
    sample: Annotated[int, Field(ge=1, lt=2**31)] | None = None


class Examples(Part):
    """In-context examples (ChEF, B.2). ``keys`` are those of fixed examples; ``embeddings`` names a Parquet file with
    ``key, vector`` in the data folder's ``embeddings``.
    """

    how: Literal["none", "random", "fixed", "top-text", "top-image"] = "none"
    k: Annotated[int, Field(ge=0, le=MOST_SHOTS)] = 0
    images: bool = False
    keys: tuple[Short, ...] = ()
    embeddings: Annotated[str, Field(max_length=200, pattern=r"^[\w.-]*$")] = ""

    @model_validator(mode="after")
    def _count_fits(self) -> Self:
        if self.how == "none" and (self.k or self.keys or self.images or self.embeddings):
            raise ValueError("without examples (how: none) there is no k, keys, images or embeddings")
        if self.how != "none" and not self.k:
            raise ValueError("say how many examples: k")
        return self

    @model_validator(mode="after")
    def _keys_and_embeddings_fit(self) -> Self:
        if self.how == "fixed" and len(self.keys) < self.k:
            raise ValueError(f"fixed examples need at least {self.k} keys")
        if self.how != "fixed" and self.keys:
            raise ValueError("only fixed examples have keys")
        if self.embeddings and not self.how.startswith("top-"):
            raise ValueError("only top-text and top-image use embeddings")
        return self


class Instruction(Part):
    """``queries``: names of prompts for answering, or templates themselves. Of several, ``first`` asks the first alone
    (the standard query), ``seeded`` deals them (the query pool). Without ``pictures`` the text alone is asked.
    """

    queries: Annotated[tuple[Template, ...], Field(min_length=1, max_length=20)] = ("default",)
    deal: Literal["first", "seeded"] = "first"
    examples: Examples = Examples()
    verbalizer: Literal["none", "natural", "neutral", "unnatural"] = "none"
    pictures: bool = True


class Corruption(Part):
    """``composed``: of each category one method by the seed, in sequence (C.5). ``single``: the named method. ``each``:
    every method alone, at every severity or at one (Figure 20). ``image`` and ``text`` are true and false, or the name
    of a method.
    """

    strategy: Literal["none", "single", "composed", "each"] = "none"
    image: bool | Short = False
    text: bool | Short = False
    severity: Annotated[int, Field(ge=1, le=5)] | None = None

    @model_validator(mode="after")
    def _fits_strategy(self) -> Self:
        named = [value for value in (self.image, self.text) if isinstance(value, str)]
        any_method = self.image or self.text
        unfit, rule = {
            "none": (any_method or self.severity, "strategy none corrupts nothing: leave out image, text and severity"),
            "composed": (
                named or self.severity or not any_method,
                "a composed corruption has image: true, text: true or both, and draws its severities",
            ),
            "each": (named or not any_method, "each method alone: say image: true, text: true or both"),
            "single": (
                len(named) != 1 or True in (self.image, self.text),
                "a single corruption names one method, of image or of text",
            ),
        }[self.strategy]
        if unfit:
            raise ValueError(rule)
        return self


class Numbers(Part):
    """A pool made of the key: from ``numbers`` below it to as many above, in whole steps (FSC147 in ChEF: 2)."""

    numbers: Annotated[int, Field(ge=1, le=50)]


class Nearest(Part):
    """A pool of the key and the keys of the ``nearest`` other questions, by text (Flickr30k in ChEF)."""

    nearest: Annotated[int, Field(ge=1, le=50)]


class Tree(Part):
    """Classes as paths from the top ("animal/dog/poodle"); each step down is a turn."""

    tree: Annotated[tuple[Short, ...], Field(min_length=2, max_length=MOST_CLASSES)]


Pool = (
    Literal["options", "yes-no"] | Annotated[tuple[Short, ...], Field(max_length=MOST_POOL)] | Numbers | Nearest | Tree
)


class Turn(Part):
    """One thing that the model does. ``ask`` replaces the sentence with which it is asked for that."""

    kind: Literal["direct", "cot", "likelihood"]
    pool: Pool = "options"
    by: Literal["first-token", "prompt"] = "first-token"
    sum: Literal["total", "per-token"] = "total"
    ask: Annotated[str, Field(max_length=2_000)] = ""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.kind != "likelihood" and self.model_fields_set & {"pool", "by", "sum"}:
            raise ValueError(f"a {self.kind} turn has no pool, by or sum")
        if self.kind == "likelihood" and self.by == "first-token" and self.sum != "total":
            raise ValueError("the first token has nothing to sum")
        if isinstance(self.pool, tuple) and len(set(self.pool)) < 2:
            raise ValueError("a pool of one answer has nothing to choose from")
        return self


Metric = Literal[
    "accuracy",
    "circular",
    "weighted-accuracy",
    "exact-match",
    "bleu",
    "yes-no",
    "ece",
    "riam",
    "mr",
    "rrm",
    "language",
]


@dataclass(frozen=True, slots=True)
class Condition:
    """How a question is put: with how many examples, which labels, and whether corrupted, by which ``step`` alone."""

    name: str
    shots: int = 0
    verbalizer: Verbalizer | None = None
    corrupted: bool = False
    step: corruptions.Step | None = None


@lru_cache
def _each_alone(image: bool, text: bool, severity: int | None, shots: int) -> tuple[Condition, ...]:
    steps = corruptions.each(image=image, text=text, severity=severity)
    return tuple(Condition(f"{ALONE}{step.method}-{step.severity}", shots, None, True, step) for step in steps)


def _corrupted(rule: Corruption, shots: int) -> tuple[Condition, ...]:
    """The conditions that the plain question is compared with."""
    if rule.strategy == "each":
        return _each_alone(bool(rule.image), bool(rule.text), rule.severity, shots)
    return (Condition(CORRUPTED, shots, corrupted=True),)


def _all_verbalizers() -> list[Verbalizer]:
    return [one for group in GROUPS for one in of_group(group)]


class Spec(Part):
    """A recipe. ``judge`` marks explanations (metric language) or reads options in direct answers that name none;
    ``marked`` says whether it marks those of right answers alone, which alone make the metric.
    """

    name: Annotated[str, Field(pattern=NAME)]
    version: Annotated[int, Field(ge=1, lt=2**31)] = 1
    note: Annotated[str, Field(max_length=500)] = ""
    scenario: Annotated[tuple[Scenario, ...], Field(min_length=1, max_length=20)]
    instruction: Instruction = Instruction()
    corruption: Corruption = Corruption()
    turns: Annotated[tuple[Turn, ...], Field(min_length=1, max_length=10)]
    metric: Metric
    judge: Annotated[str, Field(max_length=200)] = ""
    marked: Literal["right", "all"] = "right"
    repeats: Annotated[int, Field(ge=1, le=20)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None

    @field_validator("name", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return value.strip() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _last_turn_fits(self) -> Self:
        last = self.turns[-1]
        if len({scenario.benchmark for scenario in self.scenario}) < len(self.scenario):
            raise ValueError("list each benchmark once in scenario: choose its parts by split and levels")
        if last.kind == "cot" and self.metric != "language":
            raise ValueError("reasoning alone gives no answer: let a direct or likelihood turn follow")
        if self.metric == "ece" and last.kind != "likelihood":
            raise ValueError("ece needs likelihoods: end with a likelihood turn")
        if self.metric == "bleu" and last.kind != "direct":
            raise ValueError("bleu compares texts: end with a direct turn")
        return self

    @model_validator(mode="after")
    def _tree_fits(self) -> Self:
        last = self.turns[-1]
        if self.metric == "weighted-accuracy" and not (last.kind == "likelihood" and isinstance(last.pool, Tree)):
            raise ValueError("weighted-accuracy needs the tree of classes: end with a likelihood turn down a tree")
        if isinstance(last.pool, Tree) and self.metric not in ("weighted-accuracy", "accuracy", "exact-match"):
            raise ValueError("down a tree, the metric is weighted-accuracy, accuracy or exact-match")
        return self

    @model_validator(mode="after")
    def _needs_of_metric_are_met(self) -> Self:
        if self.metric == "riam" and self.instruction.examples.how == "none":
            raise ValueError("riam needs in-context examples")
        if self.metric == "rrm" and self.corruption.strategy == "none":
            raise ValueError("rrm needs a corruption")
        if self.metric == "language" and not (self.judge and self.reasons):
            raise ValueError("language marks reasoning: it needs a cot turn and a judge")
        if self.marked == "all" and self.metric != "language":
            raise ValueError("marked says of which answers the reasons are marked: that is for the metric language")
        return self

    @model_validator(mode="after")
    def _corruption_fits(self) -> Self:
        if self.corruption.strategy == "each" and self.metric != "rrm":
            raise ValueError("each corruption alone is compared with the plain question: the metric is rrm")
        if self.corruption.image and not self.instruction.pictures:
            raise ValueError("pictures that are not shown cannot be corrupted")
        if self.metric in ("mr", "language", "circular") and self.corruption.strategy != "none":
            raise ValueError(f"{self.metric} is measured without corruption")
        return self

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        if (self.metric in ("mr", "circular") or self.instruction.verbalizer != "none") and not self.is_of_options:
            raise ValueError("other labels and rotations are for multiple choice: the last pool must be options")
        return self

    @property
    def is_of_options(self) -> bool:
        """Whether the answer is one of the question's options."""
        last = self.turns[-1]
        return last.kind != "likelihood" or last.pool == OPTIONS

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of each question, in order; the first of several is the plain one."""
        shots = self.instruction.examples.k
        if self.metric == "riam":
            return (Condition(PLAIN), *(Condition(f"shots-{k}", shots=k) for k in range(1, shots + 1)))
        group = self.instruction.verbalizer
        if self.metric == "mr":
            others = of_group(group) if group != "none" else _all_verbalizers()
            return (Condition(PLAIN, shots), *(Condition(each.name, shots, each) for each in others))
        if self.metric == "rrm":
            return (Condition(PLAIN, shots), *_corrupted(self.corruption, shots))
        corrupted = self.corruption.strategy != "none"
        if group != "none":
            return tuple(Condition(each.name, shots, each, corrupted) for each in of_group(group))
        return (Condition(CORRUPTED if corrupted else PLAIN, shots, corrupted=corrupted),)

    @property
    def reasons(self) -> bool:
        """Whether a turn asks for reasoning."""
        return any(turn.kind == "cot" for turn in self.turns)

    @property
    def rotates(self) -> bool:
        """Whether each question is asked in every rotation of its options."""
        return self.metric == "circular"

    @property
    def uses_keys(self) -> bool:
        """Whether asking needs answer keys: for examples, or for a pool made of them."""
        return self.instruction.examples.how != "none" or any(
            isinstance(turn.pool, Numbers | Nearest) for turn in self.turns
        )

    @property
    def ways(self) -> set[str]:
        """The means by which likelihoods are read: first-token, prompt."""
        return {turn.by for turn in self.turns if turn.kind == "likelihood"}


class BadRecipe(BadInput):
    """``place``: keys and numbers that lead to what is wrong; ``line``: where the YAML ends to be YAML, from 1, or 0;
    ``guess``: the word that was probably meant.
    """

    def __init__(self, message: str, *, place: Sequence[str | int] = (), line: int = 0, guess: str = "") -> None:
        super().__init__(message, "yaml")
        self.place, self.line, self.guess = tuple(place), line, guess


def parsed(value: Any) -> Spec:
    """A recipe from the object that YAML or JSON gives. Raises BadRecipe with the first faults in words."""
    if not isinstance(value, dict):
        raise BadRecipe("A recipe is a mapping: name, scenario, turns, metric, ...")
    try:
        return Spec.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])  # causes others
        raise BadRecipe(" ".join(_faults(error)[:4]), place=first["loc"], guess=_guess(first)) from None


def _guess(fault: Any) -> str:
    """The key or value that an unknown one comes close to."""
    if fault["type"] == "extra_forbidden":
        known = {
            name for part in (Spec, Scenario, Instruction, Examples, Corruption, Turn) for name in part.model_fields
        }
        near = get_close_matches(str(fault["loc"][-1]), known, 1)
    else:
        near = get_close_matches(str(fault["input"]), re.findall("'([^']+)'", fault["msg"]), 1)
    return near[0] if near else ""


_LONG_NUMBER = re.compile(r"[-+]?[0-9][\w:.,]{400,}")  # PyYAML takes hours over some
POOLS = "options, yes-no, a list of answers, or a mapping with numbers, nearest or tree"


def _faults(error: ValidationError) -> Sequence[str]:
    """Each fault once: where, and what."""
    words: dict[str, str] = {}
    for fault in error.errors(include_url=False):
        where = [str(part) for part in fault["loc"]]
        message = fault["msg"].removeprefix("Value error, ")
        if "pool" in where:
            where = where[: where.index("pool") + 1]
            message = POOLS
        elif fault["type"] == "extra_forbidden":
            message = "is not a key of recipes"
        place = ".".join(where[:5])
        words.setdefault(place, f"{place}: {message}." if place else f"{message}.")
    return [fault for place, fault in words.items() if not any(other.startswith(f"{place}.") for other in words)]


def from_yaml(text: str) -> Spec:
    """A recipe from YAML. Raises BadInput."""
    if len(text) > 500_000:
        raise BadRecipe("The YAML of a recipe is at most 500,000 characters.")
    try:
        _check_size(text)
        return parsed(yaml.safe_load(text))
    except BadInput:
        raise
    except (ValueError, LookupError, AttributeError, ArithmeticError):  # so PyYAML reads "2001-13-45" and "!!bool x"
        raise BadRecipe("This is not YAML: a value is not what it looks like; put it in quotes.") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "nested too deeply"
        raise BadRecipe(f"This is not YAML{where}: {problem}.", line=mark.line + 1 if mark else 0) from None


def _check_size(text: str) -> None:
    """Raises BadInput before objects are made of more than any recipe says; YAMLError, RecursionError."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise RecursionError
        if number > MOST_PARTS:
            raise BadRecipe(f"A recipe has at most 20 scenarios, 10 turns and {MOST_CLASSES:,} classes.")
        if isinstance(event, yaml.ScalarEvent) and _LONG_NUMBER.fullmatch(event.value):
            raise BadRecipe(f"{event.value[:20]}... is too long for a number of a recipe.")


def to_yaml(spec: Spec) -> str:
    """The recipe as YAML, without the values that are the default. It reads back unchanged."""
    value = spec.model_dump(mode="json", exclude_defaults=True)
    value = {"name": spec.name, "version": spec.version} | value
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)


def stored(spec: Spec) -> dict[str, Any]:
    """A recipe as the database holds it: everything but name and version, written in one way."""
    return spec.model_dump(mode="json", exclude_defaults=True, exclude={"name", "version"})


def digest(spec: Spec) -> str:
    """The hash of what the recipe does, whatever it is called: its note does not count."""
    content = {key: value for key, value in stored(spec).items() if key != "note"}
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
