"""Moving an installation from SQLite to PostgreSQL: the same rows arrive, or none and a word about why."""

import json
import os
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.judging.outside import Installation, with_tables
from tests.on_postgres import URL

# Odd values of every kind that a column may hold, and an id that was given and is free again.
FILL = """
from datetime import date, datetime, timedelta, UTC
from accounts import audit
from accounts.models import SavedView, SignInCount, User
from bank.models import Benchmark, EvaluatedModel
person = User.objects.create_user("张伟", password="a-long-password", role="curator", preferences={
    "text": "准确性 \\\\u0000 is no NUL, \\U0001f600",
    "numbers": [0.1, 1e16, 1.5e300, -0.0, 5e-324, 2**70, 1.0, 0, True],
    "nested": {"b": None, "a": ["字" * 50_000] * 4}})
audit.record("account-made", by=person, about="张伟", numbers=[1.5, 2])
odd = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
SignInCount.objects.create(subject="\\\\N\\t\\n'quoted', \\\\backslash", since=odd, count=2**31 - 1)
SignInCount.objects.create(subject="early", since=datetime(1970, 1, 1, tzinfo=UTC), count=0)
EvaluatedModel.objects.create(name="m", released=date(2026, 2, 28), price_in=0.1 + 0.2, price_out=None)
SavedView.objects.create(person=person, name="gone", path="/").delete()
answer = 0
"""
SEEN = """
from accounts import audit
from accounts.models import SavedView, SignInCount, User
from bank.models import EvaluatedModel
from leaderboard.kept import counters
person = User.objects.get(username="张伟")
before = counters.version()
made = SavedView.objects.create(person=person, name="next", path="/").pk
person.first_name = "伟"; person.save()
counts = [[one.subject, one.since.isoformat(), one.count] for one in SignInCount.objects.order_by("pk")]
model = EvaluatedModel.objects.get()
card = [str(model.released), model.price_in, model.price_out]
broken = list(map(str, audit.broken()))
signs_in = person.check_password("a-long-password")
answer = [person.preferences, counts, card, made, before != counters.version(), broken, signs_in]
"""
# A table of kinds that no model has today, in place of all; somebody tries to write while it is moved.
ODD = """
import sqlite3
from contextlib import closing
from decimal import Decimal
from uuid import UUID
import psycopg
from django.db import connection, models
from evalsite import to_postgres
class Odd(models.Model):
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    content = models.BinaryField()
    key = models.UUIDField(null=True)
    name = models.CharField(max_length=5, default="")
    class Meta:
        app_label = "evalsite"
with connection.schema_editor() as editor:
    editor.create_model(Odd)
Odd.objects.create(amount=Decimal("12345.6789"), content=bytes(range(256)), key=UUID(int=7))
Odd.objects.create(amount=Decimal("-0.1000"), content=b"", name="字" * {length})
types = "id bigserial primary key, amount numeric(20, 4), content bytea, key uuid, name varchar(5)"
said = []
def migrate(url):
    with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0)) as other:
        try:
            other.execute("DELETE FROM evalsite_odd")
        except sqlite3.OperationalError as error:
            said.append(str(error))
    with psycopg.connect(url) as target:
        target.execute(f"CREATE TABLE evalsite_odd ({{types}})")
copy = to_postgres._copy
def copy_and_change(target, model):
    copy(target, model)
    target.execute("UPDATE evalsite_odd SET amount = amount + {more}")
to_postgres._migrate, to_postgres._copy, to_postgres._models = migrate, copy_and_change, lambda: [Odd]
try:
    to_postgres.move({url!r}, said.append)
except (psycopg.Error, to_postgres.Failed) as error:
    said.append(str(error))
answer = said
"""


@pytest.fixture(scope="module")
def server():
    try:
        with psycopg.connect(URL, connect_timeout=3, autocommit=True) as connection:
            yield connection
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL on localhost that accepts postgres, and no TEST_POSTGRES_URL")


@pytest.fixture
def target(server):
    """The address of an empty database."""
    name = f"evalsite_moved_{os.getpid()}"
    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    server.execute(f"CREATE DATABASE {name}")
    yield urlsplit(URL)._replace(path=f"/{name}").geturl()
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def source(tmp_path):
    """An installation on SQLite with a person, an audit log and odd values."""
    one = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    with_tables(tmp_path / "data" / "evalsite.sqlite3")
    one.ask(FILL)
    return one


def tables(url):
    """How many tables are there, and how many rows of people's accounts."""
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        people = connection.execute("SELECT count(*) FROM accounts_user").fetchone()[0] if names else 0
        return len(names), people


def refused(one, *command):
    done = one.tried(*command)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_every_row_arrives_as_it_was_and_new_ones_go_on_from_there(source, target):
    said = source.manage("to_postgres", target)
    assert "with the same checksum for each table" in said
    rows = source.sql("SELECT id, username, date_joined, is_active, password FROM accounts_user")
    with psycopg.connect(target) as moved:
        columns = (
            "id, username, to_char(date_joined AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), is_active, password"
        )
        assert moved.execute(f"SELECT {columns} FROM accounts_user").fetchall() == [
            (pk, name, joined, bool(active), password) for pk, name, joined, active, password in rows
        ]
    there = Installation(source.environment["EVALSITE_DATA"], target)
    there.manage("may_start")
    preferences, counts, card, made, is_changed, broken, signs_in = there.ask(SEEN)
    [(stored,)] = source.sql("SELECT preferences FROM accounts_user")
    before = json.loads(stored)
    assert [float(number) for number in preferences.pop("numbers")] == before.pop(
        "numbers"
    )  # 1e16 is a whole number now
    assert preferences == before
    assert counts == [
        ["\\N\t\n'quoted', \\backslash", "2026-01-02T03:04:05.678901+00:00", 2**31 - 1],
        ["early", "1970-01-01T00:00:00+00:00", 0],
    ]
    assert card == ["2026-02-28", 0.1 + 0.2, None]
    assert made == 2  # the first one is gone, and its id is not given again
    assert is_changed  # what is written counts as a change of boards again
    assert broken == []
    assert signs_in
    assert "is not empty" in refused(source, "to_postgres", target)
    assert "does not use SQLite" in refused(there, "to_postgres", target)


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"first_name": "a\0b"}, "a text holds a NUL character"),
        ({"preferences": '{"a": "\\u0000"}'}, "a text holds a NUL character"),
        ({"preferences": '{"a": ["\\ud83d"]}'}, "a text holds half a character"),
    ],
)
def test_what_postgresql_does_not_take_is_named_and_nothing_is_made_there(source, target, odd, told):
    database = source.environment["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(database)) as connection, connection:
        for column, value in odd.items():
            connection.execute(f"UPDATE accounts_user SET {column} = ?", [value])
    assert f"PostgreSQL does not take row 1 of accounts_user: {told}" in refused(source, "to_postgres", target)
    assert tables(target) == (0, 0)


def move_odd(source, target, *, length=5, more=0):
    """What is said while the odd table is moved, and the rows that are there then."""
    said = source.ask(ODD.format(url=target, length=length, more=more))
    with psycopg.connect(target) as moved:
        query = "SELECT amount::text, content, key::text, name FROM evalsite_odd ORDER BY id"
        return said, moved.execute(query).fetchall()


def test_decimals_and_binary_arrive_too_and_nobody_writes_meanwhile(source, target):
    said, rows = move_odd(source, target)
    assert "database is locked" in said
    assert rows == [
        ("12345.6789", bytes(range(256)), "00000000-0000-0000-0000-000000000007", ""),
        ("-0.1000", b"", None, "字字字字字"),
    ]


def test_a_text_too_long_for_its_column_is_told_with_its_place_and_no_row_is_kept(source, target):
    said, rows = move_odd(source, target, length=6)
    assert "too long" in said[-1]
    assert "COPY evalsite_odd, line 2, column name" in said[-1]
    assert rows == []


def test_a_row_that_changes_on_its_way_is_found_and_no_row_is_kept(source, target):
    said, rows = move_odd(source, target, more="0.0001")
    assert said[-1] == "What arrived differs from what is here, in evalsite_odd. No row was kept there."
    assert rows == []
