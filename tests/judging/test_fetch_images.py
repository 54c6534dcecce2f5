"""Pictures that a benchmark knows by their address only are fetched by command: listed hosts, checked, resumable."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from bank.models import Benchmark, Sample, SampleImage
from judging.endpoints import pictures
from judging.endpoints.client import PublicResolver
from tests.bank.conftest import manage

__all__ = ["manage"]
pytestmark = pytest.mark.django_db


def png(number=0) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (12, 9), (number, 80, 90)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def site(monkeypatch):
    """A web server on this machine: ``site.pages`` by path, (status, headers, body); ``site.asked`` the paths."""

    monkeypatch.setattr(pictures, "PAUSE", 0.01)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.asked.append(self.path)
            status, headers, body = site.pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.pages, site.asked = {}, []
    site.url = f"http://127.0.0.1:{site.server_port}"
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})  # of whether it is to stop
    thread.start()
    yield site
    site.shutdown()
    thread.join()
    site.server_close()


@pytest.fixture
def bench(db, media):
    def make(*urls):
        benchmark = Benchmark.objects.create(slug="mia", title="MIA")
        for number, url in enumerate(urls):
            absent = [{"position": 0, "url": url, "description": "a bowl", "objects": ["bowl"]}]
            Sample.objects.create(
                benchmark=benchmark, key=f"s{number}", instruction="?", position=number, absent_images=absent
            )
        return benchmark

    return make


@pytest.fixture
def local(settings):
    settings.IMAGE_HOSTS = ["127.0.0.1"]


def test_pictures_are_fetched_stored_and_recorded_and_the_same_command_goes_on(bench, site, local, manage):
    site.pages = {"/a.png": (200, {}, png(1)), "/b": (302, {"location": "/c.png"}, b""), "/c.png": (200, {}, png(2))}
    bench(f"{site.url}/a.png", f"{site.url}/b", f"{site.url}/gone.png")
    status, out, words = manage("fetch_images", "--benchmark", "mia")
    assert status == 1
    assert "2 pictures stored, 1 not." in out
    assert "s2: 127.0.0.1 answers 404" in words
    image = SampleImage.objects.get(sample__key="s0")
    assert (image.width, image.height, image.description, image.objects_found) == (12, 9, "a bowl", ["bowl"])
    assert (image.source_url, len(image.original_sha256)) == (f"{site.url}/a.png", 64)
    sample = Sample.objects.get(key="s0")
    assert sample.absent_images == []
    assert sample.revisions.get().note == "Picture fetched from 127.0.0.1"
    site.asked.clear()
    site.pages["/gone.png"] = (200, {}, png(3))
    assert manage("fetch_images", "--benchmark", "mia")[0] == 0
    assert site.asked == ["/gone.png"]
    assert "No picture" in manage("fetch_images", "--benchmark", "mia")[1]


def test_hosts_that_nobody_listed_are_not_asked(bench, site, manage):
    bench(f"{site.url}/a.png", "https://pictures.example.org/b.png", "ftp://x/y.png")
    status, _, words = manage("fetch_images", "--benchmark", "mia")
    assert status == 2
    assert "--hosts 127.0.0.1,pictures.example.org" in words
    out = manage("fetch_images", "--benchmark", "mia", "--hosts", "pictures.example.org", "--dry-run")[1]
    assert "1 from 127.0.0.1 (not listed)" in out
    assert "1 from pictures.example.org\n" in out
    # Saying --hosts does not open this machine: only the installation's own list does.
    status, _, words = manage("fetch_images", "--benchmark", "mia", "--hosts", "127.0.0.1")
    assert status == 1
    assert "s0: 127.0.0.1 is a private address" in words
    assert "s2: the address is neither http nor https" in words
    assert site.asked == []


def test_a_redirect_is_checked_like_the_first_address(bench, site, local, manage):
    targets = {
        "/1": "http://169.254.169.254/latest/meta-data/",
        "/2": "http://[::1]/x",
        "/3": "file:///etc/passwd",
        "/4": "/4",
    }
    site.pages = {path: (302, {"location": target}, b"") for path, target in targets.items()}
    bench(*(site.url + path for path in targets))
    status, _, words = manage("fetch_images", "--benchmark", "mia", "--hosts", "169.254.169.254,::1")
    assert status == 1
    assert "s0: 169.254.169.254 is a private address" in words
    assert "s1: ::1 is a private address" in words
    assert "s2: the address is neither http nor https" in words
    assert "s3: more than 5 redirects" in words
    assert not SampleImage.objects.exists()


def test_a_name_that_stands_for_a_private_address_is_refused(bench, manage, monkeypatch):
    class Turned:
        async def resolve(self, host, port=0, family=0):
            return [{"hostname": host, "host": "10.0.0.7", "port": port, "family": family, "proto": 0, "flags": 0}]

        async def close(self):
            pass

    monkeypatch.setattr(pictures, "PublicResolver", lambda listed: PublicResolver(listed, Turned()))
    bench("http://pictures.example.org/a.png")
    status, _, words = manage("fetch_images", "--benchmark", "mia", "--hosts", "pictures.example.org")
    assert status == 1
    assert "s0: pictures.example.org is a private address" in words


@pytest.mark.parametrize(
    "host",
    [
        "１２７.0.0.1",
        "127。0。0。1",
        "ⓛocalhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
        "127.0.0.1.",
    ],
)
def test_another_spelling_of_this_machine_is_refused_though_it_is_listed(bench, site, manage, host):
    bench(f"http://{host}:{site.server_port}/a.png")
    site.pages = {"/a.png": (200, {}, png())}
    spellings = {host, host.lower(), host.strip("[]"), pictures.host_of(f"http://{host}/"), "localhost", "127.0.0.1"}
    status, _, _ = manage("fetch_images", "--benchmark", "mia", "--hosts", ",".join(spellings))
    assert status == 1
    assert site.asked == []
    assert not SampleImage.objects.exists()


def test_what_is_no_picture_or_too_large_is_not_stored(bench, site, local, manage, monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST", 5_000)
    site.pages = {"/a": (200, {}, b"<html>"), "/b": (200, {}, b"x" * 6_000), "/c": (503, {}, b"")}
    bench(*(site.url + path for path in site.pages))
    status, out, words = manage("fetch_images", "--benchmark", "mia")
    assert status == 1
    assert "0 pictures stored, 3 not." in out
    assert "s0: not a readable PNG, JPEG or WebP picture" in words
    assert "s1: larger than" in words
    assert "s2: 127.0.0.1 answers 503" in words
    assert site.asked.count("/c") == 2
    assert Sample.objects.get(key="s0").absent_images
