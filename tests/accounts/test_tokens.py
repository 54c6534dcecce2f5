"""Tokens for the API, made by the one who uses them."""

import re

import pytest
from django.test import Client
from knox.models import AuthToken

pytestmark = pytest.mark.django_db
PAGE = "/accounts/tokens/"


def shown(answer):
    return re.findall(r'class="mono token">([0-9a-f]+)<', answer.content.decode())


def test_a_person_makes_a_token_sees_it_once_and_revokes_it(client_of, people):
    client = client_of("researcher")
    token, *listed = shown(client.post(PAGE))
    assert listed == [token[:8]]
    headers = {"HTTP_AUTHORIZATION": f"Token {token}"}
    assert Client().get("/api/v1/runs/", **headers).status_code == 200
    assert shown(client.get(PAGE)) == [token[:8]]
    gone = client.post(PAGE, {"revoke": token[:8]}, follow=True)
    assert "The token is revoked" in gone.content.decode()
    assert Client().get("/api/v1/runs/", **headers).status_code == 401
    assert shown(client.get(PAGE)) == []


def test_nobody_sees_or_revokes_anothers(client_of, people):
    token = AuthToken.objects.create(people["curator"])[1]
    client = client_of("researcher")
    assert shown(client.get(PAGE)) == []
    for start in (token[:8], "", "        ", token):
        client.post(PAGE, {"revoke": start})
    assert AuthToken.objects.count() == 1


def test_ten_are_the_most(client_of):
    client = client_of("annotator")
    for _ in range(12):
        answer = client.post(PAGE)
    assert AuthToken.objects.count() == 10
    assert len(shown(answer)) == 10
    assert "revoke one first" in answer.content.decode()
