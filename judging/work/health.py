"""What the ends of calls say about their endpoint: when a run should stop for now, and in which words."""

from dataclasses import dataclass

from judging.endpoints.answers import Answer, Outcome
from judging.models import Judge
from judging.work.pace import Limiter
from judging.work.writer import Patience

AWAY = (502, 503, 504, 529)  # statuses that are about the endpoint and not about a request


@dataclass(frozen=True, slots=True)
class Halt:
    """Why there is no use in going on now. With ``waits`` it may pass by itself; else somebody has to act."""

    words: str
    waits: bool = False


class Health:
    """``note`` returns a Halt when there is no use in going on. Times are those of the loop's clock.

    ``trying``: the run has waited and tries again, so that a few errors are enough.
    """

    def __init__(self, judge: Judge, patience: Patience, *, trying: bool) -> None:
        self._key = f"the environment variable {judge.key_env}" if judge.key_env else "its judge: it names no variable"
        self._patience = patience
        self._trying = trying
        self._refusals = 0
        self._only_limits = True
        self.failing_since: float | None = None  # nothing but errors
        self.succeeded_at: float | None = None  # the endpoint last had an answer, whatever it was
        self.words = ""  # about the last error
        self.rounds = 0  # without a connection; calls in flight together are one

    def note(self, answer: Answer, *, now: float, limiter: Limiter) -> Halt | None:
        match answer.outcome:
            case Outcome.AUTHENTICATION:
                return Halt(f"{answer.words}. Check the key in {self._key}, where the worker runs, then resume.")
            case Outcome.QUOTA:
                return Halt(f"{answer.words} ({answer.http_status}). Resume when it has some again.")
            case Outcome.SETUP:
                return Halt(f"{answer.words}. Check the judge's address and model name, then resume.")
            case Outcome.OK | Outcome.FILTERED | Outcome.PERMANENT:
                self.succeeded_at, self.failing_since, self.rounds = now, None, 0
                if answer.outcome == Outcome.PERMANENT:
                    return self._refused(answer)
                self._refusals = 0
                return None
        return self._failed(answer, now, limiter)

    def _refused(self, answer: Answer) -> Halt | None:
        self._refusals += 1
        if self._refusals < self._patience.refusals:
            return None
        return Halt(
            f"{answer.words}, {self._refusals} calls in a row. Open a failed one to read what the endpoint says, set "
            "it right, resume, then retry the failed ones."
        )

    def _failed(self, answer: Answer, now: float, limiter: Limiter) -> Halt | None:
        unreachable, limited = answer.outcome == Outcome.UNREACHABLE, answer.outcome == Outcome.RATE
        if not unreachable:
            self.rounds = 0
        elif now >= limiter.closed_until:
            self.rounds += 1
        if self.failing_since is None:
            self.failing_since, self._only_limits = now, True
        self._only_limits &= limited
        self.words = f"it cannot be reached: {answer.words}" if unreachable else answer.words
        patience = self._patience
        longest = patience.limited if self._only_limits else patience.outage
        if self.succeeded_at is None and (self._trying or unreachable):
            longest = min(longest, patience.try_for)
        return Halt(self.words, waits=True) if now - self.failing_since >= longest else None
