"""Odd values and odd files: the same verdict whichever database is below (checks C5-C7, C13).

What is expected here is expected on SQLite and, by ``tests.on_postgres``, on PostgreSQL.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bank.criteria import Criterion
from bank.intake.formats.reading import rows
from bank.models import Benchmark, Response, Sample

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

SAMPLE = {"key": "a", "instruction": "?"}
# What stands in the file, and the field that is blamed; None: it comes in as it is.
VALUES = {
    "NUL in a text": ({"instruction": "a\x00b"}, "instruction"),
    "NUL in a name inside the metadata": ({"metadata": {"a\x00": 1}}, "metadata"),
    "NUL deep in the metadata": ({"metadata": {"a": [{"b": "\x00"}]}}, "metadata"),
    "NUL in an option's letter": ({"options": {"A\x00": "x", "B": "y"}}, "options"),
    "a key of 201 characters": ({"key": "k" * 201}, "key"),
    "a key of 200 characters beyond the basic plane": ({"key": "\U0001f600" * 200}, None),
    "a language of 17 characters": ({"language": "x" * 17}, "language"),
    "a capability path of 703 characters": (
        {"capability": ["x" * 200, "y" * 200, "z" * 200, "w" * 94]},
        "capability path",
    ),
    "a weight below zero": ({"criteria": [{"text": "t", "weight": -0.5}]}, "criteria.0.weight"),
    "the smallest weight there is": ({"criteria": [{"text": "t", "weight": 5e-324}]}, None),
    "the largest weight there is": ({"criteria": [{"text": "t", "weight": 1.7976931348623157e308}]}, None),
    "a weight of 2^40": ({"criteria": [{"text": "t", "weight": 2**40}]}, None),
    "a number beyond 2^53": ({"metadata": {"n": 2**53 + 1}}, "metadata"),
    "yes for a text": ({"hint": True}, "hint"),
    "full-width digits": ({"key": "１２"}, None),
    "a text of nothing but a no-break space": ({"instruction": "\u00a0"}, "instruction"),
    "a right-to-left override and a byte order mark": ({"instruction": "\u202e\ufeffabc"}, None),
    "characters that compare alike": ({"key": "A\u030a"}, None),
    "a backslash, a tab and a quote, as COPY knows them": ({"instruction": '\\N\t\\.\n"\\x41"'}, None),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.check("C13")
def test_an_odd_value_comes_in_as_it_is_or_is_refused_by_field(name, folder, manage):
    change, blamed = VALUES[name]
    row = SAMPLE | change
    path = folder("samples", [], raw=json.dumps(row).encode() + b"\n")
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    if blamed:
        assert (status, Benchmark.objects.count()) == (1, 0)
        assert "samples.jsonl, line 1: " in err
        assert blamed in err
        return
    assert (status, err) == (0, "")
    sample = Sample.objects.get()
    assert (sample.key, sample.instruction) == (row["key"], row["instruction"])
    assert [c.weight for c in Criterion.unguarded.all()] == [c["weight"] for c in row.get("criteria", [])]
    assert "1 was there already" in (
        again := manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")[1]
    ) or ("1 were there already" in again)


@pytest.mark.parametrize(
    ("tokens", "blamed"),
    [(0, False), (2**31 - 1, False), (2**31, True), (2**70, True), (-1, True), (1.0, True), ("5", True)],
)
def test_a_count_fits_its_column_or_is_refused(tokens, blamed, small, folder, manage):
    path = folder("more", [{"sample": "a", "model": "new", "text": "x", "tokens": tokens}])
    status, _, err = manage("import_responses", "generic", path, "--benchmark", "small")
    assert (status, "tokens" in err) == (int(blamed), blamed)
    assert Response.objects.filter(model__name="new").exists() is not blamed


TABLES = {
    "semicolons": "key;instruction\na;How, many?\n",
    "tabs": "key\tinstruction\na\tHow, many?\n",
    "header in other letters and with spaces": ' Key , INSTRUCTION\na,"How, many?"\n',
    "Windows line ends": 'key,instruction\r\na,"How, many?"\r\n',
    "a byte order mark": '\ufeffkey,instruction\na,"How, many?"\n',
    "no end of the last line": 'key,instruction\na,"How, many?"',
    "blank lines": '\nkey,instruction\n\na,"How, many?"\n\n'.lstrip("\n"),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.check("C7")
@pytest.mark.one_database
def test_a_table_is_read_however_it_is_written(name, folder, manage):
    path = folder("samples", [], name="samples.csv", raw=TABLES[name].encode())
    assert manage("import_benchmark", "auto", path, "--benchmark", "new", "--public")[0] == 0
    assert list(Sample.objects.values_list("key", "instruction")) == [("a", "How, many?")]


@pytest.mark.check("C7")
def test_a_field_may_hold_a_megabyte_and_line_breaks_and_lines_are_still_counted(folder, manage):
    text = 'key,instruction\na,"' + "long\n" * 200_000 + '"\nb,\nc,?\n'
    path = folder("samples", [], name="samples.csv", raw=text.encode())
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    assert (status, Sample.objects.count()) == (1, 0)
    assert "samples.csv, line 200003: instruction: " in err


BAD_TABLES = {
    "too few cells": ("key,instruction\na\n", "line 2: has 1 cells, the header 2"),
    "a quote that never ends": ('key,instruction\na,"b\nc,d\n', "line 2: is not CSV"),
    "text after a quote": ('key,instruction\na,"b"c\n', "line 2: is not CSV"),
    "two columns of one name": ("key,instruction,Key\na,b,c\n", "line 1: two columns have the same name"),
    "Latin-1": ("key,instruction\na,caf\xe9\n".encode("latin-1"), "line 2: is not UTF-8"),
    "an overlong character": (b"key,instruction\na,\xc0\xaf\n", "line 2: is not UTF-8"),
    "NUL": ("key,instruction" + " " * 100 + "\na,b\x00c\n", "line 2"),
    "a weight with a comma": ('key;instruction;criteria\na;b;[{"text": "t", "weight": "10,0"}]\n', "criteria.0.weight"),
    "JSON with NaN": ('key;instruction;metadata\na;b;{"x": NaN}\n', "line 2: metadata: NaN is not JSON"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
@pytest.mark.check("C7")
@pytest.mark.one_database
def test_a_bad_table_is_refused_with_its_line_and_nothing_is_written(name, folder, manage):
    raw, reason = BAD_TABLES[name]
    path = folder("samples", [], name="samples.csv", raw=raw if isinstance(raw, bytes) else raw.encode())
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    assert (status, Benchmark.objects.count()) == (1, 0)
    assert reason in err


BAD_LINES = {
    "a line of 40 MB": (b'{"key": "a", "instruction": "' + b"x" * 40_000_000, "line 1: a line of more than 32 MB"),
    "two million lists": (
        b'{"key": "a", "instruction": "?", "metadata": {"n": [' + b"[]," * 2_000_000 + b"1]}}\n",
        "line 1: holds more than 2,000,000 lists and objects",
    ),
    "an object that is a list": (b'["key"]\n', "is not a JSON object"),
    "a number of 400 digits": (b'{"key": "a", "instruction": "?", "metadata": {"n": ' + b"9" * 400 + b"}}\n", "line 1"),
    "10^400": (
        b'{"key": "a", "instruction": "?", "metadata": {"n": 1e400}}\n',
        "line 1: the number 1e400 is too large",
    ),
    "an overlong character": (b'{"key": "a", "instruction": "\xc0\xaf"}\n', "line 1: is not UTF-8"),
    "half a surrogate in bytes": (b'{"key": "a", "instruction": "\xed\xa0\x80"}\n', "line 1: is not UTF-8"),
    "a control character": (b'{"key": "a", "instruction": "a\x01b"}\n', "line 1: is not JSON"),
    "two objects on a line": (b'{"key": "a", "instruction": "?"} {}\n', "line 1: is not JSON"),
    "a NUL deep in a list": (
        b'{"key": "a", "instruction": "?", "metadata": {"n": {"m": ["?", "\\u0000"]}}}\n',
        "line 1: metadata.n.m.1: holds a NUL character",
    ),
    "half a surrogate in a name": (
        b'{"key": "a", "instruction": "?", "metadata": {"n": {"\\udc00": 1}}}\n',
        "line 1: metadata.n: holds half of a surrogate pair",
    ),
    "the same name twice, deep": (
        b'{"key": "a", "instruction": "?", "metadata": {"x": {"y": 1, "y": 1}}}\n',
        "'y' stands twice",
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
@pytest.mark.check("C5", "C6")
@pytest.mark.one_database
def test_bad_lines_are_refused_with_their_number_and_nothing_is_written(name, folder, manage):
    raw, reason = BAD_LINES[name]
    status, _, err = manage("import_benchmark", "generic", folder("samples", [], raw=raw), "--benchmark", "new")
    assert (status, Benchmark.objects.count()) == (1, 0)
    assert reason in err


def parquet(path, table):
    pq.write_table(table, path)
    return path


def test_parquet_comes_in_and_its_faults_are_told_by_record(folder, manage):
    good = parquet(folder.root / "good.parquet", pa.table({"key": ["a", "b"], "instruction": ["?", "!"]}))
    assert manage("import_benchmark", "auto", good, "--benchmark", "good", "--public")[0] == 0
    assert Sample.objects.count() == 2
    bad = parquet(folder.root / "bad.parquet", pa.table({"key": ["c", "d"], "instruction": ["?", "a\x00"]}))
    status, _, err = manage("import_benchmark", "generic", bad, "--benchmark", "bad", "--public")
    assert (status, "bad.parquet, record 1: instruction: holds a NUL" in err) == (1, True)
    binary = pa.table({"key": ["c"], "instruction": pa.array([b"\xff\xfe"])})
    assert (
        "instruction: "
        in manage("import_benchmark", "generic", parquet(bad, binary), "--benchmark", "bad", "--public")[2]
    )
    forged = pa.array([b"\xff\xfe"]).cast(pa.binary()).view(pa.string())
    broken = parquet(bad, pa.table({"key": ["c"], "instruction": forged}))
    assert (
        "is not readable Parquet" in manage("import_benchmark", "generic", broken, "--benchmark", "bad", "--public")[2]
    )
    bad.write_bytes(good.read_bytes()[:-20])
    assert "is not readable Parquet" in manage("import_benchmark", "generic", bad, "--benchmark", "bad", "--public")[2]
    assert Sample.objects.count() == 2


@pytest.mark.one_database
def test_a_text_that_a_parquet_file_holds_once_for_all_rows_is_held_once_when_they_are_read(tmp_path):
    table = pa.table({"key": [str(number) for number in range(200)], "instruction": ["x" * 2**20] * 200})
    path = parquet(tmp_path / "samples.parquet", table)
    del table
    before = pa.total_allocated_bytes()
    read = rows(path)
    assert len(next(read).data["instruction"]) == 2**20
    assert pa.total_allocated_bytes() - before < 32 * 2**20
    assert sum(1 for _ in read) == 199


def test_an_option_that_says_nan_or_none_is_kept_and_told(manage, tmp_path):
    picture = (
        "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR4nGM4ISdHEmIY1TCqYfhqAADkYgQQ60fIxgAAAABJRU5ErkJggg=="
    )
    table = tmp_path / "none-option.tsv"
    table.write_text(
        "index\tquestion\thint\tA\tB\tC\tD\tanswer\tcategory\tl2-category\tsplit\timage\n"
        f"1\tHow many birds?\t\tNone\tTwo\tOne\tThree\tA\tcounting\tfp\tdev\t{picture}\n"
        "2\tIs it NA?\t\tNA\tnull\tnan\tN/A\tB\tcounting\tfp\tdev\t1\n"
    )
    status, out, err = manage("import_benchmark", "mmbench", str(table), "--benchmark", "odd")
    assert status == 0, err
    assert Sample.objects.get(key="1").options == {"A": "None", "B": "Two", "C": "One", "D": "Three"}
    assert Sample.objects.get(key="2").options == {"A": "NA", "B": "null", "C": "nan", "D": "N/A"}
    for line, option in ((2, "A"), (3, "A"), (3, "B"), (3, "C"), (3, "D")):
        assert f"line {line}: options.{option}: says what programs write for an empty cell" in out + err
    again = manage("import_benchmark", "mmbench", str(table), "--benchmark", "odd")
    assert "empty cell" not in "".join(map(str, again))
