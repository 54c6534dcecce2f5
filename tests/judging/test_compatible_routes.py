"""Anthropic and Gemini at their OpenAI-compatible routes: replies and errors in the shapes that they are known for."""

import json

import pytest

from judging.models import Run
from tests.judging.small import make_benchmark

# Fields that are always empty there: https://docs.claude.com/en/api/openai-sdk (response fields).
CLAUDE = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Answer1"}, "finish_reason": "stop", "logprobs": None}
    ],
    "created": 1764000000,
    "model": "claude-sonnet-4-5-20250929",
    "object": "chat.completion",
    "usage": {"completion_tokens": 6, "prompt_tokens": 1210, "total_tokens": 1216},
}
# total_tokens holds what the model thought, completion_tokens does not:
# https://github.com/Clarifai/clarifai-python/pull/978, https://github.com/mozilla-ai/any-llm/issues/1290
GEMINI = {
    "choices": [{"finish_reason": "stop", "index": 0, "message": {"content": "Answer1", "role": "assistant"}}],
    "created": 1764000000,
    "id": "6Q0paY-hGIuzqtsP",
    "model": "gemini-2.5-flash",
    "object": "chat.completion",
    "usage": {"completion_tokens": 3, "prompt_tokens": 1290, "total_tokens": 1716},
}


def gemini(**choice):
    return GEMINI | {"choices": [GEMINI["choices"][0] | choice]}


def google(code, message, status, *details):
    """https://github.com/n4ze3m/page-assist/issues/406: a list with one error, and a line break at the end."""
    return json.dumps([{"error": {"code": code, "message": message, "status": status, "details": details}}]) + "\n"


def anthropic(kind, message):
    """https://docs.claude.com/en/api/errors, which other routes of theirs and proxies send, too."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


# https://github.com/letterstory/lettertrace/pull/34, https://github.com/dcdpr/jp/pull/1061: no Retry-After there
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.137906927s"}
NO_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
LIMITED = google(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED", RETRY)


@pytest.fixture
def judged(httpserver, judge_at, start, work_on):
    """Judge one item at a server that sends these bodies, one after another: dicts, or a status and a body."""

    def make(*bodies, **values):
        for body in bodies:
            code, sent = body if isinstance(body, tuple) else (200, body)
            handler = httpserver.expect_ordered_request("/v1/chat/completions", method="POST")
            text = sent if isinstance(sent, str) else json.dumps(sent)
            handler.respond_with_data(text, status=code, content_type="application/json")
        on = make_benchmark(samples=1, slug="one", pictures=False)
        judge = judge_at(httpserver.url_for("/v1"), price_in=1.0, price_out=10.0, concurrency=1, **values)
        run = work_on(start(judge, on=on, settings={"order": "fixed", "seed": 7}))
        return run, run.judgments.first()

    return make


@pytest.mark.parametrize(
    ("body", "model", "tokens"),
    [
        (CLAUDE, "claude-sonnet-4-5-20250929", (1210, 6)),
        (GEMINI, "gemini-2.5-flash", (1290, 426)),
        (GEMINI | {"usage": None}, "gemini-2.5-flash", (None, None)),
        (CLAUDE | {"usage": {"prompt_tokens": 1210}}, "claude-sonnet-4-5-20250929", (1210, None)),
    ],
    ids=["Claude", "Gemini thinks", "no usage", "half of it"],
)
def test_a_reply_is_a_verdict_and_all_that_was_paid_for_is_counted(judged, body, model, tokens):
    run, judgment = judged(body)
    assert (run.state, judgment.status, judgment.choice) == (Run.State.FINISHED, "ok", "first")
    assert (judgment.reported_model, judgment.prompt_tokens, judgment.completion_tokens) == (model, *tokens)
    if None not in tokens:
        assert judgment.cost == pytest.approx((tokens[0] + 10 * tokens[1]) / 1e6)


# https://github.com/HKUDS/Vibe-Trading/pull/308: reasons of Gemini's own, in capitals;
# https://github.com/evalstate/fast-agent/issues/184: no message where it thought and said nothing;
# https://github.com/google/generative-ai-docs/issues/235: no content where it was stopped.
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (gemini(finish_reason="SAFETY", message={"role": "assistant"}), "filtered"),
        (gemini(finish_reason="PROHIBITED_CONTENT", message=None), "filtered"),
        (gemini(finish_reason="content_filter", message={"role": "assistant", "content": None}), "filtered"),
        (gemini(finish_reason="MAX_TOKENS", message={"role": "assistant"}), "truncated"),
        (gemini(finish_reason="length", message=None), "truncated"),
        (gemini(finish_reason="STOP"), "ok"),
        (CLAUDE | {"choices": [CLAUDE["choices"][0] | {"finish_reason": "length"}]}, "truncated"),
    ],
)
def test_a_reply_that_was_stopped_is_told_from_one_that_is_whole(judged, body, status):
    run, judgment = judged(body)
    assert (run.state, judgment.status) == (Run.State.FINISHED, status)


@pytest.mark.parametrize(
    ("code", "body", "outcome"),
    [
        (429, LIMITED, "rate"),
        (503, google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"), "transient"),
        (429, anthropic("rate_limit_error", "This request would exceed your organization's rate limit."), "rate"),
        (529, anthropic("overloaded_error", "Overloaded"), "transient"),
        (500, anthropic("api_error", "Internal server error"), "transient"),
    ],
)
def test_what_passes_is_asked_again(judged, code, body, outcome):
    whole = GEMINI if isinstance(body, str) else CLAUDE
    run, judgment = judged((code, body), whole)
    assert (run.state, judgment.status, list(run.attempts.values_list("outcome", flat=True))) == (
        Run.State.FINISHED,
        "ok",
        [outcome],
    )


def test_the_pause_that_gemini_asks_for_in_its_body_is_kept(judged, monkeypatch):
    asked = []
    monkeypatch.setattr("judging.work.pace.Limiter.limited", lambda limiter, now, seconds: asked.append(seconds))
    run, _ = judged((429, LIMITED), GEMINI)
    assert run.state == Run.State.FINISHED
    assert asked == [pytest.approx(0.1379, abs=0.001)]


@pytest.mark.parametrize(
    ("code", "body", "words"),
    [
        (400, google(400, "API key not valid. Please pass one.", "INVALID_ARGUMENT", NO_KEY), "key was not"),
        (404, google(404, "models/gemini-9 is not found for API version v1", "NOT_FOUND"), "no such address or model"),
        (401, anthropic("authentication_error", "invalid x-api-key"), "the key was not accepted"),
        (404, anthropic("not_found_error", "model: claude-9"), "no such address or model"),
        (400, anthropic("invalid_request_error", "Your credit balance is too low to access the API."), "no quota"),
    ],
)  # fmt: skip
def test_what_somebody_has_to_see_to_pauses_the_run_at_once(judged, code, body, words):
    run, judgment = judged((code, body))
    assert (run.state, judgment, run.calls) == (Run.State.PAUSED, None, 1)
    assert words in run.state_reason


def test_a_parameter_that_gemini_does_not_know_is_left_out(judged):
    said = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
    run, judgment = judged((400, google(400, said, "INVALID_ARGUMENT")), GEMINI)
    assert (run.state, judgment.status, run.abilities) == (Run.State.FINISHED, "ok", run.abilities | {"seed": False})


def test_other_refusals_are_told_in_the_words_of_the_endpoint(judged):
    said = "prompt is too long: 212005 tokens > 200000 maximum"
    run, judgment = judged((400, anthropic("invalid_request_error", said)))
    assert (judgment.status, judgment.reason) == ("error", "the endpoint refused the request (400)")
    assert said in run.attempts.get().detail
