"""Large exports: written by a worker, sealed, downloaded by who asked for them while they may, and gone after a day."""

import os
import signal
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import rights
from accounts.jobs import STOPPING
from accounts.models import AuditEntry, Grant, Notice, Right
from accounts.tokens import make_token
from bank import objects
from bank.intake import export_files
from bank.models import CriteriaAccess, ExportFile
from tests.judging.outside import installation

SAMPLES = {"what": "samples", "shape": "jsonl"}
HIDDEN = SAMPLES | {"criteria": "on", "reason": "backup"}
ADDRESS = "/bank/benchmarks/small@1/export/"


@pytest.fixture
def large(small, monkeypatch):
    """``small``, which counts as large."""
    monkeypatch.setattr(export_files, "MANY", 1)
    return small


@pytest.fixture
def curator(client_of):
    return client_of("curator")


def written():
    export_files.write_all()
    return ExportFile.objects.latest("pk")


def body(answer):
    return b"".join(answer.streaming_content)


def test_no_level_of_headings_is_skipped_where_no_file_is_kept(curator):
    page = curator.get("/bank/exports/").content.decode()
    assert "No file is kept for you</h2>" in page
    assert "<h3" not in page


def test_a_large_export_is_written_by_a_worker_and_is_what_a_small_one_is(small, curator, monkeypatch, settings):
    at_once = body(curator.post(ADDRESS, SAMPLES))
    monkeypatch.setattr(export_files, "MANY", 1)
    page = curator.post(ADDRESS, SAMPLES, follow=True)
    assert page.redirect_chain == [("/bank/exports/", 302)]
    assert "Being written" in page.content.decode()
    assert curator.get("/bank/exports/1/").status_code == 404
    file = written()
    assert (file.state, file.size) == ("ready", len(at_once))
    answer = curator.get(f"/bank/exports/{file.pk}/")
    assert body(answer) == at_once
    assert answer["Content-Length"] == str(len(at_once))
    assert answer["Content-Disposition"] == 'attachment; filename="small-1-samples.jsonl"'
    assert answer["Cache-Control"] == "no-store"
    assert "is ready" in Notice.objects.get(person=file.by).text


def test_what_lies_there_is_sealed_and_readable_by_the_site_alone(large, curator, settings):
    curator.post(ADDRESS, HIDDEN)
    file = written()
    (kept,) = settings.EXPORTS.iterdir()
    assert b"Three boats" not in kept.read_bytes()
    assert oct(settings.EXPORTS.stat().st_mode & 0o777) == "0o700"
    assert b"Three boats" in body(curator.get(f"/bank/exports/{file.pk}/"))


def test_hidden_text_is_logged_when_it_is_written_and_again_at_each_download(large, curator, people):
    curator.post(ADDRESS, HIDDEN)
    assert not CriteriaAccess.objects.exists()
    file = written()
    read = CriteriaAccess.objects.get()
    assert (read.who, read.how, read.reason, read.sample_count) == (people["curator"], "export", "backup", 2)
    exported = AuditEntry.objects.filter(action="criteria-exported")
    assert [entry.about for entry in exported] == ["samples of small@1"]
    for times in (1, 2):
        body(curator.get(f"/bank/exports/{file.pk}/"))
        assert [entry.about for entry in exported.order_by("number")[1:]] == [file.name] * times


def test_nobody_else_sees_it_or_downloads_it(large, curator, client_of):
    curator.post(ADDRESS, SAMPLES)
    file = written()
    for role in ("administrator", "researcher", "annotator", "anonymous"):
        other = client_of(role)
        assert other.get(f"/bank/exports/{file.pk}/").status_code in (302, 403, 404)
        assert file.name not in other.get("/bank/exports/", follow=True).content.decode()
        assert other.get(f"/api/v1/exports/{file.pk}/file/").status_code in (401, 403, 404)


def test_a_right_that_has_ended_is_asked_for_when_it_is_written_and_at_the_download(large, client_of, people):
    curate = {"benchmark": "small", "to": people["researcher"], "right": Right.CURATE, "by": people["curator"]}
    rights.grant(**curate)
    client = client_of("researcher")
    assert client.post(ADDRESS, HIDDEN).status_code == 302
    Grant.objects.all().delete()
    assert (written().state, written().size) == ("failed", 0)
    assert "no right to it any more" in written().fault
    assert not CriteriaAccess.objects.exists()
    rights.grant(**curate)
    client.post(ADDRESS, HIDDEN)
    file = written()
    assert b"Three boats" in body(client.get(f"/bank/exports/{file.pk}/"))
    Grant.objects.all().delete()
    assert client.get(f"/bank/exports/{file.pk}/").status_code == 403
    rights.grant(**curate | {"benchmark": "other"})
    assert client.get(f"/bank/exports/{file.pk}/").status_code == 403


def test_a_script_is_told_where_the_file_will_be(large, people):
    client = Client(headers={"Authorization": f"Token {make_token(person=people['curator'])[1]}"})
    answer = client.post(f"/api/v1/benchmarks/{large.pk}/export/", SAMPLES, content_type="application/json")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    place = answer["Location"]
    again = client.post(f"/api/v1/benchmarks/{large.pk}/export/", SAMPLES, content_type="application/json")
    assert again["Location"] == place
    waiting = client.get(place)
    assert (waiting.status_code, int(waiting["Retry-After"]) > 0) == (202, True)
    file = written()
    assert body(client.get(place)).count(b"\n") == 2
    (listed,) = client.get("/api/v1/exports/").json()["results"]
    assert (listed["state"], listed["size"], listed["file"]) == ("ready", file.size, place)
    file.state, file.fault = "failed", "It was too much."
    file.save()
    failed = client.get(place)
    assert (failed.status_code, failed.json()) == (409, {"detail": "It was too much."})


def test_any_export_can_be_left_to_a_worker(small, curator):
    assert curator.post(ADDRESS, SAMPLES | {"later": "on"}).status_code == 302
    assert written().state == "ready"


def test_labels_and_judgments_in_great_number_are_written_by_a_worker_for_staff_alone(
    world, client_of, people, monkeypatch
):
    address = "/judging/judgments/export/?status=ok"
    expected = body(client_of("curator").post(address, {"shape": "csv"}))
    labels = body(client_of("curator").get("/campaigns/1/data/download/?as=jsonl"))
    monkeypatch.setattr(export_files, "MANY", 0)
    assert client_of("researcher").post(address, {"shape": "csv"}).streaming
    assert client_of("curator").post(address, {"shape": "csv"}).status_code == 302
    file = written()
    assert body(client_of("curator").get(f"/bank/exports/{file.pk}/")) == expected
    assert client_of("curator").get("/campaigns/1/data/download/?as=jsonl").status_code == 302
    file = written()
    assert body(client_of("curator").get(f"/bank/exports/{file.pk}/")) == labels
    assert labels


def test_it_goes_after_a_day_and_so_does_what_a_dead_worker_left(large, curator, settings):
    curator.post(ADDRESS, SAMPLES)
    file = written()
    left, begun = settings.EXPORTS / "left", settings.EXPORTS / "begun"
    for path in (left, begun):
        path.write_bytes(b"?")
    old = (timezone.now() - timedelta(days=2)).timestamp()
    os.utime(left, (old, old))
    export_files.remove_old()
    assert ({path.name for path in settings.EXPORTS.iterdir()}) == {file.place, "begun"}
    ExportFile.objects.update(ended_at=timezone.now() - timedelta(days=1, seconds=1))
    export_files.remove_old()
    assert not ExportFile.objects.exists()
    assert [path.name for path in settings.EXPORTS.iterdir()] == ["begun"]


def test_a_file_that_is_gone_is_asked_for_again(large, curator, settings):
    curator.post(ADDRESS, SAMPLES)
    file = written()
    (settings.EXPORTS / file.place).unlink()
    assert "Ask for it again" in curator.get(f"/bank/exports/{file.pk}/", follow=True).content.decode()


def test_nobody_has_more_than_a_few_written_at_once(large, curator):
    for run in range(1, 6):
        assert curator.post(ADDRESS, SAMPLES | {"run": run}).status_code == 302
    refused = curator.post(ADDRESS, SAMPLES | {"run": 6})
    assert (refused.status_code, ExportFile.objects.count()) == (200, 5)
    assert "Wait for one of them" in refused.content.decode()


def test_a_worker_that_stops_or_has_no_space_leaves_it_to_the_next(large, curator, settings, monkeypatch):
    curator.post(ADDRESS, SAMPLES)
    monkeypatch.setattr(STOPPING, "is_set", lambda: True)
    assert (written().state, written().tries) == ("waiting", 0)
    monkeypatch.undo()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        export_files.write_all()
    file = ExportFile.objects.get()
    assert (file.state, file.tries, list(settings.EXPORTS.iterdir())) == ("waiting", 0, [])
    monkeypatch.undo()
    assert written().state == "ready"


def test_one_that_kills_its_worker_is_given_up(large, curator):
    curator.post(ADDRESS, SAMPLES)
    ExportFile.objects.update(tries=export_files.TRIES)
    assert (written().state, "was stopped" in written().fault) == ("failed", True)


def test_it_lies_sealed_in_object_storage_and_is_removed_there(bucket, large, curator, settings):
    curator.post(ADDRESS, HIDDEN)
    file = written()
    assert [name for name in bucket.names() if name.startswith("exports/")] == [f"exports/{file.place}"]
    assert b"Three boats" not in bucket.read(f"exports/{file.place}")
    assert list(settings.EXPORTS.iterdir()) == []
    assert b"Three boats" in body(curator.get(f"/bank/exports/{file.pk}/"))
    ExportFile.objects.update(ended_at=timezone.now() - timedelta(days=2))
    export_files.remove_old()
    assert list(objects.of("exports").listed()) == []


PREPARE = """
from accounts.models import User
from bank.intake import export_files
from bank.models import Benchmark, Sample
by = User.objects.create_user("curator", role="curator")
benchmark = Benchmark.objects.create(slug="boats", title="Boats")
Sample.objects.bulk_create(Sample(benchmark=benchmark, key=f"k{n}", instruction="How many?") for n in range(5_000))
asked = {"what": "samples", "shape": "jsonl", "benchmark": benchmark.pk, "pictures": False, "criteria": False}
asked |= {"analyses": False, "names": False, "reason": "", "run": None, "model": ""}
export_files.give("benchmark", by, asked, later=True)
answer = True
"""
DIES = """
import os, signal
from bank.intake import exports, export_files
made = exports.present
def die_in_the_middle(record, columns):
    if record["key"] == "k2500":
        os.kill(os.getpid(), signal.SIGKILL)
    return made(record, columns)
exports.present = die_in_the_middle
export_files.write_all()
"""
READ = """
from bank.intake.export_files import downloaded
from bank.models import ExportFile
answer = len(b"".join(downloaded(ExportFile.objects.get()).streaming_content).splitlines())
"""


def test_a_worker_that_is_killed_in_the_middle_leaves_nothing_that_can_be_downloaded(tmp_path):
    with installation(tmp_path) as here:
        assert here.ask(PREPARE)
        assert here.run(DIES).returncode == -signal.SIGKILL
        assert here.sql("SELECT state, tries FROM bank_exportfile") == [("waiting", 1)]
        here.manage("worker", "--until-idle")
        assert here.sql("SELECT state FROM bank_exportfile") == [("ready",)]
        assert here.ask(READ) == 5_000
