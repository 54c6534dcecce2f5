"""Writes to uploads: started, received piece by piece, confirmed, cancelled, swept away."""

import hmac
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone

from accounts.jobs import defer
from accounts.models import User
from accounts.rules import allowed
from bank import objects
from bank.errors import BadInput
from bank.intake.formats.mapping import ColumnMap
from bank.intake.formats.reading import is_whole
from bank.intake.imports import scratch, writer
from bank.intake.uploads import decrypted, staging
from bank.models import Upload
from bank.samples.benchmarks import find_benchmark

CHUNK = 8 * 2**20  # the size of a browser's pieces
MAX_CHUNK = 64 * 2**20
MOST_PIECES = 20_000  # of one upload: each is a file and a name in its row
PIECE = 256 * 2**10  # the most in memory at once
KEPT = timedelta(hours=24)  # how long files wait for confirmation, and problem lists are kept
SPARE = 256 * 2**20  # bytes that stay free on the disk
SHA256 = re.compile(r"[0-9a-f]{64}")


class WrongOffset(Exception):
    """A piece that does not start where the last one ended; ``received`` says where it should."""

    def __init__(self, received: int) -> None:
        super().__init__(f"The next piece begins at byte {received}.")
        self.received = received


class WrongState(Exception):
    """The upload is past the requested step, or not there yet."""


def start(*, by: User, files: Sequence[tuple[str, int]], sha256: str = "", benchmark: str = "") -> Upload:
    """Start an upload of these files (path, bytes), whose content arrives as one stream in this order. Raises BadInput.

    ``sha256`` is the digest of the whole stream, if the sender knows it; it is verified at the end. ``benchmark``, SLUG
    or SLUG@VERSION, is the stored one that they are first checked for; who curates single benchmarks must name one.
    """
    if not allowed(by, "write-bank", of=benchmark or None):
        raise BadInput("Name a benchmark that you curate: its samples are what you can bring in.")
    choices = _choices_of(benchmark) if benchmark else {}
    names, size = _checked_files(files)
    if sha256 and not SHA256.fullmatch(sha256):
        raise BadInput("sha256 is 64 characters from 0-9 and a-f.")
    settings.STAGED.mkdir(mode=staging.PRIVATE, parents=True, exist_ok=True)
    needed = 0 if objects.of("uploads") else 2 * size  # a worker reads an unencrypted copy
    if shutil.disk_usage(settings.STAGED).free < needed + SPARE:
        raise BadInput("There is no room on the disk for it. Ask whoever runs this site.")
    return Upload.objects.create(
        by=by,
        name=_name_of(names),
        files=[list(pair) for pair in zip(names, (size for _, size in files), strict=True)],
        size=size,
        sha256=sha256,
        choices=choices,
        folder=secrets.token_hex(16),
        secret=secrets.token_hex(32),
    )


def _checked_files(files: Sequence[tuple[str, int]]) -> tuple[list[str], int]:
    """Their paths, and how many bytes they have together. Raises BadInput."""
    if not files:
        raise BadInput("There is no file in it.")
    if len(files) > staging.MAX_FILES:
        raise BadInput(f"{len(files):,} files are more than {staging.MAX_FILES:,}. Send them as one zip.")
    if any(not is_whole(size) or size < 0 for _, size in files):
        raise BadInput("Say of each file how many bytes it has.")
    try:
        names = staging.checked_names(name for name, _ in files)
    except staging.BadName as error:
        raise BadInput(str(error)) from None
    size = sum(size for _, size in files)
    if size == 0:
        raise BadInput(f"{_name_of(names)} is empty." if len(files) == 1 else "All of these files are empty.")
    if size > settings.UPLOAD_LIMIT:
        raise BadInput(
            f"{_megabytes(size)} are more than the {_megabytes(settings.UPLOAD_LIMIT)} that can be sent here. "
            "Import it on the machine itself, with manage.py import_benchmark."
        )
    return names, size


def receive(*, upload: Upload, offset: int, length: int, pieces: Iterable[bytes], sha256: str = "") -> Upload:
    """Accept the piece of the stream that starts at ``offset``; receiving it again changes nothing.

    What was received is on disk when this returns. A piece that ends early counts as far as it came, unless it was sent
    with a digest. Raises WrongOffset, WrongState, BadInput.
    """
    if not 0 < length <= MAX_CHUNK:
        raise BadInput(f"A piece has from 1 byte to {MAX_CHUNK // 2**20} MB.")
    upload.refresh_from_db()
    if upload.has_ended:
        raise WrongState("This upload has ended.")
    if upload.received >= offset + length and offset >= 0:
        return upload  # the reply was lost, so the piece came again
    if upload.state != Upload.State.RECEIVING:
        raise WrongState("This upload takes no more pieces.")
    if offset != upload.received:
        raise WrongOffset(upload.received)
    if offset + length > upload.size:
        raise BadInput("This is more than was announced.")
    if len(upload.pieces) >= MOST_PIECES:
        raise BadInput(f"It came in {MOST_PIECES:,} pieces already. Send it again in larger ones.")
    try:
        name, written, digest = staging.write(upload, pieces=pieces, most=length)
    except FileNotFoundError:  # it was cancelled while the piece came in, and its folder is gone
        raise WrongState("This upload has ended.") from None
    if sha256 and not hmac.compare_digest(sha256.lower(), digest):
        staging.remove_file(upload, f"pieces/{name}")
        raise BadInput("The piece came in damaged (its SHA-256 is another). Send it again.")
    return _received(upload, name, written)


def _received(upload: Upload, name: str, written: int) -> Upload:
    """Count a stored piece, unless the upload was cancelled or went on by another request while it came in."""
    so_far = Upload.objects.filter(pk=upload.pk, state=Upload.State.RECEIVING, received=upload.received)
    received = upload.received + written
    state = Upload.State.RECEIVED if received == upload.size else Upload.State.RECEIVING
    pieces = [*upload.pieces, name] if written else upload.pieces
    counted = so_far.update(received=received, pieces=pieces, state=state, changed_at=timezone.now())
    if not (counted and written):
        staging.remove_file(upload, f"pieces/{name}")
    upload.refresh_from_db()
    if not counted:
        if upload.has_ended:
            staging.remove(upload)
            raise WrongState("This upload was cancelled.")
        if upload.received >= received:
            return upload
        raise WrongOffset(upload.received)
    if state == Upload.State.RECEIVED:
        defer("work_uploads")
    return upload


def receive_form(*, by: User, files: Sequence[UploadedFile], benchmark: str = "") -> Upload:
    """The whole upload at once, as a plain form sends it. Raises BadInput."""
    upload = start(by=by, files=[(_last(file.name), file.size or 0) for file in files], benchmark=benchmark)
    try:
        pieces = (piece for file in files for piece in file.chunks(PIECE))
        name, written, _ = staging.write(upload, pieces=pieces, most=upload.size)
        return _received(upload, name, written)
    except BaseException:
        cancel(upload=upload)
        raise


GO_ON = "go_on"  # a choice: bring the files in after the check if it finds nothing that a person must see


def check(*, upload: Upload, choices: dict[str, Any]) -> None:
    """Have the files checked (again) with these choices. Raises WrongState."""
    _step(upload, Upload.State.CHECKED, Upload.State.RECEIVED, choices=choices)


def name_columns(*, upload: Upload, map: ColumnMap, keep: bool) -> None:
    """Have the files checked as a table whose columns hold this. ``keep``: once it is in, the map is kept for files
    with the same columns. Raises WrongState.
    """
    chosen = {name: value for name, value in upload.choices.items() if name not in ("parts", "skip_bad", GO_ON)}
    values = {"map": map.model_dump(exclude_defaults=True), "keeps_map": keep, "choices": chosen}
    named = (Upload.State.MAPPING, Upload.State.CHECKED)
    _step(upload, upload.state if upload.state in named else named[0], Upload.State.RECEIVED, **values)


def confirm(*, upload: Upload, choices: dict[str, Any]) -> None:
    """Have the files imported as they were checked. Raises WrongState."""
    _step(upload, Upload.State.CHECKED, Upload.State.IMPORTING, choices=choices)


def cancel(*, upload: Upload) -> bool:
    """End the upload and remove its files. True if it has ended; False if its worker was asked to end it and soon will.

    Raises WrongState if it has ended already.
    """
    if upload.has_ended:
        raise WrongState("This upload has ended already.")
    this = Upload.objects.filter(pk=upload.pk)
    begun = this.filter(state__in=Upload.WORKED, tries__gt=0)
    idle = this.exclude(state__in=Upload.ENDED).exclude(state__in=Upload.WORKED, tries__gt=0)
    ended = idle.update(state=Upload.State.CANCELLED, changed_at=timezone.now(), **Upload.AT_THE_END)
    if ended:
        staging.remove(upload)
    elif begun.update(cancelling=True):
        defer("work_uploads")  # it may have died
    upload.refresh_from_db()
    return bool(ended)


def sweep(*, now: Any = None) -> int:
    """End uploads that nobody continued for a day and remove the folders of ended ones; returns how many.

    Also removes what a killed import unpacked and stored.
    """
    scratch.sweep()
    decrypted.remove_left()
    writer.sweep()
    deadline = (now or timezone.now()) - KEPT
    swept = 0
    forgotten = (Upload.State.RECEIVING, Upload.State.MAPPING, Upload.State.CHECKED)
    for upload in Upload.objects.filter(state__in=forgotten, changed_at__lt=deadline):
        cancel(upload=upload)
        Upload.objects.filter(pk=upload.pk).update(fault="Nobody went on with it for a day, so its files were removed.")
        swept += 1
    for upload in Upload.objects.filter(state__in=Upload.ENDED, changed_at__lt=deadline):
        if staging.folder(upload).exists():
            staging.remove(upload)
            swept += 1
    return swept + _sweep_unknown(deadline.timestamp())


def _sweep_unknown(deadline: float) -> int:
    """Remove folders and files that belong to no upload: a process died before it could record them."""
    folders = set(Upload.objects.open().values_list("folder", flat=True))
    folders |= set(Upload.objects.filter(changed_at__gte=timezone.now() - KEPT).values_list("folder", flat=True))
    if away := objects.of("uploads"):
        for entry in list(away.listed()):
            if entry.name.partition("/")[0] not in folders and entry.changed.timestamp() < deadline:
                away.remove(entry.name)
    if not settings.STAGED.is_dir():
        return 0
    unknown = [path for path in settings.STAGED.iterdir() if path.name not in folders]
    old = [path for path in unknown if path.lstat().st_mtime < deadline]
    for path in old:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(old)


def limit() -> str:
    """The largest upload, in words."""
    size = settings.UPLOAD_LIMIT
    return f"{size / 2**30:g} GB" if size >= 2**30 else _megabytes(size)


def pieces_of(stream: Any, length: int) -> Iterator[bytes]:
    """A request's body in small pieces."""
    while length > 0 and (piece := stream.read(min(PIECE, length))):
        length -= len(piece)
        yield piece


def _step(upload: Upload, state_before: str, state_after: str, **values: Any) -> None:
    if not upload.move(state_before, state_after, tries=0, **values):
        raise WrongState("This upload has gone on meanwhile; look at where it stands.")
    defer("work_uploads")
    upload.refresh_from_db()


def _choices_of(benchmark: str) -> dict[str, str]:
    stored = find_benchmark(benchmark)
    return {"benchmark": stored.slug, "version": stored.version, "title": stored.title, "visibility": stored.visibility}


def _name_of(names: Sequence[str]) -> str:
    """The name of a single file; for several files the folder they share, or the first one and the number of others."""
    if len(names) == 1:
        return names[0].rpartition("/")[2][:255]
    tops = {name.partition("/")[0] for name in names}
    if len(tops) == 1:
        return tops.pop()[:255]
    return f"{names[0][:200]} and {len(names) - 1} more"


def _last(name: str | None) -> str:
    return (name or "").replace("\\", "/").rpartition("/")[2]


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MB"
