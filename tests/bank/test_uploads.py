"""Files that staff send: received, checked, brought in, cancelled; and what may not happen on the way."""

import csv
import errno
import hashlib
import io
import json
import os
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from annotations.models import Campaign, Label
from bank.criteria import Criterion
from bank.errors import NotNow
from bank.forms.uploads import ChoicesForm
from bank.intake.formats import templates
from bank.intake.imports import engine
from bank.intake.uploads import actions, decrypted, staging, worker
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample, SampleImage, Upload
from judging.models import Judgment, Run
from tests.bank.conftest import picture
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def staged(settings, media):
    return settings.STAGED


@pytest.fixture
def api(client_of):
    """Speaks to the API as a curator: ``api("post", "uploads/", {...})``."""

    def call(method, path, data=None, *, role="curator", **extra):
        extra.setdefault("content_type", "application/json")
        if isinstance(data, dict):
            data = json.dumps(data)
        return getattr(client_of(role), method)(f"/api/v1/{path}", data=data, **extra)

    return call


def send(api, pk, offset, data, **headers):
    extra = {f"HTTP_{name}": value for name, value in headers.items()}
    kind = "application/offset+octet-stream"
    return api("patch", f"uploads/{pk}/", data, content_type=kind, HTTP_UPLOAD_OFFSET=str(offset), **extra)


def begin(api, files, **more):
    asked = {"files": [{"name": name, "size": len(data)} for name, data in files.items()]}
    return api("post", "uploads/", asked | more)


def test_files_come_in_as_one_stream_in_pieces_across_their_borders(api):
    files = {"b/one.jsonl": b"0123456789", "b/empty": b"", "b/two.bin": bytes(range(256)) * 5}
    stream = b"".join(files.values())
    answer = begin(api, files, sha256=hashlib.sha256(stream).hexdigest())
    assert answer.status_code == 201
    pk, offset = answer.json()["id"], 0
    while offset < len(stream):
        piece = stream[offset : offset + 333]
        offset = send(api, pk, offset, piece, UPLOAD_SHA256=hashlib.sha256(piece).hexdigest()).json()["offset"]
    upload = Upload.objects.get(pk=pk)
    assert (upload.state, upload.received, upload.name) == ("received", len(stream), "b")
    with staging.opened(upload) as here:
        assert {name: (here.parent / name).read_bytes() for name in files} == files
    assert staging.digest(upload) == upload.sha256
    assert oct(staging.folder(upload).stat().st_mode & 0o777) == "0o700"


def test_a_piece_sent_twice_or_at_another_place_changes_nothing(api):
    pk = begin(api, {"x.jsonl": b"0123456789"}).json()["id"]
    assert send(api, pk, 0, b"01234").json()["offset"] == 5
    assert send(api, pk, 0, b"XXXXX").json()["offset"] == 5, "it was acknowledged before: this is a repetition"
    for offset in (3, 6, 9):
        answer = send(api, pk, offset, b"56789")
        assert (answer.status_code, answer.json()["offset"]) == (409, 5)
    assert send(api, pk, 5, b"567890").status_code == 400, "more than was announced"
    damaged = send(api, pk, 5, b"5678X", UPLOAD_SHA256=hashlib.sha256(b"56789").hexdigest())
    assert (damaged.status_code, Upload.objects.get().received) == (400, 5)
    assert send(api, pk, 5, b"56789").json()["state"] == "received"
    with staging.opened(Upload.objects.get()) as here:
        assert here.read_bytes() == b"0123456789"
    assert send(api, pk, 5, b"56789").status_code == 200
    assert send(api, pk, 10, b"x").status_code == 409


def test_a_request_that_another_overtook_changes_nothing(people):
    upload = actions.start(by=people["curator"], files=[("x.jsonl", 10)])

    def slow():
        yield b"XXX"
        actions.receive(upload=Upload.objects.get(), offset=0, length=6, pieces=[b"012345"])

    assert actions.receive(upload=upload, offset=0, length=8, pieces=slow()).received == 6
    assert actions.receive(upload=upload, offset=6, length=4, pieces=[b"6789"]).state == "received"
    with staging.opened(upload) as here:
        assert here.read_bytes() == b"0123456789"
    assert sorted(path.name for path in (staging.folder(upload) / "pieces").iterdir()) == sorted(upload.pieces)


def test_a_piece_that_comes_in_while_its_upload_is_cancelled_is_refused_in_words_and_leaves_nothing(people, settings):
    upload = actions.start(by=people["curator"], files=[("x.jsonl", 10)])

    def cancelled():
        yield b"012"
        assert actions.cancel(upload=Upload.objects.get())
        yield b"345"

    with pytest.raises(actions.WrongState, match="has ended"):
        actions.receive(upload=upload, offset=0, length=6, pieces=cancelled())
    assert Upload.objects.get().state == "cancelled"
    assert left_behind(settings) == []


def test_a_worker_that_unpacks_for_minutes_is_not_said_to_be_missing(sent):
    upload = sent(bundle())
    long_ago = timezone.now() - timedelta(minutes=5)
    Upload.objects.filter(pk=upload.pk).update(tries=1, state="checking", changed_at=long_ago)
    assert not Upload.objects.get().is_held
    worker.ProgressReporter(upload, lambda: False).cancelled()
    assert Upload.objects.get().is_held


def test_an_upload_in_too_many_pieces_is_refused_in_words(people, monkeypatch):
    monkeypatch.setattr(actions, "MOST_PIECES", 3)
    upload = actions.start(by=people["curator"], files=[("x.jsonl", 10)])
    for offset in range(3):
        actions.receive(upload=upload, offset=offset, length=1, pieces=[b"0"])
    with pytest.raises(actions.BadInput, match="larger ones"):
        actions.receive(upload=upload, offset=3, length=1, pieces=[b"0"])
    assert len(list((staging.folder(upload) / "pieces").iterdir())) == 3


def test_an_offset_that_is_no_number_is_an_error(api):
    pk = begin(api, {"x": b"0123"}).json()["id"]
    for header in ("", "-1", "1.5", "٣", "1e3", "9" * 30):
        assert send(api, pk, header, b"0123").status_code == 400, header
    assert Upload.objects.get().received == 0


HOSTILE = [
    "../x", "a/../../x", "/etc/passwd", "a//b", ".", "..", "", "a/", "./x", "C:\\x", "..\\x", "a\\b", "x\x00.jsonl",
    "a\nb", "a\x7fb", "C:x", "/", "a/./b", "x" * 300, "/".join("a" * 40), "\ud800", "a/" + "é" * 150, "~root/../x/",
    "....//x/..", "\x1b[2J", "a:stream", "\\\\host\\share", "a/..", "//x", "\r", "a/\x00", "..%2fx/../y", ".. /../z",
]  # fmt: skip


@pytest.mark.check("B9")
def test_a_name_that_leads_elsewhere_is_refused(api, staged):
    taken = [name for name in HOSTILE if begin(api, {name: b"x"}).status_code != 400]
    assert taken == []
    assert not Upload.objects.exists()
    assert not staged.exists() or not list(staged.iterdir())


def test_names_that_collide_and_sizes_that_cannot_be_are_refused(api, settings, people):
    for files in ({"a": b"1", "A": b"2"}, {"a": b"1", "a/b": b"2"}, {}, {"a": b""}):
        assert begin(api, files).status_code == 400, files
    settings.UPLOAD_LIMIT = 100
    answer = begin(api, {"a": b"x" * 101})
    assert "more than the" in answer.json()["files"][0]
    for size in (-1, 2**70, "x", 1.5, None, True):
        assert api("post", "uploads/", {"files": [{"name": "a", "size": size}]}).status_code == 400
    with pytest.raises(actions.BadInput, match="Send them as one zip"):
        actions.start(by=people["curator"], files=[(f"{n}", 1) for n in range(staging.MAX_FILES + 1)])
    assert not Upload.objects.exists()


@pytest.mark.check("J3")
@pytest.mark.parametrize("way", ["form", "pieces"])
def test_what_was_sent_lies_encrypted_but_while_a_worker_reads_it(way, api, client_of, settings, monkeypatch):
    secret = b"The canary sings at dawn."
    row = b'{"key": "s1", "instruction": "Source.", "criteria": [{"text": "%s"}]}\n' % secret

    def lying():
        return [path for path in settings.STAGED.rglob("*") if path.is_file() and secret in path.read_bytes()]

    if way == "form":
        client_of("curator").post("/bank/uploads/", {"files": [SimpleUploadedFile("samples.jsonl", row)]})
    else:
        pk = begin(api, {"samples.jsonl": row}).json()["id"]
        for offset in range(0, len(row), 7):
            send(api, pk, offset, row[offset : offset + 7])
    upload = Upload.objects.get()
    assert (upload.state, lying()) == ("received", [])
    keep, read = worker.keep_preview, []
    monkeypatch.setattr(worker, "keep_preview", lambda *given: (read.extend(lying()), keep(*given)))
    assert worker.work_all() == 1
    upload.refresh_from_db()
    assert (upload.state, len(read), lying()) == ("checked", 1, [])


def test_what_a_killed_worker_had_decrypted_is_removed_and_what_another_reads_is_not(api, settings):
    begin(api, {"samples.jsonl": b"{}"})
    upload = Upload.objects.get()
    send(api, upload.pk, 0, b"{}")
    left = settings.STAGED / "killed" / decrypted.NAME
    left.mkdir(parents=True)
    (left / "samples.jsonl").write_text("secret")
    upload.refresh_from_db()
    with staging.opened(upload) as path:
        decrypted.remove_left()
        assert (path.read_bytes(), left.exists()) == (b"{}", False)


def test_a_plain_form_brings_the_files_at_once(client_of):
    files = [SimpleUploadedFile("samples.jsonl", b"{}" * 2_000_000), SimpleUploadedFile("C:\\boats.png", b"png")]
    answer = client_of("curator").post("/bank/uploads/", {"files": files})
    upload = Upload.objects.get()
    assert answer.headers["Location"] == f"/bank/uploads/{upload.pk}/"
    assert (upload.state, upload.size, upload.received) == ("received", 4_000_003, 4_000_003)
    with staging.opened(upload) as root:
        assert (root / "samples.jsonl").read_bytes() == b"{}" * 2_000_000
        assert (root / "boats.png").stat().st_mode & 0o777 == 0o600
    refused = client_of("curator").post("/bank/uploads/", {})
    assert (refused.status_code, b"There is no file in it." in refused.content) == (422, True)


def test_files_are_taken_from_nobody_who_is_not_signed_in(client_of, settings):
    from django.test import Client

    def big():
        return SimpleUploadedFile("x.bin", b"x" * 3_000_000)

    assert Client().post("/api/v1/uploads/", {"files": [big()]}).status_code == 401
    assert Client().post("/accounts/sign-in/", {"files": [big()]}).status_code == 400
    assert client_of("annotator").post("/bank/uploads/", {"files": [big()]}).status_code == 403
    settings.UPLOAD_LIMIT = 1000
    assert client_of("curator").post("/bank/uploads/", {"files": [big()]}).status_code == 400
    assert not Upload.objects.exists()


# -- checked and brought in -----------------------------------------------------------------------------------------

SECRET = "Names the quokka."
SAMPLES = [
    {
        "key": f"s{number}",
        "instruction": f"How many boats are in picture {number}?",
        "images": ["boats.png"],
        "level": "Perception",
        "criteria": [{"text": f"{SECRET} {number}"}, {"text": "Says where they lie."}],
    }
    for number in range(8)
]
RESPONSES = [{"sample": f"s{n}", "model": model, "text": f"{model}: {n}"} for n in range(8) for model in ("m1", "m2")]
LABELS = [
    {"kind": "pair", "sample": "s1", "responses": ["m1", "m2"], "annotator": f"a{n}", "choice": "first"} for n in (1, 2)
]
JUDGMENTS = [
    {"kind": "pair", "sample": "s1", "responses": ["m1", "m2"], "judge": "j", "choice": "first", "analysis": SECRET}
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def bundle(samples=SAMPLES, **parts):
    parts = {"responses": RESPONSES, "labels": LABELS, "judgments": JUDGMENTS} | parts
    files = {f"{name}.jsonl": lines(rows) for name, rows in parts.items() if rows}
    return {"samples.jsonl": lines(samples), "boats.png": picture()} | files


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.fixture
def sent(people):
    """Sends files whole: ``sent({"x.jsonl": b"..."})``."""

    def send_all(files):
        upload = actions.start(by=people["curator"], files=[(name, len(data)) for name, data in files.items()])
        stream = b"".join(files.values())
        return actions.receive(upload=upload, offset=0, length=len(stream), pieces=[stream])

    return send_all


def checked(upload):
    assert worker.work(upload)
    upload.refresh_from_db()
    assert upload.state == "checked", upload.fault
    return upload


def brought(upload, **choices):
    form = ChoicesForm(ChoicesForm.first(upload) | choices, upload=upload)
    assert form.is_valid(), form.errors
    while not form.carry_out():
        checked(upload)
    assert worker.work(upload)
    upload.refresh_from_db()
    return upload


def rows():
    """How much there is of everything that an import makes."""
    made = (Benchmark, Sample, SampleImage, Criterion, Response, Item, EvaluatedModel, Judgment, Run, Label, Campaign)
    return {model.__name__: model._base_manager.count() for model in made}


def left_behind(settings):
    """Files in the staged and the media folder."""
    roots = (settings.STAGED, settings.MEDIA_ROOT)
    return [path for root in roots if root.exists() for path in root.rglob("*") if path.is_file()]


NOTHING = dict.fromkeys(
    ("Benchmark Sample SampleImage Criterion Response Item EvaluatedModel Judgment Run Label Campaign").split(), 0
)


@pytest.mark.parametrize("shape", ["files", "zip", "folder"])
def test_samples_responses_judgments_and_labels_come_in_together(sent, shape, settings):
    files = bundle()
    upload = sent({"boats.zip": zipped({f"in/{n}": d for n, d in files.items()})} if shape == "zip" else
                  {f"boats/{n}": d for n, d in files.items()} if shape == "folder" else files)  # fmt: skip
    found = checked(upload).found
    assert found["format"] == "generic"
    assert found["parts"] == ["samples", "responses", "judgments", "labels"]
    made = {"samples": 8, "images": 8, "criteria": 16, "responses": 16, "models": 2, "judgments": 1, "labels": 2}
    assert made.items() <= found["made"].items()
    assert (found["bad"], rows()) == (0, NOTHING), "a check writes nothing"
    preview = staging.preview(upload)
    assert [sample["key"] for sample in preview] == [f"s{n}" for n in range(6)]
    assert (preview[0]["criteria"], preview[0]["images"][0]["width"]) == (2, 32)
    assert SECRET not in json.dumps([preview, found])
    report = brought(upload, benchmark="boats", title="Boats", visibility="private", anchor="m2").report
    assert made.items() <= report["made"].items()
    counts = rows()
    assert (counts["Sample"], counts["Criterion"], counts["Response"], counts["Label"]) == (8, 16, 16, 2)
    benchmark = Benchmark.objects.get(slug="boats")
    assert (upload.state, benchmark.title, benchmark.visibility) == ("done", "Boats", "private")
    assert benchmark.anchor.name == "m2"
    kept = [path for path in left_behind(settings) if settings.STAGED in path.parents]
    assert not kept, "what was sent is removed"
    again = checked(sent(files))
    assert again.found["bad"] == 0
    again = brought(again, benchmark="boats")
    assert (again.state, again.report["made"], rows()) == ("done", {}, counts)


def test_another_name_is_checked_and_comes_in_without_a_second_press(sent, client_of):
    upload = checked(sent(bundle()))
    form = ChoicesForm.first(upload) | {"benchmark": "ships"}
    post(client_of, upload, "confirm/", form)
    upload.refresh_from_db()
    assert upload.state == "received"
    assert worker.work(upload)
    upload.refresh_from_db()
    assert upload.state == "importing"
    assert worker.work(upload)
    upload.refresh_from_db()
    assert (upload.state, Benchmark.objects.get().slug) == ("done", "ships")
    assert actions.GO_ON not in upload.choices


@pytest.mark.parametrize("why", ["bad rows", "a benchmark of this name"])
def test_what_a_person_must_see_waits_after_the_check_and_says_so(why, sent, client_of):
    if why == "bad rows":
        upload = checked(sent(bundle(responses=[*RESPONSES, RESPONSES[0]])))
    else:
        Benchmark.objects.create(slug="ships", title="Ships")
        upload = checked(sent(bundle()))
    form = ChoicesForm.first(upload) | {"benchmark": "ships"}
    post(client_of, upload, "confirm/", form)
    upload.refresh_from_db()
    assert worker.work(upload)
    upload.refresh_from_db()
    assert upload.state == "checked"
    page = get(client_of, upload, "").decode()
    assert "Checked again for ships, and not brought in" in " ".join(page.split())
    assert not Sample.objects.exists()


def test_bad_rows_are_named_and_only_the_good_ones_come_in_when_asked(sent, client_of, settings):
    bad = [*SAMPLES[:3], SAMPLES[0], {"key": "=1+1", "instruction": ""}, SAMPLES[3] | {"images": ["no.png"]}]
    upload = checked(sent(bundle(bad, responses=RESPONSES[:6], labels=[], judgments=[])))
    found = upload.found
    assert (found["bad"], found["made"]["samples"]) == (3, 3)
    assert {reason["count"] for reason in found["reasons"]} == {1}
    table = list(csv.DictReader(io.StringIO(get(client_of, upload, "problems.csv").decode())))
    assert [(row["file"], row["line"], row["field"]) for row in table] == [
        ("samples.jsonl", "5", "instruction"),
        ("samples.jsonl", "4", "key"),
        ("samples.jsonl", "6", "images.0"),
    ] or len(table) == 3
    page = flat(get(client_of, upload, "").decode())
    assert "3 bad rows" in page
    assert str(settings.STAGED) not in page + json.dumps(found)
    refused = post(client_of, upload, "confirm/", {**ChoicesForm.first(upload), "benchmark": "b", "into": ""})
    assert refused.status_code in (302, 422)
    upload.refresh_from_db()
    if upload.state == "received":
        checked(upload)
        refused = post(client_of, upload, "confirm/", ChoicesForm.first(upload))
    assert b"Some rows are bad" in refused.content
    assert rows() == NOTHING
    upload = brought(upload, skip_bad="on")
    assert (upload.state, upload.report["left_out"], rows()["Sample"], rows()["Response"]) == ("done", 3, 3, 6)


def test_what_follows_from_a_bad_sample_is_told_once_and_each_cause_says_what_mends_it(sent, client_of):
    bad = [
        {"id": "a", "instruction": "Which?"},
        {"key": "b", "instruction": "Which?", "criteria": ["A cat"]},
        {"key": "c", "instruction": "Which?", "criteria": [{"text": "A cat", "shown_to": "everybody"}]},
    ]
    answers = [{"sample": "b", "model": f"model-{n}", "text": "A cat"} for n in range(4)]
    upload = checked(sent(bundle(bad, responses=answers, labels=[], judgments=[])))
    assert (upload.found["bad"], upload.found["following"], upload.own_bad) == (7, 4, 3)
    page = flat(get(client_of, upload, "").decode())
    assert "3 bad rows, 4 more follow from them" in page
    assert "did you mean key?" in page
    assert "is none of staff, campaign or public" in page
    assert "Write public for everybody" in page
    assert "Adds the tip before dividing" in page
    assert "Record" not in page
    assert "Check again" in page
    assert ">Import<" not in get(client_of, upload, "").decode()


def failed(upload, client_of):
    assert worker.work(upload)
    upload.refresh_from_db()
    assert upload.state == "failed"
    return flat(get(client_of, upload, "").decode())


def test_a_file_that_is_no_table_of_ours_is_told_what_it_is(sent, client_of, api):
    assert "in no format known here" in failed(sent({"mine.csv": b"foo,bar\n"}), client_of), "no rows"
    assert "mine.csv is a picture (PNG), not a table" in failed(sent({"mine.csv": picture()}), client_of)
    assert begin(api, {"mine.csv": b""}).json() == {"files": ["mine.csv is empty."]}


def test_a_line_that_is_not_json_is_named_in_the_sentence_with_an_example(sent, client_of):
    raw = b'{"key": "a", "instruction": "Which?"}\n{"key": "b", "instruction": "Wh\n'
    upload = checked(sent({"samples.jsonl": raw}))
    page = flat(get(client_of, upload, "").decode())
    assert "samples.jsonl, line 2</span>: is not JSON: no quote closes the text that begins at character 29" in page
    assert "Example: <span" in page
    assert "&quot;road-signs.jpg&quot;]}" in page


def test_remarks_of_one_kind_are_one_line_and_ask_for_no_cure(sent, client_of):
    row = {"instruction": "Two?", "image": "https://x.org/1.jpg", "type": "basic", "num_of_component": 2,
           "components": ["one", "two"]}  # fmt: skip
    kinds = [(["math", "math"], [5, 4]), (["style", "style"], [4, 4]), (["math", "style"], [3, 4])]
    rows = [
        row | {"instruction": f"{n}?", "component_type": types, "component_weight": weights}
        for n, (types, weights) in enumerate(kinds)
    ]
    upload = checked(sent({"all.json": json.dumps(rows).encode()}))
    counts = [(reason["field"], reason["count"]) for reason in upload.found["reasons"]]
    assert ("component_type", 2) in counts
    assert ("component_weight", 3) in counts
    assert "What mends it" not in flat(get(client_of, upload, "").decode())


def test_a_file_added_at_a_benchmark_is_checked_for_it(sent, client_of, api):
    brought(checked(sent(bundle())), benchmark="boats")
    page = flat(client_of("curator").get("/bank/uploads/?benchmark=boats@1"))
    assert f"for {Benchmark.objects.get().title}" in page
    assert 'name="benchmark" value="boats@1"' in page
    raw = b'{"sample": "nowhere", "model": "m", "text": "A"}\n'
    pk = begin(api, {"answers.jsonl": raw}, benchmark="boats@1").json()["id"]
    assert send(api, pk, 0, raw).json()["state"] == "received"
    upload = checked(Upload.objects.get(pk=pk))
    assert (upload.choices["benchmark"], upload.choices["version"], upload.found["bad"]) == ("boats", "1", 1)
    assert begin(api, {"answers.jsonl": raw}, benchmark="nobody").status_code == 400


def test_checked_files_of_one_name_are_one_line_of_the_start_page_and_can_be_dismissed(sent, client_of):
    first, second = (checked(sent(bundle(SAMPLES[:3], responses=[], labels=[], judgments=[]))) for _ in range(2))
    client = client_of("curator")
    page = flat(client.get("/"))
    assert page.count(f"{first.name} is checked and waits") == 1
    assert "sent 2 times" in page
    client.post("/bank/uploads/dismiss/", {"name": first.name})
    assert "is checked and waits" not in flat(client.get("/"))
    assert {Upload.objects.get(pk=each.pk).state for each in (first, second)} == {"cancelled"}


@pytest.mark.parametrize("shape", templates.SHAPES)
def test_the_templates_come_in_as_they_are(sent, client_of, shape):
    files = {}
    for part in templates.ROWS:
        answer = client_of("curator").get(f"/bank/uploads/templates/{part}.{shape}")
        assert "attachment" in answer.headers["Content-Disposition"]
        files[f"{part}.{shape}"] = answer.content
    for row in templates.ROWS["samples"]:
        files |= {name: picture(kind="JPEG") for name in row["images"]}
    assert checked(sent(files)).found["bad"] == 0


def get(client_of, upload, path):
    answer = client_of("curator").get(f"/bank/uploads/{upload.pk}/{path}")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def post(client_of, upload, path, data=None):
    return client_of("curator").post(f"/bank/uploads/{upload.pk}/{path}", data or {})


def test_another_version_stands_beside_the_old_one_which_stays_as_it_is_and_says_what_differs(sent, client_of):
    brought(checked(sent(bundle())), benchmark="boats")
    changed = [
        SAMPLES[0],
        SAMPLES[1] | {"instruction": "How many ships?"},
        SAMPLES[2] | {"criteria": [{"text": "Names the wombat."}]},
        *SAMPLES[3:6],
        SAMPLES[0] | {"key": "new"},
    ]
    upload = sent({"boats.zip": zipped(bundle(changed, responses=RESPONSES[:12]))})
    found = checked(upload).found
    diff = found["diff"]
    counts = {name: diff[name] for name in ("against", "added", "changed", "missing", "same")}
    assert counts == {"against": "1", "added": 1, "changed": 2, "missing": 2, "same": 4}
    assert (diff["added_keys"], diff["missing_keys"]) == (["new"], ["s6", "s7"])
    first, second = diff["changes"]
    assert first["fields"] == [{"name": "instruction", "old": SAMPLES[1]["instruction"], "new": "How many ships?"}]
    assert [field["name"] for field in second["fields"]] == ["criteria"]
    assert "wombat" not in json.dumps(found)
    assert "quokka" not in json.dumps(found)
    assert found["bad"] == 2, "added to version 1, changed samples are bad rows"
    assert "A new version beside it" in get(client_of, upload, "").decode()
    upload = brought(upload, into="new", version="2")
    assert (upload.state, upload.found["bad"]) == ("done", 0)
    assert upload.report["made"]["samples of version 1 that are not in this one"] == 2
    old, new = (Benchmark.objects.get(slug="boats", version=version) for version in "12")
    assert (old.samples.in_use().count(), new.samples.in_use().count()) == (8, 7)


# -- ended ----------------------------------------------------------------------------------------------------------


class Stop(Exception):
    """The process is killed here."""


@pytest.mark.parametrize("state", ["receiving", "received", "checking", "checked", "importing", "waiting"])
def test_cancelled_in_any_state_nothing_is_left(sent, people, state, settings, monkeypatch, client_of):
    if state == "receiving":
        upload = actions.start(by=people["curator"], files=[("a", 10)])
        actions.receive(upload=upload, offset=0, length=5, pieces=[b"01234"])
    else:
        upload = sent(bundle())
    if state in ("checked", "importing", "waiting"):
        checked(upload)
        upload.found["checked"] = upload.choices = upload.choices | {"benchmark": "boats"}
        actions.confirm(upload=upload, choices=upload.choices) if state != "checked" else None
    if state in ("checking", "importing"):
        calls = []

        def in_the_middle(self, part, count):
            calls.append(part)
            if len(calls) == (5 if state == "importing" else 1):
                answer = post(client_of, upload, "cancel/")
                assert answer.status_code == 302
                assert actions.cancel(upload=upload) is False, "its worker was asked"
                self.looked = 0.0

        monkeypatch.setattr(worker.ProgressReporter, "__call__", in_the_middle)
        assert worker.work(upload)
    else:
        assert post(client_of, upload, "cancel/").status_code == 302
    upload.refresh_from_db()
    assert (upload.state, rows(), left_behind(settings)) == ("cancelled", NOTHING, [])
    assert not worker.is_waiting()
    with pytest.raises(actions.WrongState):
        actions.cancel(upload=upload)


def test_a_worker_that_died_leaves_its_upload_to_the_next(sent, settings, monkeypatch):
    upload = sent(bundle())
    tell = worker.ProgressReporter.__call__

    def killed(self, part, count):
        raise Stop

    for after, state in (("checking", "checked"), ("importing", "done")):
        monkeypatch.setattr(worker.ProgressReporter, "__call__", killed)
        monkeypatch.setattr(worker, "_fail", lambda *a: (_ for _ in ()).throw(Stop()))
        with pytest.raises(Stop):
            worker.work(upload)
        monkeypatch.undo()
        upload.refresh_from_db()
        assert (upload.state, rows()) == (after, NOTHING)
        assert worker.is_waiting()
        assert worker.work(upload)
        upload.refresh_from_db()
        assert upload.state == state
        if state == "checked":
            actions.confirm(upload=upload, choices=upload.choices | {"benchmark": "boats"})
    assert rows()["Sample"] == 8
    assert worker.ProgressReporter.__call__ is tell


def test_an_upload_waits_while_the_disk_of_its_worker_is_full(sent, monkeypatch):
    upload = sent(bundle())

    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    for step, refusal, after in ((worker, "keep_preview", "checked"), (engine, "_attempt", "done")):
        monkeypatch.setattr(step, refusal, full)
        for _ in range(worker.TRIES + 1):
            with pytest.raises((OSError, NotNow), match="o space"):
                worker.work(upload)
        monkeypatch.undo()
        assert worker.is_waiting()
        assert worker.work(upload)
        upload.refresh_from_db()
        assert upload.state == after
        if after == "checked":
            actions.confirm(upload=upload, choices=upload.choices | {"benchmark": "boats"})
    assert rows()["Sample"] == 8


def test_a_step_that_kills_its_worker_every_time_is_given_up(sent):
    upload = sent(bundle())
    Upload.objects.filter(pk=upload.pk).update(tries=worker.TRIES)
    assert worker.work(upload)
    upload.refresh_from_db()
    assert upload.state == "failed"
    assert "in smaller files" in upload.fault


def test_what_is_no_benchmark_or_not_what_was_sent_fails_in_words(sent, settings, people):
    for name, data in (("x.zip", b"PK\x03\x04 is no zip"), ("x.txt", b"hello"), ("x.jsonl", b"\xff\xfe{\x00")):
        upload = sent({name: data})
        assert worker.work(upload)
        upload.refresh_from_db()
        assert upload.state == "failed", name
        assert upload.fault
        assert str(settings.STAGED) not in upload.fault
    upload = actions.start(by=people["curator"], files=[("a.jsonl", 4)], sha256="0" * 64)
    actions.receive(upload=upload, offset=0, length=4, pieces=[b"0123"])
    assert worker.work(upload)
    upload.refresh_from_db()
    assert (upload.state, "its SHA-256 is another" in upload.fault) == ("failed", True)
    assert rows() == NOTHING


def test_uploads_that_nobody_goes_on_with_are_swept_after_a_day(sent, settings, people):
    begun = actions.start(by=people["curator"], files=[("a", 10)])
    waits = checked(sent(bundle()))
    (settings.STAGED / "stranger").mkdir()
    (settings.STAGED / "form.upload").touch()
    killed = Path(settings.MEDIA_ROOT, "incoming", "of-a-killed-import")
    (killed / "unpacked").mkdir(parents=True)
    (killed / "lock").touch()
    os.utime(killed, (0, 0))
    assert actions.sweep() == 0
    assert not killed.exists()
    assert actions.sweep(now=timezone.now() + timedelta(hours=25)) == 4
    for upload in (begun, waits):
        upload.refresh_from_db()
        assert (upload.state, "for a day" in upload.fault) == ("cancelled", True)
    assert left_behind(settings) == []


def test_responses_alone_find_their_benchmark_and_take_the_name_of_their_model(sent):
    brought(checked(sent(bundle())), benchmark="boats")
    more = [{"sample": f"s{n}", "text": f"third: {n}"} for n in range(8)]
    upload = checked(sent({"third.jsonl": lines(more)}))
    assert (upload.found["parts"], upload.found["proposed"]["benchmark"]) == (["responses"], "boats")
    assert upload.found["bad"] == 8
    assert "field Model" in upload.found["reasons"][0]["reason"]
    upload = brought(upload, model="m3")
    assert (upload.state, upload.report["made"]) == ("done", {"models": 1, "responses": 8})
    strange = checked(sent({"third.jsonl": lines([{"sample": "nowhere", "model": "m", "text": "x"}])}))
    assert "Name the benchmark" in strange.found["fault"]


@pytest.mark.check("C11")
def test_two_uploads_of_the_same_make_one_set(sent):
    first, second = (checked(sent(bundle())) for _ in "12")
    for upload in (first, second):
        actions.confirm(upload=upload, choices=upload.choices | {"benchmark": "boats"})
    assert worker.work_all() == 2
    assert rows()["Sample"] == 8
    assert {upload.state for upload in Upload.objects.all()} == {"done"}
