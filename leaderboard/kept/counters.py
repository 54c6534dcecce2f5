"""A number for each benchmark that is another one after every write that a board could show.

The database itself draws the number, by triggers, in the transaction of the write: no way of writing can forget it.
It is random, so that none comes again, neither after a rollback nor in a database that is restored. All tables count
but those named here. A row counts for the benchmark that it belongs to, and one that belongs to none for all.

A benchmark has a number for each effect of a write. After some, something may have to be hidden: a page that was made
before may be shown for a while after the others. Whatever is added hides nothing; what is changed or removed may, but
for ADDING. And while verdicts come in, what they are about stays as it is: it need not be read again.

On PostgreSQL, a writer that finds a number locked by another one adds a number beside it, so that nobody waits for the
end of an import; a benchmark's number is the sum.
"""

import itertools
import secrets
from collections import deque
from collections.abc import Sequence
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
    annotations.LabelRevision bank.AccessedSample bank.CriteriaAccess bank.Draft bank.ExactTotal bank.FileLease
    bank.PictureStorage bank.SubmissionCount bank.Upload judging.Attempt judging.JudgeShare judging.RunClaim
    judging.RunHold judging.WorkerBeat leaderboard.Change leaderboard.HourlyValue leaderboard.PreparedPage
    """.split()
)
UNCOUNTED_COLUMNS = {
    "accounts.User": ("last_login", "password", "preferences"),
    "annotations.CampaignItem": ("opened_at", "taken"),
    "bank.Import": ("until",),
    "judging.Judge": ("paced_until",),
}
EVERY_COLUMN = ("*",)
VOTES = frozenset({"annotations.Label", "judging.Judgment"})  # of which a new row is a verdict
# Columns that hide nothing when they change, and then verdicts come in or somebody goes on; of rows with every column
# neither does a removal, and anything may come in.
ADDING = {
    "annotations.CampaignItem": ("priority",),
    "annotations.Label": tuple(
        """
        score choice preference situation ranking parts option extraction answer agree grade hallucination spans
        confidence reason seconds comment flags changed_at
        """.split()
    ),
    "annotations.Membership": ("tries", "warned_at", "warning_seen", "stopped_at", "guidelines_read"),
    "bank.Import": EVERY_COLUMN,
    "bank.ImportRange": EVERY_COLUMN,
    "bank.Item": ("blind",),
    "judging.Evaluation": EVERY_COLUMN,
    "judging.QueuedSubmission": EVERY_COLUMN,
    "judging.Run": tuple(
        """
        state state_reason next_try_at tries failing_since told announced reported_model reported abilities batched
        batches cached calls priced lost spent planned verdicts failures undecided live budget started_at finished_at
        """.split()
    ),
}
HIDES_WHERE = {"bank.Item": "NEW.blind"}  # unless this is true of the row that changed
ALL = 0  # in place of a benchmark's id
Effect = Change.Effect
NUMBERS = 2**40  # one of so many is drawn
CHANGES = Change._meta.db_table
RANGES = ImportRange._meta.db_table
DRAW = f"""CREATE OR REPLACE FUNCTION counted_draw(of bigint, its_effect integer) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
    UPDATE {CHANGES} SET number = floor(random() * {NUMBERS}) WHERE id =
        (SELECT id FROM {CHANGES} WHERE benchmark = of AND effect = its_effect LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        INSERT INTO {CHANGES} (benchmark, effect, number) VALUES (of, its_effect, floor(random() * {NUMBERS}));
    END IF; END $$"""


def version(benchmark: int | None = None, *, hiding: bool = False, votes: bool = True) -> tuple[Any, ...]:
    """Equal as long as nothing that counts for the benchmark is written, or without one nothing anywhere; without
    ``votes``, nothing but verdicts. It is another one on each day, because some facts are told from a day on. If
    ``hiding``: equal as long as nothing is written after which something may have to be hidden, on whatever day.
    """
    only = "true" if benchmark is None else f"benchmark IN ({ALL}, {int(benchmark)})"
    # A new benchmark has numbers that are 0, and hides nothing.
    asked = "sum(number)" if hiding else "count(*), sum(number)"
    effects = f" AND effect = {Effect.HIDES}" if hiding else "" if votes else f" AND effect <> {Effect.VOTES}"
    query = f"SELECT {asked} FROM {CHANGES} WHERE {only}{effects}"
    connection.ensure_connection()
    if connection.vendor == "sqlite":  # straight from the driver, because a page asks thirty times
        row = connection.connection.execute(query).fetchone()
    else:
        with connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
    return (*row,) if hiding else (timezone.now().date(), *row)


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
        present = {column.name for column in connection.introspection.get_table_description(cursor, CHANGES)}
        if present != {field.column for field in Change._meta.concrete_fields}:
            return  # or to one before its columns
        for model in without_triggers():
            for statement in triggers(model):
                cursor.execute(statement)
    known = set(Change.objects.values_list("benchmark", "effect"))
    every = set(itertools.product((ALL, *Benchmark.objects.values_list("pk", flat=True)), Effect.values))
    Change.objects.bulk_create(Change(benchmark=pk, effect=effect, number=0) for pk, effect in every - known)
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
    for name, columns, effect in _events(model):
        row = "OLD" if name == "delete" else "NEW"
        its_effect = _effect_of(model, effect) if name == "update_adding" else effect
        draw = (
            f"UPDATE {CHANGES} SET number = abs(random() % {NUMBERS})"
            f" WHERE benchmark = {_benchmark_of(model, row)} AND effect = {its_effect}"
        )
        event = f"update OF {columns}" if columns else name.removesuffix("_adding")
        trigger = f"CREATE TRIGGER counted_{table}_{name} AFTER {event} ON {table}"
        if name == "insert" and model is Benchmark:
            rows = ", ".join(f"(NEW.id, {each}, 0)" for each in Effect.values)
            draw = f"INSERT INTO {CHANGES} (benchmark, effect, number) VALUES {rows}; {draw}"
        elif name == "insert":
            # Nobody sees a row of a running import. Its end counts for all, when the range is deleted.
            hidden = f"SELECT 1 FROM {RANGES} WHERE \"table\" = '{table}' AND NEW.id BETWEEN first AND last"
            trigger += f" WHEN NOT EXISTS ({hidden})"
        statements.append(f"{trigger} BEGIN {draw}; END")
    return statements


def _of_postgresql(model: type[models.Model]) -> list[str]:
    """The same, and the function that they call: once for each statement; for each row where not all columns count."""
    table = model._meta.db_table
    of_all = f"SELECT DISTINCT {_benchmark_of(model, 'changed')} AS benchmark FROM changed"
    of_row = _effect_of(model, "TG_ARGV[0]::integer")
    statements = [
        DRAW,
        f"""CREATE OR REPLACE FUNCTION counted_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_LEVEL = 'ROW' THEN PERFORM counted_draw({_benchmark_of(model, "NEW")}, {of_row});
            ELSE PERFORM counted_draw(of.benchmark, TG_ARGV[0]::integer) FROM ({of_all}) AS of; END IF;
            RETURN NULL; END $$""",
    ]
    for name, columns, effect in _events(model):
        kind = "OLD" if name == "delete" else "NEW"
        event, each = f"{name.removesuffix('_adding')} ON {table} REFERENCING {kind} TABLE AS changed", "STATEMENT"
        if columns:
            event, each = f"UPDATE OF {columns} ON {table}", "ROW"
        trigger = f"CREATE TRIGGER counted_{table}_{name} AFTER {event} FOR EACH {each}"
        statements.append(f"{trigger} EXECUTE FUNCTION counted_{table}('{effect}')")
    return statements


def _effect_of(model: type[models.Model], effect: Any) -> str:
    """The SQL of the effect of an update of some columns of a row."""
    hides_where = HIDES_WHERE.get(model._meta.label)
    return f"CASE WHEN {hides_where} THEN {Effect.HIDES} ELSE {effect} END" if hides_where else str(effect)


def _events(model: type[models.Model]) -> list[tuple[str, str, Change.Effect]]:
    """The writes that count: insert, update, update_adding or delete; the columns of an update, if not every one
    counts; and their effect.
    """
    label = model._meta.label
    adding, uncounted = ADDING.get(label, ()), UNCOUNTED_COLUMNS.get(label, ())
    if adding == EVERY_COLUMN:
        rest = _columns(model, leaving=uncounted) if uncounted else ""
        return [("insert", "", Effect.ADDS), ("update_adding", rest, Effect.ADDS), ("delete", "", Effect.ADDS)]
    found = [("insert", "", Effect.VOTES if label in VOTES else Effect.ADDS), ("delete", "", Effect.HIDES)]
    some = uncounted or adding
    found.append(("update", _columns(model, leaving=(*uncounted, *adding)) if some else "", Effect.HIDES))
    if adding:
        others = [field.name for field in model._meta.concrete_fields if field.name not in adding]
        effect = Effect.ADDS if label in HIDES_WHERE else Effect.VOTES
        found.append(("update_adding", _columns(model, leaving=others), effect))
    return found


def _columns(model: type[models.Model], *, leaving: Sequence[str]) -> str:
    return ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields if field.name not in leaving)


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
