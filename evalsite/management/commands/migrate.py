"""manage.py migrate, which leaves alone what this version cannot take over, and gives a new database its key"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Manager, QuerySet

from accounts.installation_key import check_keys
from accounts.management.base import INSTALLATION
from annotations.models import Label
from bank import exposure
from bank.models import Benchmark, Item, Response
from bank.models.catalogue import in_hidden_splits
from evalsite import doctor
from judging.models import Judgment, Run

VERDICTS: tuple[tuple[Manager[Any], str, str], ...] = (
    (Judgment.objects, "run__held", "judges"),
    (Label.objects, "campaign__held", "people"),
)
UPDATE = ("bank", "0006_sealing")


class Command(migrate.Command):
    requires_system_checks = [INSTALLATION, Tags.database, Tags.models]  # others load the code of every page

    def handle(self, *args: Any, **options: Any) -> None:
        if doctor.older(connections[options["database"]]):
            raise CommandError(doctor.of_another_version(doctor.OLDER))
        is_ahead = _update_is_ahead()
        with _alone(connections[options["database"]]):
            super().handle(*args, **options)
        if is_ahead and not _update_is_ahead():
            for paragraph in closed_in_words():
                self.stdout.write(f"\n{paragraph}")
        if not doctor.migrations().is_fault:
            check_keys()  # from now on it is known whether CRITERIA_KEYS are those of this database


@contextmanager
def _alone(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Where several web servers start at once, one migrates and the others wait. SQLite's lock does that by itself."""
    if database.vendor != "postgresql":
        yield
        return
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('evalsite migrate'))")
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtext('evalsite migrate'))")


def _update_is_ahead() -> bool:
    """Whether the database holds tables that this update has not changed yet."""
    applied = MigrationRecorder(connection).applied_migrations()
    return bool(applied) and UPDATE not in applied


def closed_in_words() -> Iterator[str]:
    """What the update closed that everybody could see before (ADR 31): a paragraph for each public benchmark."""
    for benchmark in Benchmark.objects.filter(visibility=Benchmark.Visibility.PUBLIC).order_by("slug", "pk"):
        by_keys, otherwise = list(_closed_by_keys(benchmark)), list(_closed_otherwise(benchmark))
        if by_keys or otherwise:
            opens = f" `manage.py publish {benchmark} --keys` opens its keys to everybody, for good." if by_keys else ""
            yield f"{benchmark}: for staff alone from now on are {'; '.join(by_keys + otherwise)}.{opens}"


def _closed_by_keys(benchmark: Benchmark) -> Iterator[str]:
    for rows, held, of in VERDICTS:
        keyed = _seen(rows, benchmark).filter(exposure.any_of(exposure.KEYED, held, "item__sample__closed"))
        yield from _counted(keyed.count(), f"single verdicts of {of} who were, or may have been, shown keys or weights")
    answers = Response.objects.filter(sample__benchmark=benchmark, submission=None)
    answers = answers.exclude(in_hidden_splits("sample__"))
    answers = answers.filter(exposure.any_of(exposure.Inputs.ANSWER_KEY, "sample__closed"))
    yield from _counted(answers.count(), "answers of models to questions whose key is not public")


def _closed_otherwise(benchmark: Benchmark) -> Iterator[str]:
    for rows, held, of in VERDICTS:
        outside = _seen(rows, benchmark).filter(exposure.any_of(exposure.UNKNOWN, held, "item__sample__closed"))
        outside = outside.filter(item__outside=True)
        keyed = outside.filter(exposure.any_of(exposure.KEYED, held, "item__sample__closed"))
        yield from _counted(outside.difference(keyed).count(), f"single verdicts of {of} on submitted answers")
    blind = Item.objects.filter(sample__benchmark=benchmark, blind=True)
    words = "items, votes on them and who wrote their answers, until the blind campaign that asks about them closes"
    yield from _counted(blind.count(), words)
    ended = Run.objects.filter(benchmark=benchmark, state=Run.State.CANCELLED, held__gt=0, state_reason__gt="")
    yield from _counted(ended.count(), "runs that were not finished, whose judge was shown keys: start them anew")


def _seen(rows: Manager[Any], benchmark: Benchmark) -> QuerySet[Any]:
    """Those that everybody saw before."""
    return rows.filter(item__sample__benchmark=benchmark).exclude(in_hidden_splits("item__sample__"))


def _counted(count: int, what: str) -> Iterator[str]:
    if count:
        yield f"{count:,} {what}"
