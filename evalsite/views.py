"""Health, error pages and the page of the API."""

import logging
import sys
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from bank.access import requires
from bank.models.imports import LATER, still_coming
from evalsite.checks import sqlite_in_words
from judging.models import WorkerBeat

log = logging.getLogger(__name__)
WORKER_SILENT_AFTER = 60  # seconds


@requires("read-public")
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@requires("read-public")
def readyz(request: HttpRequest) -> JsonResponse:
    """Database, storage and worker; 503 when the first two do not work."""
    checks = {"database": _database(), "storage": _storage(), "worker": _worker()}
    if sqlite := sqlite_in_words():
        checks["sqlite"] = sqlite
    broken = checks["database"] != "ok" or checks["storage"] != "ok"
    return JsonResponse(checks, status=503 if broken else 200)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception:
        log.exception("The database does not answer")
        return "does not answer"
    return "ok"


def _storage() -> str:
    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    probe = settings.MEDIA_ROOT / ".probe"
    try:
        probe.write_bytes(b"ok")
        probe.unlink(missing_ok=True)
    except OSError:
        log.exception("The data folder cannot be written")
        return "cannot be written"
    return "ok"


def _worker() -> str:
    try:
        newest = WorkerBeat.objects.order_by("-seen_at").first()
    except Exception:
        return "unknown"
    if newest is None:
        return "none seen"
    silent = (timezone.now() - newest.seen_at).total_seconds()
    return "ok" if silent < WORKER_SILENT_AFTER else f"silent for {silent:.0f} s"


@requires("read-public")
def api_docs(request: HttpRequest) -> HttpResponse:
    """The API in words: every route with its parameters, drawn from the same schema as /api/schema/."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    routes = [
        {
            "method": method.upper(),
            "path": path,
            "summary": (operation.get("description") or "").strip(),
            "parameters": operation.get("parameters", []),
            "group": path.removeprefix("/api/v1/").split("/", 1)[0],
        }
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    ]
    return render(request, "api-docs.html", {"routes": sorted(routes, key=lambda r: (r["group"], r["path"]))})


def _error(request: HttpRequest, status: int) -> HttpResponse:
    return render(request, f"errors/{status}.html", status=status)


def form_out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token no longer fits, as after a new sign-in: what was typed is kept and can be sent again.

    Only a form of our own pages is offered again, as the browser tells by Origin; what another site sent is refused.
    Passwords and files are never given back.
    """
    own = f"{request.scheme}://{request.get_host()}"
    if request.headers.get("Origin") != own:
        return _error(request, 403)
    if any("password" in name for name in request.POST):
        messages.warning(request, "That page was out of date. Please type it again.")
        return redirect(request.get_full_path())
    fields = [
        {"name": name, "value": value, "rows": min(12, 1 + value.count("\n") + len(value) // 80)}
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in map(str, values)
    ]
    context = {"fields": fields, "action": request.get_full_path(), "files": bool(request.FILES)}
    return render(request, "errors/form-out-of-date.html", context, status=403)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    if words := still_coming(sys.exc_info()[1]):
        response = render(request, "errors/503.html", {"words": words}, status=503)
        response["Retry-After"] = str(LATER)
        return response
    return _error(request, 500)
