"""A small installation in which every hidden field holds a canary, and the addresses of everything in it."""

import base64
import functools
import html
import json
import re
import tempfile
import urllib.parse
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

import bank.criteria
from accounts import second_factor
from accounts.models import Team, Webhook
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.invitations import invite, token_of
from annotations.campaigns.members import make_annotator
from annotations.labels.actions import submit_label
from annotations.models import Campaign, Label
from bank import exposure, images
from bank.forms.benchmarks import Export
from bank.intake import export_files
from bank.intake.uploads.actions import receive, start
from bank.intake.uploads.worker import work
from bank.models import Benchmark, Capability, Draft, EvaluatedModel, Item, Response, Sample, SampleImage, Upload
from bank.recipes import spec, store
from bank.samples.items import ItemSpec, ensure_items
from bank.samples.reviews import open_round
from bank.submissions import actions as submissions
from bank.views.benchmarks import exported
from judging.models import Attempt, Evaluation, Judge, Judgment, PromptTemplate, Run, RunItem, Trial, WorkerBeat
from judging.protocols import prompts
from leaderboard.models import Snapshot
from tests.bank.conftest import picture

CANARY = "zq7Canary<&\"'>vk3"
UNSEEN = "zq7Unseen"  # in texts that only staff, and annotators of a campaign on them, may see
OPEN_RULE = "Names the number of things."  # a criterion that its benchmark publishes
PUBLIC, PRIVATE = "open-bench", "closed-bench"


def spellings(secret=CANARY):
    """The canary as it is, escaped, quoted, in base64 (at each of three offsets) and in hex."""
    raw = secret.encode()
    forms = {raw, html.escape(secret).encode(), urllib.parse.quote(secret).encode(), raw.hex().encode()}
    forms |= {html.escape(secret, quote=False).encode(), b"zq7Canary", secret.encode("unicode_escape")}
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + raw)
        forms.add(coded[4 * (offset > 0) : -4])
    return forms


@dataclass
class World:
    """Everything made, by kind."""

    samples: dict = field(default_factory=dict)
    items: dict = field(default_factory=dict)
    runs: dict = field(default_factory=dict)
    judgments: dict = field(default_factory=dict)
    trials: dict = field(default_factory=dict)
    campaigns: dict = field(default_factory=dict)
    assignments: dict = field(default_factory=dict)
    submissions: dict = field(default_factory=dict)
    reviews: dict = field(default_factory=dict)
    invitations: dict = field(default_factory=dict)
    judge: Judge = None
    upload: Upload = None
    exports: dict = field(default_factory=dict)
    template: PromptTemplate = None
    webhook: Webhook = None
    team: Team = None
    snapshots: dict = field(default_factory=dict)
    evaluations: dict = field(default_factory=dict)
    drafts: dict = field(default_factory=dict)
    places: dict = field(default_factory=dict)  # by benchmark, looked up once

    def arguments(self, route, slug):
        """What stands in a route's places, for the objects of one benchmark."""
        if slug not in self.places:
            self.places[slug] = self._places_of(slug)
        place, by_prefix = self.places[slug]
        for prefix, made in by_prefix:
            if re.search(rf"(^|/|\^){prefix}", route):
                place = place | {"pk": made.pk, "id": made.pk, "item": self.items[slug].pk}
                if prefix in ("campaigns/", "recipes/"):
                    place["name"] = made.name
                break
        return {key: value for key, value in place.items() if re.search(rf"[:<]{key}>", route)}

    def _places_of(self, slug):
        """(what stands in any route's places, [(the beginning of a route, whose id stands in it)])."""
        label = self.campaigns[slug].labels.first()
        response = self.items[slug].ordered_responses()[0]
        place = {
            "sha256": self.samples[slug].images.get().sha256,
            "kind": "png",
            "position": 0,
            "protocol": "pair",
            "prompt": "strict",
            "version": 1,
            "name": f"{slug}@1",
            "benchmark": f"{slug}@1",
            "what": "models",
            "shape": "csv",
            "part": "samples",
            "code": self.snapshots[slug].code,
            "other": self.snapshots[slug].code,
            "annotator": self.assignments[slug].annotator_id,
            "place": self.assignments[slug].campaign_item_id,
            "label": label.pk,
            "invitation": self.invitations[slug].pk,
            "token": token_of(self.invitations[slug]),
            "uidb64": "MQ",
            "subset": "hq",
            "method": "fog",
            "severity": 3,
        }
        return place, [
            ("recipes/evaluations/", self.evaluations[slug]),
            ("recipes/", self.evaluations[slug].recipe),
            ("evaluations/", self.evaluations[slug]),
            ("drafts/", self.drafts[slug]),
            ("annotate/assignments/", self.assignments[slug]),
            ("assignments/", self.assignments[slug]),
            ("annotate/", self.campaigns[slug]),
            ("campaigns/from/runs/", self.runs[slug]),
            ("campaigns/", self.campaigns[slug]),
            ("labels/", label),
            ("submissions/", self.submissions[slug]),
            ("samples/", self.samples[slug]),
            ("reviews/", self.reviews[slug]),
            ("rounds/", self.reviews[slug].round),
            ("runs/", self.runs[slug]),
            ("judgments/", self.judgments[slug]),
            ("trials/", self.trials[slug]),
            ("items/", self.items[slug]),
            ("recipe-responses/", Response.all_objects.filter(recipe=self.evaluations[slug].recipe).first()),
            ("responses/", response),
            ("benchmarks/", self.samples[slug].benchmark),
            ("models/", response.model),
            ("judges/", self.judge),
            ("people/teams/", self.team),
            ("people/", self.assignments[slug].annotator.person),
            ("uploads/", self.upload),
            ("exports/", self.exports[slug]),
            ("prompts/", self.template),
            ("webhooks/", self.webhook),
        ]


def build(people, *, secret=CANARY):
    """Two benchmarks, one public and one private, each with criteria, judgments and a campaign."""
    world = World()
    for person in people.values():
        second_factor.begin(person)  # its key is random: each asks for the same one
    world.upload = checked_upload(people, secret)
    world.judge = Judge.objects.create(name="some-judge", base_url="http://127.0.0.1:9/v1", model="m", key_env="KEY")
    asked = prompts.get("pair")
    world.template = PromptTemplate.objects.create(
        protocol="pair", name="strict", version=1, text=asked.text, sha256=asked.sha256, by=people["curator"]
    )
    world.webhook = Webhook.objects.create(url="https://a.example/", secret=secret, by=people["administrator"])
    world.team = Team.objects.create(name="readers")
    WorkerBeat.objects.create(name="w", seen_at=timezone.now() + timedelta(hours=1))  # silent in no test, however slow
    stored = images.ingest(picture())
    for slug, visibility in ((PUBLIC, "public"), (PRIVATE, "private")):
        benchmark = Benchmark.objects.create(slug=slug, title=slug, visibility=visibility)
        unseen = f" {UNSEEN}" if slug == PRIVATE else ""
        level = Capability.objects.create(benchmark=benchmark, name="Perception", path="Perception")
        models = [EvaluatedModel.objects.get_or_create(name=name)[0] for name in ("model-one", "model-two")]
        for number in range(3):
            sample = Sample.objects.create(
                benchmark=benchmark,
                key=f"s{number}",
                instruction=f"How many?{unseen}",
                capability=level,
                position=number,
                metadata={"note": UNSEEN},
                absent_images=[{"position": 1, "file": f"{UNSEEN}.png"}],
            )
            SampleImage.objects.create(
                sample=sample,
                sha256=stored.sha256,
                original_sha256=stored.original_sha256,
                kind=stored.kind,
                width=stored.width,
                height=stored.height,
            )
            write_criteria(sample, hidden_rows(secret))
            texts = [Response(sample=sample, model=model, text=f"Three.{unseen}") for model in models]
            responses = Response.objects.bulk_create(texts)
            found, _ = ensure_items([ItemSpec("pair", sample.pk, tuple(r.pk for r in responses))])
            world.samples.setdefault(slug, sample)
            world.items.setdefault(slug, Item.objects.get(pk=next(iter(found.values())).pk))
        draft = Sample.objects.create(
            benchmark=benchmark,
            key="draft",
            instruction="How few?",
            position=9,
            status="draft",
            author=people["curator"],
        )
        bank.criteria.edit(user=people["curator"], sample=draft, rows=hidden_rows(secret))
        made = open_round(
            by=people["curator"], benchmark=benchmark, samples=[draft], reviewers=[people["administrator"]]
        )
        world.reviews[slug] = made.reviews.get()
        world.runs[slug] = run = Run.objects.create(
            judge=world.judge,
            benchmark=benchmark,
            protocol="pairwise-criteria",
            settings={"order": "fixed", "criteria": True},
            criteria_fingerprint="of the criteria then",
            held=exposure.TEXTS,
            finished_at=timezone.now() - timedelta(days=2),
            settings_hash="x",
            state=Run.State.FINISHED,
        )
        draft = Sample.objects.create(
            benchmark=benchmark, key=f"{UNSEEN}-draft", instruction=f"{UNSEEN}?", status="draft", position=9
        )
        write_criteria(draft, hidden_rows(secret))
        Response.objects.create(sample=draft, model=models[0], text=UNSEEN)
        for item in Item.objects.filter(sample__benchmark=benchmark):
            RunItem.objects.create(run=run, item=item)
            judgment = Judgment.objects.create(
                run=run, item=item, choice="first", analysis=f"It says {secret}.", raw=f"{secret}\nAnswer1"
            )
            world.judgments.setdefault(slug, judgment)
        tested = Run.objects.create(
            judge=world.judge,
            benchmark=benchmark,
            kind=Run.Kind.ATTACKS,
            protocol="pairwise-criteria",
            settings={"order": "fixed", "criteria": True, "context": "image", "attacks": ["praise@1"]},
            criteria_fingerprint="of the criteria then",
            held=exposure.TEXTS,
            finished_at=timezone.now() - timedelta(days=2),
            settings_hash="y",
            template="pairwise-criteria.default",
            state=Run.State.FINISHED,
        )
        for attack in ("", "praise@1"):
            said = {"choice": "first", "analysis": secret, "raw": f"{secret}\nAnswer1"}
            trial = Trial.objects.create(run=tested, item=world.items[slug], attack=attack, **said)
        world.trials[slug] = trial
        parts = {f"{UNSEEN}-part": 2.0, "3": 1.0}
        pointed = Run.objects.create(
            judge=world.judge,
            benchmark=benchmark,
            protocol="components",
            settings={"order": "fixed", "criteria": True},
            held=exposure.UNKNOWN,
            settings_hash="p",
            state=Run.State.FINISHED,
            finished_at=timezone.now() - timedelta(days=2),
        )
        Judgment.objects.create(run=pointed, item=world.items[slug], order="10", score=5, parts=parts, analysis=secret)
        failed = Judgment.objects.create(run=run, item=item, order="10", status="error", raw=secret, reason="broken")
        Attempt.objects.create(
            run=run,
            item=item,
            order=failed.order,
            repeat=0,
            at=timezone.now(),
            outcome="permanent",
            seconds=1,
            detail=f"echo: {secret}",
        )
        make_annotator(people["annotator"])
        campaign = make_campaign(
            name=f"campaign on {slug}",
            benchmark=benchmark,
            protocol="pairwise-criteria",
            annotators=[people["annotator"]],
        )
        world.campaigns[slug] = campaign
        by = people["curator"]
        (world.invitations[slug],) = invite(campaign=campaign, by=by, days=9, now=timezone.now())
        annotator = people["annotator"].annotator
        first = next_assignment(campaign=campaign, annotator=annotator, now=timezone.now())
        submit_label(assignment=first, verdict={"choice": "left"}, now=timezone.now(), idempotency_key=f"key-{slug}")
        # It has its labels: what others said of it is seen, while the other items are labelled blind.
        open_finished(campaign=campaign, by=people["curator"], now=timezone.now())
        world.items[slug] = first.campaign_item.item
        world.judgments[slug] = Judgment.objects.get(run=run, item=world.items[slug], order="01")
        Label.objects.filter(campaign=campaign).update(parts=parts)
        Campaign.objects.filter(pk=campaign.pk).update(held=exposure.inputs_of("component"))
        world.assignments[slug] = next_assignment(campaign=campaign, annotator=annotator, now=timezone.now())
        world.exports[slug] = written_export(people, world.samples[slug].benchmark)
        world.drafts[slug] = Draft.objects.create(
            sample=world.samples[slug],
            part=Draft.SAMPLE,
            text=json.dumps(
                {"instruction": "", "criteria": [{"text": f"Drafted {secret}", "weight": None, "category": ""}]}
            ),
            origin="kestrel-vl, run 1",
        )
        world.submissions[slug] = submitted(people, benchmark)
        world.snapshots[slug] = frozen(benchmark, unseen)
        world.evaluations[slug] = evaluated(world, benchmark, unseen)
    return world


def evaluated(world, benchmark, unseen):
    """A recipe, and a model that answered by it: questions with hidden keys and with none."""
    says = {"name": f"of-{benchmark.slug}", "scenario": [{"benchmark": benchmark.slug}], "metric": "accuracy"}
    recipe, _ = store.save(spec.parsed(says | {"turns": [{"kind": "direct"}]}))
    model, _ = EvaluatedModel.objects.get_or_create(name=f"model-three{unseen}")
    for sample in benchmark.samples.filter(status="approved"):
        Response.all_objects.create(sample=sample, model=model, text=f"A{unseen}", recipe=recipe)
    evaluation = Evaluation.objects.create(recipe=recipe, judge=world.judge, model_name=model.name)
    Run.objects.create(
        kind=Run.Kind.RECIPE,
        judge=world.judge,
        benchmark=benchmark,
        recipe=recipe,
        evaluation=evaluation,
        protocol="recipe",
        settings={"queries": ["{{ instruction }}"], "temperature": 0.0},
        settings_hash="z",
        state=Run.State.PAUSED,
        state_reason="Somebody paused it.",
        model_name=model.name,
        planned=20,
        verdicts=15,
        failures=0,
    )
    return evaluation


def frozen(benchmark, unseen):
    """A snapshot of a board of scores with one model."""
    row = {"model": f"model-one{unseen}", "rank": 1, "score": 3.0, "score_low": 2.0, "score_high": 4.0, "n": 3}
    return Snapshot.objects.create(
        code=f"{benchmark.pk:012}",
        benchmark=benchmark,
        what="models",
        fingerprint=f"{benchmark.pk:064}",
        tables={"rows": [row | {"levels": {}}]},
        made_from={"kind": "score", "source": "humans", "methods": 1},
        computed_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def submitted(people, benchmark):
    """A submission of the researcher's to a benchmark whose test split is hidden, keys and all."""
    for number in range(12):
        sample = Sample.objects.create(
            benchmark=benchmark,
            key=f"q{number}",
            instruction="Which?",
            options={"A": "this", "B": "that"},
            split="test" if number else "dev",
            position=10 + number,
        )
        write_criteria(sample, [hidden_rows("B")[1]])
    rules = {"open": True, "per_day": None, "in_all": None, "count_failed": False, "private_half": False}
    splits = {"hidden_splits": ["test"], "required_splits": ["test"]}
    submissions.set_rules(by=people["curator"], benchmark=benchmark, **rules, **splits)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        path.write_text("sample,text\n" + "".join(f"q{number},A\n" for number in range(12)), encoding="utf-8")
        name = f"model of {benchmark.slug}"
        sent = {"person": people["researcher"], "benchmark": benchmark, "name": name, "path": path}
        return submissions.submit(**sent, now=timezone.now())


def written_export(people, benchmark):
    """All samples with what is hidden, as the curator had them written."""
    form = Export({"what": "samples", "shape": "jsonl", "criteria": True, "reason": "to see", "later": True})
    assert form.is_valid()
    made = exported(form, benchmark, people["curator"])
    export_files.write_all()
    made.refresh_from_db()
    assert made.state == "ready", made.fault
    return made


def checked_upload(people, secret):
    """Files that wait to be confirmed, with good and with bad rows."""
    good = {"key": "u1", "instruction": "How many?", "images": ["u.png"], "criteria": [{"text": secret}]}
    bad = good | {"key": "u2", "criteria": [{"text": secret, "weight": -1}], "answer": secret}
    worse = {"key": "u3", "instruction": "Which?", "options": {"A": "one"}, "answer": secret}
    text = "".join(json.dumps(row) + "\n" for row in (good, bad, worse)).encode()
    files = {"samples.jsonl": text, "u.png": picture()}
    upload = start(by=people["curator"], files=[(name, len(data)) for name, data in files.items()])
    receive(upload=upload, offset=0, length=upload.size, pieces=[b"".join(files.values())])
    work(upload)
    upload.refresh_from_db()
    assert upload.state == "checked", upload.fault
    return upload


def hidden_rows(secret):
    base = {"category": secret[:20], "weight": None, "shown_to": "staff"}
    return [
        base | {"key": "1", "kind": "guideline", "text": f"Counts {secret} things."},
        base | {"key": "answer", "kind": "answer_key", "text": secret},
        base | {"key": "2", "kind": "guideline", "text": f"No more than {secret}.", "shown_to": "campaign"},
        base | {"key": "3", "kind": "component", "text": OPEN_RULE, "shown_to": "public", "category": "open"},
        base | {"key": f"{UNSEEN}-part", "kind": "component", "text": f"Names {secret}."},
    ]


def write_criteria(sample, rows):
    made = [bank.criteria.Criterion(sample=sample, position=n, **row) for n, row in enumerate(rows)]
    bank.criteria.Criterion.unguarded.bulk_create(made)
    bank.criteria.note_closed(Sample.objects.filter(pk=sample.pk))


def rewrite(world, secret, slugs=(PUBLIC, PRIVATE)):
    """Make it another world: other criteria of the same kinds, other in number, weight and words; the same judgments.
    On these benchmarks.

    Which kinds a benchmark holds closed is no secret: its pages say it.
    """
    samples = Sample.objects.filter(benchmark__slug__in=slugs)
    closed = bank.criteria.Criterion.unguarded.exclude(shown_to="public").filter(sample__in=samples)
    kinds = defaultdict(set)
    for sample, *kind in closed.values_list("sample", "kind", "shown_to"):
        kinds[sample].add(tuple(kind))
    closed.delete()
    bank.criteria.CriterionRevision.unguarded.filter(sample__in=samples).delete()
    for sample in samples:
        rows = [
            {
                "key": f"{n}{kind}{to}-{secret[:6]}",
                "kind": kind,
                "text": f"{secret} {n}",
                "weight": 1 + n,
                "shown_to": to,
            }
            for kind, to in sorted(kinds[sample.pk])
            for n in range(1 if kind == "answer_key" else 3)
        ]
        write_criteria(sample, [row | {"category": "", "version": 7} for row in rows])
    samples.update(metadata={"note": f"{UNSEEN} of another"})
    runs = Run.objects.filter(benchmark__slug__in=slugs)
    for table in (Judgment, Trial):
        lengths = {"prompt_tokens": 4321, "completion_tokens": 987, "cost": 6.54, "latency": 32.1}
        of_runs = table.objects.filter(run__in=runs)
        of_runs.update(analysis=f"Now {secret}.", raw=secret * 3, reason=secret, **lengths)
    Attempt.objects.filter(run__in=runs).update(detail=secret)
    runs.update(criteria_fingerprint=secret[:20])
    bank.criteria.CriteriaAccess.objects.all().delete()


@functools.cache
def routes():
    """Every route of the site: (full name, route, view)."""
    return list(_under(get_resolver()))


def _under(resolver, prefix="", namespace=""):
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _under(pattern, route, inner)
        elif isinstance(pattern, URLPattern):
            yield f"{namespace}{pattern.name}", route, pattern.callback
