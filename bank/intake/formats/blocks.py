"""Ordinary rows of a file, a thousand at a time and by column: many times faster than pydantic.

``samples``, ``responses``, ``judgments`` and ``labels`` accept rows only if the record of their part accepts every one
of them, and return columns of what those records hold. At anything unusual in any row, a fault or merely a rare field,
they return None, and pydantic decides row by row (tests/bank/test_quick.py).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from jiter import from_json
from pydantic import BaseModel

from bank.intake.formats.reading import BadFile, Lines, Problem, Row, Where, json_line, line_blocks, validated
from bank.intake.formats.records import (
    DECIDING,
    MAX_INT,
    MAX_PATH,
    MAX_TEXT,
    RESPONSES_OF,
    WHEN,
    JudgmentRecord,
    LabelRecord,
    ResponseRecord,
    SampleRecord,
    VerdictRecord,
    plain_json,
)
from bank.models.verdict import COLUMNS as VERDICT
from bank.models.verdict import GRADED, MAX_CATEGORY, MAX_OPTION, choice_of
from bank.models.verdict import LABEL as OF_CATEGORIES
from bank.text.names import as_stored

Rows = Sequence[dict[str, Any]]
Columns = dict[str, Any]  # by name, with one value per row
Texts = dict[str, tuple[int, str | None]]  # the maximum length of a text, and its default

CRITERION: Texts = {
    "key": (60, ""),
    "kind": (15, "guideline"),
    "text": (MAX_TEXT, None),
    "category": (60, ""),
    "shown_to": (8, "staff"),
}
SAMPLE: Texts = {
    "key": (200, None),
    "instruction": (MAX_TEXT, None),
    "question_type": (40, ""),
    "split": (40, ""),
    "source": (200, ""),
    "language": (16, ""),
    "hint": (MAX_TEXT, ""),
    "group": (200, ""),
    "answer": (MAX_TEXT, ""),
    "status": (10, "approved"),
}
RESPONSE: Texts = {
    "sample": (200, None),
    "model": (200, ""),
    "variant": (60, ""),
    "text": (MAX_TEXT, ""),
    "reason": (MAX_TEXT, ""),
}
VERDICT_TEXTS: Texts = {"kind": (5, None), "protocol": (30, ""), "sample": (200, None), "reason": (MAX_TEXT, "")}
JUDGMENT: Texts = VERDICT_TEXTS | {
    "judge": (200, ""),
    "run": (200, ""),
    "status": (14, "ok"),
    "reported_model": (200, ""),
}
LABEL: Texts = VERDICT_TEXTS | {"annotator": (200, None), "comment": (MAX_TEXT, ""), "campaign": (200, "")}
KINDS = frozenset(["exact_reference", "soft_reference", "range", "guideline", "component", "answer_key"])
SHOWN_TO = frozenset(["staff", "campaign", "public"])
SAMPLE_STATUS = frozenset(["draft", "review", "approved", "rejected"])
RESPONSE_STATUS = frozenset(["ok", "refused", "filtered", "truncated", "empty", "error", None])
JUDGMENT_STATUS = frozenset(
    ["ok", "parse_failed", "refused", "filtered", "truncated", "empty", "error", "skipped_budget"]
)
CHOICES = frozenset(["first", "second", "tie", "undecided", None])
EXTRACTIONS = frozenset(["label", "judge", "random", None])
NONE = type(None)
REMEMBERED = 10_000
LARGE = 1e300  # larger numbers may be no double


def samples(rows: Rows) -> Columns | None:
    """``criteria`` are columns of their own: ``owner`` is the index of the row, ``position`` the index within it."""
    columns = _columns(rows, SAMPLE, {"capability": [], "criteria": []})
    if columns is None or not (_filled(columns["key"]) and _filled(columns["instruction"])):
        return None
    if not SAMPLE_STATUS.issuperset(columns["status"]):
        return None
    columns["capability"] = list(map(_path, columns["capability"]))
    columns["criteria"] = _criteria(columns["criteria"])
    if None in columns["capability"] or columns["criteria"] is None:
        return None
    if "answer" in columns["criteria"]["key"] and any(columns["answer"]):  # possibly a duplicate key
        return None
    return columns


def responses(rows: Rows) -> Columns | None:
    """``status`` is the record's ``known_status``."""
    columns = _columns(rows, RESPONSE, {"tokens": None, "status": None})
    if columns is None or not _filled(columns["sample"]):
        return None
    if not _as_stored(columns["model"]):
        return None
    tokens, status, texts = columns["tokens"], columns["status"], columns["text"]
    if not {int, NONE}.issuperset(kinds := set(map(type, tokens))):
        return None
    if int in kinds and not all(number is None or 0 <= number <= MAX_INT for number in tokens):
        return None
    if not {str, NONE}.issuperset(map(type, status)) or not RESPONSE_STATUS.issuperset(statuses := set(status)):
        return None
    if statuses <= {"ok", None} and _filled(texts):
        columns["status"] = ["ok"] * len(rows)
    else:
        derived = ["empty" if not text or text.isspace() else "ok" for text in texts]
        if ("ok", "empty") in zip(status, derived, strict=True):
            return None
        columns["status"] = [stated or computed for stated, computed in zip(status, derived, strict=True)]
    return columns


Ref = tuple[str, str]  # a response as a verdict names it: its model and variant
UNDECIDED: dict[str, Any] = dict.fromkeys(set(VERDICT) - {"reason"})


def judgments(rows: Rows) -> Columns | None:
    """As ``columns_of`` gives them."""
    others: dict[str, Any] = {"settings": {}, "order": None, "repeat": 0, "simulated": False}
    numbers: dict[str, Any] = dict.fromkeys(("prompt_tokens", "completion_tokens", "cost"))
    columns = _columns(rows, JUDGMENT, UNDECIDED | numbers | others | {"responses": [], "analysis": None, "raw": None})
    if columns is None or not JUDGMENT_STATUS.issuperset(columns["status"]) or not _as_stored(columns["judge"]):
        return None
    if set(map(type, columns["simulated"])) != {bool}:
        return None
    decided = _verdicts(columns)
    if decided is None or any((s == "ok") != d for s, d in zip(columns["status"], decided, strict=True)):
        return None
    if not (_optional_texts(columns["analysis"], MAX_TEXT) and _optional_texts(columns["raw"], MAX_TEXT)):
        return None
    for name in ("repeat", "prompt_tokens", "completion_tokens"):
        if not _whole(columns[name], 0, MAX_INT) or (name == "repeat" and None in columns[name]):
            return None
    columns["cost"] = _floats(columns["cost"])
    if columns["cost"] is None or any(cost is not None and cost < 0 for cost in columns["cost"]):
        return None
    columns["order"] = list(map(_presented, columns["order"], columns["responses"]))
    columns["settings"] = list(map(_settings, columns["settings"]))
    return None if None in columns["order"] or None in columns["settings"] else columns


def labels(rows: Rows) -> Columns | None:
    """As ``columns_of`` gives them. Labels with revisions are left to pydantic."""
    others: dict[str, Any] = {"responses": [], "seconds": None, "flags": [], "at": None, "revisions": []}
    columns = _columns(rows, LABEL, UNDECIDED | others | {"simulated": False})
    if columns is None or not _filled(columns["annotator"]) or any(columns["revisions"]):
        return None
    if set(map(type, columns["simulated"])) != {bool}:
        return None
    if not (_as_stored(columns["annotator"]) and _as_stored(columns["campaign"])):
        return None
    decided = _verdicts(columns)
    if decided is None or not all(decided):
        return None
    columns["seconds"] = _floats(columns["seconds"])
    if columns["seconds"] is None or any(spent is not None and spent < 0 for spent in columns["seconds"]):
        return None
    if set(map(type, columns["revisions"])) != {list} or set(map(type, columns["flags"])) != {list}:
        return None
    flags = list(chain.from_iterable(columns["flags"]))
    if flags and not (set(map(type, flags)) == {str} and _storable(flags) and max(map(len, flags)) <= 200):
        return None
    try:
        columns["at"] = [None if at is None else WHEN.validate_python(at) for at in columns["at"]]
    except ValueError:
        return None
    return columns


def columns_of(records: Sequence[VerdictRecord]) -> Columns:
    """Judgments or labels by column, as the importers take them.

    ``responses`` are tuples of Ref; the verdict columns count positions in them, and so does ``order``, the positions
    in presented order; ``revisions`` are records.
    """
    columns: Columns = {name: [getattr(record, name) for record in records] for name in type(records[0]).model_fields}
    columns["responses"] = [tuple((ref.model, ref.variant) for ref in record.responses) for record in records]
    verdicts = [record.columns() for record in records]
    columns |= {name: [verdict[name] for verdict in verdicts] for name in VERDICT}
    graded = [preference is not None for preference in columns["preference"]]
    columns["protocol"] = [GRADED if each else name for each, name in zip(graded, columns["protocol"], strict=True)]
    if "order" in columns:
        columns["order"] = [_presented_of(record) for record in records]
    if "revisions" in columns:
        columns["revisions"] = [record.earlier() for record in records]  # type: ignore[attr-defined]
    return columns


def _presented_of(record: Any) -> tuple[int, ...]:
    place = {ref: position for position, ref in enumerate(record.responses)}
    return tuple(place[ref] for ref in record.order or record.responses)


def _verdicts(columns: Columns) -> list[bool] | None:
    """Turns the columns of a verdict into those of ``columns_of``; returns which rows hold a verdict.

    None at anything unusual.
    """
    kinds, choices, situations = columns["kind"], columns["choice"], columns["situation"]
    if set(map(type, columns["responses"])) != {list} or not _filled(columns["sample"]):
        return None
    responses = columns["responses"] = list(map(_refs, columns["responses"]))
    if None in responses or not RESPONSES_OF.keys() >= set(kinds):
        return None
    if any(len(refs) not in RESPONSES_OF[kind] for kind, refs in zip(kinds, responses, strict=True)):
        return None
    if not (_among(choices, CHOICES) and _among(columns["extraction"], EXTRACTIONS)):
        return None
    if any(choice and kind != "pair" for choice, kind in zip(choices, kinds, strict=True)):
        return None
    if not _whole(situations, 1, 2) or any(s and c != "undecided" for s, c in zip(situations, choices, strict=True)):
        return None
    if not _whole(columns["grade"], 1, 5) or not _options_fit(columns):
        return None
    if any(not {bool, NONE}.issuperset(map(type, columns[name])) for name in ("answer", "agree", "hallucination")):
        return None
    if columns["spans"].count(None) < len(columns["spans"]):
        return None
    for name in ("score", "confidence", "preference"):
        columns[name] = _floats(columns[name])
    columns["parts"] = _each(_points, columns["parts"])
    columns["ranking"] = _each(_ranked, columns["ranking"], responses)
    if any(columns[name] is None for name in ("score", "confidence", "preference", "parts", "ranking")):
        return None
    if not _follow_preferences(columns):
        return None
    deciding = [column for name in DECIDING if (column := columns[name]).count(None) < len(column)]
    if not deciding:
        return [False] * len(kinds)
    return [values.count(None) < len(values) for values in zip(*deciding, strict=True)]


def _options_fit(columns: Columns) -> bool:
    """Whether options are as long as their protocol allows, and categories are all that their protocol gives."""
    options, protocols = columns["option"], columns["protocol"]
    if OF_CATEGORIES not in protocols:
        return _optional_texts(options, MAX_OPTION)
    others = zip(*(columns[name] for name in DECIDING if name != "option"), strict=True)
    rows = zip(protocols, columns["kind"], options, others, strict=True)
    return _optional_texts(options, MAX_CATEGORY) and all(
        kind == "score" and values.count(None) == len(values) if protocol == LABEL else len(option or "") <= MAX_OPTION
        for protocol, kind, option, values in rows
    )


def _follow_preferences(columns: Columns) -> bool:
    """Whether preferences are what they should be; choice and protocol are then filled in."""
    preferences = columns["preference"]
    if preferences.count(None) == len(preferences):
        return True
    choices, protocols = list(columns["choice"]), list(columns["protocol"])
    for row, preference in enumerate(preferences):
        if preference is None:
            continue
        if not 0 <= preference <= 1 or columns["kind"][row] != "pair" or protocols[row] not in ("", GRADED):
            return False
        follows = choice_of(preference).value
        if choices[row] not in (None, follows):
            return False
        choices[row], protocols[row] = follows, GRADED
    columns |= {"choice": choices, "protocol": protocols}
    return True


def _among(column: Sequence[Any], values: frozenset[str | None]) -> bool:
    return {str, NONE}.issuperset(map(type, column)) and values.issuperset(column)


def _whole(column: Sequence[Any], low: int, high: int) -> bool:
    kinds = set(map(type, column))
    return kinds == {NONE} or (
        {int, NONE}.issuperset(kinds) and all(value is None or low <= value <= high for value in column)
    )


def _floats(column: Sequence[Any]) -> list[float | None] | None:
    kinds = set(map(type, column))
    if kinds == {NONE}:
        return list(column)
    if not {int, float, NONE}.issuperset(kinds):
        return None
    if not all(value is None or -LARGE < value < LARGE for value in column):
        return None
    return [None if value is None else float(value) for value in column]


def _optional_texts(column: Sequence[Any], longest: int) -> bool:
    texts = [text for text in column if text is not None]
    return not texts or (set(map(type, texts)) == {str} and max(map(len, texts)) <= longest and _storable(texts))


def _each(read: Callable[..., Any], column: Sequence[Any], *beside: Sequence[Any]) -> list[Any] | None:
    """The values that are not None as ``read`` gives them; None if it gives None for one of them."""
    if column.count(None) == len(column):
        return list(column)
    values = [None if row[0] is None else read(*row) for row in zip(column, *beside, strict=True)]
    return None if values.count(None) != column.count(None) else values


def _refs(value: Any) -> tuple[Ref, ...] | None:
    """The responses that a list names."""
    if type(value) is not list:
        return None
    try:
        return _refs_by_model(tuple(value))
    except TypeError:  # some are objects
        refs = [(part, "") if type(part) is str else _ref(part) for part in value]
        known = [ref for ref in refs if ref is not None]
        return tuple(known) if len(set(known)) == len(value) and _good_refs(known) else None


@lru_cache(maxsize=50_000)
def _refs_by_model(names: tuple[Any, ...]) -> tuple[Ref, ...] | None:
    if not {str}.issuperset(map(type, names)) or len(set(names)) < len(names):
        return None
    refs = tuple((name, "") for name in names)
    return refs if _good_refs(refs) else None


def _ref(value: Any) -> Ref | None:
    if type(value) is not dict or not value.keys() <= {"model", "variant"}:
        return None
    model, variant = value.get("model"), value.get("variant", "")
    return (model, variant) if type(model) is str and type(variant) is str else None


def _good_refs(refs: Sequence[Ref]) -> bool:
    return all(
        0 < len(model) <= 200 and len(variant) <= 60 and _storable((model, variant)) and model == as_stored(model)
        for model, variant in refs
    )


def _presented(order: Any, responses: tuple[Ref, ...]) -> tuple[int, ...] | None:
    named = responses if order is None else _refs(order)
    return None if named is None else _positions(named, responses)


@lru_cache(maxsize=50_000)
def _positions(named: tuple[Ref, ...], responses: tuple[Ref, ...]) -> tuple[int, ...] | None:
    if set(named) != set(responses):
        return None
    return tuple(map(responses.index, named))


def _ranked(ranking: Any, responses: tuple[Ref, ...]) -> list[list[int]] | None:
    if type(ranking) is not list:
        return None
    named = [_refs(group if type(group) is list else [group]) for group in ranking]
    if any(group is None or not set(responses).issuperset(group) for group in named):
        return None
    groups = [sorted(map(responses.index, group)) for group in named if group is not None]
    return groups if sorted(chain.from_iterable(groups)) == list(range(len(responses))) else None


def _points(parts: Any) -> dict[str, float] | None:
    if type(parts) is not list or set(map(type, parts)) - {dict} or any(part.keys() != POINTS for part in parts):
        return None
    names, points = [part["component"] for part in parts], _floats([part["points"] for part in parts])
    if set(map(type, names)) - {str} or points is None or None in points:
        return None
    if names and (max(map(len, names)) > 200 or not _storable(names) or not _filled(names)):
        return None
    return dict(zip(names, points, strict=True))


POINTS = {"component", "points"}
_good_settings: dict[str, dict[str, Any]] = {}


def _settings(settings: Any) -> dict[str, Any] | None:
    if type(settings) is not dict:
        return None
    if not settings:
        return settings
    text = repr(settings)  # tells 1 from True and 1.0
    if text not in _good_settings:
        if set(map(type, settings)) != {str}:
            return None
        try:
            plain: dict[str, Any] = plain_json(settings)
        except ValueError:
            return None
        if len(_good_settings) >= REMEMBERED:
            return plain
        _good_settings[text] = plain
    return _good_settings[text]


COLUMN_READERS: dict[type[BaseModel], Callable[[Rows], Columns | None]] = {
    SampleRecord: samples,
    ResponseRecord: responses,
    JudgmentRecord: judgments,
    LabelRecord: labels,
}


def _columns(rows: Rows, texts: Texts, others: dict[str, Any]) -> Columns | None:
    """The values by name; ``others`` maps the names of fields that are not text to their defaults."""
    shapes = set(map(tuple, rows))
    names = {name for shape in shapes for name in shape}
    if not names <= texts.keys() | others.keys():
        return None
    defaults = others | {name: default for name, (_, default) in texts.items()}
    if len(shapes) == 1 and names:
        values: Columns = dict(zip(*shapes, zip(*map(dict.values, rows), strict=True), strict=True))
    else:
        values = {name: [row.get(name, defaults[name]) for row in rows] for name in names}
    for name in names & texts.keys():
        column = values[name]
        if set(map(type, column)) != {str} or max(map(len, column)) > texts[name][0] or not _storable(column):
            return None
    for name in defaults.keys() - names:
        if name in texts and defaults[name] is None:
            return None
        values[name] = [defaults[name]] * len(rows)
    return values


def _storable(column: Sequence[str]) -> bool:
    text = "".join(column)
    if "\x00" in text:
        return False
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _filled(column: Sequence[str]) -> bool:
    return all(column) and not any(map(str.isspace, column))


def _as_stored(names: Sequence[str]) -> bool:
    return all(name == as_stored(name) for name in set(names))


def _criteria(lists: Sequence[Any]) -> Columns | None:
    if set(map(type, lists)) != {list}:
        return None
    rows = list(chain.from_iterable(lists))
    if not rows:
        return {name: [] for name in (*CRITERION, "weight", "owner", "position")}
    if set(map(type, rows)) != {dict}:
        return None
    columns = _columns(rows, CRITERION, {"weight": None})
    if columns is None or not _filled(columns["text"]):
        return None
    if not (KINDS.issuperset(columns["kind"]) and SHOWN_TO.issuperset(columns["shown_to"])):
        return None
    weights = columns["weight"]
    if not {int, float, NONE}.issuperset(map(type, weights)):
        return None
    if any(weight is not None and not 0 <= weight < 1e300 for weight in weights):
        return None
    columns["weight"] = [None if weight is None else float(weight) for weight in weights]
    columns["owner"] = [number for number, criteria in enumerate(lists) for _ in criteria]
    columns["position"] = [position for criteria in lists for position in range(len(criteria))]
    columns["key"] = [key or str(place + 1) for key, place in zip(columns["key"], columns["position"], strict=True)]
    if len(set(zip(columns["owner"], columns["key"], strict=True))) < len(rows):
        return None
    return columns


_good_paths: dict[tuple[str, ...], tuple[str, ...]] = {}


def _path(parts: Any) -> tuple[str, ...] | None:
    if type(parts) is not list:
        return None
    path = tuple(parts)
    try:
        if path in _good_paths:
            return _good_paths[path]
    except TypeError:
        return None
    for part in parts:
        if type(part) is not str or len(part) > 200 or " / " in part or not part or part != as_stored(part):
            return None
    if len(" / ".join(parts)) > MAX_PATH or not _storable(parts):
        return None
    if len(_good_paths) < REMEMBERED:
        _good_paths[path] = path
    return path


ROWS = 1000
_parse = partial(from_json, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that follow one another in a file, all of them good: ``columns`` as ``COLUMN_READERS`` give it."""

    record: type[BaseModel]
    places: Sequence[Where]
    data: list[dict[str, Any]]
    columns: Columns

    def __len__(self) -> int:
        return len(self.places)

    def rows(self) -> list[Row]:
        """The same rows one by one, for code that reports on single rows."""
        pairs = zip(self.places, self.data, strict=True)
        return [Row(place, self.record.model_validate(data)) for place, data in pairs]

    def without(self, refused: Container[int]) -> "Block":
        """The block without some of its rows, by index; for the importers of verdicts, which need no single rows."""
        kept = [index for index in range(len(self)) if index not in refused]
        columns = {name: [column[index] for index in kept] for name, column in self.columns.items()}
        return Block(self.record, [self.places[index] for index in kept], [], columns)


def block_of(rows: Sequence[Row]) -> Block:
    """Judgments or labels that were validated one by one, as a block; not for empty lists."""
    columns = columns_of([row.data for row in rows])
    return Block(type(rows[0].data), [row.where for row in rows], [], columns)


def json_blocks(path: Path, record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    """``validated(json_lines(path), record)``, with ordinary rows in blocks."""
    for number, block_lines in _thousands(path):
        block = _block(Lines(path.name, number, len(block_lines)), block_lines, record)
        if block is not None:
            yield block
            continue
        for line, raw in enumerate(block_lines, number):
            yield from validated(json_line(path.name, line, raw), record)


def table_blocks(source: Iterable[Row | Problem], record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    """``validated(source, record)`` for rows that are read one by one, with ordinary rows in blocks."""
    pending: list[Row] = []
    try:
        for entry in source:
            if isinstance(entry, Row):
                pending.append(entry)
            if len(pending) == ROWS or (pending and not isinstance(entry, Row)):
                yield from _table_block(pending, record)
                pending = []
            if not isinstance(entry, Row):
                yield entry
    except BadFile:
        yield from _table_block(pending, record)
        raise
    yield from _table_block(pending, record)


def _table_block(rows: list[Row], record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    data = [row.data for row in rows]
    columns = COLUMN_READERS[record](data) if rows else None
    if columns is None:
        yield from validated(rows, record)
    else:
        yield Block(record, [row.where for row in rows], data, columns)


def _thousands(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Lines in the batch size that suits the database best, with the number of the first. Raises BadFile."""
    number = 1
    pending: list[bytes] = []
    bad = None
    source = line_blocks(path)
    while True:
        try:
            pending += next(source)[1]
        except StopIteration:
            break
        except BadFile as error:
            bad = error  # raised after the lines before it
            break
        complete = len(pending) - len(pending) % ROWS
        for start in range(0, complete, ROWS):
            yield number + start, pending[start : start + ROWS]
        number, pending = number + complete, pending[complete:]
    if pending:
        yield number, pending
    if bad is not None:
        raise bad


def _block(places: Lines, lines: Sequence[bytes], record: type[BaseModel]) -> Block | None:
    try:
        data: list[Any] = list(map(_parse, lines))
    except ValueError:
        return None
    columns = COLUMN_READERS[record](data) if set(map(type, data)) == {dict} else None
    return None if columns is None else Block(record, places, data, columns)
