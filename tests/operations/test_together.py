"""Everything at once on machines of their own: a web server and two workers with data folders that they do not share,
object storage between them, and kills. ``python -m tests.on_postgres -m soak tests/operations/test_together.py``
"""

import io
import json
import os
import signal
import subprocess
import threading
import time
import zipfile
from contextlib import suppress
from http.client import HTTPException

import pytest

from tests import forks
from tests.bank.conftest import picture
from tests.judging.outside import installation
from tests.judging.processes import CONCURRENCY, Case
from tests.judging.server import Server, after, answer
from tests.operations.served import PRODUCTION, asked, free_port, wait_for
from tests.operations.test_backup import empty
from tests.operations.test_object_storage import in_bucket

KILLS = 20
SAMPLES, DROPPED = 300, 200
TOKEN = """
from accounts.models import User
from accounts.tokens import make_token
answer = make_token(person=User.objects.create_user("staff", role="administrator"))[1]
"""


@pytest.fixture
def here(tmp_path, bucket_of):
    """An installation whose pictures, uploads and backups are in a bucket from the first one on."""
    with installation(tmp_path / "web") as outside:
        outside.bucket = bucket_of()
        made = in_bucket(outside)
        made.bucket = outside.bucket
        yield made
        made.close()


class Site:
    """The web server, which may be killed, and a script that speaks to its API until it answers."""

    def __init__(self, here, folder) -> None:
        self.here, self.log, self.port = here, folder / "log", free_port()
        self.token = here.ask(TOKEN)
        self.start()

    def start(self) -> None:
        command = ["manage.py", "serve", "--no-demo", "--no-worker", "--bind", f"127.0.0.1:{self.port}"]
        with self.log.open("a") as out:
            self.process = forks.start(command, environment=self.here.environment | PRODUCTION, out=out)
        wait_for(self.port, self.process, self.log)

    def kill(self) -> None:
        """All of it: the server's processes would go on without the first one."""
        for pid in subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True
        ).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None, kind="application/json", tries=600, **headers):
        """The answer, asked again while no server answers: (status, content)."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        for _ in range(tries):
            try:
                given = {"Authorization": f"Token {self.token}", "Content_Type": kind} | headers
                status, _, content = asked(self.port, f"/api/v1/{path}", method=method, body=data, **given)
            except (OSError, HTTPException):
                time.sleep(0.1)
                continue
            if status < 500:
                return status, content
            time.sleep(0.1)
        raise AssertionError(f"{path} never answered")


def bundle():
    """A zip of samples with pictures, each its own."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        rows = [{"key": str(n), "instruction": "See.", "images": [f"{n}.png"]} for n in range(DROPPED)]
        archive.writestr("samples.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        for n in range(DROPPED):
            archive.writestr(f"{n}.png", picture(size=(40, 30), colour=(n % 256, n // 256, 9)))
    return packed.getvalue()


def bring_in(site):
    """Send an upload in pieces and confirm it, whatever stops on the way."""
    data = bundle()
    _, begun = site.ask("POST", "uploads/", {"files": [{"name": "dropped.zip", "size": len(data)}]})
    pk, offset = json.loads(begun)["id"], 0
    while offset < len(data):
        kind, place = "application/offset+octet-stream", {"Upload_Offset": str(offset)}
        _, answered = site.ask("PATCH", f"uploads/{pk}/", data[offset : offset + 20_000], kind, **place)
        offset = json.loads(answered)["offset"]
    while True:
        _, found = site.ask("GET", f"uploads/{pk}/")
        found = json.loads(found)
        if found["state"] == "checked":
            site.ask("POST", f"uploads/{pk}/confirm/", {"visibility": "private"})
        if found["state"] in ("done", "failed"):
            return found
        time.sleep(0.2)


def written_by_workers(site, case, machines, path, wanted):
    """An export that workers write to the bucket, who are killed before, while and after they do, as is the server."""
    _, waiting = site.ask("POST", path, wanted | {"later": True})
    place = json.loads(waiting)["file"].removeprefix("/api/v1/")
    for turn, seconds in enumerate((1, 2, 2.5, 3, 4)):
        worker = machines[turn % 2].start("worker")
        time.sleep(seconds)
        case.kill(worker)
    site.kill()
    site.start()
    worker = machines[0].start("worker")
    deadline = time.monotonic() + 60  # a dead worker's job is taken up within 45 s
    while (found := site.ask("GET", place))[0] == 202:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    worker.terminate()
    worker.communicate()
    assert found[0] == 200
    return found[1]


@pytest.mark.soak
def test_a_run_an_upload_an_export_a_backup_and_a_restore_hold_under_kills(here, bucket_of, tmp_path):
    backups = f"s3://{bucket_of().name}/nightly"
    machines = [in_bucket(here, tmp_path / name) for name in ("first", "second")]
    brought, site = {}, Site(here, tmp_path)
    with Server(lambda call: after(0.05, answer("Answer1"))) as server:
        case = Case(here, server, name="run", samples=SAMPLES)
        dropping = threading.Thread(target=lambda: brought.update(bring_in(site)))
        dropping.start()
        workers = [machine.start("worker") for machine in machines]
        backup = machines[0].start("backup", backups)
        for kill in range(KILLS):
            time.sleep(1)
            at = kill % len(workers)
            case.kill(workers[at])
            workers[at] = machines[at].start("worker")
            if kill % 5 == 2:
                backup.kill()
                backup.communicate()
                backup = machines[at].start("backup", backups)
            if kill % 7 == 3:
                site.kill()
                site.start()
            site.ask("GET", "judgments/?limit=5")
        case.wait_until(lambda: case.state == "finished")
        dropping.join(300)
        assert brought["state"] == "done", brought
        backup.communicate(timeout=300)
        for worker in workers:
            worker.terminate()
            worker.communicate()
        case.check(repeated=KILLS * CONCURRENCY)
    _, found = site.ask("GET", "benchmarks/?slug=run")
    (benchmark,) = json.loads(found)["results"]
    stop = threading.Timer(0.05, site.kill)  # in the middle of the file, and it is asked for again
    stop.start()
    wanted = {"what": "judgments", "shape": "jsonl"}
    with suppress(AssertionError):
        site.ask("POST", f"benchmarks/{benchmark['id']}/export/", wanted, tries=5)
    stop.join()
    site.start()
    status, exported = site.ask("POST", f"benchmarks/{benchmark['id']}/export/", wanted)
    assert (status, exported.count(b"\n")) == (200, 2 * SAMPLES)
    assert written_by_workers(site, case, machines, f"benchmarks/{benchmark['id']}/export/", wanted) == exported
    site.kill()

    assert "Verified by restoring it" in machines[1].manage("backup", backups, "--verify")
    counted = "from bank.models import Sample, SampleImage; from judging.models import Judgment; answer = "
    counted += "[rows.objects.count() for rows in (Sample, SampleImage, Judgment)]"
    expected = here.ask(counted)
    assert expected == [SAMPLES + DROPPED, SAMPLES + DROPPED, 2 * SAMPLES]
    with empty(here, tmp_path / "cut-off") as place:  # a restore that was killed begins anew in an empty one
        place.bucket = bucket_of()
        process = in_bucket(place).start("restore", backups)
        case.wait_until(lambda: place.bucket.names(), process)
        process.kill()
        process.communicate()
    with empty(here, tmp_path / "restored") as place:
        place.bucket = bucket_of()
        target = in_bucket(place)
        process = target.start("restore", backups)
        _, error = process.communicate()
        assert process.returncode == 0, error
        assert target.ask(counted) == expected
        assert target.ask("from bank.images import media_matches_database as same; answer = same()")
        pictures = [name for name in place.bucket.names() if name.endswith(".png")]
        assert len(pictures) == len({name for name in here.bucket.names() if name.startswith("media/images/")})
