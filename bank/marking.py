"""What an answer says, by rules that need no key: which option, yes or no. All that compares answers asks here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bank.models import Response, Sample, SubmissionScore
from stats.answer_text import answer_in, option_in
from stats.answers import shown_as

PAGE = 500  # samples whose keys are read at once
CHOICE, YES_NO = SubmissionScore.Kind.CHOICE, SubmissionScore.Kind.YES_NO
YES = {"yes": 1, "no": 0}


@dataclass(frozen=True, slots=True)
class KeyedSample:
    """An answered sample, with what scoring needs."""

    pk: int
    split: str
    labels: tuple[str, ...]
    cluster: str
    path: str  # of its capability, from the top

    @classmethod
    def from_sample(cls, sample: Sample) -> "KeyedSample":
        return cls(sample.pk, sample.split, tuple(sample.options), sample.cluster, sample.capability_path)

    @property
    def level(self) -> str:
        return self.path.split(" / ", 1)[0]

    def kind_of(self, key: str) -> tuple[str, str] | None:
        """The kind of question and the key as answers state it; None if no rule can read the key."""
        key = key.strip()
        if self.labels:
            return (CHOICE, key) if key in self.labels else None
        return (YES_NO, key.lower()) if key.lower() in YES else None


class Answer(Protocol):
    """The part of a response that is compared."""

    @property
    def status(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def option_order(self) -> Any: ...


def chosen_option(response: Answer, labels: tuple[str, ...]) -> str:
    """The option that a response chose, as the sample names it; yes or no without options; empty for none."""
    if response.status != Response.Status.OK:
        return ""
    if not labels:
        return yes_or_no(response.text)
    return option_behind(option_in(response.text, labels), labels, response, shift=shift_of(response.variant))


def yes_or_no(text: str) -> str:
    """Which of them a text says; empty for neither."""
    answer = answer_in(text)
    return "" if answer is None else "yes" if answer else "no"


def option_behind(
    label: str | None, labels: Sequence[str], response: Answer, *, written: Sequence[str] = (), shift: int = 0
) -> str:
    """The sample's own label of the option that stood behind a label when this response was given; empty for a label
    that was not there. ``written``: as what the labels were written, where that is not as they are.
    """
    written = written or labels
    if label not in written:
        return ""
    return shown_as(labels[written.index(label)], labels, shift=shift, order=response.option_order or None)


def letter_of(option: str, response: Any, labels: tuple[str, ...]) -> str:
    """The label that stood before an option of the sample when this response was given (CircularEval moves them)."""
    shift = shift_of(response.variant)
    shown = (label for label in labels if shown_as(label, labels, shift=shift, order=response.option_order) == option)
    return next(shown, option)


def shift_of(variant: str) -> int:
    """By how many places the options stood rotated (CircularEval)."""
    return int(variant.rpartition("-")[2]) if variant else 0
