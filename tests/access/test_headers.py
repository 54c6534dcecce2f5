"""What responses carry beside their content; what all of them do is in test_crawl.py."""

import gzip

import pytest

from tests.access.world import PUBLIC

pytestmark = pytest.mark.django_db


def test_the_api_answers_304_to_a_known_etag_and_not_to_a_changed_world(world, client_of):
    client = client_of("researcher")
    first = client.get("/api/v1/samples/")
    assert client.get("/api/v1/samples/", HTTP_IF_NONE_MATCH=first.headers["ETag"]).status_code == 304
    sample = next(iter(world.samples.values()))
    sample.instruction = "Another."
    sample.save()
    assert client.get("/api/v1/samples/", HTTP_IF_NONE_MATCH=first.headers["ETag"]).status_code == 200


def test_production_speaks_only_https_and_says_so_for_a_year(client, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    assert client.get("/").status_code == 301
    assert "max-age=31536000" in client.get("/", secure=True).headers["Strict-Transport-Security"]


@pytest.mark.parametrize("page", ["/nowhere/", "/bank/samples/99999999/", "/api/v1/samples/x/"])
def test_an_error_page_tells_nothing(page, world, client_of):
    answer = client_of("curator").get(page)
    assert answer.status_code == 404
    for word in (b"Traceback", b"evalsite.settings", b"SELECT", b"Exception"):
        assert word not in answer.content


def test_pages_go_out_compressed_and_pictures_as_they_are(world, client):
    plain = client.get("/leaderboards/")
    page = client.get("/leaderboards/", headers={"Accept-Encoding": "gzip"})
    assert page.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in page.headers["Vary"]
    assert len(page.content) < len(plain.content) / 2
    again = client.get("/leaderboards/", headers={"Accept-Encoding": "gzip"})
    assert again.content != page.content  # bytes at random
    assert gzip.decompress(again.content) == plain.content
    image = world.samples[PUBLIC].images.get()
    picture = client.get(f"/bank/images/{image.sha256}.png", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in picture.headers
