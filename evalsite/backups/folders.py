"""The folders of backups: their names, manifests and lock, and the copying of files into and out of them."""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

MANIFEST = "manifest.json"
DATABASE = "database"
MEDIA = "media"
NAMES = "????-??-??T??-??-??Z"  # their time in UTC
TIME = "%Y-%m-%dT%H-%M-%SZ"  # of their names


class Failed(Exception):
    """It could not be done; the message says why, in words for an operator."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup. ``key`` is the installation's as the database holds it: CRITERIA_KEYS fit if they open it."""

    version: str
    at: str
    database: str
    key: str
    rows: dict[str, int]  # by table
    files: dict[str, str]  # SHA-256 by name

    @property
    def pictures(self) -> list[str]:
        """The files of the media folder."""
        return [name.removeprefix(f"{MEDIA}/") for name in self.files if name.startswith(f"{MEDIA}/")]


def read_manifest(backup: Path) -> Manifest:
    """Raises Failed if this version cannot read it."""
    try:
        return Manifest(**json.loads((backup / MANIFEST).read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise Failed(f"{backup / MANIFEST} is damaged, or was made by another version of evalsite.") from None


def finish(backup: Path, manifest: Manifest) -> None:
    """Make the folder a backup: at once, and after all that is in it has reached the disk."""
    draft = backup / f"{MANIFEST}.part"
    draft.write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")
    os.sync()
    draft.replace(backup / MANIFEST)
    os.sync()


def complete(folder: Path) -> list[Path]:
    """The backups in a folder, oldest first."""
    return [path for path in _named(folder) if (path / MANIFEST).is_file()]


def newest(place: Path) -> Path:
    """The backup that is meant by its own folder, or by that of all. Raises Failed."""
    found = [place] if (place / MANIFEST).is_file() else complete(place)
    if not found:
        raise Failed(f"There is no complete backup in {place}.")
    return found[-1]


def begin(folder: Path) -> Path:
    """An empty folder for a new backup; what killed backups left is removed."""
    for path in set(_named(folder)) - set(complete(folder)):
        shutil.rmtree(path)
    while (path := folder / f"{datetime.now(UTC):{TIME}}").exists():
        time.sleep(0.1)  # one was made in this second
    path.mkdir(mode=0o700)
    return path


def remove_older(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest backups; returns those removed."""
    old = complete(folder)[:-keep]
    for path in old:
        (path / MANIFEST).unlink()  # a kill leaves nothing that looks like a backup
        shutil.rmtree(path)
    return old


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else makes a backup there meanwhile. Raises Failed if somebody does."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed(f"Another backup is being made into {folder}. Nothing was done.") from None
        yield


def copy(source: Path, target: Path) -> None:
    """Copy a file with its time of change, for its owner alone."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy2(source, target)
    target.chmod(0o600)


def link(source: Path, target: Path) -> None:
    """Make a file a second name of another one, which takes no space; a copy where the file system cannot."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        copy(source, target)


def sha256(path: Path) -> str:
    """The SHA-256 of a file; "" if it is not there."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _named(folder: Path) -> list[Path]:
    return sorted(folder.glob(NAMES))
