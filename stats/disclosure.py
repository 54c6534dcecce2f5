"""What a set of published sums tells about few samples (statistical disclosure control).

A number is a sum over samples: of each it takes what the sample gives, which hangs on something hidden. Whoever has
several such sums may add and subtract them; what is left may be about one sample alone. Pure: knows no table.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Cell = Mapping[str, str]  # what a number is made of, by sample: a hash of what the sample gives to it
LEAST = 10  # samples that any number, and any difference between two, is about
_PRIME = 2**31 - 1  # combinations are sought in the integers modulo this: exact, and products fit in 64 bits
_STEPS = 20_000  # after which the search gives up, and says that few are told

Rows = npt.NDArray[np.int64]


def differing(a: Cell, b: Cell) -> int:
    """For how many samples two cells owe something else to hidden inputs."""
    return sum(a.get(sample) != b.get(sample) for sample in {*a, *b})


def tells_of_few(cells: Sequence[Cell], least: int = LEAST) -> bool:
    """Whether a linear combination of these sums is about fewer than ``least`` samples, but about some.

    What stands in the same cells (an atom) is told together or not at all. The combinations are the space that the
    cells span over the atoms; sought is a vector of it whose atoms hold few samples.
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


def tellable(groups: Iterable[Mapping[str, Cell]]) -> dict[str, Cell]:
    """The numbers, by name, that may stand together; earlier groups come first, and a group stands or falls whole."""
    published: dict[str, Cell] = {}
    for group in groups:
        if not tells_of_few([*published.values(), *group.values()]):
            published |= group
    return published


class _Search:
    """For a combination about few samples, by deciding of one atom after the other whether it takes part."""

    def __init__(self, samples: Sequence[set[str]], least: int) -> None:
        self.samples, self.least, self.steps = samples, least, 0

    def finds(self, rows: Rows, taken: tuple[int, ...]) -> bool:
        """Among the combinations of ``rows``; the columns ``taken`` must take part."""
        self.steps += 1
        if self.steps > _STEPS:
            return True
        while len(rows):
            together = _proportional(rows)
            if any(not any(column in columns for columns in together) for column in taken):
                return False  # one that must take part no longer can
            certain = [columns for columns in together if set(columns) & set(taken)]
            told = self._samples(certain)
            many = [columns for columns in together if len(told | self._samples([columns])) >= self.least]
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
    """The combinations of independent rows that are zero in this column."""
    used = np.flatnonzero(rows[:, column])
    if not len(used):
        return rows
    pivot = rows[used[0]] * pow(int(rows[used[0], column]), -1, _PRIME) % _PRIME
    rest = np.delete(rows, used[0], axis=0)
    remaining: Rows = (rest - rest[:, column, None] * pivot) % _PRIME
    return remaining


def _proportional(rows: Rows) -> list[list[int]]:
    """The columns that are not zero, by what takes part together in every combination."""
    groups: dict[bytes, list[int]] = {}
    for column in np.flatnonzero(rows.any(axis=0)):
        values = rows[:, column]
        first = int(values[np.flatnonzero(values)[0]])
        groups.setdefault((values * pow(first, -1, _PRIME) % _PRIME).tobytes(), []).append(int(column))
    return list(groups.values())
