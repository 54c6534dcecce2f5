"""A board of 200 models over a million votes: ``python -m tests.bench.boards`` measures it in a process of its own.

Prints as JSON: milliseconds of an empty page, of the home page and board, and of its rows, as the process of jobs draws
them for the first time and after a new vote, of a page of judgments by API, of the board as a server process shows it,
also while votes come in; bytes of the page as it is sent; and the most memory in MB that both processes ever held.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.bench.memory import most_memory

if TYPE_CHECKING:
    from tests.bench.parts import Result

VOTES, MODELS, SAMPLES = 1_000_000, 200, 5_000
LEVELS = 6
BLOCK = 50_000
LATE = 5  # items whose votes come while it is measured


def boards() -> "Iterator[Result]":
    """The reference is the sign-in page for times, the limit for the rest."""
    from tests.bench.parts import Result, without_data

    command = [sys.executable, "-m", "tests.bench.boards"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=without_data())
    found = json.loads(done.stdout.splitlines()[-1])
    empty = found["empty"]
    yield Result("a job draws home and board of a million votes", empty, found["never"], round(15_000 / empty, 1), "ms")
    yield Result("  after a new vote", empty, found["anew"], round(4_000 / empty, 1), "ms")
    yield Result("  its rows, with Elo and its intervals", empty, found["rated"], round(15_000 / empty, 1), "ms")
    yield Result(
        "  its rows after a new vote, Elo as of before", empty, found["rated_anew"], round(4_000 / empty, 1), "ms"
    )
    yield Result("board of a million votes, shown", empty, found["again"], round(30 / empty, 1), "ms")
    yield Result("  while votes come in", empty, found["meanwhile"], round(30 / empty, 1), "ms")
    yield Result("  its rows by API", empty, found["rows"], round(60 / empty, 1), "ms")
    yield Result("judgments of a benchmark by API", empty, found["judgments"], round(60 / empty, 1), "ms")
    yield Result("  sent, compressed", 150, found["kilobytes"], 1, "KB")
    yield Result("  most memory of the server process", 250, found["megabytes"], 1, "MB")
    yield Result("  most memory of the jobs' process", 400, found["of_job"], 1, "MB")


def fill(*, votes: int = VOTES, models: int = MODELS, samples: int = SAMPLES) -> None:
    """A finished run with a vote on each of so many pairs, as many of each sample."""
    import numpy as np

    from bank.database import bulk
    from bank.models import Benchmark, Capability, EvaluatedModel, Item, ItemResponse, Response, Sample
    from judging.models import Judge, Judgment, Run, RunItem

    benchmark = Benchmark.objects.create(slug="wide", title="Wide", visibility="public")
    levels = [
        Capability.objects.create(benchmark=benchmark, name=f"Level {n}", path=f"Level {n}").pk for n in range(LEVELS)
    ]
    made = EvaluatedModel.objects.bulk_create(EvaluatedModel(name=f"model {n:03}") for n in range(models))
    Sample.objects.bulk_create(
        Sample(benchmark=benchmark, key=str(n), instruction="?", position=n, capability_id=levels[n % LEVELS])
        for n in range(samples)
    )
    Sample.objects.update(status="approved")
    judge = Judge.objects.create(name="judge")
    run = Run.objects.create(
        judge=judge,
        benchmark=benchmark,
        protocol="pair",
        settings={"order": "fixed"},
        state="finished",
        planned=votes,
        verdicts=votes - LATE,
        failures=0,
        undecided=0,
    )
    rng = np.random.default_rng(3)
    strength = rng.normal(0, 1, models)
    each = votes // samples
    now = "2026-01-01 00:00:00"
    keys = list(Sample.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, samples, BLOCK // each):
        some = keys[start : start + BLOCK // each]
        responses = bulk.new_ids(Response, len(some) * models)
        rows = [
            (pk, s, model.pk, "", "!", "ok", "")
            for pk, (s, model) in zip(responses, ((s, m) for s in some for m in made), strict=True)
        ]
        bulk.insert(Response, "id sample_id model_id variant text status reason".split(), rows)
        items = bulk.new_ids(Item, len(some) * each)
        bulk.insert(
            Item,
            "id kind sample_id content_hash".split(),
            [(pk, "pair", some[n // each], f"{pk:064x}") for n, pk in enumerate(items)],
        )
        first = np.concatenate([rng.permutation(models * (models - 1) // 2)[:each] for _ in some])
        a, b = np.triu_indices(models, 1)
        a, b = a[first], b[first]
        won = rng.random(len(items)) < 1 / (1 + np.exp(strength[b] - strength[a]))
        said = np.where(rng.random(len(items)) < 0.1, "tie", np.where(won, "first", "second")).tolist()
        places = [
            (pk, side, responses[n // each * models + int(models_of[n])])
            for n, pk in enumerate(items)
            for side, models_of in enumerate((a, b))
        ]
        bulk.insert(ItemResponse, "item_id position response_id".split(), places)
        bulk.insert(RunItem, "run_id item_id".split(), [(run.pk, pk) for pk in items])
        bulk.insert(
            Judgment,
            "run_id item_id order repeat status choice reason prompt_sha256 reported_model created_at".split(),
            [
                (run.pk, pk, "01", 0, "ok", choice, "", "", "", now)
                for n, (pk, choice) in enumerate(zip(items, said, strict=True), start=start * each)
                if n < votes - LATE
            ],
        )


def _judgments_by_api() -> float:
    """Milliseconds of a page of the judgments of the benchmark."""
    from django.test import Client

    from accounts.models import User

    client = Client()
    client.force_login(User.objects.create_user("bench-curator", role="curator"))
    taken = []
    for _ in range(5):
        start = time.process_time()
        assert client.get("/api/v1/judgments/?benchmark=wide").status_code == 200
        taken.append(1000 * (time.process_time() - start))
    return min(taken)


class JobsProcess:
    """A process that draws pages, as the worker has one: it goes on between jobs, with what it keeps."""

    def __init__(self) -> None:
        from django.db import connections

        connections.close_all()  # before a process is forked
        orders, self.order = os.pipe()
        self.report, reports = os.pipe()
        if os.fork() == 0:
            while os.read(orders, 1):
                os.write(reports, f"{_draw()} {most_memory()}".encode())

    def drawn(self) -> tuple[float, float]:
        """Draw the pages that wait: the milliseconds it took and the most memory that the process ever held."""
        os.write(self.order, b".")
        milliseconds, megabytes = map(float, os.read(self.report, 100).split())
        return milliseconds, megabytes


def _draw() -> float:
    from accounts.models import Job
    from leaderboard.kept import pages as prepared

    start = time.process_time()
    for job in Job.objects.filter(name="prepare_page"):
        prepared.prepare(**job.arguments)
        job.delete()
    return 1000 * (time.process_time() - start)


def main() -> None:
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-bench-"))
    django.setup()
    from django.core.management import call_command
    from django.test import Client

    if os.fork() == 0:  # what making and filling the database takes is not the board's memory
        call_command("migrate", verbosity=0)
        fill()
        os._exit(0)
    assert os.wait()[1] == 0
    from bank.models import Item
    from judging.models import Judgment, Run

    client = Client()
    path = "/leaderboards/wide/models/?source=judge"
    rows = "/api/v1/leaderboards/models/?benchmark=wide&source=judge"

    def taken(path: str, status: int = 200) -> float:
        start = time.process_time()
        answer = client.get(path)
        spent = time.process_time() - start
        assert answer.status_code == status, answer.content[:2000]
        return 1000 * spent

    found = {"empty": min(taken("/accounts/sign-in/") for _ in range(20))}
    for address in ("/", path):
        taken(address, status=202)
    job = JobsProcess()
    found["never"], _ = job.drawn()
    taken(rows, status=202)
    found["rated"], _ = job.drawn()
    found["again"] = max(taken("/"), min(taken(path) for _ in range(5)))
    run = Run.objects.get()
    meanwhile = []
    *items, last = Item.objects.order_by("-pk")[:LATE]
    for item in items:
        Judgment.objects.create(run=run, item=item, choice="first")
        meanwhile.append(taken(path))
    found["meanwhile"] = max(meanwhile)
    found["kilobytes"] = len(gzip.compress(client.get(path).content, 6)) / 1000
    taken("/")
    found["anew"], _ = job.drawn()
    Judgment.objects.create(run=run, item=last, choice="first")
    found["rows"] = min(taken(rows) for _ in range(5))
    found["megabytes"] = most_memory()
    found["rated_anew"], found["of_job"] = job.drawn()
    found["judgments"] = _judgments_by_api()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
