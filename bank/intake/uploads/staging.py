"""The private folder of an upload: its files, lock, progress, cancel request and list of problems.

staged/<random>/files/...        what was sent, under its original names, encrypted
                plain/...        the same decrypted, while a worker reads it
                lock             locked through the operating system while a process works on the upload
                progress.json    how far the worker is
                cancel           exists once somebody asked to cancel
                problems.csv     every problem by row: place, field and reason, no content
                preview.json, preview/...  the first samples and their pictures
                columns.json     the columns of a table that a person names, with their first values

The JSON files are encrypted, too. With object storage all of it lies there but plain, and files/ is pieces/: what came
with each request, named by its offset, since nothing can be added to an object.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, groupby
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler
from django.db import connection

from bank import objects
from bank.database import execute
from bank.intake.formats.mapping import Column
from bank.intake.uploads import decrypted
from bank.models import Upload

MAX_FILES = 2_000
MAX_DEPTH = 12
PRIVATE = 0o700
BLOCK = 16  # bytes of AES
NONCE = 12  # bytes, of AES-GCM
LOCKS = 0x75706C64  # of PostgreSQL's advisory locks, those of uploads


class BadName(ValueError):
    """A file name that cannot be used; the message says why."""


class Busy(Exception):
    """Another process holds the upload."""


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
            for name, _ in upload.files:
                path = root / name
                path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
                path.touch(mode=0o600)
            for index, stretches in groupby(_stretches(upload, 0, _stored(upload)), key=lambda stretch: stretch[0]):
                with (root / upload.files[index][0]).open("wb") as file:
                    file.writelines(data for _, _, data in stretches)
            if len(upload.files) == 1:
                yield root / upload.files[0][0]
            else:
                tops = {name.partition("/")[0] for name, _ in upload.files}
                yield root / tops.pop() if len(tops) == 1 else root
        finally:
            shutil.rmtree(root, ignore_errors=True)


def stream_cipher(secret: str, index: int = 0, offset: int = 0) -> CipherContext:
    """AES-CTR (NIST SP 800-38A, 6.5) at an offset of a file: the counter is the file's index, then the block's."""
    counter = index.to_bytes(8, "big") + (offset // BLOCK).to_bytes(8, "big")
    stream = Cipher(algorithms.AES256(bytes.fromhex(secret)), modes.CTR(counter)).encryptor()
    stream.update(bytes(offset % BLOCK))
    return stream


def _stretches(upload: Upload, offset: int, pieces: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Pieces of the stream from an offset on, encrypted or decrypted: the index of the file, the place in it, and what
    is there.
    """
    starts, index = list(accumulate((size for _, size in upload.files), initial=0)), -1
    for piece in pieces:
        view = memoryview(piece)
        while view:
            at = bisect_right(starts, offset) - 1
            if at != index:
                stream, index = stream_cipher(upload.secret, at, offset - starts[at]), at
            part = view[: starts[at + 1] - offset]
            yield at, offset - starts[at], stream.update(part)
            offset, view = offset + len(part), view[len(part) :]


def _stored(upload: Upload) -> Iterator[bytes]:
    """What was written of the stream, in its order."""
    if away := objects.of("uploads"):
        files = (away.opened(entry.name) for entry in sorted(away.listed(f"{upload.folder}/pieces/")))
    else:
        files = ((folder(upload) / "files" / name).open("rb") for name, _ in upload.files)
    for file in files:
        with file:
            while piece := file.read(2**20):
                yield piece


def exists(upload: Upload, name: str = "lock") -> bool:
    """Whether the upload's folder, or a file in it, is there."""
    away = objects.of("uploads")
    return away.exists(f"{upload.folder}/{name}") if away else (folder(upload) / name).exists()


@contextlib.contextmanager
def writing(upload: Upload, name: str) -> Iterator[IO[bytes]]:
    """A file of the folder, there as a whole after the block."""
    if away := objects.of("uploads"):
        with io.BytesIO() as file:
            yield file
            away.put(f"{upload.folder}/{name}", file)
        return
    path = folder(upload) / name
    handle, draft = tempfile.mkstemp(dir=folder(upload))
    with os.fdopen(handle, "wb") as file:
        yield file
    path.parent.mkdir(mode=PRIVATE, exist_ok=True)
    os.replace(draft, path)


def reading(upload: Upload, name: str) -> IO[bytes]:
    """A file of the folder. Raises FileNotFoundError."""
    away = objects.of("uploads")
    return away.opened(f"{upload.folder}/{name}") if away else (folder(upload) / name).open("rb")


def remove_file(upload: Upload, name: str) -> None:
    if away := objects.of("uploads"):
        away.remove(f"{upload.folder}/{name}")
    else:
        (folder(upload) / name).unlink(missing_ok=True)


def make_folder(upload: Upload) -> None:
    """Create the folder with its files, still empty."""
    if objects.of("uploads"):
        with writing(upload, "lock"):
            return
    root = folder(upload)
    _make_private(root)
    (root / "lock").touch(mode=0o600)
    for name, _ in upload.files:
        path = root / "files" / name
        path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        path.touch(mode=0o600)


def _make_private(root: Path) -> None:
    for path in (settings.STAGED, root):  # those above would be made open to all
        path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def remove(upload: Upload, *, keep_problems: bool = False) -> None:
    """Remove the folder with its contents; with ``keep_problems`` everything but the list of problems."""
    root = folder(upload)
    if away := objects.of("uploads"):
        with contextlib.suppress(objects.Away):  # what stays is swept away
            for entry in list(away.listed(f"{upload.folder}/")):
                if not (keep_problems and entry.name.endswith(("/problems.csv", "/lock"))):
                    away.remove(entry.name)
    if away or not keep_problems:
        shutil.rmtree(root, ignore_errors=True)
        return
    for path in root.glob("*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name not in ("problems.csv", "lock"):
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


@contextlib.contextmanager
def locked(upload: Upload) -> Iterator[None]:
    """Hold the upload against every other process; a dying process lets go. Raises Busy, or FileNotFoundError."""
    if objects.of("uploads"):
        if not exists(upload):
            raise FileNotFoundError(upload.folder)
        if connection.vendor == "postgresql":  # others may be on other machines
            with _locked_in_database(upload):
                yield
            return
        _make_private(folder(upload))
        (folder(upload) / "lock").touch(mode=0o600)
    with (folder(upload) / "lock").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(upload.pk) from None
        yield


@contextlib.contextmanager
def _locked_in_database(upload: Upload) -> Iterator[None]:
    if not execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCKS, upload.pk]):
        raise Busy(upload.pk)
    try:
        yield
    finally:
        execute("SELECT pg_advisory_unlock(%s, %s)", [LOCKS, upload.pk])


def is_locked(upload: Upload) -> bool:
    """Whether a process works on it now."""
    try:
        with locked(upload):
            return False
    except Busy:
        return True
    except FileNotFoundError:
        return False


def write(upload: Upload, *, offset: int, pieces: Iterable[bytes], most: int) -> tuple[int, str]:
    """Write pieces of the file stream from ``offset`` on, encrypted, to where they stay; returns the number of bytes
    and their SHA-256.

    Accepts at most ``most`` bytes. Keeps one piece in memory.
    """
    digest, taken = hashlib.sha256(), 0

    def bounded() -> Iterator[bytes]:
        nonlocal taken
        for piece in pieces:
            piece = piece[: most - taken]
            digest.update(piece)
            taken += len(piece)
            yield piece

    stretches = _stretches(upload, offset, bounded())
    if away := objects.of("uploads"):
        settings.STAGED.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.STAGED) as file:
            file.writelines(data for _, _, data in stretches)
            file.seek(0)
            away.put(f"{upload.folder}/pieces/{offset:015}", file)
    else:
        for index, parts in groupby(stretches, key=lambda stretch: stretch[0]):
            with (folder(upload) / "files" / upload.files[index][0]).open("r+b") as file:
                for _, place, data in parts:
                    file.seek(place)
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
    return taken, digest.hexdigest()


def digest(upload: Upload) -> str:
    """SHA-256 of all files in order, read from where they stay."""
    sha256 = hashlib.sha256()
    for _, _, data in _stretches(upload, 0, _stored(upload)):
        sha256.update(data)
    return sha256.hexdigest()


def write_json(upload: Upload, name: str, value: Any) -> None:
    """Leave a JSON file for the pages, complete or not at all, sealed with the upload's key: it may hold answers."""
    nonce = os.urandom(NONCE)
    sealed = _seal(upload).encrypt(nonce, json.dumps(value, ensure_ascii=False).encode(), name.encode())
    with writing(upload, name) as file:
        file.write(nonce + sealed)


def read_json(upload: Upload, name: str) -> Any:
    """The JSON file of that name, or None."""
    try:
        with reading(upload, name) as file:
            kept = file.read()
        return json.loads(_seal(upload).decrypt(kept[:NONCE], kept[NONCE:], name.encode()))
    except (OSError, ValueError, InvalidTag):
        return None


def _seal(upload: Upload) -> AESGCM:
    return AESGCM(bytes.fromhex(upload.secret))


def request_cancel(upload: Upload) -> None:
    if exists(upload):
        with contextlib.suppress(FileNotFoundError), writing(upload, "cancel"):
            pass


def cancel_requested(upload: Upload) -> bool:
    return exists(upload, "cancel")


MANY = 300_000  # rows; SQLite takes about ten seconds to write them and blocks other writers meanwhile


def progress(upload: Upload) -> dict[str, Any]:
    """How far the worker is: ``{doing, phase, part, rows, of, percent}``; ``held``: one is working on it."""
    if not upload.is_worked:
        return {}
    progress = read_json(upload, "progress.json") or {}
    rows, total = progress.get("rows", 0), progress.get("of") or 0
    is_held, cancelling = is_locked(upload), cancel_requested(upload)
    return progress | {
        "doing": "Cancelling" if cancelling else _doing(upload, held=is_held, phase=progress.get("phase")),
        "held": is_held,
        "cancelling": cancelling,
        "percent": min(100.0, 100 * rows / total) if total else None,
    }


def _doing(upload: Upload, *, held: bool, phase: str | None) -> str:
    importing = upload.state == Upload.State.IMPORTING
    if not held:
        return "Waiting to be brought in" if importing else "Waiting to be checked"
    if phase in ("writing", "unpacking"):
        return phase.capitalize()
    return "Reading once more" if importing else "Checking every row"


def preview(upload: Upload) -> list[dict[str, Any]]:
    """The first samples as they will look."""
    return read_json(upload, "preview.json") or []


def columns(upload: Upload) -> tuple[int, list[Column]]:
    """How many rows the table holds, and its columns; none where nobody has to name them."""
    kept = read_json(upload, "columns.json") or {"rows": 0, "columns": []}
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
