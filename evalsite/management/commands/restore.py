"""manage.py restore"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalsite import doctor
from evalsite.backups import folders, restoring
from evalsite.management.base import in_words


class Command(BaseCommand):
    requires_system_checks: list[str] = []
    help = "Restore a backup into this installation, which must be stopped and empty. docs/backup.md says more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", metavar="BACKUP", type=Path, help="a backup, or a folder of them: its newest one")
        for name in ("--link", "--checked"):  # of `backup --verify`, and for itself
            parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)

    def handle(self, *, backup: Path, link: bool, checked: bool, **options: Any) -> None:
        with in_words():
            chosen = folders.newest(backup)
            manifest = folders.read_manifest(chosen)
            if not checked:
                restoring.check(chosen, manifest)
            if taken := restoring.take_keys(chosen, manifest):
                self.stdout.write(taken)
                self.stdout.flush()
                os.execv(sys.executable, [sys.executable, *sys.argv, "--checked"])  # noqa: S606 (itself)
            restored = restoring.restore(chosen, manifest, link=link)
        self.stdout.write(f"Restored {chosen}, made at {manifest.at}.\n{restored}")
        for fault in doctor.faults(web=False):
            self.stdout.write(f"Before it starts: {fault}")
