"""What an installation does not start with, in words that say what to do."""

from collections.abc import Iterator

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import DatabaseError, OperationalError, connection

from accounts.installation_key import WrongKeys, check_keys
from evalsite import health
from evalsite.demo_accounts import still_open

STATIC = "favicon.svg"  # any file that pages link to


def faults(*, web: bool) -> Iterator[str]:
    """Each reason not to start; ``web`` looks at what only pages need, too."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        yield f"The database does not answer: {str(error).strip()}. DATABASE_URL says where it is."
        return
    if (migrations := health.migrations()) != health.OK:
        yield f"The database is not that of this version: {migrations.replace('wait', 'migrations wait', 1)}."
        return
    yield from wrong_keys()
    yield from demo_accounts()
    if web:
        yield from _not_collected()


def wrong_keys() -> Iterator[str]:
    """CRITERIA_KEYS that are not those of the database. Nothing of a database that has no tables yet."""
    try:
        check_keys()
    except WrongKeys as error:
        yield str(error)
    except DatabaseError:
        return


def demo_accounts() -> Iterator[str]:
    """Accounts of the demo whose password is printed in our source, where others than this machine may sign in."""
    if settings.LOCAL:
        return
    try:
        names = [person.username for person in still_open()]
    except DatabaseError:
        return
    if names:
        yield (
            f"The demo's password, which everybody can read in the source, still opens {', '.join(names)}. "
            "Switch these accounts off with\n  manage.py remove_demo_accounts\n"
            "then make your own with `manage.py make_user NAME --role administrator`."
        )


def told() -> list[str]:
    """What may go on, but should be known."""
    if settings.BEHIND_PROXY:
        return ["BEHIND_PROXY is the old name: set TRUSTED_PROXIES=1, the number of proxies that stand before us."]
    return []


def _not_collected() -> Iterator[str]:
    try:
        staticfiles_storage.url(STATIC)
    except ValueError:  # the list of what was collected does not name it, or is not there
        yield "The style sheets and scripts are not collected. Run `manage.py collectstatic --no-input`."
