"""manage.py make_user NAME --role ROLE: an account, its role, and on request a token for scripts."""

import getpass
import secrets
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction
from knox.models import AuthToken

from annotations.actions import make_annotator
from bank.actions import BadInput
from bank.management.importing import bad_input_fails
from bank.models import User
from bank.models.people import Role


class Command(BaseCommand):
    help = "Make an account or change its role. Prints the API token last."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("--role", required=True, choices=Role.values, help=", ".join(Role.values))
        parser.add_argument(
            "--password",
            action="store_true",
            help="ask for it, or take a line of standard input; else a new account gets a random one, printed once",
        )
        parser.add_argument("--token", action="store_true", help="make an API token that never expires, and print it")

    def handle(self, *args: Any, **options: Any) -> None:
        name, password = options["name"], _asked() if options["password"] else None
        with bad_input_fails(), transaction.atomic():
            _check(name, password)
            person = User.objects.filter(username=name).first()
            made = person is None
            if person is None:
                person = User(username=name)
                password = password or secrets.token_urlsafe(12)
            person.role = options["role"]
            if password:
                person.set_password(password)
            person.save()
            if person.role == Role.ANNOTATOR:
                make_annotator(person)
            token = AuthToken.objects.create(person, expiry=None)[1] if options["token"] else ""
        self.stdout.write(f"{'Made' if made else 'Changed'} {name}: {person.role}.")
        if made and not options["password"]:
            self.stdout.write(f"Password: {password}")
        if token:
            self.stdout.write(token)


def _asked() -> str:
    """A password that no list of processes shows."""
    return getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


def _check(name: str, password: str | None) -> None:
    try:
        UnicodeUsernameValidator()(name)
        if len(name) > 150:
            raise ValidationError("longer than 150 characters")
    except ValidationError:
        allowed = "letters, digits and @ . + - _, at most 150 of them"
        raise BadInput(f"{name[:60]!r} is no name for an account: {allowed}.") from None
    if password is not None:
        try:
            validate_password(password)
        except ValidationError as error:
            raise BadInput(" ".join(error.messages)) from None
