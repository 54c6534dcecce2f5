"""What a file has shown so far, in little memory: files of a million rows name a million questions."""

from collections.abc import Hashable

import numpy as np

from bank.intake.formats.reading import short_hash

MOST_NEW = 200_000  # that are kept apart before they are sorted in


class CompactMap:
    """A number for each name, with 16 bytes each once they are sorted in.

    Names are kept as 64-bit hashes, seeded anew in every process: see ``imports.name_index``.
    """

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._names = np.empty(0, np.int64)
        self._numbers = np.empty(0, np.int64)

    def setdefault(self, name: Hashable, number: int) -> tuple[int, bool]:
        """The number of the name, which is this one if the name is new; and whether it is."""
        hashed = hash(name)
        if (known := self._new.get(hashed)) is not None:
            return known, False
        place = int(np.searchsorted(self._names, hashed))
        if place < self._names.size and self._names[place] == hashed:
            return int(self._numbers[place]), False
        self._new[hashed] = number
        if len(self._new) == MOST_NEW:
            self._sort_in()
        return number, True

    def _sort_in(self) -> None:
        """One column after the other, so that few copies of them are in memory at a time."""
        self._names = np.concatenate([self._names, np.fromiter(self._new, np.int64, len(self._new))])
        order = np.argsort(self._names, kind="stable")
        self._names = self._names[order]
        self._numbers = np.concatenate([self._numbers, np.fromiter(self._new.values(), np.int64, len(self._new))])
        self._numbers = self._numbers[order]
        self._new = {}


class SeenAnswers:
    """The answers that a file has shown. A model's second answer to a sample is a variant, named by a hash of it."""

    def __init__(self) -> None:
        self._first = CompactMap()  # the hash of each model's first answer to a sample
        self._variants: set[int] = set()

    def place(self, sample: str, model: str, text: str) -> tuple[str, bool]:
        """The variant of this answer, and whether the same stood in the file before."""
        hashed = hash(text)
        first, is_new = self._first.setdefault((sample, model), hashed)
        if first == hashed:
            return "", not is_new
        variant = short_hash(text)
        known = len(self._variants)
        self._variants.add(hash((sample, model, variant)))
        return variant, len(self._variants) == known
