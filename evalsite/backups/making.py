"""Making a backup, and showing that it can be restored. The caller holds ``folders.alone``."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from django.conf import settings
from django.db import connection

from accounts import installation_key
from bank import media, objects
from bank.images import media_matches_database
from bank.picked import filled
from evalsite import keys
from evalsite.backups import databases, folders
from evalsite.backups.folders import DATABASE, MEDIA, Failed, Manifest

TRIAL = "evalsite_verify_"  # begins the name of the place, and database, into which a backup is restored to look at it


def _checked_key(folder: Path) -> str:
    """The installation's sealed key. Raises Failed, WrongKeys if it cannot be backed up there or with these keys."""
    if folder.resolve().is_relative_to(settings.MEDIA_ROOT):
        raise Failed(f"{folder} is in the folder of pictures, which would be backed up into itself.")
    if not databases.tables():
        raise Failed(f"There is nothing to back up: no tables are in {databases.NAME}.")
    key = installation_key.sealed()
    if key and not installation_key.opens(key, settings.CRITERIA_KEYS):
        raise installation_key.WrongKeys
    return key


def make(folder: Path, *, without_pictures: bool = False, pictures: Callable[[], dict[str, str]] | None = None) -> Path:
    """Back up the installation into a new folder there, while it runs. Raises Failed, WrongKeys.

    ``pictures`` puts them elsewhere, and returns the SHA-256 of each by its name in the manifest.
    """
    key = _checked_key(folder)
    if not without_pictures and not media_matches_database():
        raise Failed(
            f"The pictures of this database are not in {media.place()}: set EVALSITE_DATA, or S3_BUCKET, to what "
            "evalsite runs with, or mount the folder. If they are lost, give --without-pictures. No backup was made."
        )
    earlier = folders.complete(folder)
    path = folders.begin(folder)
    try:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        rows = databases.dump(path / DATABASE)
        files = {DATABASE: folders.sha256(path / DATABASE)}
        # After the database: they are only added.
        files |= pictures() if pictures else _copy_pictures(path, earlier[-1] if earlier else None)
        own_keys = settings.DATA / keys.FILE
        if settings.LOCAL and own_keys.exists():
            folders.copy(own_keys, path / keys.FILE)
            files[keys.FILE] = folders.sha256(path / keys.FILE)
        folders.finish(path, Manifest(settings.VERSION, at, connection.vendor, key, rows, files))
    except BaseException:
        shutil.rmtree(path)
        raise
    return path


def _copy_pictures(path: Path, earlier: Path | None) -> dict[str, str]:
    """Copy them, those that the backup before has as a second name of its files. Returns the SHA-256 of each."""
    files = {}
    for picture, _ in media.sizes():
        name = f"{MEDIA}/{picture}"
        with suppress(FileNotFoundError):  # a failed import has just removed it
            sha256 = folders.sha256(earlier / name) if earlier else ""
            if earlier and sha256 == Path(picture).stem:  # they are named by their content
                folders.link(earlier / name, path / name)
            else:  # also where the backup before is damaged
                _copy(picture, path / name)
                sha256 = folders.sha256(path / name)
            files[name] = sha256
    return files


def _copy(picture: str, target: Path) -> None:
    if not objects.of("default"):
        folders.copy(settings.MEDIA_ROOT / picture, target)
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600)
    with media.opened(picture) as file, target.open("wb") as copied:
        shutil.copyfileobj(file, copied)


def verify(backup: Path) -> str:
    """Restore a backup into an empty place of its own; returns what was found there. Raises Failed."""
    with _trial_place(backup.parent) as environment:
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "restore", str(backup), "--link"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)  # noqa: S603 (ours)
    if done.returncode:
        raise Failed(f"It does not come back whole: {done.stderr.strip()}")
    return done.stdout.strip().splitlines()[-1]


@contextmanager
def _trial_place(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of an empty installation with the keys of this one. What a killed one left is removed."""
    for left in folder.glob(f"{TRIAL}*"):
        databases.drop(left.name)
        shutil.rmtree(left)
    place = folder / f"{TRIAL}{token_hex(4)}"
    place.mkdir(mode=0o700)
    try:
        with databases.trial(place.name) as url:
            environment = os.environ | {"EVALSITE_DATA": str(place), "DATABASE_URL": url, "S3_BUCKET": ""}
            yield filled(environment)
    finally:
        shutil.rmtree(place)
