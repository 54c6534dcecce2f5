"""Rows of a board as flat cells, for CSV."""

import json
from collections.abc import Iterable
from typing import Any

from accounts.csv import escape


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


Order = list[tuple[str, "Order"]]


def order_of(rows: Iterable[dict[str, Any]]) -> Order:
    """The columns of rows in order of appearance, each with those of the objects it holds."""
    rows = list(rows)
    inner = {name: [row[name] for row in rows if isinstance(row.get(name), dict)] for name in columns_of(rows)}
    return [(name, order_of(objects) if objects else []) for name, objects in inner.items()]


def in_order(row: dict[str, Any], order: Order) -> dict[str, Any]:
    """A row with its columns in this order: PostgreSQL keeps JSON objects in one of its own."""
    if not order:
        return row
    return {
        name: in_order(row[name], inner) if isinstance(row[name], dict) else row[name]
        for name, inner in order
        if name in row
    }
