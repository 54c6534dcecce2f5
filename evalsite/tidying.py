"""Data that grow in an installation: how much of them there is, and what of them may go."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet, Sum
from django.utils import timezone

from accounts.models import AuditEntry, Delivery, Mail, Notice, Session, Token
from bank import guard, media, objects
from bank.models import CriteriaAccess, ExportFile
from judging.models import Attempt, Judgment, Run
from leaderboard.models import HourlyValue, PreparedPage

KEEP_DELIVERIES_DAYS = 30
KEEP_PAGES_DAYS = 7


@dataclass(frozen=True, slots=True)
class Heap:
    """Rows or files of one kind. ``goes``: how many of them may go; ``clear`` removes them, None where nothing does."""

    name: str
    count: int
    size: int | None  # bytes, of files
    rule: str  # what stays, in words
    goes: int = 0
    clear: Callable[[], object] | None = None


def heaps() -> Iterator[Heap]:
    """Everything that grows by itself, the largest kinds of it first."""
    with guard.working():
        yield _rows("judgments", Judgment.objects.all(), "kept")
        yield _rows("entries of the audit log", AuditEntry.objects.all(), "kept")
        yield _rows("readings of criteria", CriteriaAccess.objects.all(), "kept")
        yield _rows("mails that wait", Mail.objects.all(), "until they are sent or given up")
        yield _rows(
            "sessions", Session.objects.all(), "until they end", Session.objects.filter(expire_date__lt=timezone.now())
        )
        ended = Token.objects.filter(expiry__lt=timezone.now())
        yield _rows("tokens", Token.objects.all(), "until they end, or are revoked", ended)
        told = Delivery.objects.all()
        yield _aged("deliveries to webhooks", told, told, KEEP_DELIVERIES_DAYS, "created_at", "in their log")
        notices, calls = Notice.objects.all(), Attempt.objects.all()
        yield _aged("notices", notices, notices, settings.KEEP_NOTICES_DAYS, "read_at", "once read")
        over = calls.filter(run__state__in=Run.ENDED)
        pages = PreparedPage.objects.all()
        yield _aged("prepared pages", pages, pages, KEEP_PAGES_DAYS, "asked_at", "then they are drawn anew")
        hourly = HourlyValue.objects.all()
        yield _aged("parts of boards", hourly, hourly, KEEP_PAGES_DAYS, "at", "then they are computed anew")
        yield _aged("calls without a verdict", calls, over, settings.KEEP_CALLS_DAYS, "at", "of runs that have ended")
    pictures = [size for _, size in media.sizes()]
    yield Heap("pictures", len(pictures), sum(pictures), "kept")
    yield _files("corrupted pictures", settings.CORRUPTED_FOLDER, "up to CORRUPTED_BYTES, the oldest go by themselves")
    if away := objects.of("uploads"):
        sizes = [entry.size for entry in away.listed()]
        yield Heap("uploads in object storage", len(sizes), sum(sizes), "a day after nobody went on, at the latest")
    yield _files("uploads", settings.STAGED, "until they end, or a day after nobody went on: the worker sees to it")
    kept = ExportFile.objects.aggregate(n=Count("pk"), size=Sum("size", default=0))
    yield Heap("exports", kept["n"], kept["size"], "a day: the worker sees to it")
    if connection.vendor == "sqlite":
        size = Path(connection.settings_dict["NAME"]).stat().st_size
        yield Heap("database", 1, size, "`manage.py rotate_criteria_key --compact` gives back what is free in it")


def clear() -> None:
    """Remove what may go."""
    for heap in heaps():
        if heap.clear:
            heap.clear()


def free() -> int:
    """Bytes that are free in the data folder."""
    return shutil.disk_usage(settings.DATA).free


def _rows(name: str, rows: QuerySet[Any], rule: str, going: QuerySet[Any] | None = None) -> Heap:
    if going is None:
        return Heap(name, rows.count(), None, rule)
    return Heap(name, rows.count(), None, rule, going.count(), going.delete)


def _aged(name: str, rows: QuerySet[Any], ended: QuerySet[Any], days: int, column: str, which: str) -> Heap:
    """Rows of which those that have ended go some days after a time in a column; 0 days keep them."""
    if not days:
        return _rows(name, rows, "kept")
    old = ended.filter(**{f"{column}__lt": timezone.now() - timedelta(days=days)})
    return _rows(name, rows, f"{days} days, {which}", old)


def _files(name: str, folder: Path, rule: str) -> Heap:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return Heap(name, len(sizes), sum(sizes), rule)
