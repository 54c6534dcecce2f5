"""Processes that are killed and stopped: what is stored stays, nothing twice; calls in flight alone are repeated."""

import random
import signal
import time

import pytest

from tests.judging.outside import installation
from tests.judging.server import Gate, Server, after, answer

CONCURRENCY = 4
PREPARE = """
from judging import actions
from tests.judging.small import make_benchmark
benchmark = make_benchmark(samples={samples}, slug="{name}")
judge = actions.add_judge(name="{name}", base_url="{url}", model="m", concurrency={concurrency}, any_host=True)
answer = actions.start_run(judge=judge, benchmark=benchmark, protocol="pairwise-criteria").pk
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with installation(tmp_path_factory.mktemp("kill")) as outside:
        yield outside


class Case:
    """A queued run of its own in the installation."""

    def __init__(self, here, server: Server, *, name: str, samples: int) -> None:
        self.here, self.server, self.jobs = here, server, 2 * samples
        code = PREPARE.format(name=name, url=server.url, samples=samples, concurrency=CONCURRENCY)
        self.run = here.ask(code)
        self.wait = ("judge", "--benchmark", name, "--judge", name, "--protocol", "pairwise-criteria", "--wait")

    @property
    def state(self) -> str:
        return self.here.sql(f"SELECT state FROM judging_run WHERE id = {self.run}")[0][0]

    @property
    def judgments(self) -> list[tuple]:
        columns = 'item_id, "order", repeat, status'
        return self.here.sql(f"SELECT {columns} FROM judging_judgment WHERE run_id = {self.run}")

    def wait_until(self, reached, process) -> None:
        """Wait for something that comes about while the process lives."""
        deadline = time.monotonic() + 300
        while not reached():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def after_calls(self, number: int, process) -> None:
        """Wait until the endpoint has been called so often more."""
        wanted = len(self.server.calls) + number
        self.wait_until(lambda: len(self.server.calls) >= wanted, process)

    def kill(self, process) -> None:
        """Kill the process, and let its lease run out."""
        process.kill()
        process.communicate()
        self.here.sql(f"UPDATE judging_run SET lease_until = '2026-01-01 00:00:00' WHERE id = {self.run}")

    def check(self, *, repeated: int) -> None:
        """Every judgment is there once, and no more calls than these were made again."""
        assert self.state == "finished"
        assert len(self.judgments) == len(set(self.judgments)) == self.jobs
        assert {row[3] for row in self.judgments} == {"ok"}
        again = len(self.server.calls) - self.jobs
        print(f"{self.jobs:,} judgments, {again:,} calls made again, at most {repeated:,.0f}")
        assert again <= repeated


def slow(call):
    return after(0.05, answer("Answer1"))


@pytest.mark.check("F6")
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


def test_of_two_workers_the_second_takes_a_run_over_and_makes_no_judgment_twice(here):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = Case(here, server, name="two-workers", samples=20)
        gate.limit = 20
        first = here.start("worker")
        case.wait_until(lambda: len(case.judgments) == 20 and server.in_flight == CONCURRENCY, first)
        second = here.start("worker")
        case.wait_until(lambda: here.sql("SELECT count(*) FROM judging_workerbeat") == [(2,)], second)
        assert (len(case.judgments), server.in_flight) == (20, CONCURRENCY)  # the second finds it taken
        case.kill(first)
        gate.limit = 1000
        case.wait_until(lambda: case.state == "finished", second)
        second.terminate()
        second.communicate(timeout=60)
        case.check(repeated=CONCURRENCY)
        here.sql("DELETE FROM judging_workerbeat")  # of the one that could not say goodbye


@pytest.mark.soak
@pytest.mark.check("F6")
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
