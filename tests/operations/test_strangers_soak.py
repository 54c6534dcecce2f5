"""Two minutes of clients that do not end their requests, while somebody labels: no answer takes a second at p95."""

import http.client
import json
import shutil
import ssl
import threading
import time

import pytest

from tests.judging.outside import installation
from tests.operations.served import HOST, Slow, free_port, nginx, running, wait_for

SECONDS = 120
PREPARE = """
from accounts.models import User
from accounts.tokens import make_token
from annotations.campaigns.actions import make_campaign
from tests.judging.small import make_benchmark
benchmark = make_benchmark(samples=2000)
user = User.objects.create_user("a", password="a-long-password", role="annotator")
make_campaign(name="soak", benchmark=benchmark, protocol="pair", overlap=1, annotators=[user])
answer = make_token(person=user)[1]
"""


def measured(connect, token, seconds):
    """Times of /healthz, and of a label with the next item, asked one after the other: {what: sorted seconds}."""
    found = {"healthz": [], "label": []}
    end, count = time.monotonic() + seconds, 0

    def call(method, path, body=None):
        connection = connect()
        headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Content-Type": "application/json"}
        started = time.perf_counter()
        headers["Authorization"] = f"Token {token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status in (200, 201), (answer.status, text)
        return time.perf_counter() - started, text

    while time.monotonic() < end:
        found["healthz"].append(call("GET", "/healthz")[0])
        _, work = call("POST", "/api/v1/campaigns/soak/next/", {})
        label = {"assignment": json.loads(work)["assignment"], "idempotency_key": f"k{count}", "choice": "left"}
        found["label"].append(call("POST", "/api/v1/labels/", label | {"seconds": 1})[0])
        count += 1
        time.sleep(0.1)
    return {what: sorted(times) for what, times in found.items()}


@pytest.mark.soak
@pytest.mark.check("K4")
@pytest.mark.parametrize(("number", "proxied"), [(50, False), (300, True)], ids=["50 bare", "300 behind nginx"])
def test_slow_strangers_keep_nobody_waiting_for_two_minutes(tmp_path, number, proxied):
    if proxied and not shutil.which("nginx", path="/usr/sbin:/usr/bin"):
        pytest.skip("Needs Debian's nginx: apt-get install nginx-light")
    trusting = ssl._create_unverified_context()
    trusting.set_alpn_protocols(["http/1.1"])
    port, log = free_port(), tmp_path / "log"
    serve = ["manage.py", "serve", "--bind", f"127.0.0.1:{port}"]
    with installation(tmp_path / "data") as here:
        token = here.ask(PREPARE)
        with running(here, serve, log) as process:
            wait_for(port, process, log)
            if not proxied:
                hold(number, port, lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=60), token)
                return
            with nginx(tmp_path / "nginx", behind=port) as front:
                hold(
                    number,
                    front,
                    lambda: http.client.HTTPSConnection(
                        "127.0.0.1", front, timeout=60, context=trusting, source_address=("127.0.0.2", 0)
                    ),
                    token,
                    wrap=trusting.wrap_socket,
                )


def hold(number, port, connect, token, wrap=lambda plain: plain):
    """Keep so many slow clients connected, each a byte a second, those that are thrown out anew."""
    over = threading.Event()

    def strangers():
        while not over.is_set():
            with Slow(port, number, wrap=wrap) as slow:
                while not over.wait(1) and slow.drip() > number * 0.9:
                    pass

    thread = threading.Thread(target=strangers)
    thread.start()
    try:
        time.sleep(5)
        times = measured(connect, token, SECONDS)
    finally:
        over.set()
        thread.join()
    for what, found in times.items():
        p95 = found[int(len(found) * 0.95)]
        print(f"{what}: {len(found)} times, median {found[len(found) // 2] * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms")
        assert p95 < 1
