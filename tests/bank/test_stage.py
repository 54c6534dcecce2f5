"""What waits during an import: found by joins over all rows, whichever part, batch or import brings them."""

import json
import os
import random
from itertools import count

import pytest
from django.conf import settings
from django.db import connection

from annotations.models import Assignment, Campaign, CampaignItem, Label
from bank.intake.imports import engine
from bank.intake.imports.engine import run_import
from bank.models import Item, Response
from bank.models.items import content_hash
from bank.models.verdict import COLUMNS
from judging.models import Judgment, Run, RunItem

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

PARTS = ("samples", "responses", "judgments", "labels")
MODELS = ("m1", "m2", "m3", "Ä m")
SIZES = {"pair": 2, "score": 1, "batch": 3}
AT = {"at": "2026-01-02T10:00:00+00:00"}
EARLIER = {"choice": "second", "at": "2026-01-01T11:00:00+00:00", "until": "2026-01-02T09:30:00+00:00"}


def verdict(rng, samples):
    """What a row says of an item, whose responses it names in any order; some name what is not here."""
    kind = rng.choice(("pair", "pair", "score", "batch"))
    names = rng.sample((*MODELS, "ghost") if rng.random() < 0.05 else MODELS, SIZES[kind])
    responses = [{"model": name, "variant": "v2"} if rng.random() < 0.1 else name for name in names]
    row = {"kind": kind, "sample": rng.choice(samples), "responses": responses}
    if kind == "score":
        return row | {"score": rng.choice((1, 2.5, 4))}
    if kind == "batch":
        ranked = rng.sample(responses, 3)
        return row | {"ranking": [ranked[:1], ranked[1:]] if rng.random() < 0.5 else ranked}
    if rng.random() < 0.2:
        return row | {"preference": rng.choice((0, 0.25, 0.5, 0.75, 1))}
    return row | {"choice": rng.choice(("first", "second", "tie", "undecided"))}


def judgment(rng, samples):
    row = verdict(rng, samples) | {"judge": rng.choice(("J", "J", "K"))}
    if row["kind"] != "score" and rng.random() < 0.6:
        row["order"] = rng.sample(row["responses"], len(row["responses"]))
    if rng.random() < 0.2:
        row |= {"repeat": rng.randint(1, 2), "settings": rng.choice(({"a": 1}, {"a": True}))}
    if rng.random() < 0.2:
        row |= {"analysis": "It is so.", "raw": "so", "reason": "as said"}
    return row


def label(rng, samples):
    row = verdict(rng, samples) | {"annotator": rng.choice(("ada", "bo", "cy"))} | AT
    if rng.random() < 0.3:
        row["campaign"] = rng.choice(("one", "two"))
    if row.get("choice") and rng.random() < 0.2:
        row["revisions"] = [EARLIER]
    return row


def write(folder, seed):
    """Files of all parts; some rows stand twice, or contradict one another, or name what is not here."""
    rng = random.Random(seed)
    folder.mkdir()
    keys = [f"s{number}" for number in range(rng.randint(2, 5))]
    samples = [{"key": key, "instruction": f"What is {key}?"} for key in keys]
    if rng.random() < 0.5:
        samples[0] |= {"options": {"A": "x", "B": "y"}, "answer": "A"}
    responses = [
        {"sample": key, "model": model, "variant": variant, "text": f"{model} {variant} on {key}"}
        for key in keys
        for model in MODELS
        for variant in ("", "v2")
        if rng.random() < (0.3 if variant else 0.9)
    ]
    rows = {
        "samples": samples,
        "responses": [*responses, *(row | {"text": "another"} for row in responses[:1])],
        "judgments": [judgment(rng, [*keys, "gone"]) for _ in range(rng.randint(10, 40))],
        "labels": [label(rng, [*keys, "gone"]) for _ in range(rng.randint(10, 40))],
    }
    for part in PARTS:
        text = "".join(json.dumps(row) + "\n" for row in rows[part])
        (folder / f"{part}.jsonl").write_text(text, encoding="utf-8")
    return folder


def by_names(model, slug, *names):
    """Rows of a benchmark, by values that no id is in."""
    of_benchmark = {Run: "benchmark__slug", Campaign: "benchmark__slug", Item: "sample__benchmark__slug"}
    path = of_benchmark.get(model) or f"{'campaign_item__' if model is Assignment else ''}item__sample__benchmark__slug"
    return sorted(map(repr, model.objects.filter(**{path: slug}).values_list(*names)))


def rows_of(slug):
    """All that an import of verdicts makes. An item is told by its answers in canonical order."""
    named = {
        item.pk: (item.kind, item.sample.key, tuple((r.model.name, r.variant) for r in item.ordered_responses()))
        for item in Item.objects.filter(sample__benchmark__slug=slug).select_related("sample")
    }
    of_items = {
        model: sorted(
            repr((named[item], *values))
            for item, *values in model.objects.filter(item__sample__benchmark__slug=slug).values_list("item", *names)
        )
        for model, names in (
            (Judgment, ("run__judge__name", "run__settings", "order", "repeat", "status", *COLUMNS, "analysis", "raw")),
            (RunItem, ("run__judge__name", "run__protocol", "run__settings")),
            (Label, ("campaign__protocol", "annotator__name", "assignment__order", *COLUMNS, "revisions__verdict")),
            (CampaignItem, ("campaign__protocol", "taken")),
        )
    }
    counts = by_names(Run, slug, "judge__name", "protocol", "settings", "verdicts", "failures", "undecided", "held")
    return sorted(map(repr, named.values())), of_items, counts, by_names(Campaign, slug, "protocol", "overlap", "held")


def problems(reports):
    return [
        str(problem).replace("once", "b").replace("apart", "b") for part in PARTS for problem in reports[part].problems
    ]


@pytest.mark.parametrize("seed", range(8))
def test_parts_and_batches_make_the_same_rows_as_everything_at_once(seed, tmp_path, media, monkeypatch):
    folder = write(tmp_path / "rows", seed)
    at_once = run_import(path=folder, slug="once", skip_bad=True)
    monkeypatch.setattr(engine, "BATCH", 3)
    renamed = (
        (folder / "labels.jsonl").read_text(encoding="utf-8").replace('"one"', '"three"').replace('"two"', '"four"')
    )
    (folder / "labels.jsonl").write_text(renamed, encoding="utf-8")
    apart = {part: run_import(path=folder, slug="apart", parts=[part], skip_bad=True)[part] for part in PARTS}
    assert rows_of("once") == rows_of("apart")
    assert problems(at_once) == problems(apart)
    assert any(problems(at_once))
    for item in Item.objects.prefetch_related("places"):
        responses = [place.response_id for place in item.places.all()]
        assert item.content_hash == content_hash(kind=item.kind, sample_id=item.sample_id, response_ids=responses)


@pytest.mark.parametrize("seed", range(8, 12))
def test_a_file_that_grows_makes_the_same_rows_as_one_that_is_whole(seed, tmp_path, media):
    folder = write(tmp_path / "rows", seed)
    run_import(path=folder, slug="once", skip_bad=True)
    texts = {part: (folder / f"{part}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True) for part in PARTS}
    run_import(path=folder, slug="grown", parts=PARTS[:2], skip_bad=True)
    for part in PARTS[2:]:
        for share in (0.3, 0.7, 1):
            text = "".join(texts[part][: int(len(texts[part]) * share)])
            text = text.replace('"one"', '"three"').replace('"two"', '"four"')
            (folder / f"{part}.jsonl").write_text(text, encoding="utf-8")
            report = run_import(path=folder, slug="grown", parts=[part], skip_bad=True)[part]
        assert report.unchanged > 0
    assert rows_of("once") == rows_of("grown")


def test_a_batch_of_nothing_but_repeated_rows_is_refused_row_by_row(tmp_path, media, monkeypatch):
    monkeypatch.setattr(engine, "BATCH", 2)
    samples = [{"key": key, "instruction": "Why?"} for key in "abc"]
    responses = [{"sample": "a", "model": model, "text": "so"} for model in MODELS[:2]]
    scored = {"kind": "score", "sample": "a", "score": 3}
    rows = {
        "samples": samples,
        "responses": responses,
        "judgments": [scored | {"responses": [model], "judge": "J"} for model in MODELS[:2]],
        "labels": [scored | {"responses": [model], "annotator": "ada"} for model in MODELS[:2]],
    }
    for part in PARTS:
        text = "".join(json.dumps(row) + "\n" for row in (*rows[part], *rows[part], *rows[part]))
        (tmp_path / f"{part}.jsonl").write_text(text, encoding="utf-8")
    reports = run_import(path=tmp_path, slug="b", skip_bad=True)
    assert {part: (report.rows, report.bad) for part, report in reports.items()} == {
        "samples": (9, 6),
        "responses": (6, 4),
        "judgments": (6, 4),
        "labels": (6, 4),
    }
    assert Response.objects.count() == Judgment.objects.count() == Label.objects.count() == 2


def waiting():
    """What the files without a name in the data folder hold."""
    held = b""
    for number in count(3):
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            if number > 200:
                return held
            continue
        if path.startswith(f"{settings.DATA}/") and path.endswith("(deleted)"):
            with open(f"/proc/self/fd/{number}", "rb") as file:
                held += file.read()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="PostgreSQL keeps temporary tables itself")
def test_what_waits_lies_in_a_file_that_nobody_finds_and_holds_no_hidden_word(tmp_path, media):
    words = {"instruction": "Which of the herons?", "key": "a", "options": {"A": "x", "B": "y"}}
    hidden = {"criteria": [{"text": "hidden herons"}]}
    folder = tmp_path / "rows"
    folder.mkdir()
    files = {
        "samples": words | hidden,
        "responses": {"sample": "a", "model": "m1", "text": "open answer"},
        "judgments": {"kind": "score", "sample": "a", "judge": "J", "responses": ["m1"], "score": 3}
        | {"analysis": "hidden analysis", "reason": "hidden reason", "raw": "hidden reply"},
    }
    for part, row in files.items():
        (folder / f"{part}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    seen, others = [], {path.name for path in settings.DATA.iterdir() if "tests.db" not in path.name}

    def look(reports):
        seen.append(waiting())
        assert {path.name for path in settings.DATA.iterdir() if "tests.db" not in path.name} == others

    run_import(path=folder, slug="b", checked=look)
    assert b"open answer" in seen[0]
    assert b"Which of the herons?" in seen[0]
    assert b"hidden" not in seen[0]
    assert waiting() == b""
    assert Response.objects.count() == Judgment.objects.count() == 1
    assert connection.connection.execute(
        "SELECT count(*) FROM pragma_database_list WHERE name = 'stage'"
    ).fetchone() == (0,)
