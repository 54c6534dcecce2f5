"""Runs whose endpoint fails: they wait, are tried again by themselves, and end with every verdict."""

import asyncio
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from accounts import loop
from accounts.models import Notice
from bank.errors import BadInput
from evalsite import worker
from judging.endpoints.judges import add_judge
from judging.endpoints.waiting import DAY, Errors, next_try
from judging.models import Judgment, Run, reason_key
from judging.runs import actions, plan
from judging.runs.notices import tell_of_runs
from judging.work import leases
from tests.judging.server import Server, after, answer, error, status
from tests.judging.small import QUICK, make_benchmark

SOON = "0.002, 0.005"  # minutes
MORNING = datetime(2026, 11, 26, 8, tzinfo=UTC)
VOTE = answer("Answer1")


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


@pytest.mark.parametrize(
    ("failing_for", "errors", "expected"),
    [
        (0, {}, 1),
        (1, {"tries": 1}, 5),
        (6, {"tries": 2}, 15),
        (21, {"tries": 3}, 30),
        (51, {"tries": 4}, 60),
        (700, {"tries": 14}, 60),
        (1_430, {"tries": 30}, 10),  # the last time after a day
        (1_440, {"tries": 31}, None),
        (0, {"retry_after": minutes(0.5)}, 1),
        (0, {"retry_after": minutes(90)}, 90),
        (0, {"retry_after": DAY}, 1_440),
        (0, {"retry_after": minutes(1_441)}, 1),  # nonsense
        (0, {"retry_after": minutes(120), "give_up_after": minutes(10)}, 10),  # who waits has said for how long
        (10, {"retry_after": minutes(120), "give_up_after": minutes(10)}, None),
        (0, {"waits": (minutes(3), minutes(7))}, 3),
        (9, {"tries": 5, "waits": (minutes(3), minutes(7))}, 7),
        (9, {"give_up_after": minutes(10)}, 1),
        (9.5, {"give_up_after": minutes(10)}, 0.5),
        (10, {"give_up_after": minutes(10)}, None),
    ],
)
def test_the_next_try_follows_from_the_errors_alone(failing_for, errors, expected):
    at = next_try(MORNING, Errors(since=MORNING - minutes(failing_for), **errors))
    assert at == (None if expected is None else MORNING + minutes(expected))


@pytest.fixture
def quick(monkeypatch):
    """Workers and commands with the patience of tests."""
    for place in ("judging.work.Patience", "judging.management.run_command.Patience"):
        monkeypatch.setattr(place, partial(replace, QUICK))


def served(judge_at, start, script, *, samples=60, away=None):
    """A worker that works a run until nothing waits, while its endpoint is away for a while in the middle."""
    first = Server(lambda call: after(0.01, VOTE))
    first.__enter__()
    run = start(judge_at(first.url, concurrency=8, waits=SOON), on=make_benchmark(samples=samples, slug="night"))
    calls = [first.calls]
    ended = threading.Event()

    def restart() -> None:
        while len(first.calls) < samples:
            time.sleep(0.01)
        first.__exit__()
        if away:
            with Server(away, port=first.port) as gateway:
                time.sleep(2)
            calls.append(gateway.calls)
        else:
            time.sleep(2)
        with Server(script, port=first.port) as second:
            ended.wait(60)
        calls.append(second.calls)

    beside = threading.Thread(target=restart)
    beside.start()
    try:
        loop.run(lambda: worker.serve(stop=asyncio.Event(), until_idle=True))
    finally:
        ended.set()
        beside.join()
    run.refresh_from_db()
    return run, sum(map(len, calls))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("away", [None, lambda call: status(503, "<html>starting</html>"), lambda call: error(429)])
def test_a_run_survives_its_endpoints_restart_and_ends_by_itself(quick, judge_at, start, monkeypatch, away):
    monkeypatch.setattr("judging.work.Patience", partial(replace, QUICK, limited=0.5))
    run, calls = served(judge_at, start, lambda call: VOTE, away=away)
    assert (run.state, run.verdicts, run.failures) == (Run.State.FINISHED, 120, 0)
    assert (run.tries, run.next_try_at, run.failing_since) == (0, None, None)
    # Refused connections are no calls; those that broke off may never have arrived.
    assert calls <= run.calls <= calls + 8


@pytest.mark.django_db
def test_a_waiting_run_is_told_by_page_api_and_bell_once_for_an_outage(judge_at, start, work_on, people, client_of):
    curator = client_of("curator")
    run = start(judge_at("http://127.0.0.1:9/v1"), by=people["curator"])
    run = work_on(run)
    assert (run.state, run.tries) == (Run.State.WAITING, 1)
    data = curator.get(f"/api/v1/runs/{run.pk}/").json()
    assert (data["state"], data["tries"]) == ("waiting", 1)
    assert data["next_try_at"]
    page = curator.get(reverse("judging:run-detail", args=[run.pk])).content.decode()
    assert "Waiting for its endpoint." in page
    assert "cannot be reached: connection refused" in page
    assert "Try now" in page
    tell_of_runs()
    Run.objects.update(next_try_at=timezone.now())
    run = work_on(run)
    assert (run.state, run.tries) == (Run.State.WAITING, 2)
    assert timedelta(minutes=4) < run.next_try_at - timezone.now() <= timedelta(minutes=5)
    tell_of_runs()
    told = Notice.objects.get(person=people["curator"])
    assert "waits: kestrel at 127.0.0.1:9: it cannot be reached" in told.text


@pytest.mark.django_db
def test_a_notice_ends_in_one_full_stop_and_says_so_where_nothing_came_of_a_run(judge_at, start, people):
    run = start(judge_at("http://127.0.0.1:9/v1"), by=people["curator"])
    actions.pause_run(run=run, reason="the key is refused. Check it, then resume.")
    tell_of_runs()
    Run.objects.update(state=Run.State.FINISHED, state_reason="", verdicts=0, failures=6, planned=6)
    tell_of_runs()
    told = list(Notice.objects.order_by("pk").values_list("text", flat=True))
    assert told[0].endswith("Check it, then resume.")
    assert told[1].endswith("and every call failed: none of 6 results.")
    item, unasked = run.items.first(), plan.NOT_ASKED["empty"]
    Judgment.objects.create(
        run=run, item=item, order="01", status="empty", reason=unasked, reason_hash=reason_key(unasked)
    )
    Run.objects.update(tryout=True, verdicts=4, failures=2, calls=9, told="")
    tell_of_runs()
    trial = Notice.objects.order_by("pk").last()
    assert trial.text.startswith("The trial of kestrel on ")
    assert trial.text.endswith("4 of 6 results; 1 failed; 1 not asked, since an answer is none.")
    assert trial.link == f"/judging/runs/{run.pk}/tryout/"
    Judgment.objects.filter(item=item).update(status="parse_failed", reason="", reason_hash="")
    Run.objects.update(verdicts=0, failures=6, calls=10, told="")
    tell_of_runs()
    assert Notice.objects.order_by("pk").last().text.endswith("and no reply could be read: none of 6 results.")


@pytest.mark.django_db
def test_below_staff_nobody_reads_when_a_run_is_tried_again_nor_that_one_on_hidden_text_waits(
    judge_at, start, work_on, client_of
):
    open_run = work_on(start(judge_at("http://127.0.0.1:9/v1"), settings={"criteria": False}))
    hidden = work_on(start(judge_at("http://127.0.0.1:9/v1")))
    assert hidden.held
    researcher = client_of("researcher")
    data = researcher.get(f"/api/v1/runs/{open_run.pk}/").json()
    assert (data["state"], data["state_reason"], data["next_try_at"], data["tries"]) == ("waiting", "", None, 0)
    data = researcher.get(f"/api/v1/runs/{hidden.pk}/").json()
    assert (data["state"], data["state_reason"], data["next_try_at"], data["tries"]) == ("running", "", None, 0)
    page = researcher.get(reverse("judging:run-detail", args=[hidden.pk])).content.decode()
    assert "Waiting" not in page


@pytest.mark.django_db
@pytest.mark.both_databases
def test_a_waiting_run_is_taken_when_it_is_due_or_somebody_tries_it_and_can_be_paused(judge_at, start, work_on):
    run = work_on(start(judge_at("http://127.0.0.1:9/v1")))
    assert not leases.waiting().exists()
    assert not leases.take(run)
    assert not worker.is_idle("w")
    actions.pause_run(run=run)
    actions.resume_run(run=run)
    run.refresh_from_db()
    assert (run.state, run.tries, run.failing_since) == (Run.State.QUEUED, 0, None)
    run = work_on(run)
    assert start(run.judge).state == Run.State.QUEUED  # the same again tries now
    run = work_on(Run.objects.get(pk=run.pk))
    actions.resume_run(run=run)
    run = work_on(run)
    actions.cancel_run(run=run)
    assert worker.is_idle("w")


@pytest.mark.django_db
@pytest.mark.parametrize("act", [error(429, retry_after="3600"), status(503, "", retry_after="3600")])
def test_a_long_retry_after_is_the_next_try(judge_at, start, work_on, act):
    with Server(lambda call: act) as server:
        run = work_on(start(judge_at(server.url, concurrency=1)))
        assert len(server.calls) <= 6
    assert (run.state, run.tries, run.judgments.count()) == (Run.State.WAITING, 1, 0)
    assert timedelta(minutes=58) < run.next_try_at - timezone.now() <= timedelta(minutes=60)


@pytest.mark.django_db
def test_wait_stays_prints_the_next_try_and_goes_on(quick, judge_at, benchmark):
    with Server(lambda call: VOTE) as server:
        pass
    judge_at(server.url, waits=SOON)

    def come_back() -> None:
        while "Try 1 at" not in said.getvalue() and not ended.is_set():
            time.sleep(0.01)
        with Server(lambda call: VOTE, port=server.port):
            ended.wait(30)

    ended, said = threading.Event(), StringIO()
    beside = threading.Thread(target=come_back)
    beside.start()
    try:
        call_command(
            "judge", benchmark="everyday", judge="kestrel", protocol="pairwise-criteria", wait=True, stdout=said
        )
    finally:
        ended.set()
        beside.join()
    assert "it cannot be reached: connection refused. Try 1 at " in said.getvalue()
    assert "is finished: 6 verdicts, 0 without a verdict" in said.getvalue()


@pytest.mark.django_db
def test_give_up_after_pauses_the_run_and_exits_with_1(quick, judge_at, benchmark):
    judge_at("http://127.0.0.1:9/v1", waits=SOON)
    run = {"benchmark": "everyday", "judge": "kestrel", "protocol": "pairwise-criteria", "wait": True}
    with pytest.raises(CommandError, match=r"Nothing but errors for 0\.05 minutes") as raised:
        call_command("judge", **run, give_up_after=0.05, stdout=StringIO())
    assert raised.value.returncode == 1
    assert Run.objects.get().state == Run.State.PAUSED


@pytest.mark.django_db
def test_waits_of_a_judge_are_minutes_in_order(judge_at, client_of):
    said = StringIO()
    call_command("add_judge", "night", base_url="http://127.0.0.1:9/v1", model="m", waits="2,10", stdout=said)
    judge = add_judge(
        name="night", base_url="http://127.0.0.1:9/v1", model="m", waits="3, 4.5", give_up_after=60, any_host=True
    )
    assert (judge.waits, judge.give_up_after) == ("3,4.5", 60)
    for wrong in ("soon", "0", "-1", "1,,2", "2000", "nan"):
        with pytest.raises(BadInput, match="one to ten numbers of minutes"):
            add_judge(name="x", base_url="http://127.0.0.1:9/v1", model="m", waits=wrong, any_host=True)


@pytest.mark.parametrize("act", [status(503), status(500), status(200, "<html>")], ids=["503", "500", "no completion"])
@pytest.mark.both_databases
def test_an_endpoint_that_fails_every_call_at_once_gets_few_until_its_run_waits(start, judge_at, work_on, act):
    with Server(lambda call: act) as server:
        judge = judge_at(server.url, concurrency=24)
        run = work_on(start(judge, on=make_benchmark(samples=100, slug="hundred")))
    assert run.state == Run.State.WAITING
    assert 24 <= len(server.calls) < 100


@pytest.mark.both_databases
def test_the_first_answer_after_failures_gives_an_endpoint_all_its_calls_at_once_again(start, judge_at, work_on):
    at_once = []

    def script(call):
        at_once.append(server.in_flight)
        return after(0.02, VOTE) if call.number >= 30 else status(503)

    with Server(script) as server:
        judge = judge_at(server.url, concurrency=16)
        run = work_on(start(judge, on=make_benchmark(samples=60, slug="sixty")))
        assert run.state == Run.State.FINISHED
        assert run.judgments.filter(status="ok").count() == 120
    assert max(at_once[31:]) > 8
