"""The bank's pages at 100,000 samples with a million responses, beside an empty page."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from bank.database import bulk
from bank.models import (
    Benchmark,
    Capability,
    EvaluatedModel,
    Item,
    ItemResponse,
    Response,
    ReviewRound,
    Sample,
    SampleImage,
    SampleReview,
)
from tests.bench.parts import Result, database

SAMPLES = 100_000
MODELS = 10
LEVELS, SKILLS = 6, 7
SLOWEST = 150  # milliseconds of the server for a page
BLOCK = 5_000
NOW = timezone.now()


def fill(*, samples: int = SAMPLES, models: int = MODELS) -> Benchmark:
    """A benchmark of so many samples with a picture and a response of each model, and a review round over some."""
    benchmark = Benchmark.objects.create(slug="large", title="Large", visibility="public")
    leaves = []
    for level in range(LEVELS):
        top = Capability.objects.create(benchmark=benchmark, name=f"Level {level}", path=f"Level {level}")
        for skill in range(SKILLS):
            name = f"Skill {level}.{skill}"
            leaf = Capability.objects.create(benchmark=benchmark, parent=top, name=name, path=f"{top.path} / {name}")
            leaves.append(leaf.pk)
    made = EvaluatedModel.objects.bulk_create(EvaluatedModel(name=f"model {n:02}") for n in range(models))
    for start in range(0, samples, BLOCK):
        numbers = range(start, min(start + BLOCK, samples))
        pks = bulk.new_ids(Sample, len(numbers))
        columns = """id benchmark_id key instruction hint language question_type options split capability_id source
            "group" metadata absent_images status position quality_hints"""
        bulk.insert(
            Sample,
            columns.replace('"', "").split(),
            [
                (
                    *(pk, benchmark.pk, f"s{n}", f"Describe number {n} of the series; say what is odd. " * 4, "", "en"),
                    *(("open-ended", "closed-ended", "compound")[n % 3], "{}", "dev" if n % 10 else "test"),
                    *(leaves[n * 31 % len(leaves)], "made for the measurement", "", json.dumps({"number": n}), "[]"),
                    *("approved" if n % 200 else "draft", n, 2 * (n % 50 == 0) | 8 * (n % 70 == 0)),
                )
                for n, pk in zip(numbers, pks, strict=True)
            ],
        )
        images = [
            (pk, 0, f"{n:064x}", f"{n:064x}", "png", 640, 480, f"{n * 2654435761 % 2**63:016x}", "", "[]", "")
            for n, pk in zip(numbers, pks, strict=True)
        ]
        names = "sample_id position sha256 original_sha256 kind width height phash description objects_found source_url"
        bulk.insert(SampleImage, names.split(), images)
        rows = [(pk, model.pk, "", "It shows a number and a shape. " * 3, "ok", "") for pk in pks for model in made]
        bulk.insert(Response, "sample_id model_id variant text status reason".split(), rows)
    _items(benchmark, samples)
    _reviews(benchmark)
    return benchmark


def _items(benchmark: Benchmark, samples: int) -> None:
    """A pair of the first two responses for every tenth sample."""
    found = Response.objects.filter(sample__benchmark=benchmark, sample__position__lt=samples // 10)
    pairs: dict[int, list[int]] = {}
    for pk, sample in found.order_by("pk").values_list("pk", "sample"):
        pairs.setdefault(sample, []).append(pk)
    pks = bulk.new_ids(Item, len(pairs))
    bulk.insert(
        Item,
        "id kind sample_id content_hash".split(),
        [(pk, "pair", s, f"{pk:064x}") for pk, s in zip(pks, pairs, strict=True)],
    )
    places = [(pk, n, two[n]) for pk, two in zip(pks, pairs.values(), strict=True) for n in (0, 1)]
    bulk.insert(ItemResponse, "item_id position response_id".split(), places)


def _reviews(benchmark: Benchmark) -> None:
    """One round in which the curator has half of the drafts left."""
    curator = User.objects.create_user("bench-curator", role="curator")
    opened = ReviewRound.objects.create(benchmark=benchmark, number=1, opened_by=curator)
    drafts = list(benchmark.samples.filter(status="draft").values_list("pk", flat=True))
    SampleReview.objects.bulk_create(
        SampleReview(
            round=opened, sample_id=pk, reviewer=curator, verdict="" if n % 2 else "fine", at=None if n % 2 else NOW
        )
        for n, pk in enumerate(drafts)
    )
    benchmark.samples.filter(pk__in=drafts[1::2]).update(status="review")
    benchmark.samples.filter(pk__in=drafts[::4]).update(status="expert")


def addresses(benchmark: Benchmark) -> dict[str, str]:
    """Every page of the bank that grows with the benchmark, by name."""
    here = f"/bank/benchmarks/{benchmark}/"
    middle = benchmark.samples.get(position=benchmark.samples.count() // 2)
    skill = benchmark.capabilities.filter(parent__isnull=False).last()
    review = SampleReview.objects.filter(verdict="").earliest("pk")
    expert = benchmark.samples.filter(status="expert").earliest("pk")
    one = f"/bank/samples/{middle.pk}/"
    return {
        "the benchmarks": "/bank/",
        "the samples": here,
        "a page in the middle": f"{here}?after={middle.position}.{middle.pk}",
        "the page before it": f"{here}?before={middle.position}.{middle.pk}",
        "of one level": f"{here}?level=Level+3",
        "of one capability": f"{here}?capability={skill.pk}",
        "of one type and split": f"{here}?question_type=compound&split=test",
        "drafts": f"{here}?status=expert",
        "with any hint": f"{here}?hint=any",
        "with one hint": f"{here}?hint=no-criteria&level=Level+2",
        "a text that many hold": f"{here}?q=series",
        "a text that one holds": f"{here}?q=number+99999",
        "a text that none holds": f"{here}?q=nowhere+to+be+found",
        "a sample": one,
        "a sample of a filter": f"{one}?status=approved&split=dev&model={EvaluatedModel.objects.first().pk}",
        "its history": f"{one}history/",
        "its editor": f"{one}edit/",
        "a change of many": f"{here}samples/change/?split=test",
        "the tree": f"{here}capabilities/?node={skill.pk}",
        "the review rounds": f"{here}reviews/",
        "a reviewer's queue": "/bank/reviews/",
        "a review": f"/bank/reviews/{review.pk}/",
        "an expert's check": f"/bank/samples/{expert.pk}/check/",
        "publishing": f"{here}publish/",
        "the export form": f"{here}export/",
        "a new sample": f"{here}samples/new/",
    }


def clock() -> float:
    """CPU seconds of this process, and on PostgreSQL of the backend that works for it: whatever else the machine does.

    A backend on another machine is waited for.
    """
    if connection.vendor != "postgresql":
        return time.process_time()
    try:
        ran = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()[0]
    except OSError:
        return time.perf_counter()
    return time.process_time() + int(ran) / 1e9


def milliseconds(client: Client, path: str, *, times: int = 5) -> float:
    """The least of a few times of the server for a page, after one visit."""
    assert client.get(path).status_code == 200, path
    taken = []
    for _ in range(times):
        connection.ensure_connection()
        start = clock()
        client.get(path)
        taken.append(1000 * (clock() - start))
    return min(taken)


def bank() -> Iterator[Result]:
    """Each page at full size. The reference is the sign-in page; the limit is what 150 ms are of it."""
    with database():
        benchmark = fill()
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("VACUUM ANALYZE")
                cursor.execute("SET max_parallel_workers_per_gather = 0")  # all the work in the one that is measured
            else:
                cursor.execute("PRAGMA optimize")
        client = Client()
        client.force_login(User.objects.get(username="bench-curator"))
        empty = milliseconds(Client(), "/accounts/sign-in/", times=20)
        for name, path in addresses(benchmark).items():
            taken = milliseconds(client, path)
            yield Result(f"bank at 100,000: {name}", empty, taken, round(SLOWEST / empty, 1), "ms")
    connection.close()
