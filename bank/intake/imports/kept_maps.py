"""Maps of columns that are kept: found again by the names of a table's columns."""

import hashlib
import json
from collections.abc import Iterable

from accounts.models import User
from bank.intake.formats.mapping import ColumnMap, Mapped
from bank.models import KeptMap


def keep(map: ColumnMap, *, columns: Iterable[str], by: User) -> None:
    """Keep what these columns hold, in place of what was said of them before."""
    values = {"map": map.model_dump(exclude_defaults=True), "by": by}
    KeptMap.objects.update_or_create(digest=_digest(columns), defaults=values)


def kept_for(columns: Iterable[str]) -> Mapped | None:
    """The format of a table with these columns, if a map of them is kept."""
    kept = KeptMap.objects.filter(digest=_digest(columns)).select_related("by").first()
    if kept is None:
        return None
    title = f"Columns as {kept.by.get_full_name() or kept.by.username} named them"
    return Mapped(ColumnMap.model_validate(kept.map), TITLE=title)


def _digest(columns: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(set(columns))).encode()).hexdigest()
