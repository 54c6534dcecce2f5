"""Waiting work: stored with what it is about, done once at a time, and by the next worker where one died."""

import asyncio
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import psycopg
import pytest
from django.db import connection, transaction
from psycopg import sql

from accounts import jobs, loop
from accounts.models import Job
from evalsite import heavy, queues
from tests import forks
from tests.judging.outside import installation
from tests.judging.processes import Case
from tests.judging.server import Server, after, answer

pytestmark = pytest.mark.both_databases

DEFER = """
from accounts.jobs import defer
from tests.operations import errands
errands.register()
defer({name!r}, **{arguments!r})
answer = None
"""
BEATS = """
from datetime import timedelta
from bank import database
from judging.models import WorkerBeat
answer = WorkerBeat.objects.filter(seen_at__gt=database.now() - timedelta(seconds=15)).exists()
"""
ON_POSTGRES = "TEST_DATABASE_URL" in os.environ


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with installation(tmp_path_factory.mktemp("jobs")) as outside:
        yield outside


@pytest.fixture
def worker(here):
    """Starts workers that know the jobs of these tests; all are ended."""
    started = []

    def start(*options):
        process = forks.start(["-m", "tests.operations.errands", *options], environment=here.environment)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def defer(here, name, **arguments):
    here.ask_helper(DEFER.format(name=name, arguments=arguments))


def wait_for(look, seconds=60.0):
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.05)
    return found


def begun(folder):
    return [int(path.name.partition("-")[2]) for path in Path(folder).glob("begun-*")]


def waiting():
    """The jobs that wait, by name and arguments."""
    if connection.vendor == "sqlite":
        return [(job.name, job.arguments) for job in Job.objects.filter(begun=False)]
    from procrastinate.contrib.django import app

    return [(job.task_name, json.loads(str(job.task_kwargs))) for job in app.job_manager.list_jobs(status="todo")]


def not_before(name):
    """When the job of this name that waits may be done."""
    if connection.vendor == "sqlite":
        return Job.objects.get(name=name, begun=False).not_before
    from procrastinate.contrib.django import app

    (job,) = app.job_manager.list_jobs(status="todo", task=name)
    return job.scheduled_at


@pytest.mark.django_db
def test_a_job_is_stored_with_what_it_is_about_and_not_without_it():
    with transaction.atomic():
        jobs.defer("send_mail")
        transaction.set_rollback(True)
    assert waiting() == []
    jobs.defer("send_mail")
    assert waiting() == [("send_mail", {})]


@pytest.mark.django_db
def test_of_the_same_job_one_waits_and_a_transaction_in_which_it_is_deferred_again_goes_on(monkeypatch):
    monkeypatch.setitem(jobs.REGISTERED, "spin", jobs.Registered("tests.operations.errands.spin", lane=jobs.HEAVY))
    with transaction.atomic():
        for _ in range(3):
            jobs.defer("spin", seconds=1, folder="a")
        jobs.defer("spin", seconds=1, folder="b")
    assert sorted(arguments["folder"] for _, arguments in waiting()) == ["a", "b"]


def test_a_name_that_nobody_registered_is_no_job():
    with pytest.raises(KeyError):
        jobs.defer("spni")


@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.soak)])
def test_calls_and_heartbeats_do_not_wait_for_a_job_that_computes(here, worker, tmp_path, seconds):
    with Server(lambda call: after(0.05, answer("Answer1"))) as server:
        defer(here, "spin", seconds=seconds, folder=str(tmp_path))
        worker()
        wait_for(lambda: begun(tmp_path))
        case = Case(here, server, name=f"beside-{seconds}", samples=30)
        wait_for(lambda: case.state == "finished")
        case.check(repeated=0)
        time.sleep(seconds)
        assert here.ask_helper(BEATS)
        assert not (tmp_path / "done").exists()
        (tmp_path / "go").touch()
        wait_for((tmp_path / "done").exists)


def test_a_page_that_somebody_waits_for_is_drawn_beside_an_upload_or_a_backup(here, worker, tmp_path):
    long, page = tmp_path / "long", tmp_path / "page"
    for folder in (long, page):
        folder.mkdir()
    defer(here, "wait", folder=str(long))
    worker()
    wait_for(lambda: begun(long))
    (page / "go").touch()
    defer(here, "draw", seconds=0, folder=str(page))
    wait_for((page / "done").exists)
    assert not (long / "done").exists()
    assert begun(long) != begun(page)
    (long / "go").touch()
    wait_for((long / "done").exists)


def test_a_page_of_somebody_who_is_signed_in_is_drawn_before_those_of_strangers(here, worker, tmp_path):
    for word in ("stranger 1", "stranger 2", "member"):
        defer(here, "note", first=word == "member", folder=str(tmp_path), word=word)
    worker()
    noted = tmp_path / "noted"
    wait_for(lambda: noted.exists() and len(noted.read_text().splitlines()) == 3)
    assert noted.read_text().splitlines()[0] == "member"


@pytest.mark.soak
@pytest.mark.skipif(not ON_POSTGRES, reason="statements hang on PostgreSQL")
@pytest.mark.parametrize("table", ["procrastinate_jobs", "judging_workerbeat"])
def test_a_worker_behind_a_statement_that_hangs_ends_within_half_a_minute(here, worker, tmp_path, table):
    defer(here, "note", folder=str(tmp_path), word="up")
    process = worker()
    wait_for((tmp_path / "noted").exists)
    with psycopg.connect(here.environment["DATABASE_URL"]) as other:
        other.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(table)))
        time.sleep(12)  # a beat, and looks for jobs
        at = time.monotonic()
        process.terminate()
        process.communicate(timeout=60)
        assert time.monotonic() - at < 30


def test_a_worker_stops_within_seconds_and_a_job_under_way_is_told_to_end(here, worker, tmp_path):
    defer(here, "wait", folder=str(tmp_path))
    process = worker()
    wait_for(lambda: begun(tmp_path))
    at = time.monotonic()
    process.terminate()
    process.communicate(timeout=60)
    assert (process.returncode, time.monotonic() - at < 15) == (0, True)
    assert (tmp_path / "stopped").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("begun_before", [True, False])
def test_a_job_that_a_stop_kills_or_comes_too_late_for_is_done_by_the_next_worker(begun_before, monkeypatch, tmp_path):
    monkeypatch.setitem(jobs.REGISTERED, "spin", jobs.Registered("tests.operations.errands.spin", lane=jobs.HEAVY))
    monkeypatch.setattr(heavy, "PATIENCE", 0.2)

    async def told_to_stop():
        queue = queues.queue(computes=lambda: True)
        work = queue.do("spin", {"seconds": 0, "folder": str(tmp_path)})
        if begun_before:
            work = asyncio.create_task(work)
            while not begun(tmp_path):
                await asyncio.sleep(0.02)
        await asyncio.gather(*queue.stopping())
        await work

    loop.run(told_to_stop)
    assert len(begun(tmp_path)) == begun_before
    assert waiting() == [("spin", {"seconds": 0, "folder": str(tmp_path)})]
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(ON_POSTGRES and "EVALSITE_SOAK" not in os.environ, reason="takes 45 s there: in make soak")
def test_what_a_killed_worker_had_begun_is_done_by_the_next(here, worker, tmp_path):
    defer(here, "wait", folder=str(tmp_path))
    process = worker()
    (first,) = wait_for(lambda: begun(tmp_path))
    process.kill()
    process.communicate()
    wait_for(lambda: not Path(f"/proc/{first}").exists())  # it ends with its worker
    worker()
    wait_for(lambda: len(begun(tmp_path)) == 2)
    (tmp_path / "go").touch()
    wait_for((tmp_path / "done").exists)


def test_a_process_of_jobs_that_dies_takes_neither_the_worker_nor_the_next_job_with_it(here, worker, tmp_path):
    defer(here, "die", folder=str(tmp_path))
    process = worker()
    wait_for((tmp_path / "died").exists)
    defer(here, "die", folder=str(tmp_path))
    wait_for((tmp_path / "done").exists)
    assert process.poll() is None
    process.terminate()
    _, log = process.communicate(timeout=60)
    assert "perhaps it takes more memory than there is" in log


def test_two_workers_do_a_job_once(here, worker, tmp_path):
    for _ in "12":
        worker()
    (tmp_path / "go").touch()
    defer(here, "spin", seconds=1, folder=str(tmp_path))
    wait_for((tmp_path / "done").exists)
    time.sleep(1)
    assert len(begun(tmp_path)) == 1


@pytest.mark.skipif(ON_POSTGRES, reason="there any number of workers have jobs")
def test_on_sqlite_the_second_worker_has_the_jobs_once_the_first_is_gone(here, worker, tmp_path):
    first = worker()
    defer(here, "wait", folder=str(tmp_path))
    wait_for(lambda: begun(tmp_path))
    second = worker()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_for(lambda: len(begun(tmp_path)) == 2)
    (tmp_path / "go").touch()
    wait_for((tmp_path / "done").exists)
    assert second.poll() is None


def test_a_backup_comes_by_itself_and_administrators_are_told_when_it_fails(here, tmp_path):
    by_itself = """
from django.conf import settings
from accounts.models import Notice, User
from evalsite.backups.nightly import back_up
User.objects.get_or_create(username="boss", defaults={{"role": "administrator"}})
settings.BACKUP_FOLDER = {folder!r}
back_up()
answer = list(Notice.objects.values_list("text", flat=True))
"""
    assert here.ask(by_itself.format(folder=str(tmp_path / "made"))) == []
    assert len(list((tmp_path / "made").glob("*/manifest.json"))) == 1
    (tmp_path / "file").touch()
    assert here.ask(by_itself.format(folder=str(tmp_path / "file")))[0].startswith("The daily backup failed")
