"""Requests to the API that no honest script sends: each is answered in words, none by an error of the server."""

import base64
import json

import pytest

from leaderboard.registry import TABLES
from tests.access.world import PUBLIC

LISTS = ("judgments", "runs", "labels", "items", "responses", "samples", "campaigns", "models", "submissions")


def posted(client, path, body: str):
    return client.post(f"/api/v1/{path}/", body, content_type="application/json")


@pytest.mark.parametrize("position", ["\x00", "a", "-1", "9" * 40, "٣"])
def test_a_forged_cursor_is_none(world, client_of, position):
    cursor = base64.b64encode(f"p={position}".encode()).decode()
    client = client_of("curator")
    for name in LISTS:
        assert client.get(f"/api/v1/{name}/", {"cursor": cursor}).status_code == 404, name


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("judgments/?run=", "9" * 40),
        ("labels/?item=", "9" * 40),
        ("judgments/?sample=", "%00"),
        ("runs/?judge=", "%00"),
        ("models/?name=", "a%00b"),
    ],
)
def test_a_filter_takes_no_value_that_the_database_cannot_hold(world, client_of, path, value):
    answer = client_of("curator").get(f"/api/v1/{path}{value}")
    assert answer.status_code == 400
    assert "Not a value of this filter." in answer.content.decode()


def test_a_name_with_a_nul_is_no_name(world, client_of):
    client, staff = client_of("researcher"), client_of("curator")  # who may read every board
    for board in (*TABLES, "models/compare", "judges/compare"):
        assert staff.get(f"/api/v1/leaderboards/{board}/?benchmark=%00&a=x&b=y").status_code in (400, 404), board
    assert client.get("/find/?q=sam%00ple").status_code == 200
    assert client.get("/submissions/new/?benchmark=%00").status_code in (200, 404)


def test_comparing_models_of_a_kind_without_verdicts_is_refused_in_words(world, client_of):
    for kind in ("score", "components", "batch"):
        path = f"/api/v1/leaderboards/models/compare/?benchmark={PUBLIC}&kind={kind}&a=model-one&b=model-two"
        answer = client_of("anonymous").get(path)
        assert answer.status_code == 400, kind
        assert "detail" in answer.json(), kind


def test_a_long_number_may_be_the_key_of_a_sample(world, client_of):
    assert client_of("curator").get(f"/api/v1/samples/?key={'9' * 40}").json()["results"] == []


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"choice": "\ud800", "kind": "\udfff", "name": "\ud800", "settings": {"prompt": "\ud800"}}),
        json.dumps({"\ud800": 1}),
        json.dumps({"flags": [["\ud83d"]]}),
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_a_body_with_half_a_character_or_without_a_bottom_is_refused(world, client_of, body):
    client = client_of("curator")
    for path in ("labels", "runs", "judges", "items", "juries", "prompts", "uploads"):
        answer = posted(client, path, body)
        assert answer.status_code == 400, path
        assert "detail" in answer.json(), path


def test_a_character_beyond_the_basic_plane_written_as_a_pair_is_one(world, client_of):
    answer = posted(client_of("curator"), "labels", r'{"assignment": 1, "comment": "\ud83d\ude00"}')
    assert answer.status_code == 404  # no such assignment: the body is fine
