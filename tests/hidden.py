"""The hidden tables as tests read and change them: past their readers."""

from bank.criteria import Criterion


def criteria(*keys, **filters):
    """Criteria with one of these keys, which are encrypted, under filters of the ORM."""
    found = Criterion.unguarded.filter(**filters)
    return Criterion.unguarded.filter(pk__in=[row.pk for row in found if not keys or row.key in keys])


def change(rows, **values):
    """Give rows other values: each is sealed with its row, which ``update`` does not know."""
    for row in rows:
        for name, value in values.items():
            setattr(row, name, value)
        row.save()
