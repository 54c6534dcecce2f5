"""The line of steps from a file to a board: what is there of a benchmark, and what comes next."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from annotations.models import Campaign
from bank.models import Benchmark, Item, Response
from judging.models import Run
from leaderboard.benchmarks import BenchmarkCounts
from leaderboard.kinds import is_available

DONE, NOW, LATER = "done", "now", "later"
BOARDS = {"models": "Models", "judges": "Judges against people", "bias": "Biases of judges"}
KINDS = {"pair": "pair", "score": "single answer", "batch": "ranking"}


MANY = 100_000  # answers or items that are counted where the number is shown


@dataclass
class Step:
    """One of the four steps; ``tell`` finds what its words and buttons tell, once they are shown."""

    name: str
    is_done: bool
    tell: Callable[[], dict[str, Any]]
    state: str = LATER

    @cached_property
    def told(self) -> dict[str, Any]:
        return self.tell()


def steps_of(counts: BenchmarkCounts) -> list[Step]:
    """The steps of a benchmark, for staff; the first that is not done is the next one. Of the counts, samples, labels,
    judges and baselines are asked.
    """
    benchmark = counts.benchmark
    answers = Response.objects.filter(sample__benchmark=benchmark)
    items = Item.objects.filter(sample__benchmark=benchmark)
    runs = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS, state__in=Run.GOING)
    campaigns = Campaign.objects.filter(benchmark=benchmark, state=Campaign.State.OPEN)
    has_verdicts = bool(counts.labels or counts.judges or counts.baselines)
    is_public = benchmark.visibility == Benchmark.Visibility.PUBLIC

    def made() -> dict[str, int]:
        return {noun: n for kind, noun in KINDS.items() if (n := _up_to(MANY, items.filter(kind=kind)))}

    steps = [
        Step("Import", counts.samples > 0, lambda: {"answers": _up_to(MANY, answers)}),
        Step("Items", items.exists(), lambda: {"made": made()}),
        Step(
            "Judge or label",
            bool(counts.labels or counts.judges),
            lambda: {"campaigns": campaigns.count(), "runs": runs.count()},
        ),
        Step("Board", is_public and has_verdicts, lambda: {"boards": _boards(counts), "is_public": is_public}),
    ]
    waiting = next((step for step in steps if not step.is_done), steps[-1])
    for step in steps:
        step.state = DONE if step.is_done else NOW if step is waiting else LATER
    return steps


def _up_to(most: int, rows: QuerySet[Any]) -> int:
    """How many there are; of more than ``most`` one more than that."""
    return rows.order_by()[: most + 1].count()


def _boards(counts: BenchmarkCounts) -> list[tuple[str, str]]:
    """Those that there are, each with its address and name."""
    ranked = [name for name in BOARDS if is_available(counts.benchmark, name, staff=True)]
    if not (counts.labels and counts.judges):  # nobody to compare with
        ranked = [name for name in ranked if name == "models"] or ranked
    names = ranked or ["models"]
    return [(reverse(f"leaderboard:{name}", args=[counts.benchmark]), BOARDS[name]) for name in names]
