"""manage.py make_user NAME --role ROLE: make an account or change its role, with an optional API token."""

import getpass
import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from accounts.actions import make_account, new_password, set_role
from accounts.management.base import InstallationCommand
from accounts.models import Role, User
from accounts.second_factor import remove
from accounts.tokens import make_token


class Command(InstallationCommand):
    help = "Make an account or change its role. Prints the API token last."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        roles = [role for role in Role.values if role != Role.GUEST]  # guests come by an invitation
        parser.add_argument("--role", required=True, choices=roles, help=", ".join(roles))
        parser.add_argument(
            "--password",
            action="store_true",
            help="ask for it, or read it from standard input (default: a new account gets a random one, printed once)",
        )
        parser.add_argument(
            "--token",
            action="store_true",
            help="make an API token with all scopes of the role, which lasts as long as one may, and print it",
        )

        parser.add_argument("--no-codes", action="store_true", help="end two-factor authentication, of a lost device")

    def handle(self, *args: Any, **options: Any) -> None:
        name, role, chosen = options["name"], options["role"], _read_password() if options["password"] else None
        try:
            with transaction.atomic():
                person = User.objects.filter(username=name).first()
                made = person is None
                password = ""
                if person is None:
                    person, password = make_account(name=name, role=role, password=chosen, how="make_user")
                else:
                    set_role(person=person, role=role, how="make_user")
                    if chosen is not None:
                        new_password(person=person, password=chosen, how="make_user")
                if options["no_codes"]:
                    remove(person, how="make_user")
                token = make_token(person=person, how="make_user")[1] if options["token"] else ""
        except ValidationError as error:
            raise CommandError(" ".join(error.messages), returncode=1) from None
        self.stdout.write(f"{'Made' if made else 'Changed'} {name}: {person.role}.")
        if made and chosen is None:
            self.stdout.write(f"Password: {password}")
        if token:
            self.stdout.write(token)


def _read_password() -> str:
    """A password that does not appear in the list of processes."""
    return getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
