"""Small files that would keep the site busy: they are refused after as many rows as the benchmark could want."""

import gzip
from datetime import timedelta

import pytest

from bank.intake import formats
from bank.submissions import Exceeded, actions, check, quota
from tests.bank.test_submissions import LABELS, NOON, allow, choices

__all__ = ["allow", "choices"]
pytestmark = pytest.mark.django_db
MOST = 2 * 3 * len(LABELS)  # rows, of three samples with four rotations each


@pytest.fixture
def bench(choices, allow):
    benchmark = choices(dev=3)
    allow(benchmark)
    return benchmark


@pytest.fixture
def asked(bench, people):
    """Checks a file, or submits it."""

    def ask(path, *, submit=False, now=NOON):
        given = {"person": people["researcher"], "benchmark": bench, "name": "Finch", "path": path, "now": now}
        if not submit:
            return actions.check_only(**given).faults()
        return actions.submit(**given).problems

    return ask


@pytest.fixture
def rows_read(monkeypatch):
    """How many rows were read from files."""
    read = []
    real = formats.reader

    def counting(module, part):
        def rows(path):
            for row in real(module, part)(path):
                read.append(row.where)
                yield row

        return rows

    monkeypatch.setattr(check.formats, "reader", counting)
    return read


@pytest.mark.check("I2")
@pytest.mark.parametrize("submit", [False, True])
@pytest.mark.parametrize("shape", ["jsonl", "csv", "jsonl.gz"])
def test_no_more_than_twice_the_wanted_rows_are_read(shape, submit, asked, rows_read, tmp_path):
    path = tmp_path / f"rows.{shape}"
    rows = ['{"sample": "dev0", "text": "A"}'] if "jsonl" in shape else ["sample,text", "dev0,A"]
    text = "\n".join(rows + rows[-1:] * 200_000).encode()
    path.write_bytes(gzip.compress(text) if shape.endswith("gz") else text)
    problems = asked(path, submit=submit)["problems"]
    assert f"the file holds more than {MOST} rows" in problems[-1][2]
    assert len(rows_read) == MOST + 1


@pytest.mark.check("I2")
@pytest.mark.parametrize("submit", [False, True])
@pytest.mark.parametrize("rows", [200_000, 3_000_000])
def test_a_parquet_file_is_refused_by_its_own_count_and_not_read(rows, submit, asked, tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    one = pa.array(["dev0"]).dictionary_encode()
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), one.dictionary)
    pq.write_table(pa.table({"sample": column, "text": column}), path, compression="zstd")
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(pq, "ParquetFile", lambda *_: pytest.fail("it was opened to be read"))
    assert f"the file holds more than {MOST} rows" in asked(path, submit=submit)["problems"][0][2]


@pytest.mark.parametrize("raw", [b"PAR1", b"PAR1" + b"\0" * 5000 + b"PAR1"])
def test_a_broken_parquet_file_is_refused_in_words(raw, asked, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    path.write_bytes(raw)
    assert "is not readable Parquet" in asked(path)["problems"][0][2]


@pytest.mark.parametrize("shape", ["jsonl", "csv"])
@pytest.mark.parametrize("blank", [b"\n", b" \n"])
def test_lines_that_make_no_rows_are_limited_too(shape, blank, asked, tmp_path):
    path = tmp_path / f"rows.{shape}"
    first = b'{"sample": "dev0", "text": "A"}\n' if shape == "jsonl" else b"sample,text\n"
    path.write_bytes(gzip.compress(first + blank * 1_000_000))
    assert any("more than" in reason for _, _, reason in asked(path)["problems"])


@pytest.mark.check("I2")
def test_one_file_of_a_person_is_read_at_a_time_and_a_crash_locks_nobody_out(bench, asked, people, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("sample,text\ndev0,A\ndev1,A\ndev2,A\n")
    held = quota.one_at_a_time(person=people["researcher"], now=NOON)
    held.__enter__()  # a process that dies never leaves it
    for submit in (False, True):
        with pytest.raises(Exceeded, match="Another file of yours is being read") as refused:
            asked(path, submit=submit, now=NOON + timedelta(seconds=1))
        assert refused.value.retry_after == 5
    with quota.one_at_a_time(person=people["curator"], now=NOON):
        pass
    assert asked(path, now=NOON + quota.LEASE) == {**asked(path, now=NOON + quota.LEASE), "problems": []}
    held.__exit__(None, None, None)  # at the collector's hour it would run within another statement


def test_a_second_file_at_the_same_time_is_429_in_words(bench, people, client_of):
    from django.utils import timezone

    from tests.leaderboard.test_submissions import post

    with quota.one_at_a_time(person=people["researcher"], now=timezone.now()):
        answer = post(client_of("researcher"), bench, [{"sample": "dev0", "text": "A"}], check_only="true")
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "5"
    assert "Another file of yours is being read" in answer.json()["detail"]
