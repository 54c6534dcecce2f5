"""The writing half of an import: many short transactions whose rows stay hidden until the last one publishes them all.

See ADR 22. Rows get ids from ranges that are hidden (``bank.database.unfinished``). They are inserted by column, at
most ``AT_ONCE`` in a transaction that lasts no longer than ``LONGEST_TRANSACTION``, on SQLite with a pause for other
writers in between: it allows one at a time and keeps no queue.
"""

import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from django.apps import apps
from django.db import Error as DatabaseError
from django.db import IntegrityError, connection, transaction
from django.db.models import Model
from django.db.models.functions import Now

from bank import images, media
from bank.database import bulk, execute, unfinished
from bank.intake.imports import Cancelled, scratch
from bank.intake.imports.stage import Stage
from bank.models import Import, ImportRange, SampleImage
from bank.models.imports import LEASE

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Model)
AT_ONCE = 5_000  # rows per transaction
SLICE = 500  # rows between looks at the clock
JOINED_AT_ONCE = 50_000  # on PostgreSQL, which reads whole staged tables for each join, and lets others write meanwhile
LONGEST_TRANSACTION = 0.03  # seconds after which a transaction ends, while others write
LONGEST_ALONE = 0.1  # seconds while nobody else does
PAUSE = 1.0  # times the length of the transaction, while others write
GAP = 0.01  # seconds while nobody else does: in a shorter one, somebody who begins to write waits for seconds
RECENTLY = 2.0  # seconds since another connection has written
LOOK_EVERY = 0.1  # seconds between checks whether the previous import is done


class Outdated(Exception):
    """What the check found is no longer true: the import starts over."""


class ImportWriter:
    """The running import. ``put`` and ``do`` queue writes; ``flush`` carries them out in order.

    A row must be queued after the rows it refers to.
    """

    def __init__(self, row: Import) -> None:
        self.row = row
        self._free: dict[type[Model], range] = {}
        self._own: dict[type[Model], range] = {}
        self._noted: deque[tuple[type[Model], dict[str, bulk.Column]] | Callable[[], object]] = deque()

    def reserve(self, counts: Mapping[type[Model], int]) -> None:
        """Reserve ids for at most this many rows per table, hidden from now on. Locks one table at a time."""
        for model, count in counts.items():
            if count:
                with self._transaction():
                    ids = bulk.reserve(model, count)
                    self.row.ranges.create(table=model._meta.db_table, first=ids[0], last=ids[-1])
                self._own[model] = self._free[model] = ids

    def ids(self, model: type[Model], count: int) -> range:
        free = self._free.get(model, range(0))
        if len(free) < count:
            raise Outdated(f"more rows of {model._meta.db_table} than expected")
        self._free[model] = free[count:]
        return free[:count]

    def reserved(self, model: type[Model]) -> range:
        """The ids reserved in a table, including those that no row will use."""
        return self._own.get(model, range(0))

    def put(self, model: type[Model], columns: Mapping[str, bulk.Column]) -> None:
        """Queue new rows by column, none empty; they get ids unless they have some."""
        id_column = {} if "id" in columns else {"id": self.ids(model, len(next(iter(columns.values()))))}
        self._noted.append((model, id_column | dict(columns)))

    def put_objects(self, rows: "list[M]") -> None:
        """Queue new objects of one model; they have their ids when this returns."""
        if rows:
            for row, pk in zip(rows, self.ids(type(rows[0]), len(rows)), strict=True):
                row.pk = pk
            self.put(type(rows[0]), bulk.columns_of(type(rows[0]), rows))

    def make(self, row: M) -> M:
        """Queue one new object."""
        self.put_objects([row])
        return row

    def do(self, change: Callable[[], object]) -> None:
        """Queue a change of at most some hundreds of the import's own rows."""
        self._noted.append(change)

    def numbered(self, model: type[Model], stage: Stage, table: str) -> int:
        """What leads from the numbers of a staged table to the ids that its rows get."""
        span = stage.span(table)
        return self.ids(model, span)[0] - stage.first(table) if span else 0

    def copy(
        self, model: type[Model], stage: Stage, table: str, joins: str, columns: Mapping[str, str]
    ) -> Iterator[int]:
        """Write a row for each row of a staged table, its columns given as SQL over ``staged``, which is the table, and
        what ``joins`` join to it; other columns take their defaults. Yields how many rows after each stretch.
        """
        insert = bulk.insertion(model, columns, f"{table} staged {joins} WHERE staged.n BETWEEN %s AND %s")
        stretch, at_once = (AT_ONCE, SLICE) if connection.vendor == "sqlite" else (JOINED_AT_ONCE, JOINED_AT_ONCE)
        for first, last in stage.slices(table, step=stretch):
            stage.go_on()
            for start in range(first, last + 1, at_once):
                self.do(partial(insert, start, min(start + at_once - 1, last)))
            self.flush()
            yield last - first + 1

    def copy_all(self, model: type[Model], stage: Stage, table: str, joins: str, columns: Mapping[str, str]) -> None:
        """The same for rows that nobody counts."""
        for _ in self.copy(model, stage, table, joins, columns):
            pass

    def flush(self) -> None:
        """Write what is queued."""
        while self._noted:
            longest = LONGEST_TRANSACTION if others.write() else LONGEST_ALONE
            began = time.monotonic()
            with self._transaction():
                rows = 0
                while self._noted and rows + SLICE <= AT_ONCE and time.monotonic() - began < longest:
                    queued = self._noted.popleft()
                    if not isinstance(queued, tuple):
                        queued()
                        rows += SLICE
                        continue
                    model, columns = queued
                    row_count = len(next(iter(columns.values())))
                    if row_count > SLICE:
                        self._noted.appendleft((model, {name: column[SLICE:] for name, column in columns.items()}))
                        columns = {name: column[:SLICE] for name, column in columns.items()}
                    bulk.insert_columns(model, columns)
                    rows += min(row_count, SLICE)
            pause(time.monotonic() - began)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction.atomic():
            renew(self.row)
            yield

    @contextmanager
    def publish(self) -> Iterator[None]:
        """The last transaction: its changes and the visibility of all rows take effect together."""
        self.flush()
        with self._transaction():
            yield
            spans = {reserved.table: [reserved.first, reserved.last] for reserved in self.row.ranges.all()}
            self.row.ranges.all().delete()
            done = {"state": Import.State.DONE, "done_at": Now(), "spans": spans, "holder": "", "folder": ""}
            Import.objects.filter(pk=self.row.pk).update(**done)


class _Others:
    """Whether other connections write to the same SQLite database: it counts their commits."""

    def __init__(self) -> None:
        self.version: int | None = None
        self.wrote_at = -RECENTLY

    def write(self) -> bool:
        if connection.vendor != "sqlite":
            return False
        version = execute("PRAGMA data_version")
        now = time.monotonic()
        if self.version not in (None, version):
            self.wrote_at = now
        self.version = version
        return now - self.wrote_at < RECENTLY


others = _Others()


def pause(seconds: float) -> None:
    """Let others write after a transaction of this many seconds. PostgreSQL needs no pause for that."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        time.sleep(PAUSE * seconds if others.write() else GAP)


def renew(row: Import) -> None:
    """Renew the right to write for this import. Raises Outdated if another process took it for dead."""
    held = Import.objects.under_way().filter(pk=row.pk, holder=row.holder)
    if not held.update(until=Now() + LEASE):
        raise Outdated("another process took this import for dead")


@contextmanager
def open_writer(*, folder: str, cancelled: Callable[[], bool]) -> Iterator[ImportWriter]:
    """The right to write, as soon as no other import has it. Whatever ``publish`` did not make visible is removed at
    the end.

    ``folder`` is the scratch folder of this process; its lock tells others on this machine that the process is alive.
    """
    row = _begun(folder, cancelled)
    try:
        with unfinished.included():
            yield ImportWriter(row)
    except BaseException:
        try:
            scratch.clear(folder)  # may free the space that undo needs
            undo(row)
        except (DatabaseError, OSError, Outdated):  # a full disk, for example; sweep tries again
            log.warning("The rows of failed import %s could not be removed yet; nobody can see them.", row.pk)
        raise


def _begun(folder: str, cancelled: Callable[[], bool]) -> Import:
    while True:
        sweep()
        try:
            with transaction.atomic():
                return Import.objects.create(holder=secrets.token_hex(16), folder=folder, until=Now() + LEASE)
        except IntegrityError:
            if not Import.objects.under_way().exists():
                continue
        if cancelled():
            raise Cancelled
        time.sleep(LOOK_EVERY)


def abandoned_import() -> Import | None:
    """An import that was killed while writing and that nobody is cleaning up."""
    for row in Import.objects.under_way():
        if scratch.is_abandoned(row.folder) or Import.objects.filter(pk=row.pk, until__lt=Now()).exists():
            return row
    return None


def sweep() -> bool:
    """Clean up after a killed import; returns whether there was one."""
    row = abandoned_import()
    if row is None:
        return False
    holder = secrets.token_hex(16)
    held = Import.objects.under_way().filter(pk=row.pk, holder=row.holder)
    with scratch.folder() as folder:
        if not held.update(holder=holder, folder=folder.name, until=Now() + LEASE):
            return False
        row.holder = holder
        try:
            undo(row)
        except Outdated:
            return False
    log.warning("Removed what a killed import had stored; nobody could see it.")
    return True


def undo(row: Import) -> None:
    """Remove the pictures and rows of an unfinished import, the last first, in short transactions."""
    with unfinished.included():
        ranges = list(row.ranges.order_by("-pk"))
        for reserved in ranges:  # before any row is touched: on a full disk this frees space
            if reserved.table == SampleImage._meta.db_table:
                _remove_pictures(reserved)
        for reserved in ranges:
            _remove(row, reserved)
        with transaction.atomic():
            renew(row)
            Import.objects.filter(pk=row.pk).delete()


def _remove(row: Import, reserved: ImportRange) -> None:
    table = f'"{reserved.table}"'
    within = [reserved.first, reserved.last]
    last = execute(f"SELECT max(id) FROM {table} WHERE id BETWEEN %s AND %s", within) or 0
    for first in range(reserved.first, last + 1, AT_ONCE):
        began = time.monotonic()
        with transaction.atomic():
            renew(row)
            end = min(first + AT_ONCE - 1, last)
            execute(f"DELETE FROM {table} WHERE id BETWEEN %s AND %s", [first, end])
        pause(time.monotonic() - began)


def _remove_pictures(reserved: ImportRange) -> None:
    """Remove files that the import moved to where they are served from and that no other picture uses."""
    stored = SampleImage.objects.filter(pk__range=(reserved.first, reserved.last))
    for sha256, kind in stored.order_by("pk").values_list("sha256", "kind").iterator():
        name = images.home(f"{sha256}.{kind}")
        if media.exists(name) and not _is_used(sha256, reserved):
            media.remove(name)


def _is_used(sha256: str, reserved: ImportRange) -> bool:
    for model in apps.get_models():
        if {"sha256", "kind", "width"} <= {field.name for field in model._meta.concrete_fields}:
            used = model._base_manager.filter(sha256=sha256)
            if model is SampleImage:
                used = used.exclude(pk__range=(reserved.first, reserved.last))
            if used.exists():
                return True
    return False
