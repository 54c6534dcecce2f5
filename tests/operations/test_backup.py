"""Backups and their restoring, as an operator does it: real processes, on SQLite and on PostgreSQL."""

import json
import os
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from PIL import Image

from evalsite.backups import folders
from tests.judging.outside import Installation, installation, with_tables
from tests.operations.test_start import OTHER_KEY

pytestmark = pytest.mark.both_databases

POSTGRES = "TEST_DATABASE_URL" in os.environ
PAIRED = "INSERT INTO accounts_signincount (subject, since, count) VALUES ('{}', '2026-01-01', 1)"
# What processes of the past left: a worker, its run with a call in flight, its share of the judge, a file being read.
PAST = """
from django.utils import timezone
from datetime import timedelta
from accounts.models import User
from bank.models import Benchmark, FileLease, Import
from judging.models import Judge, JudgeShare, Run, RunHold, WorkerBeat
now = timezone.now()
judge = Judge.objects.create(name="j", base_url="http://127.0.0.1:9/v1", model="m")
run = Run.objects.create(benchmark=Benchmark.objects.get(), judge=judge, protocol="pair", settings_hash="x")
RunHold.objects.create(run=run, until=now + timedelta(seconds=30), in_flight=1)
JudgeShare.objects.create(judge=judge, holder="h", calls=9, until=now + timedelta(seconds=10))
WorkerBeat.objects.create(name="w", seen_at=now - timedelta(minutes=5))
FileLease.objects.create(person=User.objects.create_user("p"), until=now + timedelta(hours=1))
Import.objects.create(holder="h", until=now + timedelta(seconds=60))
answer = 0
"""
LEFT = """
from django.test import Client
from accounts import audit
from bank.models import FileLease, Import
from bank.intake.imports.writer import abandoned_import
from judging.models import JudgeShare, Run, RunHold, WorkerBeat
left = [model.objects.count() for model in (RunHold, JudgeShare, WorkerBeat, FileLease)]
run = Run.objects.get()
ready = Client().get("/readyz", secure=True).json()
answer = [left, run.lost, abandoned_import() is not None, ready]
"""
KILLED = """
import os, signal
from django.core.management import call_command
from evalsite.backups import folders
def killed(source, target):
    target.parent.mkdir(parents=True)
    target.write_bytes(b"a part")
    os.kill(os.getpid(), signal.SIGKILL)
folders.copy = killed
call_command("backup", {!r})
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """An installation with hidden criteria, a picture, and the traces of a worker that was at something."""
    folder = tmp_path_factory.mktemp("backed-up")
    Image.new("RGB", (9, 9), "red").save(folder / "a.png")
    sample = {"key": "1", "instruction": "看图。", "images": ["a.png"]}
    criteria = [{"kind": "guideline", "text": "hidden words 隐藏"}]
    (folder / "samples.jsonl").write_text(json.dumps(sample | {"criteria": criteria}), encoding="utf-8")
    with installation(folder / "data") as outside:
        outside.manage("import_benchmark", "generic", str(folder / "samples.jsonl"), "--benchmark", "kept")
        outside.ask(PAST)
        yield outside


@pytest.fixture(scope="module")
def backup(here, tmp_path_factory):
    """A backup of it that no test changes."""
    return Path(here.manage("backup", str(tmp_path_factory.mktemp("backups"))).partition(": ")[0])


@pytest.fixture
def copied(backup, tmp_path):
    """The same, to spoil."""
    return Path(shutil.copytree(backup, tmp_path / "backups" / backup.name))


@contextmanager
def empty(here, folder):
    """An empty installation on the same kind of database."""
    if not POSTGRES:
        yield Installation(folder, f"sqlite:///{folder}/evalsite.sqlite3")
        return
    url, name = urlsplit(here.environment["DATABASE_URL"]), f"evalsite_restored_{os.getpid()}"
    with psycopg.connect(url._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
        yield Installation(folder, url._replace(path=f"/{name}").geturl())
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def place(here, tmp_path):
    with empty(here, tmp_path / "place") as one:
        yield one


def refused(one, *command, **environment):
    """What a command said that ended with status 1, in words."""
    done = one.tried(*command, **environment)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def pictures_in(folder):
    return [path for path in (folder / "media").rglob("*") if path.is_file()]


def is_empty(one):
    """Whether nothing is there: neither tables nor pictures."""
    folder = Path(one.environment["EVALSITE_DATA"])
    if POSTGRES:
        return one.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)] and not pictures_in(
            folder
        )
    return not (folder / "evalsite.sqlite3").exists() and not pictures_in(folder)


def flip(path):
    """Change one bit in the middle of a file, as a failing disk does: its size and time stay."""
    found, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def picture_in(backup):
    return next((backup / "media" / "images").rglob("*.png"))


@contextmanager
def writing(here):
    """Somebody writes all the time, two rows in each transaction; yields how many transactions are done."""
    done, stop = [], threading.Event()
    url = here.environment["DATABASE_URL"]

    def write():
        connection = psycopg.connect(url) if POSTGRES else sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60)
        with closing(connection):
            while not stop.is_set():
                for side in "ab":
                    connection.execute(PAIRED.format(f"{side}{len(done)}"))
                connection.commit()
                done.append(1)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not done:
            assert thread.is_alive()
            time.sleep(0.01)
        yield done
    finally:
        stop.set()
        thread.join()


def test_a_backup_of_a_moment_in_the_midst_of_writing_comes_back_with_whole_transactions(here, place, tmp_path):
    with writing(here) as done:
        before = len(done)
        here.manage("backup", str(tmp_path / "backups"))
        after = len(done)
    assert after > before, "the writer was kept waiting"
    place.manage("restore", str(tmp_path / "backups"))
    count = "SELECT count(*) FROM accounts_signincount WHERE subject LIKE '{}%'"
    pairs = [place.sql(count.format(side))[0][0] for side in "ab"]
    assert pairs[0] == pairs[1]
    assert before <= pairs[0] <= after + 1  # one may be stored and not yet counted


def test_what_is_restored_is_ready_and_its_criteria_can_be_read(backup, place):
    said = place.manage("restore", str(backup.parent))
    assert f"Restored {backup}" in said
    export = ("export", "samples", "--benchmark", "kept", "--format", "jsonl", "--with-criteria", "--reason", "drill")
    sample = json.loads(place.manage(*export))
    assert (sample["instruction"], sample["criteria"][0]["text"]) == ("看图。", "hidden words 隐藏")
    here_again = Path(place.environment["EVALSITE_DATA"]) / "media"
    manifest = folders.read_manifest(backup)
    assert sorted(str(path.relative_to(here_again)) for path in pictures_in(here_again.parent)) == manifest.pictures
    assert all(folders.sha256(here_again / name) == manifest.files[f"media/{name}"] for name in manifest.pictures)
    left, lost, abandoned, ready = place.ask(LEFT)
    assert left == [0, 0, 0, 0]
    assert lost == 1  # the call that was in flight: nobody knows its answer, and it may have cost something
    assert abandoned  # the next import need not wait for the one of the past
    assert ready.pop("worker").startswith("none is running")
    assert set(ready.values()) == {"ok"}


def test_files_of_backups_are_for_their_owner_alone_and_say_what_they_are(here, backup):
    modes = {path.stat().st_mode & 0o777 for path in backup.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (backup, *backup.rglob("*")) if path.is_dir()} == {0o700}
    manifest = folders.read_manifest(backup)
    assert manifest.database == ("postgresql" if POSTGRES else "sqlite")
    assert manifest.rows["bank_sample"] == 1
    assert {name for name in manifest.files if "/" not in name} == {"database"}  # the keys are in the environment
    files = {str(path.relative_to(backup)) for path in backup.rglob("*") if path.is_file()}
    assert files == {*manifest.files, "manifest.json"}
    everything = b"".join(path.read_bytes() for path in backup.rglob("*") if path.is_file())
    assert here.environment["CRITERIA_KEYS"].encode() not in everything
    assert here.environment["SECRET_KEY"].encode() not in everything


def test_a_backup_that_is_killed_is_none_and_the_next_one_cleans_up_and_keeps_as_many_as_it_is_told(
    here, place, tmp_path
):
    there = tmp_path / "backups"
    (there / "notes").mkdir(parents=True)  # somebody else's
    assert here.run(KILLED.format(str(there))).returncode == -signal.SIGKILL
    [killed] = there.glob("2*")
    assert [path.read_bytes() for path in (killed / "media").rglob("*") if path.is_file()] == [b"a part"]
    for asked in (there, killed):
        assert "There is no complete backup" in refused(place, "restore", str(asked))
    here.manage("backup", str(there))
    [first] = there.glob("2*")  # in the same second it has the name of the one that was killed
    assert picture_in(first).read_bytes() != b"a part"
    here.manage("backup", str(there), "--keep", "2")
    second = max(there.glob("2*"))
    assert picture_in(first).stat().st_ino == picture_in(second).stat().st_ino  # takes no space again
    flip(picture_in(second))
    here.manage("backup", str(there), "--keep", "2", "--verify")  # a damaged file is not taken over
    kept = sorted(there.glob("2*"))
    assert kept == [second, kept[1]]
    assert not first.exists()
    assert (there / "notes").is_dir()


def test_two_at_once_into_one_folder_are_refused(here, tmp_path):
    with folders.alone(tmp_path):
        assert "Another backup is being made" in refused(here, "backup", str(tmp_path))
    assert not list(tmp_path.glob("2*"))


def test_a_wrong_key_a_damaged_file_a_place_with_data_and_another_kind_are_refused_and_nothing_is_written(
    here, place, copied
):
    said = refused(place, "restore", str(copied), CRITERIA_KEYS=OTHER_KEY)
    assert "are not the keys of this backup" in said
    assert is_empty(place)
    manifest = json.loads((copied / "manifest.json").read_text())
    other = manifest | {"database": "sqlite" if POSTGRES else "postgresql"}
    (copied / "manifest.json").write_text(json.dumps(other))
    said = refused(place, "restore", str(copied))
    assert "to_postgres" in said if POSTGRES else "Set DATABASE_URL" in said
    (copied / "manifest.json").write_text(json.dumps(manifest | {"of_next_year": 1}))
    assert "was made by another version" in refused(place, "restore", str(copied))
    (copied / "manifest.json").write_text(json.dumps(manifest))
    picture = picture_in(copied)
    flip(picture)
    assert str(picture.relative_to(copied)) in refused(place, "restore", str(copied))
    assert is_empty(place)
    flip(picture)
    rows = here.sql("SELECT count(*) FROM bank_sample")
    assert "is not empty: it has" in refused(here, "restore", str(copied))
    assert here.sql("SELECT count(*) FROM bank_sample") == rows
    pictures = Path(place.environment["EVALSITE_DATA"]) / "media" / "images"
    pictures.mkdir(parents=True)
    (pictures / "old.png").write_text("somebody's")
    assert "old.png" in refused(place, "restore", str(copied))
    (pictures / "old.png").unlink()
    place.manage("restore", str(copied))  # it was these faults and nothing else that kept it from being restored


def test_verifying_restores_it_and_finds_one_bit_that_was_flipped(here, copied):
    said = here.manage("backup", str(copied.parent), "--verify-only")
    assert "Verified by restoring it" in said
    assert "the audit log is whole" in said
    for path in (picture_in(copied), copied / "database"):
        flip(path)
        assert str(path.relative_to(copied)) in refused(here, "backup", str(copied.parent), "--verify-only")
        flip(path)
    assert sorted(path.name for path in copied.parent.iterdir()) == [".lock", copied.name]
    if POSTGRES:
        assert here.sql("SELECT count(*) FROM pg_database WHERE datname LIKE 'evalsite_verify%'") == [(0,)]


def test_verifying_finds_an_audit_log_that_was_changed_and_text_that_no_key_opens(here, tmp_path):
    here.ask("from accounts import audit; audit.record('sign-in', name='n'); answer = 0")
    here.sql("UPDATE accounts_auditentry SET name = 'm' WHERE name = 'n'")
    [(sealed,)] = here.sql("SELECT text FROM bank_criterion")
    here.sql("UPDATE bank_criterion SET text = '2:AAAA'")
    older = Path(here.manage("backup", str(tmp_path)).partition(": ")[0])
    try:
        said = refused(here, "backup", str(tmp_path), "--verify", "--keep", "1")
    finally:
        here.sql("UPDATE accounts_auditentry SET name = 'n' WHERE name = 'm'")
        here.sql(f"UPDATE bank_criterion SET text = '{sealed}'")
    assert older in folders.complete(tmp_path)  # nothing is deleted for what cannot be restored
    assert "the audit log is not whole" in said
    assert "bank_criterion.text holds what cannot be read" in said


def test_a_local_installation_gets_its_keys_back_with_its_data(here, tmp_path):
    data = tmp_path / "data"
    local = Installation(data, f"sqlite:///{data}/evalsite.sqlite3")
    with_tables(data / "evalsite.sqlite3")
    keys = "".join(f"{name}={local.environment[name]}\n" for name in ("SECRET_KEY", "CRITERIA_KEYS"))
    (data / "local-keys.env").write_text(keys)
    for name in ("SECRET_KEY", "CRITERIA_KEYS", "ALLOWED_HOSTS", "DATABASE_URL"):
        del local.environment[name]
    assert "It holds the keys" in local.manage("backup", str(tmp_path / "backups"), "--verify")
    shutil.rmtree(data)
    said = local.manage("restore", str(tmp_path / "backups"))
    assert (data / "local-keys.env").read_text() == keys
    assert (data / "local-keys.env").stat().st_mode & 0o777 == 0o600
    [aside] = data.glob("local-keys.env.before-*")
    assert aside.name in said
    local.manage("may_start")


@pytest.mark.skipif(not POSTGRES, reason="the programs and roles of PostgreSQL: run by tests.on_postgres")
def test_without_pg_dump_or_a_role_that_may_make_databases_it_says_what_to_do(here, tmp_path):
    assert "pg_dump is not installed" in refused(here, "backup", str(tmp_path / "a"), PATH="/nowhere")
    assert not list((tmp_path / "a").glob("2*"))
    role = f"evalsite_reader_{os.getpid()}"
    here.sql(f"CREATE ROLE {role} LOGIN IN ROLE pg_read_all_data")
    url = urlsplit(here.environment["DATABASE_URL"])
    try:
        url = url._replace(netloc=f"{role}@{url.netloc.rpartition('@')[2]}").geturl()
        said = refused(here, "backup", str(tmp_path / "b"), "--verify", DATABASE_URL=url)
    finally:
        here.sql(f"DROP ROLE {role}")
    assert f"ALTER ROLE {role} CREATEDB" in said
    assert len(folders.complete(tmp_path / "b")) == 1


def test_a_database_whose_keys_are_not_here_is_not_backed_up_as_if_they_were(here, tmp_path):
    said = refused(here, "backup", str(tmp_path), CRITERIA_KEYS=OTHER_KEY)
    assert "are not the keys of this database" in said
    assert not list(tmp_path.glob("2*"))


def test_a_database_without_its_pictures_is_only_backed_up_where_they_are_said_to_be_lost(here, tmp_path):
    elsewhere = {"EVALSITE_DATA": str(tmp_path / "elsewhere")}
    said = refused(here, "backup", str(tmp_path / "backups"), **elsewhere)
    assert "set EVALSITE_DATA" in said
    assert not list((tmp_path / "backups").glob("2*"))
    process = here.start("backup", str(tmp_path / "backups"), "--without-pictures", **elsewhere)
    assert "0 files of pictures" in process.communicate(timeout=200)[0]


def test_nothing_can_be_restored_from_or_backed_up_where_there_is_nothing(place, tmp_path):
    assert "There is nothing to back up" in refused(place, "backup", str(tmp_path / "backups"))
    assert "There is no complete backup" in refused(place, "restore", str(tmp_path / "backups"))
    assert not list((tmp_path / "backups").glob("2*"))
    media = Path(place.environment["EVALSITE_DATA"]) / "media" / "backups"
    assert "into itself" in refused(place, "backup", str(media))


def test_keeping_none_is_refused_before_anything_is_deleted(here, tmp_path):
    here.manage("backup", str(tmp_path))
    for number in ("0", "-3"):
        assert "1 or more" in refused(here, "backup", str(tmp_path), f"--keep={number}")
    assert len(list(tmp_path.glob("2*"))) == 1
