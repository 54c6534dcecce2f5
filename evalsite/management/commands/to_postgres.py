"""manage.py to_postgres"""

from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand
from evalsite import keys
from evalsite.management.base import in_words


class Command(UncheckedCommand):
    help = (
        "Move this SQLite installation into an empty PostgreSQL database, with evalsite stopped. All rows arrive, or "
        "none; the SQLite file stays as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        words = "postgres://USER:PASSWORD@HOST/NAME; the password may be in the environment instead, as PGPASSWORD"
        parser.add_argument("url", metavar="URL", help=words)

    def handle(self, *, url: str, **options: Any) -> None:
        if find_spec("psycopg") is None:
            raise CommandError(f"This needs PostgreSQL's driver: {keys.DRIVER}")
        import psycopg

        from evalsite.to_postgres import move

        with in_words(psycopg.Error):
            move(url, self.stdout.write)
        if settings.LOCAL:
            own = settings.DATA / keys.FILE
            self.stdout.write(f"Set SECRET_KEY and CRITERIA_KEYS to what {own} says, and ALLOWED_HOSTS.")
        self.stdout.write(
            "Set DATABASE_URL to that URL, and keep EVALSITE_DATA: it has the pictures.\n"
            "Then run `manage.py may_start`, start evalsite, make a backup, and delete the SQLite file."
        )
