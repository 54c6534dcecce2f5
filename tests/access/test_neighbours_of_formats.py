"""The standing attacker against every format: no file that brings labels or judgments tells a sealed key below staff.

A format that brings either is not done without its world in ``tests/access/knowing_files.py``.
"""

from itertools import combinations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from annotations.campaigns.actions import make_campaign
from annotations.labels.provenance import say_saw_nothing
from annotations.models import Campaign, Label
from bank import exposure
from bank.errors import BadInput
from bank.forms.uploads import ChoicesForm
from bank.intake import formats
from bank.intake.formats import mapping
from bank.intake.uploads import worker
from bank.models import Benchmark, Item, Sample, Upload
from bank.samples.items import make_items, plan_items
from judging.models import Judgment, Run
from tests.access.knowing_files import (
    BATCHES,
    JUDGES,
    KEYS_IN_FILE,
    MAP,
    PAIRS,
    PEOPLE,
    SINGLES,
    WORLDS,
    Question,
    about,
    lines,
    preferences,
)
from tests.access.neighbours import days_ago, differing
from tests.access.test_neighbours import BELOW, OTHER, SAMPLES, keys
from tests.access.test_sealing import questions
from tests.hidden import write_criteria

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1")]
KINDS = {SINGLES: ("score", "nominal"), PAIRS: ("pair",), BATCHES: ("batch",)}
# What the shape of a format could hold, and no file of it says: the reader or the map names a judge, or no verdict.
NEVER = {
    ("helm", PEOPLE),
    ("helm", JUDGES),
    ("promptfoo", PEOPLE),
    ("langfuse", PEOPLE),
    ("lmms-eval", PEOPLE),
    ("inspect", PEOPLE),
}


def asked(bit):
    return [Question(number, right) for number, right in enumerate(keys(bit))]


def stored(part):
    return (Label if part == PEOPLE else Judgment).objects.count()


def bring(world, path, *, command="", **options):
    """As a command brings a file, or several, of this world."""
    chosen = {"map": path.parent / MAP} if world.name == "map" else {}
    for one in path if isinstance(path, list) else [path]:
        call_command(
            f"import_{command or world.part}",
            "auto" if world.name == "map" else world.name,
            str(one),
            benchmark="keyed",
            **chosen | options,
        )
    return Benchmark.objects.get(slug="keyed")


def seal(benchmark, bit):
    """The keys of samples that a file has brought, as references."""
    samples = benchmark.samples.order_by("pk")
    write_criteria(
        {"sample": sample, "key": "hidden", "kind": "exact_reference", "text": right}
        for sample, right in zip(samples, keys(bit), strict=True)
    )


def built(world, folder, bit):
    if not world.brings:
        questions("keyed", keys(bit), kind=world.keys)
        return bring(world, world.write(folder, asked(bit), world.part))
    path = world.write(folder, asked(bit), world.part)
    if world.brings == KEYS_IN_FILE:
        return bring(world, path, command="benchmark", all_parts=True, visibility="public")
    benchmark = bring(world, path, command="benchmark", visibility="public")
    if formats.has(formats.MODULES[world.name], "responses"):
        bring(world, path, command="responses")
    seal(benchmark, bit)  # before verdicts come in
    return bring(world, path)


@pytest.fixture
def told(people, monkeypatch, media):
    """Asserts that nobody below staff is told the key of a world that ``build(bit)`` builds, and that staff are."""

    def check(build, *, kind, rows, part):
        def whole(bit):
            benchmark = build(bit)
            assert stored(part) == rows
            Run.objects.update(finished_at=days_ago(2))
            return benchmark, {}

        kinds = KINDS.get(kind, ("score",))
        found = differing(whole, people, monkeypatch, roles=BELOW, kinds=kinds, samples=(0, OTHER), most=50)
        assert {role: found[role][0] for role in BELOW} == {role: [] for role in BELOW}
        assert all(found[role][1] for role in BELOW)
        assert found["curator"][0]

    return check


def test_every_format_that_brings_labels_or_judgments_has_its_world():
    brings = {
        (name, part) for name, one in formats.MODULES.items() for part in (PEOPLE, JUDGES) if formats.has(one, part)
    }
    worlds = {(world.name, world.part) for world in WORLDS if world.name != "map"}
    assert worlds.isdisjoint(NEVER)
    assert worlds | NEVER == brings
    mapped = {(world.shape, world.part) for world in WORLDS if world.name == "map"}
    wide = {(shape, part) for shape in mapping.WIDE for part in (PEOPLE, JUDGES)}
    assert mapped == wide | {(part, part) for part in (PEOPLE, JUDGES) if part in mapping.SHAPES}


# Of a file of preferences both the order of answers and the list of categories told keys once: it is tried each time.
EACH = [
    pytest.param(world, marks=() if (world.write, world.part) == (preferences, PEOPLE) else pytest.mark.soak)
    for world in WORLDS
]


@pytest.mark.parametrize("world", EACH, ids=str)
def test_no_format_tells_a_key(world, told, tmp_path):
    told(lambda bit: built(world, tmp_path, bit), kind=world.kind, rows=world.rows(SAMPLES), part=world.part)


def by_api(world, path, curator):
    client = Client()
    client.force_login(curator)
    sent = client.post("/api/v1/uploads/", {"files": [as_sent(path)], "benchmark": "keyed"}).json()
    worker.work_all()
    client.post(f"/api/v1/uploads/{sent['id']}/confirm/", {}, content_type="application/json")
    worker.work_all()


def by_page(world, path, curator):
    client = Client()
    client.force_login(curator)
    client.post("/bank/uploads/", {"files": [as_sent(path)], "benchmark": "keyed"})
    worker.work_all()
    upload = Upload.objects.get()
    client.post(f"/bank/uploads/{upload.pk}/confirm/", ChoicesForm.first(upload) | {"into": "1"})
    worker.work_all()


def as_sent(path):
    return SimpleUploadedFile(path.name, path.read_bytes())


TOOLS = [world for world in WORLDS if world.name in ("label-studio", "argilla") and not world.brings]


@pytest.mark.soak
@pytest.mark.parametrize("world", TOOLS, ids=str)
@pytest.mark.parametrize("way", [by_api, by_page])
def test_no_upload_of_another_tools_labels_tells_a_key(way, world, told, people, tmp_path):
    def build(bit):
        benchmark = questions("keyed", keys(bit), kind=world.keys)
        way(world, world.write(tmp_path, asked(bit), PEOPLE), people["curator"])
        return benchmark

    told(build, kind=world.kind, rows=world.rows(SAMPLES), part=PEOPLE)


def exported(what, shape, world, folder, bit):
    """A file as the export commands write it, of another installation, which is gone."""
    name = {"huggingface": "hub", "label-studio": "tasks.json"}.get(shape, f"{what}.{shape}")
    with transaction.atomic():
        benchmark = questions("keyed", keys(bit))
        if what == "preferences":  # which are of verdicts that everybody sees
            Sample.objects.update(closed=exposure.NOTHING)
        bring(world, world.write(folder, asked(bit), world.part))
        more = {"with_analyses": True, "reason": "moving"} if what == JUDGES else {}
        call_command("export", what, benchmark=benchmark.slug, shape=shape, output=folder / name, **more)
        transaction.set_rollback(True)
    return folder / name


FIRST = {(world.part, world.kind): world for world in reversed(WORLDS) if world.name == "generic"}
DECIDED = next(world for world in WORLDS if world.name == "preferences")  # a tie is no preference
TABLES = ("csv", "parquet", "huggingface")
EXPORTS = [
    *((PEOPLE, PEOPLE, shape, kind) for shape in ("jsonl", "label-studio") for kind in (SINGLES, PAIRS, BATCHES)),
    *((JUDGES, JUDGES, "jsonl", kind) for kind in (SINGLES, PAIRS, BATCHES)),
    *((part, part, shape, PAIRS) for part in (PEOPLE, JUDGES) for shape in TABLES),
    *(("preferences", PEOPLE, shape, PAIRS) for shape in ("jsonl", "csv", "parquet")),
]


@pytest.mark.soak
@pytest.mark.parametrize(("what", "part", "shape", "kind"), EXPORTS)
def test_no_export_that_comes_in_again_tells_a_key(what, part, shape, kind, told, tmp_path):
    world = DECIDED if what == "preferences" else FIRST[part, kind]

    def build(bit):
        path = exported(what, shape, world, tmp_path, bit)
        benchmark = questions("keyed", keys(bit))
        call_command(f"import_{part}", "auto", str(path), benchmark="keyed")
        return benchmark

    told(build, kind=kind, rows=world.rows(SAMPLES), part=part)


@pytest.mark.soak
def test_the_number_of_categories_in_a_file_tells_no_key(told, tmp_path):
    """One that is given of a sealed sample alone would count among those that two people could have agreed on."""

    def build(bit):
        benchmark = questions("keyed", ["A"] * SAMPLES)
        benchmark.samples.exclude(position=OTHER).update(closed=exposure.NOTHING)
        rows = [
            about(question, SINGLES, "A")
            | {"protocol": "label", "annotator": name}
            | {"option": "rare" if bit and question.number == OTHER else "xy"[question.number % (2 + number) // 2]}
            for question in asked(bit)
            for number, name in enumerate(("Ada", "Bo"))
        ]
        path = lines(tmp_path / "labels.jsonl", rows)
        call_command("import_labels", "generic", str(path), benchmark="keyed")
        return benchmark

    told(build, kind=SINGLES, rows=2 * SAMPLES, part=PEOPLE)


def winners_alone(folder, questions):
    """Pairs with the right answer: nobody kept the others, which are ties."""
    rows = [
        about(q, PAIRS, one, other) | {"protocol": "pair", "annotator": "Ada", "choice": q.better(one, other)}
        for q in questions
        for one, other in combinations("ABCD", 2)
        if q.right in (one, other)
    ]
    return lines(folder / "labels.jsonl", rows)


def test_which_items_a_file_names_tells_no_key(told, tmp_path):
    def build(bit):
        benchmark = questions("keyed", keys(bit))
        call_command("import_labels", "generic", str(winners_alone(tmp_path, asked(bit))), benchmark="keyed")
        return benchmark

    told(build, kind=PAIRS, rows=3 * SAMPLES, part=PEOPLE)


def test_items_of_a_file_are_there_for_all_once_a_plan_names_them_or_nothing_hidden_was_seen(client_of, tmp_path):
    benchmark = questions("keyed", keys(False))
    call_command("import_labels", "generic", str(winners_alone(tmp_path, asked(False))), benchmark="keyed")
    client, curator = client_of("researcher"), client_of("curator")

    def counted(client):
        return len(client.get("/api/v1/items/?benchmark=keyed&page_size=100").json()["results"])

    made = Item.objects.filter(sample__benchmark=benchmark).count()
    assert (counted(client), counted(curator)) == (0, made)
    with pytest.raises(BadInput, match="came with verdicts of files"):
        make_campaign(name="Round", benchmark=benchmark, protocol="pair")
    with transaction.atomic():
        say_saw_nothing(campaign=Campaign.objects.get(imported=True))
        assert counted(client) == made
        transaction.set_rollback(True)
    assert counted(client) == 0
    make_items(plan_items(kind="pair", benchmark=benchmark))
    assert counted(client) == Item.objects.filter(sample__benchmark=benchmark).count() > made
    assert make_campaign(name="Round", benchmark=benchmark, protocol="pair").campaign_items.exists()
