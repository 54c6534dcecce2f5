"""Judges, runs and judgments for scripts."""

import json

import pytest

from judging.endpoints.judges import add_judge
from judging.models import Judge, Run
from judging.runs import actions
from tests.hidden import ended_before_today
from tests.judging.server import Server, answer
from tests.judging.small import make_benchmark

pytestmark = pytest.mark.django_db

API = "/api/v1"


@pytest.fixture
def run(start, judge_at, work_on):
    with Server(lambda call: answer("Names the walnut bowl.\nAnswer1")) as server:
        run = work_on(start(judge_at(server.url)))
    ended_before_today()
    return run


@pytest.fixture
def half_failed(start, judge_at, work_on):
    """Three judgments: a vote, a reply without one, an empty reply."""
    replies = [answer("Answer1"), answer("Hm."), answer("")]
    with Server(lambda call: replies[min(call.number, 2)]) as server:
        run = work_on(start(judge_at(server.url, concurrency=1), settings={"order": "fixed"}))
    ended_before_today()
    return run


def wanted(**others) -> dict:
    return {"judge": "baseline-first", "benchmark": "everyday", "protocol": "pairwise-criteria"} | others


def post(client, path, data=None):
    return client.post(f"{API}{path}", data, content_type="application/json")


def test_staff_start_a_run_once_and_the_same_request_goes_on_with_it(client_of, benchmark, baseline):
    baseline("first")
    client = client_of("curator")
    made = post(client, "/runs/", wanted(settings={"order": "fixed"}, limit=2))
    assert made.status_code == 201
    assert made.json()["state"] == "queued"
    assert (made.json()["total"], made.json()["benchmark"]) == (2, "everyday@1")
    again = post(client, "/runs/", wanted(settings={"order": "fixed"}, limit=2))
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    another = post(client, "/runs/", wanted(settings={"order": "fixed"}, limit=2, new=True))
    assert (another.status_code, Run.objects.count()) == (201, 2)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"judge": "nobody"}, "judge"),
        ({"benchmark": "nothing"}, "benchmark"),
        ({"protocol": "votes"}, "protocol"),
        ({"settings": {"order": "random"}}, "settings"),
        ({"settings": ["order"]}, "settings"),
        ({"limit": 0}, "limit"),
        ({"budget": -1}, "budget"),
        ({"judge": None}, "judge"),
    ],
)
def test_a_run_that_cannot_be_is_refused_at_its_field(client_of, benchmark, baseline, wrong, field):
    baseline("first")
    refused = post(client_of("curator"), "/runs/", wanted(**wrong))
    assert refused.status_code == 400
    assert list(refused.json()) == [field]
    assert not Run.objects.exists()


def test_a_run_is_paused_resumed_and_cancelled_and_a_second_cancel_says_that_it_has_ended(client_of, start, baseline):
    run, client = start(baseline("first")), client_of("administrator")
    for verb, state in (("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled")):
        assert post(client, f"/runs/{run.pk}/{verb}/").json()["state"] == state
    again = post(client, f"/runs/{run.pk}/cancel/")
    assert (again.status_code, again.json()["detail"]) == (409, "This run has already ended.")


def test_a_run_resumes_with_another_budget_or_says_what_is_wrong_with_it(client_of, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1", price_in=1.0, price_out=1.0), budget=0.1)
    actions.pause_run(run=run)
    client = client_of("curator")
    for body, field in (
        ({"budget": -1}, "budget"),
        ({"budget": 0}, "budget"),
        ({"budget": "much"}, "budget"),
        ({"bugdet": 0.2}, "bugdet"),
        ({"state": "finished"}, "state"),
    ):
        refused = post(client, f"/runs/{run.pk}/resume/", body)
        assert (refused.status_code, list(refused.json())) == (400, [field])
    assert Run.objects.get().state == "paused"
    resumed = post(client, f"/runs/{run.pk}/resume/", {"budget": 0.2})
    assert (resumed.status_code, resumed.json()["budget"], resumed.json()["state"]) == (200, 0.2, "queued")
    assert post(client, f"/runs/{run.pk}/resume/", {"budget": 0.3}).status_code == 409
    actions.pause_run(run=run)
    page = client.post(f"/judging/runs/{run.pk}/resume/", {"budget": "0.4"}, follow=True)
    assert page.status_code == 200
    assert (Run.objects.get().budget, Run.objects.get().state) == (0.4, "queued")
    actions.pause_run(run=run)
    page = client.post(f"/judging/runs/{run.pk}/resume/", {"budget": "lots"}, follow=True)
    assert "US dollars, more than 0" in page.content.decode()
    assert Run.objects.get().state == "paused"


def test_what_failed_in_a_run_is_made_again_by_status_and_reason_or_all_at_once(client_of, half_failed):
    client = client_of("curator")
    assert half_failed.failures == 2
    one = post(
        client, f"/runs/{half_failed.pk}/retry/", {"statuses": ["parse_failed"], "reason": "no vote on the last line"}
    )
    assert (one.status_code, one.json()["failed"], one.json()["state"]) == (200, 1, "queued")
    assert post(client, f"/runs/{half_failed.pk}/retry/").json()["failed"] == 0
    again = post(client, f"/runs/{half_failed.pk}/retry/")
    assert (again.status_code, again.json()["failed"], half_failed.judgments.count()) == (200, 0, 1)


def test_a_retry_that_cannot_be_is_refused_in_words_and_removes_nothing(client_of, half_failed, start, baseline):
    client = client_of("curator")
    for body, words in (
        ({"statuses": ["ok"]}, "statuses"),
        ({"status": "refused"}, "status"),
        ([1], "Expected a dictionary"),
    ):
        refused = post(client, f"/runs/{half_failed.pk}/retry/", body)
        assert (refused.status_code, words in refused.content.decode()) == (400, True)
    assert post(client, "/runs/999/retry/").status_code == 404
    ended = start(baseline("first"))
    post(client, f"/runs/{ended.pk}/cancel/")
    cancelled = post(client, f"/runs/{ended.pk}/retry/")
    assert (cancelled.status_code, cancelled.json()["detail"]) == (
        409,
        "Imported and cancelled runs cannot be retried.",
    )
    assert half_failed.judgments.count() == 3


@pytest.mark.parametrize(("role", "status"), [("anonymous", 401), ("annotator", 403), ("researcher", 403)])
def test_only_staff_start_and_cancel(client_of, start, baseline, role, status):
    run, client = start(baseline("first")), client_of(role)
    assert post(client, "/runs/", wanted()).status_code == status
    assert post(client, f"/runs/{run.pk}/cancel/").status_code == status
    assert post(client, f"/runs/{run.pk}/retry/").status_code == status
    assert (
        post(client, "/judges/", {"name": "k", "base_url": "http://127.0.0.1/v1", "model": "k"}).status_code == status
    )
    assert (Run.objects.get().state, Run.objects.count()) == ("queued", 1)


@pytest.mark.parametrize(("role", "status"), [("anonymous", 401), ("annotator", 403), ("researcher", 200)])
def test_runs_judges_and_judgments_are_read_by_researchers_and_staff(client_of, run, role, status):
    client = client_of(role)
    for path in ("/runs/", "/judges/", "/judgments/", f"/runs/{run.pk}/", f"/judgments/{run.judgments.first().pk}/"):
        assert client.get(f"{API}{path}").status_code == status


def test_judgments_name_models_and_orders_and_never_what_the_judge_said(client_of, run):
    for role in ("researcher", "curator"):
        rows = client_of(role).get(f"{API}/judgments/").json()["results"]
        assert len(rows) == 6
        assert {(row["order"][0], row["choice"]) for row in rows} == {(0, "first"), (1, "second")}
        assert rows[0]["responses"] == [{"model": "heron-7b", "variant": ""}, {"model": "osprey-13b", "variant": ""}]
        assert not {"analysis", "raw"} & set(rows[0])
        assert "walnut" not in str(rows)


def test_what_a_judge_said_is_staff_only_one_by_one(client_of, run):
    path = f"{API}/judgments/{run.judgments.first().pk}/analysis/"
    assert client_of("curator").get(path).json()["analysis"] == "Names the walnut bowl."
    assert client_of("researcher").get(path).status_code == 403


def test_reasons_from_a_file_are_staff_only(client_of, run):
    Run.objects.update(imported=True)
    run.judgments.update(reason="It names the walnut bowl.")
    assert "walnut" not in client_of("researcher").get(f"{API}/judgments/").content.decode()
    assert "walnut" in client_of("curator").get(f"{API}/judgments/").content.decode()


def test_private_benchmarks_and_the_overlap_baseline_stay_hidden(client_of, start, baseline, work_on):
    hidden = work_on(start(baseline("first"), on=make_benchmark(slug="secret", visibility="private")))
    oracle = work_on(start(baseline("criteria-overlap")))
    researcher = client_of("researcher")
    assert researcher.get(f"{API}/runs/").json()["results"] == []
    assert researcher.get(f"{API}/runs/{oracle.pk}/").status_code == 404
    assert client_of("curator").get(f"{API}/runs/{oracle.pk}/").status_code == 200
    assert researcher.get(f"{API}/runs/{hidden.pk}/").status_code == 404
    assert researcher.get(f"{API}/judgments/").json()["results"] == []
    assert researcher.get(f"{API}/judgments/?run={oracle.pk}").json()["results"] == []
    assert len(client_of("curator").get(f"{API}/judgments/").json()["results"]) == 12


def test_filters_are_those_that_are_named(client_of, run):
    client = client_of("researcher")
    assert len(client.get(f"{API}/judgments/?choice=first").json()["results"]) == 3
    assert client.get(f"{API}/runs/?state=finished&judge=kestrel").json()["results"][0]["done"] == 6
    for query in ("raw__icontains=walnut", "run__judge__key_env=X", "ordering=raw", "fields=raw", "run=x"):
        assert client.get(f"{API}/judgments/?{query}").status_code == 400
    assert client.get(f"{API}/judges/?base_url=x").status_code == 400


def test_staff_add_a_judge_and_nobody_else_reads_its_address(client_of, settings):
    settings.JUDGE_HOSTS = ["api.example.org"]
    given = {"name": "kestrel", "base_url": "https://api.example.org/v1", "model": "k", "key_env": "JUDGE_EXAMPLE"}
    made = post(client_of("curator"), "/judges/", given)
    assert (made.status_code, made.json()["base_url"]) == (201, "https://api.example.org/v1")
    seen = client_of("researcher").get(f"{API}/judges/{made.json()['id']}/").json()
    assert seen["host"] == "api.example.org"
    assert not {"base_url", "key_env"} & set(seen)
    refused = post(client_of("curator"), "/judges/", given | {"name": "other", "base_url": "http://10.0.0.1/v1"})
    assert (refused.status_code, list(refused.json())) == (400, ["base_url"])
    assert not Judge.objects.filter(name="other").exists()


def test_prices_change_though_the_host_is_no_longer_listed_and_of_a_judge_of_the_command(client_of, settings):
    """Any PATCH asked whether the host is in JUDGE_HOSTS: a queue with a budget needed the command line."""
    settings.JUDGE_HOSTS = ["api.example.org"]
    given = {"name": "kestrel", "base_url": "https://api.example.org/v1", "model": "k"}
    made = post(client_of("curator"), "/judges/", given).json()["id"]
    by_command = add_judge(name="osprey", base_url="http://10.0.0.1/v1", model="o", any_host=True).pk
    settings.JUDGE_HOSTS = []
    prices = {"price_in": 0.5, "price_out": 1.5}

    def patched(judge, **changes):
        body = json.dumps(changes)
        return client_of("curator").patch(f"{API}/judges/{judge}/", body, content_type="application/json")

    for judge in (made, by_command):
        answer = patched(judge, **prices)
        assert (answer.status_code, answer.json().get("price_in"), answer.json().get("price_out")) == (200, 0.5, 1.5)
    assert patched(by_command, headers="X-To: elsewhere").status_code == 400
    assert patched(by_command, key="sk-other").status_code == 400
    assert patched(by_command, key_env="JUDGE_EXAMPLE").status_code == 400
    stored = Judge.objects.get(pk=by_command)
    assert (stored.headers, stored.key, stored.key_env, stored.any_host) == ("", "", "", True)


def test_a_list_of_runs_takes_few_queries_however_long(client_of, start, baseline, django_assert_max_num_queries):
    for _ in range(8):
        start(baseline("first"), new=True)
    client = client_of("researcher")
    with django_assert_max_num_queries(6):  # one of them reads what this person was granted
        assert len(client.get(f"{API}/runs/").json()["results"]) == 8
