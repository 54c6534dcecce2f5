"""What a set of published sums reveals about few samples (statistical disclosure control).

A published number is a sum over samples, and what each sample contributes depends on something hidden. A reader who has
several such sums can add and subtract them, and the result may depend on one sample alone.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Cell = Mapping[str, str]  # what a number is made of, by sample: a hash of what the sample contributes to it
MIN_SAMPLES = 10  # fewest samples that a number, or a difference between two, may depend on
_PRIME = 2**31 - 1  # linear algebra is done modulo this prime: exact, and products fit in 64 bits
_STEPS = 20_000  # after which the search gives up and counts the sums as revealing

Rows = npt.NDArray[np.int64]


def changed_samples(a: Cell, b: Cell) -> int:
    """The number of samples that contribute different hidden inputs to the two cells."""
    return sum(a.get(sample) != b.get(sample) for sample in {*a, *b})


def reveals_few(cells: Sequence[Cell], least: int = MIN_SAMPLES) -> bool:
    """Whether a linear combination of these sums depends on at least one and fewer than ``least`` samples.

    Samples that contribute to the same cells form an atom: a combination depends on all of them or on none. The
    combinations are the row space of the matrix cells x atoms; the search is for a non-zero vector in it whose
    non-zero atoms hold fewer than ``least`` samples together.
    """
    within: dict[tuple[str, str], list[int]] = {}
    for number, cell in enumerate(cells):
        for entry in cell.items():
            within.setdefault(entry, []).append(number)
    atoms: dict[tuple[int, ...], set[str]] = {}
    for (sample, _), numbers in within.items():
        atoms.setdefault(tuple(numbers), set()).add(sample)
    rows = np.zeros((len(cells), len(atoms)), np.int64)
    for column, atom in enumerate(atoms):
        rows[list(atom), column] = 1
    return _Search(list(atoms.values()), least).finds(_basis(rows), ())


def publishable(groups: Iterable[Mapping[str, Cell]]) -> dict[str, Cell]:
    """The numbers, by name, that may be published together.

    Groups are taken in order; a group that would reveal something with those before it is left out as a whole.
    """
    published: dict[str, Cell] = {}
    for group in groups:
        if not reveals_few([*published.values(), *group.values()]):
            published |= group
    return published


class _Search:
    """Branch and bound for a combination that depends on few samples: each atom in turn takes part or does not."""

    def __init__(self, samples: Sequence[set[str]], least: int) -> None:
        self.samples, self.least, self.steps = samples, least, 0

    def finds(self, rows: Rows, taken: tuple[int, ...]) -> bool:
        """Whether the row space of ``rows`` has such a combination in which the columns ``taken`` are not zero."""
        self.steps += 1
        if self.steps > _STEPS:
            return True
        while len(rows):
            together = _proportional(rows)
            if any(not any(column in columns for columns in together) for column in taken):
                return False  # a required atom is zero in all that is left
            certain = [columns for columns in together if set(columns) & set(taken)]
            required = self._samples(certain)
            many = [columns for columns in together if len(required | self._samples([columns])) >= self.least]
            if not many:
                break
            rows = _without(rows, many[0][0])
        else:
            return False
        open_ = [columns for columns in together if columns not in certain]
        if not open_:
            return True
        column = max(open_, key=lambda columns: len(self._samples([columns])))[0]
        return self.finds(_without(rows, column), taken) or self.finds(rows, (*taken, column))

    def _samples(self, groups: Sequence[Sequence[int]]) -> set[str]:
        return {sample for columns in groups for column in columns for sample in self.samples[column]}


def _basis(rows: Rows) -> Rows:
    bases = [rows[:0]]
    while rows.any():
        row, column = (int(at[0]) for at in np.nonzero(rows))
        bases.append(rows[row : row + 1])
        rows = _without(rows, column)
    return np.concatenate(bases)


def _without(rows: Rows, column: int) -> Rows:
    """A basis of the combinations of these independent rows that are zero in this column."""
    used = np.flatnonzero(rows[:, column])
    if not len(used):
        return rows
    pivot = rows[used[0]] * pow(int(rows[used[0], column]), -1, _PRIME) % _PRIME
    rest = np.delete(rows, used[0], axis=0)
    remaining: Rows = (rest - rest[:, column, None] * pivot) % _PRIME
    return remaining


def _proportional(rows: Rows) -> list[list[int]]:
    """The non-zero columns, grouped by proportionality: those of a group are zero or non-zero together."""
    groups: dict[bytes, list[int]] = {}
    for column in np.flatnonzero(rows.any(axis=0)):
        values = rows[:, column]
        first = int(values[np.flatnonzero(values)[0]])
        groups.setdefault((values * pow(first, -1, _PRIME) % _PRIME).tobytes(), []).append(int(column))
    return list(groups.values())
