"""Which models an endpoint says have answered."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from judging.endpoints.answers import Answer
from judging.models import Run

KEPT = 20  # entries: some endpoints change the fingerprint all the time

Replies = Counter[tuple[str, str]]  # how many, by model and fingerprint


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that a worker took in, and those that the run held when it began."""

    model: str
    known: frozenset[str]


class Reported:
    """The models whose verdicts a run holds. Another one is taken in only when a person has agreed to it."""

    def __init__(self, run: Run) -> None:
        self._known = frozenset(_models(run))
        self._accepted = set(self._known)
        self._open = not run.reported_model  # none has answered yet, or somebody agreed to what answers now
        self.newest = run.reported_model
        self.opened: Opened | None = None  # who answered first, until a commit says that it did so over all workers

    def holds(self, model: str) -> bool:
        """Whether this model's verdicts may be taken in."""
        return self._open or model in self._accepted

    def accepts(self, answer: Answer) -> bool:
        """Take a reply in; False when its model is not one that this run may hold."""
        if answer.model not in self._accepted:
            if not self._open:
                return False
            self._accepted.add(answer.model)
            self._open, self.newest, self.opened = False, answer.model, Opened(answer.model, self._known)
        return True


def may_open(run: Run, opened: Opened) -> bool:
    """Whether the run as it is now takes the model in: no other worker has taken another one in meanwhile."""
    now = _models(run)
    return opened.model in now or now <= opened.known


def counted(run: Run, replies: Replies) -> dict[str, Any]:
    """The run's columns with these replies added: which models answered, oldest first, and the newest one."""
    entries: list[dict[str, Any]] = [dict(entry) for entry in run.reported]
    for (model, fingerprint), number in replies.items():
        known = next((one for one in entries if (one["model"], one["fingerprint"]) == (model, fingerprint)), None)
        if known:
            known["replies"] += number
        else:
            entries = [*entries[1 - KEPT :], {"model": model, "fingerprint": fingerprint, "replies": number}]
    return {"reported": entries, "reported_model": entries[-1]["model"]}


def _models(run: Run) -> set[str]:
    return {entry["model"] for entry in run.reported}
