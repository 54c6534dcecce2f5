"""A benchmark on which every kind of label can be given, and a campaign of any of them."""

from django.utils import timezone

import bank.criteria
from accounts.models import User
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.members import make_annotator
from annotations.models import Membership
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from bank.samples.items import make_items, plan_items
from judging.models import AnalysisRelease, Judge, Judgment, Run
from judging.protocols import settings_hash
from tests.hidden import close

SECRET = "Names exactly seven grey herons on the left bank"
ANALYSIS = f"Answer1 counts the boats. {SECRET}, I was told. 𝒳 It sees a red lighthouse that is not there."
OTHER = "Answer2 names two boats and the quay. It is the more complete one."
CATEGORIES = {"categories": ["harbour", {"value": "river", "about": "It flows."}]}
WEIGHTS = {"length": 4.0, "mention": 2.5, "genre": 3.5}


def benchmark_of(slug="kinds", *, samples=2, shown_to="public", answers=None):
    """Samples with options and components, four models' answers, items of every kind."""
    benchmark = Benchmark.objects.create(slug=slug, title=slug.title(), visibility="public")
    models = [EvaluatedModel.objects.get_or_create(name=f"model-{n}")[0] for n in range(4)]
    for number in range(samples):
        sample = Sample.objects.create(
            benchmark=benchmark,
            key=f"s{number}",
            instruction=f"How many boats, number {number}?",
            options={"A": "one boat", "B": "two boats", "C": "three boats"},
            position=number,
        )
        rows = [
            {"key": key, "kind": "component", "text": f"About {key}.", "weight": weight, "shown_to": shown_to}
            for key, weight in WEIGHTS.items()
        ]
        rows.append({"key": "hidden", "kind": "guideline", "text": SECRET, "weight": None, "shown_to": "staff"})
        bank.criteria.Criterion.unguarded.bulk_create(
            bank.criteria.Criterion(sample=sample, position=place, category="", **row) for place, row in enumerate(rows)
        )
        close()
        for place, model in enumerate(models):
            text = answers[place] if answers else f"Answer {place} of s{number}: B, two boats."
            Response.objects.create(sample=sample, model=model, text=text)
    for kind, some in (("score", models[:1]), ("pair", models[:2]), ("batch", models)):
        make_items(plan_items(kind=kind, benchmark=benchmark, models=[model.name for model in some]))
    return benchmark


def judged(benchmark, *, order="10", released=True, by="some-judge", choice="second", analysis=ANALYSIS, item=None):
    """One judgment of a pair, in the turned order: its verdict and an analysis that quotes a hidden criterion.

    ``released``: two people have released the analysis.
    """
    judge = Judge.objects.get_or_create(name=by)[0]
    asked = {"protocol": "pairwise-criteria", "settings_hash": settings_hash({})}
    run = Run.objects.create(judge=judge, benchmark=benchmark, state="finished", **asked)
    item = item or Item.objects.filter(sample__benchmark=benchmark, kind="pair").order_by("pk").first()
    judgment = Judgment.objects.create(run=run, item=item, order=order, choice=choice, analysis=analysis)
    if released:
        names = ("release-one", "release-two")
        one, two = (User.objects.get_or_create(username=name, defaults={"role": "curator"})[0] for name in names)
        at = timezone.now()
        AnalysisRelease.objects.create(
            judgment=judgment, run=run, proposed_by=one, proposed_at=at, confirmed_by=two, confirmed_at=at
        )
    return judgment


def judged_by_two(benchmark):
    """Each pair of the benchmark judged by two, who differ; the analyses of both are released."""
    for item in Item.objects.filter(sample__benchmark=benchmark, kind="pair").order_by("pk"):
        judged(benchmark, item=item)
        judged(benchmark, item=item, by="other-judge", choice="first", analysis=OTHER)


def campaign_of(protocol, *, person="ada", benchmark=None, **options):
    """(campaign, annotator): of this protocol, for one annotator."""
    benchmark = benchmark or benchmark_of()
    if protocol == "review" and not Judgment.objects.exists():
        judged(benchmark)
    if protocol == "compare-analyses" and not Judge.objects.filter(name="other-judge").exists():
        judged_by_two(benchmark)
    if protocol == "label":
        options["ballot"] = options.get("ballot") or CATEGORIES
    user = User.objects.filter(username=person).first() or User.objects.create_user(person, role="annotator")
    campaign = make_campaign(
        name=f"{protocol} {benchmark.slug}",
        benchmark=benchmark,
        protocol=protocol,
        annotators=[user],
        seed=3,
        **options,
    )
    Membership.objects.filter(campaign=campaign).update(guidelines_read=1)
    return campaign, make_annotator(user)
