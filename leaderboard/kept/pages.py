"""Pages over many verdicts: a job draws them, and they are shown until newer ones are there.

The job answers the same request again, for somebody who sees the same. What it drew is shown as long as nothing was
written after which something may have to be hidden (``counters``); while other things are written, a newer one is
drawn. A web process computes boards of small benchmarks alone.
"""

import base64
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar, cast
from wsgiref.util import setup_testing_defaults

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import resolve
from django.utils import timezone
from django.utils.http import http_date, urlencode
from django.utils.safestring import mark_safe
from django_htmx.middleware import HtmxDetails

from accounts import jobs
from accounts.models import Right, User
from accounts.rules import ANONYMOUS, Viewer, allowed, class_of, grants_of, role_of
from bank import guard
from bank.models import Benchmark, Response, Sample
from leaderboard.kept import counters, hourly
from leaderboard.kept.size import verdicts_up_to
from leaderboard.kept.values import key_of, until_changed
from leaderboard.models import PreparedPage

log = logging.getLogger(__name__)
MANY = 50_000  # answers or verdicts of a benchmark, from which on a job draws its pages
MOST_WAITING = 200  # pages that nobody has drawn yet, for the same readers; of one address, fewer
MOST_WAITING_HERE, MOST_HERE = 20, 100  # pages of one address, with whatever parameters: to be drawn, and kept
RECENT = timedelta(days=1)
MOST_AGAIN = 20  # pages that are drawn again after an import, without being asked for
AGAIN_AFTER = 3  # seconds after which a page that is being drawn is asked for again
PART = "<!--part-->"  # before each part of a page, see leaderboard/_parts.html
PARTS = ("section", "social", "title", "social_title", "description", "styles", "scripts", "main", "social_alt")
TIMES = re.compile(r"<time\b.*?</time>", re.DOTALL)
KEPT = ("Content-Disposition", "Location")  # headers
LISTS = ("show", "judge")  # parameters of which all values are read; of others the last one is
WAITS = "This is being computed. Ask again in some seconds."

View = TypeVar("View", bound=Callable[..., Any])


def prepared(*takes: str, by_role: bool = False) -> Callable[[View], View]:
    """Have a job draw a view over many verdicts: of the benchmark ``name`` alone, or without one of all. ``takes``: the
    parameters that it reads, beside those of ``of_benchmark``; the job's request has no others. If kept ``by_role``, it
    must be the same for everybody of a role without rights of their own; else each person has a page.
    """

    def declare(view: View) -> View:
        every = (*takes, *getattr(view, "parameters", ()))

        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            named = kwargs.get("name")
            return answered(request, lambda: view(request, *args, **kwargs), takes=every, named=named, by_role=by_role)

        return answer  # type: ignore[return-value]

    return declare


def answered(
    request: Any,
    draw: Callable[[], HttpResponse],
    *,
    takes: Sequence[str],
    named: str | None = None,
    alone: bool = True,
    by_role: bool = False,
    accept: str = "",
    waits: Callable[[Any], HttpResponse] | None = None,
    of_recipes: bool = False,
) -> HttpResponse:
    """What ``draw`` answers, drawn here or by a job. ``takes``: the parameters that it reads; ``named``: its benchmark;
    ``alone``: whether it shows nothing of others; ``accept``: the media type, where one address has several; ``waits``:
    answers while it is first drawn; ``of_recipes``: that it is many answers by recipes, and not many verdicts, which
    take long.
    """
    if request.method not in ("GET", "HEAD") or settings.DEBUG or hasattr(request, "preparing"):
        return draw()
    pk = None
    if named:
        try:
            pk = Benchmark.objects.visible_to(request.user).named(named).pk
        except Benchmark.DoesNotExist:
            return draw()
    pk = pk if alone else None
    audience = _audience(request.user, by_role=by_role)
    asked = {
        "path": request.path,
        "query": _query(request, takes),
        "for": audience,
        "class": str(class_of(request.user if audience.isdecimal() else _viewer(audience))),
        "secure": request.is_secure(),
        "host": request.get_host(),
        "accept": accept,
    }
    key = key_of(settings.VERSION, pk, asked)
    page = PreparedPage.objects.filter(key=key).first()
    if page is not None and page.hiding == _version(pk, hiding=True):
        if page.version != (newest := _version(pk)):
            # A database that is full or locked shows what it has.
            with suppress(DatabaseError), transaction.atomic():
                _defer(page)
        return _shown(request, page, newer=page.version != newest)
    if not (is_large(pk) if pk else (sees_many_answers if of_recipes else _sees_large)(request.user)):
        return draw()
    if page is None:
        if not _has_room(asked):
            return (waits or _waits)(request)
        page, _ = PreparedPage.objects.get_or_create(key=key, defaults={"asked": asked, "benchmark_id": pk})
    _defer(page)
    return (waits or _waits)(request)


def _defer(page: PreparedPage) -> None:
    """Have a page drawn; of people who are signed in before those of strangers."""
    jobs.defer("prepare_page", first=page.asked["for"] != ANONYMOUS, page=page.pk)


@guard.working()
def is_large(benchmark: int) -> bool:
    """Whether the benchmark has many answers or verdicts. Submitted answers do not count: at first only staff know of
    them.
    """

    def large() -> bool:
        answers = Response.objects.filter(sample__benchmark=benchmark, submission=None).order_by()
        return answers[: MANY + 1].count() > MANY or verdicts_up_to(benchmark, MANY + 1) > MANY

    return until_changed(("large", benchmark), large, benchmark=benchmark)


def _sees_large(viewer: Viewer) -> bool:
    """Whether a benchmark has that the viewer may know of: nobody else learns from a page that there is one."""
    every = Benchmark.objects.visible_to(viewer).values_list("pk", flat=True)
    return until_changed(("large", class_of(viewer)), lambda: any(is_large(pk) for pk in every))


def sees_many_answers(viewer: Viewer) -> bool:
    """Whether there are many answers by recipes on benchmarks that the viewer may know of."""

    def many() -> bool:
        benchmarks = Benchmark.objects.visible_to(viewer).values("pk")
        with guard.working():
            answers = Response.all_objects.exclude(recipe=None).filter(sample__benchmark__in=benchmarks)
            return answers.order_by()[: MANY + 1].count() > MANY

    return until_changed(("many answers", class_of(viewer)), many)


def _query(request: Any, takes: Sequence[str]) -> list[tuple[str, str]]:
    """What the address says that its view reads. Whatever else it holds, it is the same page."""
    every = {name: request.GET.getlist(name) for name in sorted({*takes})}
    read = {name: values if name in LISTS else values[-1:] for name, values in every.items()}
    return [(name, value) for name, values in read.items() for value in values if value]


def _has_room(asked: dict[str, Any]) -> bool:
    """Whether one more page may wait. Pages of its address beyond the newest go, but not the one that asks for nothing
    in particular. No reader takes the room of another role's.
    """
    theirs = PreparedPage.objects.filter(asked__for=asked["for"])
    here = theirs.filter(asked__path=asked["path"])
    if theirs.filter(status=None).count() >= MOST_WAITING or here.filter(status=None).count() >= MOST_WAITING_HERE:
        return False
    drawn = here.exclude(status=None).exclude(asked__query=[]).order_by("-pk")
    PreparedPage.objects.filter(pk__in=list(drawn.values_list("pk", flat=True)[MOST_HERE - 1 :])).delete()
    return True


def _audience(viewer: Viewer, *, by_role: bool) -> str:
    # Guests of a benchmark, of whom there may be thousands, see on boards what all guests see.
    shows_more = any(rights - {Right.LABEL} for rights in grants_of(viewer).values())
    of_role = viewer.pk is None or (by_role and not shows_more)
    return role_of(viewer) if of_role else str(viewer.pk)


def _viewer(audience: str) -> Viewer:
    """Somebody of this role, or this person. Raises User.DoesNotExist."""
    if audience.isdecimal():
        return User.objects.get(pk=int(audience), is_active=True)
    return AnonymousUser() if audience == ANONYMOUS else User(role=audience)


def _version(benchmark: int | None, *, hiding: bool = False) -> str:
    return str(counters.version(benchmark, hiding=hiding))


# ---- what is shown ----


def _shown(request: Any, page: PreparedPage, *, newer: bool) -> HttpResponse:
    if page.status == 404:
        raise Http404("no such page")
    if page.status == 500:
        raise RuntimeError(f"a job could not draw {page.asked['path']}: the worker's log says why")
    text = page.content["text"]
    sealed = page.sealed and not allowed(request.user, "read-hidden")
    if PART in text:
        _, *texts = map(str.strip, text.split(PART))
        parts: dict[str, Any] = dict(zip(PARTS, texts, strict=False))  # one of an older version has fewer
        parts |= {name: mark_safe(parts.get(name, "")) for name in ("social", "social_alt")}  # noqa: S308 (from a template)
        parts |= {"made_at": page.made_at, "sealed": sealed, "newer": newer}
        return render(request, "leaderboard/prepared.html", parts, status=page.status)
    content = base64.b64decode(text) if page.content["packed"] else text
    response = HttpResponse(
        content, content_type=page.content["type"], status=page.status, headers=page.content["headers"]
    )
    if not sealed:
        response["Last-Modified"] = http_date(cast(datetime, page.made_at).timestamp())
    return response


def _waits(request: Any) -> HttpResponse:
    """For what people read, a page that opens by itself as soon as there is one; for what a page loads, a line."""
    template = "leaderboard/_being_drawn.html" if request.htmx else "leaderboard/being-drawn.html"
    response = render(request, template, {"section": "leaderboards", "again_after": AGAIN_AFTER}, status=202)
    if request.htmx:
        response.status_code = 200  # htmx puts in nothing else
    else:
        response["Refresh"] = str(AGAIN_AFTER)
    response["Retry-After"] = str(AGAIN_AFTER)
    return response


# ---- jobs ----


def prepare(page: int) -> None:
    """Draw a page, unless nothing has been written since it was drawn."""
    _prepare(page, anew=False)


def draw_anew(page: int) -> None:
    """Draw a page with what else is computed once an hour."""
    _prepare(page, anew=True)


def _prepare(page: int, *, anew: bool) -> None:
    row = PreparedPage.objects.filter(pk=page).first()
    if row is None:
        return
    version, hiding = _version(row.benchmark_id), _version(row.benchmark_id, hiding=True)
    if row.version == version and not anew:
        return
    before, started = row.content, timezone.now()
    try:
        viewer = _viewer(row.asked["for"])
        if str(class_of(viewer)) != row.asked["class"]:  # their rights have changed: they have another page now
            row.delete()
            return
        with hourly.drawing(page, anew=anew):
            response = _drawn(row, viewer)
        row.status, row.content = response.status_code, _stored(response)
    except (Http404, User.DoesNotExist):
        row.status, row.content = 404, {}
    except Exception:
        log.exception("A page could not be drawn")
        row.status, row.content = 500, {}
    if before and TIMES.sub("", row.content.get("text", "")) == TIMES.sub("", before["text"]):
        row.content = before  # a write that is withheld from the page moves none of its times
    else:
        row.made_at = started
    # Of a page of several, not all readers know of each benchmark that was written to.
    closed = Sample.objects.filter(benchmark=row.benchmark_id).exclude(closed=0)
    row.sealed = row.benchmark_id is None or closed.exists()
    row.version, row.hiding = version, hiding
    row.save()


def _drawn(page: PreparedPage, viewer: Viewer) -> HttpResponse:
    """The answer to the same request, for the same viewer or somebody of the role."""
    asked = page.asked
    scheme = "https" if asked["secure"] else "http"
    environ = {"PATH_INFO": asked["path"], "QUERY_STRING": urlencode(asked["query"]), "wsgi.url_scheme": scheme}
    environ |= {"HTTP_HOST": asked["host"], "HTTP_X_FORWARDED_PROTO": scheme, "HTTP_ACCEPT": asked["accept"]}
    setup_testing_defaults(environ)  # what every server sets
    request: Any = WSGIRequest(environ)
    request.user = viewer
    request.htmx, request.preparing = HtmxDetails(request), True
    match = request.resolver_match = resolve(asked["path"])
    with guard.serving(lambda: request.user):
        response: Any = match.func(request, *match.args, **match.kwargs)
        drawn: HttpResponse = response.render() if hasattr(response, "render") else response
        return drawn


def _stored(response: HttpResponse) -> dict[str, Any]:
    kind = response["Content-Type"]
    is_text = kind.startswith(("text/", "application/json", "image/svg"))
    text = response.content.decode() if is_text else base64.b64encode(response.content).decode()
    headers = {name: value for name, value in response.headers.items() if name in KEPT}
    return {"text": text, "packed": not is_text, "type": kind, "headers": headers}


def prepare_again() -> None:
    """Have the pages drawn again that were asked for of late, as after an import."""
    recent = PreparedPage.objects.filter(asked_at__gte=timezone.now() - RECENT).order_by("-pk")
    for pk in recent.values_list("pk", flat=True)[:MOST_AGAIN]:
        jobs.defer("prepare_page", page=pk)
