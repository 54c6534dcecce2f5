"""A small benchmark of pairs, judges behind a test endpoint, and runs worked in this process."""

import asyncio

import pytest

from accounts import loop
from bank.models import Item
from judging.endpoints.judges import add_judge
from judging.models import Judge, Judgment, Run
from judging.runs import actions
from judging.work import Patience, Shared, leases, work
from tests.judging.small import QUICK, make_benchmark
from tests.once import once


@pytest.fixture(autouse=True)
def workers_look_often(monkeypatch):
    """Workers and commands in this process notice what waits twenty times a second, not once: no test waits for it."""
    for place in ("evalsite.worker", "evalsite.queues", "judging.management.run_command"):
        monkeypatch.setattr(f"{place}.LOOK_EVERY", 0.05)
    monkeypatch.setattr("evalsite.worker.SETTLE", 0.5)


@pytest.fixture
def benchmark(db):
    return once("everyday", make_benchmark)


@pytest.fixture
def baseline(db):
    """Built-in judges by name."""
    return lambda name: Judge.objects.get(name=f"baseline-{name}")


@pytest.fixture
def judge_at(db):
    """Make a judge behind a test server."""

    def make(url: str, **values) -> Judge:
        values = {"name": "kestrel", "model": "kestrel-vl", "concurrency": 4, "any_host": True} | values
        return add_judge(base_url=url, **values)

    return make


@pytest.fixture
def run_of():
    """Make a run that judged items as told: rows of columns, one judgment each."""

    def make(benchmark, rows, *, judge="kestrel", **columns) -> Run:
        judge, _ = Judge.objects.get_or_create(name=judge)
        run = Run.objects.create(
            **{"judge": judge, "benchmark": benchmark, "protocol": "pairwise-criteria", "settings_hash": "x"} | columns
        )
        items = list(Item.objects.filter(sample__benchmark=benchmark).order_by("pk"))
        Judgment.objects.bulk_create(Judgment(run=run, **{**row, "item": items[row.get("item", 0)]}) for row in rows)
        run.items.set({items[row.get("item", 0)] for row in rows})
        return run

    return make


@pytest.fixture
def start(benchmark):
    """Start a run of the small benchmark."""

    def make(judge: Judge, **values) -> Run:
        on = values.pop("on", benchmark)
        return actions.start_run(judge=judge, benchmark=on, protocol="pairwise-criteria", **values)

    return make


@pytest.fixture
def work_on():
    """Claim a run and work it in this process until it ends; returns it as it is then.

    ``meanwhile(stop)`` is a coroutine function that runs beside it.
    """

    def act(run: Run, *, patience: Patience = QUICK, meanwhile=None, **rest) -> Run:
        assert leases.take(run)

        async def main() -> None:
            shared, stop = Shared(), asyncio.Event()
            beside = asyncio.create_task(meanwhile(stop)) if meanwhile else None
            await work(run, shared=shared, stop=stop, patience=patience, **rest)
            if beside:
                await beside
            await shared.endpoints.close()

        loop.run(main)
        return Run.objects.select_related("judge").get(pk=run.pk)

    return act
