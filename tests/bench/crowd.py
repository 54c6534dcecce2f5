"""Ten people label and readers walk the boards while a million verdicts come in: ``python -m tests.bench crowd``.

The server, its worker and the import are processes of an installation on PostgreSQL, as the documentation starts them.
Everybody asks over HTTP and waits as people do; the page for signing in is the empty page that others are compared
with. Times are what a client waits, at the 95th percentile.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import httpx2  # noqa: TID251
import psycopg

from tests.bench import importing
from tests.bench.parts import Result
from tests.judging.outside import ROOT, Installation
from tests.operations.served import HOST, PRODUCTION, free_port, wait_for

SAMPLES, MODELS, PAIRS = 10_000, 11, 50  # a million verdicts, since each pair is judged in both orders
PEOPLE, READERS = 10, 2
LABEL_EVERY, READ_EVERY = 3.0, 1.0  # seconds between two requests of a person
SITTING = 10  # labels after which the campaign is opened again
LIMIT = 0.3  # seconds
EMPTY = "/accounts/sign-in/"
SLUG = "large"
PAGES = {
    "visitor": (
        EMPTY,
        "/",
        "/leaderboards/",
        f"/leaderboards/{SLUG}/models/?source=judge",
        f"/leaderboards/{SLUG}/judges/",
        f"/leaderboards/{SLUG}/agreement/",
        f"/api/v1/leaderboards/models/?benchmark={SLUG}&source=judge",
        "/data/",
        f"/leaderboards/{SLUG}/bias/",
        "/find/?q=model",
    ),
    "curator": (
        EMPTY,
        "/",
        f"/leaderboards/{SLUG}/models/?source=judge",
        "/bank/",
        f"/bank/benchmarks/{SLUG}@1/",
        "/bank/uploads/",
        "/judging/",
        "/judging/judgments/",
        "/campaigns/1/",
        f"/api/v1/judgments/?benchmark={SLUG}",
    ),
}
FILL = f"""
from django.contrib.auth.hashers import make_password
from accounts.models import User
from annotations.campaigns.actions import make_campaign
from annotations.models import Membership
from bank.models import Benchmark
from bank.samples.items import make_items, plan_items
Benchmark.objects.update(visibility="public")
Benchmark.objects.get().samples.update(status="approved")
benchmark = Benchmark.objects.get(slug={SLUG!r})
make_items(plan_items(kind="pair", benchmark=benchmark, models=["model 0", "model 1"]))
word = make_password("a-long-password")
names = [f"person-{{n}}" for n in range({PEOPLE})]
people = [User.objects.create(username=name, role="annotator", password=word) for name in names]
User.objects.create(username="curator", role="curator", password=word)
make_campaign(name="crowd", benchmark=benchmark, protocol="pairwise-criteria", annotators=people, overlap=2)
Membership.objects.update(guidelines_read=1)
answer = benchmark.pk
"""


class Person:
    """Somebody with a browser, who notes how long each page took."""

    def __init__(self, port: int, taken: dict[str, list[float]], name: str = "") -> None:
        self.taken, self.faults = taken, defaultdict[str, list[str]](list)
        headers = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": f"192.0.2.{hash(name) % 250 + 1}"}
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60)
        self.cookies: dict[str, str] = {}
        if name:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.ask("GET", EMPTY).text)[1]
            data = {"username": name, "password": "a-long-password", "csrfmiddlewaretoken": token}
            assert self.ask("POST", EMPTY, data=data).status_code == 302

    def ask(self, method: str, path: str, *, noted: str = "", **more: object) -> httpx2.Response:
        """Cookies are kept by hand: they are for HTTPS alone, which a proxy would speak."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookie, "Referer": f"https://{HOST}/", "X-CSRFToken": self.cookies.get("csrftoken", "")}
        start = time.perf_counter()
        answer = self.client.request(method, path, headers=headers | more.pop("headers", {}), **more)
        spent = time.perf_counter() - start
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name.strip()] = value
        if noted:
            self.taken[noted].append(spent)
            if answer.status_code >= 500:
                self.faults[noted].append(f"{answer.status_code}")
        return answer


def labelling(person: Person, campaign: int, number: int, over: threading.Event) -> None:
    """They come one after the other, and open the campaign anew after some labels."""
    over.wait(LABEL_EVERY * number / PEOPLE)
    htmx = {"HX-Request": "true"}
    html = ""
    for label in count():
        if label % SITTING == 0:
            html = person.ask("GET", f"/annotate/{campaign}/", noted="open a campaign").text
        if over.wait(LABEL_EVERY):
            return
        url = re.search(r'action="([^"]+/submit/)"', html)[1]
        key = re.search(r'name="key" value="([^"]+)"', html)[1]
        ahead = person.ask("POST", f"/annotate/{campaign}/ahead/", noted="draw the next item", headers=htmx)
        sent = {"choice": "left", "key": key, "seconds": "12.5"}
        answer = person.ask("POST", url, noted="submit a label", headers=htmx, data=sent)
        assert answer.status_code == 200, (answer.status_code, answer.text[:500])
        html = ahead.text


def reading(person: Person, pages: tuple[str, ...], over: threading.Event) -> None:
    while True:
        for page in pages:
            if over.wait(READ_EVERY):
                return
            answer = person.ask("GET", page, noted=page)
            # Before the first judgment, a board of judges' votes is refused as an address.
            assert answer.status_code in (200, 202, 400), (page, answer.status_code, answer.text[:500])


def crowd(samples: int = SAMPLES) -> Iterator[Result]:
    """The reference is 300 ms for every page; the last lines compare their worst with the empty page."""
    try:
        psycopg.connect("postgresql://127.0.0.1/postgres", connect_timeout=3).close()
    except psycopg.OperationalError:
        print("No PostgreSQL on this machine: crowd is left out.", file=sys.stderr)
        return
    folder, name = Path(tempfile.mkdtemp(prefix="evalsite-crowd-")), f"evalsite_crowd_{os.getpid()}"
    server = psycopg.connect("postgresql://127.0.0.1/postgres", autocommit=True)
    server.execute(f"CREATE DATABASE {name}")
    try:
        yield from _measured(folder, Installation(folder / "data", f"postgresql://127.0.0.1/{name}"), samples)
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        server.close()
        shutil.rmtree(folder)


def _measured(folder: Path, here: Installation, samples: int) -> Iterator[Result]:
    importing.write(folder, samples=samples, models=MODELS)
    rows = importing.write_judgments(folder, samples=samples, models=MODELS, pairs=PAIRS, analysis=0)
    judgments = (folder / "judgments.jsonl").rename(folder / "later.jsonl")
    here.environment |= PRODUCTION | {"ANONYMOUS_PER_MINUTE": "0"}
    here.manage("migrate", "-v0")
    here.manage("import_benchmark", "generic", str(folder / "samples.jsonl"), "--benchmark", SLUG)
    here.manage("import_responses", "generic", str(folder / "responses.jsonl"), "--benchmark", SLUG)
    here.ask(FILL)
    campaign = here.ask("from annotations.models import Campaign; answer = Campaign.objects.get().pk")
    port, log = free_port(), folder / "log"
    quiet: dict[str, list[float]] = defaultdict(list)
    busy: dict[str, list[float]] = defaultdict(list)
    serve = [sys.executable, "manage.py", "serve", "--no-demo", "--bind", f"127.0.0.1:{port}"]
    with log.open("w") as out:
        process = subprocess.Popen(serve, cwd=ROOT, env=here.environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            wait_for(port, process, log)
            _walked(port, campaign, quiet, lambda: time.sleep(30))
            start = time.monotonic()
            # With the priority that a worker imports uploads with.
            command = ["nice", "-n", "5", sys.executable, "manage.py", "import_judgments", "generic", str(judgments)]
            environment = here.environment
            importing_them = subprocess.Popen(
                [*command, "--benchmark", SLUG], cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT
            )
            _walked(port, campaign, busy, importing_them.wait)
            assert importing_them.returncode == 0
            seconds = time.monotonic() - start
            _walked(port, campaign, busy, lambda: time.sleep(30))  # the boards are drawn anew
        finally:
            process.terminate()
            process.wait(60)
    stored = here.ask("from judging.models import Judgment; answer = Judgment.objects.count()")
    assert stored == rows, (stored, rows)
    print(json.dumps({"seconds of the import": round(seconds), "labels": len(busy["submit a label"])}), file=sys.stderr)
    empty = _late(busy[EMPTY])
    yield Result("the empty page, before and while verdicts come in", _late(quiet[EMPTY]), empty, 10)
    for page, taken in sorted(busy.items(), key=lambda pair: -_late(pair[1])):
        usual = f"{1000 * sorted(taken)[len(taken) // 2]:.0f} ms"
        yield Result(f"{page[:38]} ({len(taken)}, half in {usual})", LIMIT, _late(taken), 1)


def _walked(port: int, campaign: int, taken: dict[str, list[float]], work: Callable[[], object]) -> None:
    """Have all these people at it while the work goes on. Raises what went wrong for one of them."""
    over, faults = threading.Event(), []

    def guarded(act: Callable[..., None], *arguments: object) -> None:
        try:
            act(*arguments, over)
        except Exception as error:
            faults.append(repr(error))

    labellers = [Person(port, taken, f"person-{number}") for number in range(PEOPLE)]
    readers = [Person(port, taken, "" if who == "visitor" else who) for who in PAGES]
    threads = [
        threading.Thread(target=guarded, args=(labelling, each, campaign, at)) for at, each in enumerate(labellers)
    ]
    threads += [
        threading.Thread(target=guarded, args=(reading, each, pages))
        for each, pages in zip(readers, PAGES.values(), strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not faults, faults
    assert not any(person.faults for person in (*labellers, *readers))


def _late(taken: list[float]) -> float:
    """The 95th percentile, in seconds."""
    return sorted(taken)[int(0.95 * (len(taken) - 1))]
