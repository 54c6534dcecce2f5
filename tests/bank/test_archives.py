"""Zip archives: hostile ones are refused before anything is written (checks C3)."""

import io
import stat
import struct
import time
import zipfile

import pytest

from bank.intake.formats.reading import BadFile
from bank.intake.imports import sources

ROW = '{"key": "a", "instruction": "?"}\n'


def made(*entries, **options):
    """A zip of (name or ZipInfo, data)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **options) as file:
        for name, data in entries:
            file.writestr(name, data)
    return out.getvalue()


def renamed(raw, old, new):
    assert len(old) == len(new)
    return raw.replace(old, new)


def link(target):
    info = zipfile.ZipInfo("link.jsonl")
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return made((info, target))


def encrypted():
    raw = bytearray(made(("samples.jsonl", ROW)))
    raw[6] |= 1  # the flag in the local header, and in the directory
    start = raw.index(b"PK\x01\x02")
    raw[start + 8] |= 1
    return bytes(raw)


def lying(size):
    """An entry that is 1 MB long and says another size."""
    raw = bytearray(made(("samples.jsonl", "x" * 100_000)))
    start = raw.index(b"PK\x01\x02")
    raw[22:26] = raw[start + 24 : start + 28] = struct.pack("<L", size)
    return bytes(raw)


def million(count=1_000_000):
    """A directory of a million entries, as long as it must be and no longer."""
    entry = b"PK\x01\x02" + b"\0" * 24 + struct.pack("<H", 1) + b"\0" * 16 + b"a"
    directory = entry * count
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(directory), 0, 0)
    return b"PK\x03\x04" + directory + end


def damaged():
    raw = bytearray(made(("samples.jsonl", "".join(f"{n} " for n in range(5000)))))
    raw[len(raw) // 2] ^= 255
    return bytes(raw)


def overlapping():
    raw = made(("samples.jsonl", "x" * 5000), ("b.jsonl", "y" * 10))
    second = raw.index(b"PK\x01\x02", raw.index(b"PK\x01\x02") + 4)
    return raw[: second + 42] + struct.pack("<L", 0) + raw[second + 46 :]


HOSTILE = {
    "a way out": (lambda: made(("../samples.jsonl", ROW)), "leads out"),
    "a way out in the middle": (lambda: made(("a/../../samples.jsonl", ROW)), "leads out"),
    "an absolute name": (lambda: made(("/etc/cron.d/x", ROW)), "leads out"),
    "a drive": (lambda: renamed(made(("C_/samples.jsonl", ROW)), b"C_/", b"C:/"), "leads out"),
    "a link": (lambda: link("/etc/passwd"), "is a link"),
    "a backslash": (lambda: made((r"..\samples.jsonl", ROW)), "backslash"),
    "a NUL in the name": (lambda: renamed(made(("samples.jsonl_a", ROW)), b"jsonl_a", b"jsonl\x00a"), "NUL"),
    "a line break in the name": (lambda: made(("samples\n.jsonl", ROW)), "control characters"),
    "the same name twice": (
        lambda: renamed(made(("samples.jsonl", ROW), ("sampleZ.jsonl", ROW)), b"Z", b"s"),
        "occurs twice",
    ),
    "the same name in other letters": (lambda: made(("samples.jsonl", ROW), ("SAMPLES.jsonl", ROW)), "occurs twice"),
    "a file that is a folder": (lambda: made(("a", ROW), ("a/b", ROW)), "a file and a folder"),
    "an archive inside": (lambda: made(("inner.zip", made(("samples.jsonl", ROW)))), "archive inside the archive"),
    "an archive under another name": (lambda: made(("inner.csv", made(("x", ROW)))), "archive inside the archive"),
    "a bomb": (lambda: made(("samples.jsonl", b"\0" * 20_000_000)), "times its size"),
    "many bombs": (lambda: made(*((f"{n}.zip", b"PK\x03\x04" * 100) for n in range(16))), "archive inside the archive"),
    "a million entries": (million, "150,000"),
    "a password": (encrypted, "is encrypted"),
    "less than it says": (lambda: lying(200_000), "does not have the length|not a readable zip"),
    "more than it says": (lambda: lying(50_000), "does not have the length|not a readable zip"),
    "one entry over another": (overlapping, "overlaps another entry|not a readable zip"),
    "a long name": (lambda: made(("x" * 300 + ".jsonl", ROW)), "name is too long"),
    "many folders": (lambda: made(("a/" * 40 + "samples.jsonl", ROW)), "name is too long"),
    "half of it": (lambda: made(("samples.jsonl", ROW * 100))[:-30], "not a readable zip"),
    "nothing": (lambda: made(), "holds no files|not a readable zip"),
    "only leftovers": (lambda: made(("__MACOSX/x", "y"), (".DS_Store", "z")), "holds no files"),
    "damaged bytes": (damaged, "not a readable zip|not as long"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.check("C3")
def test_a_hostile_archive_is_refused_within_two_seconds_and_leaves_nothing(name, tmp_path, media):
    make, reason = HOSTILE[name]
    path = tmp_path / "some.zip"
    path.write_bytes(make())
    start = time.process_time()
    with pytest.raises(BadFile, match=reason), sources.open_source(path):
        raise AssertionError("it was opened")
    assert time.process_time() - start < 2
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and file != path]


def test_an_honest_archive_is_opened_and_gone_afterwards(tmp_path, media):
    path = tmp_path / "some.zip"
    path.write_bytes(made(("top/samples.jsonl", ROW), ("top/images/a.png", b"x"), ("__MACOSX/._a", b"y")))
    with sources.open_source(path) as here:
        assert here.name == "top"
        assert sorted(file.name for file in here.rglob("*")) == ["a.png", "images", "samples.jsonl"]
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]
