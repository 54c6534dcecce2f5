"""Criteria of many samples, as importers write them: they hold the texts of their file, and get no stored one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from accounts.crypto import cipher
from accounts.installation_key import keyed
from bank.criteria.tables import Criterion, hash_of, opened
from bank.database import bulk


@opened()
def differing(wanted: dict[int, list[dict[str, Any]]]) -> set[int]:
    """Ids of samples whose stored criteria are not those given.

    For importers, which hold the text of their file; nothing stored leaves this function.
    """
    stored: dict[int, list[dict[str, Any]]] = defaultdict(list)
    names = ("key", "kind", "category", "weight", "shown_to", "text")
    for row in Criterion.objects.filter(sample_id__in=list(wanted)).order_by("sample_id", "position", "pk"):
        stored[row.sample_id].append({name: getattr(row, name) for name in names})
    return {sample for sample, rows in wanted.items() if stored[sample] != rows}


PLAIN = ("key", "kind", "category", "weight", "shown_to", "text")
Plain = tuple[str, str, str, float | None, str, str]  # the values of PLAIN


@dataclass(frozen=True, slots=True)
class Sealed:
    """Criteria of many samples, by columns, encrypted: they may lie in a file for a while."""

    owners: list[int]  # the number of its sample, for each
    positions: list[int]
    hashes: list[str]  # of their keys
    columns: list[bulk.Column]  # those of PLAIN


# Criteria of many samples: the number of its sample and the place in it, for each, and the columns of PLAIN.
ByColumns = tuple[list[int], list[int], list[list[Any]]]


def by_columns(hidden: Sequence[Sequence[Plain]]) -> ByColumns:
    """The criteria of each of these samples, by columns."""
    rows = [row for rows in hidden for row in rows]
    return (
        [number for number, rows in enumerate(hidden) for _ in rows],
        [position for rows in hidden for position in range(len(rows))],
        [list(column) for column in zip(*rows, strict=True)] or [[] for _ in PLAIN],
    )


def sealed(owners: list[int], positions: list[int], columns: list[list[Any]]) -> Sealed:
    """The same, fit to lie in a file."""
    named = dict(zip(PLAIN, columns, strict=True))
    hashed = {key: keyed("criterion", key) for key in set(named["key"])}
    secret: dict[str, list[Any]] = named | {"weight": [None if w is None else repr(float(w)) for w in named["weight"]]}
    packed = [
        bulk.packed(values) if name in ("kind", "shown_to") else cipher().encrypt_all(values)
        for name, values in secret.items()
    ]
    return Sealed(owners, positions, [hashed[key] for key in named["key"]], packed)


class Into(Protocol):
    """Where rows by columns go, see ``bank.intake.imports.writer``."""

    def put(self, model: type[Criterion], columns: Mapping[str, bulk.Column]) -> None: ...


def write_sealed(sealed: Sealed, sample_ids: Sequence[int], into: Into) -> None:
    """Store criteria of samples that have none yet; these are the ids of those that ``sealed`` was made of."""
    owners = [sample_ids[number] for number in sealed.owners]
    if owners:
        hashes = [hash_of(owner, hashed) for owner, hashed in zip(owners, sealed.hashes, strict=True)]
        given = (owners, sealed.positions, bulk.Shared(1, len(owners)), hashes, *sealed.columns)
        names = ("sample_id", "position", "version", "key_hash", *PLAIN)
        into.put(Criterion, dict(zip(names, given, strict=True)))
