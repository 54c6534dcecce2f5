"""Signing in and out."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import SignInCount

pytestmark = pytest.mark.django_db
SIGN_IN = "/accounts/sign-in/"
TOO_MANY = "Too many attempts"


def sign_in(client, name, password, **headers):
    return client.post(SIGN_IN, {"username": name, "password": password}, **headers)


@pytest.mark.check("D5")
def test_a_person_signs_in_with_a_new_session_and_out_again(people):
    client = Client()
    client.get("/")
    assert sign_in(client, "curator", "a-long-password").status_code == 302
    assert client.get("/bank/").status_code == 200
    assert client.post("/accounts/sign-out/").status_code == 302
    assert client.get("/bank/").status_code == 302


def test_ten_failures_for_a_name_from_a_place_close_it_there_for_a_while(people):
    client = Client()
    for number in range(10):
        assert sign_in(client, "curator", "wrong", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}").status_code == 200
    refused = sign_in(client, "Curator", "a-long-password", HTTP_X_FORWARDED_FOR="10.9.9.9")
    assert TOO_MANY in refused.content.decode()


@pytest.mark.check("D8", "K2")
def test_a_place_is_a_whole_network_of_ipv6_and_locks_nobody_out_elsewhere(people):
    for number in range(12):
        refused = sign_in(Client(), "curator", "wrong", REMOTE_ADDR=f"2001:db8::{number}")
    assert TOO_MANY in refused.content.decode()
    assert sign_in(Client(), "researcher", "a-long-password", REMOTE_ADDR="2001:db8::1").status_code == 302
    assert sign_in(Client(), "curator", "a-long-password", REMOTE_ADDR="2001:db8:0:1::1").status_code == 302


@pytest.mark.check("K2")
@pytest.mark.parametrize(
    ("proxies", "forwarded"), [(1, "10.0.0.{}, 192.0.2.1"), (2, "10.0.0.{}, 192.0.2.1, 172.16.0.1")]
)
def test_of_proxies_only_what_the_trusted_ones_noted_is_believed(people, settings, proxies, forwarded):
    settings.TRUSTED_PROXIES = proxies
    for number in range(11):
        refused = sign_in(Client(), "curator", "wrong", HTTP_X_FORWARDED_FOR=forwarded.format(number))
    assert TOO_MANY in refused.content.decode()
    elsewhere = forwarded.format(1).replace("192.0.2.1", "192.0.2.2")
    assert sign_in(Client(), "curator", "a-long-password", HTTP_X_FORWARDED_FOR=elsewhere).status_code == 302


@pytest.mark.check("K2")
def test_a_hundred_failures_from_a_place_close_that_place_alone(people):
    known = Client()
    assert sign_in(known, "researcher", "a-long-password").status_code == 302
    known.post("/accounts/sign-out/")
    for number in range(100):
        assert TOO_MANY not in sign_in(Client(), f"nobody-{number // 5}", "wrong").content.decode()
    assert TOO_MANY in sign_in(Client(), "curator", "a-long-password").content.decode()
    assert sign_in(Client(), "curator", "a-long-password", REMOTE_ADDR="192.0.2.7").status_code == 302
    assert sign_in(known, "researcher", "a-long-password").status_code == 302  # in a browser that is known


@pytest.mark.check("K2")
def test_guesses_from_everywhere_do_not_lock_a_person_out_of_a_browser_that_is_known(people):
    own = Client()
    assert sign_in(own, "curator", "a-long-password").status_code == 302
    own.post("/accounts/sign-out/")
    for number in range(60):
        refused = sign_in(Client(), "curator", "wrong", REMOTE_ADDR=f"198.51.100.{number}")
    assert TOO_MANY in refused.content.decode()
    assert sign_in(own, "curator", "a-long-password").status_code == 302
    own.post("/accounts/sign-out/")
    stranger = Client()
    stranger.cookies["known_browser"] = own.cookies["known_browser"].value[:-1]  # not as it was signed
    assert TOO_MANY in sign_in(stranger, "curator", "a-long-password").content.decode()
    for _ in range(11):
        refused = sign_in(own, "curator", "wrong")
    assert TOO_MANY in refused.content.decode()


@pytest.mark.check("D8")
def test_a_lock_ends_by_itself_and_what_was_counted_is_forgotten(people):
    for _ in range(11):
        sign_in(Client(), "curator", "wrong")
    earlier = timezone.now() - timedelta(minutes=15)
    SignInCount.objects.update(since=earlier)
    assert sign_in(Client(), "curator", "wrong").status_code == 200
    assert sign_in(Client(), "curator", "a-long-password").status_code == 302
    SignInCount.objects.update(since=earlier - timedelta(minutes=15))
    sign_in(Client(), "nobody", "wrong")
    assert not SignInCount.objects.filter(since__lte=earlier).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.check("E1", "K2")
def test_of_guesses_made_at_once_no_more_are_tried_than_the_limit(people):
    def guess(_):
        try:
            return TOO_MANY in sign_in(Client(), "curator", "wrong").content.decode()
        finally:
            connection.close()

    with ThreadPoolExecutor(24) as pool:
        refused = list(pool.map(guess, range(24)))
    assert refused.count(False) == 10
    assert TOO_MANY in sign_in(Client(), "curator", "a-long-password").content.decode()


def test_a_success_forgets_the_failures(people):
    client = Client()
    for _ in range(9):
        sign_in(client, "curator", "wrong")
    assert sign_in(client, "curator", "a-long-password").status_code == 302
    client.post("/accounts/sign-out/")
    assert sign_in(client, "curator", "a-long-password").status_code == 302


@pytest.mark.check("B6")
def test_a_disabled_person_is_out_at_the_next_request(people, client_of):
    client = client_of("curator")
    assert client.get("/bank/").status_code == 200
    people["curator"].is_active = False
    people["curator"].save()
    assert client.get("/bank/").status_code == 302
