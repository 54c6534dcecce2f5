"""manage.py migrate, which leaves alone what this version cannot take over, and gives a new database its key"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Manager, QuerySet
from django.template.defaultfilters import pluralize

from accounts import audit
from accounts.installation_key import check_keys
from accounts.management.base import INSTALLATION
from accounts.models import Role, User
from annotations.labels import provenance as labels
from annotations.models import Label
from bank import exposure
from bank.models import Benchmark, Item, Response
from bank.models.catalogue import in_hidden_splits
from evalsite import doctor
from judging.judgments import provenance as judgments
from judging.models import Judgment, Run
from stats.figures import listed, number_of

VERDICTS: tuple[tuple[Manager[Any], str, str], ...] = (
    (Judgment.objects, "run__held", "judges"),
    (Label.objects, "campaign__held", "people"),
)
# The updates after which it is said what they did.
SEALING, PROVENANCE = ("bank", "0006_sealing"), ("judging", "0017_unknown_provenance")
GUESTS = ("annotations", "0011_guests")


class Command(migrate.Command):
    requires_system_checks = [INSTALLATION, Tags.database, Tags.models]  # others load the code of every page

    def handle(self, *args: Any, **options: Any) -> None:
        if other := doctor.of_other_version(connections[options["database"]]):
            raise CommandError(doctor.of_another_version(other))
        ahead = [update for update in (SEALING, PROVENANCE, GUESTS) if _is_ahead(update)]
        with _alone(connections[options["database"]]):
            super().handle(*args, **options)
        done = [update for update in ahead if not _is_ahead(update)]
        for update, in_words in ((SEALING, closed_in_words), (PROVENANCE, unknown_in_words)):
            for paragraph in in_words() if update in done else ():
                self.stdout.write(f"\n{paragraph}")
        if GUESTS in done and (count := note_guests()):
            self.stdout.write(
                f"\n{count:,} account{pluralize(count)} that came by an invitation or a link for people from outside "
                f"{pluralize(count, 'is a guest,are guests')} now: they label on the benchmarks of their campaigns, "
                "and see elsewhere what visitors see. They are under People with the role guest, where an "
                "administrator makes annotators of those who may label everywhere."
            )
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


def _is_ahead(update: tuple[str, str]) -> bool:
    """Whether the database holds tables that this update has not changed yet."""
    applied = MigrationRecorder(connection).applied_migrations()
    return bool(applied) and update not in applied


def unknown_in_words() -> Iterator[str]:
    """Which verdicts from files are for staff alone since nobody said what was seen, and how they are opened: a
    paragraph for each benchmark.
    """
    for benchmark in Benchmark.objects.order_by("slug", "pk"):
        told = []
        for campaign in benchmark.campaigns.filter(imported=True).order_by("pk"):
            if count := labels.for_staff(campaign):
                told.append(f"{number_of(count, 'label')} of the campaign '{campaign.name}' ('{campaign.name}')")
        for run in benchmark.runs.filter(imported=True).select_related("judge").order_by("pk"):
            if count := judgments.for_staff(run):
                told.append(f"{number_of(count, 'judgment')} of {run.judge} ({run.pk})")
        if told:
            yield (
                f"{benchmark}: verdicts from files count as given by somebody who may have seen what is closed. For "
                f"staff alone are: {listed(told)}. Where nothing hidden was seen, `manage.py publish {benchmark} "
                "--saw-nothing` with what stands in brackets opens them."
            )


@transaction.atomic
def note_guests() -> int:
    """Note in the audit log whom the update made guests: before it there were none. Returns how many."""
    guests = User.objects.filter(role=Role.GUEST).order_by("pk")
    for person in guests:
        benchmarks = sorted(person.grants.filter(invited=True).values_list("benchmark", flat=True))
        change: dict[str, Any] = {"old": Role.ANNOTATOR.value, "new": Role.GUEST.value, "labels_on": benchmarks}
        audit.record("role-changed", command="migrate", about=person.username, **change)
    return guests.count()


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
