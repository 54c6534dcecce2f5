"""The writing half of an import: many short transactions whose rows nobody sees until the last one shows them all.

See ADR 22. Rows get ids from ranges that are hidden (``bank.database.unfinished``). They are inserted by column, at
most ``AT_ONCE`` in a transaction that lasts no longer than ``TURN``, with a pause for other writers in between: SQLite
allows one writer at a time and keeps no queue.
"""

import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from django.apps import apps
from django.db import Error as DatabaseError
from django.db import IntegrityError, connection, transaction
from django.db.models import Model
from django.db.models.functions import Now

from bank import images
from bank.database import bulk, unfinished
from bank.intake.imports import Cancelled, scratch
from bank.models import Import, ImportRange, SampleImage
from bank.models.imports import LEASE

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Model)
AT_ONCE = 2_000  # rows of a transaction
SLICE = 500  # rows after which the clock is looked at
TURN = 0.03  # seconds after which a transaction ends
REST = 1.0  # times what a transaction took: so long nobody is kept from writing
LOOK_EVERY = 0.1  # seconds between looks whether the import before is done


class Outdated(Exception):
    """What was found when the rows were checked holds no more: the import begins again."""


class Intake:
    """The import under way. ``put`` and ``do`` note what is to be written; ``flush`` writes it in their order.

    What refers to another row comes after it.
    """

    def __init__(self, row: Import) -> None:
        self.row = row
        self._free: dict[type[Model], range] = {}
        self._own: dict[type[Model], range] = {}
        self._noted: deque[tuple[type[Model], dict[str, bulk.Column]] | Callable[[], object]] = deque()

    def reserve(self, coming: Mapping[type[Model], int]) -> None:
        """Ids for at most so many rows of each table, hidden from here on. A table at a time: no two are locked."""
        for model, count in coming.items():
            if count:
                with self._turn():
                    ids = bulk.reserve(model, count)
                    self.row.ranges.create(table=model._meta.db_table, first=ids[0], last=ids[-1])
                self._own[model] = self._free[model] = ids

    def ids(self, model: type[Model], count: int) -> range:
        free = self._free.get(model, range(0))
        if len(free) < count:
            raise Outdated(f"more rows of {model._meta.db_table} than were foreseen")
        self._free[model] = free[count:]
        return free[:count]

    def own(self, model: type[Model]) -> range:
        """The ids of its rows of a table, those that no row will have included."""
        return self._own.get(model, range(0))

    def number(self, model: type[Model], place: int) -> int:
        """The id of the row that is its so-manyth of a table, from 0 on."""
        return self._own[model][place]

    def owns(self, row: Model) -> bool:
        """Whether the row is one of this import."""
        return row.pk in self.own(type(row))

    def put(self, model: type[Model], columns: Mapping[str, bulk.Column]) -> None:
        """New rows by columns, none empty; they get ids where none are given."""
        given = {} if "id" in columns else {"id": self.ids(model, len(next(iter(columns.values()))))}
        self._noted.append((model, given | dict(columns)))

    def put_values(self, model: type[Model], values: Mapping[str, bulk.Column]) -> range:
        """New rows by the names of their fields, none empty; what is left out holds its default. Returns their ids."""
        ids = self.ids(model, len(next(iter(values.values()))))
        self.put(model, bulk.columns_from(model, {"id": ids, **values}))
        return ids

    def put_objects(self, rows: "list[M]") -> None:
        """New objects of one model; they have their ids when this returns."""
        if rows:
            for row, pk in zip(rows, self.ids(type(rows[0]), len(rows)), strict=True):
                row.pk = pk
            self.put(type(rows[0]), bulk.columns_of(type(rows[0]), rows))

    def make(self, row: M) -> M:
        """One new object."""
        self.put_objects([row])
        return row

    def do(self, change: Callable[[], object]) -> None:
        """A change of some hundreds of own rows at most."""
        self._noted.append(change)

    def flush(self) -> None:
        """Write what was noted."""
        while self._noted:
            began = time.monotonic()
            with self._turn():
                rows = 0
                while self._noted and rows + SLICE <= AT_ONCE and time.monotonic() - began < TURN:
                    one = self._noted.popleft()
                    if not isinstance(one, tuple):
                        one()
                        rows += SLICE
                        continue
                    model, columns = one
                    many = len(next(iter(columns.values())))
                    if many > SLICE:
                        self._noted.appendleft((model, {name: column[SLICE:] for name, column in columns.items()}))
                        columns = {name: column[:SLICE] for name, column in columns.items()}
                    bulk.insert_columns(model, columns)
                    rows += min(many, SLICE)
            rest(time.monotonic() - began)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with transaction.atomic():
            renew(self.row)
            yield

    @contextmanager
    def switch(self) -> Iterator[None]:
        """The last transaction: what is done in it, and that all rows are seen, is true at once."""
        self.flush()
        with self._turn():
            yield
            spans = {one.table: [one.first, one.last] for one in self.row.ranges.all()}
            self.row.ranges.all().delete()
            done = {"state": Import.State.DONE, "done_at": Now(), "spans": spans, "holder": "", "folder": ""}
            Import.objects.filter(pk=self.row.pk).update(**done)


def rest(seconds: float) -> None:
    """After so long a transaction."""
    if not connection.in_atomic_block:
        time.sleep(0.001 + REST * seconds)


def renew(row: Import) -> None:
    """Hold the right to write for this import. Raises Outdated where somebody took it for dead."""
    mine = Import.objects.under_way().filter(pk=row.pk, holder=row.holder)
    if not mine.update(until=Now() + LEASE):
        raise Outdated("another process took this import for dead")


@contextmanager
def opened(*, folder: str, cancelled: Callable[[], bool]) -> Iterator[Intake]:
    """The right to write, as soon as no other import has it. What is not shown by ``switch`` is removed at the end.

    ``folder`` is the scratch folder of this process, whose lock tells others on this machine that it lives.
    """
    row = _begun(folder, cancelled)
    try:
        with unfinished.everything():
            yield Intake(row)
    except BaseException:
        try:
            scratch.empty(folder)  # what has no room may get some
            undo(row)
        except (DatabaseError, OSError, Outdated):  # on a full disk, say; sweep tries again
            log.warning("What import %s had stored could not be removed yet; nobody sees it.", row.pk)
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


def left() -> Import | None:
    """An import that was killed while it wrote, and that nobody clears away."""
    for row in Import.objects.under_way():
        if scratch.is_left(row.folder) or Import.objects.filter(pk=row.pk, until__lt=Now()).exists():
            return row
    return None


def sweep() -> bool:
    """Clear away after an import that was killed; whether there was one."""
    row = left()
    if row is None:
        return False
    mine = secrets.token_hex(16)
    taken = Import.objects.under_way().filter(pk=row.pk, holder=row.holder)
    with scratch.folder() as own:
        if not taken.update(holder=mine, folder=own.name, until=Now() + LEASE):
            return False
        row.holder = mine
        try:
            undo(row)
        except Outdated:
            return False
    log.warning("What an import had stored before it was killed has been removed; nobody had seen it.")
    return True


def undo(row: Import) -> None:
    """Remove the pictures and rows of an import that is not done, the last first, in short transactions."""
    with unfinished.everything():
        ranges = list(row.ranges.order_by("-pk"))
        for one in ranges:  # before a row is touched: on a full disk that makes room for it
            if one.table == SampleImage._meta.db_table:
                _remove_pictures(one)
        for one in ranges:
            _remove(row, one)
        with transaction.atomic():
            renew(row)
            Import.objects.filter(pk=row.pk).delete()


def _remove(row: Import, one: ImportRange) -> None:
    with connection.cursor() as cursor:
        table = f'"{one.table}"'
        cursor.execute(f"SELECT max(id) FROM {table} WHERE id BETWEEN %s AND %s", [one.first, one.last])  # noqa: S608
        last = cursor.fetchone()[0] or 0
        for first in range(one.first, last + 1, AT_ONCE):
            began = time.monotonic()
            with transaction.atomic():
                renew(row)
                end = min(first + AT_ONCE - 1, last)
                cursor.execute(f"DELETE FROM {table} WHERE id BETWEEN %s AND %s", [first, end])  # noqa: S608
            rest(time.monotonic() - began)


def _remove_pictures(own: ImportRange) -> None:
    """The files that no other picture is: those that the import moved to where they are served from."""
    stored = SampleImage.objects.filter(pk__range=(own.first, own.last))
    for sha256, kind in stored.order_by("pk").values_list("sha256", "kind").iterator():
        home = images.home(f"{sha256}.{kind}")
        if home.exists() and not _is_used(sha256, own):
            home.unlink(missing_ok=True)


def _is_used(sha256: str, own: ImportRange) -> bool:
    for model in apps.get_models():
        if {"sha256", "kind", "width"} <= {field.name for field in model._meta.concrete_fields}:
            used = model._base_manager.filter(sha256=sha256)
            if model is SampleImage:
                used = used.exclude(pk__range=(own.first, own.last))
            if used.exists():
                return True
    return False
