"""What a file has shown so far, in little memory: files of a million rows name a million questions."""

from collections.abc import Hashable, Iterable

import numpy as np

from bank.intake.formats.reading import short_hash

MERGED = 2**18  # larger arrays stay separate: merging them would take three times their memory
MOST_NEW = 2**16  # names that are kept apart before they are sorted in


class CompactMap:
    """A number for each name, asked one by one, with 16 bytes each.

    Names are stored as 64-bit hashes. Python's own hash is seeded anew in every process, so nobody can craft a
    collision; by chance, two of a million names collide in one of 30 million imports. The newest stand apart until they
    are sorted in; sorted arrays are merged as they double in size.
    """

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []

    def setdefault(self, name: Hashable, number: int) -> tuple[int, bool]:
        """The number of the name, which is this one if the name is new; and whether it is."""
        hashed = hash(name)
        known = self._new.get(hashed)
        if known is None:
            known = self._sorted_in(hashed)
        if known is not None:
            return known, False
        self._new[hashed] = number
        if len(self._new) == MOST_NEW:
            self._sort_in(*(np.fromiter(each, np.int64, MOST_NEW) for each in (self._new, self._new.values())))
            self._new = {}
        return number, True

    def _sort_in(self, hashes: np.ndarray, numbers: np.ndarray) -> None:
        while True:
            order = np.argsort(hashes, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
            if not self._runs or self._runs[-1][0].size > min(2 * hashes.size, MERGED):
                break
            last = self._runs.pop()
            hashes, numbers = np.concatenate([last[0], hashes]), np.concatenate([last[1], numbers])
        self._runs.append((hashes, numbers))

    def _sorted_in(self, hashed: int) -> int | None:
        for keys, numbers in self._runs:
            at = int(keys.searchsorted(hashed))
            if at < keys.size and keys[at] == hashed:
                return int(numbers[at])
        return None


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

    def places(
        self, sample: str, models: Iterable[str], texts: Iterable[str]
    ) -> tuple[list[dict[str, str]], list[bool]]:
        """Several answers to a sample as verdicts name them, and whether each stood in the file before."""
        placed = [(model, *self.place(sample, model, text)) for model, text in zip(models, texts, strict=True)]
        refs = [{"model": model, "variant": variant} for model, variant, _ in placed]
        return refs, [repeated for *_, repeated in placed]
