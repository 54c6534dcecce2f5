"""The measurements. CPU time of this process where work is computed, wall time where it waits."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from django.db import connection
from django.test import Client
from django.test.utils import setup_databases, teardown_databases

from bank.intake.formats.reading import json_lines
from tests.bench import importing


@dataclass(frozen=True, slots=True)
class Result:
    """``ours / reference``, and the ratio to stay under (or over, where more is better)."""

    work: str
    reference: float
    ours: float
    limit: float
    unit: str = "s"
    more_is_better: bool = False

    @property
    def ratio(self) -> float:
        return self.ours / self.reference

    @property
    def reached(self) -> bool:
        return self.ratio >= self.limit if self.more_is_better else self.ratio <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.more_is_better else "<="
        mark = "" if self.reached else "   MISSED"
        numbers = f"{self.reference:>10.3f} {self.unit}{self.ours:>10.3f} {self.unit}{self.ratio:>9.2f}"
        return f"{self.work:<58}{numbers}   {sign} {self.limit}{mark}"


def cpu(work: Callable[[], object], *, best_of: int = 3) -> float:
    """The least CPU time of a few runs, in seconds."""
    return cpus(work, best_of=best_of)[0]


def cpus(*works: Callable[[], object], best_of: int = 3) -> list[float]:
    """The same of several, run by turns: a machine that changes its pace changes it for all of them."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(best_of):
        for work, taken in zip(works, times, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in times]


@contextmanager
def database() -> Iterator[None]:
    """A database of its own, thrown away afterwards."""
    old = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        teardown_databases(old, verbosity=0)


def imports() -> Iterator[Result]:
    """100,000 samples and a million responses brought in, against only parsing their files."""
    folder = Path(tempfile.mkdtemp(prefix="evalsite-bench-"))

    def parse(part: str) -> None:
        with (folder / f"{part}.jsonl").open(encoding="utf-8") as file:
            for line in file:
                json.loads(line)

    def read(part: str) -> None:
        for _ in json_lines(folder / f"{part}.jsonl"):
            pass

    try:
        importing.write(folder, samples=100_000, models=10)
        command = [sys.executable, "-m", "tests.bench.importing", str(folder)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=without_data())
        found = json.loads(done.stdout.splitlines()[-1])
        parsed = {part: cpu(partial(parse, part), best_of=2) for part in importing.PARTS}
        whole, of_it = sum(parsed.values()), sum(found[part] for part in importing.PARTS)
        yield Result("100,000 samples, 1 M responses, beside json.loads of them", whole, of_it, 8)  # ADR 22
        for part, work in (("samples", "samples with criteria"), ("responses", "responses")):
            yield Result(f"  {work} alone", parsed[part], found[part], 8 if part == "responses" else 12)
            yield Result("  beside reading them, every fault looked for", cpu(partial(read, part)), found[part], 10)
        yield Result("  most memory of that process", 300, found["megabytes"], 1, unit="MB")
    finally:
        shutil.rmtree(folder)


def without_data() -> dict[str, str]:
    """This environment for a process that takes a data folder of its own."""
    return {name: value for name, value in os.environ.items() if name not in ("EVALSITE_DATA", "DATABASE_URL")}


def pages() -> Iterator[Result]:
    """A board of 200 models, computed before, against an empty page."""
    from bank.models import Benchmark, EvaluatedModel, Response, Sample
    from bank.samples.items import ItemSpec, ensure_items
    from judging.models import Judge, Judgment, Run, RunItem

    with database():
        benchmark = Benchmark.objects.create(slug="wide", title="Wide", visibility="public")
        judge = Judge.objects.create(name="judge")
        run = Run.objects.create(
            judge=judge, benchmark=benchmark, protocol="pair", settings={"order": "fixed"}, state="finished"
        )
        models = EvaluatedModel.objects.bulk_create(EvaluatedModel(name=f"model {n:03}") for n in range(200))
        rng = np.random.default_rng(3)
        for number in range(40):
            sample = Sample.objects.create(benchmark=benchmark, key=str(number), instruction="?", position=number)
            rows = Response.objects.bulk_create(Response(sample=sample, model=model, text="!") for model in models)
            order = rng.permutation(200)
            specs = [ItemSpec("pair", sample.pk, (rows[i].pk, rows[j].pk)) for i, j in order.reshape(-1, 2)]
            found, _ = ensure_items(specs)
            RunItem.objects.bulk_create(RunItem(run=run, item_id=item.pk) for item in found.values())
            Judgment.objects.bulk_create(
                Judgment(run=run, item_id=item.pk, choice=rng.choice(["first", "second", "tie"]), order="01")
                for item in found.values()
            )
        client = Client()
        board, empty = "/leaderboards/wide/models/?source=judge", "/accounts/sign-in/"
        for path in (board, empty):
            assert client.get(path).status_code == 200, path
        repeats = 20
        reference = cpu(lambda: [client.get(empty) for _ in range(repeats)]) / repeats
        ours = cpu(lambda: [client.get(board) for _ in range(repeats)]) / repeats
        yield Result("board of 200 models, beside an empty page", reference, ours, 3)
    connection.close()


PARTS: dict[str, Callable[[], Iterator[Result]]] = {"imports": imports, "pages": pages}
