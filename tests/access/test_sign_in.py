"""Signing in and out."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
SIGN_IN = "/accounts/sign-in/"


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


@pytest.mark.check("D8")
def test_ten_failures_for_an_account_close_it_for_a_while_whatever_address_is_claimed(people):
    client = Client()
    for number in range(10):
        assert sign_in(client, "curator", "wrong", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}").status_code == 200
    refused = sign_in(client, "curator", "a-long-password", HTTP_X_FORWARDED_FOR="10.9.9.9")
    assert "Too many attempts" in refused.content.decode()


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
