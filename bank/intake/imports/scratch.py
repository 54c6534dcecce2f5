"""A folder for what an import needs on the way: unpacked archives, pictures not yet taken in."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

STALE = 60  # seconds in which a folder may not be locked yet


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of this process beside the pictures, removed afterwards. What a killed process left goes, too."""
    sweep()
    root = _root()
    root.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=root))
    lock = os.open(own / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield own
    finally:
        os.close(lock)
        shutil.rmtree(own, ignore_errors=True)


def _root() -> Path:
    return Path(settings.MEDIA_ROOT, "incoming")


def empty(name: str) -> None:
    """Remove what lies in a folder of this process."""
    for path in (_root() / name).iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def is_left(name: str) -> bool:
    """Whether the process of this folder is gone, as far as it can be told: the folder is here and nobody holds it."""
    if not name:
        return False
    lock = _taken(_root() / name)
    if lock is None:
        return False
    os.close(lock)
    return True


def sweep() -> None:
    """Remove folders whose process is gone: it held the lock while it lived."""
    for left in _root().iterdir() if _root().is_dir() else ():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime >= STALE and (lock := _taken(left)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)


def _taken(folder: Path) -> int | None:
    """The lock of a folder that nobody holds; close it."""
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
