"""manage.py doctor"""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand
from evalsite import doctor

MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  "}


class Command(UncheckedCommand):
    help = "Say what is wrong with this installation, and what to run. Exit status 1 if something does not work."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one object, by the names of what was examined")

    def handle(self, **options: Any) -> None:
        found = {}
        for name, finding in doctor.examine():
            found[name] = {"level": finding.level, "words": finding.words}
            if not options["json"]:
                self.stdout.write(f"{MARKS[finding.level]}  {name:<13} {finding.words}")
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=1))
        self.stdout.flush()  # into one file, this stands before what ends it
        if faults := [name for name, one in found.items() if one["level"] == "fault"]:
            raise CommandError(f"This does not work: {', '.join(faults)}.")
