"""What a file, a folder or a zip archive holds. Archives are inspected before a byte is written."""

import os
import shutil
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from types import ModuleType

from bank.errors import BadInput
from bank.intake import formats
from bank.intake.formats.reading import BadFile, Row, Where, kind_of
from bank.intake.imports import Cancelled, never, registry, scratch

ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz")
LOOKED_AT = 50


@dataclass(frozen=True)
class Look:
    """What a path holds: the format, the parts that can be read here, in order, and where the data lies.

    ``path`` is the file or folder that the format reads, ``images`` the folder where image paths start.
    """

    module: ModuleType
    parts: tuple[str, ...]
    path: Path
    images: Path

    @property
    def format(self) -> str:
        return str(self.module.NAME)

    @property
    def name(self) -> str:
        """The format's name for people."""
        return str(getattr(self.module, "TITLE", self.module.NAME))


def look(path: Path, format: str = "auto") -> Look:
    """What this file, folder or zip archive holds. Raises BadFile.

    Of an archive the paths are gone when this returns; within ``with opened(path) as here`` they stay.
    """
    with opened(path) as here:
        return _look(here, format)


def _look(path: Path, format: str | ModuleType) -> Look:
    module, path = _recognised(path, format)
    images = path if path.is_dir() else path.parent
    readable = tuple(name for name in registry.known() if hasattr(module, name))
    if hasattr(module, "parts"):
        held = module.parts(path)
        return Look(module, tuple(name for name in readable if name in held), path, images)
    found = tuple(name for name in readable if _holds(module, name, path))
    return Look(module, found or readable[:1], path, images)


def _as_told(path: Path, format: str | ModuleType, names: Sequence[str]) -> Look:
    unknown = sorted(set(names) - set(registry.known()))
    if unknown:
        raise BadInput(f"{unknown[0]!r} is no part of an import; the parts are {', '.join(registry.known())}.")
    module, path = _recognised(path, format)
    ordered = tuple(name for name in registry.known() if name in names)
    return Look(module, ordered, path, path if path.is_dir() else path.parent)


def _recognised(path: Path, format: str | ModuleType) -> tuple[ModuleType, Path]:
    """The format, and the file or folder that it reads: of a folder that no format knows, its only data file."""
    if isinstance(format, ModuleType):
        return format, path
    try:
        return formats.find(format, path), path
    except BadFile:
        if not path.is_dir():
            raise
        files = [file for file in sorted(path.iterdir()) if file.is_file() and file.suffix.lower() in ENDINGS]
        if len(files) != 1:
            raise
        return formats.find(format, files[0]), files[0]


def _holds(module: ModuleType, name: str, path: Path) -> bool:
    """Whether the reader of this part finds a row of its own among the first."""
    try:
        return any(isinstance(row, Row) for row in islice(formats.reader(module, name)(path), LOOKED_AT))
    except BadFile:
        return False


@contextmanager
def opened(path: Path, cancelled: Callable[[], bool] = never) -> Iterator[Path]:
    """``_unpacked``, with errors that speak of the archive and not of the folder it lies in."""
    with _unpacked(path, cancelled=cancelled) as here:
        try:
            yield here
        except BadFile as error:
            if (where := _outside(error.problem.where, here, path)) == error.problem.where:
                raise
            raise BadFile(where, error.problem.reason) from None


def _outside(where: Where, here: Path, path: Path) -> Where:
    """A place in an archive that lies unpacked in ``here``, as whoever sent it knows it."""
    if here == path or not where.file.startswith(str(here)):
        return where
    inside = where.file.removeprefix(str(here)).strip("/")
    return where._replace(file=f"{path.name}/{inside}".rstrip("/"))


MAX_ENTRIES = 150_000
MAX_BYTES = 16 * 2**30
MAX_RATIO = 250  # deflate reaches 1,032 on zeros; text and tables stay below 50
FREE = 256 * 2**20
IGNORED = ("__MACOSX", ".DS_Store", "Thumbs.db")
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def _unpacked(path: Path, *, cancelled: Callable[[], bool] = never) -> Iterator[Path]:
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
