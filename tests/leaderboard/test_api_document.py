"""What the API's document says of boards is what is sent; and every operation says how it refuses."""

import re

import pytest
from jsonschema import Draft202012Validator

from leaderboard.registry import TABLES
from tests.bank.conftest import folder, manage
from tests.leaderboard.test_keyed_boards import quiz
from tests.leaderboard.test_tables import NEEDED, got

__all__ = ["folder", "manage", "quiz"]
pytestmark = pytest.mark.django_db
PARTS = {"people-and-judge": ("ranks", "levels"), "correlation": ("ranks", "repeats"), "compare": ("levels",)}
VIEWS = [
    *((name, {}) for name in sorted(TABLES.keys() - {"letters", "extraction"})),
    *((name, {"part": part}) for name, parts in PARTS.items() for part in parts),
    *((name, {"benchmark": "quiz"}) for name in ("models", "abilities", "letters", "extraction")),
    *(("bias", {"kind": kind}) for kind in ("score", "batch")),
]


@pytest.fixture
def document(client):
    return client.get("/api/schema/?format=json").json()


@pytest.mark.parametrize(("what", "query"), VIEWS)
def test_the_rows_of_a_board_are_what_the_document_says(what, query, document, quiz, voted, client_of):
    operation = document["paths"][f"/api/v1/leaderboards/{what}/"]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["type"] == "array"
    rows = got(client_of("administrator"), what, **NEEDED.get(what, {}) | query).json()
    validator = Draft202012Validator(schema | {"components": document["components"]})
    assert [error.message for error in validator.iter_errors(rows)] == []
    known = {name for sort in sorts(schema["items"], document) for name in sort["properties"]}
    assert {name for row in rows for name in row} <= known, "no column is left out"


def sorts(schema, document):
    """The objects that rows of a list may be."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name:
        return sorts(document["components"]["schemas"][name], document)
    return [each for choice in schema["anyOf"] for each in sorts(choice, document)] if "anyOf" in schema else [schema]


def test_every_operation_has_a_summary_answers_with_types_and_says_how_it_refuses(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], path
            assert {"401", "403", "404", "429"} <= operation["responses"].keys(), (method, path)
            for status, answer in operation["responses"].items():
                for media, content in answer.get("content", {}).items():
                    bare = content["schema"].get("type") == "object" and not content["schema"].get("properties")
                    assert not bare, f"{method} {path} {status} {media} says object and nothing else"


def test_what_stands_in_a_path_is_described_with_it(document):
    for path, operations in document["paths"].items():
        for operation in operations.values():
            named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)), path
