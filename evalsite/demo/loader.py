"""The demo data that a fresh local installation starts with, all of it written for the project.

What people and judges say is simulated: ``tests/demo_data`` makes these files.
"""

import gzip
import json
import random
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from datetime import timezone as zones
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from accounts.models import User
from annotations import ballots
from annotations.assignment.gold import GoldVerdict, mark_all_gold
from annotations.assignment.leases import next_assignment, presented_order
from annotations.assignment.material import material_for
from annotations.campaigns.actions import deal, make_campaign
from annotations.campaigns.blinding import note_blind_in, open_finished
from annotations.campaigns.members import make_annotator
from annotations.campaigns.sampling import KEYS, Plan
from annotations.labels.actions import submit_label
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Membership
from bank.database import batched
from bank.intake.formats import generic
from bank.intake.imports.engine import run_import
from bank.models import Benchmark, EvaluatedModel, Item
from bank.samples.items import make_items, plan_items
from bank.submissions import actions as submissions
from evalsite.demo import accounts
from evalsite.demo.drafts import load_drafts
from judging import protocols
from judging.extras.juries import make_jury
from judging.judgments import releases
from judging.models import Judge, Judgment, Run
from judging.runs.actions import start_run
from leaderboard import editions
from leaderboard.boards import seen
from leaderboard.frozen.actions import freeze
from leaderboard.models import Snapshot
from leaderboard.scope import HUMANS
from leaderboard.view import scope_of

FOLDER = Path(__file__).with_name("data")
SLUG = "everyday-scenes"
SHAPES = "shapes"
TITLE = "Everyday scenes"
PAIRS, MORE_PAIRS = "Everyday scenes, round 1", "Everyday scenes, round 2"
SCORES, RANKINGS = "Everyday scenes, scores", "Everyday scenes, rankings"
# Labels an item, of each campaign; and those that have not ended.
OVERLAPS = {PAIRS: 5, MORE_PAIRS: 2, SCORES: 4, RANKINGS: 3}
IN_PROGRESS = (MORE_PAIRS, RANKINGS)
OPEN = tuple((FOLDER / "open-samples.txt").read_text(encoding="utf-8").split())  # whose rounds and reviews go on
STEADY, JURY = "Steady", "Jury of three"
REVIEW = "review"
REVIEWS, REVIEWED = "Everyday scenes, is the judge right?", 40
OPTIONS_CAMPAIGN = "Shapes at a glance, which option is meant"
PROTOCOLS = ("pairwise-criteria", "score", "batch")  # that the baselines run in
# What annotators read before the first item, by protocol, and until when the open campaigns run.
GUIDELINES = {
    file.stem: file.read_text(encoding="utf-8").strip() for file in FOLDER.joinpath("guidelines").glob("*.md")
}
DUE = {MORE_PAIRS: 5, RANKINGS: 9}  # days from now
PRACTISED, PRACTICE_PASS = 4, 0.75  # items, share to get right
PAST = "Dana"  # labelled in rounds that have ended, and in no other
ZONE = zones(timedelta(hours=1))
FROZEN = [datetime(2026, 11, day, 9, tzinfo=ZONE) for day in (10, 12, 14)]  # after each day of round 1
LETTER = re.compile(r"The answer is ([A-D])\.")

Row = dict[str, Any]


@transaction.atomic
def load() -> None:
    """Bring everything in, or nothing: people, benchmarks, responses, items, campaigns, judges, baseline runs."""
    people = {name: accounts.make_account(name) for name in accounts.SIGN_INS}
    benchmark = _benchmark()
    _verdicts(benchmark, people)
    _shapes(people["curator"], people["researcher"], people["annotator"])
    load_drafts(folder=FOLDER, people=people)
    EvaluatedModel.objects.update(simulated=True)
    for protocol in PROTOCOLS:
        for judge in Judge.objects.exclude(baseline=""):
            if judge.baseline in protocols.get(protocol).baselines:
                settings = {"criteria": True} if judge.baseline == "criteria-overlap" else {}
                start_run(judge=judge, benchmark=benchmark, protocol=protocol, settings=settings, by=people["curator"])


def _benchmark() -> Benchmark:
    benchmark = imported(
        ["samples", "responses"],
        FOLDER,
        slug=SLUG,
        title=TITLE,
        description="Drawn scenes, charts and documents with everyday questions on six levels. Written for the demo: "
        "the models and their answers are invented.",
    )
    models = [row["name"] for row in rows_of("models.jsonl")]
    for kind in Item.Kind.values:
        make_items(plan_items(kind=kind, benchmark=benchmark, models=models))
    return benchmark


def imported(parts: list[str], path: Path, *, slug: str, description: str, **options: Any) -> Benchmark:
    """A benchmark of files of the demo."""
    bring_in(parts, path, slug=slug, visibility="public", **options)
    Benchmark.objects.filter(slug=slug).update(description=description, licence="CC0 1.0")
    return Benchmark.objects.get(slug=slug)


def bring_in(parts: list[str], path: Path, **options: Any) -> None:
    """Files of the demo, whose people and judges are simulated from what everybody sees."""
    for report in run_import(path=path, format=generic, parts=parts, saw_nothing=True, **options).values():
        _clean(report)


def _shapes(curator: User, researcher: User, annotator: User) -> None:
    """Multiple choice with a hidden split, open to the researcher, who sent two models' answers and took one back.

    The annotator is asked which option the other answers mean.
    """
    folder = FOLDER / "shapes"
    benchmark = imported(
        ["samples"],
        folder / "samples.jsonl",
        slug=SHAPES,
        title="Shapes at a glance",
        description="Coloured shapes to count and to name, with a hidden test split. Written for the demo.",
    )
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
    kestrel, wren = (
        submissions.submit(
            person=researcher,
            benchmark=benchmark,
            name=name,
            path=folder / f"{file}.jsonl",
            file_name=f"{file}.jsonl",
            organisation=organisation,
            is_open=True,
            now=timezone.now(),
        )
        for file, name, organisation in (
            ("kestrel", "Kestrel-VL 7B rotated", "Kestrel Lab"),
            ("wren", "Wren 3B draft", "Tern Works"),
        )
    )
    for sent in (kestrel, wren):
        _clean(sent)
    submissions.release(submission=kestrel, now=timezone.now())
    reason = "The prompt lacked the options of some questions."
    submissions.withdraw(submission=wren, by=researcher, reason=reason, now=timezone.now())
    for split in ("", "test"):
        editions.publish(benchmark=benchmark, kind="choice", split=split, by=curator)
    make_items(plan_items(kind=Item.Kind.SCORE, benchmark=benchmark))
    campaign = make_campaign(
        name=OPTIONS_CAMPAIGN,
        benchmark=benchmark,
        protocol="choice-extraction",
        annotators=[annotator],
        seed=0,
        guidelines=GUIDELINES["choice-extraction"],
        practice_pass=PRACTICE_PASS,
    )
    _practice(campaign)


def _practice(campaign: Campaign) -> None:
    """The first items whose answer names its option become the practice round."""
    verdicts = []
    for campaign_item in campaign.campaign_items.select_related("item__sample").order_by("position"):
        response = campaign_item.item.ordered_responses()[0]
        if response.variant or not (letter := LETTER.match(response.text)):
            continue
        note = f"It says {letter[1]}. Whether that is right does not matter here."
        verdicts.append(GoldVerdict(campaign_item, {"option": letter[1]}, note))
    mark_all_gold(verdicts[:PRACTISED], practice=True)


def _verdicts(benchmark: Benchmark, people: dict[str, User]) -> None:
    """Verdicts of simulated people and judges: two campaigns that have ended, two that go on, a jury, and reviews."""
    labels = rows_of("labels.jsonl.gz")
    for day in FROZEN:
        with TemporaryDirectory() as folder:
            until_then = Path(folder) / "labels.jsonl"
            write_rows(until_then, [row for row in labels if row["at"] < day.isoformat()])
            bring_in(["labels"], until_then, slug=SLUG)
        _freeze(benchmark, by=people["curator"], at=day)
    for part in ("labels", "judgments"):
        bring_in([part], FOLDER / f"{part}.jsonl.gz", slug=SLUG)
    # One of those who labelled signs in as the demo's annotator, and so has a history.
    Annotator.objects.filter(origin=SLUG, name=PAST).update(person=people["annotator"])
    for campaign in Campaign.objects.filter(benchmark=benchmark, name__in=OVERLAPS):
        _played(campaign, person=people["annotator"])
    runs = list(Run.objects.filter(benchmark=benchmark, judge__simulated=True).select_related("judge"))
    make_jury(name=JURY, runs=runs, by=people["curator"])
    # Judges had judged all before the rounds were opened, so that boards count it while these go on.
    Judgment.objects.filter(run__benchmark=benchmark).update(created_at=FROZEN[0] - timedelta(days=3))
    steady = next(run for run in runs if run.judge.name == STEADY)
    releases.propose(run=steady, by=people["admin"])
    proposed = list(steady.releases.order_by("pk").values_list("judgment", flat=True))
    for page in batched(proposed, releases.PAGE):
        releases.confirm(run=steady, judgments=page, by=people["curator"])
    _reviews(benchmark, steady, people["annotator"])


def rows_of(name: str | Path) -> list[Row]:
    """The rows of a file of the demo."""
    path = FOLDER / name
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file of the demo; the same rows give the same bytes."""
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _freeze(benchmark: Benchmark, *, by: User, at: datetime) -> None:
    """A snapshot of the board of models by what people had said until then."""
    scope = scope_of(benchmark=benchmark, kind="pair", source=HUMANS)
    board = replace(seen.models(scope), computed_at=at)
    view = {"kind": scope.kind.name, "source": scope.source}
    snapshot = freeze(what="models", scope=scope, view=view, board=board, by=by)
    Snapshot.objects.filter(pk=snapshot.pk).update(created_at=at)


def _played(campaign: Campaign, *, person: User) -> None:
    """Imported labels become a campaign as if they had been given here; an open one has the demo annotator, too."""
    campaign.imported = False
    campaign.overlap = OVERLAPS[campaign.name]
    campaign.guidelines = GUIDELINES.get(campaign.protocol, "")
    campaign.ballot = ballots.get(campaign.protocol).default_settings(scale=ballots.scale_of(campaign.benchmark))
    items = Item.objects.filter(places__isnull=False, kind=ballots.get(campaign.protocol).kind).distinct()
    items = items.filter(sample__benchmark=campaign.benchmark)
    known = set(campaign.campaign_items.values_list("item", flat=True))
    if campaign.name in IN_PROGRESS:
        campaign.state = Campaign.State.OPEN
        campaign.finished_opened_at = timezone.now()  # so that there are labels to be seen
        elsewhere = CampaignItem.objects.filter(campaign__name=PAIRS).values("item")
        items = items.filter(sample__key__in=OPEN).exclude(pk__in=elsewhere)
        CampaignItem.objects.bulk_create(
            CampaignItem(campaign=campaign, item=item) for item in items if item.pk not in known
        )
        campaign.due = timezone.now().date() + timedelta(days=DUE[campaign.name])
        Membership.objects.create(campaign=campaign, annotator=make_annotator(person))
    else:
        campaign.closed_at = campaign.labels.aggregate(last=Max("created_at"))["last"]
    campaign.save()
    for shown in Assignment.objects.filter(campaign_item__campaign=campaign).select_related("campaign_item"):
        item, size = shown.campaign_item.item_id, len(shown.order)
        shown.order = presented_order(seed=0, item_id=item, annotator_id=shown.annotator_id, size=size)
        shown.save(update_fields=["order"])
    order = deal(dict(items.values_list("pk", "sample")), rng=random.Random(0))
    for campaign_item in campaign.campaign_items.all():
        campaign_item.position = order.index(campaign_item.item_id)
        campaign_item.save(update_fields=["position"])
    if campaign.name in IN_PROGRESS:
        _opened(campaign, campaign.labels.aggregate(first=Min("created_at"))["first"])


def _opened(campaign: Campaign, at: datetime) -> None:
    """The round was opened then, before its first label."""
    campaign.campaign_items.update(asked_since=at)
    note_blind_in(campaign)


def _reviews(benchmark: Benchmark, run: Run, person: User) -> None:
    """Three people look at what the steady judge wrote about samples that are still open; a part is done."""
    annotators = Annotator.objects.filter(origin=SLUG).order_by("name")[:3]
    campaign = make_campaign(
        name=REVIEWS,
        benchmark=benchmark,
        protocol=REVIEW,
        run=run,
        overlap=3,
        annotators=[person],
        seed=0,
        guidelines=GUIDELINES[REVIEW],
        order=Campaign.Order.FIXED,  # all three review the same verdicts
        plan=Plan(how=KEYS, keys=OPEN, most=REVIEWED),
    )
    Membership.objects.bulk_create(Membership(campaign=campaign, annotator=annotator) for annotator in annotators)
    said = {(row["annotator"], row["sample"], *row["order"]): row for row in rows_of("reviews.jsonl.gz")}
    orders = dict(campaign.campaign_items.values_list("pk", "reviewed__order"))
    for annotator in annotators:
        now = datetime(2026, 11, 19, 18, tzinfo=ZONE)
        for _ in range(REVIEWED // 2):
            shown = next_assignment(campaign=campaign, annotator=annotator, now=now)
            if shown is None:
                break
            item = shown.campaign_item.item
            models = [response.model.name for response in item.ordered_responses()]
            order = orders[shown.campaign_item_id]
            row = said[annotator.name, item.sample.key, *(models[int(place)] for place in order)]
            # Without an analysis that may be shown there is nothing but the verdict to review.
            about = (
                ("agree", "grade", "hallucination") if material_for(shown, ballots.of(campaign)).length else ("agree",)
            )
            now += timedelta(seconds=row["seconds"] + 4)
            submit_label(assignment=shown, verdict={name: row[name] for name in about}, now=now, seconds=row["seconds"])
    _opened(campaign, datetime(2026, 11, 19, 18, tzinfo=ZONE))
    open_finished(campaign=campaign, by=None, now=timezone.now())


def _clean(report: object) -> None:
    problems = getattr(report, "problems", [])
    if problems:
        raise ValueError(f"The demo data does not import: {problems}")
