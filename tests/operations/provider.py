"""An OpenID provider (oidc-provider-mock, in a process of its own) behind a proxy that can lie, and a browser."""

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

from tests.operations.served import HOST, asked, free_port

CLIENT = "evalsite"


class Provider:
    """``lies`` change an answer by its path: a function of its JSON."""

    def __init__(self, port: int, behind: int) -> None:
        self.port, self.behind, self.lies, self.asked = port, behind, {}, []
        self.issuer = f"http://127.0.0.1:{port}"

    def knows(self, sub: str, **claims) -> None:
        self.call("PUT", f"/users/{sub}", json.dumps(claims).encode(), {"Content-Type": "application/json"})

    def call(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=20)
        connection.request(method, path, body, {"Host": urlsplit(self.issuer).netloc} | dict(headers))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def grants(self, address: str, sub: str, **form) -> str:
        """Sign in there as somebody; the address that the browser is sent back to."""
        parts = urlsplit(address)
        body = urlencode({"sub": sub} | form).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        status, headers, said = self.call("POST", f"{parts.path}?{parts.query}", body, headers)
        assert status == 302, said
        return headers["Location"]

    def says(self, **changed):
        """A lie: the id token with other claims."""

        def token(answer):
            claims = jwt.decode(answer["id_token"], options={"verify_signature": False}) | changed
            claims = {name: value for name, value in claims.items() if value is not None}
            return answer | {"id_token": jwt.encode(claims, "x" * 32, algorithm="HS256")}

        self.lies = {"/oauth2/token": token}


@contextmanager
def provider(log):
    """A provider that is running."""
    behind, port = free_port(), free_port()
    told = Provider(port, behind)

    class Proxy(BaseHTTPRequestHandler):
        def pass_on(self):
            size = int(self.headers.get("Content-Length") or 0)
            status, headers, body = told.call(self.command, self.path, self.rfile.read(size), self.headers.items())
            told.asked.append(self.path)
            if lie := told.lies.get(urlsplit(self.path).path):
                body = json.dumps(lie(json.loads(body))).encode()
            self.send_response(status)
            self.send_header("Content-Type", headers.get("Content-Type", "text/plain"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = pass_on

        def log_message(self, *_arguments):
            pass

    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(behind)]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    server = ThreadingHTTPServer(("127.0.0.1", port), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for _try in range(300):
            try:
                told.call("GET", "/jwks")
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
        yield told
    finally:
        server.shutdown()
        process.terminate()
        process.wait(20)


class Browser:
    """Keeps cookies, follows redirects of this site, and none to others."""

    def __init__(self, port: int) -> None:
        self.port, self.cookies, self.address = port, SimpleCookie(), ""

    def get(self, path: str):
        """(status, text): of the page where redirects of this site end; ``address`` says which, or where else."""
        for _step in range(9):
            status, headers, body = self.once(path)
            self.address = headers["Location"] or path
            own = self.address.startswith("/") or urlsplit(self.address).netloc == HOST
            if status not in (301, 302, 303) or not own:
                return status, body.decode()
            parts = urlsplit(self.address)
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        raise AssertionError(f"redirects go on for ever: {path}")

    def post(self, path: str, **form):
        _status, page = self.get(path)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
        body = urlencode({"csrfmiddlewaretoken": token} | form)
        kind = {"Content_Type": "application/x-www-form-urlencoded", "Referer": f"https://{HOST}/"}
        status, headers, answer = self.once(path, method="POST", body=body, **kind)
        return self.get(headers["Location"]) if status == 302 else (status, answer.decode())

    def once(self, path: str, **more):
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in self.cookies.items())
        status, headers, body = asked(self.port, path, Cookie=cookies, **more)
        for cookie in headers.get_all("Set-Cookie") or ():
            self.cookies.load(cookie)
        return status, headers, body


def parameters(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
