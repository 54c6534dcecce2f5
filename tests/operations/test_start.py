"""What an installation does not start with: it says so in words, and nothing was made or changed."""

import importlib
import logging
import re
import socket
import sqlite3
import time
from contextlib import closing

import pytest
from django.db.migrations.loader import MigrationLoader

from tests import forks
from tests.judging.outside import Installation, installation, with_tables
from tests.operations.served import GUNICORN, PRODUCTION, free_port, running, wait_for

OTHER_KEY = "b3RoZXIta2V5LW9mLXRoaXJ0eS10d28tYnl0ZXMtIS4="
DEMO = "from evalsite.demo.accounts import make_account; make_account('admin'); make_account('curator'); answer = 0"
MANAGE = ["manage.py"]


@pytest.fixture
def fresh(tmp_path):
    """A data folder in which nothing was done yet."""
    return Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")


def said(here, *command, **environment):
    """What a command said when it ended with a fault."""
    done = forks.run(list(command), environment=here.environment | PRODUCTION | environment)
    assert done.returncode, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def starts():
    """Every way to start: (its name, the command)."""
    port = str(free_port())
    return {
        "serve": [*MANAGE, "serve", "--bind", f"127.0.0.1:{port}"],
        "gunicorn": [*GUNICORN, "--bind", f"127.0.0.1:{port}"],
        "worker": [*MANAGE, "worker"],
    }


@pytest.mark.check("K1")
def test_gunicorn_and_worker_say_what_to_run_first_and_start_when_it_was_run(fresh, tmp_path):
    for start in starts().values():
        assert "SECRET_KEY is not set" in said(fresh, *start, SECRET_KEY="")
    for start in ("gunicorn", "worker"):
        assert "run `manage.py migrate`" in said(fresh, *starts()[start])
    with_tables(tmp_path / "data" / "evalsite.sqlite3")
    assert "Run `manage.py collectstatic --no-input`" in said(fresh, *starts()["gunicorn"])
    fresh.manage("collectstatic", "--no-input", "-v0")
    port = free_port()
    with running(fresh, [*GUNICORN, "--bind", f"127.0.0.1:{port}"], tmp_path / "log") as web:
        wait_for(port, web, tmp_path / "log")
        with running(fresh, [*MANAGE, "worker"], tmp_path / "worker"):
            wait_for(port, web, tmp_path / "log", path="/readyz")


@pytest.mark.check("K3")
def test_a_data_folder_of_before_the_migrations_were_written_anew_is_refused(fresh, tmp_path):
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "evalsite.sqlite3")) as older, older:
        older.execute("CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, app text, name text, applied datetime)")
        older.execute("INSERT INTO django_migrations VALUES (1, 'bank', '0012_open_keys', '2026-11-01')")
        tables = older.execute("SELECT count(*) FROM sqlite_master").fetchone()
    for command in [*starts().values(), [*MANAGE, "migrate"]]:
        assert "Start with a new data folder" in said(fresh, *command), command
    with closing(sqlite3.connect(tmp_path / "data" / "evalsite.sqlite3")) as older:
        assert older.execute("SELECT count(*) FROM sqlite_master").fetchone() == tables


@pytest.mark.check("K3")
def test_a_data_folder_with_all_that_the_squashed_migrations_replace_is_taken_over(fresh, tmp_path):
    with_tables(tmp_path / "data" / "evalsite.sqlite3")
    squashed = {pair: one.replaces for pair, one in MigrationLoader(None).disk_migrations.items() if one.replaces}
    replaced = [pair for pairs in squashed.values() for pair in pairs]
    with closing(sqlite3.connect(tmp_path / "data" / "evalsite.sqlite3")) as stored, stored:
        gone = [*squashed, *replaced]  # those that came after stay
        stored.executemany("DELETE FROM django_migrations WHERE app = ? AND name = ?", gone)
        recorded = [*replaced, ("bank", "0001_squashed_0005_item_indexes")]  # of 0.2.0, squashed anew since
        stored.executemany("INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, '2026-11-20')", recorded)
    fresh.manage("migrate", "-v0")
    fresh.manage("worker", "--until-idle")


SINGLE_MIGRATIONS = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
executor = MigrationExecutor(connection)
executor.loader.replace_migrations = False
executor.loader.build_graph()
for squashed, migration in executor.loader.replacements.items():
    executor.loader.graph.remove_replacement_node(squashed, migration.replaces)
executor.migrate(executor.loader.graph.leaf_nodes())
"""


@pytest.mark.check("K3")
@pytest.mark.soak
def test_the_squashed_migrations_make_the_tables_of_those_that_they_replace(fresh, tmp_path):
    (tmp_path / "data").mkdir()
    done = fresh.run(SINGLE_MIGRATIONS)
    assert done.returncode == 0, done.stderr
    fresh.manage("migrate", "-v0")
    with_tables(tmp_path / "squashed.sqlite3")
    assert columns_and_indexes(tmp_path / "data" / "evalsite.sqlite3") == columns_and_indexes(
        tmp_path / "squashed.sqlite3"
    )


def columns_and_indexes(database):
    """What the tables hold, in no order: columns with their types, indexes without their hashes, and constraints."""
    with closing(sqlite3.connect(database)) as stored:
        tables = [name for (name,) in stored.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {(table, *row[1:]) for table in tables for row in stored.execute(f"PRAGMA table_info({table})")}
        others = stored.execute("SELECT sql FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL")
        checks = stored.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        checks = {(name, check) for name, sql in checks for check in re.findall(r'CONSTRAINT "\w+" [A-Z]+', sql)}
        return columns, {re.sub(r"_[0-9a-f]{8}\b|_[0-9a-f]{8}_", "_", sql) for (sql,) in others}, checks


@pytest.mark.check("K3")
def test_accounts_with_the_demos_password_keep_production_from_starting_until_they_are_off(fresh, tmp_path):
    with_tables(tmp_path / "data" / "evalsite.sqlite3")
    fresh.ask(DEMO)
    for command in [starts()["gunicorn"], [*MANAGE, "check", "--deploy"]]:
        assert "manage.py remove_demo_accounts" in said(fresh, *command), command
    assert "Switched off: admin, curator." in fresh.manage("remove_demo_accounts")
    assert "No account has the demo's password" in fresh.manage("remove_demo_accounts")
    fresh.manage("check", "--deploy")
    fresh.manage("worker", "--until-idle")
    assert fresh.ask("from accounts.models import User; answer = User.objects.filter(is_active=True).count()") == 0


@pytest.mark.check("K3")
def test_a_database_whose_keys_are_not_here_does_not_start(tmp_path):
    with installation(tmp_path / "data") as here:
        for command in [starts()["worker"], [*MANAGE, "migrate"]]:
            assert "are not the keys of this database" in said(here, *command, CRITERIA_KEYS=OTHER_KEY), command
        here.manage("may_start")


@pytest.mark.check("K3")
def test_no_new_keys_are_made_beside_a_database_that_was_restored_without_them(tmp_path):
    local = Installation(tmp_path / "data", "")
    for name in ("SECRET_KEY", "CRITERIA_KEYS", "ALLOWED_HOSTS", "DATABASE_URL"):
        del local.environment[name]
    local.manage("migrate", "-v0")
    kept = tmp_path / "data" / "local-keys.env"
    keys = kept.read_text()
    kept.unlink()
    process = local.start("check")
    problem = process.communicate()[1]
    assert process.returncode
    assert "Put the file back where it was" in problem
    assert "Traceback" not in problem
    assert not kept.exists()
    kept.write_text(keys)
    local.manage("may_start")


def test_a_local_installation_listens_to_this_machine_alone(tmp_path):
    local = Installation(tmp_path / "data", "")
    for name in ("SECRET_KEY", "CRITERIA_KEYS", "ALLOWED_HOSTS", "DATABASE_URL"):
        del local.environment[name]
    process = local.start("serve", "--bind", f"0.0.0.0:{free_port()}")
    assert "Set ALLOWED_HOSTS" in process.communicate(timeout=100)[1]
    assert process.returncode


def test_what_is_stored_is_for_nobody_else_on_the_machine(fresh, tmp_path):
    data = tmp_path / "data"
    with_tables(data / "evalsite.sqlite3")
    fresh.manage("migrate", "-v0")
    assert [path.stat().st_mode & 0o777 for path in (data, data / "evalsite.sqlite3")] == [0o700, 0o600]
    data.chmod(0o755)
    (data / "evalsite.sqlite3").chmod(0o644)  # as an older version left it
    fresh.ask(
        "from django.core.files.storage import default_storage as s; from django.core.files.base import ContentFile;"
        "s.save('a/b.png', ContentFile(b'x')); answer = 0"
    )
    assert [path.stat().st_mode & 0o777 for path in (data, data / "evalsite.sqlite3")] == [0o700, 0o600]
    assert [(data / "media" / name).stat().st_mode & 0o77 for name in ("", "a", "a/b.png")] == [0, 0, 0]


def test_a_port_that_is_taken_is_told_in_words_for_every_way_of_starting(tmp_path):
    here = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = here.start("serve", "--bind", f"127.0.0.1:{taken.getsockname()[1]}").communicate()[1]
    assert "in use. Stop what listens there, or set PORT to another." in said


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DATABASE_URL", "postgres://evalsite:pa55/word@db/evalsite", "no address such as postgres://"),
        ("DATABASE_URL", "mysql://evalsite@db/evalsite", "neither postgres:// nor sqlite:///"),
        ("DATABASE_URL", "evalsite", "neither postgres:// nor sqlite:///"),
        ("EMAIL_URL", "smtp+tls://evalsite:pa55/word@mail:587", "no address such as smtp+tls://"),
        ("EMAIL_URL", "https://mail", "no address such as smtp+tls://"),
        ("SECOND_FACTOR_FOR_STAFF", "maybe", "is to be true or false"),
        ("CORS_ORIGINS", "https://a.example, *", "has '*', and takes sites such as https://example.org"),
        ("CSRF_TRUSTED_ORIGINS", "a.example", "has 'a.example', and takes sites such as https://example.org"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named_and_nothing_secret_of_it_is_repeated(fresh, name, value, words):
    told = said(fresh, *MANAGE, "check", **{name: value})
    assert (name in told, words in told, "pa55" in told) == (True, True, False)


A_RUN = """
from judging.models import Judge
from judging.runs.actions import start_run
from tests.judging.small import make_benchmark
judge = Judge.objects.exclude(baseline="").exclude(baseline="overlap").order_by("pk").first()
start_run(judge=judge, benchmark=make_benchmark(pictures=False), protocol="pairwise-criteria")
answer = 0
"""
RUNS = "from judging.models import Run; answer = list(Run.objects.values_list('state', flat=True))"


def test_nothing_follows_the_sign_ins_of_a_local_installation_but_what_goes_wrong(fresh, tmp_path):
    for name in ("ALLOWED_HOSTS", "SECRET_KEY", "CRITERIA_KEYS", "DATABASE_URL"):
        fresh.environment.pop(name, None)
    fresh.manage("check")  # makes the keys
    with_tables(tmp_path / "data" / "evalsite.sqlite3", key=False)
    fresh.manage("migrate", "-v0")
    fresh.ask(A_RUN)
    port = free_port()
    with (tmp_path / "log").open("w") as out:
        command = [*MANAGE, "serve", "--no-demo", "--bind", f"127.0.0.1:{port}"]
        serving = forks.start(command, environment=fresh.environment, out=out)
        try:
            for _ in range(600):
                if "Ctrl-C stops it." in (tmp_path / "log").read_text() and fresh.ask(RUNS) == ["finished"]:
                    break
                time.sleep(0.2)
        finally:
            serving.terminate()
            serving.wait(60)
    assert fresh.ask(RUNS) == ["finished"]
    said = (tmp_path / "log").read_text()
    assert "[info" not in said
    assert "Ctrl+C" not in said  # what a worker says that was started by itself
    assert said.endswith("Ctrl-C stops it.\n\nStopping ...\nStopped. The data is kept.\n")


def test_a_web_server_that_stops_says_nothing_of_memory(caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "metrics"))  # which it would set for all that follows
    web_server = importlib.import_module("evalsite.web_server")

    class Arbiter:
        LISTENERS = ["one"]

    log = logging.getLogger("gunicorn.error")
    before = list(log.filters)
    try:
        web_server.when_ready(Arbiter)
        log.error("Worker (pid:1) was sent SIGKILL! Perhaps out of memory?")
        Arbiter.LISTENERS = []
        log.error("Worker (pid:2) was sent SIGKILL! Perhaps out of memory?")
        log.error("Worker (pid:3) exited with code 1.")
    finally:
        log.filters[:] = before
    assert [record.getMessage()[12:13] for record in caplog.records] == ["1", "3"]
