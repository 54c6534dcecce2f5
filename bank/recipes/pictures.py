"""Corrupted pictures, made when a call needs them and kept in a cache of the data folder whose size has a limit."""

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from PIL import Image, ImageOps

from bank import corruptions, media

_tidying = threading.Lock()


def corrupted(picture: str, *, sha256: str, steps: Sequence[corruptions.Step], seed: str) -> bytes:
    """A picture, whose content has this hash, after these corruptions, as PNG; the same for the same seed.

    Raises OSError if the one of that name cannot be read.
    """
    name = hashlib.sha256(repr((sha256, [(step.method, step.severity) for step in steps], seed)).encode()).hexdigest()
    kept = settings.CORRUPTED_FOLDER / name[:2] / f"{name}.png"
    try:
        data = kept.read_bytes()
        os.utime(kept)  # the least recently used go first
        return data
    except OSError:
        pass
    with media.opened(picture) as file, Image.open(file) as opened:
        image = ImageOps.exif_transpose(opened)
        data = corruptions.encoded(corruptions.apply_image(image, steps, seed))
    _keep(kept, data)
    return data


def _keep(kept: Path, data: bytes) -> None:
    """Best effort: a full disk is no reason not to ask."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = kept.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temporary.write_bytes(data)
        temporary.replace(kept)
        if kept.name[2] == "0":  # one in sixteen looks whether there is too much
            tidy()
    except OSError:
        pass


def tidy() -> None:
    """Remove the pictures that were not used for longest until the cache is a tenth below its limit."""
    if not _tidying.acquire(blocking=False):
        return
    try:
        files = sorted(
            ((found.stat().st_mtime, found.stat().st_size, found) for found in settings.CORRUPTED_FOLDER.glob("*/*")),
            key=lambda entry: entry[0],
        )
        total = sum(size for _, size, _ in files)
        if total <= settings.CORRUPTED_BYTES:
            return
        for _, size, found in files:
            if total <= 0.9 * settings.CORRUPTED_BYTES:
                break
            found.unlink(missing_ok=True)
            total -= size
    finally:
        _tidying.release()
