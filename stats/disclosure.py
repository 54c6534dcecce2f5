"""What a set of published sums reveals about few samples (statistical disclosure control).

A published number is a sum over samples, and what each sample contributes depends on something hidden. A reader who has
several such sums can add and subtract them, and the result may depend on one sample alone. And a sum that is as large
or as small as it can be tells what each of its samples contributes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stats.arrays import BoolArray

Cell = Mapping[str, str]  # what a number is made of, by sample: a hash of what the sample contributes to it
MIN_SAMPLES = 10  # fewest samples that a number, or a difference between two, may depend on
SETTLED = 1  # misses, or hits, up to which a share tells nearly every sample behind it
CODED = 0.1  # width of the interval that stands for such a share: from 0, or up to 1
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
    rows, samples = _atoms(cells)
    return _Search(samples, least).finds(_basis(rows), ())


def _atoms(cells: Sequence[Cell]) -> tuple[Rows, list[set[str]]]:
    """Which atoms are in which cells, as ones and zeros of shape (cells, atoms), and the samples of each atom."""
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
    return rows, list(atoms.values())


def publishable(groups: Iterable[Mapping[str, Cell]]) -> dict[str, Cell]:
    """The numbers, by name, that may be published together.

    Groups are taken in order; a group that would reveal something with those before it is left out as a whole.
    """
    published: dict[str, Cell] = {}
    for group in groups:
        if not reveals_few([*published.values(), *group.values()]):
            published |= group
    return published


# ---- between models ----


def differ_in_few(
    a: Sequence[Cell], b: Sequence[Cell], least: int = MIN_SAMPLES, binary: Collection[str] = ()
) -> BoolArray:
    """Which two of the cells ``a`` and ``b`` tell together of at least one and fewer than ``least`` samples, shape
    (a, b).

    The cells are of different models, and what a sample contributes is a hash of its key and of what was read in the
    answer, so that the difference of two sums is about the samples that were answered differently. Of the two answers
    to a ``binary`` question one is right, so that the sum of two sums is about those that were not answered the
    opposite way.
    """
    codes, samples = _codes([*a, *b])
    of_a, of_b = codes[: len(a)], codes[len(a) :]
    there_a, there_b = ((part != 0).astype(np.float32) for part in (of_a, of_b))
    has_two = np.isin(samples, list(binary))
    equal, equal_of_two = np.zeros((2, len(a), len(b)), np.float32)
    for code in range(1, int(codes.max(initial=0)) + 1):
        is_a, is_b = ((part == code).astype(np.float32) for part in (of_a, of_b))
        equal += is_a @ is_b.T
        equal_of_two += is_a[:, has_two] @ is_b[:, has_two].T
    either = there_a.sum(axis=1)[:, None] + there_b.sum(axis=1) - there_a @ there_b.T
    opposite = there_a[:, has_two] @ there_b[:, has_two].T - equal_of_two
    few: BoolArray = np.zeros((len(a), len(b)), bool)
    for about in (either - equal, np.where(opposite > 0, either - opposite, 0)):
        few |= (about > 0) & (about < least)
    return few


def _codes(cells: Sequence[Cell]) -> tuple[Rows, list[str]]:
    """By cell and sample 0 where the sample is not in the cell, -1 where no other cell has the same of it, else a
    number from 1 that equal contributions share; and the samples.
    """
    columns: dict[str, int] = {}
    times: dict[tuple[str, str], int] = {}
    for cell in cells:
        for entry in cell.items():
            times[entry] = times.get(entry, 0) + 1
            columns.setdefault(entry[0], len(columns))
    shared: dict[tuple[str, str], int] = {}
    used = dict.fromkeys(columns, 0)
    codes = np.zeros((len(cells), len(columns)), np.int64)
    for row, cell in enumerate(cells):
        for entry in cell.items():
            if times[entry] > 1 and entry not in shared:
                used[entry[0]] += 1
                shared[entry] = used[entry[0]]
            codes[row, columns[entry[0]]] = shared.get(entry, -1)
    return codes, list(columns)


# ---- sums that tell each of their samples ----


def settles(hits: int, n: int) -> bool:
    """Whether a share of ``hits`` among ``n`` samples tells nearly every one of them."""
    return n > 0 and min(hits, n - hits) <= SETTLED


def ends_of_coded(*, hits: int, n: int, fixed: int, rows: int) -> tuple[float, float]:
    """The interval that stands for a share of ``rows`` of which ``n`` depend on something hidden, ``hits`` of them
    right, and of the others everybody knows that ``fixed`` are right. It is the same for all settled shares of a side.
    """
    low, high = (1 - CODED, 1.0) if 2 * hits > n else (0.0, CODED)
    return (fixed + low * n) / rows, (fixed + high * n) / rows


def coded_and_left_out(cells: Mapping[str, Cell], hits: Mapping[str, int]) -> tuple[set[str], set[str]]:
    """Which of these sums must be given as an interval (they would settle their samples), and which must be left out.

    ``hits``: how many samples of each cell are right; what a sample contributes is 0 or 1, and the same in every cell
    in which it is the same. In order, a sum is left out that together with those before it settles some samples: 20 of
    25 in a level and 45 of 50 in all would tell that the other 25 are all right.
    """
    coded = {name for name, cell in cells.items() if settles(hits[name], len(cell))}
    if not _is_forced(cells, hits, coded):
        return coded, set()
    told = {name: cell for name, cell in cells.items() if name in coded}
    for name in [name for name in cells if name not in coded]:
        if not _is_forced(more := told | {name: cells[name]}, hits, coded):
            told = more
    return coded, cells.keys() - told.keys()


def _is_forced(cells: Mapping[str, Cell], hits: Mapping[str, int], coded: set[str]) -> bool:
    """Whether the sums leave an atom no choice but to be all right, or all wrong (of MIN_SAMPLES samples or more: all
    but one), or tell which of the two a coded cell is.

    By linear programming. All atoms at once are held as far from their ends: the solutions are convex.
    """
    from scipy.optimize import linprog  # not at the top: the processes of pages do without it

    rows, samples = _atoms(list(cells.values()))
    if not samples:
        return False
    size = np.array([len(atom) for atom in samples], float)
    sums = np.array([hits[name] for name in cells], float)
    n = rows @ size
    is_coded = np.array([name in coded for name in cells])
    near_all = 2 * sums > n
    low = np.where(is_coded, np.where(near_all, (1 - CODED) * n, 0), sums)
    high = np.where(is_coded, np.where(near_all, n, CODED * n), sums)
    large = (size >= MIN_SAMPLES) & ~rows[is_coded].any(axis=0)
    margin = np.where(large, SETTLED + 0.5, 0.01)

    def has_solution(keep: Rows | npt.NDArray[np.float64], low: Any, high: Any) -> bool:
        bounds = list(zip(keep, size - keep, strict=True))
        sides = {"A_ub": np.concatenate([rows, -rows]), "b_ub": np.concatenate([high, -low])}
        return bool(linprog(np.zeros(len(size)), **sides, bounds=bounds, method="highs").success)

    if not has_solution(np.minimum(margin, size / 2), low, high):
        return True
    for at in np.flatnonzero(is_coded):
        for misses in (0, SETTLED):
            exactly = n[at] - misses if near_all[at] else misses
            ends = [np.where(np.arange(len(n)) == at, exactly, side) for side in (low, high)]
            if not has_solution(np.zeros(len(size)), *ends):
                return True
    return False


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
