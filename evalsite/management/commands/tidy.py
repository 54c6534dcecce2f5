"""manage.py tidy"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from evalsite import tidying


class Command(InstallationCommand):
    help = "Remove what nobody needs any more (see the KEEP_ settings), and say how much there is of what grows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")

    def handle(self, **options: Any) -> None:
        goes = "would go" if options["dry_run"] else "gone"
        self.stdout.write(f"{'what':<26}{'how many':>12}{'MB':>10}{goes:>10}  kept")
        for heap in tidying.heaps():
            if heap.clear and not options["dry_run"]:
                heap.clear()
            size = "" if heap.size is None else f"{heap.size / 1e6:,.1f}"
            gone = f"{heap.goes:,}" if heap.clear else ""
            self.stdout.write(f"{heap.name:<26}{heap.count:>12,}{size:>10}{gone:>10}  {heap.rule}")
        self.stdout.write(f"{tidying.free() / 1e9:,.1f} GB are free.")
