"""A temporary folder for an import: unpacked archives, pictures that are not stored yet."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

STALE = 60  # seconds a new folder may go without a lock


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of this process next to the pictures, removed afterwards. Also removes what killed processes left
    behind.
    """
    sweep()
    root = _root()
    root.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=root))
    lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path
    finally:
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)


def _root() -> Path:
    return Path(settings.MEDIA_ROOT, "incoming")


def clear(name: str) -> None:
    """Remove the contents of one of this process's folders."""
    for path in (_root() / name).iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def is_abandoned(name: str) -> bool:
    """Whether the folder's process is known to be gone: the folder is on this machine and nobody holds its lock."""
    if not name:
        return False
    lock = _taken(_root() / name)
    if lock is None:
        return False
    os.close(lock)
    return True


def sweep() -> None:
    """Remove folders whose process is gone: it held the lock while it lived."""
    for path in _root().iterdir() if _root().is_dir() else ():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime >= STALE and (lock := _taken(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _taken(folder: Path) -> int | None:
    """The lock of a folder that nobody holds, now held by us; the caller closes it."""
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
