"""Rows of a board as flat cells, for CSV."""

import json
from collections.abc import Iterable
from typing import Any

from bank.formats.generic import escape


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """One level deep: ``levels`` becomes ``Perception wins`` and so on; other objects become JSON text."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("levels", "categories"):
            for level, numbers in value.items():
                each = numbers if isinstance(numbers, dict) else {"score": numbers}
                cells |= {escape(f"{level or 'no level'} {key}"): number for key, number in each.items()}
        elif isinstance(value, dict | list):
            cells[name] = json.dumps(value, ensure_ascii=False, sort_keys=True)
        else:
            cells[name] = escape(value) if isinstance(value, str) else value
    return cells


def columns_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Every column that a row has, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))
