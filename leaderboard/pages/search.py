"""Results of the search box: benchmarks, models, judges and samples by name, never by anything hidden."""

from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from accounts.rules import Viewer, allowed
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from bank.samples.listing import holding
from judging.models import Judge, Run

FEWEST, MOST = 2, 8  # characters needed for a search; rows of each kind
BENCHMARKS_NAMED = 4


@dataclass(frozen=True, slots=True)
class Link:
    words: str
    to: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: its name, its link (empty if the viewer may not open it), and a description."""

    name: str
    to: str = ""
    about: str = ""
    places: list[Link] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    hits: list[Hit]
    more: bool  # there are others


def find(text: str, viewer: Viewer) -> list[Group]:
    """What the viewer may see with ``text`` in its name; samples with it in their instruction or as their key."""
    text = text.replace("\x00", "")
    if len(text) < FEWEST:
        return []
    groups = [
        _group("Benchmarks", _benchmarks(text, viewer)),
        _group("Models", _models(text, viewer)),
        _group("Judges", _judges(text, viewer)),
        _group("Samples", _samples(text, viewer)),
    ]
    return [group for group in groups if group.hits]


def _group(title: str, hits: list[Hit]) -> Group:
    return Group(title, hits[:MOST], len(hits) > MOST)


def _benchmarks(text: str, viewer: Viewer) -> list[Hit]:
    benchmarks = Benchmark.objects.visible_to(viewer).filter(Q(title__icontains=text) | Q(slug__icontains=text))
    return [
        Hit(benchmark.titled, reverse("leaderboard:benchmark", args=[benchmark]), benchmark.description)
        for benchmark in benchmarks.order_by("title", "-pk")[: MOST + 1]
    ]


def _models(text: str, viewer: Viewer) -> list[Hit]:
    answers = Response.objects.visible_to(viewer)
    models = EvaluatedModel.objects.filter(Q(name__icontains=text) | Q(organisation__icontains=text))
    models = models.filter(Exists(answers.filter(model=OuterRef("pk")))).order_by("name")
    hits = []
    for model in models[: MOST + 1]:
        answers_there = Exists(answers.filter(model=model, sample__benchmark=OuterRef("pk")))
        benchmarks = Benchmark.objects.visible_to(viewer).filter(answers_there).order_by("-pk")[:BENCHMARKS_NAMED]
        places = [Link(benchmark.titled, reverse("leaderboard:models", args=[benchmark])) for benchmark in benchmarks]
        to = reverse("leaderboard:model-detail", args=[model.pk]) if places else ""
        hits.append(Hit(model.name, to, model.organisation, places))
    return hits


def _judges(text: str, viewer: Viewer) -> list[Hit]:
    runs = Run.objects.filter(kind=Run.Kind.JUDGMENTS, benchmark__in=Benchmark.objects.visible_to(viewer))
    judges = Judge.objects.filter(name__icontains=text).order_by("name")
    if not allowed(viewer, "read-judging"):
        judges = judges.filter(Exists(runs.filter(judge=OuterRef("pk"))))
    hits = []
    for judge in judges[: MOST + 1]:
        benchmarks = Benchmark.objects.filter(Exists(runs.filter(judge=judge, benchmark=OuterRef("pk")))).order_by(
            "-pk"
        )
        places = [
            Link(benchmark.titled, reverse("leaderboard:judges", args=[benchmark]))
            for benchmark in benchmarks[:BENCHMARKS_NAMED]
        ]
        to = reverse("leaderboard:judge-detail", args=[judge.pk])
        hits.append(Hit(str(judge), to, "built in" if judge.is_baseline else "", places))
    return hits


def _samples(text: str, viewer: Viewer) -> list[Hit]:
    samples = holding(Sample.objects.visible_to(viewer), text)
    hits = list(samples.select_related("benchmark").order_by("-benchmark", "position", "pk")[: MOST + 1])
    urls = (
        {sample.pk: reverse("bank:sample-detail", args=[sample.pk]) for sample in hits}
        if allowed(viewer, "read-bank")
        else {}
    )
    if not urls:
        open_samples = Sample.objects.verdicts_visible_to(viewer).filter(pk__in=[sample.pk for sample in hits])
        items = Item.objects.filter(sample__in=open_samples.values("pk"), kind=Item.Kind.PAIR).order_by("-pk")
        names = {sample.pk: str(sample.benchmark) for sample in hits}
        for pk, sample_id in items.values_list("pk", "sample_id"):
            urls[sample_id] = reverse("leaderboard:item", args=[names[sample_id], pk])
    return [
        Hit(
            sample.key,
            urls.get(sample.pk, ""),
            sample.instruction[:300],
            [Link(sample.benchmark.titled, reverse("leaderboard:benchmark", args=[sample.benchmark]))],
        )
        for sample in hits
    ]
