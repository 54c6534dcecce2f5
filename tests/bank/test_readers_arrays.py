"""JSON arrays are read object by object, with the errors that the whole would give."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank.intake.formats import reading
from bank.intake.formats.reading import BadFile, Row, json_array

ROWS = [{"a": 1, "b": [1.5, "ü€😀\n\\", {"c": None}]}, {"x": "y" * 30}, {}, 7, {"n": -12e3, "t": True}]
TEXT = json.dumps(ROWS, ensure_ascii=False, indent=1).encode()


def found(path):
    return [row.data if isinstance(row, Row) else None for row in json_array(path)]


@pytest.mark.parametrize("block", [1, 2, 3, 16, 2**20])
@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_is_read_alike_in_blocks_of_any_size(block, indent, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", block)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(ROWS, ensure_ascii=False, indent=indent), encoding="utf-8")
    assert found(path) == [row if isinstance(row, dict) else None for row in ROWS]


def test_a_spoilt_array_is_refused_exactly_where_the_whole_would_be(tmp_path):
    path = tmp_path / "x.json"

    @settings(deadline=None, max_examples=150)
    @given(st.integers(0, len(TEXT) - 1), st.sampled_from(b'[]{},:"0a\\ \n\xff-.e'), st.integers(0, 3), st.booleans())
    def spoil(place, byte, dropped, cut):
        content = TEXT[:place] + (b"" if cut else bytes([byte]) + TEXT[place + dropped :])
        path.write_bytes(content)
        try:
            rows = found(path)
        except BadFile:
            rows = None
        try:
            whole = reading.parse_json(content.decode())
        except ValueError:
            whole = None
        wanted = [row if isinstance(row, dict) else None for row in whole] if isinstance(whole, list) else None
        assert rows == wanted

    spoil()


@pytest.mark.check("C6")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[" * 100_000, "x.json: is nested too deeply"),
        (b'[{"a": NaN}]', "x.json: NaN is not JSON"),
        (b'[{"a": 1e999}]', "x.json: the number 1e999 is too large"),
        (b'[{"a": 1, "a": 2}]', "x.json: the name 'a' stands twice in one object"),
        (b'[{"a": [' + b"[]," * 2_000_001 + b"1]}]", "x.json, line 1: holds more than 2,000,000 lists and objects"),
        (b'[{"a": 1}\n{"a": 2}]', "x.json, line 2: is not JSON: Expecting ',' delimiter"),
        (b'[{"a": 1},\n\n{"a": ', "x.json, line 3: is not JSON: Expecting value"),
        (b'[{"a": 1}] [2]', "x.json, line 1: is not JSON: Extra data"),
        (b'[{"a":\n"\xff"}]', "x.json, line 2: is not UTF-8 (byte 2 of the line); save it as UTF-8"),
        (b"\xff\xfe[\x00", "x.json, line 1: is not UTF-8 (it looks like UTF-16); save it as UTF-8"),
        (b'{"a": [1]}', "x.json: is not a JSON array"),
        (b"\x1f\x8b\x08\x00broken", "the compressed file ends too early or is damaged"),
    ],
)
def test_what_is_wrong_with_an_array_is_told_with_its_line(content, told, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(BadFile) as refused:
        found(path)
    assert told in str(refused.value)


@pytest.mark.check("C9")
def test_a_large_array_on_one_line_takes_the_memory_of_a_few_objects(tmp_path):
    path = tmp_path / "x.json"
    row = json.dumps({"text": "x" * 1000})
    with path.open("w") as file:
        file.write("[" + ",".join([row] * 40_000) + "]")
    tracemalloc.start()
    assert sum(1 for _ in json_array(path)) == 40_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 4 * peak


def test_an_object_without_an_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_VALUE", 2**20)
    path = tmp_path / "x.json"
    path.write_text('[{"a": "' + "x" * 2**23 + '"}]')
    with pytest.raises(BadFile, match="an object of more than 1 MB"):
        found(path)
