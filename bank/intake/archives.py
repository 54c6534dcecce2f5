"""What a zip archive may hold: refused before any of it is unpacked."""

import contextlib
import os
import stat
import struct
import sys
from pathlib import Path, PurePosixPath
from xml.parsers import expat

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:  # the module of 3.14, which reads what Zstandard has compressed: Inspect's logs
    from backports.zstd import ZstdError, zipfile

__all__ = ["ZstdError", "zipfile"]

MAX_ENTRIES = 150_000
MAX_RATIO = 250  # deflate reaches 1,032 on zeros; text and tables stay below 50
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
MAX_WORKBOOK = 100 * 2**20  # bytes of what is in an Excel workbook, whose texts are read into memory
MAX_PART = 20 * 2**20  # bytes of a part of it that holds neither cells nor their texts
MOST_ROWS = 5 * 2**19  # of a sheet, or elements of its texts, of which Excel has up to 2**20
ROW = 3  # the depth of a row below the whole, and of what is in a text
PER_CELL = 4  # elements
PIECE = 2**16  # bytes
MOST_CELLS = 1_000  # in a row of a workbook
MOST_ELEMENTS = 50_000  # of a part that holds neither cells nor their texts
MOST_TAG = 2**20  # bytes of a tag
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD)


def directory_fault(file: int) -> str:
    """Why the directory of an open archive is refused, or "": it may name a million entries, so it is not parsed here.
    Reads only its end and its length.
    """
    size = os.fstat(file).st_size
    tail = os.pread(file, 65_557 + 20, max(0, size - 65_557 - 20))
    end, length = _end(tail)
    if end < 0:
        return "is not a readable zip archive: its end is missing; was it sent completely?"
    locator = tail[end - 20 : end] if end >= 20 else b""
    if locator.startswith(b"PK\x06\x07"):
        wide = os.pread(file, 56, struct.unpack_from("<Q", locator, 8)[0])
        if len(wide) == 56 and wide.startswith(b"PK\x06\x06"):
            length = max(length if length != 0xFFFFFFFF else 0, struct.unpack_from("<Q", wide, 40)[0])
    if length > 300 * MAX_ENTRIES:
        return f"holds too many files; at most {MAX_ENTRIES:,}"
    directory = os.pread(file, length + 1024, max(0, size - length - len(tail)))
    if directory.count(b"PK\x01\x02") > MAX_ENTRIES:
        return f"holds more than {MAX_ENTRIES:,} files"
    return ""


def _end(tail: bytes) -> tuple[int, int]:
    """Where the record at the end of an archive begins, -1 if it is not whole, and the length of its directory."""
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        return -1, 0
    return end, struct.unpack_from("<L", tail, end + 12)[0]


def is_workbook(path: Path) -> bool:
    """Whether the archive is an Excel workbook, by the names in its directory, whose end is read."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2**17))
        tail = file.read()
    end, length = _end(tail)
    return end >= 0 and b"xl/workbook.xml" in tail[max(0, end - length) : end]


def name_fault(info: zipfile.ZipInfo) -> str:
    """Why an entry's name is refused, or ""."""
    name = info.orig_filename
    parts = PurePosixPath(name).parts
    if "\x00" in name or "\\" in name or name != info.filename:
        return "a file name may not hold a backslash or NUL"
    if name.startswith("/") or ".." in parts or not parts or ":" in parts[0]:
        return "leads out of the archive"
    if len(name) > 500 or len(parts) > 20 or any(len(part.encode()) > 255 for part in parts):
        return "the file name is too long"
    return "a file name may not hold control characters" if any(ord(letter) < 32 for letter in name) else ""


def entry_fault(info: zipfile.ZipInfo) -> str:
    """Why an entry is refused whatever it contains, or ""."""
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or device, not a file"
    return "is encrypted; send it without a password" if info.flag_bits & 0x41 else ""


def content_fault(info: zipfile.ZipInfo) -> str:
    """Why a file's compressed content is refused, or ""."""
    if info.compress_type not in METHODS:
        return "uses an unsupported compression method; use plain zip (deflate) or Zstandard"
    if info.orig_filename.lower().endswith(ARCHIVES):
        return "is an archive inside the archive; unpack it first"
    if info.file_size > 2**20 and info.file_size > MAX_RATIO * max(1, info.compress_size):
        return f"would unpack to more than {MAX_RATIO} times its size"
    return ""


def workbook_fault(path: Path) -> str:
    """Why an Excel workbook is refused, or "": what it would take when it is read, many times its bytes, is counted."""
    with path.open("rb") as file:
        if fault := directory_fault(file.fileno()):
            return fault
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            for info in infos:
                if fault := entry_fault(info) or content_fault(info):
                    return fault
            if sum(info.file_size for info in infos) > MAX_WORKBOOK:
                return f"would unpack to more than {MAX_WORKBOOK // 2**20} MB; save its sheet as CSV (UTF-8)"
            return next(filter(None, (_part_fault(archive, info) for info in infos)), "")


def _part_fault(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Why a part of a workbook is refused, or "". What is no XML is not read as such by anybody else either."""
    counted = _Counted(info.file_size)
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = counted.doctype
    parser.StartElementHandler, parser.EndElementHandler = counted.start, counted.end
    fed = 0
    with archive.open(info) as part, contextlib.suppress(expat.ExpatError):
        while not counted.fault and (piece := part.read(PIECE)):
            parser.Parse(piece)
            fed += len(piece)
            if fed - parser.CurrentByteIndex > MOST_TAG:
                return f"holds a tag of more than {MOST_TAG // 2**20} MB"
    return counted.fault


class _Counted:
    """Counts the elements of a part: of one with cells or their texts, whose readers forget what is inside a row, the
    rows and what is in each; of others all.
    """

    def __init__(self, size: int) -> None:
        self.size, self.fault = size, ""
        self.depth = self.outside = self.inside = 0
        self.most = MOST_ELEMENTS

    def doctype(self, *about: object) -> None:
        self.fault = "declares entities, which no workbook needs"

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth == 1 and name.rpartition(":")[2] in ("worksheet", "sst"):
            self.most = MOST_ROWS
        elif self.depth == 1 and self.size > MAX_PART:
            self.fault = f"holds a part of more than {MAX_PART // 2**20} MB beside its sheets"
        if self.most == MOST_ROWS and self.depth > ROW:
            self.inside += 1
        else:
            self.outside += 1
        if self.inside > PER_CELL * MOST_CELLS:
            self.fault = f"has more than {MOST_CELLS:,} cells in a row"
        elif self.outside > self.most:
            self.fault = f"holds more than {self.most:,} elements in one part"

    def end(self, name: str) -> None:
        if self.depth == ROW:
            self.inside = 0
        self.depth -= 1
