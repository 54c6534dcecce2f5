"""A number for each benchmark that is another one after every write that a board could show.

The database itself draws the number, by triggers, in the transaction of the write: no way of writing can forget it.
It is random, so that none comes again, neither after a rollback nor in a database that is restored. All tables count
but those named here. A row counts for the benchmark that it belongs to, and one that belongs to none for all.

On PostgreSQL, a writer that finds a number locked by another one adds a number beside it, so that nobody waits for the
end of an import; a benchmark's number is the sum.
"""

import secrets
from collections import deque
from typing import Any

from django.apps import apps
from django.db import connection, models
from django.utils import timezone

from bank.models import Benchmark, ImportRange
from leaderboard.models import Change

APPS = ("accounts", "bank", "judging", "annotations", "leaderboard")
# What no board and no page of one shows.
UNCOUNTED = frozenset(
    """
    accounts.AuditEntry accounts.AuditHead accounts.Delivery accounts.Grant accounts.InstallationKey accounts.Job
    accounts.Mail accounts.Notice accounts.SavedView accounts.SecondFactor accounts.Session accounts.SignInCount
    accounts.SignOn accounts.Team accounts.Token accounts.Webhook annotations.Assignment annotations.Consent
    annotations.GuidelinePicture annotations.Invitation annotations.LabelReturn
    annotations.LabelRevision bank.AccessedSample bank.CriteriaAccess bank.Draft bank.FileLease bank.PictureStorage
    bank.SubmissionCount bank.Upload judging.Attempt judging.JudgeShare judging.RunClaim judging.RunHold
    judging.WorkerBeat leaderboard.Change
    """.split()
)
UNCOUNTED_COLUMNS = {
    "accounts.User": ("last_login", "password", "preferences"),
    "annotations.CampaignItem": ("taken",),
    "bank.Import": ("until",),
    "judging.Judge": ("paced_until",),
}
ALL = 0  # in place of a benchmark's id
NUMBERS = 2**40  # one of so many is drawn
CHANGES = Change._meta.db_table
RANGES = ImportRange._meta.db_table
DRAW = f"""CREATE OR REPLACE FUNCTION counted_draw(of bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    UPDATE {CHANGES} SET number = floor(random() * {NUMBERS})
        WHERE id = (SELECT id FROM {CHANGES} WHERE benchmark = of LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        INSERT INTO {CHANGES} (benchmark, number) VALUES (of, floor(random() * {NUMBERS}));
    END IF; END $$"""


def version(benchmark: int | None = None) -> tuple[Any, ...]:
    """Equal as long as nothing that counts for the benchmark is written, or without one nothing anywhere. It is another
    one on each day, because some facts are told from a day on.
    """
    only = "" if benchmark is None else f" WHERE benchmark IN ({ALL}, {int(benchmark)})"
    query = f"SELECT count(*), sum(number) FROM {CHANGES}{only}"
    connection.ensure_connection()
    if connection.vendor == "sqlite":  # straight from the driver, because a page asks thirty times
        row = connection.connection.execute(query).fetchone()
    else:
        with connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
    return (timezone.now().date(), *row)


def counted() -> list[type[models.Model]]:
    """The models whose rows count."""
    every = [model for app in APPS for model in apps.get_app_config(app).get_models()]
    return [model for model in every if model._meta.label not in UNCOUNTED]


def remove(**_: Any) -> None:
    """Remove the triggers, before migrations: SQLite rebuilds no table that the trigger of another one names."""
    with connection.cursor() as cursor:
        for name, table in _present(cursor).items():
            cursor.execute(f"DROP TRIGGER {name}" + ("" if connection.vendor == "sqlite" else f" ON {table}"))


def install(**_: Any) -> None:
    """Make the triggers that are missing, and a number for each benchmark and for all."""
    triggers = _of_sqlite if connection.vendor == "sqlite" else _of_postgresql
    with connection.cursor() as cursor:
        if CHANGES not in connection.introspection.table_names(cursor):
            return  # migrated back to a state before it
        for model in without_triggers():
            for statement in triggers(model):
                cursor.execute(statement)
    known = set(Change.objects.values_list("benchmark", flat=True))
    every = {ALL, *Benchmark.objects.values_list("pk", flat=True)}
    Change.objects.bulk_create(Change(benchmark=pk, number=0) for pk in every - known)
    # Whatever was written while there was no trigger.
    Change.objects.filter(benchmark=ALL).update(number=secrets.randbelow(NUMBERS))


def without_triggers() -> list[type[models.Model]]:
    """The models that should count and do not, of those that have a table."""
    with connection.cursor() as cursor:
        present = _present(cursor)
        tables = set(connection.introspection.table_names(cursor))
    of_tables = [model for model in counted() if model._meta.db_table in tables]
    return [model for model in of_tables if f"counted_{model._meta.db_table}_delete" not in present]


def _present(cursor: Any) -> dict[str, str]:
    """The table of each trigger that there is, by the trigger's name."""
    if connection.vendor == "sqlite":
        cursor.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'counted_%'")
    else:
        # Another schema may hold another installation.
        ours = "tgname LIKE 'counted_%' AND pg_table_is_visible(tgrelid)"
        cursor.execute(f"SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE {ours}")
    return dict(cursor.fetchall())


def _of_sqlite(model: type[models.Model]) -> list[str]:
    """The statements that make a table's triggers, which run for each row."""
    table = model._meta.db_table
    statements = []
    for name, row in (("insert", "NEW"), (f"update OF {_columns(model)}", "NEW"), ("delete", "OLD")):
        draw = f"UPDATE {CHANGES} SET number = abs(random() % {NUMBERS}) WHERE benchmark = {_benchmark_of(model, row)}"
        trigger = f"CREATE TRIGGER counted_{table}_{name.split()[0]} AFTER {name} ON {table}"
        if name == "insert" and model is Benchmark:
            draw = f"INSERT INTO {CHANGES} (benchmark, number) VALUES (NEW.id, 0); {draw}"
        elif name == "insert":
            # Nobody sees a row of a running import. Its end counts for all, when the range is deleted.
            hidden = f"SELECT 1 FROM {RANGES} WHERE \"table\" = '{table}' AND NEW.id BETWEEN first AND last"
            trigger += f" WHEN NOT EXISTS ({hidden})"
        statements.append(f"{trigger} BEGIN {draw}; END")
    return statements


def _of_postgresql(model: type[models.Model]) -> list[str]:
    """The same, and the function that they call, once for each statement; for each row where columns do not count."""
    table = model._meta.db_table
    of_all = f"SELECT DISTINCT {_benchmark_of(model, 'changed')} AS benchmark FROM changed"
    statements = [
        DRAW,
        f"""CREATE OR REPLACE FUNCTION counted_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_LEVEL = 'ROW' THEN PERFORM counted_draw({_benchmark_of(model, "NEW")});
            ELSE PERFORM counted_draw(of.benchmark) FROM ({of_all}) AS of; END IF;
            RETURN NULL; END $$""",
    ]
    for name, kind in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")):
        event, each = f"{name} ON {table} REFERENCING {kind} TABLE AS changed", "STATEMENT"
        if name == "update" and model._meta.label in UNCOUNTED_COLUMNS:
            event, each = f"UPDATE OF {_columns(model)} ON {table}", "ROW"
        trigger = f"CREATE TRIGGER counted_{table}_{name} AFTER {event} FOR EACH {each}"
        statements.append(f"{trigger} EXECUTE FUNCTION counted_{table}()")
    return statements


def _columns(model: type[models.Model]) -> str:
    left_out = UNCOUNTED_COLUMNS.get(model._meta.label, ())
    return ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields if field.name not in left_out)


def _benchmark_of(model: type[models.Model], row: str) -> str:
    """The SQL of the id of the benchmark that a row belongs to, by the shortest way of keys; ALL without one."""
    ways: deque[tuple[type[models.Model], str]] = deque([(model, f"{row}.id")])
    passed = {model}
    while ways and model is not Benchmark:  # who may see a benchmark counts for pages of others, too
        at, key = ways.popleft()
        if at is Benchmark:
            return f"coalesce({key}, {ALL})"
        for field in at._meta.concrete_fields:
            to = field.related_model
            if isinstance(field, models.ForeignKey) and not field.null and isinstance(to, type) and to not in passed:
                passed.add(to)
                column = f"{row}.{field.column}"
                if at is not model:
                    column = f"(SELECT {field.column} FROM {at._meta.db_table} WHERE id = {key})"
                ways.append((to, column))
    return str(ALL)
