"""Uploads of people who curate single benchmarks: samples of these come in, and nothing of others is told or kept."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts import rights
from accounts.models import Right
from bank.intake.formats.mapping import ColumnMap
from bank.intake.imports import kept_maps
from bank.intake.uploads import worker
from bank.models import Benchmark, EvaluatedModel, KeptMap, Response, Sample, Upload

pytestmark = pytest.mark.django_db
NEW = [{"key": "new", "instruction": "What is new?", "criteria": [{"text": "Says what is new."}]}]


@pytest.fixture
def granted(small, people, settings, media):
    """The researcher curates the benchmark of ``small``, which is public, and nothing else."""
    Benchmark.objects.filter(pk=small.pk).update(visibility="public")
    return rights.grant(benchmark=small.slug, to=people["researcher"], right=Right.CURATE, by=people["curator"])


@pytest.fixture
def send(client_of):
    """``send(rows, name, benchmark)`` sends a file as the researcher, and has it checked: its upload, or the answer."""

    def begin(rows, *, name="samples.jsonl", benchmark="small", role="researcher"):
        data = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        files = SimpleUploadedFile(name, data.encode())
        answer = client_of(role).post("/api/v1/uploads/", {"files": files, "benchmark": benchmark})
        if answer.status_code != 201:
            return answer
        upload = Upload.objects.get(pk=answer.json()["id"])
        worker.work(upload)
        return Upload.objects.get(pk=upload.pk)

    return begin


def confirm(client_of, upload, **choices):
    """Confirm, and again where it was checked again for other choices: the first answer."""
    path, answers = f"/api/v1/uploads/{upload.pk}/confirm/", []
    for _ in range(2):
        answers.append(client_of("researcher").post(path, json.dumps(choices), "application/json"))
        worker.work(upload)
        upload.refresh_from_db()
    return answers[0]


def test_samples_of_ones_benchmark_come_in(granted, send, client_of):
    upload = send(NEW)
    assert upload.state == "checked"
    assert confirm(client_of, upload).status_code == 200
    assert upload.state == "done"
    assert Sample.objects.get(key="new").benchmark.slug == "small"
    client = client_of("researcher")
    for page in ("/bank/uploads/", "/bank/uploads/?benchmark=small@1", f"/bank/uploads/{upload.pk}/"):
        assert client.get(page).status_code == 200
    page = client.get("/bank/uploads/").content.decode()
    assert "For which benchmark?" in page
    assert ("Questions with pictures" in page, "Verdicts of people" in page) == (True, False)
    assert "Add a file" in client.get("/leaderboards/small/steps/").content.decode()


def test_nothing_is_sent_to_another_benchmark_whether_there_is_one_or_not(granted, send, client_of):
    Benchmark.objects.create(slug="secret", version="7")
    said = [send(NEW, benchmark=name).content for name in ("", "secret", "secret@1", "absent", "small-", "@small")]
    assert len(set(said)) == 1
    assert b"Name a benchmark that you curate" in said[0]
    pages = [client_of("researcher").get(f"/bank/uploads/?benchmark={name}") for name in ("secret", "absent")]
    assert [page.status_code for page in pages] == [404, 404]
    upload = send(NEW)
    refused = [confirm(client_of, upload, benchmark=name) for name in ("secret", "absent", "secret-1")]
    assert {(answer.status_code, answer.content) for answer in refused} == {(400, refused[0].content)}
    assert b"This upload is for small alone." in refused[0].content
    assert not Sample.objects.filter(key="new").exists()
    assert set(Benchmark.objects.values_list("slug", flat=True)) == {"small", "secret"}


def test_the_check_tells_nothing_of_other_benchmarks(granted, send, folder, manage):
    """By the file's name, its format or the samples in it, an unlimited upload finds them."""
    rows, answers = [{"key": "theirs", "instruction": "Whose?"}], [{"sample": "theirs", "model": "m9", "text": "x"}]

    def told():
        found = [send(rows, name="secret.jsonl"), send(answers, name="responses.jsonl")]
        return [(upload.state, upload.fault, upload.found, upload.choices) for upload in found]

    before = told()
    status, _, words = manage("import_benchmark", "generic", folder("samples", rows), "--benchmark", "secret")
    assert status == 0, words
    assert told() == before
    assert "secret" not in json.dumps(before[0][2])


def test_a_new_version_is_private_unless_its_sender_may_publish(granted, send, client_of, people):
    def made(version):
        upload = send([*NEW, {"key": version, "instruction": "More."}])
        confirm(client_of, upload, version=version, visibility="public")
        assert upload.state == "done", (upload.fault, upload.found)
        return Benchmark.objects.get(slug="small", version=version).visibility

    assert made("2") == "private"
    rights.grant(benchmark="small", to=people["researcher"], right=Right.RELEASE)
    assert made("3") == "public"


def test_answers_and_names_of_models_do_not_come_in(granted, send, client_of):
    models = set(EvaluatedModel.objects.values_list("name", flat=True))
    upload = send([{"sample": "a", "model": "m9", "text": "x"}], name="responses.jsonl")
    assert upload.state == "failed"
    assert "You can bring in samples" in upload.fault
    upload = send(NEW)
    answer = confirm(client_of, upload, parts=["samples", "responses"], version="2", anchor="m9")
    assert answer.status_code == 400
    confirm(client_of, upload, version="2", anchor="m9", model="m9")
    assert upload.state == "done"
    assert set(EvaluatedModel.objects.values_list("name", flat=True)) == models
    assert not Response.objects.filter(model__name="m9").exists()


def test_a_file_does_not_name_the_anchor(granted, client_of):
    packed = io.BytesIO()
    question = {
        "id": 7,
        "question": "Q?",
        "image_path": None,
        "level": "L",
        "capability": "C",
        "question_type": "compound",
    }
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("questions_with_criteria.json", json.dumps([question | {"criteria": "1. Says so."}]))
        archive.writestr("anchor.json", json.dumps([{"unique_idx": 7, "gen_model_id": "m9", "answer": "a"}]))
    sent = {"files": SimpleUploadedFile("mllm.zip", packed.getvalue()), "benchmark": "small"}
    upload = Upload.objects.get(pk=client_of("researcher").post("/api/v1/uploads/", sent).json()["id"])
    worker.work(upload)
    upload.refresh_from_db()
    assert (upload.found["format"], upload.found["parts"]) == ("mllm-bench", ["samples"])
    confirm(client_of, upload)
    assert upload.state == "done", (upload.fault, upload.found)
    assert Benchmark.objects.get().anchor is None
    assert not EvaluatedModel.objects.filter(name="m9").exists()


def test_what_others_said_of_columns_is_neither_used_nor_changed(granted, send, client_of, people):
    table = "nr,was\nnew,What is new?\n"
    theirs = ColumnMap(shape="samples", columns={"key": "nr", "instruction": "was"})
    kept_maps.keep(theirs, columns=["nr", "was"], by=people["curator"])
    assert send(table, name="t.csv", role="curator").state == "checked"
    upload = send(table, name="t.csv")
    assert upload.state == "mapping"
    assert "curator" not in json.dumps([upload.found, upload.map])
    page = client_of("researcher").get(f"/bank/uploads/{upload.pk}/columns/").content.decode()
    assert "Remember for files" not in page
    asked = {"map": {"shape": "samples", "columns": {"key": "nr", "hint": "was", "instruction": "was"}}, "keep": True}
    answer = client_of("researcher").post(f"/api/v1/uploads/{upload.pk}/map/", json.dumps(asked), "application/json")
    assert answer.status_code == 200, answer.content
    worker.work(Upload.objects.get(pk=upload.pk))
    confirm(client_of, Upload.objects.get(pk=upload.pk))
    assert Sample.objects.get(key="new").hint == "What is new?"
    assert KeptMap.objects.get().map == theirs.model_dump(exclude_defaults=True)


def test_uploads_of_others_are_not_there(granted, send, client_of):
    others = send(NEW, role="curator")
    mine = send(NEW)
    client = client_of("researcher")
    listed = client.get("/api/v1/uploads/").json()["results"]
    assert [row["id"] for row in listed] == [mine.pk]
    assert f"/bank/uploads/{others.pk}/" not in client.get("/bank/uploads/").content.decode()
    for page in ("", "progress/", "columns/", "problems.csv", "images/0/"):
        assert client.get(f"/bank/uploads/{others.pk}/{page}").status_code == 404, page
    for step in ("confirm", "cancel"):
        assert client.post(f"/bank/uploads/{others.pk}/{step}/").status_code == 404
        assert client.post(f"/api/v1/uploads/{others.pk}/{step}/", "{}", "application/json").status_code == 404
    client.post("/bank/uploads/dismiss/", {"name": others.name})
    others.refresh_from_db()
    assert others.state == "checked"
    assert client_of("curator").get(f"/bank/uploads/{mine.pk}/").status_code == 200


def test_a_right_that_has_ended_brings_nothing_in(granted, send, client_of):
    checked, waiting = send(NEW), send(NEW)
    client_of("researcher").post(f"/api/v1/uploads/{waiting.pk}/confirm/", "{}", "application/json")
    rights.end(grant=granted)
    worker.work(waiting)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.fault) == ("failed", "You may no longer change this benchmark.")
    assert client_of("researcher").post(f"/api/v1/uploads/{checked.pk}/confirm/").status_code == 403
    assert client_of("researcher").get("/bank/uploads/").status_code == 403
    assert not Sample.objects.filter(key="new").exists()
