"""How often an address asks in a minute, counted by all processes of the machine together.

A file of a fixed size in the data folder: a place for each address, found by a keyed hash, which holds the minute and
the count. A place is locked while it is counted in, so requests at once all count. It is no cache of Django's because
none of those that need no server counts over processes, and no table because a write for every page would wait for
whoever imports.
"""

import fcntl
import os
import struct
import threading
import time

from django.conf import settings
from django.utils.crypto import salted_hmac

PLACES = 2**16  # two addresses of a minute rarely share one
PLACE = struct.Struct("<II")
MINUTE = 60
_lock = threading.Lock()  # locks of files hold between processes, not between threads


def counted(address: str, *, most: int) -> int:
    """Count a request; how many seconds to wait if it is one too many in this minute, else 0."""
    now = time.time()
    minute = int(now // MINUTE)
    digest = salted_hmac("evalsite.limits", address, algorithm="sha256").digest()
    place = int.from_bytes(digest[:8]) % PLACES * PLACE.size
    try:
        with _lock:
            count = _count(place, minute)
    except OSError:
        return 0  # a full disk is no reason to turn people away
    return 0 if count <= most else MINUTE - int(now % MINUTE)


def _count(place: int, minute: int) -> int:
    file = os.open(settings.DATA / "limits", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX, PLACE.size, place)
        stored = os.pread(file, PLACE.size, place)
        then, count = PLACE.unpack(stored) if len(stored) == PLACE.size else (0, 0)
        count = min(count + 1, 2**32 - 1) if then == minute else 1
        os.pwrite(file, PLACE.pack(minute, count), place)
    finally:
        os.close(file)  # which unlocks, too
    return count
