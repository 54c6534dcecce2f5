"""Fifty annotators over HTTP while workers are killed: nothing acknowledged is lost, every item gets exactly three."""

import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench import importing

pytestmark = pytest.mark.soak
ROOT = Path(__file__).resolve().parent.parent.parent
ITEMS, PEOPLE, OVERLAP, KILLS = 2_000, 50, 3, 20

PREPARE = """
import json, sys
from accounts.tokens import make_token
from annotations.campaigns.actions import make_campaign
from bank.samples.items import make_items, plan_items
from accounts.models import User
from bank.models import Benchmark, EvaluatedModel, Response, Sample
items, people, overlap = map(int, sys.argv[1:4])
benchmark = Benchmark.objects.create(slug="soak", title="Soak", visibility="public")
models = [EvaluatedModel.objects.create(name=name) for name in ("model-one", "model-two")]
samples = Sample.objects.bulk_create(
    [Sample(benchmark=benchmark, key=str(n), instruction="Which?", position=n) for n in range(items)]
)
Response.objects.bulk_create([Response(sample=s, model=m, text=f"{m} {s.key}") for s in samples for m in models])
make_items(plan_items(kind="pair", benchmark=benchmark))
users = [User.objects.create_user(f"person-{n}", role="annotator") for n in range(people)]
make_campaign(name="soak", benchmark=benchmark, protocol="pair", overlap=overlap, annotators=users)
print(json.dumps([make_token(person=user)[1] for user in users]))
"""
REPORT = """
import json
from annotations.models import Assignment, CampaignItem, Label
print(json.dumps({
    "labels": list(Label.objects.values_list("item", "annotator", "idempotency_key")),
    "taken": list(CampaignItem.objects.values_list("taken", flat=True)),
    "leased": Assignment.objects.filter(state="leased").count(),
}))
"""


def run(code, environment, *arguments):
    setup = "import django; django.setup()\n"
    command = [sys.executable, "-c", setup + code, *map(str, arguments)]
    return subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@contextmanager
def served(environment):
    """The site behind two workers: (port, process id of the master)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "evalsite.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--log-level", "critical", "--backlog", "256", "--graceful-timeout", "2"]
    master = subprocess.Popen(command, env=environment, cwd=ROOT)
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2)
                break
            except OSError:
                time.sleep(0.1)
        yield port, master.pid
    finally:
        master.send_signal(signal.SIGINT)  # at once
        master.wait(60)


class Annotator(threading.Thread):
    """Labels by the API until nothing is left; a request without an answer is sent again with the same key.

    ``pause`` is how long it looks at an item, in seconds.
    """

    def __init__(self, number, token, port, pause):
        super().__init__(daemon=True)
        self.number, self.token, self.port, self.pause = number, token, port, pause
        self.acknowledged, self.times, self.wrong = [], [], []
        self.connection = None

    def call(self, path, body):
        for _ in range(200):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                started = time.perf_counter()
                headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
                self.connection.request("POST", f"/api/v1/{path}", json.dumps(body), headers)
                answer = self.connection.getresponse()
                text = answer.read()
                self.times.append(time.perf_counter() - started)
                return answer.status, json.loads(text) if text else None
            except (OSError, http.client.HTTPException):
                self.connection = None
                time.sleep(0.05 + random.random() / 10)
        raise AssertionError("no answer")

    def run(self):
        done = 0
        time.sleep(self.pause * random.random())  # people do not begin at the same moment
        while True:
            status, work = self.call("campaigns/soak/next/", {})
            if status == 204:
                return
            if status != 200:
                self.wrong.append((status, work))
                return
            time.sleep(self.pause)
            key = f"{self.number}-{done}"
            body = {"assignment": work["assignment"], "idempotency_key": key, "choice": "left", "seconds": 1}
            status, label = self.call("labels/", body)
            if status not in (200, 201) or label["item"] != work["item"]:
                self.wrong.append((status, label))
                return
            self.acknowledged.append(key)
            done += 1


def children(master):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(master)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


@pytest.fixture
def environment(tmp_path):
    """Of an installation of its own with an empty database."""
    environment = os.environ | {"EVALSITE_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    for name in ("DATABASE_URL", "ALLOWED_HOSTS", "DEBUG", "SSL_REDIRECT", "SECRET_KEY", "CRITERIA_KEYS"):
        environment.pop(name, None)
    for first in (["migrate", "-v0"], ["collectstatic", "--no-input", "-v0"]):
        subprocess.run([sys.executable, "manage.py", *first], env=environment, cwd=ROOT, check=True)
    return environment


@pytest.mark.check("K9")
def test_while_a_million_judgments_come_in_no_label_waits_for_a_second(environment, tmp_path):
    samples, models, people = int(os.environ.get("SOAK_SAMPLES", "11200")), 10, 20
    folder = tmp_path / "in"
    folder.mkdir()
    importing.write(folder, samples=samples, models=models)
    rows = importing.write_judgments(folder, samples=samples, models=models)
    for part in ("benchmark", "responses"):
        command = [sys.executable, "manage.py", f"import_{part}", "generic", str(folder), "--benchmark", "large"]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)
    tokens = json.loads(run(PREPARE, environment, ITEMS, people, people))
    with served(environment) as (port, _):
        command = [sys.executable, "manage.py", "import_judgments", "generic", str(folder), "--benchmark", "large"]
        started = time.monotonic()
        bringing = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        labelling = [Annotator(number, token, port, 2) for number, token in enumerate(tokens)]
        for person in labelling:
            person.start()
        out, _ = bringing.communicate()
        took = time.monotonic() - started
    assert bringing.returncode == 0
    assert f"{rows:,} judgments" in out
    assert [wrong for person in labelling for wrong in person.wrong] == []
    times = sorted(taken for person in labelling for taken in person.times)
    slow = times[int(len(times) * 0.95)]
    print(f"\n{rows:,} judgments in {took:.0f} s; {len(times)} calls: p95 {slow:.3f} s, worst {times[-1]:.3f} s")
    assert slow < 1


@pytest.mark.parametrize(("pause", "wanted"), [(0, KILLS), (2, 0)], ids=["in a hurry, 20 kills", "2 s an item"])
@pytest.mark.check("G5", "G6")
def test_fifty_annotators_give_every_item_exactly_three_labels_and_lose_none(environment, pause, wanted):
    tokens = json.loads(run(PREPARE, environment, ITEMS, PEOPLE, OVERLAP))
    with served(environment) as (port, master):
        people = [Annotator(number, token, port, pause) for number, token in enumerate(tokens)]
        for person in people:
            person.start()
        kills = 0
        while any(person.is_alive() for person in people):
            time.sleep(2)
            if kills < wanted and (workers := children(master)):
                os.kill(random.choice(workers), signal.SIGKILL)
                kills += 1
        for person in people:
            person.join()
    report = json.loads(run(REPORT, environment))
    assert [wrong for person in people for wrong in person.wrong] == []
    labels = [tuple(row) for row in report["labels"]]
    acknowledged = {key for person in people for key in person.acknowledged}
    assert acknowledged <= {key for _, _, key in labels}
    assert len({(item, annotator) for item, annotator, _ in labels}) == len(labels) == ITEMS * OVERLAP
    assert set(Counter(item for item, _, _ in labels).values()) == {OVERLAP}
    assert set(report["taken"]) == {OVERLAP}
    assert report["leased"] == 0
    times = sorted(taken for person in people for taken in person.times)
    middle, slow = statistics.median(times), times[int(len(times) * 0.95)]
    print(f"\n{len(labels)} labels, {pause} s an item, {kills} kills, {len(times)} calls;", end=" ")
    print(f"seconds per call: median {middle:.3f}, p95 {slow:.3f}, worst {times[-1]:.3f}")
