"""manage.py backup"""

import shutil
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand
from evalsite import keys
from evalsite.backups import away, folders, making
from evalsite.management.base import in_words


class Command(UncheckedCommand):
    help = (
        "Back up database and pictures into a new folder below DIR, or s3://BUCKET/FOLDER, named by the time, while "
        "evalsite runs. "
        "docs/backup.md says how to schedule it and what about the keys."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", help="where the backups are")
        parser.add_argument("--keep", metavar="N", type=int, help="then delete all backups in DIR but the newest N")
        parser.add_argument(
            "--verify", action="store_true", help="restore it into an empty place and compare; older ones stay if not"
        )
        parser.add_argument(
            "--without-pictures",
            action="store_true",
            help="also where the database's pictures are not in the data folder",
        )
        parser.add_argument(
            "--verify-only", action="store_true", help="verify the newest backup in DIR, or that in it, and make none"
        )

    def handle(
        self, *, folder: str, keep: int | None, verify: bool, verify_only: bool, without_pictures: bool, **options: Any
    ) -> None:
        if keep is not None and keep < 1:
            raise CommandError("--keep takes 1 or more: the newest backup always stays. Nothing was done.")
        with in_words():
            if folder.startswith(away.SCHEME):
                self._away(folder, keep, verify, verify_only, without_pictures)
            else:
                self._here(Path(folder), keep, verify, verify_only, without_pictures)

    def _here(self, folder: Path, keep: int | None, verify: bool, verify_only: bool, without_pictures: bool) -> None:
        if verify_only:
            backup = folders.newest(folder).resolve()
            with folders.alone(backup.parent):
                self._verify(backup)
            return
        with folders.alone(folder):
            made = making.make(folder.resolve(), without_pictures=without_pictures)
            self._tell(made, str(made))
            if verify:
                self._verify(made)
            for old in folders.remove_older(folder, keep) if keep is not None else ():
                self.stdout.write(f"Deleted {old}.")

    def _away(self, address: str, keep: int | None, verify: bool, verify_only: bool, without_pictures: bool) -> None:
        place, time = away.at(address)
        with away.private_folder() as folder:
            if not verify_only:
                made = away.make(place, folder, without_pictures=without_pictures)
                self._tell(made, f"{address.rstrip('/')}/{made.name}")
                time = made.name
                shutil.rmtree(made)
            if verify or verify_only:
                self._verify(away.fetch(place, folder, time))
        for old in away.remove_older(place, keep) if keep is not None and not verify_only else ():
            self.stdout.write(f"Deleted {old}.")

    def _tell(self, made: Path, name: str) -> None:
        manifest = folders.read_manifest(made)
        rows, pictures = sum(manifest.rows.values()), len(manifest.pictures)
        self.stdout.write(f"{name}: {rows:,} rows of {len(manifest.rows)} tables and {pictures:,} files of pictures.")
        if keys.FILE in manifest.files:
            self.stdout.write(f"It holds the keys ({keys.FILE}): whoever has it can read everything.")
        else:
            self.stdout.write("Keep SECRET_KEY and CRITERIA_KEYS, too: nothing hidden can be read without them.")

    def _verify(self, backup: Path) -> None:
        self.stdout.write(f"Verified by restoring it. {making.verify(backup)}")
