"""The fast way through validation gives what pydantic gives, or nothing."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bank.formats import quick
from bank.formats.reading import Problem, Row, json_lines, json_records, validated
from bank.formats.records import CriterionRecord, ResponseRecord, SampleRecord

text = st.one_of(
    st.sampled_from(["a", "", " ", "\u2003", "\x1f", "é", "\x00", "a\x00", "\ud800", "a / b"]),
    st.sampled_from(["x" * 17, "y" * 41, "z" * 201]),
    st.text(max_size=5),
)
odd = st.sampled_from([None, 7, True, 1.5, float("nan"), float("inf"), -1, 2**40, [], {}, ["a"], [1], b"x"])
status = st.sampled_from(["ok", "empty", "refused", "draft", "approved", "other"])
criterion = st.one_of(
    odd,
    st.fixed_dictionaries(
        {"text": text},
        optional={
            "key": st.one_of(text, odd),
            "kind": st.one_of(st.sampled_from(["guideline", "range", "hint"]), odd),
            "weight": st.one_of(st.floats(), odd),
            "category": text,
            "shown_to": st.one_of(st.sampled_from(["staff", "public"]), text),
            "more": odd,
        },
    ),
)
either = st.one_of(text, odd)
samples = st.fixed_dictionaries(
    {"key": either, "instruction": either},
    optional={
        "capability": st.one_of(odd, st.lists(text, max_size=3)),
        "criteria": st.one_of(odd, st.lists(criterion, max_size=3)),
        "level": text,
        "options": odd,
        "images": odd,
        "status": st.one_of(status, odd),
        **dict.fromkeys(("question_type", "split", "source", "language", "hint", "group", "answer"), either),
        "colour": odd,
    },
)
responses = st.fixed_dictionaries(
    {},
    optional={
        "sample": either,
        "option_order": odd,
        "tokens": odd,
        "status": st.one_of(status, odd),
        **dict.fromkeys(("model", "variant", "text", "reason", "colour"), either),
    },
)


def exact(record, data):
    try:
        return record.model_validate(data)
    except ValidationError:
        return None


def read(record, made):
    """What anybody reads from a record, by name."""
    names = ("path", "known_status")
    found = {name: getattr(made, name) for name in (*record.model_fields, *names) if hasattr(made, name)}
    if "criteria" in found:
        found["criteria"] = [read(CriterionRecord, criterion) for criterion in found["criteria"]]
    return found


@given(samples)
@settings(max_examples=150, deadline=None)
def test_a_sample_that_is_taken_quickly_is_the_one_that_pydantic_makes(data):
    found = quick.sample(data)
    if found is not None:
        assert read(SampleRecord, found) == read(SampleRecord, exact(SampleRecord, data))


@given(responses)
@settings(max_examples=150, deadline=None)
def test_a_response_that_is_taken_quickly_is_the_one_that_pydantic_makes(data):
    found = quick.response(data)
    if found is not None:
        assert read(ResponseRecord, found) == read(ResponseRecord, exact(ResponseRecord, data))


@given(st.lists(st.one_of(samples, st.text(max_size=30), odd), max_size=6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_lines_give_the_same_rows_and_faults_whichever_way_they_go(found, ascii_only):
    lines = []
    for row in found:
        try:
            lines.append(json.dumps(row, ensure_ascii=ascii_only).encode())
        except (TypeError, UnicodeEncodeError):  # bytes; half of a surrogate pair, which no UTF-8 file holds
            continue
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"\n".join(lines))
        file.flush()
        path = Path(file.name)
        quickly, exactly = (
            list(json_records(path, SampleRecord)),
            [one for row in json_lines(path) for one in ([row] if isinstance(row, Problem) else pydantics(row))],
        )
    assert [plain(row) for row in quickly] == [plain(row) for row in exactly]


def pydantics(row):
    made = exact(SampleRecord, row.data)
    return list(validated([row], SampleRecord)) if made is None else [Row(row.where, made)]


def plain(row):
    return row if isinstance(row, Problem) else (row.where, read(SampleRecord, row.data))


@pytest.mark.parametrize(
    ("take", "data"),
    [
        (quick.sample, {"key": "a", "instruction": "?", "capability": ["x"], "criteria": [{"text": "t"}]}),
        (quick.response, {"sample": "a", "model": "m", "text": "", "tokens": 4}),
    ],
)
def test_ordinary_rows_are_taken_quickly(take, data):
    assert take(data) is not None
