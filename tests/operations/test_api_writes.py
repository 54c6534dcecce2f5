"""What staff do by pages they do by the API: a benchmark from nothing to a board, and nobody else does."""

import json

import pytest

from accounts.models import Role
from annotations.models import Campaign, Invitation, Label, Membership
from bank.models import Benchmark, Response, Sample

pytestmark = pytest.mark.django_db
SAMPLES = [{"key": f"q{n}", "instruction": f"What is {n}?", "level": "Sums"} for n in range(4)]
ANSWERS = [
    {"sample": f"q{n}", "model": model, "text": f"{model} says {n}."} for n in range(4) for model in ("m1", "m2")
]


@pytest.fixture
def call(client_of):
    def call(method, path, data=None, *, role="curator", status=200):
        answer = getattr(client_of(role), method)(
            f"/api/v1/{path}", data=None if data is None else json.dumps(data), content_type="application/json"
        )
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else None

    return call


@pytest.fixture
def towns(call):
    made = call("post", "benchmarks/", {"slug": "towns", "title": "Towns", "anchor": None}, status=201)
    call("post", "samples/", {"benchmark": "towns", "rows": SAMPLES}, status=201)
    call("post", "responses/", {"benchmark": "towns", "rows": ANSWERS}, status=201)
    call("post", "items/", {"benchmark": "towns", "kind": "pair"})
    return made["id"]


def test_a_benchmark_becomes_a_campaign_and_a_board_by_calls_alone(call, towns, people):
    asked = {"name": "Round 1", "benchmark": "towns", "protocol": "pair", "annotators": [people["annotator"].username]}
    made = call("post", "campaigns/", asked | {"overlap": 1}, status=201)
    assert (made["state"], made["overlap"]) == ("open", 1)
    for _ in range(4):
        item = call("post", "campaigns/Round 1/next/", {}, role="annotator")
        call("post", "labels/", {"assignment": item["assignment"], "choice": "left"}, role="annotator", status=201)
    assert Label.objects.count() == 4
    assert call("post", "campaigns/Round 1/state/", {"state": "closed"})["state"] == "closed"
    assert call("post", f"benchmarks/{towns}/publish/", {"visibility": "public"})["visibility"] == "public"
    rows = call("get", "leaderboards/models/?benchmark=towns", role="researcher")
    assert {row["model"] for row in rows} == {"m1", "m2"}


def test_rows_that_are_there_already_change_nothing_and_bad_ones_keep_the_good_out(call, towns):
    again = call("post", "samples/", {"benchmark": "towns", "rows": SAMPLES})
    assert (again["made"], again["unchanged"], again["bad"]) == ({}, 4, 0)
    rows = [{"key": "new", "instruction": "New?"}, {"key": "bad"}]
    refused = call("post", "samples/", {"benchmark": "towns", "rows": rows}, status=400)
    assert refused["problems"] == [{"row": 1, "field": "instruction", "reason": "is missing", "warning": False}]
    assert Sample.objects.count() == 4
    assert call("post", "samples/", {"benchmark": "towns", "rows": rows, "dry_run": True})["bad"] == 1
    taken = call("post", "samples/", {"benchmark": "towns", "rows": rows, "skip_bad": True}, status=201)
    assert taken["made"] == {"samples": 1}
    call("post", "responses/", {"benchmark": "nowhere", "rows": ANSWERS}, status=400)
    call("post", "samples/", {"benchmark": "towns", "rows": []}, status=400)
    call("post", "samples/", {"benchmark": "towns", "rows": SAMPLES, "colour": 1}, status=400)
    assert Response.objects.count() == 8


def test_facts_of_a_benchmark_change_one_by_one(call, towns):
    scale = [{"value": 1, "label": "Poor"}, {"value": 2, "label": "Good"}]
    changed = call("patch", f"benchmarks/{towns}/", {"licence": "CC0", "anchor": "m1", "score_scale": scale})
    assert (changed["licence"], changed["anchor"], changed["title"]) == ("CC0", "m1", "Towns")
    assert Benchmark.objects.get().score_scale == scale
    call("patch", f"benchmarks/{towns}/", {"anchor": "nobody"}, status=400)
    call("patch", f"benchmarks/{towns}/", {"slug": "other"}, status=400)
    call("post", "benchmarks/", {"slug": "towns", "title": "Again"}, status=400)


def test_members_come_and_go_and_invitations_end(call, towns, people):
    call("post", "campaigns/", {"name": "R", "benchmark": "towns", "protocol": "pair", "annotators": []}, status=201)
    (member,) = call("post", "campaigns/R/members/", {"people": [people["annotator"].username]}, status=201)
    assert member["name"] == people["annotator"].username
    call("post", "campaigns/R/members/", {"people": ["nobody"]}, status=400)
    call("delete", f"campaigns/R/members/{member['annotator']}/", {"exclude": False}, status=204)
    assert Membership.objects.get().withdrawn_at is not None
    (invitation,) = call("post", "campaigns/R/invitations/", {"days": 3, "most": 2}, status=201)
    assert "/join/" in invitation["link"] or "invit" in invitation["link"]
    assert [one["id"] for one in call("get", "campaigns/R/invitations/")] == [invitation["id"]]
    call("delete", f"campaigns/R/invitations/{invitation['id']}/", status=204)
    assert call("get", "campaigns/R/invitations/") == []
    assert Invitation.objects.get().revoked_at is not None


def test_odd_numbers_and_lists_are_refused_and_imported_labels_are_no_campaign_to_run(call, towns):
    call("post", "campaigns/", {"name": "Round 1", "benchmark": "towns", "protocol": "pair"}, status=201)
    call("post", "campaigns/Round 1/invitations/", {"days": 3, "most": 10**12}, status=400)
    call("patch", "campaigns/Round 1/", [1], status=400)
    Campaign.objects.update(imported=True)
    call("patch", "campaigns/Round 1/", {"overlap": 3}, status=404)
    call("post", "campaigns/Round 1/invitations/", {"days": 3}, status=404)


def test_a_campaigns_settings_change_and_a_closed_one_opens_only_when_that_is_said(call, towns):
    call("post", "campaigns/", {"name": "R", "benchmark": "towns", "protocol": "pair"}, status=201)
    assert call("patch", "campaigns/R/", {"overlap": 3})["overlap"] == 3
    call("patch", "campaigns/R/", {"overlap": 0}, status=400)
    call("patch", "campaigns/R/", {"name": "S"}, status=400)
    call("post", "campaigns/R/state/", {"state": "closed"})
    call("post", "campaigns/R/state/", {"state": "open"}, status=409)
    assert call("post", "campaigns/R/state/", {"state": "open", "again": True})["state"] == "open"
    assert Campaign.objects.get().state == "open"


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.RESEARCHER])
def test_below_staff_nothing_is_made_or_changed(role, call, towns):
    call("post", "campaigns/", {"name": "R", "benchmark": "towns", "protocol": "pair"}, status=201)
    for method, path in (
        ("post", "benchmarks/"),
        ("patch", f"benchmarks/{towns}/"),
        ("post", f"benchmarks/{towns}/publish/"),
        ("post", "samples/"),
        ("post", "responses/"),
        ("post", "campaigns/"),
        ("patch", "campaigns/R/"),
        ("post", "campaigns/R/state/"),
        ("post", "campaigns/R/members/"),
        ("post", "campaigns/R/invitations/"),
        ("post", "editions/"),
    ):
        call(method, path, {}, role=role.value, status=403)


def test_an_edition_says_first_what_it_would_tell(call, towns):
    asked = {"benchmark": "towns", "kind": "choice", "dry_run": True}
    draft = call("post", "editions/", asked)
    assert draft["problem"], "there is nothing to publish"
    call("post", "editions/", asked | {"dry_run": False}, status=400)
    call("post", "editions/", asked | {"kind": "colour"}, status=400)
    assert call("get", "editions/")["results"] == []
