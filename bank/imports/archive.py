"""Zip archives in: looked through before a byte is written, then unpacked into a folder that is removed afterwards."""

import os
import shutil
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from bank.formats.reading import BadFile, Where, kind_of
from bank.imports import Cancelled, never, scratch

MAX_ENTRIES = 150_000
MAX_BYTES = 16 * 2**30
MAX_RATIO = 250  # deflate reaches 1,032 on zeros; text and tables stay below 50
FREE = 256 * 2**20
IGNORED = ("__MACOSX", ".DS_Store", "Thumbs.db")
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def opened(path: Path, *, cancelled: Callable[[], bool] = never) -> Iterator[Path]:
    """The path itself, or of a zip archive the folder it was unpacked to. Raises BadFile."""
    if not path.is_file() or kind_of(path) != "zip":
        yield path
        return
    with scratch.folder() as own:
        yield unpack(path, own / "unpacked", cancelled=cancelled)


def unpack(path: Path, into: Path, *, cancelled: Callable[[], bool] = never) -> Path:
    """Unpack into a new folder; returns it, or the folder in it that alone holds everything. Raises BadFile.

    Refused before anything is written: names that lead outside, links, the same name twice, archives in the archive,
    encrypted, overlapping or oddly packed entries, too many of them, or more bytes than are believable.
    """
    try:
        with path.open("rb") as file:
            _count(path, file.fileno())
            with zipfile.ZipFile(file) as archive:
                entries = _checked(path, archive.infolist())
                _room(path, into.parent, sum(entry.file_size for entry in entries.values()))
                into.mkdir(parents=True)
                for name, entry in entries.items():
                    if cancelled():
                        raise Cancelled
                    _extract(path, archive, entry, into / name)
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, ValueError, OSError) as error:
        raise _bad(path, f"is not a readable zip archive ({error})") from None
    return _top(into)


def _bad(path: Path, reason: str, entry: str = "") -> BadFile:
    return BadFile(Where(path.name), f"{ascii(entry)[1:-1][:100]}: {reason}" if entry else reason)


def _count(path: Path, file: int) -> None:
    """Refuse a directory of a million entries without reading it as one: only its end and its length are looked at."""
    size = os.fstat(file).st_size
    tail = os.pread(file, 65_557 + 20, max(0, size - 65_557 - 20))
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        raise _bad(path, "is not a readable zip archive: its end is missing; was it sent completely?")
    length = struct.unpack_from("<L", tail, end + 12)[0]
    locator = tail[end - 20 : end] if end >= 20 else b""
    if locator.startswith(b"PK\x06\x07"):
        wide = os.pread(file, 56, struct.unpack_from("<Q", locator, 8)[0])
        if len(wide) == 56 and wide.startswith(b"PK\x06\x06"):
            length = max(length if length != 0xFFFFFFFF else 0, struct.unpack_from("<Q", wide, 40)[0])
    if length > 300 * MAX_ENTRIES:
        raise _bad(path, f"holds too many files; at most {MAX_ENTRIES:,}")
    directory = os.pread(file, length + 1024, max(0, size - length - len(tail)))
    if directory.count(b"PK\x01\x02") > MAX_ENTRIES:
        raise _bad(path, f"holds more than {MAX_ENTRIES:,} files")


def _checked(path: Path, infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """The files by the name they get."""
    entries: dict[str, zipfile.ZipInfo] = {}
    taken: set[str] = set()
    folders: set[str] = set()
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        name = info.orig_filename
        if info.header_offset < end:
            raise _bad(path, "lies over another entry", name)
        end = info.header_offset + 30 + info.compress_size
        parts = PurePosixPath(name).parts
        if "\x00" in name or "\\" in name or name != info.filename:
            raise _bad(path, "a file name may not hold a backslash or NUL", name)
        if name.startswith("/") or ".." in parts or not parts or ":" in parts[0]:
            raise _bad(path, "leads out of the archive", name)
        if len(name) > 500 or len(parts) > 20 or any(len(part.encode()) > 255 for part in parts):
            raise _bad(path, "the file name is too long", name)
        if any(ord(letter) < 32 for letter in name):
            raise _bad(path, "a file name may not hold control characters", name)
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _bad(path, "is a link or device, not a file", name)
        if info.flag_bits & 0x41:
            raise _bad(path, "is encrypted; send it without a password", name)
        if info.is_dir():
            continue
        if any(part in IGNORED for part in parts):
            continue
        if info.compress_type not in METHODS:
            raise _bad(path, "is packed in a way that is not read here; use plain zip (deflate)", name)
        if name.lower().endswith(ARCHIVES):
            raise _bad(path, "is an archive in the archive; unpack it first", name)
        if info.file_size > 2**20 and info.file_size > MAX_RATIO * max(1, info.compress_size):
            raise _bad(path, f"would unpack to more than {MAX_RATIO} times its size", name)
        plain = unicodedata.normalize("NFC", str(PurePosixPath(name))).casefold()
        if plain in taken:
            raise _bad(path, "the same name stands twice", name)
        taken.add(plain)
        folders.update(str(parent) for parent in PurePosixPath(plain).parents)
        entries[str(PurePosixPath(name))] = info
    if "[content_types].xml" in taken:
        kind = "an Excel workbook (.xlsx)" if any(name.startswith("xl/") for name in taken) else "an Office document"
        raise _bad(path, f"is {kind}, which is not read here; save its sheet as CSV (UTF-8) and bring that in")
    for name in taken & folders:
        raise _bad(path, "is a file and a folder at once", name)
    if not entries:
        raise _bad(path, "holds no files")
    return entries


def _room(path: Path, folder: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise _bad(path, f"would unpack to {size / 2**30:.0f} GB; at most {MAX_BYTES // 2**30}")
    if shutil.disk_usage(folder).free < size + FREE:
        raise _bad(path, f"would unpack to {size / 2**30:.1f} GB, for which there is no room on the disk")


def _extract(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(info) as source, target.open("xb") as out:
        while block := source.read(2**18):
            if not written and block.startswith((b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!")):
                raise _bad(path, "is an archive in the archive; unpack it first", info.filename)
            written += len(block)
            if written > info.file_size:
                break
            out.write(block)
    if written != info.file_size:
        raise _bad(path, "is not as long as the archive says", info.filename)


def _top(folder: Path) -> Path:
    """Archives often hold one folder that holds everything."""
    while True:
        inside = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        if len(inside) != 1 or not inside[0].is_dir():
            return folder
        folder = inside[0]
