"""manage.py prompt PROTOCOL NAME [FILE]"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand, text_of
from bank.errors import BadInput
from judging.protocols import prompts
from judging.protocols.prompts import stored


class Command(UncheckedCommand):
    help = "Print a prompt of a protocol, or store a file as its next version; the same text again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("protocol", metavar="PROTOCOL", help=", ".join(stored.titles()))
        parser.add_argument("name", metavar="NAME", help="NAME (its newest version) or NAME@VERSION")
        parser.add_argument("file", nargs="?", metavar="FILE", help="its text, or - for the standard input")
        parser.add_argument("--note", default="", help="what is new in this version")

    def handle(self, *, protocol: str, name: str, file: str | None, note: str, **options: Any) -> None:
        try:
            if file is None:
                self.stdout.write(prompts.get(protocol, name).text)
                return
            text = text_of(file)
            known = name in prompts.names(protocol) + prompts.stored_names(protocol)
            newest = prompts.get(protocol, name) if known else None
            if newest is not None and newest.text.rstrip("\n") == text.rstrip("\n"):
                self.stdout.write(f"{name}@{newest.version} says the same already.")
                return
            made = stored.add_template(protocol=protocol, name=name, text=text, note=note)
        except (BadInput, prompts.UnknownPrompt) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{made.name}@{made.version} is stored.")
