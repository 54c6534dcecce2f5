"""The fast way through validation, by columns, gives what pydantic gives row by row, or nothing."""

import json
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bank.intake.formats import blocks as quick
from bank.intake.formats.blocks import Block, json_blocks, table_blocks
from bank.intake.formats.reading import BadFile, Problem, Row, Where, json_lines, validated
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ResponseRecord, SampleRecord
from bank.intake.imports.samples import hidden_rows

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
models = st.one_of(
    st.sampled_from(["a", "b", "c", "", " ", " a", "e\u0301", "z" * 201]),
    st.fixed_dictionaries({"model": st.sampled_from(["a", "b", ""])}, optional={"variant": either, "more": odd}),
)
named = st.one_of(st.lists(models, max_size=4), st.sampled_from([["a", "b"], ["b", "a"], ["a", "b", "c"], [], ["a"]]))
part = st.fixed_dictionaries({"component": either, "points": st.one_of(st.floats(), odd)}, optional={"more": odd})
number = st.one_of(st.floats(), st.integers(-2, 6), odd)
verdict = {
    "responses": st.one_of(named, odd),
    "protocol": either,
    "score": number,
    "choice": st.one_of(st.sampled_from(["first", "second", "tie", "undecided", "left"]), odd),
    "situation": number,
    "ranking": st.one_of(odd, named, st.lists(named, max_size=3)),
    "parts": st.one_of(odd, st.lists(part, max_size=3)),
    "option": either,
    "extraction": st.one_of(st.sampled_from(["label", "judge", "guess"]), odd),
    "answer": st.one_of(st.booleans(), odd),
    "agree": st.one_of(st.booleans(), odd),
    "grade": number,
    "hallucination": st.one_of(st.booleans(), odd),
    "spans": st.one_of(odd, st.just([[0, 3]])),
    "confidence": number,
    "reason": either,
    "texts": odd,
}
kind = st.sampled_from(["score", "pair", "batch", "other"])
when = st.sampled_from(
    ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.5+05:30", "2026-01-02T03:04", "2026-01-02", ""]
)
usual = [
    {"kind": "pair", "responses": ["a", "b"], "choice": "first"},
    {"kind": "pair", "responses": ["b", {"model": "a", "variant": "v"}], "choice": "undecided", "situation": 2},
    {"kind": "score", "responses": ["a"], "score": 4},
    {"kind": "score", "responses": ["a"], "parts": [{"component": "c", "points": 3}], "confidence": 0.5},
    {"kind": "batch", "responses": ["a", "b", "c"], "ranking": [["c"], ["a", "b"]]},
    {"kind": "batch", "responses": ["a", "b", "c"], "ranking": ["c", "a", "b"]},
]


def verdicts(required, optional):
    """Rows that are good but for perhaps one field, and rows of anything."""
    fields = verdict | optional
    changed = st.one_of(*(st.fixed_dictionaries({name: value}) for name, value in (fields | required).items()))
    good = st.builds(lambda row, names: row | names, st.sampled_from(usual), st.fixed_dictionaries(required))
    anything = st.fixed_dictionaries({"kind": kind} | required, optional=fields)
    return st.one_of(good, st.builds(lambda row, change: row | change, good, changed), anything)


judgments = verdicts(
    {"sample": st.one_of(st.just("s"), either)},
    {
        "judge": either,
        "run": either,
        "settings": st.one_of(odd, st.dictionaries(text, st.one_of(odd, st.booleans(), st.just(1)), max_size=2)),
        "order": st.one_of(named, odd),
        "repeat": number,
        "analysis": either,
        "raw": either,
        "status": st.one_of(st.sampled_from(["ok", "refused", "parse_failed", "done"]), odd),
        "reported_model": either,
        "prompt_tokens": number,
        "completion_tokens": number,
        "cost": number,
    },
)
labels = verdicts(
    {"sample": st.one_of(st.just("s"), either), "annotator": st.one_of(st.just("ann"), either)},
    {
        "seconds": number,
        "comment": either,
        "flags": st.one_of(odd, st.lists(either, max_size=2)),
        "campaign": either,
        "at": st.one_of(when, odd),
        "revisions": st.one_of(odd, st.just([])),
    },
)


def exact(record, data):
    try:
        return record.model_validate(data)
    except ValidationError:
        return None


def as_columns(record, data):
    """What the records of these rows hold, as the fast way gives it; None where one of them is no record."""
    made = [exact(record, row) for row in data]
    if None in made:
        return None
    if record in (JudgmentRecord, LabelRecord):
        columns = quick.columns_of(made)
        del columns["texts"]  # of formats that quote them; ordinary rows have none
        return columns
    if record is ResponseRecord:
        names = {name: name for name in ("sample", "model", "variant", "text", "reason", "tokens")}
        return columns_of(made, names | {"status": "known_status"})
    found = columns_of(made, {name: name for name in quick.SAMPLE} | {"capability": "path"})
    found["capability"] = [tuple(path) for path in found["capability"]]
    found["criteria"] = [row for one in made for row in hidden_rows(one)]
    return found


def columns_of(made, names):
    return {name: [getattr(one, of) for one in made] for name, of in names.items()}


def plain(columns):
    """Criteria of columns as rows, the answers beside them."""
    found = {name: list(column) for name, column in columns.items()}
    if isinstance(columns.get("criteria"), dict):
        hidden = columns["criteria"]
        names = ("owner", "key", "kind", "category", "weight", "shown_to", "text")
        rows = list(zip(*(hidden[name] for name in names), strict=True))
        answers = [(n, "answer", "answer_key", "", None, "staff", a) for n, a in enumerate(columns["answer"]) if a]
        found["criteria"] = [row[1:] for row in sorted([*rows, *answers], key=lambda row: row[0])]
    return found


@given(st.lists(samples, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_samples_that_are_taken_quickly_are_those_that_pydantic_makes(data):
    found = quick.samples(data)
    if found is not None:
        assert plain(found) == as_columns(SampleRecord, data)


@given(st.lists(responses, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_responses_that_are_taken_quickly_are_those_that_pydantic_makes(data):
    found = quick.responses(data)
    if found is not None:
        assert plain(found) == as_columns(ResponseRecord, data)


@pytest.mark.parametrize(
    ("take", "record", "rows"), [(quick.judgments, JudgmentRecord, judgments), (quick.labels, LabelRecord, labels)]
)
def test_verdicts_that_are_taken_quickly_are_those_that_pydantic_makes(take, record, rows):
    @given(st.lists(rows, min_size=1, max_size=3))
    @settings(max_examples=600, deadline=None)
    def alike(data):
        found = take(data)
        if found is not None:
            assert repr(sorted(plain(found).items())) == repr(sorted(as_columns(record, data).items()))

    alike()


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
        blocks = list(json_blocks(path, SampleRecord))
        quickly = [row for one in blocks for row in (one.rows() if isinstance(one, Block) else [one])]
        assert quickly == list(validated(json_lines(path), SampleRecord))


@pytest.mark.parametrize(
    ("take", "row"),
    [
        (
            quick.samples,
            {"key": "a", "instruction": "?", "capability": ["x"], "criteria": [{"text": "t", "weight": 3}]},
        ),
        (quick.samples, {"key": "a", "instruction": "?", "answer": "yes", "status": "draft"}),
        (quick.responses, {"sample": "a", "model": "m", "text": "", "tokens": 4}),
        (quick.responses, {"sample": "a", "model": "m", "text": "b", "status": "ok"}),
        *((quick.judgments, {"sample": "s", "judge": "j", "repeat": 1, "settings": {"a": 1}} | row) for row in usual),
        (quick.judgments, {"sample": "s", "order": ["b", "a"], "analysis": "x", "cost": 1} | usual[0]),
        (quick.judgments, {"sample": "s", "kind": "score", "responses": ["a"], "status": "refused"}),
        *((quick.labels, {"sample": "s", "annotator": "n", "flags": ["odd"], "seconds": 3} | row) for row in usual),
        (quick.labels, {"sample": "s", "annotator": "n", "at": "2026-01-02T03:04:05+00:00", "score": None} | usual[0]),
    ],
)
def test_ordinary_rows_are_taken_quickly(take, row):
    assert take([row, row | {"reason" if "sample" in row else "hint": "other names"}]) is not None


@given(st.lists(samples, max_size=7), st.sampled_from([1, 2, 3, 1000]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_rows_of_a_table_come_in_the_same_whichever_way_they_go(found, at_once, breaks):
    """Problems of their own stand among them; a table that breaks off gives first what was good."""

    def table():
        for number, data in enumerate(found):
            yield Row(Where("t.csv", number), data)
            if number % 3 == 1:
                yield Problem(Where("t.csv", number), "", "has 3 cells, the header 2")
        if breaks:
            raise BadFile(Where("t.csv", 9), "is not CSV")

    def taken(rows):
        made = []
        try:
            for one in rows:
                made += one.rows() if isinstance(one, Block) else [one]
        except BadFile as error:
            made.append(str(error))
        return made

    with mock.patch("bank.intake.formats.blocks.ROWS", at_once):
        assert taken(table_blocks(table(), SampleRecord)) == taken(validated(table(), SampleRecord))
