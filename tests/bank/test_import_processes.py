"""Imports by several processes, and processes that die (checks C9-C11)."""

import errno
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import closing

import pytest
from django.db import OperationalError, connection, connections, transaction

from accounts.models import User
from bank.criteria import Criterion
from bank.criteria.tables import opened
from bank.database import bulk
from bank.intake.imports import writer
from bank.intake.imports.engine import run_import
from bank.intake.uploads import actions, worker
from bank.models import Benchmark, EvaluatedModel, Import, ImportRange, Item, Response, Sample, SampleImage
from bank.samples.benchmarks import summary_of
from bank.samples.items import make_items, plan_items
from judging.models import Judge, Judgment, Run, RunItem
from leaderboard.votes import arrays
from tests.bank.conftest import picture
from tests.bench import importing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
TABLES = (Benchmark, Sample, SampleImage, Criterion, EvaluatedModel, Response, Item, Judgment)


@pytest.fixture
def whole(folder):
    """300 samples, three pictures, 1,500 responses, 300 judgments: a folder."""
    for number in range(3):
        (folder.root / f"{number}.png").write_bytes(picture(size=(20 + number, 20)))
    keys = [f"s{number}" for number in range(300)]
    folder(
        "samples",
        [
            {"key": key, "instruction": "?", "images": [f"{n % 3}.png"], "criteria": [{"text": f"Secret {n}"}]}
            for n, key in enumerate(keys)
        ],
    )
    models = [f"m{number}" for number in range(5)]
    folder("responses", [{"sample": key, "model": model, "text": "!"} for model in models for key in keys])
    verdict = {"kind": "pair", "responses": models[:2], "judge": "j", "choice": "tie"}
    folder("judgments", [verdict | {"sample": key} for key in keys])
    return folder.root


def raising(error, after=0):
    """A call that fails; with ``after`` what makes a call fail after so many that did not."""

    def fail(*arguments, **options):
        raise error

    def failing(call):
        left = iter(range(after))
        return lambda *arguments: call(*arguments) if next(left, None) is not None else fail()

    return failing if after else fail


ALL = [1, 300, 300, 300, 5, 1500, 300, 300]


def counts():
    with opened():
        return [table.objects.count() for table in TABLES]


def started(work):
    """The id of a process that does this and ends."""
    connections.close_all()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def stored():
    """All rows, those of an import under way included."""
    return [table._base_manager.count() for table in TABLES]


def kill_at_random_points(whole, media, times):
    rng = random.Random(7)
    start = time.monotonic()
    assert ended(started(lambda: run_import(path=whole, slug="measured", parts=["samples", "responses"]))) == 0
    length = time.monotonic() - start
    Benchmark.objects.all().delete()
    EvaluatedModel.objects.all().delete()
    killed = 0
    for _ in range(times):
        pid = started(lambda: run_import(path=whole, slug="new"))
        time.sleep(rng.uniform(0.1, 1.5) * length)
        os.kill(pid, signal.SIGKILL)
        killed += ended(pid) == -signal.SIGKILL
        assert counts() in ([0] * len(ALL), ALL)
        for image in SampleImage.objects.all():
            assert (media / image.path).is_file()
        if counts() == ALL:
            before = counts()
            assert all(not report.problems for report in run_import(path=whole, slug="new").values())
            assert counts() == before
            Benchmark.objects.all().delete()
            EvaluatedModel.objects.all().delete()
    run_import(path=whole, slug="new")
    assert counts() == stored() == ALL
    assert not ImportRange.objects.exists()
    return killed


def held(whole, at, **options):
    """An import in a process of its own that waits when so many rows are written: (its id, how to let it go on)."""
    (told, tell), (waited, go) = os.pipe(), os.pipe()

    def hold(part, done):
        if part == "write" and done >= at:
            os.write(tell, b".")
            os.read(waited, 1)

    pid = started(lambda: run_import(path=whole, slug="new", progress=hold, **options))
    os.close(tell)
    assert os.read(told, 1) == b"."
    return pid, lambda: os.write(go, b"." * 100)


@pytest.mark.parametrize("at", [300, 1300, 2100])
@pytest.mark.check("C10")
def test_what_a_killed_import_had_stored_is_hidden_and_cleared_away_by_whoever_looks_next(at, whole, media):
    pid, _ = held(whole, at)
    os.kill(pid, signal.SIGKILL)
    assert ended(pid) == -signal.SIGKILL
    assert counts() == [0] * len(ALL)
    assert stored() != [0] * len(ALL)
    assert worker.is_waiting()  # which is what starts the process that does this
    actions.sweep()
    assert stored() == [0] * len(ALL)
    assert not worker.is_waiting()
    assert not Import.objects.exists()


@pytest.mark.check("C10")
def test_pictures_of_an_import_killed_after_they_were_moved_go_and_those_of_others_stay(whole, media, monkeypatch):
    run_import(path=whole, slug="old", parts=["samples"], skip_bad=True)
    Sample.objects.filter(key__in=["s1", "s4"]).delete()
    before = sorted(media.rglob("images/*/*"))
    (whole / "2.png").write_bytes(picture(size=(55, 20), colour="red"))

    def dies():
        monkeypatch.setattr(
            "bank.intake.imports.context.ImportContext.finish", lambda scene: os.kill(os.getpid(), signal.SIGKILL)
        )
        run_import(path=whole, slug="new", parts=["samples"])

    assert ended(started(dies)) == -signal.SIGKILL
    assert len(sorted(media.rglob("images/*/*"))) == len(before) + 1
    actions.sweep()
    assert sorted(media.rglob("images/*/*")) == before


def test_boards_see_what_an_import_shows_though_others_wrote_rows_with_higher_ids_before(whole, media):
    run_import(path=whole, slug="new", parts=["samples", "responses"])
    benchmark = Benchmark.objects.get()
    pid, let_go = held(whole, 300)
    make_items(plan_items(kind="pair", benchmark=benchmark, models=["m2", "m3"]))
    run = Run.objects.create(judge=Judge.objects.create(name="other"), benchmark=benchmark, protocol="pair")
    for item in Item.objects.all():
        RunItem.objects.create(run=run, item=item)
    kept = len(arrays.pair_items(benchmark).item), summary_of(benchmark).items
    assert kept == (300, 300)
    let_go()
    assert ended(pid) == 0
    assert (len(arrays.pair_items(benchmark).item), summary_of(benchmark).items) == (600, 600)
    assert (arrays.pair_items(benchmark).item[1:] > arrays.pair_items(benchmark).item[:-1]).all()
    assert [len(arrays.verdicts(run)[0]) for run in Run.objects.order_by("pk")] == [300, 0]


def test_no_transaction_of_an_import_holds_more_than_a_bounded_number_of_rows(whole, media, monkeypatch):
    monkeypatch.setattr(writer, "AT_ONCE", 200)
    monkeypatch.setattr(writer, "SLICE", 50)
    monkeypatch.setattr(writer, "JOINED_AT_ONCE", 200)
    rows, spans = Counter(), []
    insert, insertion = bulk.insert_columns, bulk.insertion

    def count(model, number):
        if not rows:
            transaction.on_commit(lambda: (spans.append(rows.total()), rows.clear()))
        rows[model] += number

    def counted(model, values):
        count(model, len(next(iter(values.values()))))
        insert(model, values)

    def counted_copy(model, columns, source):
        copy = insertion(model, columns, source)
        return lambda first, last: (count(model, last - first + 1), copy(first, last))

    monkeypatch.setattr(bulk, "insert_columns", counted)
    monkeypatch.setattr(bulk, "insertion", counted_copy)
    run_import(path=whole, slug="new")
    assert counts() == ALL
    assert max(spans) <= 200
    assert sum(spans) >= sum(ALL)


@pytest.mark.parametrize("fault", ["a picture", "a row that waits", "a row"])
@pytest.mark.check("K8")
def test_a_full_disk_ends_an_import_with_a_sentence_and_leaves_nothing(fault, whole, media, manage, monkeypatch):
    if fault == "a picture":
        monkeypatch.setattr("bank.media.write_file", raising(OSError(errno.ENOSPC, "No space left on device")))
        command = ("import_benchmark", "generic", whole)
    else:
        run_import(path=whole, slug="new", parts=["samples", "responses"])
        broken = raising(OperationalError("database or disk is full"), after=1)
        insert = "insertion" if fault == "a row" else "insert_into"
        monkeypatch.setattr(bulk, insert, broken(getattr(bulk, insert)))
        command = ("import_judgments", "generic", whole)
    before = stored(), sorted(path for path in media.rglob("*") if path.is_file())
    status, _, err = manage(*command, "--benchmark", "new")
    assert status == 1
    assert "no space" in err
    assert "Traceback" not in err
    assert (stored(), sorted(path for path in media.rglob("*") if path.is_file())) == before


@pytest.mark.check("C10")
def test_a_killed_import_is_all_there_or_not_at_all(whole, media):
    kill_at_random_points(whole, media, 3)


@pytest.mark.soak
@pytest.mark.check("C10")
def test_sixty_killed_imports_are_all_there_or_not_at_all(whole, media):
    assert kill_at_random_points(whole, media, 60) > 10


@pytest.mark.soak
@pytest.mark.check("C9")
def test_a_million_responses_come_in_with_less_than_300_megabytes(tmp_path):
    importing.write(tmp_path, samples=100_000, models=10)
    environment = {name: value for name, value in os.environ.items() if name not in ("EVALSITE_DATA", "DATABASE_URL")}
    command = [sys.executable, "-m", "tests.bench.importing", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout.splitlines()[-1])["megabytes"] < 300


@pytest.mark.check("C9")
def test_pages_answer_while_an_import_writes_and_show_nothing_of_it(whole, media, client_of):
    """Check C9. The import is held when some of its rows are stored, until the pages were read."""
    assert ended(started(lambda: run_import(path=whole, slug="old", parts=["samples"]))) == 0
    curator = client_of("curator")
    (told, tell), (waited, go) = os.pipe(), os.pipe()

    def hold(part, done):
        if part == "write" and done > 1000:
            os.write(tell, b".")
            os.read(waited, 1)

    pid = started(lambda: run_import(path=whole, slug="new", progress=hold))
    os.close(tell)
    try:
        assert os.read(told, 1) == b"."  # nothing where it ended without writing
        for path in ("/", "/bank/", "/bank/benchmarks/old@1/", "/leaderboards/", "/api/v1/benchmarks/"):
            answer = curator.get(path)
            assert answer.status_code == 200, path
            assert b"new@1" not in answer.content
        assert counts()[:3] == [1, 300, 300]
        User.objects.create_user("meanwhile")  # nobody is kept from writing
        assert ImportRange.objects.filter(table=Sample._meta.db_table).exists()
    finally:
        os.write(go, b"." * 100)
    assert ended(pid) == 0
    assert counts()[:3] == [2, 600, 600]


@pytest.mark.check("C11")
def test_the_same_folder_brought_in_twice_at_once_is_there_once(whole, media):
    pids = [started(lambda: run_import(path=whole, slug="new")) for _ in range(3)]
    assert [ended(pid) for pid in pids] == [0, 0, 0]
    assert counts() == ALL
    assert len([file for file in media.rglob("*") if file.is_file()]) == 3


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_an_import_leaves_room_for_others_on_sqlite_alone_and_more_while_they_write(monkeypatch):
    slept, later = [], [0.0]
    moment = time.monotonic
    monkeypatch.setattr(writer.time, "sleep", slept.append)
    monkeypatch.setattr(writer.time, "monotonic", lambda: moment() + later[0])
    writer.pause(0.5)
    if connection.vendor != "sqlite":
        assert slept == []
        return
    with closing(sqlite3.connect(connection.settings_dict["NAME"], uri=True)) as elsewhere:
        elsewhere.execute("CREATE TABLE elsewhere (x)")
        elsewhere.commit()
        writer.pause(0.5)
        elsewhere.execute("DROP TABLE elsewhere")
        elsewhere.commit()
    later[0] = 3.0
    writer.pause(0.5)
    later[0] = 6.0
    writer.pause(0.5)
    assert slept == [writer.GAP, 0.5, 0.5, writer.GAP]
