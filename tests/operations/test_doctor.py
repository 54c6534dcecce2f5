"""`manage.py doctor` in front of broken installations: it names what is broken and what to run."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from contextlib import suppress
from datetime import timedelta
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from accounts import jobs
from accounts.audit import record
from accounts.models import InstallationKey, Job
from bank.models import SampleImage
from evalsite import doctor
from evalsite.backups import folders
from evalsite.demo.accounts import make_account
from judging.models import Judge, WorkerBeat
from tests import forks
from tests.judging.outside import ROOT, Installation, with_tables
from tests.judging.server import Server, status
from tests.judging.small import make_benchmark
from tests.operations.served import free_port
from tests.operations.test_health import read_only

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def well(media, people, settings):
    """An installation in which nothing is wrong but what a test breaks."""
    media.mkdir(parents=True, exist_ok=True)
    settings.LOCAL = True
    WorkerBeat.objects.create(name="w", seen_at=timezone.now())
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }


def examined():
    """What is not well, by name."""
    out = StringIO()
    with suppress(CommandError):  # it ends with 1
        call_command("doctor", "--json", stdout=out)
    return {name: one for name, one in json.loads(out.getvalue()).items() if one["level"] != "ok"}


def faulty(name):
    """The words of the one fault there is."""
    faults = {about: one["words"] for about, one in examined().items() if one["level"] == "fault"}
    assert set(faults) == {name}
    return faults[name]


def warned(name):
    found = examined()
    assert not [one for one in found.values() if one["level"] == "fault"]
    return found[name]["words"]


@pytest.mark.both_databases
def test_of_a_well_installation_it_says_what_it_found_and_ends_with_0(well, people, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert examined() == {}
    out = StringIO()
    call_command("doctor", stdout=out)
    lines = out.getvalue().splitlines()
    assert len(lines) == len(doctor.EXAMINATIONS)
    assert all(line.startswith("ok ") for line in lines)


def test_a_folder_of_another_user_and_a_full_disk(well, settings, media, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100, 99, 1))
    assert "no space is left" in faulty("storage")
    monkeypatch.undo()
    (media / "file").write_bytes(b"")
    settings.MEDIA_ROOT = media / "file"
    assert "must belong to the user that runs this" in faulty("storage")


def test_a_database_that_others_may_read(well, settings, tmp_path):
    settings.DATA = tmp_path / "open"
    settings.DATA.mkdir(mode=0o700)
    copy = settings.DATA / "evalsite.sqlite3"
    copy.write_bytes(b"")
    copy.chmod(0o644)
    assert f"run `chmod go-rwx {copy}`" in warned("storage")


@pytest.mark.both_databases
def test_a_database_that_cannot_be_written_or_lacks_migrations(well):
    with read_only():
        assert "it is read-only" in faulty("database")
    recorder = MigrationRecorder(connection)
    last = max(recorder.applied_migrations())
    recorder.record_unapplied(*last)
    try:
        assert "run `manage.py migrate`" in faulty("migrations")
    finally:
        recorder.record_applied(*last)


def test_keys_of_another_installation(well, settings):
    InstallationKey.objects.update_or_create(pk=1, defaults={"secret": "11" * 32})
    settings.CRITERIA_KEYS = ["b3RoZXIta2V5LW9mLXRoaXJ0eS10d28tYnl0ZXMtIS4="]
    assert "Restore the keys that belong to it" in faulty("keys")


def test_demo_accounts_where_others_may_sign_in_and_nobody_who_is_an_administrator(well, people, settings):
    settings.LOCAL = False
    settings.TRUSTED_PROXIES = 0
    make_account("admin")
    assert "manage.py remove_demo_accounts" in faulty("accounts")
    type(people["administrator"]).objects.filter(role="administrator").update(is_active=False)
    assert "make_user NAME --role administrator" in warned("accounts")


@pytest.mark.both_databases
def test_a_worker_that_is_not_there(well):
    WorkerBeat.objects.all().delete()
    assert "start one by `manage.py worker`" in faulty("worker")


def test_a_backup_that_did_not_come(well, people, settings, tmp_path):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.BACKUP_FOLDER = str(tmp_path / "disk")
    assert f"none in {tmp_path}/disk yet" in warned("backup")
    (tmp_path / "disk").mkdir()
    made = folders.begin(tmp_path / "disk")
    assert "yet" in warned("backup")  # it is not complete
    (made / folders.MANIFEST).write_text("{}")
    assert "backup" not in examined()
    made.rename(made.with_name("2026-01-02T03-04-05Z"))
    assert f"none in {tmp_path}/disk since 2026-01-02 03:04 UTC" in warned("backup")
    settings.BACKUP_FOLDER = "s3://bucket/backups"
    assert "Set S3_BUCKET" in faulty("backup")


def test_backups_are_missed_from_the_third_day_on(well, people, settings, tmp_path):
    settings.BACKUP_FOLDER = str(tmp_path)
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    made = folders.begin(tmp_path)
    (made / folders.MANIFEST).write_text("{}")
    now = timezone.now()

    def made_before(age):
        nonlocal made
        made = made.rename(made.with_name((now - age).strftime(folders.TIME)))

    made_before(timedelta(hours=47))
    assert "backup" not in examined(), "one night's may come late"
    made_before(timedelta(hours=49))
    assert "since" in warned("backup")


def test_a_mail_server_that_refuses(well, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    assert f"127.0.0.1:{settings.EMAIL_PORT} takes no mail" in faulty("mail")
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert "set EMAIL_URL" in warned("mail")


def test_a_proxy_that_the_settings_do_not_count_or_that_does_not_answer(well, settings):
    settings.LOCAL = False
    settings.TRUSTED_PROXIES = 0
    assert "TRUSTED_PROXIES is 0" in warned("proxy")
    settings.TRUSTED_PROXIES = 1
    settings.ALLOWED_HOSTS = [f"127.0.0.1:{free_port()}"]
    assert "look at the proxy and at DNS" in warned("proxy")
    settings.BEHIND_PROXY = True
    assert "set TRUSTED_PROXIES=1" in warned("proxy")


@pytest.mark.both_databases
def test_a_clock_that_is_not_the_databases_or_was_set_back(well, monkeypatch):
    record("sign-in", name="kay")
    now = timezone.now()
    monkeypatch.setattr(doctor.database, "now", lambda: now - timedelta(seconds=45))
    assert "+45 s from the database's" in faulty("clock")
    monkeypatch.undo()
    for clock in (doctor.database, doctor.timezone):
        monkeypatch.setattr(clock, "now", lambda: now - timedelta(hours=3))
    assert "the clock was set back" in faulty("clock")


def test_endpoints_without_a_key_or_out_of_reach(well, monkeypatch):
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        Judge.objects.create(name="keyless", base_url=here, key_env="JUDGE_KEY")
        Judge.objects.create(name="away", base_url=f"http://127.0.0.1:{free_port()}/v1")
        Judge.objects.create(name="fine", base_url=here)
        words = warned("endpoints")
    assert "keyless: JUDGE_KEY is not set here" in words
    assert "away: 127.0.0.1:" in words
    assert "fine" not in words


def test_pictures_of_another_folder(well):
    make_benchmark(samples=2)
    assert "pictures" not in examined()
    Path(doctor.settings.MEDIA_ROOT, SampleImage.objects.first().path).unlink()
    assert "1 of the newest" in faulty("pictures")


def test_pictures_that_this_user_may_not_read(well, monkeypatch):
    make_benchmark(samples=2)

    def refuse(name):
        raise PermissionError(errno.EACCES, "Permission denied", name)

    monkeypatch.setattr(doctor.media, "opened", refuse)
    words = faulty("pictures")
    assert "2 of the newest 2 pictures cannot be read" in words
    assert "must belong to the user that runs this" in words


@pytest.mark.parametrize("name", ["https://elsewhere.example", None])
def test_a_provider_of_single_sign_on_that_is_away_or_calls_itself_otherwise(well, settings, name):
    settings.SSO_ISSUER = f"http://127.0.0.1:{free_port()}"
    settings.SSO_PASSWORDS = False
    words = faulty("single sign-on")
    assert settings.SSO_ISSUER in words
    assert "nobody can sign in" in words
    with Server(lambda call: status(200, {"issuer": name or settings.SSO_ISSUER})) as server:
        settings.SSO_ISSUER = server.url
        name = name or server.url
        found = examined()
    if name == settings.SSO_ISSUER:
        assert "single sign-on" not in found
    else:
        assert f"calls itself '{name}'" in found["single sign-on"]["words"]


@pytest.mark.both_databases
def test_a_queue_whose_tables_are_damaged(well):
    table = "accounts_job" if connection.vendor == "sqlite" else "procrastinate_workers"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO put_aside")
        try:
            assert "no job is done: run `manage.py restore`" in faulty("queue")
        finally:
            cursor.execute(f"ALTER TABLE put_aside RENAME TO {table}")


@pytest.mark.both_databases
def test_a_job_that_nobody_does(well, people, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    jobs.defer("send_mail", not_before=timezone.now() - timedelta(minutes=50))
    assert "queue" not in examined()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            Job.objects.update(not_before=timezone.now() - timedelta(hours=3), begun=True)
        else:
            cursor.execute("UPDATE procrastinate_jobs SET scheduled_at = now() - interval '3 hours'")
            cursor.execute("UPDATE procrastinate_events SET at = now() - interval '3 hours'")
    assert "`send_mail` has waited, or been under way, for 3 h" in warned("queue")


def test_another_secret_key(well, people, client_of, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    client_of("curator")
    assert "sessions" not in examined()
    settings.SECRET_KEY = "another-" + "x" * 50
    assert "put the old one back" in warned("sessions")
    client_of("curator")  # who signs in anew has a session of the new key
    assert "sessions" not in examined()


@pytest.mark.both_databases
def test_backups_on_postgresql_without_pg_dump(well, settings, tmp_path, monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("of SQLite the file itself is taken")
    settings.BACKUP_FOLDER = str(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "postgresql-client" in faulty("backup")


def test_a_folder_of_metrics_that_cannot_be_made(well, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "file" / "metrics"))
    assert "metrics folder cannot be written" in faulty("storage")


@pytest.mark.both_databases
def test_a_database_of_a_newer_version(well):
    recorder = MigrationRecorder(connection)
    recorder.record_applied("bank", "9999_of_next_year")
    try:
        words = faulty("migrations")
        assert "Install that version" in words
        assert "new data folder" not in words
        with pytest.raises(CommandError, match="Install that version"):
            call_command("migrate", verbosity=0)
    finally:
        recorder.record_unapplied("bank", "9999_of_next_year")


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_database_file_of_another_user(mode):
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.geteuid() or subprocess.run([*as_nobody, sys.executable, "-c", "import django"], cwd="/").returncode:
        pytest.skip("only an administrator becomes somebody else, who must be able to read the packages")
    with TemporaryDirectory() as folder:
        here = Installation(Path(folder, "data"), f"sqlite:///{folder}/data/evalsite.sqlite3")
        with_tables(Path(folder, "data", "evalsite.sqlite3"))
        here.manage("migrate", "-v0")
        Path(folder).chmod(0o755)
        file = Path(folder, "data", "evalsite.sqlite3")
        shutil.chown(file.parent, 65534, 65534)
        file.chmod(mode)
        for beside in file.parent.glob("evalsite.sqlite3-*"):
            beside.unlink()
        command = [*as_nobody, sys.executable, "manage.py", "doctor"]
        said = subprocess.run(command, cwd=ROOT, env=here.environment, capture_output=True, text=True).stdout
    (line,) = [line for line in said.splitlines() if line.startswith("FAULT    database")]
    assert f"belongs to root, and this runs as nobody: run `chown nobody {file}*`" in line
    assert "DATABASE_URL" not in line


def test_styles_that_were_not_collected_and_settings_that_do_not_start(tmp_path):
    here = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    fresh = here.tried("doctor").stdout
    assert "run `manage.py migrate`" in fresh
    assert "Run `manage.py collectstatic --no-input`" in fresh
    for environment, words in (
        ({"SECRET_KEY": ""}, "SECRET_KEY is not set"),
        ({"CRITERIA_KEYS": "short"}, "key 1 is not 32 bytes"),
        ({"ALLOWED_HOSTS": "*"}, "Name the hosts under which people reach evalsite"),
    ):
        done = here.tried("doctor", **environment)
        assert words in done.stderr
        assert done.returncode == 1


def test_a_database_that_is_away_and_a_driver_that_is_not_installed(tmp_path):
    here = Installation(tmp_path / "data", f"postgres://nobody@127.0.0.1:{free_port()}/none")
    found = json.loads(here.tried("doctor", "--json").stdout)
    assert found["database"]["level"] == "fault"
    assert "keys" not in found
    without = "import sys; sys.modules['psycopg'] = None; sys.argv = ['manage.py', 'doctor']; "
    run = f"{without}import runpy; runpy.run_path('manage.py', run_name='__main__')"
    done = forks.run(["-c", run], environment=here.environment)
    assert "make setup EXTRAS=postgres" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_is_away_is_told_with_the_reason_and_the_setting(tmp_path):
    port = free_port()
    here = Installation(tmp_path / "data", f"postgres://somebody:pass-word@127.0.0.1:{port}/gone")
    said = here.tried("doctor").stdout
    (line,) = [line for line in said.splitlines() if line.startswith("FAULT    database")]
    assert f"port {port}" in line
    assert "DATABASE_URL" in line
    assert "pass-word" not in said


def test_a_file_that_is_no_database_is_not_said_to_lack_tables(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "evalsite.sqlite3").write_bytes(b"x" * 8192)
    here = Installation(data, f"sqlite:///{data}/evalsite.sqlite3")
    said = here.tried("doctor").stdout
    (line,) = [line for line in said.splitlines() if line.startswith("FAULT    database")]
    assert "is damaged" in line
    assert "`manage.py restore`" in line
    assert "migrate`" not in said
    assert "is damaged" in here.tried("serve", "--no-worker").stderr


def test_a_data_folder_that_is_none_is_said_in_words(tmp_path):
    (tmp_path / "data").touch()
    here = Installation(tmp_path / "data", "")
    for name in ("ALLOWED_HOSTS", "DATABASE_URL", "SECRET_KEY", "CRITERIA_KEYS"):
        here.environment.pop(name, None)
    said = here.tried("doctor").stderr
    assert "EVALSITE_DATA" in said
    assert "Traceback" not in said


def test_into_one_file_what_does_not_work_stands_last(tmp_path):
    here = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    command, given = [sys.executable, "manage.py", "doctor"], here.environment | {"PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "This does not work" in done.stdout.splitlines()[-1]
