"""Files of any columns: a map says which of them hold what, and is proposed from their names and content.

A map brings the rows of one table to ``pairs``, ``answers`` or a part of the ``generic`` format. It is written as YAML:

    shape: pairs
    columns: {prompt: Frage, model_a: Modell A, response_a: Antwort A, model_b: Modell B, response_b: Antwort B,
              winner: Urteil}
    values: {winner: {A: model_a, B: model_b, gleich: tie}}
    constants: {annotator: panel}

``columns`` names for each field a column, or a path into one (``doc.question``, ``resps.0``); ``values`` what the words
in it stand for; ``constants`` what is the same for all rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bank.errors import BadInput
from bank.intake.formats import answers, generic, pairs
from bank.intake.formats.reading import (
    PICTURE_ENDINGS,
    BadFile,
    BadRow,
    Problem,
    Row,
    is_number,
    meant_by,
    rows,
    text_faults,
)
from bank.intake.formats.records import Text
from bank.intake.formats.wide import read_as, value_at
from bank.picked import present
from bank.text.words import cut, meanings_of

Shape = Literal["pairs", "answers", "samples", "responses", "labels", "judgments"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
TITLES: dict[str, str] = {
    "pairs": "Comparisons of models",
    "answers": "Answers with questions",
    "samples": "Questions with pictures",
    "responses": "Answers of models",
    "labels": "Verdicts of people",
    "judgments": "Verdicts of judges",
}
WIDE: dict[str, ModuleType] = {"pairs": pairs, "answers": answers}
FIELDS: dict[str, tuple[str, ...]] = {
    "pairs": pairs.FIELDS,
    "answers": answers.FIELDS,
    **{
        part: tuple(name for name, info in record.model_fields.items() if not info.exclude)
        for part, record in generic.RECORDS.items()
    },
}
# The fields without which no row is known for what it is.
NEEDED: dict[str, tuple[str, ...]] = {
    "pairs": pairs.NEEDED,
    "answers": answers.NEEDED,
    "samples": ("key", "instruction"),
    "responses": ("sample", "text"),
    "labels": ("kind", "sample", "annotator"),
    "judgments": ("kind", "sample"),
}
LABELS = {
    "prompt": "Question",
    "model_a": "First model",
    "response_a": "First answer",
    "model_b": "Second model",
    "response_b": "Second answer",
    "winner": "Verdict",
    "preference": "Preference from 0 to 1",
    "key": "Key of the question",
    "image": "Picture",
    "annotator": "Person who decided",
    "response": "Answer",
    "answer": "Right answer",
    "category": "Level",
    "tstamp": "Time in seconds",
}
TEXTS = frozenset(
    "prompt response response_a response_b category hint answer comment language instruction text".split()
)
LISTS = frozenset("image images options responses flags".split())  # may be one
# What the words of a file may stand for, with how a page says it.
WORDS = {
    "winner": {
        "model_a": "First is better",
        "model_b": "Second is better",
        "tie": "Tie",
        "both_bad": "Both are bad (a tie)",
    },
    "choice": {"first": "First is better", "second": "Second is better", "tie": "Tie", "undecided": "Undecided"},
}
# What may be the same for all rows.
CONSTANTS: dict[str, tuple[str, ...]] = {
    "pairs": ("model_a", "model_b", "annotator", "judge", "category"),
    "answers": ("prompt", "model", "annotator", "judge", "category"),
    "samples": ("instruction", "level", "split", "source", "language"),
    "responses": ("model",),
    "labels": ("kind", "protocol", "annotator", "campaign"),
    "judgments": ("kind", "protocol", "judge"),
}
LOOKED_AT = 50  # rows, to recognise a file
MOST_MAP = 20_000  # characters of one; PyYAML takes seconds for a deeply nested one
MOST_COLUMNS = 100  # that are surveyed
TRUTH = {"true", "false"}
DEPTH = 4  # of paths into objects
MOST_VALUES = 30  # that a column may have to be one of words
SPACES = 2  # on average: sentences
TRANSLATED = meanings_of(__file__, "translations")  # words of column names in other languages
EXAMPLES, EXAMPLE = 2, 120  # how many first values are kept, and characters of each


class ColumnMap(BaseModel):
    """What the columns of a table hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shape: Shape
    columns: dict[str, Text]
    values: dict[str, dict[Text, Text]] = Field(default_factory=dict)
    constants: dict[str, Text] = Field(default_factory=dict)

    @field_validator("values", mode="before")
    @classmethod
    def _as_words(cls, values: Any) -> Any:
        """Words of a file that YAML takes for numbers or truth, as the file writes them."""
        if not isinstance(values, dict) or not all(isinstance(words, dict) for words in values.values()):
            return values
        return {name: {as_word(k): as_word(v) for k, v in words.items()} for name, words in values.items()}

    @field_validator("constants", mode="before")
    @classmethod
    def _as_texts(cls, constants: Any) -> Any:
        return {name: as_word(v) for name, v in constants.items()} if isinstance(constants, dict) else constants

    @model_validator(mode="after")
    def _known(self) -> "ColumnMap":
        known = FIELDS[self.shape]
        for name in (*self.columns, *self.values, *self.constants):
            if name not in known:
                raise ValueError(f"{self.shape} have no {name!r}; they have {', '.join(known)}")
        if both := sorted(self.columns.keys() & self.constants.keys()):
            raise ValueError(f"{both[0]} is a column and the same for all rows")
        return self

    @property
    def missing(self) -> list[str]:
        """Fields that rows of this shape need and nothing gives; a verdict may be given here, later."""
        known = {*self.columns, *self.constants, pairs.VERDICT}
        return [name for name in NEEDED[self.shape] if name not in known]

    def as_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(exclude_defaults=True), sort_keys=False, allow_unicode=True)


def label(name: str) -> str:
    """A field as a page names it."""
    return LABELS.get(name) or name.replace("_", " ").capitalize()


def as_word(value: Any) -> str:
    """A value as a word of the file: ``1`` for 1 and 1.0, ``true`` for true."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value).strip()


def from_text(text: str) -> ColumnMap:
    """A map from YAML or JSON. Raises BadInput."""
    if len(text) > MOST_MAP:
        raise BadInput(f"The map is longer than {MOST_MAP:,} characters.")
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise BadInput("The map repeats a part of itself by an alias; write it out.")
        return checked(yaml.load(text, Loader=yaml.BaseLoader))  # noqa: S506 (makes texts only)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"The map is not YAML: {str(error)[:300]}") from None


def checked(definition: Any) -> ColumnMap:
    """A map from a definition that somebody sent. Raises BadInput."""
    if not isinstance(definition, dict):
        raise BadInput("The map is no object with shape and columns.")
    for place, words in text_faults(definition):
        raise BadInput(f"The map is wrong: {place}: {words}.")
    try:
        return ColumnMap.model_validate(definition)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        words = fault["msg"].removeprefix("Value error, ")
        raise BadInput(f"The map is wrong: {f'{place}: ' if place else ''}{words}.") from None


def ready(map: ColumnMap) -> ColumnMap:
    """The map, if it gives all that rows of its shape need. Raises BadInput."""
    if map.missing:
        raise BadInput(f"The map gives no {', '.join(map.missing)}, which {map.shape} need.")
    return map


@dataclass(frozen=True)
class Mapped:
    """A format made of a map: the files whose first rows have the columns that matter."""

    map: ColumnMap
    NAME: str = "mapped"
    TITLE: str = "Columns named by hand"

    @cached_property
    def SHAPE(self) -> Any:
        """What reads the rows: see ``formats``."""
        part = self.map.shape
        if part in WIDE:
            return WIDE[part]
        return SimpleNamespace(**{part: getattr(generic, part)}, parts=lambda path, read: {part})

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            return False
        try:
            needed = {*NEEDED[self.map.shape], "key", "score", "winner"}
            wanted = {column for name, column in self.map.columns.items() if name in needed}
            for row in islice(rows(path), LOOKED_AT):
                if isinstance(row, Row):
                    wanted -= {column for column in wanted if value_at(row.data, column) is not None}
        except (BadFile, LookupError):
            return False
        return not wanted

    def wide_rows(self, path: Path) -> Iterator[Row | Problem]:
        """The rows of the table under our names."""
        return read_as(self._renamed, rows(path), warnings=True)

    def _renamed(self, row: Row) -> dict[str, Any]:
        renamed: dict[str, Any] = dict(self.map.constants)
        for name, column in self.map.columns.items():
            value = value_at(row.data, column)
            if value is None or value == "":
                continue
            if words := self.map.values.get(name):
                word = as_word(value)
                if not words.get(word):
                    shown = repr(word[:50]) if name in WORDS else "its value"  # which may be an answer: not told
                    raise BadRow(name, f"{shown} stands for nothing in the map")
                value = words[word]
            elif name in TEXTS and is_number(value):
                value = as_word(value)
            renamed[name] = value
        return renamed


# ---- what a table holds ----


@dataclass
class Column:
    """What a survey learns of a column: how many rows fill it, its first values, and all where they are few."""

    name: str
    filled: int = 0
    spaces: int = 0
    pictures: int = 0
    numbers: int = 0
    lists: int = 0
    examples: list[str] = field(default_factory=list)
    values: dict[str, int] | None = field(default_factory=dict)  # None: too many

    def add(self, value: Any) -> None:
        self.filled += 1
        self.pictures += _is_picture(value[0] if isinstance(value, list) else value)
        self.lists += isinstance(value, list)
        word = "(a picture)" if isinstance(value, bytes) else as_word(value)
        self.spaces += word.count(" ")
        self.numbers += word.replace(".", "", 1).removeprefix("-").isdecimal()
        if len(self.examples) < EXAMPLES and word[:EXAMPLE] not in self.examples:
            self.examples.append(cut(word, EXAMPLE))
        if self.values is not None:
            self.values[word[:EXAMPLE]] = self.values.get(word[:EXAMPLE], 0) + 1
            if len(self.values) > MOST_VALUES:
                self.values = None

    @property
    def is_picture(self) -> bool:
        return 0 < self.filled == self.pictures

    @property
    def is_number(self) -> bool:
        return 0 < self.filled == self.numbers

    @property
    def is_text(self) -> bool:
        return not self.is_picture and not self.lists and self.filled > 0 and self.spaces >= SPACES * self.filled

    @property
    def is_name(self) -> bool:
        """Whether it holds a few short words again and again."""
        few = self.values is not None and len(self.values) <= max(2, self.filled) and not self.values.keys() <= TRUTH
        return few and not (self.is_picture or self.is_number or self.is_text or self.lists)

    @property
    def is_verdict(self) -> bool:
        """Whether most rows say who won in words that are known."""
        known = sum(n for word, n in (self.values or {}).items() if word.strip("[]").lower() in pairs.WINNERS)
        return self.is_name and 0 < self.filled <= 2 * known


def _is_picture(value: Any) -> bool:
    """Whether it is a picture as such, or named like one."""
    return isinstance(value, bytes) or (isinstance(value, str) and value.rpartition(".")[2] in PICTURE_ENDINGS)


def survey(path: Path) -> tuple[int, list[Column]]:
    """How many rows a table holds, and its columns; objects in it are told by the paths to their values. Raises
    BadFile where its beginning cannot be read.
    """
    count = 0
    columns: dict[str, Column] = {}
    for row in rows(path):
        count += 1
        for name, value in _flat(row.data) if isinstance(row, Row) else ():
            if name in columns or len(columns) < MOST_COLUMNS:
                columns.setdefault(name, Column(name)).add(value)
    return count, list(columns.values())


def _flat(data: Mapping[str, Any], above: str = "", depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, dict) and isinstance(value.get("bytes") or value.get("path"), bytes | str):
            yield above + name, value.get("bytes") or value.get("path")
        elif isinstance(value, dict) and value and depth > 1:
            yield from _flat(value, f"{above}{name}.", depth - 1)
        elif isinstance(value, list) and value and not _is_picture(value[0]) and depth > 1:
            if len(value) > 1 and all(isinstance(one, str) for one in value):
                yield above + name, value
            yield from _flat({str(n): one for n, one in enumerate(value[:2])}, f"{above}{name}.", depth - 1)
        elif value not in (None, "", [], {}):
            yield above + name, value


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a table with these columns could be: the column of each field, which of them were found by their content,
    the needed fields that none was found for, and the columns that are left.
    """

    shape: Shape
    columns: dict[str, str]
    by_content: frozenset[str]
    missing: list[str]
    unknown: list[str]

    @property
    def map(self) -> ColumnMap:
        return ColumnMap(shape=self.shape, columns=self.columns)

    @property
    def title(self) -> str:
        return TITLES[self.shape]

    @property
    def missing_words(self) -> str:
        return ", ".join(map(label, self.missing))

    @property
    def words(self) -> str:
        title, known = self.title.lower(), len(self.columns)
        if not known:
            return f"None of them is known; {title} have {', '.join(self.missing)}"
        meant = [f"{name} (your {column}?)" for name, column in self.columns.items() if column != name]
        words = f"It comes nearest to {title}, {known} of {known + len(self.unknown)} columns known"
        words += f"; lacking: {', '.join([*meant, *self.missing])}" if meant or self.missing else ""
        return words + (f"; not known: {', '.join(self.unknown)}" if self.unknown else "")


def proposals(columns: Sequence[Column]) -> list[Proposal]:
    """What a table could be, the nearest first; none that shares nothing with it, unless all do."""
    found = [_proposal(shape, columns) for shape in SHAPES]
    like = [one for one in found if one.columns] or found

    def distance(one: Proposal) -> tuple[bool, int, int]:
        """Those of whose needed fields half are there first; among them, who knows most columns."""
        return 2 * len(one.missing) > len(NEEDED[one.shape]), -len(one.columns), len(one.missing)

    return sorted(like, key=distance)


def _proposal(shape: Shape, columns: Sequence[Column]) -> Proposal:
    fields = FIELDS[shape]
    by_field = _by_name(fields, columns)
    by_name = set(by_field)
    for name, column in _by_content(shape, [one for one in columns if not _is_told(one.name, by_field.values())]):
        if name != "annotator" or "judge" not in by_name:
            by_field.setdefault(name, column.name)
    ordered = present(by_field, fields)
    missing = [name for name in NEEDED[shape] if name not in ordered]
    unknown = [name for name in (column.name for column in columns) if not _is_told(name, ordered.values())]
    return Proposal(shape, ordered, frozenset(ordered.keys() - by_name), missing, unknown)


def _by_name(fields: Sequence[str], columns: Sequence[Column]) -> dict[str, str]:
    """The columns of the fields that they are named like, in any language: their own names first."""
    by_field = {column.name: column.name for column in columns if column.name in fields}
    for column in columns:
        meant = meant_by(_in_english(_last_name(column.name)), fields)
        if column.lists and meant not in LISTS:
            continue
        if column.name not in by_field.values() and meant and meant not in by_field:
            by_field[meant] = column.name
    return by_field


def _is_told(name: str, by: Collection[str]) -> bool:
    """Whether a column, or the list or object that it is a part of, is one of these."""
    return name in by or any(name.startswith(f"{one}.") for one in by)


def _last_name(path: str) -> str:
    """``response.output`` as ``output``, ``responses.0`` as it is."""
    above, _, last = path.rpartition(".")
    return f"{above.rpartition('.')[2]}.{last}" if last.isdecimal() else last


def _in_english(name: str) -> str:
    """``Antwort A`` as ``response_a``, ``answer 1`` as ``answer_1``."""
    words = name.casefold().replace("_", " ").replace("-", " ").split()
    return "_".join(TRANSLATED.get(word, word) for word in words)


def _by_content(shape: str, free: Iterable[Column]) -> Iterator[tuple[str, Column]]:
    """Fields that columns without a known name could be, by what they hold."""
    left = list(free)
    most = max((column.filled for column in left), default=0)
    texts = [column for column in left if column.is_text]
    names = [column for column in left if column.is_name and not column.is_verdict and 2 * column.filled > most]
    if shape not in WIDE:
        return
    yield from (("image", column) for column in left if column.is_picture)
    if shape == "pairs":
        yield from zip(("prompt", "response_a", "response_b"), texts, strict=False)
        yield from (("winner", column) for column in left if column.is_verdict)
        yield from _names_in_pairs(names)
        return
    yield from zip(("prompt", "response"), texts, strict=False)
    yield from zip(("model", "annotator"), names, strict=False)
    yield from (("score", column) for column in left if column.is_number and column.values is not None)


def _names_in_pairs(names: Sequence[Column]) -> Iterator[tuple[str, Column]]:
    """Two columns with the same names in them are the models; others name who decided."""
    twins = [one for one in names if any(_share(one, other) for other in names if other is not one)]
    yield from zip(("model_a", "model_b"), twins, strict=False)
    yield from (("annotator", column) for column in names if column not in twins)


def _share(one: Column, other: Column) -> bool:
    return bool((one.values or {}).keys() & (other.values or {}).keys())


def open_values(map: ColumnMap, columns: Sequence[Column]) -> dict[str, dict[str, int]]:
    """The words of each field whose words must be told, with their rows: those that no reader knows."""
    by_name = {column.name: column for column in columns}
    found: dict[str, dict[str, int]] = {}
    for name in WORDS:
        column = by_name.get(map.columns.get(name, ""))
        if column is None or column.values is None:
            continue
        models = {word for side in ("model_a", "model_b") for word in _values_of(map, side, by_name)}
        unknown = [w for w in column.values if meaning_of(name, w) == "" and w not in models]
        if unknown or name in map.values:
            found[name] = dict(sorted(column.values.items(), key=lambda word: -word[1]))
    return found


def _values_of(map: ColumnMap, name: str, by_name: Mapping[str, Column]) -> Iterable[str]:
    column = by_name.get(map.columns.get(name, ""))
    return (column.values or ()) if column else ()


def meaning_of(name: str, word: str) -> str:
    """What a word is known to mean as ``WORDS`` write it; "" where it is not known."""
    if name == "choice":
        return word if word in WORDS[name] else ""
    known = {"first": "model_a", "second": "model_b", "tie": "tie", pairs.BOTH_BAD: "both_bad"}
    return known.get(pairs.WINNERS.get(word.strip("[]").lower(), ""), "")
