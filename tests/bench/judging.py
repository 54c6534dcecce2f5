"""Runs of judges, of models' answers and of recipes against the barest loop that makes the same calls: rate and CPU."""

import asyncio
import base64
import hashlib
import io
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2  # noqa: TID251
import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.test import Client
from PIL import Image

from tests.bench.endpoint import serve
from tests.bench.parts import Result, cpu, database
from tests.judging.outside import ROOT, installation

CALLS, AT_ONCE, MANY_AT_ONCE = 2_000, 64, 256
WARM = 8  # calls of a run before, so that no run pays for what a process loads once
MEMORY = 200  # megabytes
PLANNED = 1_000_000
SIDE = 244  # pixels of noise that make about 100 KB of JPEG


def _prepare(base_url: str) -> Any:
    """A benchmark of pairs with a picture each; returns a judge and the benchmark."""
    from bank.models import Item, SampleImage
    from judging.endpoints.judges import add_judge
    from judging.runs import actions
    from tests.judging.small import make_benchmark

    rng = np.random.default_rng(1)
    benchmark = make_benchmark(samples=CALLS // 2, slug="bench", pictures=False)
    for sample in benchmark.samples.all():
        buffer = io.BytesIO()
        noise = rng.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(noise).save(buffer, "JPEG", quality=92)
        sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
        image = SampleImage.objects.create(
            sample=sample, sha256=sha256, original_sha256=sha256, kind="jpg", width=SIDE, height=SIDE
        )
        path = settings.MEDIA_ROOT / image.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(buffer.getvalue())
    assert Item.objects.count() == CALLS // 2
    return {
        at_once: actions.start_run(
            judge=add_judge(
                name=f"bench {at_once}", base_url=base_url, model="bench", concurrency=at_once, any_host=True
            ),
            benchmark=benchmark,
            protocol="pairwise-criteria",
            limit=WARM // 2 if at_once == WARM else None,
        )
        for at_once in (WARM, AT_ONCE, MANY_AT_ONCE)
    }


def _collecting(base_url: str) -> dict[str, Any]:
    """A run of each kind that collects answers to the prepared benchmark, by its name."""
    from bank.models import Benchmark
    from bank.recipes import spec, store
    from judging.endpoints.judges import add_judge
    from judging.recipes import evaluations
    from judging.runs import actions
    from tests.hidden import write_criterion

    benchmark = Benchmark.objects.get(slug="bench")
    judge = add_judge(name="collected", base_url=base_url, model="bench", concurrency=AT_ONCE, any_host=True)
    benchmark.samples.update(options={"A": "a bowl", "B": "a plate"})
    for sample in benchmark.samples.all():
        write_criterion(sample=sample, key="key", kind="answer_key", text="Answer1")
    recipe = {"name": "bench", "scenario": [{"benchmark": "bench"}], "turns": [{"kind": "direct"}]}
    stored, _ = store.save(spec.parsed(recipe | {"metric": "exact-match", "repeats": 2}))
    evaluation = evaluations.start_evaluation(recipe=stored, judge=judge, model="by recipe")
    return {
        "answers collected": actions.start_collecting(
            kind="responses", judge=judge, benchmark=benchmark, settings={"circular": True}
        ),
        "answers by a recipe": evaluations.advance(evaluation),
    }


def _bare(base_url: str, at_once: int, calls: int = CALLS) -> None:
    """The loop that anybody would write: httpx2, a semaphore, the picture encoded for each call."""
    from bank.models import SampleImage

    paths = [settings.MEDIA_ROOT / image.path for image in SampleImage.objects.all()]

    async def main() -> None:
        room = asyncio.Semaphore(at_once)
        limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        async with httpx2.AsyncClient(timeout=60, limits=limits) as client:

            async def call(number: int) -> None:
                async with room:
                    encoded = base64.b64encode(paths[number % len(paths)].read_bytes()).decode()
                    content = [
                        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{encoded}"}},
                        {"type": "text", "text": "Which answer is better?" * 60},
                    ]
                    body = {"model": "bench", "messages": [{"role": "user", "content": content}], "temperature": 0}
                    reply = await client.post(f"{base_url}/chat/completions", json=body)
                    assert reply.json()["choices"][0]["message"]["content"] == "Answer1"

            await asyncio.gather(*(call(number) for number in range(calls)))

    asyncio.run(main())


def _ours(run: Any) -> None:
    from accounts import loop
    from judging.work import Shared, leases, work

    assert leases.take(run)

    async def main() -> None:
        shared = Shared()
        await work(run, shared=shared, stop=asyncio.Event())
        await shared.endpoints.close()

    loop.run(main)
    run.refresh_from_db()
    assert run.state == "finished", run.state_reason
    assert (run.verdicts, run.failures) == (run.planned, 0)


def _timed(work: Any, *arguments: Any) -> tuple[float, float]:
    """Wall and CPU seconds of this process, all its threads."""
    wall, cpu = time.monotonic(), time.process_time()
    work(*arguments)
    return time.monotonic() - wall, time.process_time() - cpu


def judging() -> Iterator[Result]:
    """2,000 calls with a picture of 100 KB, 64 and 256 at once, to an endpoint that answers in 200 ms."""
    from accounts import loop

    with _endpoint() as base_url:
        with database():
            runs = _prepare(base_url)
            _ours(runs[WARM])
            for at_once, rate, cpu in ((AT_ONCE, 0.95, 2.0), (MANY_AT_ONCE, 1.2, 2.0)):
                bare_wall, bare_cpu = _timed(_bare, base_url, at_once)
                loop.settle()  # as the worker does
                our_wall, our_cpu = _timed(_ours, runs[at_once])
                what = f"judge run beside a bare httpx2 loop, {at_once} at once"
                yield Result(f"{what}: rate", CALLS / bare_wall, CALLS / our_wall, rate, unit="/s", more_is_better=True)
                yield Result(f"{what}: CPU", bare_cpu, our_cpu, cpu)
            for name, run in _collecting(base_url).items():
                bare_wall, bare_cpu = _timed(_bare, base_url, AT_ONCE, run.planned)
                loop.settle()
                our_wall, our_cpu = _timed(_ours, run)
                what, calls = f"{name} beside a bare httpx2 loop, {AT_ONCE} at once", run.planned
                yield Result(f"{what}: rate", calls / bare_wall, calls / our_wall, 0.95, unit="/s", more_is_better=True)
                yield Result(f"{what}: CPU", bare_cpu, our_cpu, 2.0)
        connection.close()
        yield Result("  most memory of a worker at it", MEMORY, _memory(base_url), 1, unit="MB")
    yield from _large()
    connection.close()


@contextmanager
def _endpoint() -> Iterator[str]:
    here, there = multiprocessing.Pipe()
    endpoint = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    endpoint.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        endpoint.terminate()


def _memory(base_url: str) -> float:
    """Megabytes that a worker process held at most while it made the calls, 256 at once."""
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder, installation(Path(folder)) as there:
        there.ask(f"from tests.bench import judging\njudging._prepare({base_url!r})\nanswer = 0")
        there.sql("UPDATE judging_run SET state = 'cancelled' WHERE id < (SELECT max(id) FROM judging_run)")
        command = [sys.executable, "-c", _WORK]  # not forked: that has more in its memory
        done = subprocess.run(command, cwd=ROOT, env=there.environment, capture_output=True, text=True, check=True)
        assert there.sql("SELECT count(*) FROM judging_judgment WHERE status = 'ok'") == [(CALLS,)]
        return float(done.stdout)


_WORK = """
import django; django.setup()
from django.core.management import call_command
from tests.bench.memory import most_memory
call_command("worker", until_idle=True, stdout=open("/dev/null", "w"))
print(most_memory())
"""


def _large() -> Iterator[Result]:
    """A run of a million planned judgments: its start, the first calls to make, and its page with most of them made."""
    from accounts.models import User
    from bank.database import bulk
    from bank.models import Benchmark, Item, Sample
    from judging.models import Judge, Judgment, RunItem
    from judging.runs import actions, plan
    from judging.work import run_kinds
    from judging.work.writer import counts

    with database():
        benchmark = Benchmark.objects.create(slug="vast", title="Vast", visibility="public")
        samples = Sample.objects.bulk_create(
            Sample(benchmark=benchmark, key=str(n), instruction="?", position=n) for n in range(1_000)
        )
        items = [("pair", samples[n // 500].pk, f"{n:064}") for n in range(PLANNED // 2)]
        with transaction.atomic():
            bulk.insert(Item, ("kind", "sample_id", "content_hash"), items)
        judge = Judge.objects.get(name="baseline-first")
        curator = User.objects.create_user("curator", role="curator")

        def start() -> None:
            run = actions.start_run(
                judge=judge, benchmark=benchmark, protocol="pair", settings={"repeats": 2, "order": "fixed"}
            )
            assert plan.planned_judgments(run) == PLANNED
            assert run_kinds.run_kind(run).page()

        yield Result("start of a run of 1,000,000 judgments, first page read", 10, _timed(start)[1], 1)
        run = judge.runs.get()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                _MOST_JUDGED.format(judgment=Judgment._meta.db_table, run_item=RunItem._meta.db_table), [run.pk]
            )
        counts(run)
        yield Result("  the next page after 990,000 of them", 10, _timed(run_kinds.run_kind(run).page)[1], 1)
        client = Client()
        client.force_login(curator)
        path = f"/judging/runs/{run.pk}/"
        assert b"990,000" in client.get(path).content
        yield Result("  the run's page", 0.1, cpu(lambda: client.get(path)), 1)


_MOST_JUDGED = """
    INSERT INTO {judgment}
    (run_id, item_id, "order", repeat, status, choice, reason, prompt_sha256, reported_model, created_at)
    SELECT run_id, item_id, '01', repeats.n, 'ok', 'first', '', '', '', CURRENT_TIMESTAMP
    FROM {run_item}, (SELECT 0 AS n UNION ALL SELECT 1) AS repeats
    WHERE run_id = %s ORDER BY {run_item}.id LIMIT 990000
"""
