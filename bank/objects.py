"""Files in object storage (S3): what several machines share, where the settings name a bucket (ADR 40)."""

import errno
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple, TypeVar, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage, storages

from bank.database import batched

AT_ONCE = 8
IN_MEMORY = 2**20  # bytes of a file that is read; more of it lies on the disk meanwhile
AWAY_FOR = 5.0  # seconds in which a storage that did not answer is not waited for again


T = TypeVar("T")
R = TypeVar("R")


class Away(OSError):
    """The storage does not answer, or refuses us; the message says which."""

    def __init__(self, words: str) -> None:
        super().__init__(errno.EIO, words)

    def __str__(self) -> str:
        return str(self.strerror)


class Entry(NamedTuple):
    name: str
    size: int
    changed: datetime


class _Waits:
    """Of a storage that does not answer one caller at a time finds out whether it is back; nobody else waits for it."""

    def __init__(self) -> None:
        self.until = 0.0
        self.lock = Lock()

    def refuse(self) -> None:
        """Raises Away where somebody waited in vain a moment ago."""
        if self.until:
            with self.lock:
                if time.monotonic() < self.until:
                    raise Away("The object storage does not answer.")
                self.until = time.monotonic() + AWAY_FOR

    def answered(self) -> None:
        self.until = 0.0

    def in_vain(self) -> None:
        self.until = time.monotonic() + AWAY_FOR


_WAITS: defaultdict[str | None, _Waits] = defaultdict(_Waits)  # by address


class Objects:
    """The files below one prefix of a bucket. They appear and change whole. Every method may raise Away."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self._prefix = f"{storage.location}/" if storage.location else ""
        self._waits = _WAITS[storage.endpoint_url]

    def _object(self, name: str) -> Any:
        return self._storage.bucket.Object(f"{self._prefix}{name}")

    def exists(self, name: str) -> bool:
        try:
            with self._in_words():
                self._object(name).load()
        except FileNotFoundError:
            return False
        return True

    def opened(self, name: str) -> IO[bytes]:
        """A copy that is here whole, so that nothing can fail while it is read. Raises FileNotFoundError."""
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=str(settings.DATA))  # noqa: SIM115 (the caller closes it)
        with self._in_words():
            shutil.copyfileobj(self._object(name).get()["Body"], file)
        file.seek(0)
        return file

    def pieces(self, name: str, size: int) -> Iterator[bytes]:
        """The file as it comes in; what fails after the first piece breaks it off. Raises FileNotFoundError."""
        with self._in_words():
            body = self._object(name).get()["Body"]
        return cast(Iterator[bytes], body.iter_chunks(size))

    def put(self, name: str, file: IO[bytes]) -> None:
        with self._in_words():
            self._storage.save(name, File(file))

    def put_copy(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            self.put(name, file)

    def remove(self, name: str) -> None:
        with self._in_words():
            self._object(name).delete()

    def listed(self, prefix: str = "") -> Iterator[Entry]:
        """The files whose names begin with this."""
        with self._in_words():
            for found in self._storage.bucket.objects.filter(Prefix=f"{self._prefix}{prefix}"):
                yield Entry(found.key.removeprefix(self._prefix), found.size, found.last_modified)

    def address(self, name: str) -> str:
        """Where the file would be read by anybody, if it were public. Nothing is asked."""
        return str(self._storage.url(name)).partition("?")[0]

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        from boto3.exceptions import Boto3Error  # an extra
        from botocore.exceptions import BotoCoreError, ClientError

        self._waits.refuse()
        try:
            yield
            self._waits.answered()
        except ClientError as error:
            self._waits.answered()
            code = error.response["Error"]["Code"]
            if code in ("404", "NoSuchKey"):
                raise FileNotFoundError(errno.ENOENT, "no such file in the object storage") from None
            raise Away(f"The object storage refuses us ({code}).") from error
        except (BotoCoreError, Boto3Error) as error:
            self._waits.in_vain()
            raise Away(f"The object storage does not answer ({type(error).__name__}).") from error


def of(alias: str) -> Objects | None:
    """The files of one of Django's STORAGES; None where they lie in the data folder."""
    storage = storages[alias] if alias in storages.backends else None
    return None if storage is None or isinstance(storage, FileSystemStorage) else Objects(storage)


def at(bucket: str, prefix: str) -> Objects:
    """The files below a prefix of any bucket at the same address, with the same keys; needs ``of("default")``."""
    known: Any = storages.backends["default"]
    options = known["OPTIONS"] | {"bucket_name": bucket, "location": prefix}
    return Objects(storages.create_storage(known | {"OPTIONS": options}))


def at_once(act: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What an act makes of each item, in their order, several at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for some in batched(items, 1000):
            yield from pool.map(act, some)
