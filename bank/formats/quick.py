"""The way of the ordinary row through validation, many times faster than pydantic's.

``sample`` and ``response`` take a row only if ``SampleRecord`` and ``ResponseRecord`` do, and give what reads like
their record; at anything unusual, a fault or merely a rare field, they give None, and pydantic decides
(tests/bank/test_quick.py).
"""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from bank.formats.records import MAX_INT, MAX_PATH, MAX_TEXT, CriterionRecord, ResponseRecord, SampleRecord

# The fields that hold text, and how long it may be.
CRITERION = {"key": 60, "kind": 15, "text": MAX_TEXT, "category": 60, "shown_to": 8}
SAMPLE = {"key": 200, "instruction": MAX_TEXT, "question_type": 40, "split": 40, "source": 200, "language": 16}
SAMPLE |= {"hint": MAX_TEXT, "group": 200, "answer": MAX_TEXT, "status": 10}
RESPONSE = {"sample": 200, "model": 200, "variant": 60, "text": MAX_TEXT, "reason": MAX_TEXT, "status": 10}
KINDS = frozenset(["exact_reference", "soft_reference", "range", "guideline", "component", "answer_key"])
SHOWN_TO = frozenset(["staff", "campaign", "public"])
SAMPLE_STATUS = frozenset(["draft", "review", "approved", "rejected"])
RESPONSE_STATUS = frozenset(["refused", "filtered", "truncated", "empty", "error"])  # "ok" needs a text
REMEMBERED = 10_000


def _storable(text: str) -> bool:
    if "\x00" in text:
        return False
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _all_storable(data: dict[str, Any]) -> bool:
    return _storable("".join(value for value in data.values() if type(value) is str))


def _texts(limits: dict[str, int], data: dict[str, Any], besides: tuple[str, ...] = ()) -> bool:
    """Whether all values but those ``besides`` are texts, known by name and not too long."""
    for name, value in data.items():
        if type(value) is str:
            if len(value) > limits.get(name, -1):
                return False
        elif name not in besides:
            return False
    return True


_good_paths: set[tuple[str, ...]] = set()


def _path(parts: Any) -> bool:
    if type(parts) is not list:
        return False
    try:
        if (path := tuple(parts)) in _good_paths:
            return True
    except TypeError:
        return False
    for part in parts:
        if type(part) is not str or len(part) > 200 or " / " in part or not part.strip():
            return False
    joined = " / ".join(parts)
    if len(joined) > MAX_PATH or not _storable(joined):
        return False
    if len(_good_paths) < REMEMBERED:
        _good_paths.add(path)
    return True


def _maker(record: type[BaseModel], *methods: str) -> Callable[[dict[str, Any]], Any]:
    """Makes what reads like the record of checked values; what a row leaves out, its class knows."""
    kept = {name: field.default for name, field in record.model_fields.items() if not field.is_required()}
    new = object.__new__

    def model_copy(self: Any, update: dict[str, Any]) -> Any:
        return make(self.__dict__ | update)

    own = {name: getattr(record, name) for name in methods} | {"model_copy": model_copy}
    light = type(record.__name__, (), kept | own)

    def make(values: dict[str, Any]) -> Any:
        made: Any = new(light)
        made.__dict__ = values
        return made

    return make


_make_criterion = _maker(CriterionRecord)
_make_sample, _make_response = _maker(SampleRecord, "path"), _maker(ResponseRecord, "known_status")


def _criterion(data: Any, storable: bool) -> Any:
    if type(data) is not dict or not _texts(CRITERION, data, ("weight",)):
        return None
    text = data.get("text")
    if not text or text.isspace():
        return None
    if "weight" in data:
        weight = data["weight"]
        if weight is not None and not (type(weight) is float and 0 <= weight < 1e300):
            return None
    if ("kind" in data and data["kind"] not in KINDS) or ("shown_to" in data and data["shown_to"] not in SHOWN_TO):
        return None
    if not storable and not _all_storable(data):
        return None
    return _make_criterion(data)


def sample(data: dict[str, Any], storable: bool = False) -> SampleRecord | None:
    """``storable``: no text of it holds what no database takes."""
    if not _texts(SAMPLE, data, ("capability", "criteria")):
        return None
    key, instruction = data.get("key"), data.get("instruction")
    if not key or not instruction or key.isspace() or instruction.isspace():
        return None
    if "status" in data and data["status"] not in SAMPLE_STATUS:
        return None
    if "capability" in data and not _path(data["capability"]):
        return None
    if not storable and not _all_storable(data):
        return None
    values = data
    if "criteria" in data:
        criteria = data["criteria"]
        if type(criteria) is not list:
            return None
        found = [_criterion(one, storable) for one in criteria]
        if None in found or (len(found) > 1 and any("key" in one for one in criteria)):  # perhaps the same key twice
            return None
        values = data | {"criteria": found}
    made: SampleRecord = _make_sample(values)
    return made


def response(data: dict[str, Any], storable: bool = False) -> ResponseRecord | None:
    """``storable``: no text of it holds what no database takes."""
    if not _texts(RESPONSE, data, ("tokens",)):
        return None
    sample = data.get("sample")
    if not sample or sample.isspace():
        return None
    if "tokens" in data:
        tokens = data["tokens"]
        if type(tokens) is not int or not 0 <= tokens <= MAX_INT:
            return None
    if "status" in data and data["status"] not in RESPONSE_STATUS:
        return None
    if not storable and not _all_storable(data):
        return None
    made: ResponseRecord = _make_response(data)
    return made


TAKERS: dict[type[BaseModel], Callable[..., Any]] = {SampleRecord: sample, ResponseRecord: response}
