"""manage.py erase_person NAME"""

import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.actions import erase
from accounts.management.base import InstallationCommand
from accounts.models import User


class Command(InstallationCommand):
    help = (
        "Erase the name, address and sign-in of a person, for good. Labels, submissions and changes stay, and so does "
        "the audit log without the name. Repeat it where an older backup was restored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("--yes", action="store_true", help="do not ask: it cannot be undone")

    def handle(self, *, name: str, yes: bool, **options: Any) -> None:
        person = User.objects.filter(username=name).first()
        if person is None:
            raise CommandError(f"There is no account {name!r}.")
        if not yes and not (sys.stdin.isatty() and input(f"For good. Type {name} again to erase: ") == name):
            raise CommandError("Nothing was erased: type the name again, or add --yes. It cannot be undone.")
        try:
            kept = erase(person=person, how="erase_person")
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        self.stdout.write(f"Erased. What they did stays, under the name {kept}.")
