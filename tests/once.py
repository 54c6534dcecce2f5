"""What many tests begin with is built once in a process; its rows and files are then put back as they were.

Every test still has an empty database and folders of its own: what it changes, no other test sees.
"""

import copy
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from accounts import installation_key
from accounts.models import InstallationKey
from bank.database import batched
from leaderboard.kept import counters

MOST_VALUES = 5_000  # in one statement
_built = {}


def once(name, build):
    """What ``build()`` returned when it was called for the first time, with all that it wrote.

    The folders of pictures and uploads must be the same before as they were then, and what is returned must bear to be
    copied. Where another row has taken an id meanwhile, it is built anew.
    """
    key()
    if name in _built:
        made, rows, files = _built[name]
        try:
            _write(rows)
        except IntegrityError:
            return build()
        for path, content in files.items():
            path = _folders()[path[0]] / path[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return copy.deepcopy(made)
    before, files_before = _rows(), _files()
    made = build()
    rows = {
        table: (columns, new)
        for table, (columns, found) in _rows().items()
        if (new := [row for row in found if row not in before[table][1]])
    }
    files = {path: content for path, content in _files().items() if path not in files_before}
    _built[name] = copy.deepcopy(made), rows, files
    return made


def key():
    """The same key of the installation for all tests: what was hashed under it is put back, too."""
    InstallationKey.objects.update_or_create(pk=installation_key.ONLY, defaults={"secret": "11" * 32})
    installation_key.forget()


def _rows():
    """All that is stored: (columns, rows) by table; but what the database itself writes down for others."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.django_table_names(only_existing=True):
            if table == counters.CHANGES:
                continue
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found[table] = [column[0] for column in cursor.description], cursor.fetchall()
    return found


def _write(rows):
    with transaction.atomic(), connection.cursor() as cursor:  # in one: the order of tables does not matter
        for table, (columns, found) in rows.items():
            names = ", ".join(map(connection.ops.quote_name, columns))
            into = f"INSERT INTO {connection.ops.quote_name(table)} ({names}) VALUES "
            row = f"({', '.join(['%s'] * len(columns))})"
            for batch in batched(found, MOST_VALUES // len(columns)):
                cursor.execute(into + ", ".join([row] * len(batch)), [value for each in batch for value in each])


def _folders() -> tuple[Path, Path, Path]:
    return Path(settings.MEDIA_ROOT), Path(settings.STAGED), Path(settings.EXPORTS)


def _files():
    """The bytes of every file, by (which folder, path in it)."""
    return {
        (place, path.relative_to(folder)): path.read_bytes()
        for place, folder in enumerate(_folders())
        for path in folder.rglob("*")
        if path.is_file()
    }
