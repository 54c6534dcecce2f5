"""What every response carries."""

import pytest

from tests.access.conftest import ROLES
from tests.access.test_routes import doors

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
STRICT = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.check("D2")
def test_every_response_carries_the_headers(role, world, client_of):
    for name, path in [*doors(world), ("nowhere", "/nowhere/"), ("traversal", "/bank/images/../x.png")]:
        client = client_of(role)
        client.raise_request_exception = False
        headers = client.get(path).headers
        policy = {part.strip() for part in headers["Content-Security-Policy"].split(";")}
        assert policy >= STRICT, name
        assert not any("unsafe" in part for part in policy), name
        assert headers["X-Content-Type-Options"] == "nosniff", name
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin", name
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin", name
        assert headers["X-Frame-Options"] == "DENY", name
        assert headers["Referrer-Policy"] == "same-origin", name


@pytest.mark.check("D10")
def test_signed_in_pages_are_kept_nowhere_and_answers_of_the_api_are_asked_for_again(world, client_of):
    client = client_of("curator")
    for name, path in doors(world):
        answer = client.get(path)
        control = answer.headers.get("Cache-Control", "")
        if name.endswith("image") or answer.status_code == 302:
            continue
        assert "no-store" in control or (name.startswith("api-") and "private" in control), (name, control)
        if name == "accounts:sign-out":
            client = client_of("curator")


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
