"""What every format is read into: validated records with the names of the ``generic`` format.

Validation happens here, before the database: SQLite stores what PostgreSQL refuses, so neither is asked.
"""

import math
from datetime import date, datetime
from functools import lru_cache
from string import ascii_uppercase
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from bank.intake.formats.reading import is_number, is_whole
from bank.models.verdict import (
    ANALYSES,
    COLUMNS,
    GRADED,
    LABEL,
    MAX_CATEGORY,
    MAX_OPTION,
    choice_of,
    is_of_categories,
)
from bank.picked import filled, picked
from bank.text.names import as_stored

MAX_TEXT = 2_000_000
MAX_INT = 2**31 - 1
MAX_NAME = 200
MAX_OPTIONS = 26
MAX_PATH = 700


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def plain_json(value: Any) -> Any:
    """A JSON value whose numbers can be stored. Raises ValueError."""
    if isinstance(value, float):
        return _finite(value)
    if is_whole(value) and abs(value) > 2**53:
        raise ValueError("holds a number beyond 2^53")
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_json(item) for item in value]
    return value


def _name(value: Any) -> Any:
    """Names may be written as whole numbers; they are names all the same."""
    return str(value) if is_whole(value) else value


def _stored(name: str) -> str:
    name = as_stored(name)
    if len(name) > MAX_NAME:
        raise ValueError(f"has more than {MAX_NAME} characters")
    return name


# That texts can be stored is asked once of each row, before these: see ``reading.validated``.
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Filled = Annotated[Text, AfterValidator(_filled)]
Short = Annotated[str, Field(max_length=MAX_NAME), BeforeValidator(_name)]
Key = Annotated[Short, AfterValidator(_filled)]
OptionalName = Annotated[Short, AfterValidator(_stored)]  # of a model, judge, annotator, campaign or capability
Name = Annotated[OptionalName, AfterValidator(_filled)]
Number = Annotated[float, AfterValidator(_finite)]
Count = Annotated[int, Field(ge=0, le=MAX_INT)]
Json = Annotated[Any, AfterValidator(plain_json)]


class Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class CriterionRecord(Record):
    key: Annotated[str, Field(max_length=60), BeforeValidator(_name)] = ""
    kind: Literal["exact_reference", "soft_reference", "range", "guideline", "component", "answer_key"] = "guideline"
    text: Filled
    weight: Annotated[float, AfterValidator(_finite), Field(ge=0)] | None = None
    category: Annotated[str, Field(max_length=60)] = ""
    shown_to: Literal["staff", "campaign", "public"] = "staff"


class ImageRecord(Record):
    """A picture: a file, the bytes themselves (readers only), or no more than an address, which is never fetched.

    A format whose pictures may lie in several places names the others in ``also``.
    """

    file: Text = ""
    also: Annotated[tuple[str, ...], Field(exclude=True, repr=False)] = ()
    data: bytes | None = Field(default=None, repr=False)
    url: Text = ""
    required: bool = True  # false: where the file is not there, the sample comes in without it
    description: Text = ""
    objects: list[Json] = Field(default_factory=list)

    @model_validator(mode="after")
    def _somewhere(self) -> "ImageRecord":
        if not self.file.strip() and self.data is None and not self.url.strip():
            raise ValueError("names neither a file nor an address")
        return self

    @property
    def only_address(self) -> bool:
        return not self.file and self.data is None

    def as_absent(self, position: int) -> dict[str, Any]:
        """What is kept of a picture that is not here."""
        kept = {"file": self.file, "url": self.url, "description": self.description, "objects": self.objects}
        return {"position": position} | filled(kept)


def _image(value: Any) -> Any:
    """A picture by its path, as the record has it, or as the Hugging Face Hub keeps it in Parquet."""
    if isinstance(value, dict) and value.keys() == {"bytes", "path"}:
        return {"data": value["bytes"]} if value["bytes"] else {"file": value["path"] or "", "required": False}
    return {"file": value} if isinstance(value, str) else value


def _images(value: Any) -> Any:
    """One picture may stand without a list."""
    return [value] if isinstance(value, str | dict) else value


def _lettered(value: Any) -> Any:
    """Options may be a list: the first is A."""
    if isinstance(value, list) and len(value) <= MAX_OPTIONS:
        return dict(zip(ascii_uppercase, value, strict=False))
    return value


def _options(options: dict[str, str]) -> dict[str, str]:
    if options and not 2 <= len(options) <= MAX_OPTIONS:
        raise ValueError(f"a choice is among 2 to {MAX_OPTIONS} options, not {len(options)}")
    return options


def _among(answer: str, info: ValidationInfo) -> str:
    """The option's letter, also where its text stands, as data sets on Hugging Face have it."""
    options = info.data.get("options")
    of_text = [letter for letter, text in (options or {}).items() if text == answer]
    if options and answer not in options and len(of_text) == 1:
        return of_text[0]
    if answer and options and answer not in options:
        raise ValueError(f"is not among the options {', '.join(options)}")
    return answer


class SampleRecord(Record):
    key: Key
    instruction: Filled
    images: Annotated[list[Annotated[ImageRecord, BeforeValidator(_image)]], BeforeValidator(_images)] = Field(
        default_factory=list
    )
    question_type: Annotated[str, Field(max_length=40)] = ""
    level: OptionalName = ""
    capability: list[Name] = Field(default_factory=list)
    split: Annotated[str, Field(max_length=40)] = ""
    source: Short = ""
    language: Annotated[str, Field(max_length=16)] = ""
    hint: Text = ""
    group: Short = ""
    options: Annotated[
        dict[Annotated[str, Field(max_length=8)], Text],
        BeforeValidator(_lettered),
        AfterValidator(_options),
    ] = Field(default_factory=dict)
    answer: Annotated[Text, AfterValidator(_among)] = ""
    criteria: list[CriterionRecord] = Field(default_factory=list)
    metadata: dict[str, Json] = Field(default_factory=dict)
    status: Literal["draft", "review", "approved", "rejected"] = "approved"

    @model_validator(mode="after")
    def _consistent(self) -> "SampleRecord":
        if self.level and self.capability and self.capability[0] != self.level:
            raise ValueError("level and the top of capability name different things")
        if any(" / " in name for name in (*self.capability, self.level)):
            raise ValueError('a capability name may not hold " / "')
        if len(" / ".join(self.capability)) > MAX_PATH:
            raise ValueError(f"the capability path is longer than {MAX_PATH} characters")
        keys = [criterion.key or str(number) for number, criterion in enumerate(self.criteria, start=1)]
        keys += ["answer"] if self.answer else []
        if len(set(keys)) != len(keys):
            raise ValueError("two criteria have the same key")
        return self

    @property
    def path(self) -> list[str]:
        return self.capability or ([self.level] if self.level else [])


def _needed(key: str, info: ValidationInfo) -> str:
    if not key.strip() and not info.data.get("image_url"):
        raise ValueError("is missing or empty")
    return key


def _candidates(pool: list[Any]) -> list[Any]:
    """The answers of a pool, each with its log-likelihood or null."""
    for pair in pool:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError("is not a list of [answer, log-likelihood or null]")
        if pair[1] is not None and not is_number(pair[1]):
            raise ValueError("holds a log-likelihood that is no number")
    plain: list[Any] = plain_json(pool)
    return plain


def _day(value: Any) -> Any:
    return date.fromisoformat(value) if isinstance(value, str) else value


Price = Annotated[Number, Field(ge=0)]


class ModelRecord(Record):
    """What is known of a model beside its answers, from ``models.jsonl``. Prices in US dollars per million tokens."""

    name: Name
    organisation: Short = ""
    open: bool | None = None
    family: Annotated[str, Field(max_length=100)] = ""
    licence: Short = ""
    parameters: Annotated[str, Field(max_length=60), BeforeValidator(_name)] = ""
    architecture: Short = ""
    vision: Short = ""
    language: Short = ""
    released: Annotated[date | None, BeforeValidator(_day)] = None
    homepage: Annotated[str, Field(max_length=500, pattern=r"^(https?://\S+)?$")] = ""
    price_in: Price | None = None
    price_out: Price | None = None


class LikelihoodsRecord(Record):
    by: Literal["prompt", "first-token"]
    sum: Literal["total", "per-token"] = "total"
    pool: Annotated[list[Any], Field(min_length=2), AfterValidator(_candidates)]
    mass: Annotated[Number, Field(ge=0, le=1)] | None = None


class ResponseRecord(Record):
    """A response. A format that knows its samples by the picture's address names that instead of the key; one that
    counts the rotations of a circular evaluation gives the number in place of the variant."""

    image_url: Annotated[Text, Field(exclude=True)] = ""
    rotation: Annotated[Count, Field(exclude=True)] = 0
    sample: Annotated[Short, AfterValidator(_needed), Field(validate_default=True)] = ""
    model: OptionalName = ""
    variant: Annotated[str, Field(max_length=60)] = ""
    text: Text = ""
    status: Literal["ok", "refused", "filtered", "truncated", "empty", "error", "skipped"] | None = None
    reason: Text = ""
    option_order: list[Short] | None = None
    tokens: Count | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "ResponseRecord":
        if self.status == "ok" and not (self.text.strip() or self._without_text):
            raise ValueError("text is empty although status is ok")
        return self

    @property
    def _without_text(self) -> bool:
        """Whether it can be an answer although it has no text."""
        return False

    @property
    def known_status(self) -> str:
        return self.status or ("ok" if self.text.strip() else "empty")


Turns = Annotated[int, Field(ge=0, le=1000)]


class RecipeResponseRecord(ResponseRecord):
    """One turn of a model's answer by a recipe, NAME@VERSION. ``recipe_sha256``: what the recipe was when asked by."""

    recipe: Annotated[Short, AfterValidator(_needed), Field(validate_default=True)] = ""
    recipe_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    repeat: Turns = 0
    turn: Turns = 0
    likelihoods: LikelihoodsRecord | None = None

    @property
    def _without_text(self) -> bool:
        return self.likelihoods is not None  # of a pool of which no answer was returned


class Ref(NamedTuple):
    """A response as a verdict names it."""

    model: str
    variant: str


class RefRecord(Record):
    model: Name
    variant: Annotated[str, Field(max_length=60)] = ""


def _ref(value: Any) -> Ref:
    record = RefRecord.model_validate({"model": value} if isinstance(value, str | int) else value)
    return Ref(record.model, record.variant)


_ref_of_name = lru_cache(maxsize=10_000)(_ref)  # files name the same few again and again


def _named(value: Any) -> Ref:
    return _ref_of_name(value) if isinstance(value, str) else _ref(value)


Named = Annotated[Ref, PlainValidator(_named)]


def _when(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


When = Annotated[AwareDatetime, BeforeValidator(_when)]


def _groups(value: Any) -> Any:
    """A ranking without ties may be written flat."""
    if isinstance(value, list):
        return [group if isinstance(group, list) else [group] for group in value]
    return value


class PartRecord(Record):
    component: Key
    points: Number


# The columns that make a verdict; the others stand beside one.
DECIDING = frozenset("score choice preference ranking parts option answer agree grade hallucination".split())
COUNTED_OF = dict.fromkeys(("score", "parts", "answer"), "score") | {"ranking": "batch"}
RESPONSES_OF = {"score": range(2), "pair": range(2, 3), "batch": range(3, 9)}  # how many an item takes, by kind


class VerdictRecord(Record):
    """The verdict columns as a file writes them, about responses in the order the row names them.

    A format whose rows hold the responses too gives their ``texts``, so that no verdict meets another text.
    """

    texts: Annotated[list[Text], Field(exclude=True, repr=False)] = Field(default_factory=list)
    kind: Literal["score", "pair", "batch"]
    protocol: Annotated[str, Field(max_length=30)] = ""
    sample: Key
    responses: list[Named] = Field(default_factory=list)
    score: Number | None = None
    choice: Literal["first", "second", "tie", "undecided"] | None = None
    preference: Annotated[float, AfterValidator(_finite), Field(ge=0, le=1)] | None = None
    situation: Literal[1, 2] | None = None
    ranking: Annotated[list[list[Named]], BeforeValidator(_groups)] | None = None
    parts: list[PartRecord] | None = None
    option: Annotated[str, Field(max_length=MAX_CATEGORY)] | None = None
    extraction: Literal["label", "judge", "random"] | None = None
    answer: bool | None = None
    agree: bool | None = None
    grade: Annotated[int, Field(ge=1, le=5)] | None = None
    hallucination: bool | None = None
    spans: list[list[Count]] | None = None
    confidence: Number | None = None
    reason: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _category(cls, row: Any) -> Any:
        """The kind that boards and commands name for categories: they are stored as scores of the protocol label."""
        if isinstance(row, dict) and row.get("kind") == "nominal":
            if row.get("protocol") and not is_of_categories(row["protocol"]):
                raise ValueError(f"the kind nominal has the protocol {LABEL}")
            return row | {"kind": "score", "protocol": LABEL}
        return row

    @model_validator(mode="after")
    def _consistent(self) -> "VerdictRecord":
        wanted = RESPONSES_OF[self.kind]
        if len(self.responses) not in wanted:
            counts = " to ".join(str(count) for count in dict.fromkeys((wanted[0], wanted[-1])))
            raise ValueError(f"a {self.kind} item takes {counts} responses, not {len(self.responses)}")
        if len(set(self.responses)) != len(self.responses):
            raise ValueError("responses: the same response twice")
        if self.situation is not None and self.choice != "undecided":
            raise ValueError("situation goes with the choice undecided only")
        if self.choice is not None and self.kind != "pair" and self.protocol != ANALYSES:
            raise ValueError("choice belongs to a pair")
        for name, kind in COUNTED_OF.items():
            if getattr(self, name) is not None and self.kind != kind:
                raise ValueError(f"{name} belongs to a {kind} item: no board would count it of a {self.kind}")
        if self.preference is not None:
            if self.kind != "pair" or self.protocol not in ("", GRADED):
                raise ValueError(f"preference belongs to a pair of the protocol {GRADED}")
            if self.choice not in (None, follows := choice_of(self.preference)):
                raise ValueError(f"choice: {follows} follows from the preference {self.preference:g}")
        if is_of_categories(self.protocol):
            if self.kind != "score" or self.decided_by - {"option"}:
                raise ValueError(f"the protocol {LABEL} gives one text or picture an option, its category")
        elif self.option is not None and len(self.option) > MAX_OPTION:
            raise ValueError(f"option has more than {MAX_OPTION} characters; for categories, the protocol is {LABEL}")
        if self.ranking is not None:
            ranked = [ref for group in self.ranking for ref in group]
            if sorted(ranked) != sorted(self.responses):
                raise ValueError("ranking does not name every response once")
        return self

    @property
    def decided_by(self) -> set[str]:
        """The columns that make the verdict; none without one."""
        return {name for name in DECIDING & self.model_fields_set if getattr(self, name) is not None}

    def columns(self) -> dict[str, Any]:
        """The verdict columns, positions counted in the order of ``responses``."""
        return picked(self, COLUMNS) | {name: of(self) for name, of in AS_STORED.items()}


def _ranked_positions(record: VerdictRecord) -> list[list[int]] | None:
    if record.ranking is None:
        return None
    return [sorted(record.responses.index(ref) for ref in group) for group in record.ranking]


def _points_by_component(record: VerdictRecord) -> dict[str, float] | None:
    return None if record.parts is None else {part.component: part.points for part in record.parts}


def _chosen(record: VerdictRecord) -> str | None:
    return record.choice if record.preference is None else choice_of(record.preference).value


# The verdict columns that are stored otherwise than a file writes them.
AS_STORED = {"ranking": _ranked_positions, "parts": _points_by_component, "choice": _chosen}


class ComparedRecord(Record):
    """A judge's verdict on the item of the row, as ``JudgmentRecord`` names it."""

    judge: Name
    protocol: Annotated[str, Field(max_length=30)]
    settings: dict[str, Json] = Field(default_factory=dict)
    order: list[Named] = Field(default_factory=list)
    repeat: Count = 0


class LabelRecord(VerdictRecord):
    annotator: OptionalName = ""
    compared: list[ComparedRecord] = Field(default_factory=list)  # two, whose analyses ``choice`` is about
    simulated: bool = False  # the annotator is invented
    changed_late: bool = False  # when others' verdicts may have been read
    seconds: Annotated[float, AfterValidator(_finite), Field(ge=0)] | None = None
    comment: Text = ""
    flags: list[Short] = Field(default_factory=list)
    campaign: OptionalName = ""
    at: When | None = None
    revisions: list[Json] = Field(default_factory=list)  # before each change, oldest first; see Revision

    @model_validator(mode="after")
    def _decided(self) -> "LabelRecord":
        if not self.decided_by:
            raise ValueError("the label holds no verdict")
        if len(self.compared) != (2 if self.protocol == ANALYSES else 0):
            raise ValueError(f"compared names two judgments, where the protocol is {ANALYSES}")
        if any(sorted(one.order) != sorted(self.responses) for one in self.compared):
            raise ValueError("compared: order does not name every response once")
        self.earlier()
        return self

    def earlier(self) -> list["Revision"]:
        """The revisions, each checked as a verdict on the same item. Raises ValueError."""
        if not self.revisions:
            return []
        named = [ref._asdict() for ref in self.responses]
        about = {"kind": self.kind, "protocol": self.protocol, "sample": self.sample, "responses": named}
        checked = []
        for number, revision in enumerate(self.revisions, 1):
            if not isinstance(revision, dict) or set(revision) & set(about):
                raise ValueError(f"revision {number} is not what the label was before")
            try:
                checked.append(Revision.model_validate(about | revision))
            except ValidationError as error:
                raise ValueError(f"revision {number}: {error.errors()[0]['msg']}") from None
        return checked


class Revision(VerdictRecord):
    """What a label was from ``at`` until ``until``."""

    seconds: Annotated[float, AfterValidator(_finite), Field(ge=0)] | None = None
    comment: Text = ""
    flags: list[Short] = Field(default_factory=list)
    at: When
    until: When


class JudgmentRecord(VerdictRecord):
    judge: OptionalName = ""
    simulated: bool = False  # the judge is invented
    run: Short = ""
    settings: dict[str, Json] = Field(default_factory=dict)
    order: list[Named] | None = None
    repeat: Count = 0
    analysis: Text | None = None
    raw: Text | None = None
    status: Literal["ok", "parse_failed", "refused", "filtered", "truncated", "empty", "error", "skipped_budget"] = "ok"
    reported_model: Short = ""
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cost: Annotated[float, AfterValidator(_finite), Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _decided(self) -> "JudgmentRecord":
        if (self.status == "ok") != bool(self.decided_by):
            raise ValueError("status ok goes with a verdict, any other status without one")
        if self.order is not None and sorted(self.order) != sorted(self.responses):
            raise ValueError("order does not name every response once")
        return self
