"""Criteria of many samples, for importers: they hold the texts of their own file and never receive stored ones."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from accounts.crypto import cipher, owner_of
from accounts.installation_key import keyed
from bank import exposure
from bank.criteria import OPENED_AS_KEYS
from bank.criteria.tables import Criterion, hash_of, opened
from bank.database import bulk


@opened()
def differing(from_file: dict[int, list[dict[str, Any]]]) -> set[int]:
    """Ids of samples whose stored criteria differ from these.

    For importers, which hold the text of their file; nothing stored leaves this function.
    """
    stored: dict[int, list[dict[str, Any]]] = defaultdict(list)
    names = ("key", "kind", "category", "weight", "shown_to", "text")
    for row in Criterion.objects.filter(sample_id__in=list(from_file)).order_by("sample_id", "position", "pk"):
        stored[row.sample_id].append({name: getattr(row, name) for name in names})
    return {sample for sample, rows in from_file.items() if not _the_same(stored[sample], rows)}


def _the_same(stored: list[dict[str, Any]], rows: list[dict[str, Any]]) -> bool:
    """Whether they are the same but for keys that were opened since."""
    if len(stored) != len(rows):
        return False
    opened_since = [row["kind"] in OPENED_AS_KEYS and row["shown_to"] == Criterion.ShownTo.PUBLIC for row in stored]
    shown_to = {"shown_to": Criterion.ShownTo.PUBLIC}
    return stored == [row | shown_to if is_open else row for row, is_open in zip(rows, opened_since, strict=True)]


INPUTS = {kind: exposure.inputs_of(kind) for kind in Criterion.Kind.values}
COLUMNS = ("key", "kind", "category", "weight", "shown_to", "text")
SPOOL = "import.criteria"  # the place of what waits in a file
CriterionValues = tuple[str, str, str, float | None, str, str]  # the values of COLUMNS


@dataclass(frozen=True, slots=True)
class EncryptedCriteria:
    """The criteria of many samples by column, encrypted so that they may be kept in a file for a while."""

    owners: list[int]  # the index of each criterion's sample
    positions: list[int]
    sealed: str  # the columns of COLUMNS and the hashes of the keys, as one token


# For each criterion the index of its sample and its position there; then the values of COLUMNS, column by column.
CriteriaColumns = tuple[list[int], list[int], list[list[Any]]]


def as_columns(hidden: Sequence[Sequence[CriterionValues]]) -> CriteriaColumns:
    """The criteria of these samples by column."""
    rows = [row for rows in hidden for row in rows]
    return (
        [number for number, rows in enumerate(hidden) for _ in rows],
        [position for rows in hidden for position in range(len(rows))],
        [list(column) for column in zip(*rows, strict=True)] or [[] for _ in COLUMNS],
    )


def open_keys(criteria: CriteriaColumns) -> None:
    """Make the keys among these criteria public."""
    columns = dict(zip(COLUMNS, criteria[2], strict=True))
    shown_to, kinds = columns["shown_to"], columns["kind"]
    shown_to[:] = [
        str(Criterion.ShownTo.PUBLIC) if kind in OPENED_AS_KEYS else shown
        for kind, shown in zip(kinds, shown_to, strict=True)
    ]


def closed_of(criteria: CriteriaColumns, hidden: Sequence[bool]) -> list[int]:
    """``Sample.closed`` of the samples of these criteria; ``hidden``: by sample, whether its split is."""
    owners, _, columns = criteria
    named = dict(zip(COLUMNS, columns, strict=True))
    closed = [0] * len(hidden)
    for owner, kind, shown_to in zip(owners, named["kind"], named["shown_to"], strict=True):
        if shown_to != Criterion.ShownTo.PUBLIC or hidden[owner]:
            closed[owner] |= INPUTS[kind]
    return closed


def encrypt(owners: list[int], positions: list[int], columns: list[list[Any]]) -> EncryptedCriteria:
    """The same, encrypted so that they may be kept in a file. The rows' own tokens need the ids of their samples."""
    keys = columns[COLUMNS.index("key")]
    hashed = {key: keyed("criterion", key) for key in set(keys)}
    return EncryptedCriteria(owners, positions, cipher().seal(json.dumps([columns, hashed]), SPOOL))


class RowWriter(Protocol):
    """Where rows by column go, see ``bank.intake.imports.writer``."""

    def put(self, model: type[Criterion], columns: Mapping[str, bulk.Column]) -> None: ...


def write(criteria: EncryptedCriteria, sample_ids: Sequence[int], writer: RowWriter) -> None:
    """Store criteria of samples that have none yet. ``sample_ids`` belong to the samples that ``criteria`` was made
    from.
    """
    owners = [sample_ids[number] for number in criteria.owners]
    if not owners:
        return
    columns, hashed = json.loads(cipher().open(criteria.sealed, SPOOL).text)
    named = dict(zip(COLUMNS, columns, strict=True))
    pairs = list(zip(owners, named["key"], strict=True))
    rows = [owner_of(pair) for pair in pairs]
    for name in ("key", "category", "weight", "text"):
        field: Any = Criterion._meta.get_field(name)
        named[name] = cipher().seal_rows([field.to_text(value) or "" for value in named[name]], field.place, rows)
    hashes = [hash_of(owner, hashed[key]) for owner, key in pairs]
    values = (owners, criteria.positions, bulk.Constant(1, len(owners)), hashes, *map(bulk.compact, named.values()))
    names = ("sample_id", "position", "version", "key_hash", *COLUMNS)
    writer.put(Criterion, dict(zip(names, values, strict=True)))
