"""Calls to endpoints: the ``openai`` package over aiohttp (ADR 14).

One call is one attempt: nothing is retried here, and each way it can end is an ``Outcome``. Memory and time are bounded
whatever the other side does: a total deadline, a size limit on the reply, no redirects followed, no cookies kept.
"""

import asyncio
import os
import socket
import time
import zlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp  # noqa: TID251
import httpx2  # noqa: TID251
import openai  # noqa: TID251
from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: TID251

from judging.endpoints.answers import WAIT_HEADERS, Answer, Failed, Outcome, Received, completed, refused
from judging.endpoints.limits import LIMIT_HEADERS, allowances
from judging.models.judges import Route

REPLY_LIMIT = 2_000_000  # bytes of one reply; a long verdict has about 10,000
CONNECT_TIMEOUT = 10.0
SHORTEST_KEY = 8  # characters; a word of its own could stand in any reply
COMPLETIONS = "/chat/completions"
# The only headers passed on: nothing that the SDK or the environment would add.
SENT_HEADERS = ("authorization", "content-type", "webhook-id", "webhook-timestamp", "webhook-signature")
TRANSLATED = IPv6Network("64:ff9b::/96")  # IPv4 in IPv6, by NAT64
GLOBAL_UNICAST = IPv6Network("2000::/3")  # RFC 4291, 2.4: all that is assigned to the internet
PROTOCOLS = IPv4Network("192.0.0.0/24")  # RFC 6890
# Not sent either, but passed, because the SDK spends time computing each default.
UNSENT: openai.RequestOptions = {"params": {}, "timeout": None, "max_retries": 0, "idempotency_key": "-"}
_limit: ContextVar[int] = ContextVar("limit", default=REPLY_LIMIT)


class PrivateAddress(OSError):
    """A host name that resolves only to this machine or to private networks."""


def is_public(address: str) -> bool:
    """Whether an IP address is on the public internet, and not this machine's or in a private network."""
    ip: IPv4Address | IPv6Address | None = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        embedded = ip.ipv4_mapped or ip.sixtofour
        if ip in TRANSLATED:
            embedded = IPv4Address(int(ip) & 0xFFFFFFFF)
        ip = embedded or ip
    if ip is None or (isinstance(ip, IPv6Address) and ip not in GLOBAL_UNICAST) or ip in PROTOCOLS:
        return False
    return ip.is_global and not ip.is_multicast


class PublicResolver(AbstractResolver):
    """Resolves host names and drops private addresses, unless the address itself, or "localhost", is listed.

    The connection goes to exactly these addresses, so a DNS answer that changes a moment later does no harm.
    """

    def __init__(self, listed: Sequence[str], resolver: AbstractResolver | None = None) -> None:
        self._listed = listed
        self._resolver = resolver or aiohttp.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        results = await self._resolver.resolve(host, port, family)
        if host == "localhost" and host in self._listed:
            return results
        allowed = [result for result in results if is_public(result["host"]) or result["host"] in self._listed]
        if results and not allowed:
            raise PrivateAddress(host)
        return allowed

    async def close(self) -> None:
        await self._resolver.close()


def _failure(error: Exception) -> Failed:
    """How a call ended without a response."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Failed(Outcome.UNREACHABLE, f"no connection within {CONNECT_TIMEOUT:.0f} s")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        if isinstance(error.os_error, PrivateAddress):
            return Failed(Outcome.SETUP, "its name resolves to a private address, which is not listed itself")
        return Failed(Outcome.UNREACHABLE, "its name cannot be resolved")
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Failed(Outcome.UNREACHABLE, "its TLS certificate was not accepted")
    if isinstance(error, aiohttp.ClientConnectorError):
        words = os.strerror(error.os_error.errno) if error.os_error.errno else "no connection"
        return Failed(Outcome.UNREACHABLE, words.lower())
    if isinstance(error, aiohttp.InvalidURL):
        return Failed(Outcome.SETUP, "the address is not a URL")
    return Failed(Outcome.TRANSIENT, "the connection broke off")


class _Transport(httpx2.AsyncBaseTransport):
    """HTTP for the SDK on aiohttp: resolves with ``PublicResolver``, and takes a third of the CPU of the SDK's own."""

    def __init__(self, route: Route) -> None:
        self._proxy = _proxy_for(route.base_url)
        self._sent = (*SENT_HEADERS, route.key_header, *(name for name, _ in route.headers))
        # A proxy resolves names itself. A judge at "localhost" is listed by that name or its port: checked by its URL.
        resolver = None if route.listed is None or self._proxy else PublicResolver([*route.listed, "localhost"])
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, resolver=resolver),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "evalsite"},
            auto_decompress=False,
            trust_env=False,  # it would send credentials from ~/.netrc
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: request.headers[name] for name in self._sent if name in request.headers}
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
                given = {name: response.headers.get(name, "") for name in (*WAIT_HEADERS, *LIMIT_HEADERS)}
                kept = {name: value for name, value in given.items() if value and value.isascii()}
                return httpx2.Response(response.status, headers=kept, content=content)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a key with a line break in it
            raise _failure(error) from None

    async def aclose(self) -> None:
        await self._session.close()


class Endpoint:
    """What is at the end of a route; lives as long as its event loop. Nothing from the environment is sent to it."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._client = openai.AsyncOpenAI(
            api_key="given-with-each-call",
            base_url=route.base_url,
            max_retries=0,
            http_client=httpx2.AsyncClient(
                transport=_Transport(route), timeout=None, trust_env=False, follow_redirects=False
            ),
        )

    async def complete(self, body: bytes, *, key: str, timeout: float) -> Answer:
        """Make one call. It ends within ``timeout`` seconds and raises nothing but cancellation."""
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
            answer = replace(answer, allowances=tuple(allowances(received.headers, now=datetime.now(UTC))))
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
        signature: Mapping[str, str] | None = None,
    ) -> Received:
        """Send one request to a path below the base URL: a JSON body, or a form with files. Raises Failed."""
        headers: dict[str, Any] = {"Authorization": openai.Omit(), **dict(self._route.headers), **(signature or {})}
        if key and self._route.key_header:
            headers[self._route.key_header] = key
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        if form is not None:
            headers["Content-Type"] = "multipart/form-data"
        query = f"?{self._route.query}" if self._route.query else ""
        url, options = f"{self._route.base_url.rstrip('/')}{path}{query}", UNSENT | {"headers": headers}
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
            content = _without_key(error.response.content, key)
            return Received(error.status_code, content, dict(error.response.headers))
        finally:
            _limit.reset(token)
        return Received(response.status_code, _without_key(response.content, key), dict(response.headers))

    async def close(self) -> None:
        await self._client.close()


class Endpoints:
    """The long-lived clients of one event loop, one per route."""

    def __init__(self) -> None:
        self._endpoints: dict[Route, Endpoint] = {}

    def at(self, route: Route) -> Endpoint:
        if route not in self._endpoints:
            self._endpoints[route] = Endpoint(route)
        return self._endpoints[route]

    async def close(self) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self._endpoints.clear()


def _without_key(content: bytes, key: str) -> bytes:
    """A reply without the key, which some endpoints repeat in their errors."""
    return content.replace(key.encode(), b"(the key)") if len(key) >= SHORTEST_KEY else content


def _proxy_for(base_url: str) -> str | None:
    """The environment's proxy for a URL, if any."""
    parts = urlsplit(base_url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


async def received(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The body of a response; None where it is longer than the limit."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            response.close()
            return None
    return bytes(body)


async def _bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = await received(response, limit)
    if body is None:
        raise Failed(Outcome.GARBAGE, "the reply is too long for a verdict")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return body
    try:
        plain = zlib.decompressobj(wbits=47).decompress(body, limit + 1)
    except zlib.error:
        raise Failed(Outcome.GARBAGE, "the reply has an encoding that was not requested") from None
    if len(plain) > limit:
        raise Failed(Outcome.GARBAGE, "the reply is too long for a verdict")
    return plain
