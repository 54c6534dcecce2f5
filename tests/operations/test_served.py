"""A production installation, started by the README's words, asked over real connections."""

import json
import re
import shutil
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.operations.served import HOST, Slow, asked, nginx

PERSON = "from accounts.actions import make_account; make_account(name='{}', role='curator', password='{}'); answer = 0"
PASSWORD = "a right long password"


@pytest.mark.check("K1")
def test_serve_starts_for_others_and_its_pages_have_their_styles(served):
    port, log = served
    status, _, page = asked(port, "/")
    assert status == 200
    style = re.search(rb'href="(/static/css/site[^"]+)"', page)[1].decode()
    assert asked(port, style)[0] == 200
    assert asked(port, "/", X_Forwarded_Proto="http")[0] == 301
    assert asked(port, "/", host="evil.example")[0] == 400
    assert f"https://{HOST}/" in log.read_text()


@pytest.mark.check("K1")
def test_health_is_told_to_any_host_without_a_line_in_the_log(served):
    port, log = served
    before = log.read_text()
    for host in ("10.0.0.5:8000", "localhost", "nobody.example"):
        assert asked(port, "/healthz", host=host)[::2] == (200, b"ok\n")
    status, _, body = asked(port, "/readyz", host="10.0.0.5")
    assert (status, set(json.loads(body).values())) == (200, {"ok"})
    assert log.read_text() == before


@pytest.mark.check("K5")
def test_answers_to_head_have_no_body_on_a_connection_that_is_kept(served):
    """A body after the head of an answer would be read as the next answer."""
    port, _ = served
    paths = ["/", "/healthz", "/api/v1/benchmarks/", "/nowhere/", "/static/favicon.svg", "/api/schema/", "/readyz"]
    said = f"Host: {HOST}\r\nX-Forwarded-Proto: https\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        answers = connection.makefile("rb")
        for path in paths:
            connection.sendall(f"HEAD {path} HTTP/1.1\r\n{said}\r\n".encode())
            assert answers.readline().startswith(b"HTTP/1.1 "), path
            while answers.readline() not in (b"\r\n", b""):
                pass
        connection.sendall(f"GET /healthz HTTP/1.1\r\n{said}Connection: close\r\n\r\n".encode())
        rest = answers.read()
        assert rest.startswith(b"HTTP/1.1 200 OK")
        assert rest.endswith(b"\r\n\r\nok\n")


@pytest.mark.check("K2")
def test_behind_a_proxy_a_guesser_locks_out_nobody_else(here, served):
    port, _ = served
    here.ask(PERSON.format("kay", PASSWORD))

    def sign_in(password, address):
        _, headers, page = asked(port, "/accounts/sign-in/", X_Forwarded_For=address)
        cookie = headers["Set-Cookie"].split(";")[0]
        token = re.search(rb'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1].decode()
        body = f"username=kay&password={password.replace(' ', '+')}&csrfmiddlewaretoken={token}"
        sent = {"Cookie": cookie, "Origin": f"https://{HOST}", "Content-Type": "application/x-www-form-urlencoded"}
        return asked(port, "/accounts/sign-in/", method="POST", body=body, X_Forwarded_For=address, **sent)

    for number in range(12):
        status, _, page = sign_in("wrong", f"10.9.8.{number}, 192.0.2.66")  # what it made up, and where it is
        assert status == 200
    assert b"Too many attempts" in page
    assert sign_in(PASSWORD, "192.0.2.7")[0] == 302


@pytest.mark.check("K4")
def test_fifty_slow_strangers_keep_nobody_waiting(served):
    port, _ = served
    with Slow(port, 50) as slow:
        for _ in range(3):
            assert slow.drip() == 50
            assert asked(port, "/healthz")[0] == 200
            assert asked(port, "/api/v1/benchmarks/")[0] == 200


@pytest.mark.check("K1", "K4")
def test_nginx_of_the_documentation_serves_it_and_holds_slow_strangers_back(served, tmp_path):
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin"):
        pytest.skip("The proxy's test needs Debian's nginx: apt-get install nginx-light")
    import http.client

    trusting = ssl._create_unverified_context()
    trusting.set_alpn_protocols(["http/1.1"])
    with nginx(tmp_path / "nginx", behind=served[0]) as port:

        def get(path):
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=trusting)
            connection.request("GET", path, headers={"Host": HOST})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

        status, headers, _ = get("/")
        assert status == 200
        assert "max-age" in headers["Strict-Transport-Security"]
        with Slow(port, 60, wrap=trusting.wrap_socket):
            assert get("/healthz")[::2] == (200, b"ok\n")
            assert get("/api/v1/benchmarks/")[0] == 200


def test_the_page_of_the_api_is_made_once_for_all_who_ask_first(served):
    port, _ = served
    with ThreadPoolExecutor(12) as pool:
        asked_first = list(pool.map(lambda path: asked(port, path)[0], ["/api/docs/", "/api/schema/"] * 6))
    assert asked_first == [200] * 12


def test_the_server_wrote_no_traceback_meanwhile(served):
    _, log = served
    assert "Traceback" not in log.read_text()
