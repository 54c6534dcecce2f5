"""The private folder of an upload: its files, and what a person downloads or looks at.

staged/<random>/pieces/...       what came with each request, encrypted; the upload's row knows their order
                plain/...        the files under their original names, while a worker reads them
                problems.csv     every problem by row: place, field and reason, no content
                preview/...      small pictures of the first samples

With object storage all of it lies there but plain.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler
from django.db import connection

from bank import objects
from bank.errors import BadInput
from bank.intake.formats.mapping import Column
from bank.intake.uploads import decrypted
from bank.models import Upload

MAX_FILES = 2_000
MAX_DEPTH = 12
PRIVATE = 0o700
BLOCK = 16  # bytes of AES


class BadName(ValueError):
    """A file name that cannot be used; the message says why."""


def folder(upload: Upload) -> Path:
    return Path(settings.STAGED, upload.folder)


def plain(upload: Upload) -> Path:
    return folder(upload) / decrypted.NAME


@contextlib.contextmanager
def opened(upload: Upload) -> Iterator[Path]:
    """The one file that was sent, or the folder of several: the one that holds them all, if they share one.

    They can be read while the block runs. Only the process that holds the upload may open it.
    """
    root = plain(upload)
    _make_private(folder(upload))
    with decrypted.held(folder(upload)):
        shutil.rmtree(root, ignore_errors=True)  # left by a killed worker
        try:
            _write_files(upload, root)
            if len(upload.files) == 1:
                yield root / upload.files[0][0]
            else:
                tops = {name.partition("/")[0] for name, _ in upload.files}
                yield root / tops.pop() if len(tops) == 1 else root
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _write_files(upload: Upload, root: Path) -> None:
    stream, here = _stream(upload), memoryview(b"")
    for name, size in upload.files:
        path = root / name
        path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("wb") as file:
            while size:
                here = here or memoryview(next(stream))
                part, here = here[:size], here[size:]
                size -= file.write(part)


def _stream(upload: Upload) -> Iterator[bytes]:
    """What came in, decrypted. Raises BadInput where it is not there as a whole."""
    left = upload.size
    try:
        for name in upload.pieces:
            stream = stream_cipher(upload.secret, name)
            with reading(upload, f"pieces/{name}") as file:
                while piece := file.read(2**20):
                    left -= len(piece)
                    yield stream.update(piece)
    except FileNotFoundError:
        pass
    if left:
        raise BadInput("Its files are gone from this machine. Send them again.")


def stream_cipher(secret: str, name: str = "00" * BLOCK) -> CipherContext:
    """AES-CTR (NIST SP 800-38A, 6.5) from a counter that is the name of the piece, which nothing else has; from 0 for
    a key that seals one file.
    """
    return Cipher(algorithms.AES256(bytes.fromhex(secret)), modes.CTR(bytes.fromhex(name))).encryptor()


def exists(upload: Upload, name: str) -> bool:
    """Whether a file of the folder is there."""
    away = objects.of("uploads")
    return away.exists(f"{upload.folder}/{name}") if away else (folder(upload) / name).exists()


@contextlib.contextmanager
def writing(upload: Upload, name: str) -> Iterator[IO[bytes]]:
    """A file of the folder, there as a whole after the block."""
    if away := objects.of("uploads"):
        settings.STAGED.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.STAGED) as file:
            yield file
            file.seek(0)
            away.put(f"{upload.folder}/{name}", file)
        return
    path = folder(upload) / name
    _make_private(folder(upload))
    path.parent.mkdir(mode=PRIVATE, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder(upload), delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def reading(upload: Upload, name: str) -> IO[bytes]:
    """A file of the folder. Raises FileNotFoundError."""
    away = objects.of("uploads")
    return away.opened(f"{upload.folder}/{name}") if away else (folder(upload) / name).open("rb")


def remove_file(upload: Upload, name: str) -> None:
    if away := objects.of("uploads"):
        away.remove(f"{upload.folder}/{name}")
    else:
        (folder(upload) / name).unlink(missing_ok=True)


def _make_private(root: Path) -> None:
    for path in (settings.STAGED, root):  # those above would be made open to all
        path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def remove(upload: Upload, *, keep_problems: bool = False) -> None:
    """Remove the folder with its contents; with ``keep_problems`` everything but the list of problems."""
    root = folder(upload)
    if away := objects.of("uploads"):
        with contextlib.suppress(objects.Away):  # what stays is swept away
            for entry in list(away.listed(f"{upload.folder}/")):
                if not (keep_problems and entry.name.endswith("/problems.csv")):
                    away.remove(entry.name)
    if away or not keep_problems:
        shutil.rmtree(root, ignore_errors=True)
        return
    for path in root.glob("*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != "problems.csv":
            path.unlink(missing_ok=True)


def checked_name(name: str) -> str:
    """A path below the upload's folder, as it was sent. Raises BadName if it could lead elsewhere or is invalid."""
    if not isinstance(name, str) or not name:
        raise BadName("A file has no name.")
    shown = name.encode("ascii", "backslashreplace").decode()[:80]
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise BadName(f"The name {shown} holds half of a character.") from None
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name) or "\\" in name or ":" in name:
        raise BadName(f"The name {shown} holds a character that names may not have (control, \\ or :).")
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or PurePosixPath(name).is_absolute():
        raise BadName(f"The name {shown} leads out of its folder.")
    if len(parts) > MAX_DEPTH or len(encoded) > 1000 or any(len(part.encode()) > 200 for part in parts):
        raise BadName(f"The name {shown} is too long.")
    return name


def checked_names(names: Iterable[str]) -> list[str]:
    """All names, none twice (ignoring case), none both a file and a folder. Raises BadName."""
    taken: set[str] = set()
    checked = [checked_name(name) for name in names]
    for name in checked:
        if name.casefold() in taken:
            raise BadName(f"Two files have the name {name[:80]}.")
        taken.add(name.casefold())
    for name in checked:
        for above in PurePosixPath(name.casefold()).parents:
            if str(above) in taken:
                raise BadName(f"{str(above)[:80]} is both a file and a folder.")
    return checked


def write(upload: Upload, *, pieces: Iterable[bytes], most: int) -> tuple[str, int, str]:
    """Store pieces of the stream, encrypted, where they stay; returns their name, the number of bytes and their
    SHA-256.

    Accepts at most ``most`` bytes. Keeps one piece in memory.
    """
    name, digest, taken = secrets.token_hex(BLOCK), hashlib.sha256(), 0
    stream = stream_cipher(upload.secret, name)
    with writing(upload, f"pieces/{name}") as file:
        for piece in pieces:
            piece = piece[: most - taken]
            digest.update(piece)
            taken += len(piece)
            file.write(stream.update(piece))
    return name, taken, digest.hexdigest()


def digest(upload: Upload) -> str:
    """SHA-256 of all files in order, read from where they stay."""
    sha256 = hashlib.sha256()
    for piece in _stream(upload):
        sha256.update(piece)
    return sha256.hexdigest()


MANY = 300_000  # rows; SQLite takes about ten seconds to write them and blocks other writers meanwhile


def progress(upload: Upload) -> dict[str, Any]:
    """How far the worker is: ``{doing, phase, part, rows, of, percent}``; ``held``: one is working on it."""
    if not upload.is_worked:
        return {}
    rows, total = upload.progress.get("rows", 0), upload.progress.get("of") or 0
    return upload.progress | {
        "doing": "Cancelling" if upload.cancelling else _doing(upload, phase=upload.progress.get("phase")),
        "held": upload.is_held,
        "cancelling": upload.cancelling,
        "percent": min(100.0, 100 * rows / total) if total else None,
    }


def _doing(upload: Upload, *, phase: str | None) -> str:
    importing = upload.state == Upload.State.IMPORTING
    if not upload.is_held:
        return "Waiting to be brought in" if importing else "Waiting to be checked"
    if phase in ("writing", "unpacking"):
        return phase.capitalize()
    return "Reading once more" if importing else "Checking every row"


def preview(upload: Upload) -> list[dict[str, Any]]:
    """The first samples as they will look."""
    return upload.shown.get("preview", [])


def columns(upload: Upload) -> tuple[int, list[Column]]:
    """How many rows the table holds, and its columns; none where nobody has to name them."""
    kept = upload.shown.get("columns", {"rows": 0, "columns": []})
    return kept["rows"], [Column(**column) for column in kept["columns"]]


def others_wait(upload: Upload) -> bool:
    """Whether annotators would notice the import."""
    rows = sum(part["rows"] - part["unchanged"] for part in upload.found.get("counted", []))
    return connection.vendor == "sqlite" and rows > MANY


class UnnamedUploadedFile(TemporaryUploadedFile):
    """A form's file on the uploads disk but without a name: nothing of it remains after the request."""

    def __init__(self, name: str, content_type: str, charset: str | None) -> None:
        file = tempfile.TemporaryFile(dir=settings.STAGED)  # noqa: SIM115 (closed with the request)
        UploadedFile.__init__(self, file, name, content_type, 0, charset)


class SignedInUploadHandler(TemporaryFileUploadHandler):
    """Accepts files only from signed-in users and only up to the limit, checked before a byte is written."""

    def handle_raw_input(self, input_data: Any, META: Any, content_length: int, *args: Any, **kwargs: Any) -> None:
        if content_length > settings.UPLOAD_LIMIT + 2**20:
            raise RequestDataTooBig("The files are larger than what can be sent here.")

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        user = getattr(self.request, "user", None)
        if user is None or not user.is_authenticated:
            raise SuspiciousOperation("Sign in to send files.")
        FileUploadHandler.new_file(self, *args, **kwargs)
        settings.STAGED.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.file = UnnamedUploadedFile(self.file_name or "", self.content_type or "", self.charset)
