"""Webhooks: who is told of what, signed, sent by the worker, tried again, and never more than everybody may know."""

import asyncio
import json
import re
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone
from pytest_httpserver import HTTPServer
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError
from werkzeug import Response

from accounts import loop
from accounts import webhooks as outbox
from accounts.models import AuditEntry, Delivery, Notice, Webhook
from accounts.webhooks import EVENTS
from annotations.campaigns.actions import close_campaign, make_campaign, open_campaign
from bank import exposure
from bank.announcements import announce
from bank.errors import BadInput
from bank.models import Benchmark
from evalsite import worker
from judging import webhooks
from judging.models import Run
from judging.runs import actions
from judging.runs.notices import announce_runs
from judging.work import deliveries
from tests.judging.outside import ROOT
from tests.judging.server import Server, answer

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
PAGE = "/judging/webhooks/"
API = "/api/v1/webhooks/"


@pytest.fixture
def listener(httpserver: HTTPServer, settings):
    """A server that takes deliveries, at an allowed address."""
    settings.WEBHOOK_HOSTS = [f"localhost:{httpserver.port}"]
    httpserver.expect_request("/hook/").respond_with_data("", status=204)
    return httpserver


@pytest.fixture
def hook(listener, people):
    return webhooks.add_webhook(url=listener.url_for("/hook/"), events=list(EVENTS), by=people["administrator"])[0]


def send():
    """What the worker does: send what is due."""
    loop.run(deliveries.deliver)


def received(listener):
    return [request for request, _ in listener.log]


def told(event="run.finished"):
    """The data of what was told of an event, oldest first."""
    rows = Delivery.objects.filter(event=event).order_by("created_at")
    return [json.loads(row.body)["data"] for row in rows]


def tell(number=1):
    outbox.tell("campaign.closed", key=str(number), id=number, state="closed")


def test_a_delivery_is_signed_so_that_its_secret_proves_it(hook, listener):
    tell()
    send()
    (request,) = received(listener)
    headers = dict(request.headers)
    body = Verifier(hook.secret).verify(request.get_data(), headers)
    assert body["type"] == "campaign.closed"
    assert body["data"] == {"id": 1, "state": "closed"}
    with pytest.raises(WebhookVerificationError):
        Verifier(hook.secret).verify(request.get_data() + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Verifier("whsec_" + "A" * 43 + "=").verify(request.get_data(), headers)
    row = Delivery.objects.get()
    assert (row.status, row.tries, row.not_before, row.is_taken) == (204, 1, None, True)


def test_a_query_goes_with_each_delivery_and_stands_in_no_audit_log(listener, people):
    listener.expect_request("/in", query_string={"sig": "abc/d+", "v": "1"}).respond_with_data("")
    address = f"{listener.url_for('/in')}?sig=abc%2Fd%2B&v=1"
    webhook, _ = webhooks.add_webhook(url=address, events=list(EVENTS), by=people["administrator"])
    tell()
    send()
    assert Delivery.objects.get().status == 200
    webhooks.switch_webhook(webhook=webhook, active=False, by=people["administrator"])
    webhooks.remove_webhook(webhook=webhook, by=people["administrator"])
    entries = AuditEntry.objects.filter(action__startswith="webhook")
    assert len(entries) == 3
    assert not any("sig" in str(vars(entry)) for entry in entries)
    with pytest.raises(BadInput, match="name=value"):
        webhooks.add_webhook(url=f"{listener.url_for('/in')}?a b", events=list(EVENTS), by=people["administrator"])


def test_the_example_of_the_documentation_tells_a_true_signature_from_a_false_one(hook, listener):
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    example = {}
    exec(re.search(r"```python\n(import base64.*?)```", text, re.S).group(1), example)
    tell()
    send()
    (request,) = received(listener)
    assert example["is_ours"](request.headers, request.get_data(), hook.secret)
    assert not example["is_ours"](request.headers, request.get_data() + b" ", hook.secret)


def test_a_webhook_is_told_of_its_own_events_alone_and_of_each_once(listener, people):
    one = webhooks.add_webhook(url=listener.url_for("/hook/"), events=["run.paused"], by=people["administrator"])[0]
    tell()
    for _ in range(2):
        outbox.tell("run.paused", key="7", id=7, state="paused")
    assert list(Delivery.objects.values_list("webhook", "event")) == [(one.pk, "run.paused")]
    with pytest.raises(KeyError):
        outbox.tell("run.exploded", key="7")


def test_what_is_not_taken_is_tried_again_with_growing_pauses_over_a_day_then_given_up(hook, listener):
    listener.clear()
    listener.expect_request("/hook/").respond_with_data("busy", status=503)
    tell()
    waits = []
    for _ in range(20):
        send()
        row = Delivery.objects.get()
        if row.not_before is None:
            break
        waits.append(row.not_before - row.tried_at)
        Delivery.objects.update(not_before=timezone.now())
    assert waits == sorted(waits)
    assert timedelta(hours=20) < sum(waits, timedelta()) < timedelta(hours=28)
    assert row.status == 503
    ids = {request.headers["webhook-id"] for request in received(listener)}
    assert len(ids) == 1
    assert len(received(listener)) == len(waits) + 1


def test_nobody_is_followed_elsewhere(hook, listener):
    listener.clear()
    listener.expect_request("/hook/").respond_with_response(
        Response(status=307, headers={"Location": listener.url_for("/other/")})
    )
    listener.expect_request("/other/").respond_with_data("")
    tell()
    send()
    assert [request.path for request in received(listener)] == ["/hook/"]
    assert Delivery.objects.get().status == 307


def test_an_answer_without_end_and_a_server_that_is_away_are_failures_in_words(hook, listener, monkeypatch):
    listener.clear()
    listener.expect_request("/hook/").respond_with_data("x" * 200_000)
    tell()
    send()
    assert "too long" in Delivery.objects.get().words
    monkeypatch.setattr(deliveries, "TIMEOUT", 0.2)
    Webhook.objects.update(url="http://127.0.0.1:9/hook/")
    Delivery.objects.update(not_before=timezone.now())
    send()
    assert "WEBHOOK_HOSTS" in Delivery.objects.get().words


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example.org/",
        "http://hooks.example.org/",
        "https://hooks.example.org:8443/",
        "https://user:word@hooks.example.org/",
        "https://hooks.example.org/?a key",
        "ftp://hooks.example.org/",
        "hooks.example.org",
    ],
)
def test_only_listed_hosts_are_taken_as_they_are_for_judges(url, people, settings):
    settings.WEBHOOK_HOSTS = ["hooks.example.org"]
    with pytest.raises(BadInput):
        webhooks.add_webhook(url=url, events=list(EVENTS), by=people["administrator"])
    webhooks.add_webhook(url="https://hooks.example.org/x/", events=list(EVENTS), by=people["administrator"])


def test_a_listed_name_that_leads_to_a_private_address_is_not_called(people, settings, monkeypatch):
    settings.WEBHOOK_HOSTS = ["hooks.example.org"]
    webhooks.add_webhook(url="https://hooks.example.org/x/", events=list(EVENTS), by=people["administrator"])

    class Private:
        async def resolve(self, host, port=0, family=0):
            return [{"hostname": host, "host": "10.0.0.5", "port": port, "family": 2, "proto": 0, "flags": 0}]

        async def close(self):
            pass

    monkeypatch.setattr("judging.endpoints.client.aiohttp.DefaultResolver", Private)
    monkeypatch.setattr("judging.endpoints.client._proxy_for", lambda url: None)
    tell()
    send()
    assert "private address" in Delivery.objects.get().words


def test_a_webhook_that_fails_for_five_days_is_switched_off_and_its_maker_is_told(hook, listener, people):
    listener.clear()
    listener.expect_request("/hook/").respond_with_data("", status=500)
    tell()
    send()
    hook.refresh_from_db()
    assert hook.active
    assert hook.failing_since
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=5, minutes=1))
    Delivery.objects.update(not_before=timezone.now())
    send()
    hook.refresh_from_db()
    assert not hook.active
    assert "failed for five days" in Notice.objects.get(person=people["administrator"]).text
    assert AuditEntry.objects.first().action == "webhook-switched"
    tell(2)
    assert Delivery.objects.count() == 1


def test_one_delivery_that_is_taken_ends_the_count_of_days(hook, listener):
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=4))
    tell()
    send()
    hook.refresh_from_db()
    assert hook.failing_since is None


@pytest.mark.django_db(transaction=True)
def test_the_worker_sends_what_a_run_ends_with(hook, listener, benchmark, judge_at):
    with Server(lambda call: answer("Answer1")) as server:
        run = actions.start_run(judge=judge_at(server.url), benchmark=benchmark, protocol="pair")
        loop.run(lambda: worker.serve(stop=asyncio.Event(), until_idle=True))
    (request,) = received(listener)
    data = json.loads(request.get_data())["data"]
    page = reverse("judging:run-detail", args=[run.pk])
    assert data.pop("url").endswith(page)
    assert data == {
        "id": run.pk,
        "state": "finished",
        "benchmark": str(run.benchmark),
        "judge": "kestrel",
        "protocol": run.protocol,
    }


def test_of_a_sealed_run_nothing_is_told_before_the_day_after_its_end_and_then_no_figure(hook, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1"))
    now = timezone.now()
    Run.objects.update(held=exposure.KEYS, state=Run.State.PAUSED, state_reason="Its judge said the key is B.")
    announce_runs()
    Run.objects.update(state=Run.State.FINISHED, finished_at=now, verdicts=6, planned=6, spent=0.5, state_reason="")
    announce_runs()
    assert not Delivery.objects.exists()
    Run.objects.update(finished_at=now - timedelta(days=1))
    for _ in range(2):
        announce_runs()
    (data,) = told()
    assert set(data) == {"id", "state", "url", "benchmark", "judge", "protocol"}
    assert (data["id"], data["state"]) == (run.pk, "finished")


def test_of_tryouts_and_marks_nothing_is_ever_told(hook, start, judge_at):
    start(judge_at("http://127.0.0.1:9/v1"))
    for columns in ({"tryout": True}, {"tryout": False, "kind": Run.Kind.MARKS}):
        Run.objects.update(state=Run.State.FINISHED, held=exposure.NOTHING, announced="", **columns)
        announce_runs()
    assert not Delivery.objects.exists()


def test_a_run_that_stands_still_says_whether_its_calls_fail_and_no_reason(hook, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1"))
    Run.objects.update(held=exposure.NOTHING)
    actions.pause_run(run=run)
    announce_runs()
    Run.objects.update(state=Run.State.QUEUED, calls=3)
    announce_runs()
    Run.objects.update(state=Run.State.PAUSED, state_reason="kestrel at 127.0.0.1:9: the key was refused")
    announce_runs()
    assert [data["state"] for data in told("run.paused") + told("run.failed")] == ["paused", "paused"]
    assert "refused" not in Delivery.objects.get(event="run.failed").body


def test_of_a_private_benchmark_the_names_are_left_out(hook, benchmark):
    Benchmark.objects.update(visibility="private")
    benchmark.refresh_from_db()
    announce(
        "run.finished", key="1", number=1, state="finished", page="/judging/runs/1/", benchmark=benchmark, judge="k"
    )
    (data,) = told()
    assert set(data) == {"id", "state", "url"}


def test_a_campaign_that_closes_is_told(hook, benchmark, people):
    campaign = make_campaign(name="Round", benchmark=benchmark, protocol="pair")
    open_campaign(campaign=campaign)
    close_campaign(campaign=campaign, now=timezone.now())
    (data,) = told("campaign.closed")
    assert (data["id"], data["state"], data["campaign"]) == (campaign.pk, "closed", "Round")


def test_administrators_add_test_switch_send_again_and_remove_on_one_page(listener, client_of):
    client, url = client_of("administrator"), listener.url_for("/hook/")
    made = client.post(PAGE, {"url": url, "events": ["run.finished"]}).content.decode()
    (secret,) = re.findall(r"whsec_[\w+/=]+", made)
    assert secret not in client.get(PAGE).content.decode()
    hook = Webhook.objects.get()
    assert (hook.secret, hook.events) == (secret, ["run.finished"])
    client.post(PAGE, {"do": "test", "of": hook.pk})
    send()
    row = Delivery.objects.get()
    assert "204" in client.get(PAGE).content.decode()
    client.post(PAGE, {"do": "again", "of": row.pk})
    send()
    one, two = received(listener)
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    client.post(PAGE, {"do": "off", "of": hook.pk})
    client.post(PAGE, {"do": "on", "of": hook.pk})
    client.post(PAGE, {"do": "remove", "of": hook.pk})
    assert not Webhook.objects.exists()
    actions_done = list(AuditEntry.objects.order_by("number").values_list("action", flat=True))
    assert actions_done == ["webhook-made", "webhook-switched", "webhook-switched", "webhook-ended"]
    assert client.post(PAGE, {"do": "again", "of": "x"}).status_code == 404
    assert client.post(PAGE, {"do": "test", "of": "x"}).status_code == 404
    refused = client.post(PAGE, {"url": "https://other.example/", "events": ["run.finished"]})
    assert refused.status_code == 422
    assert "WEBHOOK_HOSTS" in refused.content.decode()


def test_the_secret_is_not_in_the_database_as_it_is(hook):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM accounts_webhook")
        (stored,) = cursor.fetchone()
    assert "whsec_" not in stored


def test_administrators_do_the_same_by_api(listener, client_of):
    client, url = client_of("administrator"), listener.url_for("/hook/")
    sent = {"content_type": "application/json"}
    made = client.post(API, {"url": url, "events": ["run.finished"]}, **sent)
    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    (listed,) = client.get(API).json()["results"]
    assert listed["url"] == url
    assert "secret" not in listed
    assert client.post(f"{API}{listed['id']}/test/").status_code == 204
    send()
    assert Delivery.objects.get().is_taken
    (told,) = client.get(f"{API}{listed['id']}/deliveries/").json()
    assert (told["event"], told["status"], told["tries"], told["not_before"]) == ("test", 204, 1, None)
    assert "url" in client.post(API, {"url": "https://other.example/", "events": ["run.finished"]}, **sent).json()
    assert "events" in client.post(API, {"url": url, "events": []}, **sent).json()
    assert client.delete(f"{API}{listed['id']}/").status_code == 204
    assert client.get(API).json()["results"] == []


def test_the_log_is_kept_for_thirty_days(hook, listener):
    for number in (1, 2):
        tell(number)
    send()
    Delivery.objects.filter(key="campaign.closed:1").update(created_at=timezone.now() - timedelta(days=31))
    call_command("tidy")
    assert Delivery.objects.get().key == "campaign.closed:2"
