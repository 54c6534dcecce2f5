"""The base of the project's commands."""

from django.core.management.base import BaseCommand

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
