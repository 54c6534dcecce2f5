"""Limits that endpoints tell in headers: heeded before they refuse, whatever the headers hold."""

import math
import time
from datetime import UTC, datetime
from threading import Lock

import pytest

from judging.endpoints.limits import allowances
from judging.models import Run
from judging.work.pace import SLOWEST, Limiter
from tests.judging.server import Server, answer, error
from tests.judging.small import make_benchmark

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
# https://platform.openai.com/docs/guides/rate-limits (headers); Azure's: remaining alone, requests by ten seconds
# (https://clemenssiebler.com/posts/understanding-azure-openai-x-ratelimit-remaining-tokens-x-ratelimit-remaining-requests-headers/);
# https://docs.claude.com/en/api/rate-limits (response headers)
OPENAI = {
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-reset-tokens": "6m0s",
}
AZURE = {"x-ratelimit-remaining-requests": "19", "x-ratelimit-remaining-tokens": "19913"}
ANTHROPIC = {
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2026-11-20T12:00:03Z",
    "anthropic-ratelimit-tokens-remaining": "39000",
    "anthropic-ratelimit-tokens-reset": "2026-11-20T12:01:00+00:00",
}
HOSTILE = ("-1", "nan", "inf", "1e9", "9" * 400, "", "soon", "٣", "1 000", "0x10", "-1s", "1s1s", "9999-99-99", "1h 2m")


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        (OPENAI, [(False, 59, 1), (True, 149984, 360)]),
        (AZURE, [(False, 19, 10), (True, 19913, 10)]),
        (ANTHROPIC, [(False, 49, 3), (True, 39000, 60)]),
        (OPENAI | {"x-ratelimit-reset-requests": "12ms", "x-ratelimit-reset-tokens": "1h2m3.5s"},
         [(False, 59, 0.012), (True, 149984, 3723.5)]),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1.5"}, [(False, 5, 1.5)]),
        ({}, []),
    ],
    ids=["OpenAI", "Azure", "Anthropic", "durations", "seconds", "absent"],
)  # fmt: skip
def test_limits_are_read_in_the_shapes_of_those_who_tell_them(headers, told):
    assert [tuple(one) for one in allowances(headers, now=NOW)] == told


@pytest.mark.parametrize("value", HOSTILE)
def test_what_cannot_be_read_counts_as_not_told(value):
    assert not list(allowances({"x-ratelimit-remaining-requests": value, "x-ratelimit-reset-requests": "1s"}, now=NOW))
    found = allowances({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": value}, now=NOW)
    assert all(0 <= one.seconds < math.inf for one in found)
    assert not list(allowances({"anthropic-ratelimit-requests-remaining": "1",
                                "anthropic-ratelimit-requests-reset": value}, now=NOW))  # fmt: skip


def limiter(share=4):
    made = Limiter(4)
    made.set_share(share, of=4)
    made.enter(100.0)
    return made


def test_what_is_left_is_spread_over_the_time_until_there_is_more():
    one = limiter()
    assert one.wait(100.0) == 0
    one.told(100.0, [(20, 60.0)])
    assert one.wait(100.0) == 3
    assert one.wait(103.0) == 0
    one.told(101.0, [(6_000, 60.0)])
    assert one.wait(101.0) == 0
    one.told(101.0, [(0, 2.0)])
    assert one.wait(101.0) == 1  # from the start before on
    assert one.wait(103.1) == 0  # then it is over, whether somebody said so or not
    half = limiter(share=2)
    half.told(100.0, [(20, 60.0)])  # another worker takes the other half
    assert half.wait(100.0) == 6


def test_of_limits_by_the_day_the_end_alone_is_heeded_and_none_stops_a_judge():
    one = limiter()
    one.told(100.0, [(5_000, 43_200.0)])
    assert one.wait(100.0) == 0
    one.told(100.0, [(0, 1e12)])
    assert one.wait(100.0) == SLOWEST
    one.told(100.0, [])
    assert one.wait(100.0) == 0


class Bucket:
    """Takes ``most`` calls at once and ``rate`` a second then, and says so, if it is one that tells."""

    def __init__(self, most, rate, *, tells):
        self.most, self.rate, self.tells = most, rate, tells
        self.left, self.at, self.refused, self.lock = float(most), time.monotonic(), 0, Lock()

    def filled(self, passed):
        """Fill it by the seconds that have passed; returns in how many it will be full."""
        self.left, self.at = min(self.most, self.left + passed * self.rate), self.at + passed
        return (self.most - self.left) / self.rate

    def __call__(self, call):
        with self.lock:
            full = self.filled(time.monotonic() - self.at)
            taken = self.left >= 1
            self.left -= taken
            self.refused += not taken
            told = {"x_ratelimit_remaining_requests": f"{self.left:.0f}", "x_ratelimit_reset_requests": f"{full:.3f}s"}
        told = told if self.tells else {}
        return answer("Answer1", headers=told) if taken else error(429, **told)


class Window(Bucket):
    """Takes ``most`` calls in each ``most / rate`` seconds."""

    def filled(self, passed):
        if passed >= self.most / self.rate:
            self.left, self.at, passed = float(self.most), self.at + passed, 0.0
        return self.most / self.rate - passed


@pytest.mark.parametrize("kind", [Bucket, Window])
def test_an_endpoint_that_tells_its_limit_refuses_fewer_calls(kind, start, judge_at, work_on):
    many, refused, seconds = make_benchmark(samples=40, slug="many", pictures=False), {}, {}
    for tells in (False, True):
        limit = kind(20, 20, tells=tells)
        with Server(limit) as server:
            judge, began = judge_at(server.url, name=f"j{tells}", concurrency=8), time.monotonic()
            run = work_on(start(judge, on=many))
        seconds[tells], refused[tells] = time.monotonic() - began, limit.refused
        assert (run.state, run.verdicts, run.failures) == (Run.State.FINISHED, 80, 0)
    print(kind.__name__, refused, seconds)
    assert refused[True] <= refused[False] / 4
    assert seconds[True] < 2 * seconds[False] + 5  # it is not slower than the limit wants


def test_hostile_headers_stop_no_run(start, judge_at, work_on):
    def script(call):
        value = HOSTILE[call.number % len(HOSTILE)].encode().decode("latin-1")
        return answer("Answer1", headers={"x_ratelimit_remaining_requests": value, "x_ratelimit_reset_requests": value})

    many = make_benchmark(samples=len(HOSTILE), slug="many", pictures=False)
    with Server(script) as server:
        run = work_on(start(judge_at(server.url), on=many))
    assert (run.state, run.verdicts, len(server.calls)) == (Run.State.FINISHED, 2 * len(HOSTILE), 2 * len(HOSTILE))
