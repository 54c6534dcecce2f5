"""For migrations of three apps: names that were stored before ``bank.text.names`` had its rule."""

from bank.text.names import as_stored


def rename_stored(rows, *within):
    """Of two that look the same, the later gets a number. ``within``: the columns that a name is unique together with."""
    for row in rows.order_by("pk"):
        name = wanted = as_stored(row.name)
        if name == row.name:
            continue
        others = rows.filter(**{column: getattr(row, column) for column in within}).exclude(pk=row.pk)
        number = 2
        while others.filter(name=name).exists():
            name, number = f"{wanted[:190]} ({number})", number + 1
        rows.filter(pk=row.pk).update(name=name)
