"""Calls to endpoints: the ``openai`` package over aiohttp (ADR 14).

One call is one attempt: nothing is retried here, and every way in which it can end is an ``Outcome``. Memory and time
are bounded whatever the other side does: a total deadline, a limit on the reply, no redirect followed, no cookie kept.
"""

import asyncio
import os
import socket
import time
import zlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp  # noqa: TID251
import httpx2  # noqa: TID251
import openai  # noqa: TID251
from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: TID251

from judging.endpoints.answers import WAIT_HEADERS, Answer, Failed, Outcome, Received, completed, refused

REPLY_LIMIT = 2_000_000  # bytes of one reply; a long verdict has about 10,000
CONNECT_TIMEOUT = 10.0
COMPLETIONS = "/chat/completions"
# What an endpoint gets to see: nothing that the SDK or the environment would add.
SENT_HEADERS = ("authorization", "content-type")
TRANSLATED = IPv6Network("64:ff9b::/96")  # IPv4 in IPv6, by NAT64
# Not sent either: given, for the SDK takes its time to make up each that is left out.
UNSENT: openai.RequestOptions = {"params": {}, "timeout": None, "max_retries": 0, "idempotency_key": "-"}
_limit: ContextVar[int] = ContextVar("limit", default=REPLY_LIMIT)


class PrivateAddress(OSError):
    """A name that leads to this machine or into a private network only."""


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public network, and not of this machine, this site or another one's."""
    found: IPv4Address | IPv6Address | None = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in TRANSLATED:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return bool(found and found.is_global and not found.is_multicast)


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


class _Transport(httpx2.AsyncBaseTransport):
    """HTTP for the SDK, on aiohttp: addresses by ``Guarded``, and a third of the CPU of the SDK's own."""

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
                kept = {name: response.headers[name] for name in WAIT_HEADERS if name in response.headers}
                return httpx2.Response(response.status, headers=kept, content=content)
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


class Endpoint:
    """One base address; lives as long as the event loop it was made in. Nothing of the environment is sent to it.

    With ``listed`` its name may lead to public addresses and to these, and to no others.
    """

    def __init__(self, base_url: str, listed: Sequence[str] | None = None) -> None:
        self._base = base_url.rstrip("/")
        self._client = openai.AsyncOpenAI(
            api_key="given-with-each-call",
            base_url=base_url,
            max_retries=0,
            http_client=httpx2.AsyncClient(
                transport=_Transport(base_url, listed), timeout=None, trust_env=False, follow_redirects=False
            ),
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
        headers: dict[str, Any] = {"Authorization": f"Bearer {key}" if key else openai.Omit()}
        if form is not None:
            headers["Content-Type"] = "multipart/form-data"
        url, options = f"{self._base}{path}", UNSENT | {"headers": headers}
        token = _limit.set(limit)
        try:
            async with asyncio.timeout(timeout):
                response = await (
                    self._client.get(url, cast_to=httpx2.Response, options=options)
                    if method == "GET"
                    else self._client.post(
                        url, cast_to=httpx2.Response, options=options, content=body, body=form, files=files
                    )
                )
        except TimeoutError:
            raise Failed(Outcome.TIMEOUT, f"no whole reply within {timeout:g} s") from None
        except openai.APIStatusError as error:
            return Received(error.status_code, error.response.content, dict(error.response.headers))
        finally:
            _limit.reset(token)
        return Received(response.status_code, response.content)

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
