"""The base of the project's commands."""

import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

INSTALLATION = "installation"  # the tag of checks that look at keys, database and proxies; see evalsite.checks


class InstallationCommand(BaseCommand):
    """A command that makes the checks of this installation and no others: those load the code of every page.

    ``serve`` and ``check`` make them all.
    """

    requires_system_checks = [INSTALLATION]


class UncheckedCommand(BaseCommand):
    """A command that makes no checks: ``serve`` makes them later, the others may run where no database answers or leave
    them to ``serve`` and ``check``. They load the code of every page.
    """

    requires_system_checks: list[str] = []


def text_of(file: str) -> str:
    """The text of a file, for - of the standard input. Raises CommandError."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from None
