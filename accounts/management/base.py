"""The base of the project's commands."""

from django.core.management.base import BaseCommand

INSTALLATION = "installation"  # the tag of checks that look at keys, database and proxies; see evalsite.checks


class InstallationCommand(BaseCommand):
    """A command that makes the checks of this installation and no others: those load the code of every page.

    ``serve`` and ``check`` make them all.
    """

    requires_system_checks = [INSTALLATION]
