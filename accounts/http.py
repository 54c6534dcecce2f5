"""What the views of every app share: the class of requests, who asks and for which page, what was posted, files as
answers, the address that a request came from, and where signing in leads.
"""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, TypeVar, cast

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods
from django_htmx.middleware import HtmxDetails

from accounts.models import User
from accounts.rules import labels_only

UNKNOWN = "unknown"  # a local socket has no address
form_page = require_http_methods(["GET", "HEAD", "POST"])  # a page whose form is sent back to it


class PageRequest(HttpRequest):
    """A request that has passed django-htmx's middleware."""

    htmx: HtmxDetails  # true for a request by htmx, or by one of our scripts that sends HX-Request


def person(request: HttpRequest) -> User:
    return cast(User, request.user)


def posted(request: HttpRequest) -> QueryDict | None:
    """The data of a form that was sent, an empty one too."""
    return request.POST if request.method == "POST" else None


def done(request: HttpRequest, words: str, to: Any, *args: Any) -> HttpResponse:
    """On to a page, which says what was done; ``to`` and ``args`` are those of ``redirect``."""
    messages.success(request, words)
    return redirect(to, *args)


def typed(data: QueryDict, name: str) -> str:
    """What was typed into a field, without spaces around it, and without NUL, which no database keeps."""
    return data.get(name, "").replace("\x00", "").strip()


def filters_of(request: HttpRequest, names: Iterable[str], longest: int) -> dict[str, str]:
    """Those of a list's filters that the address names."""
    values = {name: typed(request.GET, name)[:longest] for name in names}
    return {name: value for name, value in values.items() if value}


def page_of(request: HttpRequest, rows: Any, size: int) -> Page[Any]:
    """The page of these rows that the address names, else the first; its last where it names one behind."""
    return Paginator(rows, size).get_page(request.GET.get("page"))


H = TypeVar("H", bound=HttpResponseBase)


def attached(answer: H, name: str, *, kept: bool = True) -> H:
    """The answer as a file of this name. Where it holds what not everybody may read it is not ``kept`` on its way."""
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    if not kept:
        answer["Cache-Control"] = "no-store"
    return answer


def client_address(request: HttpRequest) -> str:
    """The address of the client.

    Each of TRUSTED_PROXIES appends the address it was called from to X-Forwarded-For; anything before that comes from
    the client and may be forged. A request that passed fewer proxies bypassed them, so its peer address is used.
    """
    hops = settings.TRUSTED_PROXIES
    named = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    claimed = named[-hops] if 0 < hops <= len(named) else request.META.get("REMOTE_ADDR", "")
    return _without_port(claimed) or UNKNOWN


def is_local(request: HttpRequest) -> bool:
    """Whether the request was made on this machine, and not passed on for somebody else."""
    passed_on = settings.TRUSTED_PROXIES < 1 and any(name.startswith("HTTP_X_FORWARDED") for name in request.META)
    peer = _without_port(request.META.get("REMOTE_ADDR", ""))
    return not passed_on and all(
        address and address != UNKNOWN and ip_address(address).is_loopback
        for address in (peer, client_address(request))
    )


def network_of(address: str) -> str:
    """What is counted as one place: the address, or for IPv6 the /64 network that one household controls."""
    if address == UNKNOWN:
        return address
    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network(f"{parsed}/64", strict=False))


def _without_port(text: str) -> str:
    """The address without a port; "" if it is not an address."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def of_this_site(request: HttpRequest, address: str) -> str:
    """The address if it is one of this site, else ""."""
    return address if url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure()) else ""


def way_on(request: HttpRequest, person: User, wanted: str) -> str:
    """Where signing in leads: to the person's work, unless a link of this site said where they were going."""
    usual = settings.LANDING_OF_ANNOTATORS if labels_only(person) else settings.LOGIN_REDIRECT_URL
    return of_this_site(request, wanted) or reverse(usual)
