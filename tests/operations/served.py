"""evalsite as a server process, the way the documentation starts it, and clients that are not well-behaved."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from tests import forks
from tests.judging.outside import ROOT

HOST = "eval.example.org"
PRODUCTION = {"ALLOWED_HOSTS": HOST, "TRUSTED_PROXIES": "1", "SSL_REDIRECT": "true", "ANONYMOUS_PER_MINUTE": "120"}
GUNICORN = ["-m", "gunicorn", "evalsite.wsgi"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def asked(port, path, *, method="GET", host=HOST, body=None, timeout=30, **headers):
    """One request as a proxy on this machine would pass it on: (status, headers, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        given = {"Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def wait_for(port, process, log: Path, *, path="/healthz"):
    for _ in range(1200):
        assert process.poll() is None, log.read_text()
        try:
            if asked(port, path, timeout=5)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{path} never answered\n{log.read_text()}")


@contextmanager
def running(here, command, log: Path, **environment):
    """Python with this command in the installation, its output in a file; stopped in order at the end."""
    with log.open("w") as out:
        process = forks.start(command, environment=here.environment | PRODUCTION | environment, out=out)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextmanager
def nginx(folder: Path, *, behind: int):
    """nginx with the files of the documentation, at ports and with a certificate of our own; its port for HTTPS."""
    plain, port = free_port(), free_port()
    config = (ROOT / "docs" / "nginx.conf").read_text(encoding="utf-8")
    proxy = (ROOT / "docs" / "evalsite-proxy.conf").read_text(encoding="utf-8")
    folder.mkdir(exist_ok=True)
    certificate(folder)
    changes = {
        "    listen [::]:80;\n": "",
        "    listen [::]:443 ssl http2;\n": "",
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{port} ssl http2;",
        f"/etc/ssl/{HOST}/": f"{folder}/",
        "/etc/nginx/evalsite-proxy.conf": f"{folder}/proxy.conf",
    }
    for said, meant in changes.items():
        assert said in config, said
        config = config.replace(said, meant)
    assert "127.0.0.1:8000" in proxy
    (folder / "proxy.conf").write_text(proxy.replace("127.0.0.1:8000", f"127.0.0.1:{behind}"))
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "main.conf").write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 4096; }}\nhttp {{ access_log off;\n{temporary}{config}}}\n"
    )
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    process = subprocess.Popen([shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-c", f"{folder}/main.conf", *user])
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "error.log").read_text()
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def certificate(folder: Path) -> None:
    """A certificate for HOST that we signed ourselves, and its key."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


class Slow:
    """Clients that began a request and do not end it: half of them in its head, half in its body."""

    def __init__(self, port: int, number: int, *, wrap=lambda plain: plain) -> None:
        self.sockets = []
        for index in range(number):
            one = wrap(socket.create_connection(("127.0.0.1", port), timeout=30))
            head = b"POST /accounts/sign-in/ HTTP/1.1\r\nHost: eval.example.org\r\nX-Forwarded-Proto: https\r\n"
            body = b"Cookie: csrftoken=" + b"a" * 32 + b"\r\nContent-Length: 5000\r\n"
            form = b"Content-Type: application/x-www-form-urlencoded\r\n\r\nusername=ad"
            one.sendall(head + body + form if index % 2 else head)
            self.sockets.append(one)

    def drip(self) -> int:
        """Send a byte more from each; how many are still connected."""
        alive = 0
        for one in self.sockets:
            try:
                one.sendall(b"x")
                alive += 1
            except OSError:
                continue
        return alive

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for one in self.sockets:
            one.close()
