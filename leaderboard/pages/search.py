"""Results of the search box: benchmarks, models, judges and samples by name, never by anything hidden; and pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.urls import reverse
from rapidfuzz import fuzz, process, utils

from accounts.models import SavedView, User
from accounts.rules import Viewer, allowed
from bank.models import Benchmark, Item, Response, Sample, models_with
from bank.samples.listing import holding
from judging.models import Judge, Run
from judging.models.runs import RunQuerySet
from leaderboard.benchmarks import newest_visible

FEWEST, MOST = 2, 8  # characters needed for a search; rows of each kind
FEW = 4  # rows of each kind while somebody still types
FEWEST_FOR_SAMPLES = 4  # characters, while somebody still types: few letters are in most instructions
BENCHMARKS_NAMED = 4
ALIKE, MOST_ALIKE = 70, 3  # of 100, for "did you mean"; names shown
COMPARED = 5_000  # names of each kind

# What one can do or read, by the words that people look for: (words, further words, route, rule).
PAGES = (
    ("New run of a judge", "start judging", "judging:run-new", "write-judging"),
    ("New judge", "add endpoint", "judging:judge-new", "write-judging"),
    ("Collect answers of a model", "responses captions", "judging:collect-new", "write-judging"),
    ("New recipe", "evaluate chef", "leaderboard:recipe-new", "write-judging"),
    ("New campaign", "start labelling annotators", "annotations:campaign-new", "write-campaigns"),
    ("Import a file", "bring in upload benchmark samples labels judgments", "bank:upload-list", "write-bank"),
    ("New benchmark", "make", "bank:benchmark-new", "write-bank"),
    ("Annotate", "label your campaigns", "annotations:index", "label"),
    ("Campaigns", "labelling rounds", "annotations:campaign-list", "read-judging"),
    ("Runs", "judging", "judging:index", "read-judging"),
    ("Submissions", "submit a model", "leaderboard:submission-list", "submit"),
    ("More than right answers", "desiderata calibration robustness chef", "leaderboard:desiderata", "read-public"),
    ("Method: formulas and sources", "how is it measured statistics interval", "leaderboard:method", "read-public"),
    ("Data: downloads and licences", "export csv json", "leaderboard:data", "read-public"),
    ("API", "token script openapi", "api-docs", "read-public"),
    ("Notices", "bell", "accounts:notices", "be-signed-in"),
    ("Your settings", "language theme mail keys preferences", "accounts:settings", "be-signed-in"),
    ("Tokens for the API", "key", "accounts:tokens", "be-signed-in"),
    ("People", "accounts roles users", "people", "administer"),
    ("Audit log", "who did what", "audit", "administer"),
    ("Access log", "criteria read", "bank:access-log", "administer"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: its name, its link (empty if the viewer may not open it), a description, and its places."""

    name: str
    to: str
    about: str = ""
    places: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    hits: list[Hit]
    more: bool  # there are others


def find(text: str, viewer: Viewer, *, typing: bool = False) -> list[Group]:
    """What the viewer may see with ``text`` in its name; samples with it in their instruction or as their key. Less of
    it for somebody who is still typing.
    """
    text = text.replace("\x00", "")
    if len(text) < FEWEST:
        return []
    most = FEW if typing else MOST
    kinds = [
        ("Benchmarks", _benchmarks(text, viewer)),
        ("Models", _models(text, viewer)),
        ("Judges", _judges(text, viewer)),
        ("Samples", [] if typing and len(text) < FEWEST_FOR_SAMPLES else _samples(text, viewer)),
        ("Your views", _views(text, viewer)),
        ("Pages", _pages(text, viewer)),
    ]
    return [Group(title, hits[:most], len(hits) > most) for title, hits in kinds if hits]


def similar(text: str, viewer: Viewer) -> list[Hit]:
    """Models, judges and benchmarks whose names are nearly ``text``: what was perhaps meant."""
    models = models_with(Response.objects.visible_to(viewer)).values_list("name", flat=True)
    runs = _judged(viewer)
    judges = Judge.objects.filter(Exists(runs.filter(judge=OuterRef("pk")))).values_list("name", flat=True)
    titles = Benchmark.objects.visible_to(viewer).values_list("title", flat=True)
    names = dict.fromkeys(chain.from_iterable(kind.order_by("pk")[:COMPARED] for kind in (models, judges, titles)))
    near = process.extract(
        text, names.keys(), scorer=fuzz.WRatio, processor=utils.default_process, score_cutoff=ALIKE, limit=MOST_ALIKE
    )
    return [Hit(name, reverse("leaderboard:find", query={"q": name})) for name, *_ in near]


def _views(text: str, viewer: Viewer) -> list[Hit]:
    views = SavedView.objects.filter(person=viewer, name__icontains=text) if isinstance(viewer, User) else ()
    return [Hit(view.name, view.path) for view in views]


def _pages(text: str, viewer: Viewer) -> list[Hit]:
    """Those whose words begin with each word of ``text``."""
    wanted = text.casefold().split()
    hits = []
    for title, words, route, rule in PAGES:
        there = f"{title} {words}".casefold().replace(":", "").split()
        if all(any(word.startswith(start) for word in there) for start in wanted) and allowed(viewer, rule):
            hits.append(Hit(title, reverse(route)))
    return hits


def _benchmarks(text: str, viewer: Viewer) -> list[Hit]:
    benchmarks = Benchmark.objects.visible_to(viewer).filter(Q(title__icontains=text) | Q(slug__icontains=text))
    return [
        Hit(benchmark.titled, reverse("leaderboard:benchmark", args=[benchmark]), benchmark.description)
        for benchmark in benchmarks.order_by("title", "-pk")[: MOST + 1]
    ]


def _places(benchmarks: Sequence[Benchmark] | QuerySet[Benchmark], page: str) -> list[tuple[str, str]]:
    named = benchmarks[:BENCHMARKS_NAMED]
    return [(benchmark.titled, reverse(f"leaderboard:{page}", args=[benchmark])) for benchmark in named]


def _models(text: str, viewer: Viewer) -> list[Hit]:
    answers = Response.objects.visible_to(viewer)
    models = models_with(answers).filter(Q(name__icontains=text) | Q(organisation__icontains=text)).order_by("name")
    found = {model.pk: model for model in models[: MOST + 1]}
    answered: dict[int, list[Benchmark]] = {pk: [] for pk in found}
    # One model at a time, PostgreSQL would read all answers to a benchmark for each.
    for benchmark in Benchmark.objects.visible_to(viewer).order_by("-pk") if found else ():
        there = models_with(answers.filter(sample__benchmark=benchmark)).filter(pk__in=found)
        for pk in there.values_list("pk", flat=True):
            answered[pk].append(benchmark)
    hits = []
    for model in found.values():
        places = _places(answered[model.pk], "models")
        to = reverse("leaderboard:model-detail", args=[model.pk]) if places else ""
        hits.append(Hit(model.name, to, model.organisation, places))
    return hits


def _judges(text: str, viewer: Viewer) -> list[Hit]:
    runs = _judged(viewer)
    judges = Judge.objects.filter(name__icontains=text).order_by("name")
    if not allowed(viewer, "read-judging"):
        judges = judges.filter(Exists(runs.filter(judge=OuterRef("pk"))))
    hits = []
    for judge in judges[: MOST + 1]:
        benchmarks = Benchmark.objects.filter(Exists(runs.filter(judge=judge, benchmark=OuterRef("pk")))).order_by(
            "-pk"
        )
        places = _places(benchmarks, "judges")
        to = reverse("leaderboard:judge-detail", args=[judge.pk])
        hits.append(Hit(str(judge), to, "built in" if judge.is_baseline else "", places))
    return hits


def _judged(viewer: Viewer) -> RunQuerySet:
    """The runs that the page of a judge counts, so that no result leads nowhere."""
    return Run.objects.visible_to(viewer).filter(kind=Run.Kind.JUDGMENTS, benchmark__in=newest_visible(viewer))


def _samples(text: str, viewer: Viewer) -> list[Hit]:
    samples = holding(Sample.objects.visible_to(viewer), text)
    hits = list(samples.select_related("benchmark").order_by("-benchmark", "position", "pk")[: MOST + 1])
    urls = {
        sample.pk: reverse("bank:sample-detail", args=[sample.pk])
        for sample in hits
        if allowed(viewer, "read-bank", of=sample.benchmark)
    }
    if len(urls) < len(hits):
        open_samples = Sample.objects.verdicts_visible_to(viewer).filter(pk__in=[sample.pk for sample in hits])
        items = (
            Item.objects.visible_to(viewer).filter(sample__in=open_samples.values("pk"), kind=Item.Kind.PAIR).order_by()
        )
        names = {sample.pk: str(sample.benchmark) for sample in hits}
        for sample_id, newest in items.values_list("sample").annotate(newest=Max("pk")):
            urls.setdefault(sample_id, reverse("leaderboard:item", args=[names[sample_id], newest]))
    return [
        Hit(
            sample.key,
            urls.get(sample.pk, ""),
            sample.instruction[:300],
            _places([sample.benchmark], "benchmark"),
        )
        for sample in hits
    ]
