"""What endpoints can do: found out by asking, used where it is there, left alone where it is not."""

import base64
import io
import json
import time
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bank.errors import BadInput
from judging.endpoints.answers import Token
from judging.endpoints.probing import COLOURS, probe_judge
from judging.models import Judge, Run
from judging.protocols.score import weighted_score
from judging.runs import actions
from tests.judging.server import Server, answer, completion, error, status
from tests.judging.small import make_benchmark
from tests.judging.test_protocols import item_of

pytestmark = pytest.mark.django_db


def colour_of(url: str) -> str:
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
        seen = image.convert("RGB").getpixel((5, 5))
    return next(name for name, value in COLOURS.items() if value == seen)


def logprobs(*tokens: tuple[str, dict[str, float]]) -> dict:
    """The log-probabilities of a reply as OpenAI and vLLM write them."""
    rows = [
        {
            "token": text,
            "logprob": others.get(text, -9.0),
            "top_logprobs": [{"token": t, "logprob": p} for t, p in others.items()],
        }
        for text, others in tokens
    ]
    return {"content": rows}


def endpoint(*, sees=True, takes=(), obeys=True):
    """An endpoint that takes these parameters and refuses all others."""

    def script(call):
        unknown = set(call.body) - {"model", "messages", *takes}
        if unknown:
            return error(400, message=f"unknown parameter {sorted(unknown)[0]}")
        content = call.body["messages"][0]["content"]
        if isinstance(content, list):
            return answer(colour_of(call.images[0]).title() + "." if sees else "I see red, or blue.")
        text = json.dumps({"digit": 4}) if "response_format" in call.body and obeys else "4"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        if call.body.get("logprobs") and obeys:
            choice["logprobs"] = logprobs(("4", {"4": -0.1, "5": -2.4}))
        return completion(None, choices=[choice])

    return script


EVERYTHING = ("temperature", "seed", "reasoning_effort", "max_tokens", "max_completion_tokens", "logprobs")
EVERYTHING += ("top_logprobs", "response_format")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            endpoint(takes=EVERYTHING),
            {"vision", "json_schema", "logprobs", "seed", "temperature", "reasoning_effort", "max_tokens=max_tokens"},
        ),
        (
            endpoint(takes=("max_completion_tokens", "reasoning_effort", "response_format")),
            {"vision", "json_schema", "reasoning_effort", "max_tokens=max_completion_tokens"},
        ),
        (
            endpoint(takes=EVERYTHING, sees=False, obeys=False),
            {"seed", "temperature", "reasoning_effort", "max_tokens=max_tokens"},
        ),
        (endpoint(), {"vision", "max_tokens="}),
    ],
    ids=["everything", "a reasoning model", "accepts and ignores", "plain"],
)
def test_a_test_call_shows_what_an_endpoint_can_do(judge_at, script, expected):
    with Server(script) as server:
        found = probe_judge(judge=judge_at(server.url))
    assert len(server.calls) == 10
    shown = {name if value is True else f"{name}={value}" for name, value in found.items() if value is not False}
    assert shown - {f"at={found['at']}"} == expected
    assert Judge.objects.get(name="kestrel").abilities == found


def test_what_cannot_be_found_out_now_is_left_open_and_an_endpoint_that_fails_stores_nothing(judge_at):
    def script(call):
        return error(429) if "seed" in call.body else endpoint(takes=EVERYTHING)(call)

    with Server(script) as server:
        judge = judge_at(server.url)
        assert "seed" not in probe_judge(judge=judge)
    with Server(lambda call: error(401)) as server:
        other = judge_at(server.url, name="other")
        with pytest.raises(BadInput, match="the key was not accepted"):
            probe_judge(judge=other)
    other.refresh_from_db()
    assert other.abilities == {}


def test_by_command_and_by_api(judge_at, client_of):
    out = StringIO()
    with Server(endpoint(takes=("seed",))) as server:
        judge = judge_at(server.url)
        call_command("probe_judge", "kestrel", stdout=out)
        made = client_of("curator").post(f"/api/v1/judges/{judge.pk}/probe/")
        refused = client_of("researcher").post(f"/api/v1/judges/{judge.pk}/probe/")
    assert "vision: yes" in out.getvalue()
    assert "logprobs: no" in out.getvalue()
    assert (made.status_code, made.json()["abilities"]["seed"]) == (200, True)
    assert refused.status_code == 403
    page = client_of("curator").get(f"/judging/judges/{judge.pk}/").content.decode()
    assert "Sees pictures" in page
    assert "Test it" in page
    gone = client_of("curator").post(f"/judging/judges/{judge.pk}/probe/", follow=True).content.decode()
    assert "connection refused" in gone
    with pytest.raises(CommandError, match="has no endpoint"):
        call_command("probe_judge", "baseline-first")


def test_a_run_sends_what_its_endpoint_takes_and_goes_on_as_it_began(judge_at, start, work_on, benchmark):
    with Server(lambda call: answer("Answer1")) as server:
        judge = judge_at(server.url)
        Judge.objects.update(abilities={"temperature": False, "seed": True, "max_tokens": "max_completion_tokens"})
        judge.refresh_from_db()
        run = start(
            judge, limit=1, settings={"repeats": 2, "order": "fixed", "max_tokens": 90, "reasoning_effort": "low"}
        )
        Judge.objects.update(abilities={})
        work_on(run)
    bodies = [{name: value for name, value in call.body.items() if name != "messages"} for call in server.calls]
    same = {"model": "kestrel-vl", "reasoning_effort": "low", "max_completion_tokens": 90}
    assert sorted(bodies, key=lambda body: body["seed"]) == [same | {"seed": 0}, same | {"seed": 1}]


def test_what_an_endpoint_was_seen_not_to_do_is_refused_before_the_start(judge_at, start):
    judge = judge_at("http://127.0.0.1:9/v1")
    judge.abilities = {"vision": False, "reasoning_effort": False}
    judge.save()
    for settings, words in (
        ({}, "cannot see pictures"),
        ({"context": "none", "reasoning_effort": "low"}, "does not accept a reasoning effort"),
        ({"context": "none", "structured": True}, "has no JSON reply"),
    ):
        with pytest.raises(BadInput, match=words):
            start(judge, settings=settings)
    with pytest.raises(BadInput, match="No test has shown that"):
        actions.start_run(
            judge=judge,
            benchmark=make_benchmark(slug="b"),
            protocol="pair",
            settings={"context": "none", "structured": True},
        )
    assert start(judge, settings={"context": "none"}).pk


def test_a_judge_that_sees_no_pictures_judges_where_there_are_none(judge_at, start):
    judge = judge_at("http://127.0.0.1:9/v1")
    judge.abilities = {"vision": False}
    judge.save()
    assert start(judge, on=make_benchmark(slug="texts", pictures=False)).pk


def test_a_schema_is_chosen_on_the_page_where_a_judge_keeps_to_one(client_of, benchmark, judge_at):
    judge, client = judge_at("http://127.0.0.1:9/v1"), client_of("curator")
    assert "Require a JSON schema" not in client.get("/judging/runs/new/").content.decode()
    judge.abilities = {"json_schema": True}
    judge.save()
    assert "Require a JSON schema" in client.get("/judging/runs/new/").content.decode()
    chosen = {"judge": judge.pk, "benchmark": benchmark.pk, "protocol": "pair", "prompt": "default", "structured": "on"}
    unable = judge_at("http://127.0.0.1:9/v2", name="osprey")
    refused = client.post("/judging/runs/new/", chosen | {"judge": unable.pk})
    assert "No test has shown that osprey follows a JSON schema" in refused.content.decode()
    client.post("/judging/runs/new/", chosen)
    run = Run.objects.get()
    assert run.settings["structured"] is True
    again = client.get(f"/judging/runs/new/?from={run.pk}").context["form"]
    assert again["structured"].initial is True


def test_held_to_a_schema_the_judge_replies_in_json_and_the_verdict_is_checked_all_the_same(
    benchmark, judge_at, work_on
):
    item_of(benchmark.samples.get(key="0"), "A walnut bowl.")
    item_of(benchmark.samples.get(key="1"), "Something.")
    with Server(
        lambda call: answer('{"analysis": "Good.", "verdict": 4}' if "table 0" in call.text else '{"verdict": 9}')
    ) as server:
        judge = judge_at(server.url)
        judge.abilities = {"json_schema": True}
        judge.save()
        asked = {"judge": judge, "benchmark": benchmark, "protocol": "score"}
        run = work_on(actions.start_run(**asked, settings={"structured": True}))
    schema = server.calls[0].body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["analysis", "verdict"]
    assert schema["properties"]["verdict"]["enum"] == [1, 2, 3, 4, 5]
    found = run.judgments.order_by("item__sample__position").values_list("score", "status")
    assert list(found) == [(4.0, "ok"), (None, "parse_failed")]
    assert run.judgments.get(score=4).analysis == "Good."


# -- weighted scores ------------------------------------------------------------------------------------------------


def test_where_the_endpoint_gives_log_probabilities_a_weighted_score_stands_beside_the_verdict(
    benchmark, judge_at, work_on
):
    """0.6 x 4 + 0.3 x 5 + 0.1 x 3 = 4.2; what is no score does not count."""
    item_of(benchmark.samples.get(key="0"), "A walnut bowl.")
    likely = {"4": -0.5108256, "5": -1.2039728, "3": -2.3025851, "Four": -8.0}

    def script(call):
        choice = {"index": 0, "message": {"content": "It is good.\nScore: 4"}, "finish_reason": "stop"}
        if call.body.get("logprobs"):
            choice["logprobs"] = logprobs(
                ("It", {"It": -0.1}), ("Score:", {}), (" 4", {f" {k}": v for k, v in likely.items()})
            )
        return completion(None, choices=[choice])

    with Server(script) as server:
        judge = judge_at(server.url)
        judge.abilities = {"logprobs": True}
        judge.save()
        asked = {"judge": judge, "benchmark": benchmark, "protocol": "score"}
        weighted = work_on(actions.start_run(**asked)).judgments.get()
        judge.abilities = {}
        judge.save()
        plain = work_on(actions.start_run(**asked, new=True)).judgments.get()
    assert server.calls[0].body["top_logprobs"] == 20
    assert (weighted.score, weighted.weighted_score) == (4.0, pytest.approx(4.2, abs=1e-6))
    assert (plain.score, plain.weighted_score) == (4.0, None)
    assert "logprobs" not in server.calls[-1].body


SCALE = (1.0, 2.0, 3.0, 4.0, 5.0)


@pytest.mark.parametrize(
    "tokens",
    [
        (),
        (Token("5", (("5", -0.1),)),),  # not the score that was taken
        (Token("4", (("4", -3.0), ("Four", -0.1))),),  # next to nothing of the probability is on the scale
    ],
)
def test_without_good_reason_there_is_no_weighted_score(tokens):
    assert weighted_score(tokens, score=4.0, scale=SCALE) is None


def test_a_scale_with_scores_of_two_digits_gets_none():
    ten = (Token("1", (("1", -0.1),)), Token("0", (("0", -0.1),)))
    assert weighted_score(ten, score=1.0, scale=tuple(float(n) for n in range(11))) is None


def test_the_last_token_that_states_the_score_is_the_one_that_counts():
    tokens = (Token("4", (("4", -9.0), ("1", 0.0))), Token("4", (("4", 0.0),)))
    assert weighted_score(tokens, score=4.0, scale=SCALE) == 4.0


@given(st.dictionaries(st.sampled_from("123456789x"), st.floats(-30, 0), min_size=1), st.sampled_from(SCALE))
def test_a_weighted_score_never_leaves_the_scale(likely, score):
    found = weighted_score((Token(f"{score:g}", tuple(likely.items())),), score=score, scale=SCALE)
    assert found is None or 1.0 <= found <= 5.0


# -- what an endpoint that was never tested does not take -------------------------------------------------------------

SAYS = "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."


def reasoning(*refused, after=0):
    """A reasoning model at OpenAI: it refuses these parameters, from so many calls on."""

    def script(call):
        for name in refused:
            if name in call.body and call.number >= after:
                other = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                said = SAYS if name == "temperature" else f"Unsupported parameter: '{name}' is not supported.{other}"
                return status(400, {"error": {"message": said, "param": name, "code": "unsupported_parameter"}})
        return answer("Answer1")

    return script


def test_a_parameter_that_an_untested_endpoint_does_not_take_is_dropped_and_the_run_says_so(
    judge_at, start, work_on, client_of
):
    with Server(reasoning("temperature", "max_tokens", "seed", "top_p")) as server:
        chosen = {"max_tokens": 500, "seed": 3, "top_p": 0.9}
        run = work_on(start(judge_at(server.url), settings=chosen))
    assert (run.state, run.verdicts, run.failures) == (Run.State.FINISHED, 6, 0)
    assert set(server.calls[-1].body) == {"model", "messages", "max_completion_tokens"}
    assert sorted(run.dropped) == ["max_tokens", "seed", "temperature", "top_p"]
    client = client_of("curator")
    assert sorted(client.get(f"/api/v1/runs/{run.pk}/").json()["dropped"]) == sorted(run.dropped)
    page = client.get(reverse("judging:run-detail", args=[run.pk])).content.decode()
    assert "The endpoint does not take" in page
    assert run.judge.abilities == {}  # the judge's own are what its test shows


@pytest.mark.parametrize(
    "refusal",
    [
        {"error": {"message": "Unrecognized request argument supplied: temperature", "type": "invalid_request_error"}},
        {
            "detail": [
                {"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}
            ]
        },
        {"object": "error", "message": "temperature is not supported by this model", "code": 400},
        {"error": {"code": "unsupported_value", "message": SAYS, "param": "temperature"}},
    ],
)
def test_a_parameter_is_found_in_the_words_of_every_common_server(judge_at, start, work_on, refusal):
    code = 422 if "detail" in refusal else 400
    with Server(lambda call: status(code, refusal) if "temperature" in call.body else answer("Answer1")) as server:
        run = work_on(start(judge_at(server.url)))
    assert (run.state, run.verdicts, run.dropped) == (Run.State.FINISHED, 6, ["temperature"])


def test_a_refusal_that_comes_after_replies_without_the_parameter_does_not_stop_the_run(judge_at, start, work_on):
    refused = []

    def slowly(call):
        if "temperature" not in call.body:
            return answer("Answer1")
        refused.append(call)
        if len(refused) > 1:
            time.sleep(0.2)
        return status(400, {"error": {"message": "Unrecognized request argument supplied: temperature"}})

    with Server(slowly) as server:
        run = work_on(start(judge_at(server.url)))
    assert len(refused) > 1
    assert (run.state, run.verdicts, run.dropped) == (Run.State.FINISHED, 6, ["temperature"])


def test_after_the_first_reply_a_parameter_is_not_dropped_and_the_run_pauses(judge_at, start, work_on):
    with Server(reasoning("temperature", after=2)) as server:
        run = work_on(start(judge_at(server.url, concurrency=1)))
    assert (run.state, run.verdicts, run.failures, run.dropped) == (Run.State.PAUSED, 2, 0, [])
    assert "it does not take temperature any more" in run.state_reason
    assert len(server.calls) == 3


def test_what_the_protocol_needs_is_never_dropped_nor_what_a_value_is_wrong_of(judge_at, start, work_on):
    needed = status(400, {"error": {"message": "response_format is not supported", "param": "response_format"}})
    with Server(lambda call: needed) as server:
        judge = judge_at(server.url)
        judge.abilities = {"json_schema": True}
        judge.save()
        chosen = {"structured": True}
        run = work_on(
            actions.start_run(judge=judge, benchmark=start(judge).benchmark, protocol="pair", settings=chosen)
        )
    assert (run.verdicts, run.failures, run.dropped) == (0, 6, [])
    large = status(400, {"error": {"message": "max_tokens is too large: 9000", "param": "max_tokens"}})
    with Server(lambda call: large) as server:
        run = work_on(start(judge_at(server.url, name="other"), settings={"max_tokens": 9000}))
    assert (run.verdicts, run.failures, run.dropped) == (0, 6, [])


def test_a_retry_uses_what_the_judge_can_do_today(judge_at, start, work_on):
    unclear = status(400, {"error": {"message": "Bad request."}})
    with Server(lambda call: unclear if "temperature" in call.body else answer("Answer1")) as server:
        judge = judge_at(server.url)
        run = work_on(start(judge))
        assert (run.verdicts, run.failures) == (0, 6)
        probe_judge(judge=judge)
        assert actions.retry_failed(run=Run.objects.get(pk=run.pk)) == 6
        run = work_on(run)
    assert (run.verdicts, run.failures) == (6, 0)


def test_the_commonest_words_of_the_endpoint_stand_in_the_command_the_page_and_the_api(
    judge_at, benchmark, client_of, capsys
):
    said = "The model `kestrel-vl` takes no pictures, see https://example.org/models."
    refusals = [status(400, {"error": {"message": said}}), status(400, {"error": {"message": "Too long."}})]
    with Server(lambda call: refusals[call.number == 3]) as server:
        judge_at(server.url)
        run = {"benchmark": "everyday", "judge": "kestrel", "protocol": "pairwise-criteria", "wait": True}
        call_command("judge", **run, stdout=StringIO())
    assert f"The endpoint says: {said}" in capsys.readouterr().err
    run = Run.objects.get()
    curator, researcher = client_of("curator"), client_of("researcher")
    assert curator.get(f"/api/v1/runs/{run.pk}/").json()["endpoint_says"] == said
    assert "takes no pictures" in curator.get(reverse("judging:run-detail", args=[run.pk])).content.decode()
    assert researcher.get(f"/api/v1/runs/{run.pk}/").json()["endpoint_says"] is None
    assert "takes no pictures" not in researcher.get(reverse("judging:run-detail", args=[run.pk])).content.decode()


def test_what_an_endpoint_says_of_one_item_alone_may_quote_it_and_stays_on_its_own_page(judge_at, benchmark, capsys):
    with Server(lambda call: error(400, message=f"you sent: {call.text[-300:]}")) as server:
        judge_at(server.url)
        run = {"benchmark": "everyday", "judge": "kestrel", "protocol": "pairwise-criteria", "wait": True}
        call_command("judge", **run, stdout=StringIO())
    assert "walnut" not in capsys.readouterr().err
