"""Pictures that a benchmark knows by their address only, fetched by command and never by the web server.

Only from hosts that are listed, over connections to public addresses, a few at a time; each redirect is a new address
and is checked like the first. A picture is checked and stored as an uploaded one is.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

import aiohttp  # noqa: TID251
from django.conf import settings
from yarl import URL

from accounts.loop import db
from bank import images
from bank.models import Benchmark, Sample
from bank.samples import editor
from judging.endpoints.client import PrivateAddress, PublicResolver, is_public, received

LARGEST = 32 * 2**20  # bytes of one picture
WAIT = 60.0  # seconds for one picture, redirects included
AT_ONCE = 4
MOST_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
TRIES = 2  # of what may go away by itself
PAUSE = 1.0  # seconds between them


class NotFetched(Exception):
    """A picture that could not be fetched; says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A picture of a sample that is not here, by its position and address."""

    sample: int
    key: str
    position: int
    url: str

    @property
    def host(self) -> str:
        return host_of(self.url)


def host_of(url: str) -> str:
    """The host of an http or https address as the HTTP client reads it; empty for what is none.

    The client rewrites other spellings of a host (full-width digits, circled letters); what is checked is what is
    asked.
    """
    try:
        parts = URL(url.strip())
        return (parts.host or "").lower().removesuffix(".") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def wanted(benchmark: Benchmark) -> list[Wanted]:
    """The pictures of a benchmark that have an address and are not stored, in the samples' order."""
    rows = Sample.objects.filter(benchmark=benchmark).exclude(absent_images=[]).order_by("position", "pk")
    return [
        Wanted(pk, key, image["position"], image["url"])
        for pk, key, absent in rows.values_list("pk", "key", "absent_images")
        for image in absent
        if image.get("url")
    ]


async def fetch(pictures: Sequence[Wanted], *, hosts: Sequence[str]) -> AsyncIterator[tuple[Wanted, str]]:
    """Fetch and store these pictures; yields each with what kept it from being stored, empty for none.

    Each is stored at once, so a call that is interrupted goes on where it stopped.
    """
    # The resolver lets through public addresses and those that the installation lists themselves.
    connector = aiohttp.TCPConnector(limit=AT_ONCE, resolver=PublicResolver(settings.IMAGE_HOSTS))
    timeout = aiohttp.ClientTimeout(total=WAIT, sock_connect=10)
    headers = {"user-agent": "evalsite", "accept": "image/png,image/jpeg,image/webp"}
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, headers=headers, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        waiting = iter(pictures)
        going: dict[asyncio.Task[str], Wanted] = {}
        try:
            while True:
                for picture in waiting:
                    going[asyncio.create_task(_fetch_one(session, picture, hosts))] = picture
                    if len(going) >= AT_ONCE:
                        break
                if not going:
                    return
                done, _ = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield going.pop(task), task.result()
        finally:
            for task in going:
                task.cancel()
            await asyncio.gather(*going, return_exceptions=True)


async def _fetch_one(session: aiohttp.ClientSession, picture: Wanted, hosts: Sequence[str]) -> str:
    try:
        data = await _received(session, picture.url, hosts)
        stored = await asyncio.to_thread(images.ingest, data)
    except (NotFetched, images.NotAnImage) as error:
        return str(error)
    await db(
        editor.bring_picture,
        sample=picture.sample,
        position=picture.position,
        picture=stored,
        note=f"Picture fetched from {picture.host}",
    )
    return ""


async def _received(session: aiohttp.ClientSession, url: str, hosts: Sequence[str]) -> bytes:
    """The bytes at an address, after redirects. Raises NotFetched."""
    for attempt in range(TRIES):
        try:
            at = url
            for _ in range(MOST_REDIRECTS + 1):
                _check(at, hosts)
                async with session.get(at, allow_redirects=False) as response:
                    if response.status in REDIRECTS and response.headers.get("location"):
                        at = urljoin(at, response.headers["location"])
                        continue
                    if response.status >= 500 and attempt + 1 < TRIES:
                        break
                    if response.status != 200:
                        raise NotFetched(f"{host_of(at)} answers {response.status}")
                    return await _bounded(response)
            else:
                raise NotFetched(f"more than {MOST_REDIRECTS} redirects")
        except aiohttp.ClientConnectorDNSError as error:
            if isinstance(error.os_error, PrivateAddress):
                raise NotFetched(f"{host_of(at)} is a private address") from None
            raise NotFetched(f"{host_of(at)} cannot be found") from None
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            if attempt + 1 == TRIES:
                late = isinstance(error, TimeoutError)
                words = f"no whole picture within {WAIT:.0f} s" if late else "the connection broke off"
                raise NotFetched(f"{host_of(at)}: {words}") from None
        await asyncio.sleep(PAUSE)
    raise NotFetched(f"{host_of(url)} answers with an error")


def _check(url: str, hosts: Sequence[str]) -> None:
    """Raises NotFetched for an address that may not be asked."""
    host = host_of(url)
    if not host:
        raise NotFetched("the address is neither http nor https")
    if host not in hosts:
        raise NotFetched(f"{host} is not among the hosts that pictures may come from")
    try:
        private = not is_public(host)
    except ValueError:
        private = False  # a name: the resolver checks what it stands for
    if private and host not in settings.IMAGE_HOSTS:
        raise NotFetched(f"{host} is a private address")


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = await received(response, LARGEST)
    if body is None:
        raise NotFetched(f"larger than {LARGEST // 2**20} MB")
    return body
