"""Other labels for the options of a question (ChEF, C.3), to see whether a model follows instructions that it has never
been trained on: natural, neutral and unnatural ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bank.text.words import words_of

GROUPS = ("natural", "neutral", "unnatural")
_LABELS = words_of(__file__, "verbalizers")
SHIFTED = "unnatural-1"  # the sample's own labels, each standing for the one before it
MOST_OPTIONS = 5


@dataclass(frozen=True, slots=True)
class Verbalizer:
    name: str

    def labels(self, own: Sequence[str]) -> list[str]:
        """The words in place of each of the sample's ``own`` labels. Raises ValueError for too many options."""
        if self.name == SHIFTED:
            return [*own[-1:], *own[:-1]]
        if len(own) > MOST_OPTIONS:
            raise ValueError(f"a question with {len(own)} options: other labels are known for {MOST_OPTIONS}")
        return list(_LABELS[self.name][: len(own)])

    def own(self, label: str, own: Sequence[str]) -> str:
        """The sample's own label behind one of these; "" for what is none."""
        labels = self.labels(own)
        return own[labels.index(label)] if label in labels else ""


def of_group(group: str) -> list[Verbalizer]:
    names = [*_LABELS, SHIFTED]
    return [Verbalizer(name) for name in names if name.startswith(group)]


def named(name: str) -> Verbalizer | None:
    """The verbalizer of a condition; None for a condition without one."""
    return Verbalizer(name) if name in (*_LABELS, SHIFTED) else None
