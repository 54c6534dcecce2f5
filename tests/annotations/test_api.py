"""Labelling by script: the contract of the API."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.tokens import make_token
from annotations.assignment.gold import mark_gold
from annotations.campaigns.actions import close_campaign, make_campaign, pause_campaign
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.members import make_annotator
from annotations.labels.actions import return_label
from annotations.models import Assignment, Campaign, Label
from bank import images
from bank.models import Benchmark, Sample, SampleImage
from tests.bank.conftest import picture

pytestmark = pytest.mark.django_db


class Caller:
    """Speaks JSON with a token."""

    def __init__(self, user):
        self.client = Client(headers={"Authorization": f"Token {make_token(person=user)[1]}"})

    def get(self, path):
        return self.client.get(f"/api/v1/{path}")

    def post(self, path, body=None):
        return self.client.post(f"/api/v1/{path}", json.dumps(body or {}), content_type="application/json")

    def put(self, path, body):
        return self.client.put(f"/api/v1/{path}", json.dumps(body), content_type="application/json")


@pytest.fixture
def room(campaign_of):
    campaign, members = campaign_of(3, 2, name="Round 1/a (b)")
    return campaign, members, [Caller(member.person) for member in members]


NEXT = "campaigns/Round%201/a%20(b)/next/"


class TestNext:
    def test_it_answers_what_there_is_to_label(self, room, settings, tmp_path):
        settings.MEDIA_ROOT = tmp_path
        stored = images.ingest(picture())
        facts = {name: getattr(stored, name) for name in ("sha256", "original_sha256", "kind", "width", "height")}
        for sample in Sample.objects.all():
            SampleImage.objects.create(sample=sample, description="boats", **facts)
        _, _, (one, _) = room
        answer = one.post(NEXT)
        assert answer.status_code == 200
        body = answer.json()
        assert set(body) == {
            *("assignment", "item", "protocol", "sample", "responses", "verdicts", "lease_until"),
        }
        assert body["protocol"] == "pairwise-criteria"
        assert set(body["sample"]) == {"instruction", "images"}
        assert [set(response) for response in body["responses"]] == [{"text"}, {"text"}]
        assert body["verdicts"] == {"choice": ["left", "right", "tie", "undecided"], "situation": [1, 2]}
        assert "model-" not in answer.content.decode()
        (image,) = body["sample"]["images"]
        assert image["description"] == "boats"
        assert one.client.get(image["url"]).headers["Content-Type"] == "image/png"

    def test_a_web_server_whose_clock_is_wrong_takes_no_lease_from_anybody(self, room, monkeypatch):
        _, _, (one, two) = room
        mine = one.post(NEXT).json()
        true = timezone.now
        for wrong in (timedelta(hours=3), timedelta(hours=-3)):
            monkeypatch.setattr(timezone, "now", lambda wrong=wrong: true() + wrong)
            two.post(NEXT)
        monkeypatch.undo()
        leased = Assignment.objects.order_by("pk")
        assert [row.state for row in leased] == ["leased"] * 2
        assert leased[0].pk == mine["assignment"]
        assert all(timedelta(0) < row.lease_until - true() < timedelta(hours=2) for row in leased)

    def test_a_second_call_answers_the_same_and_prefetch_one_more(self, room):
        _, _, (one, _) = room
        first = one.post(NEXT).json()["assignment"]
        assert one.post(NEXT).json()["assignment"] == first
        second = one.post(NEXT, {"prefetch": True}).json()["assignment"]
        assert second != first
        assert one.post(NEXT, {"prefetch": True}).json()["assignment"] == second

    def test_204_when_nothing_is_left(self, room):
        _, _, (one, two) = room
        for _ in range(3):
            one.post("labels/", {"assignment": one.post(NEXT).json()["assignment"], "choice": "tie"})
        assert one.post(NEXT).status_code == 204
        assert two.post(NEXT).status_code == 204

    def test_a_body_may_be_missing(self, room):
        _, _, (one, _) = room
        assert one.client.generic("POST", f"/api/v1/{NEXT}").status_code == 200

    def test_a_foreign_campaign_is_absent(self, room, people):
        stranger = Caller(people["annotator"])
        assert stranger.post(NEXT).status_code == 404
        make_annotator(people["annotator"])
        assert stranger.post(NEXT).status_code == 404
        assert stranger.post("campaigns/none/next/").status_code == 404

    def test_a_paused_or_closed_campaign_is_409_in_words(self, room, now):
        campaign, _, (one, _) = room
        pause_campaign(campaign=campaign)
        assert one.post(NEXT).status_code == 409
        assert "paused" in one.post(NEXT).json()["detail"]
        close_campaign(campaign=campaign, now=now)
        assert "closed" in one.post(NEXT).json()["detail"]

    def test_an_annotator_without_a_row_joins_a_campaign_for_all(self, pairs, people):
        make_campaign(name="all", benchmark=pairs(1), protocol="pair")
        assert Caller(people["annotator"]).post("campaigns/all/next/").status_code == 200


class TestLabels:
    def test_201_the_first_time_and_200_with_the_same_label_after(self, room):
        _, _, (one, _) = room
        assignment = one.post(NEXT).json()["assignment"]
        body = {
            **{"assignment": assignment, "idempotency_key": "abc", "choice": "undecided", "situation": 2},
            **{"seconds": 12.5, "comment": "hm", "confidence": 0.5, "flags": ["other"]},
        }
        first = one.post("labels/", body)
        assert first.status_code == 201
        assert first.json()["choice"] == "undecided"
        for _ in range(10):
            again = one.post("labels/", body)
            assert (again.status_code, again.json()) == (200, first.json())
        label = Label.objects.get()
        assert (label.seconds, label.comment, label.confidence, label.flags) == (12.5, "hm", 0.5, ["other"])

    @pytest.mark.parametrize("choice", ["left", "right"])
    def test_the_answer_speaks_of_sides_and_the_store_of_canonical_order(self, room, choice):
        _, _, (one, _) = room
        assignment = one.post(NEXT).json()["assignment"]
        Assignment.objects.update(order="10")
        answer = one.post("labels/", {"assignment": assignment, "choice": choice})
        assert answer.json()["choice"] == choice
        assert Label.objects.get().choice == {"left": "second", "right": "first"}[choice]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"choice": "first"}, "choice"),
            ({"choice": None}, "choice"),
            ({}, "choice"),
            ({"choice": "undecided"}, "situation"),
            ({"choice": "left", "situation": 9}, "situation"),
            ({"choice": "left", "score": 3}, "score"),
            ({"choice": "left", "ranking": [0, 1]}, "ranking"),
            ({"choice": "left", "answer": True}, "answer"),
            ({"choice": "left", "verdict": "x"}, "verdict"),
            ({"choice": "left", "seconds": "long"}, "seconds"),
            ({"choice": "left", "flags": "x"}, "flags"),
            ({"choice": "left", "comment": "a\x00"}, "comment"),
            ({"choice": "left", "idempotency_key": "k" * 65}, "idempotency_key"),
        ],
    )
    def test_400_names_what_is_wrong(self, room, body, field):
        _, _, (one, _) = room
        assignment = one.post(NEXT).json()["assignment"]
        answer = one.post("labels/", {"assignment": assignment} | body)
        assert answer.status_code == 400
        assert list(answer.json()) == [field]
        assert not Label.objects.exists()

    @pytest.mark.parametrize("body", ["[]", '"x"', "{", '{"choice": NaN}', ""])
    def test_what_is_no_object_is_400(self, room, body):
        _, _, (one, _) = room
        answer = one.client.post("/api/v1/labels/", body, content_type="application/json")
        assert answer.status_code == 400

    def test_a_second_label_is_409_in_words(self, room):
        _, _, (one, _) = room
        assignment = one.post(NEXT).json()["assignment"]
        one.post("labels/", {"assignment": assignment, "choice": "left", "idempotency_key": "a"})
        answer = one.post("labels/", {"assignment": assignment, "choice": "left", "idempotency_key": "b"})
        assert answer.status_code == 409
        assert "already" in answer.json()["detail"]

    def test_a_foreign_assignment_is_absent(self, room):
        _, _, (one, two) = room
        assignment = one.post(NEXT).json()["assignment"]
        body = {"assignment": assignment, "choice": "left"}
        assert two.post("labels/", body).status_code == 404
        assert two.post("labels/", body | {"assignment": 10**30}).status_code == 404
        assert not Label.objects.exists()


class TestReading:
    @pytest.fixture
    def label(self, room):
        _, _, (one, _) = room
        one.post("labels/", {"assignment": one.post(NEXT).json()["assignment"], "choice": "tie", "comment": "hm"})
        open_finished(campaign=Campaign.objects.get(), by=None, now=timezone.now())
        return Label.objects.get()

    def test_below_staff_annotators_have_pseudonyms(self, room, label, people):
        (row,) = Caller(people["researcher"]).get("labels/").json()["results"]
        assert row["annotator"] == label.annotator.pseudonym
        assert row["annotator_name"] is None
        assert "person-0" not in json.dumps(row)
        (row,) = Caller(people["curator"]).get("labels/").json()["results"]
        assert row["annotator_name"] == "person-0"

    def test_annotators_read_nobodys_labels(self, room, label):
        _, _, (one, _) = room
        assert one.get("labels/").status_code == 403

    @pytest.mark.parametrize(
        ("query", "count"),
        [
            ("benchmark=pairs", 1),
            ("benchmark=other", 0),
            ("campaign=Round 1/a (b)", 1),
            ("campaign=x", 0),
            ("annotator=nobody", 0),
            ("item=999999", 0),
        ],
    )
    def test_filters(self, room, label, people, query, count):
        assert len(Caller(people["researcher"]).get(f"labels/?{query}").json()["results"]) == count

    def test_filters_by_annotator_and_item(self, room, label, people):
        caller = Caller(people["researcher"])
        for query in (f"annotator={label.annotator.pseudonym}", f"item={label.item_id}"):
            assert len(caller.get(f"labels/?{query}").json()["results"]) == 1

    @pytest.mark.parametrize(
        "query", ["item__sample__key=s0", "annotator__name=person-0", "ordering=comment", "item=x"]
    )
    def test_nothing_else_filters(self, room, label, people, query):
        assert Caller(people["researcher"]).get(f"labels/?{query}").status_code == 400

    def test_labels_on_a_private_benchmark_are_for_staff(self, room, label, people):
        Benchmark.objects.update(visibility="private")
        assert Caller(people["researcher"]).get("labels/").json()["results"] == []
        assert len(Caller(people["curator"]).get("labels/").json()["results"]) == 1
        assert Caller(people["researcher"]).get("campaigns/").json()["results"] == []

    def test_annotators_see_the_campaigns_they_belong_to(self, room, pairs, people):
        campaign, _, (one, _) = room
        make_campaign(name="Foreign", benchmark=pairs(1, slug="other"), protocol="pair", annotators=[])
        assert [row["name"] for row in one.get("campaigns/").json()["results"]] == [campaign.name]
        assert one.get("campaigns/Foreign/").status_code == 404
        assert one.get("campaigns/Round%201/a%20(b)/").json()["overlap"] == 1
        assert len(Caller(people["researcher"]).get("campaigns/").json()["results"]) == 2
        assert Campaign.objects.count() == 2

    def test_without_a_token_nothing_is_told(self, room, label):
        for path in ("labels/", "campaigns/"):
            assert Client().get(f"/api/v1/{path}").status_code == 401
        assert Client().post(f"/api/v1/{NEXT}").status_code == 401


class TestTold:
    def test_practice_comes_back_with_the_right_verdict_as_shown_and_its_round(self, room):
        campaign, _, (one, _) = room
        Campaign.objects.update(practice_pass=0.5)
        places = list(campaign.campaign_items.all()[:2])
        for place in places:
            mark_gold(campaign_item=place, verdict={"choice": "first"}, note="Because.", practice=True)
        told = []
        for choice in ("tie", None):
            held = one.post(NEXT).json()["assignment"]
            order = Assignment.objects.get(pk=held).order
            right = "left" if order == "01" else "right"
            answer = one.post("labels/", {"assignment": held, "choice": choice or right}).json()["practice"]
            assert answer["verdict"] == {"choice": right}
            told.append(answer)
        assert [(one["right"], one["note"]) for one in told] == [(False, "Because."), (True, "Because.")]
        assert "round" not in told[0]
        assert told[1]["round"] == {"right": 1, "of": 2, "needed": 1, "passed": True}
        assert "practice" not in one.post(
            "labels/", {"assignment": one.post(NEXT).json()["assignment"], "choice": "tie"}
        )

    def test_a_warning_is_told_once(self, room):
        _, (member, _), (one, _) = room
        one.post(NEXT)
        Campaign.objects.update(gold_rate=0.1)
        member.memberships.update(warned_at=timezone.now())
        assert "right verdict is known" in one.post(NEXT).json()["warning"]
        assert "warning" not in one.post(NEXT).json()

    def test_a_label_that_came_back_is_changed_or_confirmed_by_its_annotator(self, room, people):
        campaign, _, (one, two) = room
        mine = one.post("labels/", {"assignment": one.post(NEXT).json()["assignment"], "choice": "left"}).json()
        path = NEXT.replace("next", "returned")
        assert one.get(path).json() == []
        by = people["curator"]
        return_label(label=Label.objects.get(), by=by, note="Count the boats again.", now=timezone.now())
        assert one.post(NEXT).json()["returned"] == 1
        (back,) = one.get(path).json()
        assert (back["note"], back["given"]["choice"], back["assignment"]) == (
            "Count the boats again.",
            "left",
            mine["assignment"],
        )
        assert two.put(f"labels/{mine['id']}/", {"choice": "tie"}).status_code == 404
        assert one.put(f"labels/{mine['id']}/", {"choice": "none"}).status_code == 400
        assert one.put(f"labels/{mine['id']}/", {"choice": "tie"}).json()["choice"] == "tie"
        assert Label.objects.get().revisions.count() == 1
        assert one.get(path).json() == []
        close_campaign(campaign=campaign, now=timezone.now())
        assert one.put(f"labels/{mine['id']}/", {"choice": "left"}).status_code == 409
