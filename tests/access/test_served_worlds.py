"""Two installations that differ in hidden text alone, built end to end and served as in production, look the same.

Each is judged by the same local endpoint, whose token counts are honest. One judge goes by what is public; of keys,
weights and submitted answers another one follows the hidden text, and takes its time with long texts: below staff
neither what it says nor how long it took may show. They are walked by every role below staff over connections that stay
open, and compared byte by byte: pages, the API, files and headers. Whatever the walk masks stands in MASKS.
"""

import base64
import http.client
import os
import re
import signal
import socket
import time
import zlib
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

import pytest

from leaderboard.registry import BOARDS, TABLES
from tests import forks
from tests.access.served_world import PASSWORD, WORDS
from tests.access.test_links import shape
from tests.judging.outside import Installation, with_tables
from tests.judging.server import Server, after, answer, error

# In one process test_crawl compares what every role is answered.
pytestmark = [pytest.mark.soak, pytest.mark.check("A1", "A2", "A4", "J1")]
ROOT = Path(__file__).resolve().parent.parent.parent
ROLES = ("anonymous", "annotator", "researcher")
MOST = 230  # addresses that each role walks
# What may differ between two installations and tells nothing: everything else is compared.
MASKS = {
    "tokens of forms": rb'(csrfmiddlewaretoken" value="|CSRFToken": "|csrftoken=|name="key" value=")[\w-]+',
    "moments": rb"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?",
    "days and times in words": rb"\d{1,2} [A-Z][a-z]{2} \d{4}(,? \d\d:\d\d)?( UTC)?|\d\d:\d\d:\d\d",
}
# Made of the whole body, masked parts and all, or of the moment.
HEADERS_LEFT_OUT = {"date", "set-cookie", "etag", "last-modified", "expires"}
# Who gave verdicts on what.
SOURCES = {"pairs": ("&source=kestrel", "&source=baseline-criteria-overlap"), "parts": ("&source=marker",)}
STARTS = [
    *("/", "/leaderboards/", "/judging/", "/judging/judgments/", "/campaigns/", "/annotate/", "/submissions/"),
    *("/healthz", "/api/v1/benchmarks/", "/api/v1/samples/", "/api/v1/responses/", "/api/v1/items/"),
    *("/api/v1/runs/", "/api/v1/judgments/", "/api/v1/labels/", "/api/v1/campaigns/", "/api/v1/judges/"),
    "/judging/judgments/?sort=dearest",
    "/judging/judgments/?seconds=0.001",
    "/judging/judgments/?differs=orders",
    *(
        f"/api/v1/leaderboards/{board}/?benchmark={name}{more}"
        for name in ("pairs", "choices", "parts")
        for board in BOARDS
        for more in ("", *SOURCES.get(name, ()))
    ),
    *(f"/api/v1/leaderboards/{board}/?benchmark=pairs&format=csv" for board in BOARDS),
    *(
        f"/api/v1/leaderboards/{table}/?benchmark={name}"
        for name in ("pairs", "choices", "parts")
        for table in TABLES.keys() - BOARDS.keys()
    ),
    *(
        f"/leaderboards/{name}/models/rows.{shape}"
        for name in ("pairs", "choices", "parts")
        for shape in ("csv", "json")
    ),
    *(f"/leaderboards/choices/models/?kind=choice&split={split}" for split in ("dev", "test")),
    *(
        f"{path}?benchmark={name}&kind={kind}&source=follower"
        for name, kind in (("choices", "pair"), ("choices", "reference"), ("parts", "components"), ("sent", "pair"))
        for path in ("/api/v1/leaderboards/models/", "/api/v1/leaderboards/judges/", "/api/v1/leaderboards/bias/")
    ),
    *(f"/api/v1/{rows}/?benchmark={name}" for rows in ("judgments", "items") for name in ("choices", "parts", "sent")),
    *(f"/judging/judgments/?judge=follower&benchmark={name}" for name in ("choices", "parts", "sent")),
    *(f"/leaderboards/{name}/models/?source=follower" for name in ("choices", "sent")),
    "/leaderboards/sent/votes/?model=heron-7b&source=follower",
    "/submissions/1/",
    *(
        f"/leaderboards/{name}/answers/?model=heron-7b&kind={kind}"
        for name, kind in (("choices", "choice"), ("parts", "components"))
    ),
]
NOT_WALKED = ("/accounts/sign-out", "/static/", "/api/schema", "/api/docs", "/accounts/tokens")


def follows(call):
    """By what is hidden: whatever the prompt holds besides the fences, which each installation names in its own way."""
    fences = re.findall(r"</question-(\w+)>|</instruction-(\w+)>", call.text)
    text = call.text.replace(next(filter(None, fences[0])), "")
    chance, usage = zlib.crc32(text.encode()), {"prompt_tokens": len(text), "completion_tokens": 20}
    weights = re.findall(r"^Component \d+ is worth (\d+)", text, re.M)
    if weights:
        scores = ", ".join(f"score of component {n}: {worth}/{worth}" for n, worth in enumerate(weights, 1))
        total = sum(map(int, weights))
        said = f"{scores.capitalize()}, total score: {total}/{total}.\nAll of it."
    elif "You mark an answer" in text:
        said = f"It says so.\nMark: {1 + chance % 5}"
    else:
        said = f"Answer{1 + chance % 2}"
    return after(len(text) / 200_000, answer(said, usage=usage))


def verdict(call):
    """By the question alone; one call fails with the prompt in its error, one reply quotes all it was shown."""
    if call.body["model"] == "follower-vl":
        return follows(call)
    number = int(re.search(r"What is on table (\d+)\?", call.text)[1])
    usage = {"prompt_tokens": len(call.text), "completion_tokens": 20}
    if number == 5:
        return error(400, message=f"cannot process {call.text}")
    if number == 7:
        return answer(f"I was told: {call.text}\nAnswer1", usage=usage)
    return answer(f"I see it.\nAnswer{1 + number % 2}", usage=usage)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The port of each world."""
    folders = {world: tmp_path_factory.mktemp(f"world-{world}") for world in WORDS}
    for folder in folders.values():
        empty = Installation(folder, f"sqlite:///{folder}/evalsite.sqlite3")
        with_tables(folder / "evalsite.sqlite3")
    keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    common = keep | {
        "SECRET_KEY": "k" * 50,
        "CRITERIA_KEYS": empty.environment["CRITERIA_KEYS"],
        "ALLOWED_HOSTS": "localhost",
        "SSL_REDIRECT": "false",
        "ANONYMOUS_PER_MINUTE": "0",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
    }
    places = {world: common | {"EVALSITE_DATA": str(folder)} for world, folder in folders.items()}
    with Server(verdict) as server:
        builds = {
            world: forks.start(["-m", "tests.access.served_world", server.url, world], environment=place)
            for world, place in places.items()
        }
        for world, process in builds.items():
            said = "".join(process.communicate(timeout=300))
            assert process.returncode == 0, f"world {world}: {said[-3000:]}"
    ports, processes = {}, []
    for world, place in places.items():
        ports[world] = free_port()
        web = ["-m", "gunicorn", "evalsite.wsgi", "--bind", f"127.0.0.1:{ports[world]}", "--threads", "2"]
        web += ["--keep-alive", "60", "--no-control-socket", "--log-level", "warning"]
        with (folders[world] / "log").open("w") as log:
            processes.append(forks.start(web, environment=place, out=log))
    try:
        for port in ports.values():
            ready(port)
        yield ports
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(30)


def ready(port):
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the web server did not start")


class Visitor:
    """Somebody with a browser's cookies and one connection that stays open."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("localhost", port, timeout=60)
        self.cookies = {}

    def ask(self, path, *, method="GET", form=None):
        headers = {"Host": "localhost", "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if form is not None:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost"}
        self.connection.request(method, path, body=form and urlencode(form), headers=headers)
        found = self.connection.getresponse()
        body = found.read()
        for name, value in found.getheaders():
            if name.lower() == "set-cookie":
                cookie, _, kept = value.partition(";")[0].partition("=")
                self.cookies[cookie] = kept
        return found.status, {name.lower(): value for name, value in found.getheaders()}, body

    def token(self, body):
        return re.search(rb'csrfmiddlewaretoken" value="([^"]+)"', body)[1].decode()

    def sign_in(self, name):
        _, _, body = self.ask("/accounts/sign-in/")
        form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": self.token(body)}
        status, _, _ = self.ask("/accounts/sign-in/", method="POST", form=form)
        assert status == 302


def links(path, body):
    """The addresses of this site that a page leads to."""
    for found in re.findall(rb'(?:href|src|hx-get|action)="([^"#]+)', body):
        to = urlsplit(urljoin(f"http://localhost{path}", unescape(found.decode())))
        if to.netloc == "localhost" and not to.path.startswith(NOT_WALKED):
            yield to.path + (f"?{to.query}" if to.query else "")


@contextmanager
def signed_in(port, role):
    visitor = Visitor(port)
    if role != "anonymous":
        visitor.sign_in(role)
    yield visitor
    visitor.connection.close()


def walk(visitor, paths=None, *, heads):
    """What each address answered: (status, headers, body). Without ``paths``, those that links lead to. ``heads``: to
    HEAD, too, once for addresses that differ in numbers and values alone.
    """
    found, waiting, shapes = {}, list(paths or STARTS), set()
    for path in waiting:
        if path in found:
            continue
        found[path] = visitor.ask(path)
        if heads and shape(path) not in shapes:
            shapes.add(shape(path))
            found["HEAD " + path] = visitor.ask(path, method="HEAD")
        if paths is None and len(waiting) < MOST and "html" in found[path][1].get("content-type", ""):
            waiting += [to for to in dict.fromkeys(links(path, found[path][2])) if to not in waiting][
                : MOST - len(waiting)
            ]
    return found


def masked(text):
    for mask in MASKS.values():
        text = re.sub(mask, b"*", text)
    return text


def told(answer):
    status, headers, body = answer
    kept = sorted((name, in_order(value)) for name, value in headers.items() if name not in HEADERS_LEFT_OUT)
    return status, [(name, masked(value.encode())) for name, value in kept], masked(body)


def in_order(value):
    """A header of several directives says the same in any order; that of a process is its own."""
    return "; ".join(sorted(value.split("; ")))


@pytest.mark.parametrize("role", ROLES)
def test_two_worlds_of_other_hidden_text_are_the_same_to_everybody_below_staff(served, role):
    with signed_in(served["a"], role) as one, signed_in(served["b"], role) as other:
        heads = role == "anonymous"  # Django makes HEAD of GET, whoever asks
        first = walk(one, heads=heads)
        walked = [path for path in first if not path.startswith("HEAD ")]
        second = walk(other, walked, heads=heads)
    assert len(walked) == MOST
    assert (len(first) - len(walked) > 60) is heads
    opened = [path for path, (status, _, _) in first.items() if status == 200]
    assert len(opened) > 60
    different = [path for path in first if told(first[path]) != told(second[path])]
    assert different == []
    for world, found in (("a", first), ("b", second)):
        for path, (_, headers, body) in found.items():
            everything = (repr(headers).encode() + body).lower()
            for word in WORDS.values():
                spelled = (word.encode(), base64.b64encode(word.encode())[:-4], word.encode().hex().encode())
                assert not any(one.lower() in everything for one in spelled), (world, path)


def test_the_files_that_a_researcher_takes_away_are_the_same_in_both_worlds(served):
    taken = {}
    for world in WORDS:
        with signed_in(served[world], "researcher") as visitor:
            _, _, page = visitor.ask("/judging/judgments/export/")
            files = []
            for shape in ("jsonl", "csv"):
                form = {"shape": shape, "csrfmiddlewaretoken": visitor.token(page)}
                files.append(told(visitor.ask("/judging/judgments/export/", method="POST", form=form)))
            taken[world] = files
    assert taken["a"][0][0] == 200
    assert b"kestrel" in taken["a"][0][2]
    assert taken["a"] == taken["b"]


def test_staff_see_what_differs_or_the_worlds_would_prove_nothing(served):
    seen = {}
    for world in WORDS:
        with signed_in(served[world], "curator") as visitor:
            seen[world] = [visitor.ask(path)[2] for path in ("/api/v1/judgments/?run=1", "/api/v1/runs/1/")]
            seen[world] += [visitor.ask("/api/v1/leaderboards/models/?benchmark=choices&kind=choice")[2]]
    for one, other in zip(seen["a"], seen["b"], strict=True):
        assert one != other
    assert b"prompt_tokens" in seen["a"][0]
