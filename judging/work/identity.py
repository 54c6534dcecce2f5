"""Which models an endpoint says have answered."""

from typing import Any

from judging.client import Answer
from judging.models import Run

KEPT = 20  # entries: some endpoints change the fingerprint all the time


class Reported:
    """The models whose verdicts a run holds. Another one is taken in only when a person has agreed to it."""

    def __init__(self, run: Run) -> None:
        self.entries: list[dict[str, Any]] = [dict(entry) for entry in run.reported]
        self._accepted = {entry["model"] for entry in self.entries}
        self._open = not run.reported_model  # none has answered yet, or somebody agreed to what answers now
        self.newest = run.reported_model

    def holds(self, model: str) -> bool:
        """Whether this model's verdicts may be taken in without counting one."""
        return self._open or model in self._accepted

    def accepts(self, answer: Answer) -> bool:
        """Count a reply; False when its model is not one that this run may hold."""
        if answer.model not in self._accepted:
            if not self._open:
                return False
            self._accepted.add(answer.model)
            self._open, self.newest = False, answer.model
        for entry in self.entries:
            if (entry["model"], entry["fingerprint"]) == (answer.model, answer.fingerprint):
                entry["replies"] += 1
                return True
        new = {"model": answer.model, "fingerprint": answer.fingerprint, "replies": 1}
        self.entries = [*self.entries[1 - KEPT :], new]
        return True
