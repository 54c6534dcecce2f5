"""Files that leave: a small one is sent while it is made, a large one written by a worker and kept for a day (ADR 43).

Who asked for a file may download it, alone, and only as long as they have the right to it: what makes the file is asked
for it again when a worker writes it and at each download. It lies sealed with a key of its own.
"""

import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import audit, jobs, notices
from accounts.http import attached
from accounts.models import User
from bank import guard, objects
from bank.errors import BadInput, outage
from bank.intake import registry
from bank.intake.exports import ZIP
from bank.intake.huggingface import tables_of
from bank.intake.uploads.staging import PRIVATE, stream_cipher
from bank.models import Benchmark, ExportFile, SampleImage

log = logging.getLogger(__name__)
MANY = 50_000  # rows of a file that a worker writes
MANY_PICTURES = 1_000
KEPT = timedelta(days=1)
MOST_WAITING = 5  # files of one person
TRIES = 3
AGAIN = timedelta(minutes=1)
PIECE = 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Download:
    """A file that leaves, of which nothing is read yet. ``pieces`` makes it, and may raise BadInput; ``reason``: why
    hidden text leaves in it, where it does.
    """

    name: str
    content: str  # media type
    pieces: Callable[[], Iterator[bytes]]
    is_large: Callable[[], bool]
    reason: str = ""


class Stopped(Exception):
    """The worker is to stop."""


def give(maker: str, by: User, asked: dict[str, Any], *, later: bool = False) -> StreamingHttpResponse | ExportFile:
    """A file while it is made; a large one, or any that is wanted ``later``, is what a worker will write. Raises
    PermissionDenied, Http404, BadInput.
    """
    file = _described(maker, by, asked)
    return _ask(maker, by, asked, file) if later or file.is_large() else _sent(file)


def _described(maker: str, by: User, asked: dict[str, Any]) -> Download:
    """A file, by the name of what makes it, which asks the right to it. Raises PermissionDenied, Http404, BadInput."""
    made: Download = import_string(registry.DOWNLOADS[maker])(by, asked)
    return made


def _sent(file: Download) -> StreamingHttpResponse:
    return attached(StreamingHttpResponse(file.pieces(), content_type=file.content), file.name, kept=False)


def has_many(rows: QuerySet[Any], most: int) -> bool:
    return rows.order_by()[: most + 1].count() > most


def is_large(what: str, benchmark: Benchmark, shape: str, *, pictures: bool) -> bool:
    """Whether the file of a table, or of all, has many rows or holds many pictures."""
    tables = tables_of(what)
    with_pictures = pictures or ("samples" in tables and registry.SHAPES[shape].content == ZIP)
    if with_pictures and has_many(SampleImage.objects.filter(sample__benchmark=benchmark), MANY_PICTURES):
        return True
    with guard.working():
        for model, path in (registry.ROWS[table] for table in tables):
            if has_many(apps.get_model(model)._base_manager.filter(**{path: benchmark}), MANY):
                return True
    return False


# ---- asked for ----


@transaction.atomic
def _ask(maker: str, by: User, asked: dict[str, Any], file: Download) -> ExportFile:
    """Have a worker write it, unless it waits already. Raises BadInput if too many wait."""
    waiting = list(ExportFile.objects.filter(by=by, state=ExportFile.State.WAITING))
    for row in waiting:
        if (row.maker, row.asked) == (maker, asked):
            return row
    if len(waiting) >= MOST_WAITING:
        raise BadInput(f"{MOST_WAITING} files are being written for you. Wait for one of them.")
    row = ExportFile.objects.create(by=by, maker=maker, asked=asked, name=file.name)
    jobs.defer("write_exports")
    return row


# ---- written ----


def write_all() -> None:
    """Write the files that wait, and remove old ones: a job. Raises what may be over soon: a full disk, a storage or
    database that does not answer.
    """
    remove_old()
    try:
        for row in ExportFile.objects.filter(state=ExportFile.State.WAITING).order_by("pk"):
            _write(row)
    except Stopped:
        log.info("The worker stops; the next one writes the exports")


def _write(row: ExportFile) -> None:
    place, secret = secrets.token_hex(16), secrets.token_hex(32)
    ExportFile.objects.filter(pk=row.pk).update(tries=row.tries + 1)
    try:
        if row.tries >= TRIES:
            raise BadInput(f"The worker was stopped {TRIES} times while it wrote this. Ask for less in one file.")
        with guard.serving(lambda: row.by):
            size = _store(place, secret, _described(row.maker, row.by, row.asked).pieces())
    except Exception as error:
        if isinstance(error, Stopped) or outage(error):
            ExportFile.objects.filter(pk=row.pk).update(tries=row.tries)
            jobs.defer("write_exports", not_before=timezone.now() + AGAIN)
            raise
        _end(row, state=ExportFile.State.FAILED, fault=_words(error, row))
        return
    if not _end(row, state=ExportFile.State.READY, size=size, place=place, secret=secret):
        _remove(place)  # another worker was faster


def _words(error: Exception, row: ExportFile) -> str:
    if isinstance(error, BadInput | LookupError):
        return str(error)
    if isinstance(error, PermissionDenied | Http404):
        return "You have no right to it any more, or it is not there."
    log.exception("Export %s failed", row.pk)
    return "An error of this site stopped it. Whoever runs the site finds the cause in the worker's log."


@transaction.atomic
def _end(row: ExportFile, **values: Any) -> bool:
    """Note how it ended and tell who asked, unless another worker has."""
    waiting = ExportFile.objects.filter(pk=row.pk, state=ExportFile.State.WAITING)
    if not waiting.update(ended_at=timezone.now(), **values):
        return False
    text = f"{row.name} is ready." if values["state"] == ExportFile.State.READY else f"{row.name} was not written."
    notices.tell(row.by, key=f"export-{row.pk}", text=text, link=reverse("bank:exports"))
    return True


def _store(place: str, secret: str, pieces: Iterator[bytes]) -> int:
    """Seal and keep a file; returns its size in bytes. Raises Stopped, OSError."""
    away, path = objects.of("exports"), settings.EXPORTS / place
    settings.EXPORTS.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    stream, size = stream_cipher(secret), 0
    try:
        with tempfile.TemporaryFile(dir=settings.EXPORTS) if away else path.open("xb") as file:
            for piece in pieces:
                if jobs.STOPPING.is_set():
                    raise Stopped
                size += file.write(stream.update(piece))
            file.flush()
            if away:
                file.seek(0)
                away.put(place, file)
            else:
                os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return size


# ---- downloaded ----


def downloaded(row: ExportFile) -> HttpResponseBase:
    """A file that is ready; hidden text that leaves is logged. Raises Http404, PermissionDenied and BadInput where it
    may not be had any more.
    """
    if row.state != ExportFile.State.READY:
        raise Http404("not written")
    file = _described(row.maker, row.by, row.asked)
    try:
        pieces = _read(row)
    except FileNotFoundError:
        raise BadInput("The file is not here any more. Ask for it again.") from None
    if file.reason:
        audit.record("criteria-exported", by=row.by, about=row.name, reason=file.reason)
    answer = _sent(replace(file, pieces=lambda: pieces))
    answer["Content-Length"] = str(row.size)
    return answer


def _read(row: ExportFile) -> Iterator[bytes]:
    away, stream = objects.of("exports"), stream_cipher(row.secret)
    if away:
        return map(stream.update, away.pieces(row.place, PIECE))
    file = (settings.EXPORTS / row.place).open("rb")

    def pieces() -> Iterator[bytes]:
        with file:
            while piece := file.read(PIECE):
                yield stream.update(piece)

    return pieces()


# ---- removed ----


def remove_old() -> None:
    """Remove the files that were kept for a day, and what dead workers left."""
    before = timezone.now() - KEPT
    for row in ExportFile.objects.filter(Q(ended_at__lt=before) | Q(ended_at=None, created_at__lt=before - KEPT)):
        row.delete()
        if row.place:
            _remove(row.place)
    known = set(ExportFile.objects.values_list("place", flat=True))
    for place, changed in _stored():
        if place not in known and changed < before.timestamp():
            _remove(place)


def _stored() -> Iterator[tuple[str, float]]:
    """The files that are kept, and when each was changed."""
    if away := objects.of("exports"):
        yield from [(entry.name, entry.changed.timestamp()) for entry in away.listed()]
    elif settings.EXPORTS.is_dir():
        yield from [(path.name, path.stat().st_mtime) for path in settings.EXPORTS.iterdir()]


def _remove(place: str) -> None:
    if away := objects.of("exports"):
        away.remove(place)
    else:
        (settings.EXPORTS / place).unlink(missing_ok=True)
