"""Runs that collect what a model writes: its answers to a benchmark, or descriptions of pictures.

They are worked by the same engine as runs of judges. A task is a sample and a place: the rotation of its options, or
the position of its picture. What came of a task is one ``Collected`` row; the text goes where it belongs in the bank.
"""

from judging.collecting.base import Asked, Collector, Task
from judging.collecting.captions import Captions
from judging.collecting.responses import Responses

__all__ = ["COLLECTORS", "Asked", "Collector", "Task", "collector"]

COLLECTORS: dict[str, Collector] = {one.name: one for one in (Responses(), Captions())}


def collector(name: str) -> Collector:
    """The collector of a run's kind. Raises KeyError."""
    return COLLECTORS[name]
