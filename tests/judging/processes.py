"""A run of its own in an installation, worked by processes that are killed, stopped and joined."""

import time

from tests.judging.server import Server

CONCURRENCY = 4
PREPARE = """
from judging.runs import actions
from judging.endpoints.judges import add_judge
from tests.judging.small import make_benchmark
benchmark = make_benchmark(samples={samples}, slug="{name}")
judge = add_judge(
    name="{name}", base_url="{url}", model="m", concurrency={concurrency}, any_host=True, **{columns}
)
answer = actions.start_run(judge=judge, benchmark=benchmark, protocol="pairwise-criteria", budget={budget}).pk
"""


class Case:
    """A queued run of its own in the installation."""

    def __init__(
        self, here, server: Server, *, name: str, samples: int, budget=None, concurrency=CONCURRENCY, **columns
    ) -> None:
        self.here, self.server, self.jobs = here, server, 2 * samples
        code = PREPARE.format(
            name=name, url=server.url, samples=samples, concurrency=concurrency, budget=budget, columns=columns
        )
        self.run = here.ask_helper(code)
        self.wait = ("judge", "--benchmark", name, "--judge", name, "--protocol", "pairwise-criteria", "--wait")

    @property
    def state(self) -> str:
        return self.here.sql(f"SELECT state FROM judging_run WHERE id = {self.run}")[0][0]

    @property
    def judgments(self) -> list[tuple]:
        columns = 'item_id, "order", repeat, status'
        return self.here.sql(f"SELECT {columns} FROM judging_judgment WHERE run_id = {self.run}")

    def wait_until(self, reached, *processes) -> None:
        """Wait for something that comes about while the processes live."""
        deadline = time.monotonic() + 300
        while not reached():
            for process in processes:
                assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def after_calls(self, number: int, process) -> None:
        """Wait until the endpoint has been called so often more."""
        wanted = len(self.server.calls) + number
        self.wait_until(lambda: len(self.server.calls) >= wanted, process)

    def kill(self, process) -> None:
        """Kill the process, and let its leases run out."""
        process.kill()
        process.communicate()
        self.end_hold(process)
        self.here.sql("UPDATE judging_judgeshare SET until = '2026-01-01 00:00:00'")  # who lives renews its own

    def end_hold(self, process) -> None:
        own = f"worker LIKE '%:{process.pid}'"
        self.here.sql(f"UPDATE judging_runhold SET until = '2026-01-01 00:00:00' WHERE {own}")

    def check(self, *, repeated: int) -> None:
        """Every judgment is there once, and no more calls than these were made again."""
        assert self.state == "finished"
        assert len(self.judgments) == len(set(self.judgments)) == self.jobs
        assert {row[3] for row in self.judgments} == {"ok"}
        again = len(self.server.calls) - self.jobs
        print(f"{self.jobs:,} judgments, {again:,} calls made again, at most {repeated:,.0f}")
        assert again <= repeated
