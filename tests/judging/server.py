"""An OpenAI-compatible endpoint for tests: real HTTP, and for each call whatever a script says.

A script is a function of a ``Call`` that returns an ``Act``; an act writes to the connection. The server runs in a
thread of its own, so that the code under test meets it as it would meet any other.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Call:
    """One request as it arrived. ``number`` counts from 0."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes = b""

    @property
    def text(self) -> str:
        return next(part["text"] for part in self.body["messages"][0]["content"] if part["type"] == "text")

    @property
    def images(self) -> list[str]:
        return [part["image_url"]["url"] for part in self.body["messages"][0]["content"] if part["type"] == "image_url"]


Script = Callable[[Call], Act]


@dataclass
class Server:
    script: Script
    calls: list[Call] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "Server":
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while call := await self._read(reader):
                self.calls.append(call)
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    await self.script(call)(writer)
                    await writer.drain()
                finally:
                    self.in_flight -= 1
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Call | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        spoken = headers.get("content-type", "application/json").startswith("application/json")
        return Call(len(self.calls), first.split()[1], headers, json.loads(body or b"{}") if spoken else {}, body)


# -- what an endpoint may do ----------------------------------------------------------------------------------------


def status(code: int, body: Any = "", **headers: str) -> Act:
    """A response with a JSON or text body; header names with _ for -."""

    async def act(writer: asyncio.StreamWriter) -> None:
        content = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )
        lines = [f"HTTP/1.1 {code} x", f"content-length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    return act


def completion(
    message: Any,
    *,
    finish: str = "stop",
    model: str = "test-vl-1",
    logprobs_of: Any = None,
    headers: dict[str, str] | None = None,
    **extra: Any,
) -> Act:
    """A chat completion with this message, whatever it is; ``logprobs_of`` are the tokens with their candidates."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    if logprobs_of is not None:
        choice["logprobs"] = {"content": logprobs_of}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    body = {"id": "c", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}
    return status(200, body | extra, **(headers or {}))


def answer(text: str | None, **rest: Any) -> Act:
    """A completion that says this."""
    return completion({"role": "assistant", "content": text}, **rest)


def error(code: int, *, kind: str = "", message: str = "no", **headers: str) -> Act:
    return status(code, {"error": {"message": message, "type": kind, "code": kind}}, **headers)


def after(seconds: float, act: Act) -> Act:
    async def wait(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await act(writer)

    return wait


class Gate:
    """A script that answers so many calls, and holds all others until it is opened further."""

    def __init__(self, act: Act) -> None:
        self.act, self.limit = act, 0

    def __call__(self, call: Call) -> Act:
        async def wait(writer: asyncio.StreamWriter) -> None:
            while call.number >= self.limit:
                await asyncio.sleep(0.01)
            await self.act(writer)

        return wait


def reset_in_the_body(writer: asyncio.StreamWriter) -> Awaitable[None]:
    async def act() -> None:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"choices":')
        await writer.drain()
        writer.transport.abort()

    return act()


def one_byte_a_second(writer: asyncio.StreamWriter) -> Awaitable[None]:
    async def act() -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(1)

    return act()


def endless(writer: asyncio.StreamWriter) -> Awaitable[None]:
    """A body without an end, as fast as the other side takes it."""

    async def act() -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        while True:
            writer.write(chunk)
            await writer.drain()

    return act()


def a_gigabyte(writer: asyncio.StreamWriter) -> Awaitable[None]:
    async def act() -> None:
        writer.write(b"HTTP/1.1 500 x\r\ncontent-length: 1000000000\r\n\r\n")
        for _ in range(10_000):
            writer.write(b" " * 100_000)
            await writer.drain()

    return act()
