"""Backups in object storage: those of a folder, but for the pictures, which all backups there share.

s3://BUCKET/PREFIX/2026-11-26T15-37-02Z/manifest.json   put last: without it there is no backup
                                        database, local-keys.env
                   media/...            the pictures, each once
"""

import hashlib
import re
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from django.conf import settings

from bank import media, objects
from evalsite.backups import folders, making
from evalsite.backups.folders import MANIFEST, MEDIA, Failed
from evalsite.object_storage import PREFIXES

SCHEME = "s3://"
TIME = re.compile(r"(2\d{3}-\d\d-\d\dT\d\d-\d\d-\d\dZ)(?:/(.+))?")
BY_CONTENT = re.compile(r"[0-9a-f]{64}")
UNDER_WAY = timedelta(days=1)  # another backup may have put it there, and its manifest not yet


def at(address: str) -> tuple[objects.Objects, str]:
    """What lies at s3://BUCKET/PREFIX, and the time of the backup that is meant, if one is. Raises Failed."""
    parts = urlsplit(address)
    if not objects.of("default"):
        raise Failed(f"Set S3_BUCKET and its other settings: they say how {address} is reached.")
    if not parts.netloc or not (prefix := parts.path.strip("/")):
        raise Failed(f"{address} is written s3://BUCKET/FOLDER.")
    if parts.netloc == settings.S3_BUCKET and prefix.split("/")[0] in PREFIXES.values():
        raise Failed(f"{address} is among the files that would be backed up.")
    above, _, last = prefix.rpartition("/")
    is_one = above and TIME.fullmatch(last)
    return objects.at(parts.netloc, above if is_one else prefix), last if is_one else ""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A place here for what is on its way, removed afterwards, and what a killed one left before. Raises Failed."""
    place = settings.DATA / "backup-under-way"
    with folders.alone(place):
        for left in place.glob("*/"):
            shutil.rmtree(left)
        try:
            yield place
        finally:
            shutil.rmtree(place)


def make(place: objects.Objects, folder: Path, *, without_pictures: bool = False) -> Path:
    """Back up into the storage by way of a folder; returns what is left there: all but pictures. Raises Failed."""
    path = making.make(folder, without_pictures=without_pictures, pictures=lambda: _put_pictures(place))
    for file in sorted(path.iterdir(), key=lambda file: file.name == MANIFEST):
        place.put_copy(f"{path.name}/{file.name}", file)
    return path


def _put_pictures(place: objects.Objects) -> dict[str, str]:
    """Put those that are not there yet; returns the SHA-256 of each."""
    there = {entry.name for entry in place.listed(f"{MEDIA}/")}

    def put(picture: str) -> tuple[str, str]:
        name, sha256 = f"{MEDIA}/{picture}", PurePath(picture).stem
        if name in there and BY_CONTENT.fullmatch(sha256):
            return name, sha256
        with media.opened(picture) as file:
            sha256 = hashlib.sha256(file.read()).hexdigest()
            file.seek(0)
            place.put(name, file)
        return name, sha256

    return dict(objects.at_once(put, (name for name, _ in media.sizes())))


def fetch(place: objects.Objects, folder: Path, time: str = "") -> Path:
    """Bring the newest backup, or that of a time, into a folder, as if it had been made there. Raises Failed."""
    times = [one for one in complete(place) if time in ("", one)]
    if not times:
        raise Failed(f"There is no complete backup in {place.address(time)}.")
    path = folder / times[-1]
    path.mkdir(mode=0o700)
    _get(place, f"{path.name}/{MANIFEST}", path / MANIFEST)

    def get(name: str) -> None:
        _get(place, name if name.startswith(f"{MEDIA}/") else f"{path.name}/{name}", path / name)

    deque(objects.at_once(get, folders.read_manifest(path).files), 0)
    return path


def _get(place: objects.Objects, name: str, target: Path) -> None:
    """What is gone there is missing here, and the manifest tells."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with place.opened(name) as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    except FileNotFoundError:
        return
    target.chmod(0o600)


def remove_older(place: objects.Objects, keep: int) -> list[str]:
    """Remove all but the newest backups, what killed ones left, and pictures of none; returns those removed."""
    entries, there = list(place.listed()), complete(place)
    old, needed = there[:-keep], set[str]()
    with private_folder() as folder:
        for time in there[-keep:]:
            _get(place, f"{time}/{MANIFEST}", folder / time / MANIFEST)
            needed.update(folders.read_manifest(folder / time).files)
    for time in old:
        place.remove(f"{time}/{MANIFEST}")  # a kill leaves nothing that looks like a backup
    for entry in entries:
        found = TIME.fullmatch(entry.name)
        is_left = datetime.now(UTC) - entry.changed > UNDER_WAY
        if (found and (found[1] in old or (found[1] not in there and is_left))) or (
            entry.name.startswith(f"{MEDIA}/") and entry.name not in needed and is_left
        ):
            place.remove(entry.name)
    return old


def complete(place: objects.Objects) -> list[str]:
    """The times of the backups, oldest first."""
    found = (TIME.fullmatch(entry.name) for entry in place.listed("2"))
    return sorted(each[1] for each in found if each and each[2] == MANIFEST)
