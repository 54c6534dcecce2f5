"""What a file has shown so far, in little memory: files of a million rows name a million questions."""

from array import array
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from bank.intake.formats.reading import Where, short_hash

LINES, RECORDS = 1, 2
MERGED = 2**18  # larger arrays stay separate: merging them would take three times their memory
MOST_NEW = 2**16  # names that are kept apart before they are sorted in


class NameIndex:
    """Maps names to numbers, with 16 bytes each.

    Names are stored as 64-bit hashes. Python's own hash is seeded anew in every process, so nobody can craft a
    collision; by chance, two of a million names collide in one of 30 million imports. Sorted arrays are merged as they
    double in size.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, names: Sequence[Hashable], numbers: Sequence[int]) -> None:
        """Store names that are new here, each once."""
        if names:
            self.add_hashed(_hashes(names), np.asarray(numbers, dtype=np.int64))

    def find(self, names: Sequence[Hashable]) -> list[int]:
        """The number of each name, 0 if unknown."""
        return self._find(_hashes(names)).tolist()

    def add_hashed(self, hashes: np.ndarray, numbers: np.ndarray) -> None:
        while True:
            order = np.argsort(hashes, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
            if not self._runs or self._runs[-1][0].size > min(2 * hashes.size, MERGED):
                break
            last = self._runs.pop()
            hashes, numbers = np.concatenate([last[0], hashes]), np.concatenate([last[1], numbers])
        self._runs.append((hashes, numbers))

    def number_of(self, hashed: int) -> int | None:
        """The number of one name, by its hash."""
        for keys, numbers in self._runs:
            at = int(keys.searchsorted(hashed))
            if at < keys.size and keys[at] == hashed:
                return int(numbers[at])
        return None

    def _find(self, hashes: np.ndarray) -> np.ndarray:
        result = np.zeros(hashes.size, dtype=np.int64)
        for keys, numbers in self._runs:
            at = np.searchsorted(keys, hashes)
            at[at == keys.size] = 0
            hit = keys[at] == hashes
            result[hit] = numbers[at[hit]]
        return result


class CompactMap:
    """A number for each name, asked one by one. The newest stand apart until they are sorted in."""

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._sorted = NameIndex()

    def setdefault(self, name: Hashable, number: int) -> tuple[int, bool]:
        """The number of the name, which is this one if the name is new; and whether it is."""
        hashed = hash(name)
        known = self._new.get(hashed)
        if known is None:
            known = self._sorted.number_of(hashed)
        if known is not None:
            return known, False
        self._new[hashed] = number
        if len(self._new) == MOST_NEW:
            names, numbers = (np.fromiter(each, np.int64, MOST_NEW) for each in (self._new, self._new.values()))
            self._sorted.add_hashed(names, numbers)
            self._new = {}
        return number, True


class SeenNames:
    """The names that a file has used, and where each occurred first."""

    def __init__(self) -> None:
        self._rows = NameIndex()  # counted from 1
        self._places = array("q")
        self._files: list[str] = []

    def claim(self, names: Sequence[Hashable], places: Sequence[Where]) -> dict[int, Where]:
        """Record names as used. Names that were used before are not recorded: returns their index and first place."""
        if not names:
            return {}
        hashes = _hashes(names)
        rows = self._rows._find(hashes)
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        fresh = (rows == 0) & (first[inverse] == np.arange(hashes.size))
        taken = {
            int(index): self._place(int(rows[index]) - 1) if rows[index] else places[first[inverse[index]]]
            for index in np.flatnonzero(~fresh)
        }
        new = np.flatnonzero(fresh)
        self._rows.add_hashed(hashes[new], np.arange(len(self._places) + 1, len(self._places) + 1 + new.size))
        self._places.extend(self._codes(places if new.size == len(places) else [places[i] for i in new.tolist()]))
        return taken

    def _codes(self, places: Sequence[Where]) -> Sequence[int]:
        """The file, kind of number and number of each place in 64 bits."""
        codes = []
        last, base = None, 0
        for file, line, record in places:
            if file != last:
                last, base = file, self._base(file)
            if line is not None:
                codes.append(base | LINES << 40 | line)
            else:
                codes.append(base if record is None else base | RECORDS << 40 | record)
        return codes

    def _base(self, file: str) -> int:
        if not self._files or file != self._files[-1]:
            self._files.append(file)
        return (len(self._files) - 1) << 42

    def _place(self, row: int) -> Where:
        code = self._places[row]
        file, kind, number = self._files[code >> 42], code >> 40 & 3, code & (1 << 40) - 1
        return Where(file, line=number if kind == LINES else None, record=number if kind == RECORDS else None)


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


def _hashes(names: Sequence[Hashable]) -> np.ndarray:
    return np.fromiter(map(hash, names), np.int64, len(names))
