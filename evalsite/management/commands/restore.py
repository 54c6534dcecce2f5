"""manage.py restore"""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UncheckedCommand
from evalsite import doctor
from evalsite.backups import away, folders, restoring
from evalsite.management.base import in_words


class Command(UncheckedCommand):
    help = "Restore a backup into this installation, which must be stopped and empty. docs/backup.md says more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", metavar="BACKUP", help="a backup, or a folder of them: its newest one")
        for name in ("--link", "--checked"):  # of `backup --verify`, and for itself
            parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)

    def handle(self, *, backup: str, link: bool, checked: bool, **options: Any) -> None:
        with in_words(), ExitStack() as stack:
            chosen = self._chosen(backup, stack)
            manifest = folders.read_manifest(chosen)
            if not checked:
                restoring.check(chosen, manifest)
            if taken := restoring.take_keys(chosen, manifest):
                self.stdout.write(taken)
                self.stdout.flush()
                stack.close()
                os.execv(sys.executable, [sys.executable, *sys.argv, "--checked"])  # noqa: S606 (itself)
            restored = restoring.restore(chosen, manifest, link=link)
        self.stdout.write(
            f"Restored {backup if backup.startswith(away.SCHEME) else chosen}, made at {manifest.at}.\n{restored}"
        )
        for fault in doctor.faults(web=False):
            self.stdout.write(f"Before it starts: {fault}")

    def _chosen(self, backup: str, stack: ExitStack) -> Path:
        """Its folder; of one in object storage a copy that is here for a while."""
        if not backup.startswith(away.SCHEME):
            return folders.newest(Path(backup))
        place, time = away.at(backup)
        return away.fetch(place, stack.enter_context(away.private_folder()), time)
