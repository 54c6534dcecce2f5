"""manage.py may_start"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand
from evalsite import doctor


class Command(UncheckedCommand):
    help = "Say what this installation would not start with, if anything. The servers and the worker ask it, too."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--web", action="store_true", help="look at what only pages need, too")

    def handle(self, *, web: bool, **options: Any) -> None:
        if faults := list(doctor.faults(web=web)):
            raise CommandError("evalsite does not start.\n" + "\n".join(faults))
        if (found := doctor.proxy_setting()).level == "warning":
            self.stderr.write(found.words)
