"""The start page of staff: what needs them, what is under way, what an installation still lacks."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotations.models import Campaign
from bank.models import Draft, Upload
from judging.models import Judge, Run
from tests.leaderboard.conftest import folder, grove, manage
from tests.markup import flat

__all__ = ["folder", "grove", "manage"]
pytestmark = pytest.mark.django_db


def home(client, path="/"):
    return flat(client.get(path))


@pytest.fixture
def run(grove):
    judge = Judge.objects.create(name="kestrel", price_in=1, price_out=1)
    return Run.objects.create(judge=judge, benchmark=grove, protocol="pair", settings_hash="x", state="running")


def test_a_curator_finds_each_thing_that_waits_with_the_page_on_which_it_is_decided(grove, run, people, client_of):
    client = client_of("curator")
    assert "Nothing needs you" in home(client)
    Run.objects.filter(pk=run.pk).update(state="paused", state_reason="The budget is used up", budget=1, spent=1)
    upload = Upload.objects.create(
        by=people["curator"], name="more.zip", files=[], size=1, folder="a", secret="b", state=Upload.State.CHECKED
    )
    Draft.objects.create(sample=grove.samples.first(), part="sample", text="{}", origin="kestrel")
    page = home(client)
    assert "Three things need you" in page
    assert f'href="/judging/runs/{run.pk}/">Raise the budget' in page
    assert "The budget is used up" in page
    assert f'href="/bank/uploads/{upload.pk}/">See and import' in page
    assert 'href="/bank/benchmarks/grove@1/drafts/">Check the drafts' in page


def test_a_campaign_is_to_be_closed_once_every_item_has_its_labels(grove, manage, people, client_of):
    manage("make_items", "pair", "--benchmark", "grove", "--sample", "2")
    manage("make_campaign", "Round 1", "--benchmark", "grove", "--protocol", "pair")
    campaign = Campaign.objects.get()
    client = client_of("curator")
    assert "Round 1 is complete" not in home(client)
    n = campaign.campaign_items.count()
    assert f"0 of {n}" in home(client)
    labeller = client_of("annotator")
    for number in range(n):
        given = labeller.post("/api/v1/campaigns/Round%201/next/", {}, content_type="application/json").json()
        label = {"assignment": given["assignment"], "idempotency_key": str(number), "choice": "left"}
        assert labeller.post("/api/v1/labels/", label, content_type="application/json").status_code == 201
    page = home(client)
    assert "Round 1 is complete" in page
    assert f"{n} of {n}" in page
    campaign.state = Campaign.State.CLOSED
    campaign.save()
    assert "Round 1 is complete" not in home(client)


def test_a_run_at_work_is_under_way_with_how_far_it_is(run, client_of):
    Run.objects.filter(pk=run.pk).update(planned=40, verdicts=9, failures=1)
    page = home(client_of("curator"))
    assert f'href="/judging/runs/{run.pk}/"><b>Run {run.pk}, kestrel' in page
    assert "10 of 40" in page
    assert "1 failed" in page


def test_what_a_new_installation_lacks_is_listed_until_it_is_hidden(grove, people, client_of, monkeypatch):
    monkeypatch.setattr("accounts.mail.is_set_up", lambda: False)
    client = client_of("curator")
    assert "Setting up" in home(client)
    assert 'href="/judging/judges/new/">A judge that answers' in home(client)
    client.post("/")
    hidden = home(client)
    assert "Setting up" not in hidden
    assert "Show what is left to set up" in hidden
    assert "the operator sets EMAIL_URL" in hidden
    assert "Setting up" in home(client_of("administrator"))
    assert "manage.py backup" in home(client_of("administrator"))
    client.post("/", {"show": "1"})
    assert "Setting up" in home(client)


def test_failed_sign_ins_are_told_to_administrators_alone(grove, people, client, client_of):
    client.post("/accounts/sign-in/", {"username": "curator", "password": "wrong"})
    assert "Failed sign-ins" in home(client_of("administrator"))
    assert "Failed sign-ins" not in home(client_of("curator"))


@pytest.mark.parametrize("role", ["anonymous", "researcher"])
def test_others_see_what_visitors_see_and_so_do_staff_who_ask(grove, role, client_of):
    assert "How good are models" in home(client_of(role))
    assert "How good are models" in home(client_of("curator"), "/?as=visitor")
    assert client_of(role).post("/").status_code in (200, 302, 405)


def test_the_newest_stands_first(grove, run, people, client_of):
    Run.objects.filter(pk=run.pk).update(
        state="paused", state_reason="no answer", started_at=timezone.now() - timedelta(days=2)
    )
    Draft.objects.create(sample=grove.samples.first(), part="sample", text="{}", origin="kestrel")
    page = home(client_of("curator"))
    assert page.index("Check the drafts") < page.index("See and resume")
