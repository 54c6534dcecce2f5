"""The body of a request: images and text as JSON."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import orjson

from bank import media
from bank.corruptions import Step
from bank.images import smaller, with_words
from bank.recipes.pictures import corrupted

Steps = tuple[Step, ...]
CACHE_BYTES = 24_000_000  # of encoded images: jobs come in the order of their images
CORRUPTED_AT_ONCE = 4  # pictures, each of which takes 20 times its size meanwhile, however many threads there are
Key = tuple[str, int | None, str | None, str, Steps, str]  # hash, longest edge, detail, words on it, corruption, seed
# The likelihood of an answer that we write ourselves: vLLM's means. 0: of the prompt's own tokens alone.
PREFILLED: dict[str, Any] = {
    "prompt_logprobs": 0,
    "max_tokens": 1,
    "add_generation_prompt": False,
    "continue_final_message": True,
}
MEDIA_TYPES = {"jpg": "jpeg"}  # where they differ from the file extension


class Pictures:
    """Images as parts of a message, encoded once and kept in a least-recently-used cache by content and size."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._cached_bytes = 0
        self._parts: OrderedDict[Key, bytes] = OrderedDict()
        self._reading: dict[Key, asyncio.Task[bytes]] = {}
        self._corrupting = asyncio.Semaphore(CORRUPTED_AT_ONCE)

    async def part(
        self,
        *,
        sha256: str,
        kind: str,
        name: str,
        longest: int | None = None,
        detail: str | None = None,
        overlay: str = "",
        corruption: Steps = (),
        seed: str = "",
    ) -> bytes:
        """The JSON of one image part; read and encoded outside the event loop.

        ``longest`` shrinks the image until its longer edge has that many pixels; ``detail`` is passed to the endpoint;
        ``overlay`` is written on the image; ``corruption`` with its ``seed`` spoils it. Raises OSError if the picture
        of that ``name`` cannot be read.
        """
        key = (sha256, longest, detail, overlay, corruption, seed)
        if (part := self._parts.get(key)) is not None:
            self._parts.move_to_end(key)
            return part
        reading = self._reading.get(key)
        if reading is None:  # calls with the same image start together: one of them reads it for all
            reading = self._reading[key] = asyncio.create_task(self._encoded(name, kind, key))
            reading.add_done_callback(partial(self._read, key))
        return await asyncio.shield(reading)  # a cancelled call leaves the reading to the others

    async def _encoded(self, name: str, kind: str, key: Key) -> bytes:
        async with self._corrupting if key[4] else nullcontext():
            return await asyncio.to_thread(_encoded, name, kind, key)

    def _read(self, key: Key, reading: "asyncio.Task[bytes]") -> None:
        del self._reading[key]
        if reading.cancelled() or reading.exception():
            return
        self._parts[key] = reading.result()
        self._cached_bytes += len(self._parts[key])
        while self._cached_bytes > self._limit and len(self._parts) > 1:
            self._cached_bytes -= len(self._parts.popitem(last=False)[1])


def _encoded(name: str, kind: str, key: Key) -> bytes:
    sha256, longest, detail, overlay, corruption, seed = key
    if corruption:
        data, kind = corrupted(name, sha256=sha256, steps=corruption, seed=seed), "png"
    else:
        data = media.read(name)
    if longest is not None:
        data = smaller(data, longest=longest)
    if overlay:
        data = with_words(data, overlay)
    head = f'{{"type":"image_url","image_url":{{"url":"data:image/{MEDIA_TYPES.get(kind, kind)};base64,'.encode()
    tail = f'","detail":"{detail}"}}}}'.encode() if detail else b'"}}'
    return b"".join((head, base64.b64encode(data), tail))


def encode(*, model: str, messages: Sequence[tuple[str, str, Sequence[bytes]]], parameters: Mapping[str, Any]) -> bytes:
    """The body of a chat completion. ``messages``: role, text, and the parts of the images before it.

    Null parameters are left out. Messages of an assistant and of the system are plain text, as endpoints want it.
    """
    sent = {name: value for name, value in parameters.items() if value is not None}
    return b"".join(
        (
            b'{"model":',
            orjson.dumps(model),
            b',"messages":[',
            b",".join(_message(*message) for message in messages),
            b"]",
            (b"," + orjson.dumps(sent)[1:]) if sent else b"}",
        )
    )


def _message(role: str, text: str, pictures: Sequence[bytes]) -> bytes:
    text = text.encode(errors="replace").decode()
    if role in ("assistant", "system"):
        return orjson.dumps({"role": role, "content": text})
    tail = orjson.dumps({"type": "text", "text": text})
    return b"".join(
        (b'{"role":"', role.encode(), b'","content":[', b"".join(part + b"," for part in pictures), tail, b"]}")
    )
