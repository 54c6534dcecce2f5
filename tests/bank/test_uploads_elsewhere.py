"""Uploads in object storage: received by one machine, checked and imported by others with data folders of their own."""

import hashlib
import io
import json
import signal
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from bank import images, objects
from bank.intake.uploads import actions, staging, worker
from bank.models import SampleImage, Upload
from tests.bank.conftest import picture
from tests.bank.test_uploads_killed import CONFIRM, DIES, PREPARE, SEEN
from tests.judging.outside import Installation, installation

pytestmark = pytest.mark.both_databases

ROWS = 400


def begun(people, files):
    return actions.start(by=people["curator"], files=[(name, len(data)) for name, data in files.items()])


def received(people, files, *, size):
    upload, stream = begun(people, files), b"".join(files.values())
    for offset in range(0, len(stream), size):
        piece = stream[offset : offset + size]
        upload = actions.receive(upload=upload, offset=offset, length=len(piece), pieces=[piece[:5], piece[5:]])
    return upload


def elsewhere(settings, tmp_path):
    """As on another machine."""
    settings.MEDIA_ROOT, settings.STAGED = tmp_path / "other" / "media", tmp_path / "other" / "staged"


def test_pieces_across_the_borders_of_files_are_read_on_another_machine(bucket, people, settings, tmp_path):
    files = {"b/one.jsonl": b"0123456789", "b/empty": b"", "b/two.bin": bytes(range(256)) * 5}
    upload = received(people, files, size=333)
    names = [name.rpartition("/")[2] for name in bucket.names()]
    assert sorted(names) == sorted(upload.pieces)
    assert len(names) == 4
    assert not any(b"0123456789" in bucket.read(name) for name in bucket.names())
    elsewhere(settings, tmp_path)
    with staging.opened(upload) as here:
        assert {name: (here.parent / name).read_bytes() for name in files} == files
        assert oct(staging.folder(upload).stat().st_mode & 0o777) == "0o700"
    assert staging.digest(upload) == hashlib.sha256(b"".join(files.values())).hexdigest()
    assert not [path for path in (tmp_path / "other").rglob("*") if path.is_file()]


def test_a_piece_that_broke_off_or_came_damaged_is_written_over(bucket, people):
    upload = begun(people, {"x.jsonl": b"0123456789"})
    receive = actions.receive
    with pytest.raises(actions.BadInput):
        receive(upload=upload, offset=0, length=9, pieces=[b"XXXXXXXXX"], sha256="0" * 64)
    assert receive(upload=upload, offset=0, length=5, pieces=[b"012"]).received == 3  # it ended early
    with pytest.raises(actions.WrongOffset):
        receive(upload=upload, offset=5, length=5, pieces=[b"56789"])
    assert receive(upload=upload, offset=3, length=7, pieces=[b"3456789"]).state == "received"
    with staging.opened(upload) as here:
        assert here.read_bytes() == b"0123456789"


def test_a_zip_with_a_picture_is_previewed_checked_and_imported_and_leaves_nothing(
    bucket, people, client_of, settings, tmp_path
):
    rows = [
        {"key": "1", "instruction": "See.", "images": ["a.png"]},
        {"key": "2", "instruction": "See.", "images": ["gone.png"]},
        {"key": "1", "instruction": "Again."},
    ]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("samples.jsonl", "\n".join(map(json.dumps, rows)))
        archive.writestr("a.png", picture())
    upload = received(people, {"boats.zip": buffer.getvalue()}, size=200)
    elsewhere(settings, tmp_path)
    assert worker.work_all() == 1
    curator = client_of("curator")
    page = curator.get(f"/bank/uploads/{upload.pk}/")
    assert "already occurs" in page.content.decode()
    problems = b"".join(curator.get(f"/bank/uploads/{upload.pk}/problems.csv").streaming_content).decode()
    assert "already occurs" in problems
    shown = curator.get(f"/bank/uploads/{upload.pk}/images/0")
    assert b"".join(shown.streaming_content)[:2] == b"\xff\xd8"
    assert curator.get(f"/bank/uploads/{upload.pk}/images/1").status_code == 404
    upload.refresh_from_db()
    actions.confirm(upload=upload, choices=upload.choices | {"skip_bad": True})
    assert worker.work_all() == 1
    upload.refresh_from_db()
    image = SampleImage.objects.get()
    assert upload.state == "done"
    left = [name for name in bucket.names() if not name.startswith("media/")]
    assert sorted(name.rpartition("/")[2] for name in left) == ["problems.csv"]
    assert f"media/{image.path}" in bucket.names()
    assert not [path for path in (tmp_path / "other").rglob("*") if path.is_file()]


def test_a_cancelled_upload_and_one_that_nobody_went_on_with_leave_nothing(bucket, people):
    first, second = (received(people, {"x.jsonl": b"0123456789"}, size=5) for _ in range(2))
    assert actions.cancel(upload=first)
    assert not [name for name in bucket.names() if first.folder in name]
    with pytest.raises(actions.WrongState):
        actions.receive(upload=first, offset=0, length=10, pieces=[b"0123456789"])
    Upload.objects.filter(pk=second.pk).update(state="checked", changed_at=timezone.now() - timedelta(days=2))
    bucket.client.put_object(Bucket=bucket.name, Key="staged/stranger/files/x", Body=b"x")
    actions.sweep()
    assert [name.partition("/")[2] for name in bucket.names()] == ["stranger/files/x"]  # it may still be recorded
    actions.sweep(now=timezone.now() + timedelta(days=2))
    assert bucket.names() == []


def test_while_the_storage_is_away_an_upload_is_refused_for_now_or_checked_later(bucket, people, client_of, settings):
    upload = received(people, {"x.jsonl": b'{"key": "1", "instruction": "See."}'}, size=50)
    bucket.use(settings, S3_ENDPOINT="http://127.0.0.1:9")
    with pytest.raises(objects.Away):
        worker.work_all()
    curator = client_of("curator")
    curator.raise_request_exception = False
    begun = curator.post("/api/v1/uploads/", {"files": [{"name": "a", "size": 3}]}, content_type="application/json")
    to, piece = f"/api/v1/uploads/{begun.json()['id']}/", "application/offset+octet-stream"
    sent = curator.patch(to, b"abc", content_type=piece, headers={"Upload-Offset": "0"})
    assert (sent.status_code, Upload.objects.get(pk=begun.json()["id"]).received) == (503, 0)
    with pytest.raises(objects.Away):
        images.ingest(picture())  # it is no fault of the picture
    bucket.use(settings)
    assert worker.work_all() == 1
    upload.refresh_from_db()
    assert (upload.state, upload.tries) == ("checked", 0)


WORK = "from bank.intake.uploads.worker import work_all; answer = work_all()"


@pytest.fixture
def machines(tmp_path, bucket_of):
    """A web server and two workers: one database, one bucket, data folders of their own."""
    bucket = bucket_of()
    with installation(tmp_path / "web") as web:
        database = web.environment["DATABASE_URL"]
        made = [web, *(Installation(tmp_path / name, database) for name in ("first", "second"))]
        for each in made:
            each.environment |= bucket.environment
        yield (*made, bucket)


def test_workers_on_other_machines_go_on_where_one_was_killed(machines, tmp_path):
    web, first, second, bucket = machines
    _, name = web.ask(PREPARE.format(rows=ROWS))
    assert not list((tmp_path / "web").rglob("boats.jsonl"))
    assert first.run(DIES.format(part="samples")).returncode == -signal.SIGKILL
    assert web.sql("SELECT state FROM bank_upload") == [("checking",)]
    second.ask(WORK)
    assert web.sql("SELECT state FROM bank_upload") == [("checked",)]
    assert web.ask(CONFIRM) == "boats"
    assert second.run(DIES.format(part="write")).returncode == -signal.SIGKILL
    assert web.ask(SEEN) == 0
    web.sql("UPDATE bank_import SET until = '2026-01-01 00:00:00'")  # a minute later
    first.environment["EVALSITE_DATA"] = str(tmp_path / "third")
    first.ask(WORK)
    assert (web.sql("SELECT state FROM bank_upload"), web.ask(SEEN)) == ([("done",)], ROWS)
    assert [one.rpartition("/")[2] for one in bucket.names() if name in one] == []
    assert not list(Path(tmp_path / "third").rglob("boats.jsonl"))
