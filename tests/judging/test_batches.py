"""Calls handed in by the batch interface, and calls answered from identical ones."""

from collections import Counter

import pytest

from bank.models import Response
from judging.models import Judge, Judgment, Run
from judging.runs.actions import start_collecting
from judging.work import batches
from tests.judging.batch_endpoint import BatchEndpoint, said
from tests.judging.server import Server, answer, error

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def text_of(line) -> str:
    return line["body"]["messages"][0]["content"][-1]["text"]


def vote(line):
    first = text_of(line).index("A walnut bowl") < text_of(line).index("There is something")
    return said("Answer1" if first else "Answer2")


def test_a_run_is_handed_in_as_batches_and_its_verdicts_are_collected(start, judge_at, work_on, monkeypatch):
    monkeypatch.setattr(batches, "CALLS", 4)
    there = BatchEndpoint(vote)
    with Server(there) as server:
        run = work_on(start(judge_at(server.url, price_in=1.0, price_out=1.0), batched=True))
    assert run.state == Run.State.FINISHED, run.state_reason
    assert Counter(run.judgments.values_list("order", "choice", "status")) == {
        ("01", "first", "ok"): 3,
        ("10", "first", "ok"): 3,
    }
    assert [len(batch["lines"]) for batch in there.batches.values()] == [4, 2]
    assert {line["url"] for line in there.lines} == {"/v1/chat/completions"}
    assert all(line["body"]["messages"][0]["content"][0]["type"] == "image_url" for line in there.lines)
    assert (run.calls, run.batches) == (6, [])
    assert run.spent == pytest.approx(6 * 1010 / 1e6)
    assert set(run.judgments.values_list("latency", flat=True)) == {None}


def test_what_a_batch_did_not_answer_goes_into_the_next_and_what_it_refused_is_no_verdict(start, judge_at, work_on):
    seen: Counter = Counter()

    def reply(line):
        seen[line["custom_id"]] += 1
        if "table 0" in text_of(line):
            return {"status_code": 400, "body": {"error": {"message": "no"}}}
        if "table 1" in text_of(line) and seen[line["custom_id"]] == 1:
            return None if line["custom_id"].endswith("-01-0") else {"status_code": 500, "body": {}}
        return vote(line)

    there = BatchEndpoint(reply)
    with Server(there) as server:
        run = work_on(start(judge_at(server.url), batched=True))
    assert run.state == Run.State.FINISHED, run.state_reason
    assert Counter(run.judgments.values_list("status", flat=True)) == {"ok": 4, "error": 2}
    assert [len(batch["lines"]) for batch in there.batches.values()] == [6, 2]
    assert Counter(run.attempts.values_list("outcome", flat=True)) == {"permanent": 2, "transient": 1}


def test_a_stopped_run_leaves_its_batch_out_and_the_next_worker_collects_it(start, judge_at, work_on):
    there = BatchEndpoint(vote, patience=10**9)
    with Server(there) as server:
        run = start(judge_at(server.url), batched=True)

        async def stopped(stop) -> None:
            there.after_making = stop.set

        run = work_on(run, meanwhile=stopped)
        assert (run.state, len(run.batches), run.judgments.count()) == ("queued", 1, 0)
        there.patience = 0
        run = work_on(run)
    assert run.state == Run.State.FINISHED
    assert (run.verdicts, len(there.batches), len(there.lines)) == (6, 1, 6)


def test_a_batch_whose_worker_died_before_it_noted_the_id_is_found_and_not_handed_in_again(start, judge_at, work_on):
    there = BatchEndpoint(vote)
    with Server(there) as server:
        run = start(judge_at(server.url), batched=True)

        async def stopped(stop) -> None:
            there.after_making = stop.set

        run = work_on(run, meanwhile=stopped)
        there.after_making = lambda: None
        kept = run.batches[0]
        Run.objects.filter(pk=run.pk).update(batches=[kept | {"id": ""}, kept | {"id": "", "name": "never sent"}])
        run = work_on(run)
    assert run.state == Run.State.FINISHED, run.state_reason
    assert (run.verdicts, len(there.batches)) == (6, 1)


@pytest.mark.parametrize("act", [error(404), answer("Answer1")], ids=["404", "a completion whatever is asked"])
@pytest.mark.one_database
def test_an_endpoint_without_batches_pauses_the_run_in_words(start, judge_at, work_on, act):
    with Server(lambda call: act) as server:
        run = work_on(start(judge_at(server.url), batched=True))
    assert run.state == Run.State.PAUSED
    assert "batch" in run.state_reason
    assert run.judgments.count() == 0


def test_a_batch_that_brings_nothing_pauses_the_run(start, judge_at, work_on):
    with Server(BatchEndpoint(lambda line: None)) as server:
        run = work_on(start(judge_at(server.url), batched=True))
    assert run.state == Run.State.PAUSED
    assert "brought nothing" in run.state_reason


def test_a_budget_bounds_what_is_handed_in(start, judge_at, work_on):
    there = BatchEndpoint(vote)
    with Server(there) as server:
        judge = judge_at(server.url, price_in=1_000.0, price_out=1_000.0)  # about a dollar a call, at first two
        run = work_on(start(judge, batched=True, budget=5.0))
    assert run.state == Run.State.PAUSED
    assert "budget is used up" in run.state_reason
    assert run.spent <= 5.0
    assert 0 < run.verdicts < 6


def test_responses_are_collected_by_batch_too(benchmark, judge_at, work_on):
    with Server(BatchEndpoint(lambda line: said("A bowl."))) as server:
        judge = judge_at(server.url)
        run = work_on(start_collecting(kind="responses", judge=judge, benchmark=benchmark, model="m", batched=True))
    assert run.state == Run.State.FINISHED, run.state_reason
    assert set(Response.objects.filter(model__name="m").values_list("text", flat=True)) == {"A bowl."}


# -- identical calls ------------------------------------------------------------------------------------------------


def test_identical_calls_are_answered_from_stored_ones_on_request_marked_and_free(start, judge_at, work_on):
    replies = {"01": answer("It names the bowl.\nAnswer1")}
    with Server(lambda call: replies["01"]) as server:
        judge = judge_at(server.url, price_in=1.0, price_out=1.0)
        first = work_on(start(judge))
        assert len(server.calls) == 6
        second = work_on(start(judge, new=True, reuse=True))
        assert len(server.calls) == 6
        third = work_on(start(judge, new=True))
        assert len(server.calls) == 12
    assert (second.verdicts, second.cached, second.calls, second.spent) == (6, 6, 0, 0)
    assert set(second.judgments.values_list("cached", "cost", "latency")) == {(True, 0.0, None)}
    told = ("item_id", "order", "repeat", "choice", "reported_model", "prompt_tokens", "call_key")
    assert set(second.judgments.values_list(*told)) == set(first.judgments.values_list(*told))
    assert {one.analysis for one in second.judgments.all()} == {"It names the bowl."}
    assert not third.judgments.filter(cached=True).exists()


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"temperature": 0.7}},
        {"settings": {"criteria": False}},
        {"settings": {"context": "none"}},
        {"settings": {"image_size": 64}},
        {"settings": {"detail": "low"}},
        {"settings": {"max_tokens": 100}},
        {"settings": {"prompt": "rephrased"}},
    ],
    ids=lambda change: next(iter(change["settings"])),
)
@pytest.mark.one_database
def test_a_call_that_differs_in_anything_is_made(start, judge_at, work_on, change):
    with Server(lambda call: answer("Answer1")) as server:
        judge = judge_at(server.url)
        work_on(start(judge, limit=1))
        run = work_on(start(judge, limit=1, new=True, reuse=True, **change))
    assert (len(server.calls), run.cached) == (4, 0)


def test_another_repeat_another_model_and_a_failure_are_never_answered_from_the_store(start, judge_at, work_on):
    with Server(lambda call: answer("Answer1" if call.number % 2 else "Hm.")) as server:
        judge = judge_at(server.url, concurrency=1)
        first = work_on(start(judge, limit=1, settings={"order": "fixed"}))
        assert first.judgments.get().status == "parse_failed"
        again = work_on(start(judge, limit=1, settings={"order": "fixed"}, new=True, reuse=True))
        assert (again.cached, again.judgments.get().status) == (0, "ok")
        more = work_on(start(judge, limit=1, settings={"order": "fixed", "repeats": 3}, reuse=True))
        assert (more.cached, more.calls) == (1, 2)
        Judge.objects.update(model="another")
        judge.refresh_from_db()
        other = work_on(start(judge, limit=1, settings={"order": "fixed"}, new=True, reuse=True))
    assert other.cached == 0


def test_a_stored_call_of_a_model_that_has_changed_since_is_not_mixed_in(start, judge_at, work_on):
    models = iter(["old"] * 2 + ["new"] * 20)
    with Server(lambda call: answer("Answer1", model=next(models))) as server:
        judge = judge_at(server.url, concurrency=1)
        work_on(start(judge, limit=1))
        Judgment.objects.filter(order="10").delete()
        run = start(judge, limit=1, new=True, reuse=True)
        run.reported_model, run.reported = "new", [{"model": "new", "fingerprint": "", "replies": 1}]
        run.save()
        run = work_on(run)
    assert run.state == Run.State.FINISHED
    assert set(run.judgments.values_list("reported_model", "cached")) == {("new", False)}


def test_collected_texts_are_answered_from_the_store_too(benchmark, judge_at, work_on):
    with Server(lambda call: answer(f"{call.number}")) as server:
        judge = judge_at(server.url)
        given = {"kind": "responses", "judge": judge, "benchmark": benchmark}
        work_on(start_collecting(**given, model="one"))
        run = work_on(start_collecting(**given, model="two", reuse=True))
    assert (len(server.calls), run.cached) == (3, 3)
    texts = {
        name: set(Response.objects.filter(model__name=name).values_list("text", flat=True)) for name in ("one", "two")
    }
    assert texts["one"] == texts["two"] == {"0", "1", "2"}


def test_by_api_a_run_is_cached_or_batched(benchmark, judge_at, client_of):
    judge_at("http://127.0.0.1:9/v1")
    given = {"judge": "kestrel", "benchmark": "everyday", "protocol": "pair", "reuse": True, "batched": True}
    made = client_of("curator").post("/api/v1/runs/", given, content_type="application/json").json()
    assert (made["reuse"], made["batched"], made["cached"]) == (True, True, 0)
