"""All promises of judge runs at once: four workers, kills, restarts of the database, a wrong clock, no pictures."""

import time
from collections import Counter
from contextlib import closing

import pytest

from tests.judging.cluster import cluster
from tests.judging.outside import Installation
from tests.judging.processes import CONCURRENCY, Case
from tests.judging.server import Server, after, answer
from tests.judging.test_sharing import ACT, PRICE, PRICES

SAMPLES, AT_ONCE = 1500, 12
KILLS, RESTARTS, PAUSE = 20, {7: "fast", 14: "immediate"}, 10
MEASURED = (3, 17)  # kills after which no lease is shortened
SLOW, QUICK = 0.8, 0.02  # seconds that a call takes: during the kills, so that each hits some, and after them
WORKING = ("one", "two", "ahead")
HELD = "FROM judging_runhold WHERE until > now()"
# Rows that a dead worker had claimed and that nobody is at: unfinished, in no other worker's claim.
LEFT = """
SELECT count(*) FROM judging_runitem i WHERE i.run_id = {run} AND ({ranges})
AND (SELECT count(*) FROM judging_judgment j WHERE j.run_id = i.run_id AND j.item_id = i.item_id) < 2
AND NOT EXISTS (SELECT 1 FROM judging_runclaim c
                WHERE c.run_id = i.run_id AND c.hold_id <> {hold} AND i.id BETWEEN c.first AND c.last)
"""


@pytest.fixture
def database():
    with cluster() as made:
        yield made


@pytest.fixture
def here(database, tmp_path):
    made = Installation(tmp_path / "data", database.url)
    made.environment["PGOPTIONS"] = ""  # what is committed is on the disk: the database is to crash
    made.manage("migrate", "-v0")
    yield made
    made.close()


class Four(Case):
    """A run that four workers are at, each with a key of its own, by which the endpoint tells them apart.

    Whoever ends is started again, by a kill or by itself: so do systemd, compose and ``manage.py serve``.
    """

    def __init__(self, here, server: Server, *, without_pictures, **rest) -> None:
        super().__init__(here, server, key_env="JUDGE_KEY", **rest)
        self.how = {"one": {}, "two": {}, "ahead": {"ahead": 45}, "astray": {"EVALSITE_DATA": str(without_pictures)}}
        self.workers = {key: self.start(key) for key in self.how}
        self.in_flight_at_kills, self.ended = 0, Counter()

    def start(self, key: str):
        return self.here.start("worker", JUDGE_KEY=key, **self.how[key])

    def close(self) -> None:
        for process in self.workers.values():
            process.kill()
            process.communicate()

    def until(self, reached) -> None:
        def look():
            for key, process in self.workers.items():
                if process.poll() is not None:
                    self.ended[process.communicate()[1][-200:]] += 1
                    self.workers[key] = self.start(key)
            time.sleep(0.05)
            return reached()

        self.wait_until(look)

    def until_at_it(self, *keys: str) -> None:
        """Until these workers have claims, and calls in flight."""
        claims = "EXISTS (SELECT 1 FROM judging_runclaim c WHERE c.hold_id = judging_runhold.id)"

        def working():
            held = self.here.sql(f"SELECT worker {HELD} AND in_flight > 0 AND {claims}")
            return {self.workers[key].pid for key in keys} <= {int(name.rpartition(":")[2]) for (name,) in held}

        self.until(working)

    def replace(self, key: str, *, hasten: bool) -> str:
        """Kill a worker and start it again; what counts the rows that it leaves.

        ``hasten`` ends its lease of the run. Those of all shares of the judge's calls, as ``kill`` does, would let
        those that live make too many at once until each has renewed its own.
        """
        process = self.workers[key]
        ((hold,),) = self.here.sql(f"SELECT id {HELD} AND worker LIKE '%:{process.pid}'")
        process.kill()
        process.communicate()
        ((in_flight,),) = self.here.sql(f"SELECT in_flight FROM judging_runhold WHERE id = {hold}")
        claims = self.here.sql(f"SELECT first, last FROM judging_runclaim WHERE hold_id = {hold}")
        if hasten:
            self.end_hold(process)
        self.in_flight_at_kills += in_flight
        self.workers[key] = self.start(key)
        ranges = " OR ".join(f"i.id BETWEEN {first} AND {last}" for first, last in claims) or "FALSE"
        return LEFT.format(run=self.run, hold=hold, ranges=ranges)

    def seconds_until(self, begun: float, reached) -> float:
        self.until(reached)
        return time.monotonic() - begun


@pytest.mark.soak
@pytest.mark.check("F6", "F7", "F10", "F15", "K7")
def test_twenty_kills_and_two_restarts_of_the_database_leave_one_verdict_each_within_all_limits(
    here, database, tmp_path
):
    began, taken_up, takes = time.monotonic(), [], SLOW
    how = {"name": "everything", "samples": SAMPLES, "concurrency": AT_ONCE, "without_pictures": tmp_path / "elsewhere"}
    slow = Server(lambda call: after(takes, answer("Answer1")))
    with slow as server, closing(Four(here, server, **how, **PRICES)) as case:
        for kill in range(KILLS):
            if kill in (PAUSE, *RESTARTS, *MEASURED):
                case.until_at_it(*WORKING)
            if kill in RESTARTS:
                database.restart(RESTARTS[kill])
            at = time.monotonic()
            if kill == PAUSE:
                here.ask_helper(ACT.format("pause_run", case.run))
                stopped = case.seconds_until(at, lambda: here.sql(f"SELECT count(*) {HELD}") == [(0,)])
                assert (case.state, server.in_flight) == ("paused", 0)
                here.ask_helper(ACT.format("resume_run", case.run))
            case.until_at_it(victim := WORKING[kill % 3])
            at = time.monotonic()
            left = case.replace(victim, hasten=kill not in MEASURED)
            if kill in MEASURED:
                assert here.sql(left) != [(0,)]
                taken_up.append(case.seconds_until(at, lambda left=left: here.sql(left) == [(0,)]))
        assert len(case.judgments) < case.jobs  # all of that happened while there was something to do
        takes = QUICK
        case.until(lambda: case.state == "finished")
        case.until(lambda: here.sql("SELECT count(*) FROM judging_runhold") == [(0,)])
        for process in case.workers.values():
            process.terminate()
        said = {key: process.communicate(timeout=60)[1] for key, process in case.workers.items()}
    counted = f"SELECT verdicts, failures, lost, spent FROM judging_run WHERE id = {case.run}"
    ((verdicts, failures, lost, spent),) = here.sql(counted)
    made = PRICE * len(server.calls)
    print(f"{case.in_flight_at_kills} calls in flight at kills, {lost} lost, at most {server.most_in_flight} at once")
    print(f"${spent:.4f} spent, ${made:.4f} at the endpoint; ended by themselves: {dict(case.ended)}")
    print(f"taken up after {taken_up} s, stopped after {stopped:.1f} s, {time.monotonic() - began:.0f} s in all")
    case.check(repeated=(KILLS + len(RESTARTS)) * AT_ONCE)
    assert (verdicts, failures) == (case.jobs, 0)
    assert here.sql("SELECT count(*) FROM judging_runclaim") == [(0,)]
    assert server.most_in_flight <= AT_ONCE
    assert abs(spent - made) <= 0.02 * made + PRICE * case.in_flight_at_kills
    assert max(taken_up) <= 45
    assert stopped <= 3
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {key}" for key in WORKING}
    assert "is not the one that this site's pictures are in" in said["astray"]


@pytest.mark.soak
@pytest.mark.check("F15")
@pytest.mark.parametrize("samples", [0, 200])
def test_a_worker_ends_at_one_signal_though_its_database_never_comes_back(samples, here, database):
    with Server(lambda call: after(0.2, answer("Answer1"))) as server:
        case = Case(here, server, name="left", samples=samples) if samples else None
        worker = here.start("worker")
        if case:
            case.after_calls(20, worker)
        else:
            while here.sql("SELECT count(*) FROM judging_workerbeat") == [(0,)]:
                time.sleep(0.05)
        database.call("pg_ctl", "stop", "-m", "immediate")
        time.sleep(20)  # by then it tries only now and then
        began = time.monotonic()
        worker.terminate()
        worker.communicate(timeout=60)
        print(f"ended after {time.monotonic() - began:.1f} s")
        assert worker.returncode == 0
        database.start()
        if case:
            ((stored,),) = here.sql(f"SELECT count(*) FROM judging_judgment WHERE run_id = {case.run}")
            assert (case.state, stored < case.jobs) == ("running", True)
            here.manage("worker", "--until-idle")
            case.check(repeated=2 * CONCURRENCY)
