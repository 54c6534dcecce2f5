"""What webhooks are told of submissions and editions: that they are there, and nothing that is in them."""

import json

import pytest

from accounts.models import Delivery, Webhook
from accounts.webhooks import EVENTS
from tests.bank.conftest import folder, manage
from tests.bank.test_submissions import allow, answers, choices, send
from tests.leaderboard.test_editions import publish
from tests.leaderboard.test_keyed_boards import quiz

__all__ = ["allow", "choices", "folder", "manage", "publish", "quiz", "send"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def webhook(people):
    secret, by = "whsec_c2VjcmV0", people["administrator"]
    return Webhook.objects.create(url="https://hooks.example.org/", events=list(EVENTS), secret=secret, by=by)


def told():
    """The event and the data of each delivery, oldest first."""
    rows = Delivery.objects.order_by("created_at")
    return [(row.event, json.loads(row.body)["data"]) for row in rows]


def test_of_a_submission_the_id_and_what_became_of_it_are_told_and_neither_model_nor_sender_nor_score(
    choices, allow, send
):
    benchmark = choices(dev=8, test=20)
    allow(benchmark, hidden=["test"])
    scored = send(benchmark, list(answers(benchmark)))
    failed = send(benchmark, [], name="Lark", raw="{")
    (first, data), (second, other) = told()
    assert (first, second) == ("submission.scored", "submission.failed")
    assert set(data) == set(other) == {"id", "state", "url", "benchmark"}
    assert (data["id"], data["state"]) == (scored.pk, "scored")
    assert (other["id"], other["state"]) == (failed.pk, "failed")


def test_an_edition_is_told_with_its_board_and_without_a_figure(quiz, publish):
    edition = publish()
    ((event, data),) = told()
    assert event == "edition.published"
    assert data.pop("url")
    assert data == {
        "id": edition.pk,
        "state": "published",
        "benchmark": "quiz@1",
        "board": "models",
        "kind": "choice",
    }
