"""The demo data that a fresh local installation starts with, all of it written for the project."""

import json
import random
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from annotations import ballots
from annotations.assignment.leases import presented_order
from annotations.campaigns.actions import deal, make_campaign
from annotations.campaigns.members import make_annotator
from annotations.models import Assignment, Campaign, CampaignItem, Membership
from bank.intake.formats import generic
from bank.intake.imports.engine import run_import
from bank.models import Benchmark, EvaluatedModel, Item
from bank.samples.items import make_items, plan_items
from bank.submissions import actions as submissions
from evalsite.demo import accounts
from evalsite.demo.drafts import load_drafts
from judging.models import Judge
from judging.protocols import baselines
from judging.runs.actions import start_run
from leaderboard.boards import editions

FOLDER = Path(__file__).with_name("data")
SLUG = "everyday-scenes"
SHAPES = "shapes"
TITLE = "Everyday scenes"
# Campaigns in progress: the labels that are there, annotators per item.
CAMPAIGNS = {
    "Everyday scenes, round 1": ("labels", 2),
    "Everyday scenes, scores": ("scores", 3),
    "Everyday scenes, rankings": ("rankings", 3),
}
OPTIONS_CAMPAIGN = "Shapes at a glance, which option is meant"
PROTOCOLS = ("pairwise-criteria", "score", "batch")  # that the baselines run in
GUIDELINES = (FOLDER / "guidelines.md").read_text(encoding="utf-8")


@transaction.atomic
def load() -> None:
    """Bring everything in, or nothing: people, benchmarks, responses, items, campaigns in progress, baseline runs."""
    people = {name: accounts.made(name) for name in accounts.SIGN_INS}
    benchmark = _benchmark()
    for name, (file, overlap) in CAMPAIGNS.items():
        _campaign(benchmark, people["annotator"], name=name, file=file, overlap=overlap)
    _shapes(people["curator"], people["researcher"], people["annotator"])
    load_drafts(folder=FOLDER, people=people)
    for protocol in PROTOCOLS:
        for judge in Judge.objects.exclude(baseline=""):
            if baselines.can_judge(judge.baseline, protocol):
                settings = {"criteria": True} if judge.baseline == "criteria-overlap" else {}
                start_run(judge=judge, benchmark=benchmark, protocol=protocol, settings=settings, by=people["curator"])


def _benchmark() -> Benchmark:
    models = json.loads((FOLDER / "models.json").read_text(encoding="utf-8"))
    for model in models:
        EvaluatedModel.objects.get_or_create(name=model.pop("name"), defaults=model)
    parts = ["samples", "responses"]
    brought = run_import(path=FOLDER, format=generic, parts=parts, slug=SLUG, title=TITLE, visibility="public")
    for report in brought.values():
        _clean(report)
    benchmark = Benchmark.objects.get(slug=SLUG)
    benchmark.description = (
        "Drawn scenes, charts and documents with everyday questions on six levels. Written for the demo: "
        "the models and their answers are invented."
    )
    benchmark.licence = "CC0 1.0"
    benchmark.save(update_fields=["description", "licence"])
    names = [json_model["name"] for json_model in json.loads((FOLDER / "models.json").read_text(encoding="utf-8"))]
    for kind in Item.Kind.values:
        make_items(plan_items(kind=kind, benchmark=benchmark, models=names))
    return benchmark


def _shapes(curator: User, researcher: User, annotator: User) -> None:
    """Multiple choice with a hidden split, open to the researcher, who sent two models' answers and took one back.

    The annotator is asked which option the other answers mean.
    """
    folder = FOLDER / "shapes"
    samples, title = folder / "samples.jsonl", "Shapes at a glance"
    _clean(run_import(path=samples, format=generic, slug=SHAPES, title=title, visibility="public")["samples"])
    benchmark = Benchmark.objects.get(slug=SHAPES)
    benchmark.description = "Coloured shapes to count and to name, with a hidden test split. Written for the demo."
    benchmark.licence = "CC0 1.0"
    benchmark.save(update_fields=["description", "licence"])
    submissions.set_rules(
        by=curator,
        benchmark=benchmark,
        open=True,
        per_day=5,
        in_all=50,
        count_failed=False,
        hidden_splits=["test"],
        required_splits=["test"],
        private_half=True,
        notes="Answer by the **letter** of an option. You get totals; single answers are not marked, for the keys are "
        "not open. Of the test split one half is kept back.",
    )
    for file, name, weights in (("kestrel", "Kestrel-VL 7B rotated", True), ("wren", "Wren 3B draft", True)):
        sent = submissions.submit(
            person=researcher,
            benchmark=benchmark,
            name=name,
            path=folder / f"{file}.jsonl",
            file_name=f"{file}.jsonl",
            organisation={"kestrel": "Kestrel Lab", "wren": "Tern Works"}[file],
            is_open=weights,
            now=timezone.now(),
        )
        _clean(sent)
        if file == "kestrel":
            submissions.release(submission=sent, now=timezone.now())
    submissions.withdraw(
        submission=sent, by=researcher, reason="The prompt lacked the options of some questions.", now=timezone.now()
    )
    for split in ("", "test"):
        editions.publish(benchmark=benchmark, kind="choice", split=split, by=curator)
    make_items(plan_items(kind=Item.Kind.SCORE, benchmark=benchmark))
    make_campaign(
        name=OPTIONS_CAMPAIGN, benchmark=benchmark, protocol="choice-extraction", annotators=[annotator], seed=0
    )


def _campaign(benchmark: Benchmark, person: User, *, name: str, file: str, overlap: int) -> None:
    """A campaign that three annotators have begun, and that the demo annotator can go on with."""
    _clean(run_import(path=FOLDER / f"{file}.jsonl", format=generic, slug=SLUG)["labels"])
    campaign = Campaign.objects.get(name=name)
    campaign.imported = False
    campaign.state = Campaign.State.OPEN
    campaign.overlap = overlap
    campaign.guidelines = GUIDELINES if campaign.protocol == "pairwise-criteria" else ""
    campaign.ballot = ballots.get(campaign.protocol).default_settings(scale=ballots.scale_of(benchmark))
    campaign.save()
    items = Item.objects.filter(sample__benchmark=benchmark, kind=ballots.get(campaign.protocol).kind)
    begun = set(campaign.campaign_items.values_list("item", flat=True))
    CampaignItem.objects.bulk_create(
        CampaignItem(campaign=campaign, item=item) for item in items if item.pk not in begun
    )
    for shown in Assignment.objects.filter(campaign_item__campaign=campaign).select_related("campaign_item"):
        item, size = shown.campaign_item.item_id, len(shown.order)
        shown.order = presented_order(seed=0, item_id=item, annotator_id=shown.annotator_id, size=size)
        shown.save(update_fields=["order"])
    order = deal(dict(items.values_list("pk", "sample")), rng=random.Random(0))
    for campaign_item in campaign.campaign_items.all():
        campaign_item.position = order.index(campaign_item.item_id)
        campaign_item.save(update_fields=["position"])
    Membership.objects.create(campaign=campaign, annotator=make_annotator(person))


def _clean(report: object) -> None:
    problems = getattr(report, "problems", [])
    if problems:
        raise ValueError(f"The demo data does not import: {problems}")
