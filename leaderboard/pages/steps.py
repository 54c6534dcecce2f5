"""The line of steps from a file to a board: what is there of a benchmark, and what comes next."""

from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from accounts.rules import Viewer, allowed
from annotations.models import Campaign
from bank.models import Benchmark, Item, Response
from judging.models import Run
from leaderboard import queries
from leaderboard.figures import number_of
from leaderboard.kinds import available

DONE, NOW, LATER = "done", "now", "later"
STATES = {DONE: "done", NOW: "next", LATER: "not yet"}
BOARDS = {"models": "Models", "judges": "Judges against people", "bias": "Biases of judges"}
KINDS = {"pair": "pair", "score": "single answer", "batch": "ranking"}


MANY = 100_000  # answers or items that are counted where the number is shown
OF_THE_ROLE = ("Have a model answer", "New run")  # ADR 42


@dataclass(slots=True)
class Step:
    """One of the four steps. ``actions``: the words of a button and where it leads, the usual one first."""

    title: str
    count: str
    detail: str
    is_done: bool
    actions: list[tuple[str, str]] = field(default_factory=list)
    state: str = LATER

    @property
    def state_words(self) -> str:
        return STATES[self.state]


def steps_of(counts: queries.BenchmarkCounts, viewer: Viewer, *, most: int) -> list[Step]:
    """The steps of a benchmark, for staff; the first that is not done is the next one. ``most``: how many answers and
    items are counted.
    """
    benchmark = counts.benchmark
    steps = [
        _import(benchmark, counts, most),
        _items(benchmark, most),
        _verdicts(benchmark, counts),
        _board_step(benchmark, counts),
    ]
    # Who curates this benchmark alone gets no button that leads nowhere.
    closed = [] if allowed(viewer, "write-judging") else [*OF_THE_ROLE]
    closed += [] if allowed(viewer, "publish", of=benchmark) else ["Publish"]
    waiting = next((step for step in steps if not step.is_done), steps[-1])
    for step in steps:
        step.state = DONE if step.is_done else NOW if step is waiting else LATER
        if step.state == LATER:
            step.actions = []
        step.actions = [action for action in step.actions if action[0] not in closed]
    return steps


def _import(benchmark: Benchmark, counts: queries.BenchmarkCounts, most: int) -> Step:
    answers = _up_to(most, Response.objects.filter(sample__benchmark=benchmark), "answer")
    samples = benchmark.samples.in_use().count()
    return Step(
        "Import",
        f"{number_of(samples, 'sample')}, {number_of(counts.models, 'model')}",
        answers or "no answers yet: bring them in, or have endpoints write them",
        samples > 0,
        [
            ("Add a file", reverse("bank:upload-list", query={"benchmark": str(benchmark)})),
            ("Have a model answer", reverse("judging:collect-new", query={"benchmark": benchmark.pk})),
        ],
    )


def _items(benchmark: Benchmark, most: int) -> Step:
    items = Item.objects.filter(sample__benchmark=benchmark)
    made = [found for kind, noun in KINDS.items() if (found := _up_to(most, items.filter(kind=kind), noun))]
    return Step(
        "Items",
        ", ".join(made) or "none yet",
        "what a judge or a person gives a verdict on: answers, or samples alone",
        bool(made),
        [("Make more items" if made else "Make items", reverse("bank:benchmark-items", args=[benchmark]))],
    )


def _up_to(most: int, rows: QuerySet[Any], noun: str) -> str:
    """How many there are; of more than ``most`` no more than that. "" if none."""
    n = rows.order_by()[: most + 1].count()
    return f"more than {number_of(most, noun)}" if n > most else number_of(n, noun) if n else ""


def _verdicts(benchmark: Benchmark, counts: queries.BenchmarkCounts) -> Step:
    going = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS, state__in=Run.GOING).count()
    open_campaigns = Campaign.objects.filter(benchmark=benchmark, state=Campaign.State.OPEN).count()
    under_way = [
        *([f"{number_of(open_campaigns, 'campaign')} open"] if open_campaigns else []),
        *([f"{number_of(going, 'run')} under way"] if going else []),
    ]
    chosen = {"benchmark": benchmark.pk}
    return Step(
        "Judge or label",
        f"{number_of(counts.labels, 'label')}, {number_of(counts.judges, 'judge')}",
        ", ".join(under_way) or "nothing under way",
        bool(counts.labels or counts.judges),
        [
            ("New run", reverse("judging:run-new", query=chosen)),
            ("New campaign", reverse("annotations:campaign-new", query=chosen)),
        ],
    )


def _board_step(benchmark: Benchmark, counts: queries.BenchmarkCounts) -> Step:
    public = benchmark.visibility == Benchmark.Visibility.PUBLIC
    has_verdicts = bool(counts.labels or counts.judgments)
    ranked = [name for name in BOARDS if available(benchmark, name, staff=True)]
    if not (counts.labels and counts.judges):  # nobody to compare with
        ranked = [name for name in ranked if name == "models"] or ranked
    first, *others = ranked or ["models"]
    boards = [("Open the board", reverse(f"leaderboard:{first}", args=[benchmark]))]
    boards += [(BOARDS[name], reverse(f"leaderboard:{name}", args=[benchmark])) for name in others]
    publish = ("Publish", reverse("bank:benchmark-publish", args=[benchmark]))
    return Step(
        "Board",
        number_of(counts.labels + counts.judgments, "verdict"),
        "everybody sees it" if public else "only staff see it",
        public and has_verdicts,
        boards if public else [*boards, publish],
    )
