"""What the ends of calls say about their endpoint: when a run should pause, and in which words."""

from judging.endpoints.answers import Answer, Outcome
from judging.models import Judge
from judging.work.pace import Limiter
from judging.work.writer import Patience


class Health:
    """Counts what happens in a row. ``note`` returns words when there is no use in going on."""

    def __init__(self, judge: Judge, patience: Patience) -> None:
        self._key = f"the environment variable {judge.key_env}" if judge.key_env else "its judge: it names no variable"
        self._patience = patience
        self._errors_allowed = max(patience.errors, 2 * judge.concurrency)
        self._errors = self._refusals = 0
        self._limited_since: float | None = None
        self._connected_at: float | None = None
        self.rounds = 0  # without a connection; calls in flight together are one

    def note(self, answer: Answer, *, now: float, limiter: Limiter) -> str | None:
        if answer.outcome != Outcome.UNREACHABLE:
            self._connected_at, self.rounds = now, 0
        match answer.outcome:
            case Outcome.OK | Outcome.FILTERED:
                self._errors = self._refusals = 0
                self._limited_since = None
            case Outcome.GARBAGE | Outcome.PERMANENT:
                return self._refused(answer)
            case Outcome.TRANSIENT | Outcome.TIMEOUT:
                return self._failed(answer)
            case Outcome.RATE:
                return self._limited(now)
            case Outcome.UNREACHABLE:
                return self._unreachable(answer, now, limiter)
            case Outcome.AUTHENTICATION:
                return f"{answer.words}. Check the key in {self._key}, where the worker runs, then resume."
            case Outcome.QUOTA:
                return f"{answer.words} ({answer.http_status}). Resume when it has some again."
            case Outcome.SETUP:
                return f"{answer.words}. Check the judge's address and model name, then resume."
        return None

    def _refused(self, answer: Answer) -> str | None:
        self._refusals += 1
        if self._refusals < self._patience.refusals:
            return None
        return (
            f"{answer.words}, {self._refusals} calls in a row. Open a failed one to read what the endpoint says, set "
            "it right, resume, then retry the failed ones."
        )

    def _failed(self, answer: Answer) -> str | None:
        self._errors += 1
        if self._errors < self._errors_allowed:
            return None
        return f"{answer.words}, {self._errors} calls in a row. Resume when it works again."

    def _limited(self, now: float) -> str | None:
        if self._limited_since is None:
            self._limited_since = now
        if now - self._limited_since <= self._patience.limited:
            return None
        return f"nothing but rate limits for {self._patience.limited / 60:.0f} minutes. Resume to try again."

    def _unreachable(self, answer: Answer, now: float, limiter: Limiter) -> str | None:
        if now >= limiter.closed_until:
            self.rounds += 1
        never = self._connected_at is None and self.rounds >= self._patience.first_contact
        gone = self._connected_at is not None and now - self._connected_at > self._patience.out_of_reach
        return f"it cannot be reached: {answer.words}. Check that it runs, then resume." if never or gone else None
