"""What Django, django-csp and WhiteNoise do not do to every request and answer."""

import fcntl
import logging
import os
import struct
import threading
import time
from collections.abc import Callable
from secrets import token_hex

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac
from structlog.contextvars import bind_contextvars, clear_contextvars

from accounts.http import client_address, network_of
from evalsite import health, views

PLACES = 2**16  # two addresses of a minute rarely share one
PLACE = struct.Struct("<II")
MINUTE = 60
_lock = threading.Lock()  # locks of files hold between processes, not between threads


def count_request(address: str, *, most: int) -> int:
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


log = logging.getLogger(__name__)
PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"
HEALTH = {"/healthz": health.healthz, "/readyz": health.readyz}
COMPUTED = ("/leaderboards/", "/snapshots/", "/find/", "/api/v1/")

Handler = Callable[[HttpRequest], HttpResponse]


def numbered(get_response: Handler) -> Handler:
    """Give each request an id that its log lines carry. It stays until the next one: Django logs after all of us."""

    def middleware(request: HttpRequest) -> HttpResponse:
        clear_contextvars()
        bind_contextvars(request_id=token_hex(8))
        return get_response(request)

    return middleware


def bare_head(get_response: Handler) -> Handler:
    """Send no body in answer to HEAD, as servers leave to us; on a kept connection it would be the next answer."""

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
    """Tell of health whatever name we are called by: what watches us asks by address."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path in HEALTH and request.method in ("GET", "HEAD"):
            response = HEALTH[request.path](request)
            response["Cache-Control"] = "no-store"
            return response
        return get_response(request)

    return middleware


def unannounced_proxy(get_response: Handler) -> Handler:
    """Say once in the log that a proxy stands before us of which the settings know nothing."""
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
    """Let nobody who is not signed in ask for computed pages and rows as often as they like."""

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
    """Signed in, or with a token: an API class looks at it before anything else, and refuses a wrong one."""
    by_token = request.path.startswith("/api/v1/") and request.headers.get("Authorization", "").startswith("Token ")
    return by_token or request.user.is_authenticated
