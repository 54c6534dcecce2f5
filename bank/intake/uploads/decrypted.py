"""Decrypted files of uploads: the folder of an upload is held by the process that reads them there, so that what a
killed one leaves is found and removed.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

NAME = "plain"  # below the folder of an upload


@contextmanager
def held(folder: Path, *, waits: bool = True) -> Iterator[None]:
    """While inside, the folder of an upload is this process's. Raises OSError where it does not wait for another."""
    file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(file)


def remove_left() -> None:
    """Remove those in this data folder whose process is dead."""
    for left in Path(settings.STAGED).glob(f"*/{NAME}"):
        with suppress(OSError), held(left.parent, waits=False):
            shutil.rmtree(left, ignore_errors=True)
