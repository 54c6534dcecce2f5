"""Nobody sees anything of an import before it is done: no page, list, export and board, while it waits at its end."""

import contextvars
import io
import json

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from annotations.models import Assignment, CampaignItem, Label
from bank.intake.imports import Cancelled
from bank.intake.imports.engine import run_import
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample, SampleImage, Submission
from bank.models.imports import Import, ImportRange
from bank.submissions import actions as submissions
from judging.models import Judge, Judgment, Run, RunItem
from tests.access.crawl import FORMS, crawl
from tests.access.test_routes import doors
from tests.access.world import PUBLIC
from tests.bank.conftest import picture

pytestmark = pytest.mark.django_db
TABLES = (Benchmark, Sample, SampleImage, EvaluatedModel, Response, Item, Judge, Run, RunItem, Judgment, CampaignItem)
# What each page says of the moment, or of the process, and not of the rows.
MOVING = {"healthz", "readyz", "accounts:tokens"}


def files(root, *, old, new, key):
    """A folder of all four parts: about samples that are stored and new ones, by models, judges and people."""
    root.mkdir()
    (root / "p.png").write_bytes(picture(colour="red" if key == "n" else "blue"))
    models = ["model-one", "model-two", f"model-{key}"]
    samples = [{"key": f"{key}{n}", "instruction": "?", "images": ["p.png"], "level": "Perception"} for n in range(3)]
    samples = [row | {"criteria": [{"text": "Three."}], "capability": ["Perception", key]} for row in samples]
    responses = [{"sample": row["key"], "model": model, "text": "Four."} for row in samples for model in models]
    responses += [{"sample": sample, "model": models[2], "text": "Four."} for sample in old]
    verdicts = [
        {"kind": "pair", "sample": sample, "responses": list(pair), "choice": "first"}
        for sample in (*old, *(row["key"] for row in samples))
        for pair in ((models[0], models[1]), (models[0], models[2]))
    ]
    parts = {
        "samples": samples,
        "responses": responses,
        "judgments": [row | {"judge": judge} for row in verdicts for judge in ("some-judge", "j", f"j-{key}")],
        "labels": [
            row | {"annotator": name, "campaign": "people" if old else "others"}
            for row in verdicts
            for name in ("p", f"p-{key}")
        ],
    }
    if new:  # on what the first import brought, by people who were not there
        parts["judgments"] += [row | {"judge": "late"} for row in verdicts]
    for name, rows in parts.items():
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return root


@pytest.fixture
def first(world, tmp_path):
    """A first import into the public benchmark, which is done: a run and a campaign to which others add."""
    reports = run_import(path=files(tmp_path / "first", old=["s0", "s1"], new=False, key="f"), slug=PUBLIC)
    assert all(report.written for report in reports.values()), reports
    return world


def at_the_end(look):
    """For ``progress``: calls ``look`` as somebody else, once all rows are stored and none is shown."""

    def progress(part, done):
        if part == "write" and Import.objects.under_way().exists() and not seen:
            last = Label._base_manager.order_by("-pk").first()
            stored = ImportRange.objects.filter(table="annotations_label", first__lte=last.pk if last else 0)
            if stored.exists():
                seen.append(outside.run(look))

    # Of before the import, not empty: where a browser test left an event loop, connections belong to the context.
    outside = contextvars.copy_context()
    seen = []
    progress.seen = seen
    return progress


@pytest.fixture
def everything(client_of, monkeypatch):
    """What everybody is answered everywhere, and what the commands say."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)

    def look(world, *, forms=True):
        found = {}
        addresses = [door for door in doors(world) if door[0] not in MOVING]
        found |= crawl(lambda: client_of("curator"), addresses, "get")
        # Other forms of an address answer from the same queries: on one database they are enough.
        if forms and connection.vendor == "sqlite":
            opened = [(name, path) for (name, path, _), answer in found.items() if answer.status_code == 200]
            found |= crawl(lambda: client_of("curator"), opened, FORMS)
        for board in ("models", "judges", "agreement", "bias"):
            found["leaderboard", board] = said("leaderboard", board, "--benchmark", PUBLIC, "--format", "json")
        for what in ("samples", "responses", "items", "labels", "judgments"):
            found["export", what] = said("export", what, "--benchmark", PUBLIC, "--format", "jsonl")
        found["counts"] = counts()
        return found

    return look


def counts():
    return [table.objects.count() for table in TABLES]


def said(*command):
    out = io.StringIO()
    try:
        call_command(*command, stdout=out, stderr=out)
    except Exception as error:
        out.write(str(error))
    return out.getvalue()


def differing(one, other):
    return [key for key in one if one[key] != other[key]] + sorted(map(str, one.keys() ^ other.keys()))


@pytest.mark.parametrize(
    "slug", [pytest.param(PUBLIC, marks=pytest.mark.both_databases), pytest.param("brand-new", marks=pytest.mark.soak)]
)
@pytest.mark.check("C9")
def test_while_an_import_waits_at_its_end_every_page_list_export_and_board_is_as_before(
    slug, first, everything, tmp_path
):
    old = ["s0", "s1", "s2"] if slug == PUBLIC else []
    folder = files(tmp_path / "second", old=old, new=True, key="n")
    before = everything(first, forms=slug == PUBLIC)
    progress = at_the_end(lambda: everything(first, forms=slug == PUBLIC))
    reports = run_import(path=folder, slug=slug, progress=progress)
    assert all(report.written for report in reports.values())
    (meanwhile,) = progress.seen
    assert differing(before, meanwhile) == []
    assert counts() != before["counts"]


@pytest.mark.check("C10")
def test_of_an_import_that_is_cancelled_at_its_end_no_row_and_no_picture_is_left(first, media, tmp_path):
    def stored():
        rows = {table: table._base_manager.count() for table in (*TABLES, Assignment, Label, Import, ImportRange)}
        return rows, sorted(path.name for path in media.rglob("*") if path.is_file())

    before = stored()
    progress = at_the_end(lambda: True)
    with pytest.raises(Cancelled):
        run_import(
            path=files(tmp_path / "second", old=["s0"], new=True, key="n"),
            slug=PUBLIC,
            progress=progress,
            cancelled=lambda: bool(progress.seen),
        )
    assert stored() == before


def test_a_name_that_is_coming_in_is_told_to_wait_and_found_when_it_is_there(first, client_of, people, tmp_path):
    curator = client_of("curator")
    curator.raise_request_exception = False
    sent = {"slug": "brand-new", "title": "Mine", "version": "1"}
    rows = tmp_path / "mine.csv"
    rows.write_text("sample,text\n" + "".join(f"q{n},A\n" for n in range(12)), encoding="utf-8")

    def look():
        judge = curator.post(
            "/api/v1/judges/",
            json.dumps({"name": "j-n", "base_url": "http://127.0.0.1:9/v1", "model": "m"}),
            content_type="application/json",
        )
        benchmark = curator.post("/bank/benchmarks/new/", sent)
        with pytest.raises(Exception, match="An import is creating"):
            submissions.submit(
                person=people["researcher"],
                benchmark=Benchmark.objects.get(slug=PUBLIC),
                name="model-n",
                path=rows,
                now=timezone.now(),
            )
        return judge, benchmark

    progress = at_the_end(look)
    run_import(path=files(tmp_path / "second", old=[], new=True, key="n"), slug="brand-new", progress=progress)
    ((judge, benchmark),) = progress.seen
    assert judge.status_code in (400, 503)
    assert judge.status_code == 400 or judge.headers["Retry-After"]
    assert benchmark.status_code in (200, 503)
    assert Benchmark.objects.get(slug="brand-new").title == "brand-new"
    assert not Submission.objects.filter(name="model-n").exists()


def test_an_item_that_somebody_makes_meanwhile_is_taken_with_its_own_order(first, tmp_path):
    from bank.samples.items import ItemSpec, ensure_items

    sample = Sample.objects.get(benchmark__slug=PUBLIC, key="s2")
    new = Response.objects.create(sample=sample, model=EvaluatedModel.objects.create(name="model-n"), text="Four.")
    folder = tmp_path / "second"
    folder.mkdir()
    row = {"kind": "pair", "sample": "s2", "responses": ["model-n", "model-one"], "choice": "first", "judge": "j"}
    (folder / "judgments.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    old = Response.objects.get(sample=sample, model__name="model-one")
    made = []

    def progress(part, done):
        if part == "judgments" and not made:
            made.append(ensure_items([ItemSpec("pair", sample.pk, (old.pk, new.pk))]))

    report = run_import(path=folder, slug=PUBLIC, progress=progress)["judgments"]
    assert report.written
    assert report.made["judgments"] == 1
    stored = Judgment.objects.get(item__content_hash=next(iter(made[0][0])))
    assert (stored.order, stored.choice) == ("10", "second")
