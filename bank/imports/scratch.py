"""A folder for what an import needs on the way: unpacked archives, pictures not yet taken in."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


def sweep() -> None:
    """Remove folders whose process is gone: it held the lock while it lived."""
    for left in _root().iterdir() if _root().is_dir() else ():
        try:
            if time.time() - left.stat().st_mtime < STALE:
                continue
            lock = os.open(left / "lock", os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(lock)
