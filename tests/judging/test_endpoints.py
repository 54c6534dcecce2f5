"""What endpoints do, and what becomes of it: real HTTP against a server that misbehaves on purpose (checks F1-F3)."""

import gzip
import json
import socket
import time
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from django.db import connection
from django.utils import timezone

from accounts import loop
from bank.errors import BadInput
from judging.endpoints.answers import seconds_to_wait
from judging.endpoints.client import PrivateAddress, PublicResolver
from judging.endpoints.judges import key_of
from judging.endpoints.probing import probe_judge
from judging.models import Attempt, Judge, Run
from judging.runs import actions
from tests.judging import server as endpoint
from tests.judging.server import Server, answer, completion, error, status
from tests.judging.small import QUICK, make_benchmark

pytestmark = pytest.mark.django_db

VOTE = answer("Answer1")
# As OpenRouter documents it.
FLAGGED = status(
    403,
    {
        "error": {
            "code": 403,
            "message": "Your input was flagged",
            "metadata": {"reasons": ["violence"], "flagged_input": "...", "provider_name": "x", "model_slug": "y"},
        }
    },
)


@pytest.fixture
def judged(start, judge_at, work_on):
    """Judge one item in one order while the endpoint follows a script; returns the run and its judgment, if any."""

    def act(script, *, patience=None, **judge):
        with Server(script) as server:
            run = start(judge_at(server.url, **judge), limit=1, settings={"order": "fixed"})
            run = work_on(run, **({"patience": patience} if patience else {}))
        return run, run.judgments.first()

    return act


def then(*acts):
    """One act after another; the last one again and again."""
    return lambda call: acts[min(call.number, len(acts) - 1)]


# -- F1: rate limits ------------------------------------------------------------------------------------------------


def http_date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"retry_after": "0.05"},
        {"retry_after_ms": "40"},
        {"retry_after": http_date(0)},
        {"retry_after": http_date(-3600)},
        {},
        {"retry_after": "soon"},
        {"retry_after": "-1"},
        {"retry_after": "nan"},
        {"retry_after": "1000000000"},
        {"retry_after": "9" * 400},
    ],
    ids=lambda headers: "+".join(f"{name}={value[:12]}" for name, value in headers.items()) or "absent",
)
@pytest.mark.check("F1")
def test_a_rate_limit_is_waited_for_and_loses_no_verdict(judged, headers):
    run, judgment = judged(then(error(429, **headers), error(429, **headers), VOTE))
    assert (run.state, judgment.status, judgment.choice) == ("finished", "ok", "first")
    assert list(run.attempts.values_list("outcome", flat=True)) == ["rate", "rate"]
    assert run.calls == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Fri, 20 Nov 2026 11:59:30 GMT"}, None),
        ({"retry-after": "1000000000"}, 1e9),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3),
        ({"retry-after": ""}, None),
        ({"retry-after": "1e999"}, None),
        ({}, None),
    ],
)
@pytest.mark.check("F1")
def test_retry_after_is_understood_in_every_form_it_comes_in(headers, seconds):
    assert seconds_to_wait(headers, now=datetime(2026, 11, 20, 12, tzinfo=UTC)) == seconds


def test_while_one_call_is_told_to_wait_no_other_call_is_made(start, judge_at, work_on):
    times = []

    def script(call):
        times.append(time.monotonic())
        return error(429, retry_after="0.15") if call.number == 0 else VOTE

    with Server(script) as server:
        run = work_on(start(judge_at(server.url, concurrency=1)))
    assert run.judgments.filter(status="ok").count() == 6
    assert times[1] - times[0] >= 0.14


def test_a_run_that_meets_nothing_but_rate_limits_waits_and_says_so(start, judge_at, work_on):
    patience = replace(QUICK, limited=0.1)
    with Server(lambda call: error(429)) as server:
        run = work_on(start(judge_at(server.url)), patience=patience)
    assert (run.state, run.tries, run.judgments.count()) == (Run.State.WAITING, 1, 0)
    assert "rate limit (429)" in run.state_reason


def test_rate_limits_are_borne_for_longer_than_an_endpoint_that_fails(start, judge_at, work_on):
    times = []

    def script(call):
        times.append(time.monotonic())
        return error(429, retry_after="0.1") if times[-1] - times[0] < 0.4 else VOTE

    with Server(script) as server:
        run = work_on(start(judge_at(server.url)), patience=replace(QUICK, outage=0.1, try_for=0.1, limited=60.0))
    assert (run.state, run.judgments.filter(status="ok").count()) == (Run.State.FINISHED, 6)


def test_a_call_that_is_always_refused_for_the_rate_is_given_up_when_its_time_is_over(start, judge_at, work_on):
    """And the others, which are answered, are stored."""

    def script(call):
        return error(429) if "on table 0?" in call.text else endpoint.after(0.05, VOTE)

    patience = replace(QUICK, altogether=0.2)
    with Server(script) as server:
        run = work_on(start(judge_at(server.url), on=make_benchmark(samples=24, slug="larger")), patience=patience)
    assert run.state == Run.State.FINISHED
    assert sorted(run.judgments.values_list("status", flat=True)) == ["error"] * 2 + ["ok"] * 46
    assert set(run.judgments.filter(status="error").values_list("reason", flat=True)) == {"rate limit (429)"}


@pytest.mark.parametrize(
    "act", [error(429, kind="insufficient_quota"), error(402)], ids=["insufficient_quota", "payment required"]
)
def test_an_account_without_quota_pauses_the_run_at_once(judged, act):
    run, judgment = judged(then(act))
    assert (run.state, judgment) == (Run.State.PAUSED, None)
    assert "no quota left" in run.state_reason
    assert run.attempts.count() == 1


# -- F2: broken endpoints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [408, 500, 502, 503, 504, 529])
@pytest.mark.check("F2")
def test_a_failure_of_the_endpoint_is_tried_again(judged, code):
    run, judgment = judged(then(status(code, "bad gateway"), VOTE))
    assert judgment.status == "ok"
    assert list(run.attempts.values_list("outcome", "http_status")) == [("transient", code)]


def test_an_endpoint_that_keeps_failing_ends_as_an_error_without_a_verdict(judged):
    run, judgment = judged(then(status(500)))
    assert (run.state, judgment.status, judgment.choice) == ("finished", "error", None)
    assert judgment.reason == "the endpoint failed (500)"
    assert run.attempts.count() == 6


@pytest.mark.parametrize("code", [500, 503])
def test_while_an_endpoint_fails_every_call_no_judgment_fails_and_the_run_waits(start, judge_at, work_on, code):
    with Server(lambda call: status(code)) as server:
        run = work_on(start(judge_at(server.url), on=make_benchmark(samples=120, slug="larger")))
    assert (run.state, run.tries, run.judgments.count()) == (Run.State.WAITING, 1, 0)
    assert f"the endpoint failed ({code})" in run.state_reason
    assert timedelta(seconds=50) < run.next_try_at - timezone.now() <= timedelta(minutes=1)


def test_a_call_that_failed_just_before_the_last_answer_does_not_fail_with_the_endpoint(start, judge_at, work_on):
    first = {0: status(500), 1: endpoint.after(0.05, VOTE)}
    with Server(lambda call: first.get(call.number, status(503))) as server:
        run = work_on(start(judge_at(server.url, concurrency=2), on=make_benchmark(samples=12, slug="larger")))
    assert (run.state, run.verdicts, run.failures) == (Run.State.WAITING, 1, 0)


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (endpoint.reset_in_the_body, "transient"),
        (status(200, b"\x00\xff\xfe not text"), "garbage"),
        (status(200, "{}", content_encoding="gzip"), "garbage"),
        (status(200, "{}", content_encoding="br"), "garbage"),
    ],
    ids=["reset in the body", "binary", "not the gzip it says", "an encoding nobody asked for"],
)
@pytest.mark.check("F3")
def test_a_broken_body_is_never_a_verdict(judged, act, outcome):
    run, judgment = judged(then(act))
    assert (judgment.status, judgment.choice) == ("error", None)
    assert set(run.attempts.values_list("outcome", flat=True)) == {outcome}


@pytest.mark.parametrize("act", [endpoint.one_byte_a_second, endpoint.after(30, VOTE)], ids=["1 byte/s", "silent"])
@pytest.mark.check("F2")
def test_a_call_ends_at_its_deadline_whatever_trickles_in(judged, act):
    run, judgment = judged(then(act, VOTE), timeout=1)
    assert judgment.status == "ok"
    assert list(run.attempts.values_list("outcome", flat=True)) == ["timeout"]


@pytest.mark.parametrize("act", [endpoint.endless, endpoint.a_gigabyte], ids=["endless", "1 GB with a 500"])
@pytest.mark.check("F2")
def test_a_body_without_bounds_is_cut_off_and_never_held_in_memory(judged, act):
    tracemalloc.start()
    try:
        _, judgment = judged(then(act))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (judgment.status, judgment.choice) == ("error", None)
    assert peak < 60_000_000


def test_a_small_body_that_unpacks_to_a_large_one_is_refused(judged):
    bomb = gzip.compress(b" " * 50_000_000)
    _, judgment = judged(then(status(200, bomb, content_encoding="gzip")))
    assert (judgment.status, judgment.reason) == ("error", "the reply is too long for a verdict")


def test_a_compressed_reply_that_nobody_asked_for_is_read_all_the_same(judged):
    body = {"model": "m", "choices": [{"message": {"content": "Answer2"}, "finish_reason": "stop"}]}
    _, judgment = judged(then(status(200, gzip.compress(json.dumps(body).encode()), content_encoding="gzip")))
    assert (judgment.status, judgment.choice) == ("ok", "second")


# -- F3: replies with status 200 ------------------------------------------------------------------------------------

SAYS = {"role": "assistant"}


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (status(200, "<html>Sign in</html>"), "error"),
        (status(200, ""), "error"),
        (status(200, "{}"), "error"),
        (status(200, "[]"), "error"),
        (status(200, "null"), "error"),
        (status(200, '"Answer1"'), "error"),
        (status(200, '{"choices": []}'), "error"),
        (status(200, '{"choices": null}'), "error"),
        (status(200, '{"choices": [{}]}'), "error"),
        (status(200, '{"choices": [{"message": "Answer1"}]}'), "error"),
        (status(200, '{"choices": ["Answer1"]}'), "error"),
        (status(200, '{"choices": [{"message": {"content": "Answer1"}'), "error"),
        (completion(SAYS | {"content": None}), "empty"),
        (completion(SAYS), "empty"),
        (completion(SAYS | {"content": "  \n"}), "empty"),
        (completion(SAYS | {"content": 1}), "empty"),
        (completion(SAYS | {"content": None, "refusal": "No."}), "refused"),
        (answer("I'm sorry, but I can't assist with that."), "refused"),
        (answer("", finish="content_filter"), "filtered"),
        (answer("Answer1", finish="content_filter"), "filtered"),
        (answer("Answer1", finish="length"), "truncated"),
        (answer("", finish="length"), "truncated"),
        (answer('```json\n{"vote": "Answer1"}\n```'), "parse_failed"),
        (answer('{"vote": "Answer1"}\n{"vote": "Answer2"}'), "parse_failed"),
        (answer("Bananas."), "parse_failed"),
        (completion(SAYS | {"content": [{"type": "text", "text": "Answer1"}]}), "ok"),
        (answer("Answer1", finish=None), "ok"),
        (answer("Answer1", usage=None), "ok"),
        (answer("Answer1", usage={"prompt_tokens": "many", "completion_tokens": -1}), "ok"),
        (answer("Answer1", usage={"prompt_tokens": True, "completion_tokens": 2**40}), "ok"),
    ],
)
@pytest.mark.check("F3")
def test_each_kind_of_reply_gets_its_exact_status_and_only_a_vote_is_a_verdict(judged, act, expected):
    run, judgment = judged(then(act))
    assert run.state == Run.State.FINISHED
    assert judgment.status == expected
    assert judgment.choice == ("first" if expected == "ok" else None)
    assert bool(judgment.reason) == (expected != "ok")
    # What is no reply, or an empty one, is asked for three times.
    assert run.calls == (3 if expected in ("error", "empty") else 1)
    assert run.attempts.count() == (expected != "ok") * run.calls


@pytest.mark.parametrize(
    ("act", "expected", "reason"),
    [
        (error(400, kind="context_length_exceeded"), "error", "the prompt is longer than the model's context"),
        (error(400, kind="content_filter"), "filtered", "stopped by the provider's content filter"),
        (
            status(400, {"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
            "filtered",
            "stopped by the provider's content filter",
        ),
        (error(400, kind="invalid_prompt"), "filtered", "stopped by the provider's content filter"),
        (FLAGGED, "filtered", "stopped by the provider's moderation"),
        (error(403, kind="moderation_blocked"), "filtered", "stopped by the provider's moderation"),
        (error(400), "error", "the endpoint refused the request (400)"),
        (error(413), "error", "the endpoint refused the request (413)"),
        (status(422, {"detail": [{"msg": "no"}]}), "error", "the endpoint refused the request (422)"),
    ],
)
def test_a_request_that_will_never_do_is_not_made_twice(judged, act, expected, reason):
    run, judgment = judged(then(act))
    assert (judgment.status, judgment.reason, judgment.choice) == (expected, reason, None)
    assert run.attempts.count() == 1


def test_an_error_that_a_router_hands_on_with_status_200_is_the_error_it_is(judged):
    run, judgment = judged(then(status(200, {"error": {"code": 502, "message": "upstream"}}), VOTE))
    assert judgment.status == "ok"
    assert list(run.attempts.values_list("outcome", flat=True)) == ["transient"]


def test_one_flagged_sample_does_not_stop_a_run(start, judge_at, work_on):
    with Server(lambda call: FLAGGED if "table 1" in call.text else VOTE) as server:
        run = work_on(start(judge_at(server.url)))
    assert run.state == Run.State.FINISHED
    assert sorted(run.judgments.values_list("status", flat=True)) == ["filtered"] * 2 + ["ok"] * 4


def test_a_reply_that_broke_off_with_an_error_is_made_again_and_is_never_a_verdict(judged):
    broken = completion(SAYS | {"content": "Answer1"}, finish="error")
    run, judgment = judged(then(broken, answer("Answer2")), price_in=2.0, price_out=10.0)
    assert (judgment.status, judgment.choice) == ("ok", "second")
    assert run.spent == pytest.approx(2 * 0.0021)  # the first was paid for, too
    run, judgment = judged(then(broken), name="osprey")
    assert (judgment.status, judgment.choice) == ("error", None)
    choice = {"message": SAYS | {"content": "Answer1"}, "error": {"code": 400, "message": "no"}}
    run, judgment = judged(then(status(200, {"choices": [choice]})), name="heron")
    assert (judgment.status, judgment.reason) == ("error", "the endpoint refused the request (400)")


def test_an_endpoint_that_refuses_every_request_pauses_the_run(start, judge_at, work_on):
    with Server(lambda call: error(400, message="temperature is not taken")) as server:
        run = work_on(start(judge_at(server.url), on=make_benchmark(samples=12, slug="larger")))
    assert run.state == Run.State.PAUSED
    assert "refused the request (400), 10 calls in a row" in run.state_reason
    assert "temperature" not in run.state_reason  # what an endpoint says may echo the prompt


def test_what_an_endpoint_says_is_kept_for_staff_and_encrypted(judged):
    run, judgment = judged(then(error(400, message="your prompt was: Names the walnut bowl")))
    assert "walnut" in run.attempts.get().detail
    assert "walnut" not in judgment.reason
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT detail FROM {Attempt._meta.db_table}")
        assert "walnut" not in cursor.fetchone()[0]


# -- keys, addresses, redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [401, 403])
def test_a_key_that_is_not_accepted_pauses_the_run_at_once(judged, monkeypatch, code):
    monkeypatch.setenv("KESTREL_API_KEY", "sk-wrong")
    run, judgment = judged(then(error(code)), key_env="KESTREL_API_KEY")
    assert (run.state, judgment) == (Run.State.PAUSED, None)
    assert "KESTREL_API_KEY" in run.state_reason
    assert "sk-wrong" not in run.state_reason


def test_a_judge_whose_key_is_missing_pauses_before_any_call(start, judge_at, work_on, monkeypatch):
    monkeypatch.delenv("KESTREL_API_KEY", raising=False)
    with Server(lambda call: VOTE) as server:
        run = work_on(start(judge_at(server.url, key_env="KESTREL_API_KEY")))
    assert not server.calls
    assert run.state == Run.State.PAUSED
    assert "environment variable KESTREL_API_KEY is empty" in run.state_reason


def test_the_key_goes_to_its_endpoint_and_nothing_of_the_environment_with_it(start, judge_at, work_on, monkeypatch):
    monkeypatch.setenv("KESTREL_API_KEY", "sk-right")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "somebody-elses")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: somebody-elses")
    with Server(lambda call: VOTE) as server:
        work_on(start(judge_at(server.url, key_env="KESTREL_API_KEY")))
    headers = server.calls[0].headers
    assert headers["authorization"] == "Bearer sk-right"
    assert "somebody-elses" not in str(headers)
    with Server(lambda call: VOTE) as other:
        work_on(start(judge_at(other.url, name="local")))
    assert "authorization" not in other.calls[0].headers


@pytest.mark.parametrize("code", [301, 302, 307, 308])
@pytest.mark.check("F12")
def test_a_redirect_is_not_followed_and_no_key_goes_elsewhere(judged, monkeypatch, code):
    monkeypatch.setenv("KESTREL_API_KEY", "sk-right")
    with Server(lambda call: VOTE) as elsewhere:
        moved = status(code, "", location=f"{elsewhere.url}/chat/completions")
        run, judgment = judged(then(moved), key_env="KESTREL_API_KEY")
    assert (run.state, judgment) == (Run.State.PAUSED, None)
    assert "redirects elsewhere" in run.state_reason
    assert not elsewhere.calls


def test_an_unknown_model_or_address_pauses_the_run(judged):
    run, judgment = judged(then(error(404)))
    assert (run.state, judgment) == (Run.State.PAUSED, None)
    assert "knows no such address or model" in run.state_reason


def test_an_endpoint_that_cannot_be_reached_lets_the_run_wait_and_it_goes_on_when_it_can(start, judge_at, work_on):
    with Server(lambda call: VOTE) as server:
        pass
    run = start(judge_at(server.url))
    run = work_on(run)
    assert (run.state, run.calls) == (Run.State.WAITING, 0)  # nobody heard these calls
    assert "cannot be reached: connection refused" in run.state_reason
    assert not run.judgments.exists()
    actions.resume_run(run=run)
    with Server(lambda call: VOTE, port=server.port):
        run = work_on(run)
    assert run.state == Run.State.FINISHED
    assert run.judgments.filter(status="ok").count() == 6


@pytest.mark.check("A14", "F12")
def test_a_host_that_has_left_the_list_is_not_called(start, judge_at, work_on, settings):
    with Server(lambda call: VOTE) as server:
        settings.JUDGE_HOSTS = [f"127.0.0.1:{server.port}"]
        judge = judge_at(server.url, any_host=False)
        settings.JUDGE_HOSTS = []
        run = work_on(start(judge))
    assert not server.calls
    assert run.state == Run.State.PAUSED
    assert "JUDGE_HOSTS" in run.state_reason


@pytest.fixture
def name():
    """A name of this machine that is not ``localhost``, and leads to where the test server is."""
    found = socket.gethostname()
    if socket.gethostbyname(found) != "127.0.0.1":
        pytest.skip("This machine's own name does not lead to 127.0.0.1.")
    return found.lower()


@pytest.mark.check("A14", "F12")
def test_a_listed_name_that_leads_to_a_private_address_is_not_called(start, work_on, settings, name):
    with Server(lambda call: VOTE) as server:
        settings.JUDGE_HOSTS = [name]
        judge = Judge.objects.create(name="k", base_url=f"http://{name}:{server.port}/v1", model="k")
        run = work_on(start(judge))
        assert not server.calls
        assert run.state == Run.State.PAUSED
        assert "its name resolves to a private address" in run.state_reason
        settings.JUDGE_HOSTS = [name, "127.0.0.1"]
        actions.resume_run(run=run)
        assert work_on(run).state == Run.State.FINISHED


@pytest.mark.parametrize("column", ["any_host", "any_address"])
def test_judges_by_command_and_those_that_were_there_before_go_on(start, work_on, settings, name, column):
    with Server(lambda call: VOTE) as server:
        settings.JUDGE_HOSTS = [name]
        judge = Judge.objects.create(name="k", base_url=f"http://{name}:{server.port}/v1", model="k", **{column: True})
        assert work_on(start(judge)).state == Run.State.FINISHED


AS_AT_AZURE = {
    "key": "not-a-real-key",
    "key_header": "api-key",
    "query": "api-version=2024-10-21",
    "headers": "X-Project: towns\nOpenAI-Organization: org-1",
}


def test_an_endpoint_is_reached_by_its_query_headers_and_a_stored_key(judge_at, start, work_on, client_of):
    with Server(lambda call: VOTE) as server:
        judge = judge_at(server.url, **AS_AT_AZURE)
        more = {"system": "You are strict.", "extra_body": {"top_k": 40, "provider": {"order": ["a"]}}}
        run = work_on(start(judge, settings=more))
        probe_judge(judge=judge)
    assert (run.state, run.settings["extra_body"]) == ("finished", more["extra_body"])
    for call in server.calls:
        assert call.path == "/v1/chat/completions?api-version=2024-10-21"
        assert [
            call.headers.get(name) for name in ("api-key", "authorization", "x-project", "openai-organization")
        ] == [
            "not-a-real-key",
            None,
            "towns",
            "org-1",
        ]
    judged = [call.body for call in server.calls if "top_k" in call.body]
    assert len(judged) == run.judgments.count() > 0
    assert judged[0]["messages"][0] == {"role": "system", "content": "You are strict."}
    assert judged[0]["provider"] == {"order": ["a"]}
    assert "{&quot;top_k&quot;: 40" in client_of("curator").get(f"/judging/runs/{run.pk}/").content.decode()


def test_a_key_that_an_endpoint_repeats_is_not_kept(judge_at, start, work_on):
    with Server(lambda call: status(400, {"error": {"message": "Bad request with not-a-real-key"}})) as server:
        run = work_on(start(judge_at(server.url, **AS_AT_AZURE)))
    told = [attempt.detail for attempt in Attempt.objects.filter(run=run)] + [run.state_reason]
    assert any("Bad request with (the key)" in words for words in told)
    assert not any("not-a-real-key" in words for words in told)


def test_what_is_asked_besides_makes_other_calls_and_another_run(judge_at, start, work_on):
    with Server(lambda call: VOTE) as server:
        judge = judge_at(server.url)
        plain, strict, warm = (
            work_on(start(judge, settings=settings))
            for settings in ({}, {"system": "Be strict."}, {"extra_body": {"min_p": 0.1}})
        )
    hashes = [set(run.judgments.values_list("prompt_sha256", flat=True)) for run in (plain, strict, warm)]
    assert len({run.settings_hash for run in (plain, strict, warm)}) == 3
    assert len(set.union(*hashes)) == sum(map(len, hashes))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("query", "api-version", "name=value"),
        ("query", "api_key=abc", "a key goes into a header"),
        ("query", "a=b#c", "name=value"),
        ("headers", "Authorization: Bearer x", "no header that can be added"),
        ("headers", "Host: elsewhere", "no header that can be added"),
        ("headers", "X-Api-Key: x", "A key is given as such"),
        ("headers", "X-A: b\x00c", "Name: value"),
        ("headers", "no colon", "Name: value"),
        ("key", "schlüssel", "ASCII without spaces"),
        ("key", "two\nlines", "ASCII without spaces"),
        ("key_header", "api key", "no header that can be added"),
        ("key_header", "Content-Length", "no header that can be added"),
    ],
)
def test_a_route_that_could_carry_secrets_or_change_a_request_is_refused(judge_at, field, value, words):
    with pytest.raises(BadInput, match=words) as refused:
        judge_at("http://127.0.0.1:9/v1", **{field: value})
    assert refused.value.field == field


@pytest.mark.parametrize(
    "settings",
    [
        {"extra_body": {"messages": []}},
        {"extra_body": {"temperature": 2}},
        {"extra_body": ["a"]},
        {"extra_body": {"a": "\x00"}},
        {"extra_body": {"a": "\ud800"}},
        {"extra_body": {"a": float("nan")}},
        {"extra_body": {"a": 2**80}},
        {"extra_body": {"a": "b" * 4_000}},
        {"system": ""},
        {"system": 7},
        {"system": "a\x00"},
        {"system": "\ud800"},
    ],
)
def test_more_of_a_body_is_refused_where_it_is_ours_or_cannot_be_sent(judge_at, start, settings):
    with pytest.raises(BadInput, match=r"extra_body|system"):
        start(judge_at("http://127.0.0.1:9/v1"), settings=settings)


def test_a_stored_key_is_sealed_shown_to_nobody_and_stays_until_another_is_given(judge_at, client_of, settings):
    settings.JUDGE_HOSTS = ["127.0.0.1", "127.0.0.1:9"]
    client = client_of("curator")
    sent = {"name": "owl", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    client.post("/judging/judges/new/", sent | {"key": "not-a-real-key"})
    judge = Judge.objects.get(name="owl")
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM judging_judge WHERE name = 'owl'")
        assert "not-a-real-key" not in cursor.fetchone()[0]
    pages = [f"/judging/judges/{judge.pk}/", f"/judging/judges/new/?from={judge.pk}", f"/api/v1/judges/{judge.pk}/"]
    assert not any("not-a-real-key" in client.get(page).content.decode() for page in pages)
    assert client.get(pages[2]).json()["has_key"] is True
    assert "has_key" not in client_of("researcher").get(pages[2]).json()
    client.post("/judging/judges/new/", sent | {"timeout": 60})
    assert key_of(Judge.objects.get(name="owl")) == "not-a-real-key"
    changed = [
        client.patch(pages[2], change, "application/json").json()
        for change in ({"key": "another-key"}, {"key_env": "OPENAI_API_KEY"}, {"key": "a-third-key"})
    ]
    assert [(one["has_key"], one["key_env"]) for one in changed] == [(True, ""), (False, "OPENAI_API_KEY"), (True, "")]
    both = client.post("/api/v1/judges/", sent | {"key": "a", "key_env": "OPENAI_API_KEY"}, "application/json")
    assert (both.status_code, list(both.json())) == (400, ["key"])


NOT_PUBLIC = ("::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "192.0.0.8", "ff0e::1")


def test_a_name_that_leads_elsewhere_at_the_second_look_is_looked_at_again():
    class Turning:
        answers = [["93.184.215.14", "10.0.0.7"], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["fd00::1", "192.168.1.1"]]
        answers += [[one] for one in NOT_PUBLIC]

        async def resolve(self, host, port=0, family=0):
            return [{"hostname": host, "host": one, "port": port} for one in self.answers.pop(0)]

        async def close(self):
            pass

    async def look():
        guard = PublicResolver(["192.168.1.1"], Turning())
        assert [one["host"] for one in await guard.resolve("a.test")] == ["93.184.215.14"]
        for _ in range(2):
            with pytest.raises(PrivateAddress):
                await guard.resolve("a.test")
        assert [one["host"] for one in await guard.resolve("a.test")] == ["192.168.1.1"]
        for _ in NOT_PUBLIC:
            with pytest.raises(PrivateAddress):
                await guard.resolve("a.test")

    loop.run(look)


def test_a_missing_picture_is_an_error_of_that_item_alone(start, judge_at, work_on, benchmark):
    image = benchmark.samples.first().images.get()
    image.sha256 = "0" * 64
    image.save()
    with Server(lambda call: VOTE) as server:
        run = work_on(start(judge_at(server.url)))
    assert run.state == Run.State.FINISHED
    assert run.judgments.filter(status="ok").count() == 4
    assert set(run.judgments.filter(status="error").values_list("reason", flat=True)) == {
        "the file of a picture of the sample is gone"
    }
