"""Small files that unpack to large lines and cells are refused by their sizes, before what they hold is decoded."""

import gzip
import os
import tracemalloc

import pytest

from bank.intake import formats
from bank.intake.formats import reading
from bank.intake.formats.reading import BadFile, Problem, Row

pytestmark = pytest.mark.check("F1")
LONG = 40 * 2**20


@pytest.fixture
def blocks(monkeypatch):
    """How many megabytes were read."""
    read, block = [], reading._block

    def counted(file, where, *, is_first):
        found = block(file, where, is_first=is_first)
        read.append(len(found))
        return found

    monkeypatch.setattr(reading, "_block", counted)
    return read


@pytest.fixture(params=[b"x", b'{"key": "a", "instruction": "', b"key\tinstruction\t"], ids=["csv", "jsonl", "tsv"])
def one_line(request, tmp_path):
    path = tmp_path / "one.gz"
    path.write_bytes(gzip.compress(request.param + b"x" * LONG))
    assert path.stat().st_size < 50_000
    return path


def test_a_line_that_is_too_long_is_refused_without_being_joined(one_line):
    """The finding: it was joined anew with each megabyte."""
    tracemalloc.start()
    try:
        with pytest.raises(BadFile, match=r"one.gz, line 1: a line of more than 32 MB"):
            list(reading.rows(one_line))
        assert tracemalloc.get_traced_memory()[1] < 1.5 * reading.MAX_LINE
    finally:
        tracemalloc.stop()


def test_formats_that_look_for_the_first_row_read_a_long_line_once(one_line, blocks):
    """The finding: each of seven read it anew."""
    with pytest.raises(BadFile):
        formats.find("auto", one_line)
    assert sum(blocks) < 1.5 * reading.MAX_LINE


def test_a_long_line_after_others_is_named(tmp_path):
    path = tmp_path / "late.jsonl"
    path.write_bytes(b'{"key": "a"}\n{"key": "b"}\n' + b'{"key": "' + b"x" * LONG)
    with pytest.raises(BadFile, match=r"late.jsonl, line 3: a line of more than 32 MB"):
        list(reading.rows(path))
    rows = reading.rows(path)
    assert [next(rows).data, next(rows).data] == [{"key": "a"}, {"key": "b"}]


@pytest.mark.parametrize("ends", [b"", b"\n", b"\n\n"])
def test_lines_over_several_blocks_are_read_as_they_are(ends, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 7)
    path = tmp_path / "lines.txt"
    texts = [b"one", b"", b"a line of more than two blocks", b"", b"the last"]
    path.write_bytes(b"\n".join(texts) + ends)
    wanted = texts + [b""] * max(0, len(ends) - 1)
    assert list(reading.raw_lines(path)) == list(enumerate(wanted, 1))


CELL = "x" * (reading.MAX_CELL + 1)


def test_a_cell_of_csv_that_is_too_large_is_refused_by_name(tmp_path):
    path = tmp_path / "large.csv"
    path.write_text(f'key,instruction\na,short\nb,"{CELL}"\n', encoding="utf-8")
    with pytest.raises(BadFile, match=r"large.csv, line 3: a cell of more than 8 MB"):
        list(reading.rows(path))


def test_a_cell_of_a_workbook_that_is_too_large_is_refused_by_name(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["key", "instruction"])
    sheet.append(["a", "short"])
    sheet.append(["b", "y"])
    sheet["B3"]._value = os.urandom(reading.MAX_CELL // 2 + 1).hex()  # Excel writes none of more than 32,767
    path = tmp_path / "large.xlsx"
    book.save(path)
    found = list(reading.rows(path))
    assert [type(row) for row in found] == [Row, Problem]
    assert str(found[1]) == "large.xlsx, line 3: instruction: a cell of more than 8 MB"


class TestParquet:
    @pytest.fixture
    def write(self, tmp_path):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

        def make(columns, **options):
            path = tmp_path / "large.parquet"
            pq.write_table(pa.table(columns), path, compression="zstd", **options)
            return path

        return make

    @pytest.mark.parametrize("rows", [8, pytest.param(80, marks=pytest.mark.soak)])
    def test_one_text_in_many_rows_is_refused_in_each_without_being_decoded(self, rows, write):
        """The finding: 1 kB, 80 cells of 20 MB, 9 to 15 s."""
        path = write({"key": [str(n) for n in range(rows)], "instruction": ["x" * 20_000_000] * rows})
        assert path.stat().st_size < 2_000
        tracemalloc.start()
        try:
            found = list(reading.rows(path))
            assert tracemalloc.get_traced_memory()[1] < reading.MAX_CELL  # of Python, which decodes none
        finally:
            tracemalloc.stop()
        assert {type(row) for row in found} == {Problem}
        assert str(found[3]) == "large.parquet, record 3: instruction: a cell of more than 8 MB"

    def test_texts_that_are_too_large_on_average_are_refused_by_what_the_file_says_of_them(self, write):
        texts = [letter * 9_000_000 for letter in "abc"]
        path = write({"key": ["a", "b", "c"], "instruction": texts}, use_dictionary=False)
        with pytest.raises(BadFile, match=r"large.parquet, record 0: instruction: a cell of more than 8 MB"):
            next(reading.rows(path))

    @pytest.mark.parametrize("dictionary", [True, False])
    def test_rows_beside_one_that_is_too_large_are_read(self, dictionary, write):
        texts = ["short", CELL, *["y"] * 20]
        path = write({"key": [str(n) for n in range(22)], "instruction": texts}, use_dictionary=dictionary)
        found = list(reading.rows(path))
        assert [type(row) for row in found] == [Row, Problem, *[Row] * 20]
        assert found[2].data == {"key": "2", "instruction": "y"}

    def test_a_text_inside_a_list_or_an_object_is_measured_too(self, write):
        answers = [[{"model": "lark", "text": "short"}], [{"model": "lark", "text": CELL}], [], None, *[[]] * 20]
        found = list(reading.rows(write({"key": [str(n) for n in range(24)], "answers": answers})))
        assert [type(row) for row in found] == [Row, Problem, *[Row] * 22]

    def test_many_pictures_in_one_file_are_read(self, write):
        pictures = [{"bytes": bytes([n]) * 3_000_000, "path": f"{n}.png"} for n in range(8)]
        found = list(reading.rows(write({"key": [str(n) for n in range(8)], "image": pictures})))
        assert [len(row.data["image"]["bytes"]) for row in found] == [3_000_000] * 8
