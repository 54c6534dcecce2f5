"""HTTP to endpoints: the ``openai`` package over aiohttp. Replies are bounded, redirects and cookies not followed."""

import asyncio
import os
import socket
import time
import zlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp  # noqa: TID251
import httpx2  # noqa: TID251
import openai  # noqa: TID251
from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: TID251

from judging.client.answers import WAIT_HEADERS, Answer, Outcome, completed, refused
from judging.client.hosts import is_public

REPLY_LIMIT = 2_000_000  # bytes of one reply; a long verdict has about 10,000
CONNECT_TIMEOUT = 10.0
COMPLETIONS = "/chat/completions"
# What an endpoint gets to see: nothing that the SDK or the environment would add.
SENT_HEADERS = ("authorization", "content-type")
# Not sent either: given, for the SDK takes its time to make up each that is left out.
UNSENT: Any = {
    "idempotency_key": "-",
    "max_retries": 0,
    "timeout": None,
    "params": {},
    "security": {"bearer_auth": True},
}
NOTHING = httpx2.ByteStream(b"")
_limit: ContextVar[int] = ContextVar("limit", default=REPLY_LIMIT)


@dataclass(frozen=True, slots=True)
class Received:
    """A whole HTTP response, whatever its status."""

    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)  # those that ask for a pause


class Failed(httpx2.TransportError):
    """A call that brought no whole HTTP response."""

    def __init__(self, outcome: Outcome, words: str) -> None:
        super().__init__(words)
        self.outcome = outcome
        self.words = words


class PrivateAddress(OSError):
    """A name that leads to this machine or into a private network only."""


class Guarded(AbstractResolver):
    """Finds the addresses of a name, and hands on none that is private, unless it is listed itself.

    What it hands on is what is connected to: a name that leads elsewhere a moment later leads nobody astray.
    """

    def __init__(self, listed: Sequence[str], resolver: AbstractResolver | None = None) -> None:
        self._listed = listed
        self._resolver = resolver or aiohttp.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if host == "localhost":
            return found
        kept = [one for one in found if is_public(one["host"]) or one["host"] in self._listed]
        if found and not kept:
            raise PrivateAddress(host)
        return kept

    async def close(self) -> None:
        await self._resolver.close()


class _Straight(httpx2.AsyncClient):
    """Sends a request as it is, once: no redirects, cookies, hooks or logins to look after."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        return await self._transport.handle_async_request(request)


class _Transport(httpx2.AsyncBaseTransport):
    """HTTP for the SDK, on aiohttp, at a third of the CPU that its own takes."""

    def __init__(self, base_url: str, listed: Sequence[str] | None) -> None:
        self._proxy = _proxy_for(base_url)
        guard = None if listed is None or self._proxy else Guarded(listed)  # a proxy finds the addresses itself
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, resolver=guard),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "evalsite"},
            auto_decompress=False,
            trust_env=False,  # it would send what stands in ~/.netrc
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: request.headers[name] for name in SENT_HEADERS if name in request.headers}
        try:
            async with self._session.request(
                request.method,
                str(request.url),
                data=await request.aread(),
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                content = await _bounded(response, _limit.get())
                if 200 <= response.status < 300:  # beside: the SDK need not look at what is only handed on
                    beside = {"content": content}
                    return httpx2.Response(response.status, stream=NOTHING, extensions=beside, request=request)
                kept = {name: response.headers[name] for name in WAIT_HEADERS if name in response.headers}
                return httpx2.Response(response.status, headers=kept, content=content, request=request)
        except aiohttp.ConnectionTimeoutError:
            raise Failed(Outcome.UNREACHABLE, f"no connection within {CONNECT_TIMEOUT:.0f} s") from None
        except aiohttp.ClientConnectorDNSError as error:
            if isinstance(error.os_error, PrivateAddress):
                words = "its name leads to a private address, which is not among JUDGE_HOSTS itself"
                raise Failed(Outcome.SETUP, words) from None
            raise Failed(Outcome.UNREACHABLE, "its name cannot be resolved") from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError):
            raise Failed(Outcome.UNREACHABLE, "its TLS certificate was not accepted") from None
        except aiohttp.ClientConnectorError as error:
            words = os.strerror(error.os_error.errno) if error.os_error.errno else "no connection"
            raise Failed(Outcome.UNREACHABLE, words.lower()) from None
        except aiohttp.InvalidURL:
            raise Failed(Outcome.SETUP, "the address is not a URL") from None
        except (aiohttp.ClientError, OSError, ValueError):  # ValueError: a key with a line break in it
            raise Failed(Outcome.TRANSIENT, "the connection broke off") from None

    async def aclose(self) -> None:
        await self._session.close()


class _Client(openai.AsyncOpenAI):
    """The SDK's client. A request that is ready to be sent is not taken apart and put together again: that takes it
    longer than all of the sending."""

    @cached_property
    def _ready(self) -> tuple[str, httpx2.URL]:
        address = str(self.base_url).rstrip("/") + COMPLETIONS
        return address, httpx2.URL(address)

    def _build_request(self, options: Any, *, retries_taken: int = 0) -> httpx2.Request:
        address, url = self._ready
        if options.url != address or not isinstance(options.content, bytes):
            return super()._build_request(options, retries_taken=retries_taken)
        headers = {name: value for name, value in options.headers.items() if isinstance(value, str)}
        headers["Content-Type"] = "application/json"
        return httpx2.Request("POST", url, headers=headers, content=options.content)


class Endpoint:
    """One base address; lives as long as the event loop it was made in. Nothing of the environment is sent to it.

    With ``listed`` its name may lead to public addresses and to these, and to no others.
    """

    def __init__(self, base_url: str, listed: Sequence[str] | None = None) -> None:
        self._base = base_url.rstrip("/")
        self._client = _Client(
            api_key="given-with-each-call",
            base_url=base_url,
            max_retries=0,
            timeout=httpx2.Timeout(None),
            http_client=_Straight(transport=_Transport(base_url, listed), follow_redirects=False),
        )

    async def complete(self, body: bytes, *, key: str, timeout: float) -> Answer:
        """Make one call. It ends within ``timeout`` seconds; nothing but cancellation is raised."""
        began = time.monotonic()
        try:
            received = await self.send("POST", COMPLETIONS, body, key=key, timeout=timeout)
        except Failed as failed:
            answer = Answer(failed.outcome, words=failed.words)
        else:
            answer = (
                completed(received.content)
                if received.status == 200
                else refused(received.status, received.content, received.headers)
            )
        return replace(answer, seconds=time.monotonic() - began)

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        key: str,
        timeout: float,
        limit: int = REPLY_LIMIT,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> Received:
        """One request to a path below the base: a JSON body, or a form with files. Raises Failed."""
        given: dict[str, Any] = {"content": body} if body is not None else {}
        if form is not None:
            given = {"body": form, "files": files or {}}
        headers: dict[str, Any] = {"Authorization": f"Bearer {key}" if key else openai.Omit()}
        if form is not None:
            headers["Content-Type"] = "multipart/form-data"
        call = self._client.get if method == "GET" else self._client.post
        token = _limit.set(limit)
        try:
            async with asyncio.timeout(timeout):
                response = await call(
                    f"{self._base}{path}",
                    cast_to=httpx2.Response,
                    options={"headers": headers} | UNSENT,
                    **given,
                )
        except TimeoutError:
            raise Failed(Outcome.TIMEOUT, f"no whole reply within {timeout:g} s") from None
        except openai.APIStatusError as error:
            return Received(error.status_code, error.response.content, dict(error.response.headers))
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, Failed):
                raise error.__cause__ from None
            raise Failed(Outcome.TRANSIENT, "the connection broke off") from None
        finally:
            _limit.reset(token)
        return Received(response.status_code, response.extensions["content"])

    async def close(self) -> None:
        await self._client.close()


class Endpoints:
    """The long-lived clients of one event loop, one per address and where it may lead."""

    def __init__(self) -> None:
        self._endpoints: dict[tuple[str, bool], Endpoint] = {}

    def at(self, base_url: str, listed: Sequence[str] | None = None) -> Endpoint:
        key = base_url, listed is None
        if key not in self._endpoints:
            self._endpoints[key] = Endpoint(base_url, listed)
        return self._endpoints[key]

    async def close(self) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self._endpoints.clear()


def _proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for an address, if any."""
    parts = urlsplit(base_url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


async def _bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    received = bytearray()
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > limit:
            response.close()
            raise Failed(Outcome.GARBAGE, "the reply is longer than any verdict")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return bytes(received)
    try:
        plain = zlib.decompressobj(wbits=47).decompress(bytes(received), limit + 1)
    except zlib.error:
        raise Failed(Outcome.GARBAGE, "the reply came in an encoding that was not asked for") from None
    if len(plain) > limit:
        raise Failed(Outcome.GARBAGE, "the reply is longer than any verdict")
    return plain
