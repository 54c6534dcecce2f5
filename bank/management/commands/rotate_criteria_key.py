"""manage.py rotate_criteria_key"""

from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from accounts import audit
from accounts.management.base import InstallationCommand
from bank.management import rotation
from bank.management.importing import Failed, progress_of


class Command(InstallationCommand):
    help = (
        "Encrypt everything hidden with the newest of CRITERIA_KEYS, and in today's format. For a new key: put it "
        "first, restart server and workers, run this, then take the older keys out. After an update that changed the "
        "format: run it with the keys as they are. It can be stopped and started again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count what is under which key")
        parser.add_argument(
            "--compact",
            action="store_true",
            help="then write SQLite's file anew, which keeps pieces of what was sealed again; writers wait meanwhile",
        )

    def handle(self, *, dry_run: bool, compact: bool, **options: Any) -> None:
        if not dry_run:
            self._rotate(compact=compact)
        with progress_of(self) as progress:
            counts = rotation.survey(partial(progress, "texts looked at"))
        for name, count in counts.items():
            lost = f", {count.unreadable:,} unreadable" if count.unreadable else ""
            former = f", {count.former:,} in an earlier format" if count.former else ""
            self.stdout.write(
                f"{name}: {count.newest:,} under the newest key, {count.older:,} under older ones{former}{lost}"
            )
        older = sum(count.due for count in counts.values())
        if any(count.unreadable for count in counts.values()):
            raise Failed("Some texts cannot be read with any of CRITERIA_KEYS. Put the key that made them back.")
        if dry_run:
            self.stdout.write(f"Would encrypt {older:,} texts again. Nothing was written.")
        elif older:
            raise Failed(
                f"{older:,} texts were written under an older key or in an earlier format meanwhile: something still "
                "runs with old settings. Restart server and workers, then run this again."
            )
        else:
            self.stdout.write("Everything is under the newest key: the older ones can be taken out of CRITERIA_KEYS.")

    def _rotate(self, *, compact: bool) -> None:
        try:
            with progress_of(self) as progress:
                changed = rotation.rotate(partial(progress, "texts"))
        except rotation.Unreadable as error:
            raise Failed(str(error)) from None
        if changed:
            audit.record("keys-rotated", command="rotate_criteria_key", texts=changed)
        if compact:
            rotation.compact()
        self.stdout.write(f"Encrypted {changed:,} texts with the newest key.")
