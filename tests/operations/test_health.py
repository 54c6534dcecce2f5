"""What /readyz says of an installation in which something is broken, and how pages and the API fail then."""

import errno
import shutil
import threading
from collections import namedtuple
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from accounts import installation_key
from accounts.models import InstallationKey
from bank.api.viewsets import Benchmarks
from evalsite import doctor, health
from judging.models import WorkerBeat

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def beating(db, media):
    """A worker that was just seen."""
    media.mkdir(parents=True)
    WorkerBeat.objects.create(name="w", seen_at=timezone.now())


@contextmanager
def read_only():
    """The database refuses to be written, as a standby or a full quota does."""
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = 1" if sqlite else "SET default_transaction_read_only = on")
    yield
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = 0" if sqlite else "SET default_transaction_read_only = off")


def ready(client):
    answer = client.get("/readyz")
    return answer.status_code, answer.json()


def broken(client, name):
    """What it says of this part, when that is all that is broken."""
    status, found = ready(client)
    assert status == 503
    assert {one for one, said in found.items() if said != "ok"} == {name}
    return found[name]


@pytest.mark.check("K6")
def test_an_installation_that_is_well_says_so_by_any_name_and_tells_no_version(client, beating):
    assert ready(client) == (200, dict.fromkeys(("database", "migrations", "keys", "worker", "storage"), "ok"))
    assert client.get("/readyz", HTTP_HOST="10.0.0.5:8000").status_code == 200


@pytest.mark.check("K6")
@pytest.mark.parametrize(
    ("asked", "hops", "told"),
    [
        ({}, 0, True),
        ({"REMOTE_ADDR": "::1"}, 0, True),
        ({"REMOTE_ADDR": "192.0.2.1"}, 0, False),
        ({"HTTP_X_FORWARDED_FOR": "192.0.2.1"}, 0, False),  # by a proxy on this machine that the settings do not name
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 0, False),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1, 192.0.2.1"}, 1, False),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1", "REMOTE_ADDR": "192.0.2.1"}, 1, False),
        ({}, 1, True),
    ],
)
def test_only_this_machine_is_told_what_is_wrong_and_everybody_that_something_is(client, asked, hops, told, settings):
    settings.TRUSTED_PROXIES = hops
    answer = client.get("/readyz", **asked)  # no worker is running
    assert answer.status_code == 503
    assert ("worker" in answer.content.decode()) is told
    if not told:
        assert answer.json() == {"status": "not ready"}


@pytest.mark.check("K6")
def test_a_database_that_cannot_be_written_is_not_ready(client, beating, caplog):
    with read_only():
        assert broken(client, "database") == "The database cannot be written: it is read-only."
    assert "Traceback" not in caplog.text


@pytest.mark.check("K6")
def test_migrations_that_wait_are_told(client, beating):
    recorder = MigrationRecorder(connection)
    last = max(recorder.applied_migrations())
    recorder.record_unapplied(*last)
    try:
        assert broken(client, "migrations") == "1 wait: run `manage.py migrate`"
    finally:
        recorder.record_applied(*last)


@pytest.mark.check("K6")
def test_a_database_of_before_the_migrations_were_written_anew_is_told_and_left_alone(client, beating):
    recorder = MigrationRecorder(connection)
    recorder.record_applied("bank", "0012_open_keys")
    try:
        assert "Start with a new data folder" in broken(client, "migrations")
        with pytest.raises(CommandError, match="Start with a new data folder"):
            call_command("migrate", verbosity=0)
    finally:
        recorder.record_unapplied("bank", "0012_open_keys")


@pytest.mark.check("K6")
def test_a_worker_that_is_silent_or_was_never_started_is_told(client, beating):
    WorkerBeat.objects.update(seen_at=timezone.now() - timezone.timedelta(minutes=7))
    assert broken(client, "worker").startswith("silent for 42")
    WorkerBeat.objects.all().delete()
    assert "manage.py worker" in broken(client, "worker")


@pytest.mark.check("K6", "K3")
def test_keys_that_are_not_those_of_the_database_are_told(client, beating, settings):
    InstallationKey.objects.update_or_create(pk=installation_key.ONLY, defaults={"secret": "11" * 32})
    settings.CRITERIA_KEYS = ["b3RoZXIta2V5LW9mLXRoaXJ0eS10d28tYnl0ZXMtIS4="]
    assert "not the keys of this database" in broken(client, "keys")


@pytest.mark.check("K6")
def test_a_disk_without_space_or_folders_is_told_and_nothing_is_written(client, beating, media, settings, monkeypatch):
    before = sorted(settings.DATA.rglob("*"))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100, 99, 1))
    assert "no space is left" in broken(client, "storage")
    monkeypatch.undo()
    settings.MEDIA_ROOT = media / "file"
    (media / "file").write_bytes(b"")
    assert "cannot be written" in broken(client, "storage")
    assert sorted(settings.DATA.rglob("*")) == before


def test_a_part_that_hangs_is_not_ready_and_no_second_look_waits_for_it(client, beating, monkeypatch):
    go_on, looks = threading.Event(), []

    def hangs():
        looks.append(go_on.wait(20))
        return doctor.ok()

    monkeypatch.setattr(doctor, "storage", hangs)
    try:
        assert "does not answer within" in broken(client, "storage")
        status, found = ready(client)
        assert (status, list(found)) == (503, ["status"])
        assert looks == []  # both were answered before it was
    finally:
        go_on.set()
    monkeypatch.undo()
    health._hanging.join(20)
    assert ready(client)[0] == 200


def test_what_fails_while_the_database_is_read_only_is_503_in_words_and_soon_over(client_of):
    curator = client_of("curator")
    curator.raise_request_exception = False
    files = {"files": [{"name": "a.jsonl", "size": 3}]}
    with read_only():
        page = curator.post("/accounts/tokens/", {"scopes": ["read"], "ends": "30"})
        sent = curator.post("/api/v1/uploads/", files, content_type="application/json")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
    assert "it is read-only" in page.content.decode()
    assert (sent.status_code, sent.headers["Retry-After"]) == (503, "5")
    assert "read-only" in sent.json()["detail"]


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 503, "no space"),
        (RuntimeError("hidden words"), 500, "Something broke on our side"),
    ],
)
def test_the_api_answers_any_fault_in_json(fault, status, said, monkeypatch, people, client_of):
    def fails(*args, **kwargs):
        raise fault

    monkeypatch.setattr(Benchmarks, "get_queryset", fails)
    answer = client_of("curator").get("/api/v1/benchmarks/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")
    assert said in answer.json()["detail"]
    assert "hidden words" not in answer.content.decode()


def test_an_address_of_the_api_that_is_none_is_told_in_json(client):
    answer = client.get("/api/v1/nowhere/")
    assert (answer.status_code, answer.json()) == (404, {"detail": "There is nothing here."})


def test_a_database_that_another_process_holds_is_told_soon(client, beating, settings):
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite has one writer")
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
        assert "busy" in broken(Client(), "database")
        with other.cursor() as cursor:
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert ready(client)[0] == 200
