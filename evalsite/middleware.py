"""Middleware that Django, django-csp and WhiteNoise lack."""

import fcntl
import logging
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from secrets import token_hex
from typing import cast

from django.conf import settings
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    StreamingHttpResponse,
)
from django.middleware.gzip import GZipMiddleware
from django.utils.crypto import salted_hmac

from accounts.http import client_address, network_of
from bank import guard
from evalsite import health, logs, metrics, views

PLACES = 2**16  # slots; two addresses of one minute rarely share one
PLACE = struct.Struct("<II")
MINUTE = 60
_lock = threading.Lock()  # file locks work between processes, not between threads


def count_request(address: str, *, most: int) -> int:
    """Count a request of an address; returns how many seconds to wait if it exceeds the limit per minute, else 0.

    All processes of the machine count together, in a file of fixed size in the data folder: each address has a slot,
    found by a keyed hash, with the minute and the count. The slot is locked while it is updated, so concurrent requests
    all count. None of Django's caches that need no server counts across processes, and a table would make every page
    wait for an import's writes.
    """
    now = time.time()
    minute = int(now // MINUTE)
    digest = salted_hmac("evalsite.limits", address, algorithm="sha256").digest()
    slot = int.from_bytes(digest[:8]) % PLACES * PLACE.size
    try:
        with _lock:
            count = _count(slot, minute)
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


log = logging.getLogger(__name__)
PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"
PROBES = {"/healthz": health.healthz, "/readyz": health.readyz, "/metrics": metrics.metrics}
COMPRESSED = ("text/html", "text/csv", "application/json")
METHODS = ("GET", "HEAD", "POST")
COMPUTED = ("/leaderboards/", "/snapshots/", "/find/", "/api/v1/", "/accounts/sso/")

Handler = Callable[[HttpRequest], HttpResponse]


def numbered(get_response: Handler) -> Handler:
    """Give each request an id for its log lines. It stays until the next request, because Django logs after us."""

    def middleware(request: HttpRequest) -> HttpResponse:
        logs.request_id.set(token_hex(8))
        return get_response(request)

    return middleware


def bare_head(get_response: Handler) -> Handler:
    """Send no body in response to HEAD, which servers leave to us; on a kept connection it would be read as the next
    response.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if request.method == "HEAD" and response.streaming:
            response.streaming_content = ()  # type: ignore[attr-defined]
        elif request.method == "HEAD":
            response.content = b""
        return response

    return middleware


def compressed(get_response: Handler) -> Handler:
    """Pages and rows go out compressed; pictures and files are that already. Django adds bytes at random, so that their
    length tells nothing (BREACH).
    """
    gzip = GZipMiddleware(get_response)

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.get("Content-Type", "").startswith(COMPRESSED) and not response.streaming:
            return cast(HttpResponse, gzip.process_response(request, response))
        return response

    return middleware


def headers(get_response: Handler) -> Handler:
    """Keep other origins from embedding what we send, and signed-in pages out of every cache."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        response.setdefault("Permissions-Policy", PERMISSIONS)
        if response.status_code == 503:  # who asked may not be known now
            response.setdefault("Cache-Control", "no-store")
            return response
        user = getattr(request, "user", None)
        if user is not None and user.is_authenticated:
            # Scripts may ask again by ETag; a page seen signed in is kept nowhere.
            api = request.path.startswith("/api/")
            response.setdefault("Cache-Control", "private, no-cache" if api else "no-store")
        return response

    return middleware


def probes(get_response: Handler) -> Handler:
    """Answer health probes under any host name: monitoring asks by address."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path in PROBES and request.method in ("GET", "HEAD"):
            response = PROBES[request.path](request)
            response["Cache-Control"] = "no-store"
            return response
        return get_response(request)

    return middleware


def known_methods(get_response: Handler) -> Handler:
    """Pages are got and posted to. Django would answer TRACE, OPTIONS and words of one's own as it answers GET; the API
    refuses what it does not know by itself.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.method not in METHODS and not request.path.startswith("/api/v1/"):
            return HttpResponseNotAllowed(METHODS)
        return get_response(request)

    return middleware


def unannounced_proxy(get_response: Handler) -> Handler:
    """Log once that there is a proxy in front of us that the settings do not mention."""
    told = settings.TRUSTED_PROXIES > 0

    def middleware(request: HttpRequest) -> HttpResponse:
        nonlocal told
        if not told and "HTTP_X_FORWARDED_PROTO" in request.META:
            told = True
            log.warning(
                "A request came with X-Forwarded-Proto, and TRUSTED_PROXIES is 0: nothing that a proxy says is "
                "believed. If one stands before us, set TRUSTED_PROXIES=1 (docs/operations.md)."
            )
        return get_response(request)

    return middleware


def limit_anonymous(get_response: Handler) -> Handler:
    """Limit how often anonymous visitors may request computed pages and rows."""

    def middleware(request: HttpRequest) -> HttpResponse:
        most = settings.ANONYMOUS_PER_MINUTE
        if not (most and request.path.startswith(COMPUTED)) or _known(request):
            return get_response(request)
        wait = count_request(network_of(client_address(request)), most=most)
        if not wait:
            return get_response(request)
        response = views.error(request, 429)
        response["Retry-After"] = str(wait)
        return response

    return middleware


def _known(request: HttpRequest) -> bool:
    """Signed in, or with a token: API classes check it before anything else, and refuse a wrong one."""
    by_token = request.path.startswith("/api/v1/") and request.headers.get("Authorization", "").startswith("Token ")
    return by_token or request.user.is_authenticated


def guarded(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """While the request is answered, and its answer is sent, single verdicts and answers are guarded for its user."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        with guard.serving(lambda: request.user):
            response = get_response(request)
        if isinstance(response, StreamingHttpResponse) and not isinstance(response, FileResponse):
            response.streaming_content = sent(request, cast(Iterator[bytes], response.streaming_content))
        return response

    def sent(request: HttpRequest, pieces: Iterable[bytes]) -> Iterator[bytes]:
        with guard.serving(lambda: request.user):
            yield from pieces

    return middleware
