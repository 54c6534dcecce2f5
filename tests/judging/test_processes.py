"""Processes that are killed and stopped: what is stored stays, nothing twice; calls in flight alone are repeated."""

import random
import signal
import time

import pytest

from tests.judging.outside import installation
from tests.judging.processes import CONCURRENCY, Case
from tests.judging.server import Gate, Server, after, answer


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with installation(tmp_path_factory.mktemp("kill")) as outside:
        yield outside


def slow(call):
    return after(0.05, answer("Answer1"))


@pytest.mark.check("F6")
@pytest.mark.both_databases
def test_a_run_that_is_killed_and_started_again_repeats_only_the_calls_in_flight(here):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = Case(here, server, name="killed", samples=30)
        for stored in (20, 40):
            gate.limit = len(server.calls) + 20
            process = here.start(*case.wait)
            case.wait_until(lambda stored=stored: len(case.judgments) == stored, process)
            case.wait_until(lambda: server.in_flight == CONCURRENCY, process)
            case.kill(process)
        gate.limit = 1000
        out = here.manage(*case.wait)
        assert "60 verdicts, 0 without a verdict" in out
        case.check(repeated=2 * CONCURRENCY)


@pytest.mark.soak
@pytest.mark.check("F6")
@pytest.mark.both_databases
def test_fifty_kills_of_the_worker_leave_one_judgment_each(here):
    with Server(slow) as server:
        case = Case(here, server, name="killed-often", samples=2000)
        for _ in range(50):
            process = here.start("worker")
            case.after_calls(40, process)
            time.sleep(random.random() * 0.3)
            assert process.poll() is None, process.communicate()
            case.kill(process)
        here.manage("worker", "--until-idle")
        case.check(repeated=50 * CONCURRENCY)


def test_a_run_stopped_at_the_terminal_pauses_with_exit_status_1_and_the_same_command_goes_on(here):
    with Server(slow) as server:
        case = Case(here, server, name="stopped", samples=30)
        process = here.start(*case.wait)
        case.after_calls(10, process)
        process.send_signal(signal.SIGINT)
        _, problem = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "Stopped at the terminal" in problem
        assert (case.state, len(case.judgments)) == ("paused", len(server.calls))
        here.manage(*case.wait)
        case.check(repeated=0)


@pytest.mark.both_databases
def test_a_terminated_worker_hands_its_run_to_the_next(here):
    with Server(slow) as server:
        case = Case(here, server, name="terminated", samples=30)
        process = here.start("worker")
        case.after_calls(10, process)
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert case.state == "queued"
        here.manage("worker", "--until-idle")
        case.check(repeated=0)


def test_settings_on_the_command_line_are_those_of_the_protocol(here):
    with Server(slow) as server:
        case = Case(here, server, name="set", samples=3)
        out = here.manage(*case.wait, "--settings", '{"order": "fixed", "criteria": false}')
        assert "3 verdicts, 0 without a verdict" in out
        assert len(server.calls) == 3
        assert not any("Names the walnut" in call.text for call in server.calls)
        process = here.start(*case.wait, "--settings=[]")
        _, problem = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "Settings are a JSON object" in problem


RECIPE = """
import json
from bank.recipes import spec, store
from judging.endpoints.judges import add_judge
from tests.judging.small import make_benchmark
make_benchmark(samples=20, slug="asked", pictures=False).samples.update(options={"A": "a bowl", "B": "a lamp"})
add_judge(name="asked", base_url=URL, model="m", concurrency=4, any_host=True)
turns = [{"kind": "cot"}, {"kind": "direct"}]
value = {"name": "asked", "scenario": [{"benchmark": "asked"}], "turns": turns, "metric": "accuracy"}
answer = store.save(spec.parsed(value))[0].pk
"""


@pytest.mark.check("F6")
@pytest.mark.both_databases
def test_an_evaluation_that_is_killed_between_the_turns_of_its_questions_goes_on_where_it_stopped(here):
    gate = Gate(answer("A"))
    with Server(gate) as server:
        here.ask_helper(f"URL = {server.url!r}\n{RECIPE}")
        command = ("evaluate", "--recipe", "asked", "--endpoint", "asked", "--wait")
        gate.limit = 24
        process = here.start(*command)
        deadline = time.monotonic() + 120
        while len(rows_of(here)) < 24 or server.in_flight < CONCURRENCY:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.communicate()
        here.sql("UPDATE judging_runhold SET until = '2026-01-01 00:00:00'")
        here.sql("UPDATE judging_judgeshare SET until = '2026-01-01 00:00:00'")
        stored = rows_of(here)
        gate.limit = 1000
        here.manage(*command)
        rows = rows_of(here)
    assert set(stored) <= set(rows)
    assert len(rows) == len(set(rows)) == 40  # two turns of each question, once
    assert len(server.calls) <= 40 + CONCURRENCY
    answers = here.sql("SELECT count(*) FROM bank_response WHERE recipe_id IS NOT NULL AND text = 'A'")
    assert answers[0][0] == 40


def rows_of(here):
    return here.sql("SELECT sample_id, place, step FROM judging_collected WHERE run_id IN (SELECT id FROM judging_run)")
