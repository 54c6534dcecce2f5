"""What staff do by pages they do by the API: a benchmark from nothing to a board, and nobody else does."""

import json

import pytest

from accounts.models import Role
from annotations.models import Campaign, Invitation, Label, Membership
from bank.criteria.tables import CriteriaAccess
from bank.models import Benchmark, Recipe, Response, Sample
from judging.models import Judge, PromptTemplate
from judging.protocols import prompts

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
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


def test_a_samples_facts_change_and_its_pictures_and_criteria_stay(call, towns):
    rows = [{"key": "c1", "instruction": "Which?", "options": {"A": "x", "B": "y"}, "answer": "A"}]
    call("post", "samples/", {"benchmark": "towns", "rows": rows}, status=201)
    sample = Sample.objects.get(key="c1")
    kept = call("get", f"samples/{sample.pk}/criteria/")
    asked = {"instruction": "Which one?", "capability": "Sums", "note": "said"}
    changed = call("patch", f"samples/{sample.pk}/", asked)
    assert (changed["instruction"], changed["capability"]) == ("Which one?", ["Sums"])
    assert changed["options"] == {"A": "x", "B": "y"}
    assert call("get", f"samples/{sample.pk}/criteria/") == kept
    revision = sample.revisions.first()
    assert (revision.note, revision.by.username) == ("said", "curator")
    assert CriteriaAccess.objects.filter(how="editor").exists(), "that its criteria were read is logged"
    refused = [{"options": {"C": "x", "D": "y"}}, {"options": {"A": "x"}}, {"capability": "Nowhere"}, {"criteria": []}]
    for wrong in (*refused, {"status": "rejected"}, {"instruction": ""}):
        call("patch", f"samples/{sample.pk}/", wrong, status=400)
    out = call("patch", f"samples/{sample.pk}/", {"status": "rejected", "note": "Not clear.", "capability": ""})
    assert (out["status"], out["capability"]) == ("rejected", [])
    assert Sample.objects.get(pk=sample.pk).status_reason == "Not clear."


def test_a_judges_limits_change_and_what_its_verdicts_are_known_by_does_not(call, settings):
    settings.JUDGE_HOSTS = ["judges.example"]
    given = {"name": "keen", "base_url": "https://judges.example/v1", "model": "m", "rpm": 10, "concurrency": 2}
    judge = call("post", "judges/", given, status=201)
    prices = {"price_in": 1, "price_out": 2}
    changed = call("patch", f"judges/{judge['id']}/", {"rpm": 60} | prices)
    assert {name: changed[name] for name in ("rpm", "concurrency", *prices)} == {"rpm": 60, "concurrency": 2} | prices
    for wrong in ({"model": "n"}, {"name": "other"}, {"rpm": 0}, {"key_env": "SECRET_KEY"}, {"colour": 1}):
        call("patch", f"judges/{judge['id']}/", wrong, status=400)
    assert Judge.objects.get(name="keen").model == "m"
    baseline = Judge.objects.exclude(baseline="").first()
    call("patch", f"judges/{baseline.pk}/", {"rpm": 1}, status=409)


def test_what_pages_remove_calls_remove_and_no_more(call, towns):
    prompt = {"protocol": "pair", "name": "strict", "text": prompts.get("pair").text}
    made = call("post", "prompts/", prompt, status=201)
    call("delete", f"prompts/{made['id']}/", role="researcher", status=403)
    call("delete", f"prompts/{made['id']}/", status=204)
    assert not PromptTemplate.objects.exists()
    built_in = Recipe.objects.filter(built_in=True).first() or Recipe.objects.create(
        name="came", version=1, spec={}, sha256="0" * 64, built_in=True
    )
    call("delete", f"recipes/{built_in.name}/", status=400)
    call("delete", f"samples/{Sample.objects.first().pk}/", status=405)


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.RESEARCHER])
def test_below_staff_nothing_is_made_or_changed(role, call, towns):
    call("post", "campaigns/", {"name": "R", "benchmark": "towns", "protocol": "pair"}, status=201)
    for method, path in (
        ("post", "benchmarks/"),
        ("patch", f"benchmarks/{towns}/"),
        ("post", f"benchmarks/{towns}/publish/"),
        ("post", "samples/"),
        ("patch", "samples/1/"),
        ("patch", "judges/1/"),
        ("delete", "prompts/1/"),
        ("delete", "recipes/one/"),
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
