"""What the search box finds: benchmarks, models, judges and samples by name, never by anything hidden."""

from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from accounts.rules import Viewer, allowed
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from bank.samples.listing import holding
from judging.models import Judge, Run

FEWEST, MOST = 2, 8  # characters asked for; rows of a kind
BENCHMARKS_NAMED = 4


@dataclass(frozen=True, slots=True)
class Link:
    words: str
    to: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing: its name, where it is (empty where the viewer can open nothing), what is said of it."""

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
    """What the viewer may see and whose name holds ``text``; samples whose instruction does, or whose key it is."""
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
    found = Benchmark.objects.visible_to(viewer).filter(Q(title__icontains=text) | Q(slug__icontains=text))
    return [
        Hit(one.titled, reverse("leaderboard:benchmark", args=[one]), one.description)
        for one in found.order_by("title", "-pk")[: MOST + 1]
    ]


def _models(text: str, viewer: Viewer) -> list[Hit]:
    answers = Response.objects.visible_to(viewer)
    found = EvaluatedModel.objects.filter(Q(name__icontains=text) | Q(organisation__icontains=text))
    found = found.filter(Exists(answers.filter(model=OuterRef("pk")))).order_by("name")
    hits = []
    for model in found[: MOST + 1]:
        here = Exists(answers.filter(model=model, sample__benchmark=OuterRef("pk")))
        on = Benchmark.objects.visible_to(viewer).filter(here).order_by("-pk")[:BENCHMARKS_NAMED]
        places = [Link(one.titled, reverse("leaderboard:models", args=[one])) for one in on]
        hits.append(Hit(model.name, places[0].to if places else "", model.organisation, places))
    return hits


def _judges(text: str, viewer: Viewer) -> list[Hit]:
    runs = Run.objects.filter(kind=Run.Kind.JUDGMENTS, benchmark__in=Benchmark.objects.visible_to(viewer))
    found = Judge.objects.filter(name__icontains=text).order_by("name")
    opens = allowed(viewer, "read-judging")
    if not opens:
        found = found.filter(Exists(runs.filter(judge=OuterRef("pk"))))
    hits = []
    for judge in found[: MOST + 1]:
        on = Benchmark.objects.filter(Exists(runs.filter(judge=judge, benchmark=OuterRef("pk")))).order_by("-pk")
        places = [Link(one.titled, reverse("leaderboard:judges", args=[one])) for one in on[:BENCHMARKS_NAMED]]
        to = reverse("judging:judge-detail", args=[judge.pk]) if opens else places[0].to if places else ""
        hits.append(Hit(judge.name, to, "built in" if judge.is_baseline else "", places))
    return hits


def _samples(text: str, viewer: Viewer) -> list[Hit]:
    found = holding(Sample.objects.visible_to(viewer), text)
    rows = list(found.select_related("benchmark").order_by("-benchmark", "position", "pk")[: MOST + 1])
    to = {one.pk: reverse("bank:sample-detail", args=[one.pk]) for one in rows} if allowed(viewer, "read-bank") else {}
    if not to:
        open_ones = Sample.objects.verdicts_visible_to(viewer).filter(pk__in=[one.pk for one in rows])
        items = Item.objects.filter(sample__in=open_ones.values("pk"), kind=Item.Kind.PAIR).order_by("-pk")
        names = {one.pk: str(one.benchmark) for one in rows}
        for pk, sample in items.values_list("pk", "sample_id"):
            to[sample] = reverse("leaderboard:item", args=[names[sample], pk])
    return [
        Hit(
            one.key,
            to.get(one.pk, ""),
            one.instruction[:300],
            [Link(one.benchmark.titled, reverse("leaderboard:benchmark", args=[one.benchmark]))],
        )
        for one in rows
    ]
