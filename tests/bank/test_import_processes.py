"""Imports by several processes, and processes that die (checks C9-C11)."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback

import pytest
from django.db import connections

from bank.criteria import Criterion
from bank.imports.bundle import bring
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample, SampleImage
from judging.models import Judgment
from tests.bank.conftest import picture
from tests.bench import importing

pytestmark = [pytest.mark.django_db(transaction=True)]
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


ALL = [1, 300, 300, 300, 5, 1500, 300, 300]


def counts():
    return [table._base_manager.count() for table in TABLES]


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


def kill_at_random_points(whole, media, times):
    rng = random.Random(7)
    start = time.monotonic()
    assert ended(started(lambda: bring(path=whole, slug="measured", parts=["samples", "responses"]))) == 0
    length = time.monotonic() - start
    Benchmark.objects.all().delete()
    EvaluatedModel.objects.all().delete()
    killed = 0
    for _ in range(times):
        pid = started(lambda: bring(path=whole, slug="new"))
        time.sleep(rng.uniform(0.1, 1.5) * length)
        os.kill(pid, signal.SIGKILL)
        killed += ended(pid) == -signal.SIGKILL
        assert counts() in ([0] * len(ALL), ALL)
        for image in SampleImage.objects.all():
            assert (media / image.path).is_file()
        if counts() == ALL:
            before = counts()
            assert all(not report.problems for report in bring(path=whole, slug="new").values())
            assert counts() == before
            Benchmark.objects.all().delete()
            EvaluatedModel.objects.all().delete()
    bring(path=whole, slug="new")
    assert counts() == ALL
    return killed


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
    """Check C9. The import is held in the middle of its transaction until the pages were read."""
    assert ended(started(lambda: bring(path=whole, slug="old", parts=["samples"]))) == 0
    curator = client_of("curator")
    (told, tell), (waited, go) = os.pipe(), os.pipe()

    def hold(part, done):
        if part == "write" and done > 1000:
            os.write(tell, b".")
            os.read(waited, 1)

    pid = started(lambda: bring(path=whole, slug="new", progress=hold))
    os.close(tell)
    try:
        assert os.read(told, 1) == b"."  # nothing where it ended without writing
        for path in ("/", "/bank/", "/bank/benchmarks/old@1/", "/leaderboards/", "/api/v1/benchmarks/"):
            answer = curator.get(path)
            assert answer.status_code == 200, path
            assert b"new@1" not in answer.content
        assert counts()[:3] == [1, 300, 300]
    finally:
        os.write(go, b"." * 100)
    assert ended(pid) == 0
    assert counts()[:3] == [2, 600, 600]


@pytest.mark.check("C11")
def test_the_same_folder_brought_in_twice_at_once_is_there_once(whole, media):
    pids = [started(lambda: bring(path=whole, slug="new")) for _ in range(3)]
    assert [ended(pid) for pid in pids] == [0, 0, 0]
    assert counts() == ALL
    assert len([file for file in media.rglob("*") if file.is_file()]) == 3
