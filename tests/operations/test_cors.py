"""Pages of other sites and the API: closed unless the operator names an origin, and never with cookies."""

import pytest

from tests.operations.served import asked, free_port, running, wait_for

ORIGIN, OTHER = "https://notebook.example.org", "https://evil.example.org"
LIST = "/api/v1/benchmarks/"
ASKS = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization,upload-offset"}


@pytest.fixture(scope="module")
def opened(here, tmp_path_factory):
    """The port of an installation that names an origin."""
    port, log = free_port(), tmp_path_factory.mktemp("cors") / "log"
    command = ["manage.py", "serve", "--no-worker", "--bind", f"127.0.0.1:{port}"]
    with running(here, command, log, CORS_ORIGINS=ORIGIN) as process:
        wait_for(port, process, log)
        yield port


def allowed(headers):
    return headers["Access-Control-Allow-Origin"]


def test_a_named_origin_may_read_the_api_without_cookies_and_no_other_may(opened):
    for method, more in (("GET", {}), ("OPTIONS", ASKS)):
        status, headers, _ = asked(opened, LIST, method=method, Origin=ORIGIN, **more)
        assert (status, allowed(headers)) == (200, ORIGIN)
        assert headers["Access-Control-Allow-Credentials"] is None
        assert "origin" in headers["Vary"].lower()
        assert allowed(asked(opened, LIST, method=method, Origin=OTHER, **more)[1]) is None
    assert "upload-offset" in headers["Access-Control-Allow-Headers"]
    refused, headers, _ = asked(opened, "/api/v1/runs/", Origin=ORIGIN)
    assert (refused, allowed(headers)) == (401, ORIGIN)


def test_pages_stay_closed_to_the_origin_that_may_call_the_api(opened):
    for path in ("/", "/accounts/sign-in/", "/api/docs/"):
        assert allowed(asked(opened, path, Origin=ORIGIN)[1]) is None


def test_without_the_setting_no_origin_may(served):
    port, _ = served
    for method, more in (("GET", {}), ("OPTIONS", ASKS)):
        assert allowed(asked(port, LIST, method=method, Origin=ORIGIN, **more)[1]) is None
