"""Where secrets come from: the environment, or a key file that a local installation creates for itself.

Also refuses unsafe settings.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

FILE = "local-keys.env"
DATABASE = "evalsite.sqlite3"  # of a local installation, beside it
ON, OFF = ("true", "on", "yes", "y", "ok", "1"), ("false", "off", "no", "n", "0")
HERE = {"localhost", "127.0.0.1", "[::1]", ".localhost"}
DRIVER = "`make setup EXTRAS=postgres` in a clone, or install the wheel with [postgres]."
HINTS = {
    "SECRET_KEY": "python3 -c 'import secrets; print(secrets.token_urlsafe(50))'",
    "CRITERIA_KEYS": "python3 -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'",
}


def load(*, data: Path, local: bool) -> tuple[str, list[str]]:
    """Return the secret key and the criteria keys, newest first.

    A local installation (see ``settings.LOCAL``) makes ``local-keys.env`` in the data folder on its first start.
    Raises ImproperlyConfigured, naming what to set, when a secret is missing or malformed.
    """
    values = {name: os.environ.get(name, "").strip() for name in HINTS}
    path = data / FILE
    if local and not all(values.values()):
        stored = read_file(path) or _make_unless_data(path)
        values = {name: value or stored.get(name, "") for name, value in values.items()}
    for name, value in values.items():
        if not value:
            raise ImproperlyConfigured(
                f"{name} is not set. evalsite does not start without it. Make one with\n  {HINTS[name]}\n"
                f"and put it into the environment as {name}."
            )
    if len(values["SECRET_KEY"]) < 32:
        raise ImproperlyConfigured(f"SECRET_KEY is shorter than 32 characters. Make one with\n  {HINTS['SECRET_KEY']}")
    return values["SECRET_KEY"], _criteria_keys(values["CRITERIA_KEYS"])


def _criteria_keys(text: str) -> list[str]:
    keys = [key.strip() for key in text.split(",") if key.strip()]
    for position, key in enumerate(keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise ImproperlyConfigured(
                f"CRITERIA_KEYS: key {position} is not 32 bytes in URL-safe base64. Make one with\n"
                f"  {HINTS['CRITERIA_KEYS']}\nSeveral keys are separated by commas, newest first."
            ) from None
    return keys


def refuse_unsafe(*, debug: bool, hosts: Sequence[str]) -> None:
    """Raises ImproperlyConfigured for what may only be seen, or believed, on this machine."""
    if any(host.strip() in ("*", "") for host in hosts):
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS holds *: any name would be believed. Name the hosts under which people reach evalsite."
        )
    if debug and not set(hosts) <= HERE:
        raise ImproperlyConfigured(
            f"DEBUG is on, which shows the inside of every fault, and ALLOWED_HOSTS names {', '.join(sorted(hosts))}."
            " Unset DEBUG, or name localhost alone."
        )


def refuse_unknown(name: str, value: str, known: Collection[str], *, words: str = "") -> None:
    """Raises ImproperlyConfigured for a value that a setting does not take, with ``words`` in place of a long list."""
    if value not in known:
        raise ImproperlyConfigured(f"{name} is {value!r}, and may be {words or ', '.join(known)}.")


def refuse_sign_on(issuer: str, client: str, claim: str, roles: Mapping[str, str]) -> None:
    """Raises ImproperlyConfigured for settings of single sign-on with which nobody, or anybody, would come in."""
    if find_spec("allauth") is None:
        raise ImproperlyConfigured(
            "SSO_ISSUER is set, and django-allauth is not here: `make setup EXTRAS=sso` in a clone, or the wheel with "
            "[sso]."
        )
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in HERE:
        raise ImproperlyConfigured(f"SSO_ISSUER is {issuer!r}, and is to begin with https://.")
    if not client:
        raise ImproperlyConfigured("SSO_ISSUER is set, and SSO_CLIENT_ID is not.")
    if bool(claim) != bool(roles):
        raise ImproperlyConfigured("SSO_ROLE_CLAIM and SSO_ROLES belong together: a claim, and a role by each value.")


def number(name: str, default: int) -> int:
    """A setting that is a whole number. Raises ImproperlyConfigured if it is another thing."""
    value = os.environ.get(name, "").strip()
    try:
        return int(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}, and is to be a whole number.") from None


def truth(name: str, default: bool) -> bool:
    """A setting that is on or off. Raises ImproperlyConfigured if it is another thing."""
    value = os.environ.get(name, "").strip().lower()
    if value in ("", *ON, *OFF):
        return value in ON if value else default
    raise ImproperlyConfigured(f"{name} is {value!r}, and is to be true or false.")


def origins(name: str) -> list[str]:
    """A setting of sites, each such as https://example.org. Raises ImproperlyConfigured for another thing."""
    sites = [site.strip() for site in os.environ.get(name, "").split(",") if site.strip()]
    for site in sites:
        parts = urlsplit(site)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path:
            raise ImproperlyConfigured(f"{name} has {site!r}, and takes sites such as https://example.org.")
    return sites


def address(name: str, read: Callable[[], dict[str, Any]], *, like: str) -> dict[str, Any]:
    """A setting that is an address of a server, as ``read`` gives it. Raises ImproperlyConfigured, which repeats none
    of it: it may hold a password.
    """
    try:
        return read()
    except Exception:
        raise ImproperlyConfigured(
            f"{name} is no address such as {like}. Signs of a name or password that mean something there are written "
            "as %2F for /, %40 for @, %3A for :, %23 for # and %3F for ?."
        ) from None


def keep_private(data: Path) -> None:
    """Create the data folder, and remove other users' access to what an older version left readable in it."""
    with suppress(OSError):  # what cannot be made or is another's is told when it is needed
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, mode in ((data, 0o700), *((one, 0o600) for one in data.glob("*.sqlite3*"))):
            if path.stat().st_mode & 0o077:
                path.chmod(mode)


def read_file(path: Path) -> dict[str, str]:
    """The contents of a key file, by name; nothing if it is not there."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ImproperlyConfigured(
            f"{path} cannot be read ({error.strerror}): it must belong to the user that runs this, "
            "and EVALSITE_DATA must be a folder."
        ) from None
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _make_unless_data(path: Path) -> dict[str, str]:
    """New keys, unless there is data that was encrypted with others."""
    database = path.with_name(DATABASE)
    if _holds_rows(database):
        raise ImproperlyConfigured(
            f"{path.name} is not in {path.parent}, but {database.name} is, with data that was encrypted by the keys of "
            f"that file. Put the file back where it was (it belongs to every backup), or set SECRET_KEY and "
            "CRITERIA_KEYS to what it held. No new keys were made."
        )
    return _write_new_keys(path)


def _holds_rows(database: Path) -> bool:
    if not database.exists():
        return False
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as connection:
        try:
            return bool(connection.execute("SELECT count(*) FROM django_migrations").fetchone()[0])
        except sqlite3.OperationalError:  # an empty file, or one that was just made
            return False


def _write_new_keys(path: Path) -> dict[str, str]:
    """Write the file completely or not at all; if two processes start at once, the keys of the first one hold."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    values = {"SECRET_KEY": secrets.token_urlsafe(50), "CRITERIA_KEYS": Fernet.generate_key().decode()}
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        values = read_file(path)
    finally:
        draft.unlink()
    return values
