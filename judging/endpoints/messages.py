"""What is sent: the pictures, the body of a request."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bank.images import smaller, with_words

PICTURE_CACHE = 24_000_000  # bytes of encoded pictures kept: jobs come in the order of their pictures
Key = tuple[str, int | None, str | None, str]  # hash, longest edge, detail, words on it
KINDS = {"jpg": "jpeg"}  # names of media types that are not the file's


class Pictures:
    """Pictures as parts of a message, encoded once and kept by content and policy, least recently used first out."""

    def __init__(self, limit: int = PICTURE_CACHE) -> None:
        self._limit = limit
        self._held = 0
        self._parts: OrderedDict[Key, bytes] = OrderedDict()
        self._reading: dict[Key, asyncio.Task[bytes]] = {}

    async def part(
        self,
        *,
        sha256: str,
        kind: str,
        path: Path,
        longest: int | None = None,
        detail: str | None = None,
        overlay: str = "",
    ) -> bytes:
        """The JSON of one image part; read and encoded beside the event loop.

        ``longest`` makes the picture smaller so that its longer edge has so many pixels, never larger; ``detail`` is
        handed on to the endpoint; ``overlay`` is written on the picture. Raises OSError when the file cannot be read.
        """
        key = (sha256, longest, detail, overlay)
        if (part := self._parts.get(key)) is not None:
            self._parts.move_to_end(key)
            return part
        reading = self._reading.get(key)
        if reading is None:  # calls with the same picture start together: one of them reads it for all
            work = asyncio.to_thread(_encoded, path, kind, longest, detail, overlay)
            reading = self._reading[key] = asyncio.create_task(work)
            reading.add_done_callback(partial(self._read, key))
        return await asyncio.shield(reading)  # whoever is cancelled leaves it to the others

    def _read(self, key: Key, reading: "asyncio.Task[bytes]") -> None:
        del self._reading[key]
        if reading.cancelled() or reading.exception():
            return
        self._parts[key] = reading.result()
        self._held += len(self._parts[key])
        while self._held > self._limit and len(self._parts) > 1:
            self._held -= len(self._parts.popitem(last=False)[1])


def _encoded(path: Path, kind: str, longest: int | None, detail: str | None, overlay: str) -> bytes:
    data = path.read_bytes()
    if longest is not None:
        data = smaller(data, longest=longest)
    if overlay:
        data = with_words(data, overlay)
    head = f'{{"type":"image_url","image_url":{{"url":"data:image/{KINDS.get(kind, kind)};base64,'.encode()
    tail = f'","detail":"{detail}"}}}}'.encode() if detail else b'"}}'
    return b"".join((head, base64.b64encode(data), tail))


def encode(*, model: str, text: str, pictures: Sequence[bytes], parameters: Mapping[str, Any]) -> bytes:
    """The body of a chat completion with one message: pictures, then text. Parameters that are null are left out."""
    given = {name: value for name, value in parameters.items() if value is not None}
    tail = orjson.dumps({"type": "text", "text": text.encode(errors="replace").decode()})
    return b"".join(
        (
            b'{"model":',
            orjson.dumps(model),
            b',"messages":[{"role":"user","content":[',
            b"".join(part + b"," for part in pictures),
            tail,
            b"]}]",
            (b"," + orjson.dumps(given)[1:]) if given else b"}",
        )
    )
