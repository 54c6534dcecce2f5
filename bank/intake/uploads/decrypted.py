"""Folders of decrypted files, held by the process that reads them: what a killed one leaves is found and removed."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

NAME = "plain"  # below the folder of an upload


@contextmanager
def held(root: Path) -> Iterator[None]:
    """While inside, the folder is this process's. Raises OSError where it is another's."""
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(folder)


def remove_left() -> None:
    """Remove those in this data folder whose process is dead."""
    for root in Path(settings.STAGED).glob(f"*/{NAME}"):
        with suppress(OSError), held(root):
            shutil.rmtree(root, ignore_errors=True)
