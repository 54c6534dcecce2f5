"""Benchmarks that a viewer may see, with what there is of each."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet

from accounts.rules import Viewer, allowed
from annotations.models import Label
from bank import guard
from bank.models import Benchmark, Item, ItemResponse, Response, Sample, models_with
from judging.models import Judgment, Run
from leaderboard.hidden import uncounted_runs, untold_runs
from leaderboard.scope import answers_shown
from leaderboard.votes import arrays
from stats.figures import number_of, whole

MOST_COMPARED = 12
COUNTS = (  # of a benchmark
    "samples",
    "asked_samples",
    "models",
    "asked_models",
    "judges",
    "baselines",
    "labels",
    "annotators",
    "judgments",
)


@dataclass(frozen=True, slots=True)
class BenchmarkCounts:
    """A benchmark with its counts, as the index shows it. Verdicts are on items, and not all samples and models are in
    one: ``asked_samples`` and ``asked_models`` are.
    """

    benchmark: Benchmark
    name: str  # as in URLs
    samples: int = 0
    asked_samples: int = 0
    models: int = 0
    asked_models: int = 0
    judges: int = 0
    baselines: int = 0
    labels: int = 0
    annotators: int = 0
    judgments: int = 0

    @property
    def of_samples(self) -> str:
        """``19 samples (13 with items)``."""
        return number_of(self.samples, "sample") + self.samples_note

    @property
    def of_models(self) -> str:
        """``70 models (59 with items)``."""
        return number_of(self.models, "model") + self.models_note

    @property
    def samples_note(self) -> str:
        return _with_items(self.asked_samples, self.samples)

    @property
    def models_note(self) -> str:
        return _with_items(self.asked_models, self.models)

    @property
    def in_words(self) -> str:
        """``36 samples, 4 models, 471 labels by 3 people``, without what there is none of."""
        counted = ((self.judges, "judge"), (self.judgments, "judgment"), (self.labels, "label"))
        models = [self.of_models] if self.models else []
        parts = [self.of_samples, *models, *(number_of(n, noun) for n, noun in counted if n)]
        people = f" by {number_of(self.annotators, 'person', 'people')}" if self.labels else ""
        return ", ".join(parts) + people

    @property
    def in_short(self) -> str:
        """``36 samples, 4 models, 471 labels``."""
        some = [
            words for n, words in ((self.models, self.of_models), (self.judges, number_of(self.judges, "judge"))) if n
        ]
        return ", ".join([self.of_samples, *some, number_of(self.labels, "label")])


def _with_items(n: int, every: int) -> str:
    """Said where some have items and others do not: no board counts the others."""
    return f" ({whole(n)} with items)" if 0 < n < every else ""


def newest_visible(viewer: Viewer) -> list[Benchmark]:
    """The newest version of every benchmark that the viewer may see, by title."""
    newest: dict[str, Benchmark] = {}
    for benchmark in Benchmark.objects.visible_to(viewer).select_related("anchor").order_by("pk"):
        newest[benchmark.slug] = benchmark
    return sorted(newest.values(), key=lambda benchmark: (benchmark.title.casefold(), benchmark.pk))


def versions_of(benchmark: Benchmark, viewer: Viewer) -> list[Benchmark]:
    """Every version that the viewer may see, newest first."""
    return list(Benchmark.objects.visible_to(viewer).filter(slug=benchmark.slug).order_by("-pk"))


def to_compare(benchmark: Benchmark, viewer: Viewer) -> list[tuple[Benchmark, bool]]:
    """Benchmarks to compare rankings with: the other versions of this one, and the newest version of all others. Each
    with whether the viewer is staff to it.
    """
    versions = [other for other in versions_of(benchmark, viewer) if other.pk != benchmark.pk]
    others = [other for other in newest_visible(viewer) if other.slug != benchmark.slug]
    return [(one, allowed(viewer, "read-hidden", of=one)) for one in [*versions, *others][:MOST_COMPARED]]


@guard.working()
def benchmark_counts(
    benchmarks: Sequence[Benchmark], viewer: Viewer, *, names: Container[str] = COUNTS
) -> list[BenchmarkCounts]:
    """Benchmarks with those of their counts that are asked for by name, as far as this viewer may see them, in a fixed
    number of queries.
    """
    staff = all(allowed(viewer, "read-hidden", of=benchmark) for benchmark in benchmarks)
    untold = untold_runs(staff=staff)
    ids = [benchmark.pk for benchmark in benchmarks]
    samples = Sample.objects.filter(status=Sample.Status.APPROVED, benchmark__in=ids)
    answers = answers_shown(staff=staff).filter(sample__benchmark__in=ids)
    labels = Label.objects.filter(campaign__benchmark__in=ids, excluded=False)
    ok = Judgment.Status.OK
    with_verdict = Exists(Judgment.objects.filter(run=OuterRef("pk"), status=ok))
    runs = Run.objects.filter(with_verdict, benchmark__in=ids).exclude(pk__in=untold)

    in_items = answers.filter(Exists(ItemResponse.objects.filter(response=OuterRef("pk"))))

    def models(of: QuerySet[Response]) -> dict[int, int]:
        if len(ids) == 1:  # one answer of each model is enough
            return {ids[0]: models_with(of).count()}
        return _by(of, "sample__benchmark", Count("model", distinct=True))

    def judgments() -> dict[int, int]:
        # Failed ones are few, and at both ends of an index.
        ends = [Judgment.objects.filter(run__benchmark__in=ids, **{f"status__{end}": ok}) for end in ("lt", "gt")]
        as_calls = [*untold, *uncounted_runs(staff=staff)]  # of these every call counts, if without a verdict, too
        failed = [_by(rows.exclude(run__in=as_calls), "run__benchmark", Count("pk")) for rows in ends]
        stored = {pk: sum(n for run, n in arrays.rows_per_run(Judgment, pk).items() if run not in untold) for pk in ids}
        return {pk: n - sum(end.get(pk, 0) for end in failed) for pk, n in stored.items()}

    counts: dict[str, Callable[[], dict[int, int]]] = {
        "samples": lambda: _by(samples, "benchmark", Count("pk")),
        "asked_samples": lambda: _by(
            samples.filter(Exists(Item.objects.filter(sample=OuterRef("pk")))), "benchmark", Count("pk")
        ),
        "models": lambda: models(answers),
        "asked_models": lambda: models(in_items),
        "labels": lambda: _by(labels, "campaign__benchmark", Count("pk")),
        "annotators": lambda: _by(labels, "campaign__benchmark", Count("annotator", distinct=True)),
        "judges": lambda: _by(runs.filter(judge__baseline=""), "benchmark", Count("judge", distinct=True)),
        "baselines": lambda: _by(runs.exclude(judge__baseline=""), "benchmark", Count("judge", distinct=True)),
        "judgments": judgments,
    }
    found = {name: count() for name, count in counts.items() if name in names}
    return [
        BenchmarkCounts(
            benchmark, benchmark.slug, **{name: numbers.get(benchmark.pk, 0) for name, numbers in found.items()}
        )
        for benchmark in benchmarks
    ]


def _by(rows: QuerySet[Any], key: str, count: Count) -> dict[int, int]:
    return dict(rows.order_by().values_list(key).annotate(n=count))
