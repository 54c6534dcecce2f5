"""Where pictures lie, by their names below the media folder: in it, or in object storage."""

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from django.conf import settings

from bank import objects

MARK = ".storage-id"  # identifies the place


def exists(name: str) -> bool:
    away = objects.of("default")
    return away.exists(name) if away else _local(name).is_file()


def opened(name: str) -> IO[bytes]:
    """Raises FileNotFoundError, OSError."""
    away = objects.of("default")
    return away.opened(name) if away else _local(name).open("rb")


def read(name: str) -> bytes:
    """Raises FileNotFoundError, OSError."""
    with opened(name) as file:
        return file.read()


def write(name: str, data: bytes) -> None:
    if away := objects.of("default"):
        away.put(name, io.BytesIO(data))
    else:
        write_file(_local(name), data)


def move_in(path: Path, name: str) -> None:
    """Put a file of the data folder in, which is gone there then."""
    if away := objects.of("default"):
        away.put_copy(name, path)
        path.unlink()
    else:
        _local(name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, _local(name))


def remove(name: str) -> None:
    if away := objects.of("default"):
        away.remove(name)
    else:
        _local(name).unlink(missing_ok=True)


def sizes() -> Iterator[tuple[str, int]]:
    """Every file there, and its bytes."""
    away = objects.of("default")
    yield from ((entry.name, entry.size) for entry in away.listed()) if away else local_sizes()


def local_sizes() -> Iterator[tuple[str, int]]:
    """The same of the folder, without what is still being written or brought in."""
    root = Path(settings.MEDIA_ROOT)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        is_finished = name.name == MARK or not name.name.startswith(".")
        if is_finished and name.parts[0] != "incoming" and path.is_file():
            yield str(name), path.stat().st_size


def place() -> str:
    """What to call it, for operators."""
    away = objects.of("default")
    return away.address("") if away else str(settings.MEDIA_ROOT)


def _local(name: str) -> Path:
    return Path(settings.MEDIA_ROOT, name)


def write_file(path: Path, data: bytes) -> None:
    """The file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    draft.write_bytes(data)
    os.replace(draft, path)
