"""manage.py migrate, which leaves alone what this version cannot take over, and gives a new database its key"""

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections

from accounts.installation_key import check_keys
from accounts.management.base import INSTALLATION
from evalsite import closed_by_update, health


class Command(migrate.Command):
    requires_system_checks = [INSTALLATION, Tags.database, Tags.models]  # others load the code of every page

    def handle(self, *args: Any, **options: Any) -> None:
        if health.older(connections[options["database"]]):
            raise CommandError(f"The database is not that of this version: {health.OLDER}.")
        is_ahead = closed_by_update.is_ahead()
        super().handle(*args, **options)
        if is_ahead and not closed_by_update.is_ahead():
            for paragraph in closed_by_update.in_words():
                self.stdout.write(f"\n{paragraph}")
        if health.migrations() == health.OK:
            check_keys()  # from now on it is known whether CRITERIA_KEYS are those of this database
