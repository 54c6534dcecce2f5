"""What a file, a folder or a zip archive holds. Archives are inspected before a byte is written."""

import os
import shutil
import struct
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from bank.errors import BadInput, WrongUse
from bank.intake import archives, formats, registry
from bank.intake.formats import Format, UnknownFormat
from bank.intake.formats.mapping import Mapped
from bank.intake.formats.reading import BadFile, Row, Where, first_names, kind_of
from bank.intake.formats.records import ImageRecord
from bank.intake.imports import Cancelled, kept_maps, never, scratch

WORKBOOK = ".xlsx"  # an archive in itself, whose reader looks at it as closely
ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz", WORKBOOK)
LOOKED_AT = 50


@dataclass(frozen=True)
class Source:
    """What a path holds: the format, the parts that can be imported here, in order, and where the data is.

    ``path`` is the file or folder that the format reads, ``images`` the folder that image paths are relative to.
    """

    module: Format
    parts: tuple[str, ...]
    path: Path
    images: Path

    @property
    def format(self) -> str:
        return str(self.module.NAME)

    @property
    def name(self) -> str:
        """The format's display name."""
        return str(getattr(self.module, "TITLE", self.module.NAME))


@dataclass
class PictureFolder:
    """The folder that a file's picture paths start from.

    If it was ``given`` by whoever imports, it may as well be the folder that the paths lead to. Then the leading
    folders of the paths are left out, but always the same ones, so that ``a/1.png`` and ``b/1.png`` never become one.
    """

    path: Path
    given: bool = False
    asked: int = 0  # pictures looked for
    missing: int = 0
    left_out: dict[int, str] = field(default_factory=dict)  # by the number of the place in a record

    def __post_init__(self) -> None:
        self.path = self.path.resolve()

    def holds(self, file: Path) -> bool:
        return file.is_relative_to(self.path)

    def find(self, image: ImageRecord) -> Path:
        """The picture's file; if it is in none of its places, the first of them, which may lie outside the folder."""
        places = (image.file, *image.also)
        for place in places:
            if self._has(file := (self.path / place).resolve()):
                return file
        for number, place in enumerate(places if self.given else ()):
            if (file_below := self._below(number, PurePosixPath(place).parts)) is not None:
                return file_below
        return (self.path / image.file).resolve()

    def _below(self, number: int, parts: tuple[str, ...]) -> Path | None:
        if ".." in parts or parts[:1] == ("/",):
            return None
        for count in range(1, len(parts)):
            leading = "/".join(parts[:count])
            if self.left_out.get(number, leading) != leading:
                continue
            if self._has(file := self.path.joinpath(*parts[count:]).resolve()):
                self.left_out[number] = leading
                return file
        return None

    def _has(self, file: Path) -> bool:
        return self.holds(file) and os.path.isfile(file)  # which takes names that are too long, too

    def refuse_if_wrong(self) -> None:
        """Raises WrongUse if pictures were looked for in the given folder, and none is there."""
        if self.given and 0 < self.asked == self.missing:
            pictures = "the picture" if self.asked == 1 else f"any of the {self.asked:,} pictures"
            raise WrongUse(f"{self.path} does not hold {pictures} that the file names. Nothing was written.")


def inspect(path: Path, format: str | Format = "auto") -> Source:
    """What this file, folder or zip archive holds. Raises BadFile.

    The paths inside an archive are gone when this returns; they stay within ``with open_source(path) as opened``.
    """
    with open_source(path) as opened:
        return inspect_opened(opened, format)


def inspect_opened(path: Path, format: str | Format) -> Source:
    module, path = _recognised(path, format)
    images = path if path.is_dir() else path.parent
    readable = tuple(name for name in registry.known() if formats.has(module, name))
    contained = formats.parts(module, path)
    if contained is not None:
        return Source(module, tuple(name for name in readable if name in contained), path, images)
    present = tuple(name for name in readable if _holds(module, name, path))
    return Source(module, present or readable[:1], path, images)


def with_parts(path: Path, format: str | Format, names: Sequence[str]) -> Source:
    unknown = sorted(set(names) - set(registry.known()))
    if unknown:
        raise BadInput(f"{unknown[0]!r} is not a part of an import; the parts are {', '.join(registry.known())}.")
    module, path = _recognised(path, format)
    ordered = tuple(name for name in registry.known() if name in names)
    return Source(module, ordered, path, path if path.is_dir() else path.parent)


def _recognised(path: Path, format: str | Format) -> tuple[Format, Path]:
    """The format, and the file or folder that it reads: if no format knows the folder, its only data file. A table that
    none knows is read by the map that is kept for its columns.
    """
    if not isinstance(format, str):
        return format, _only_table(path) or path if isinstance(format, Mapped) else path
    try:
        return formats.find(format, path), path
    except UnknownFormat as error:
        table = _only_table(path)
        if table is None:
            return _kept(error), path
        try:
            return (formats.find(format, table) if table != path else _kept(error)), table
        except UnknownFormat as unknown:
            return _kept(unknown), table


def _kept(unknown: UnknownFormat) -> Format:
    format = kept_maps.kept_for(first_names(unknown.path)) if unknown.columns else None
    if format is None:
        raise unknown
    return format


def _only_table(path: Path) -> Path | None:
    """The file, or the only data file of a folder."""
    if not path.is_dir():
        return path
    files = [file for file in sorted(path.iterdir()) if file.is_file() and file.suffix.lower() in ENDINGS]
    return files[0] if len(files) == 1 else None


def _holds(module: Format, name: str, path: Path) -> bool:
    """Whether the reader of this part finds a good row among the first ones."""
    try:
        return any(isinstance(row, Row) for row in islice(formats.reader(module, name)(path), LOOKED_AT))
    except BadFile:
        return False


@contextmanager
def open_source(path: Path, cancelled: Callable[[], bool] = never) -> Iterator[Path]:
    """The path, or the folder that a zip archive was unpacked to. Errors name places in the archive, not in that
    folder.
    """
    with _unpacked(path, cancelled=cancelled) as opened:
        try:
            yield opened
        except BadFile as error:
            if (where := place_as_sent(error.problem.where, opened, path)) == error.problem.where:
                raise
            raise BadFile(where, error.problem.reason) from None


def place_as_sent(where: Where, opened: Path, path: Path) -> Where:
    """A place in an archive unpacked to ``opened``, as its sender knows it."""
    if opened == path or not where.file.startswith(str(opened)):
        return where
    inside = where.file.removeprefix(str(opened)).strip("/")
    return where._replace(file=f"{path.name}/{inside}".rstrip("/"))


MAX_BYTES = 16 * 2**30
FREE = 256 * 2**20
BROKEN = (
    *(archives.zipfile.BadZipFile, archives.ZstdError, zlib.error, EOFError, struct.error),
    *(NotImplementedError, ValueError, OSError),
)
IGNORED = ("__MACOSX", ".DS_Store", "Thumbs.db")


@contextmanager
def _unpacked(path: Path, *, cancelled: Callable[[], bool]) -> Iterator[Path]:
    """The path itself or, for a zip archive, the folder it was unpacked to. Raises BadFile."""
    if not path.is_file() or kind_of(path) != "zip":
        yield path
        return
    with scratch.folder() as folder:
        yield unpack(path, folder / "unpacked", cancelled=cancelled)


def unpack(path: Path, into: Path, *, cancelled: Callable[[], bool] = never) -> Path:
    """Unpack into a new folder; returns it, or the single folder inside it that holds everything. Raises BadFile.

    Refused before anything is written: names that lead outside, links, duplicate names, nested archives, encrypted,
    overlapping or unusually compressed entries, too many entries, or an implausible total size.
    """
    try:
        with path.open("rb") as file:
            if fault := archives.directory_fault(file.fileno()):
                raise _bad(path, fault)
            with archives.zipfile.ZipFile(file) as archive:
                entries = _checked(path, archive.infolist())
                _room(path, into.parent, sum(entry.file_size for entry in entries.values()))
                into.mkdir(parents=True)
                for name, entry in entries.items():
                    if cancelled():
                        raise Cancelled
                    _extract(path, archive, entry, into / name)
    except BROKEN as error:
        raise _bad(path, f"is not a readable zip archive ({error})") from None
    return _top(into)


def _bad(path: Path, reason: str, entry: str = "") -> BadFile:
    return BadFile(path, f"{ascii(entry)[1:-1][:100]}: {reason}" if entry else reason)


def _checked(path: Path, infos: list[archives.zipfile.ZipInfo]) -> dict[str, archives.zipfile.ZipInfo]:
    """The files by the name they will get."""
    entries: dict[str, archives.zipfile.ZipInfo] = {}
    taken: set[str] = set()
    folders: set[str] = set()
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        name = info.orig_filename
        if info.header_offset < end:
            raise _bad(path, "overlaps another entry", name)
        end = info.header_offset + 30 + info.compress_size
        if fault := archives.name_fault(info) or archives.entry_fault(info):
            raise _bad(path, fault, name)
        if info.is_dir() or any(part in IGNORED for part in PurePosixPath(name).parts):
            continue
        if fault := archives.content_fault(info):
            raise _bad(path, fault, name)
        plain = unicodedata.normalize("NFC", str(PurePosixPath(name))).casefold()
        if plain in taken:
            raise _bad(path, "the name occurs twice", name)
        taken.add(plain)
        folders.update(str(parent) for parent in PurePosixPath(plain).parents)
        entries[str(PurePosixPath(name))] = info
    if "[content_types].xml" in taken:
        raise _bad(path, "is an Office document, which is not supported; save its table as CSV (UTF-8) and import that")
    for name in taken & folders:
        raise _bad(path, "is both a file and a folder", name)
    if not entries:
        raise _bad(path, "holds no files")
    return entries


def _room(path: Path, folder: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise _bad(path, f"would unpack to {size / 2**30:.0f} GB; at most {MAX_BYTES // 2**30}")
    if shutil.disk_usage(folder).free < size + FREE:
        raise _bad(path, f"would unpack to {size / 2**30:.1f} GB, more than the disk has free")


def _extract(path: Path, archive: archives.zipfile.ZipFile, info: archives.zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(info) as source, target.open("xb") as out:
        while block := source.read(2**18):
            nested = (b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!")
            if not written and block.startswith(nested) and not info.filename.lower().endswith(WORKBOOK):
                raise _bad(path, "is an archive inside the archive; unpack it first", info.filename)
            written += len(block)
            if written > info.file_size:
                break
            out.write(block)
    if written != info.file_size:
        raise _bad(path, "does not have the length that the archive states", info.filename)


def _top(folder: Path) -> Path:
    """Archives often hold a single folder that holds everything."""
    while True:
        inside = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        if len(inside) != 1 or not inside[0].is_dir():
            return folder
        folder = inside[0]
