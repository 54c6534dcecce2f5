"""What strangers may ask of boards and rows in a minute."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import Client

from accounts.tokens import make_token
from evalsite import middleware
from tests.markup import flat

pytestmark = pytest.mark.django_db
BOARD, ROWS = "/leaderboards/", "/api/v1/benchmarks/"


@pytest.fixture
def five(settings, tmp_path, monkeypatch):
    """Five a minute, counted anew for each test, in a minute that does not end meanwhile."""
    settings.ANONYMOUS_PER_MINUTE, settings.DATA = 5, tmp_path
    monkeypatch.setattr(middleware.time, "time", lambda: 1_700_000_010.0)


def statuses(paths, **sent):
    return [Client().get(path, **sent).status_code for path in paths]


@pytest.mark.check("E2")
def test_a_stranger_who_asks_too_often_is_told_when_to_come_back(people, five):
    assert statuses([BOARD, ROWS] * 2 + [BOARD]) == [200] * 5
    page, rows = Client().get(BOARD), Client().get(ROWS)
    assert (page.status_code, rows.status_code) == (429, 429)
    assert 0 < int(page.headers["Retry-After"]) <= 60
    assert "Wait a minute, or sign in" in flat(page)
    assert "Too many requests" in rows.json()["detail"]


def test_others_and_other_pages_are_not_held_back_by_it(people, five, client_of, settings):
    statuses([BOARD] * 7)
    assert statuses([BOARD], REMOTE_ADDR="192.0.2.9") == [200]
    assert statuses(["/", "/accounts/sign-in/", "/healthz", "/api/docs/"]) == [200] * 4
    assert client_of("researcher").get(BOARD).status_code == 200
    token = make_token(person=people["researcher"])[1]
    assert Client().get(ROWS, headers={"Authorization": f"Token {token}"}).status_code == 200
    assert Client().get(ROWS, headers={"Authorization": "Token made-up"}).status_code == 401
    assert Client().get(BOARD, headers={"Authorization": f"Token {token}"}).status_code == 429
    settings.ANONYMOUS_PER_MINUTE = 0
    assert statuses([BOARD]) == [200]


def test_a_stranger_does_not_get_round_it_by_a_made_up_address(people, five, settings):
    settings.TRUSTED_PROXIES = 1
    for number in range(6):
        last = Client().get(BOARD, HTTP_X_FORWARDED_FOR=f"10.0.0.{number}, 192.0.2.1")
    assert last.status_code == 429
    assert Client().get(BOARD, HTTP_X_FORWARDED_FOR="10.0.0.1, 192.0.2.2").status_code == 200


@pytest.mark.check("E1")
def test_requests_at_once_all_count(five):
    with ThreadPoolExecutor(40) as pool:
        waits = list(pool.map(lambda _: middleware.count_request("192.0.2.1", most=7), range(200)))
    assert waits.count(0) == 7


def test_the_next_minute_begins_anew(five, monkeypatch):
    assert [bool(middleware.count_request("192.0.2.1", most=1)) for _ in range(2)] == [False, True]
    monkeypatch.setattr(middleware.time, "time", lambda: 1_700_000_070.0)
    assert not middleware.count_request("192.0.2.1", most=1)
