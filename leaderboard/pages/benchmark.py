"""The first page of a benchmark: its best models and judges, its levels, some samples, and its card."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.urls import reverse

from annotations.models import Label
from bank import guard
from bank.models import Item, Sample, SampleImage
from leaderboard import kinds, votes
from leaderboard.benchmarks import benchmark_counts
from leaderboard.boards.models.contents import contents_of
from leaderboard.pages import home, pictures
from leaderboard.pages.sealed import Sealed, sealed_of
from leaderboard.scope import Scope
from leaderboard.view import Address
from stats.figures import NONE, number_of, percent, whole

SAMPLES = 4  # shown
MOST_LEVELS = 24
MOST_COUNTED = 15  # of each part, as in print


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A level with its samples and items, and how many of the items people have labelled."""

    name: str
    link: str
    samples: str
    items: str
    labelled: str
    share: float


@dataclass(frozen=True, slots=True)
class SampleCard:
    sample: Sample
    instruction: str
    link: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted, of how many, and the most frequent of it, each with its number and its share of the first's."""

    title: str
    of: str
    rows: list[tuple[str, str, float]]


@dataclass(frozen=True, slots=True)
class BenchmarkPage:
    lead: str
    entry: home.Entry
    summary: home.Summary
    levels: list[LevelRow]
    samples: list[SampleCard]
    contents: list[Counted]
    languages: list[str]
    splits: list[tuple[str, int]]
    sealed: Sealed
    picture: pictures.Picture | None  # what stands for the page elsewhere


def build_benchmark_page(address: Address) -> BenchmarkPage:
    """As everybody sees it who may see the benchmark; only the boards differ by viewer."""
    benchmark = address.benchmark
    (counts,) = benchmark_counts([benchmark], address.viewer)
    models = Address(address.viewer, "leaderboard:models", address.name, benchmark)
    summary = home.summary_of(counts, models)
    in_use = benchmark.samples.in_use().order_by()
    splits = in_use.exclude(split="")
    return BenchmarkPage(
        lead=benchmark.description,
        entry=summary.entries[0],
        summary=summary,
        levels=_levels(address),
        samples=_samples(address),
        contents=_contents(address),
        languages=sorted(set(in_use.exclude(language="").values_list("language", flat=True)))[:8],
        splits=sorted(splits.values_list("split").annotate(n=Count("pk"))),
        sealed=sealed_of(benchmark),
        picture=pictures.shared(replace(models, page="leaderboard:judges"), pictures.OF_JUDGES)
        or pictures.shared(models, pictures.OF_MODELS),
    )


def _by_top(rows: QuerySet[Any], capability: str, tops: Mapping[int, str]) -> Counter[str]:
    """How many rows are below each top of the tree; ``capability`` is the path to theirs."""
    counts = Counter[str]()
    for pk, n in rows.order_by().values_list(F(capability)).annotate(n=Count("pk")):
        counts[tops[pk]] += n
    return counts


@guard.working()
def _levels(address: Address) -> list[LevelRow]:
    """The tops of the tree of capabilities; empty if there are fewer than two."""
    benchmark = address.benchmark
    tops = {pk: path.split(" / ", 1)[0] for pk, path in benchmark.capabilities.values_list("pk", "path")}
    order = {name: at for at, name in enumerate(dict.fromkeys(tops.values()))}
    if len(order) < 2:
        return []
    in_use = benchmark.samples.in_use().filter(capability__isnull=False)
    items = Item.objects.visible_to(address.viewer).filter(sample__in=in_use)
    with_label = items.filter(Exists(Label.objects.filter(item=OuterRef("pk"), excluded=False)))
    samples, made = _by_top(in_use, "capability", tops), _by_top(items, "sample__capability", tops)
    counted = not votes.is_large(benchmark)  # labels item by item take seconds there
    labelled = _by_top(with_label, "sample__capability", tops) if counted else Counter[str]()
    models = Address(address.viewer, "leaderboard:models", address.name, benchmark)
    no_filters = models.sight().only_editions
    rows = []
    for name in sorted(samples, key=lambda name: order[name])[:MOST_LEVELS]:
        share = labelled[name] / made[name] if made[name] else 0.0
        rows.append(
            LevelRow(
                name=name,
                link="" if no_filters else models.link(level=name),
                samples=whole(samples[name]),
                items=whole(made[name]),
                labelled=f"{percent(share)}%" if counted and made[name] else NONE,
                share=share,
            )
        )
    return rows


TITLES = {
    "verbs": ("What instructions ask to do", "instruction"),
    "words": ("How instructions begin", "instruction"),
    "objects": ("What pictures show", "picture"),
}


def _contents(address: Address) -> list[Counted]:
    """Of each part what there is more than once, the most frequent."""
    rows = contents_of(Scope(address.benchmark, kinds.USUAL, staff=address.staff), address.viewer)
    found = []
    for part, (title, noun) in TITLES.items():
        top = [row for row in rows if row.part == part and row.n > 1][:MOST_COUNTED]
        if top:
            shares = [(row.name, whole(row.n), row.n / top[0].n) for row in top]
            found.append(Counted(title, number_of(top[0].of, noun), shares))
    return found


def _samples(address: Address) -> list[SampleCard]:
    """The first with a picture, as visitors see them, each with the page of one of its pairs if that is open to all."""
    visitor = AnonymousUser()
    samples = Sample.objects.visible_to(visitor).filter(benchmark=address.benchmark).select_related("capability")
    pictured = samples.filter(Exists(SampleImage.objects.filter(sample=OuterRef("pk"))))
    shown = list(pictured.prefetch_related("images").order_by("position", "pk")[:SAMPLES]) or list(samples[:SAMPLES])
    open_samples = Sample.objects.verdicts_visible_to(visitor).filter(pk__in=[sample.pk for sample in shown])
    pairs = (
        Item.objects.visible_to(visitor)
        .filter(sample__in=open_samples.values("pk"), kind=Item.Kind.PAIR)
        .order_by("-pk")
    )
    items = dict(pairs.values_list("sample", "pk"))
    cards = []
    for sample in shown:
        item = items.get(sample.pk)
        before_code = sample.instruction.partition("```")[0].strip()
        cards.append(
            SampleCard(
                sample=sample,
                instruction=before_code or sample.instruction,
                link=reverse("leaderboard:item", args=[address.name, item]) if item else "",
            )
        )
    return cards
