"""manage.py to_postgres"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from evalsite import keys
from evalsite.management.base import in_words
from evalsite.to_postgres import move


class Command(BaseCommand):
    requires_system_checks: list[str] = []
    help = (
        "Move this SQLite installation into an empty PostgreSQL database, with evalsite stopped. All rows arrive, or "
        "none; the SQLite file stays as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        words = "postgres://USER:PASSWORD@HOST/NAME; the password may be in the environment instead, as PGPASSWORD"
        parser.add_argument("url", metavar="URL", help=words)

    def handle(self, *, url: str, **options: Any) -> None:
        with in_words():
            move(url, self.stdout.write)
        if settings.LOCAL:
            own = settings.DATA / keys.FILE
            self.stdout.write(f"Set SECRET_KEY and CRITERIA_KEYS to what {own} says, and ALLOWED_HOSTS.")
        self.stdout.write(
            "Set DATABASE_URL to that URL, and keep EVALSITE_DATA: it has the pictures.\n"
            "Then run `manage.py may_start`, start evalsite, make a backup, and delete the SQLite file."
        )
