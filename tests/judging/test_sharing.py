"""Several worker processes on one run: each judgment once, the judge's limits kept by all of them together."""

import time
from collections import Counter

import pytest

from tests.judging.outside import installation
from tests.judging.processes import CONCURRENCY, Case
from tests.judging.server import Gate, Server, after, answer, status

PRICES = {"price_in": 2.0, "price_out": 10.0}
PRICE = 0.0021  # of a call that the test server answers
ACT = (
    "from judging.models import Run\nfrom judging.runs import actions\n"
    "actions.{}(run=Run.objects.get(pk={}))\nanswer = 0"
)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with installation(tmp_path_factory.mktemp("sharing")) as outside:
        yield outside


class Two(Case):
    """A run that two workers are at, each with a key of its own, by which the endpoint tells them apart."""

    def __init__(self, here, server: Server, gate: Gate, *, name: str, ahead: float = 0, **rest) -> None:
        super().__init__(here, server, name=name, key_env="JUDGE_KEY", **rest)
        self.gate = gate
        clocks = {"one": 0, "two": ahead}
        self.workers = {key: here.start("worker", JUDGE_KEY=key, ahead=clock) for key, clock in clocks.items()}

    def until(self, reached) -> None:
        self.wait_until(reached, *self.alive)

    @property
    def alive(self) -> list:
        return [process for process in self.workers.values() if process.returncode is None]

    @property
    def by_worker(self) -> Counter:
        return Counter(call.headers["authorization"].removeprefix("Bearer ") for call in self.server.calls)

    def until_both_are_at_it(self) -> None:
        """Let calls be answered one by one until each worker has some in flight, and the judge takes no more."""
        while len(self.by_worker) < 2:
            self.gate.limit += 1
            self.until(lambda: len(self.server.calls) >= min(self.gate.limit, self.jobs))
            time.sleep(0.1)
        self.until(lambda: self.server.in_flight == CONCURRENCY)

    def act(self, action: str) -> None:
        self.here.ask_helper(ACT.format(action, self.run))

    def until_left(self) -> None:
        self.until(lambda: self.here.sql("SELECT count(*) FROM judging_runhold") == [(0,)])

    def end(self) -> None:
        for process in self.alive:
            process.terminate()
        for process in self.workers.values():
            process.communicate(timeout=60)
        self.here.sql("DELETE FROM judging_workerbeat")  # of those that could not say goodbye


@pytest.fixture
def two(here):
    """Make a run that two workers are at."""
    made: list[Two] = []

    def make(server: Server, gate: Gate, **rest) -> Two:
        made.append(Two(here, server, gate, **rest))
        return made[-1]

    yield make
    for case in made:
        case.end()


@pytest.mark.check("F10")
@pytest.mark.both_databases
def test_two_workers_share_a_run_and_no_call_is_made_twice(two):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = two(server, gate, name="shared", samples=60)
        case.until_both_are_at_it()
        gate.limit = 1000
        case.until(lambda: case.state == "finished")
        case.until_left()
        case.check(repeated=0)
        assert min(case.by_worker.values()) >= 1
        assert server.most_in_flight == CONCURRENCY  # of both together
        assert case.here.sql(f"SELECT verdicts, failures, calls FROM judging_run WHERE id = {case.run}") == [
            (120, 0, 120)
        ]
        assert case.here.sql("SELECT count(*) FROM judging_runclaim") == [(0,)]


@pytest.mark.check("F6")
@pytest.mark.both_databases
def test_when_one_of_two_is_killed_the_other_finishes_and_repeats_its_calls_in_flight_alone(two):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = two(server, gate, name="one-killed", samples=60)
        case.until_both_are_at_it()
        held = case.here.sql("SELECT worker, in_flight FROM judging_runhold")
        dead = next(process for process in case.workers.values() if f":{process.pid}" in held[0][0])
        case.kill(dead)
        gate.limit = 1000
        case.until(lambda: case.state == "finished")
        case.check(repeated=CONCURRENCY - 1)


@pytest.mark.both_databases
def test_a_pause_and_a_cancel_reach_both_workers_and_nothing_is_lost_or_doubled(two):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = two(server, gate, name="stopped-both", samples=60)
        case.until_both_are_at_it()
        case.act("pause_run")
        gate.limit = len(server.calls)  # those in flight are let end
        case.until_left()
        assert case.state == "paused"
        assert len(case.judgments) == len(server.calls) < case.jobs
        case.act("resume_run")
        case.until(lambda: server.in_flight == CONCURRENCY)
        case.act("cancel_run")
        gate.limit = len(server.calls)
        case.until_left()
        assert case.state == "cancelled"
        assert len(case.judgments) == len(set(case.judgments)) == len(server.calls) < case.jobs


def test_a_worker_that_is_stopped_leaves_the_run_to_the_other(two):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = two(server, gate, name="one-stopped", samples=60)
        case.until_both_are_at_it()
        case.workers["one"].terminate()
        gate.limit = 1000
        case.workers["one"].communicate(timeout=60)
        case.until(lambda: case.state == "finished")
        case.check(repeated=0)


def test_two_workers_overspend_a_budget_by_no_more_than_their_calls_in_flight(two):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case = two(server, gate, name="budget", samples=60, budget=80 * PRICE, **PRICES)
        case.until_both_are_at_it()
        gate.limit = 1000
        case.until(lambda: case.state == "paused")
        case.until_left()
        ((spent, reason),) = case.here.sql(f"SELECT spent, state_reason FROM judging_run WHERE id = {case.run}")
        assert "The budget is used up" in reason
        assert len(case.judgments) == len(server.calls)
        assert spent == pytest.approx(PRICE * len(server.calls))
        assert 80 - CONCURRENCY <= len(server.calls) <= 80 + CONCURRENCY


@pytest.mark.parametrize("ahead", [45, pytest.param(-45, marks=pytest.mark.soak)])
def test_workers_whose_clocks_differ_make_no_call_twice_and_no_more_at_once_than_the_judge_takes(two, ahead):
    gate = Gate(after(0.15, answer("Answer1")))
    with Server(gate) as server:
        case = two(server, gate, name=f"clocks{ahead}", samples=60, ahead=ahead)
        gate.limit = 1000
        case.until(lambda: case.state == "finished" or len(server.calls) > 2 * case.jobs)
        case.until_left()
        case.check(repeated=0)
        assert min(case.by_worker.values()) >= 10
        assert server.most_in_flight == CONCURRENCY


@pytest.mark.check("K7")
@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.soak)])
def test_what_is_spent_over_many_kills_is_what_the_endpoint_counted(here, kills):
    gate = Gate(answer("Answer1"))
    with Server(gate) as server:
        case, stored = Case(here, server, name=f"lost {kills}", samples=30 * kills, **PRICES), 0
        for _ in range(kills):
            gate.limit = len(server.calls) + 25
            process = here.start("worker")
            case.wait_until(lambda: len(server.calls) >= gate.limit + CONCURRENCY, process)
            stored += 25
            case.wait_until(lambda stored=stored: len(case.judgments) == stored, process)
            case.kill(process)
        gate.limit = 1000
        here.manage("worker", "--until-idle")
        case.check(repeated=kills * CONCURRENCY)
        ((calls, lost, spent),) = here.sql(f"SELECT calls, lost, spent FROM judging_run WHERE id = {case.run}")
        print(f"{len(server.calls)} calls at the endpoint, {calls} counted, {lost} of them lost, ${spent:.4f} spent")
        assert spent == pytest.approx(PRICE * len(server.calls), rel=0.02)
        assert calls == pytest.approx(len(server.calls), rel=0.02)
        assert calls - lost == case.jobs


@pytest.mark.check("K7")
def test_a_worker_without_the_pictures_beside_a_good_one_burns_none_of_the_run(here, tmp_path):
    with Server(lambda call: after(0.02, answer("Answer1"))) as server:
        case = Case(here, server, name="pictures", samples=60)
        astray = here.start("worker", EVALSITE_DATA=str(tmp_path))
        case.wait_until(lambda: here.sql("SELECT 1 FROM judging_workerbeat WHERE lacks_pictures") != [], astray)
        assert here.manage("worker", "--until-idle")
        case.check(repeated=0)
        astray.terminate()
        _, said = astray.communicate(timeout=60)
        assert "is not the one that this site's pictures are in" in said
        assert here.sql("SELECT count(*) FROM judging_workerbeat WHERE lacks_pictures") == [(0,)]


def test_a_command_whose_reader_has_gone_ends_quietly_and_its_run_is_finished(here):
    gate = Gate(answer("Answer1"))  # closed, else all might be said before the reader goes
    with Server(gate) as server:
        case = Case(here, server, name="unread", samples=10)
        process = here.start(*case.wait, PYTHONUNBUFFERED="1")
        assert process.stdout.readline()  # as head -1
        process.stdout.close()
        gate.limit = 1000
        said = process.stderr.read()
        assert process.wait(60) == 141
        assert "Traceback" not in said
        assert "BrokenPipe" not in said
        case.check(repeated=0)


@pytest.mark.soak
@pytest.mark.both_databases
def test_three_workers_of_an_endpoint_that_fails_every_call_make_few(here):
    """It was 4,079 calls in 61 s: 68 a second, until the run waited."""
    with Server(lambda call: status(503)) as server:
        workers = [here.start("worker") for _ in "123"]
        case = Case(here, server, name="away", samples=1_500, concurrency=24)
        case.wait_until(lambda: case.state == "waiting", *workers)
        print(f"{len(server.calls)} calls until the run waits")
        assert 24 <= len(server.calls) < 250
        for process in workers:
            process.terminate()
        for process in workers:
            process.communicate(timeout=60)
