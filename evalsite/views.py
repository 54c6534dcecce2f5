"""Error pages, the API page and its schema."""

import json
import sys
from functools import cache
from threading import Lock
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer

from accounts.rules import requires
from bank.errors import RETRY_AFTER, outage
from evalsite.api_document import JSON, fields_in, kind_of, resolved

_making = Lock()  # drf-spectacular loads itself with the first schema, which two threads at once break


def _schema() -> dict[str, Any]:
    """The OpenAPI schema. It takes a second to build and is the same for everybody: built once per process."""
    with _making, translation.override("en"):
        return _build_schema()


@cache
def _build_schema() -> dict[str, Any]:
    return dict(SchemaGenerator().get_schema(request=None, public=True))


@cache
def _rendered(renderer: type[OpenApiYamlRenderer | OpenApiJsonRenderer]) -> bytes:
    return bytes(renderer().render(_schema(), renderer_context={}))


@requires("read-public")
def api_schema(request: HttpRequest) -> HttpResponse:
    """The schema, as YAML unless JSON is asked for by ``?format=json`` or by Accept."""
    plain = request.get_preferred_type(["application/vnd.oai.openapi", "application/yaml", "application/json"])
    asked = request.GET.get("format", "json" if "json" in (plain or "") else "yaml")
    renderer = OpenApiJsonRenderer if asked == "json" else OpenApiYamlRenderer
    response = HttpResponse(_rendered(renderer), content_type=renderer.media_type)
    response["Content-Disposition"] = f'inline; filename="evalsite.{renderer.format}"'
    response["Vary"] = "Accept"
    return response


def _call(method: str, path: str, body: JSON) -> str:
    """A call with curl; ``body``: what it takes, by media type."""
    lines = [f'curl -H "Authorization: Token $TOKEN" "$SITE{path.replace("{", "<").replace("}", ">")}"']
    if method.upper() not in ("GET", "HEAD"):
        lines[0] = lines[0].replace("curl", f"curl -X {method.upper()}", 1)
    if "example" in body.get("application/json", {}):
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d '{json.dumps(body['application/json']['example'], ensure_ascii=False)}'")
    elif body:
        schemas = _schema()["components"]["schemas"]
        sent = resolved(next(iter(body.values())).get("schema", {}), schemas)
        is_file = {name: resolved(field, schemas).get("format") == "binary" for name, field in fields_in(sent).items()}
        lines += [f"-F {name}={'@FILE' if file else '…'}" for name, file in is_file.items()]
    return " \\\n     ".join(lines)


def _fields(schema: JSON, *, sent: bool = False) -> list[JSON]:
    """The fields of an object, or of those in a list, each with its type and words; ``sent``: those one may send."""
    schemas = _schema()["components"]["schemas"]
    body = resolved(schema, schemas)
    if body.get("type") == "array":
        body = resolved(body["items"], schemas)
    if "results" in body.get("properties", {}):
        body = resolved(body["properties"]["results"]["items"], schemas)
    needed = body.get("required", ())
    return [
        {"name": name, "kind": kind_of(field, schemas), "needed": name in needed, "words": field.get("description", "")}
        for name, field in (fields_in(body) if sent else body.get("properties", {})).items()
    ]


def _parameter(parameter: JSON) -> JSON:
    kind = kind_of(parameter["schema"], _schema()["components"]["schemas"])
    words = parameter.get("description", "")
    return {"name": parameter["name"], "kind": kind, "needed": parameter.get("required", False), "words": words}


@cache
def _routes() -> list[JSON]:
    paths = _schema()["paths"]
    routes = [_route(path, *operation) for path, operations in paths.items() for operation in operations.items()]
    return sorted(routes, key=lambda route: (route["group"], route["path"]))


def _route(path: str, method: str, operation: JSON) -> JSON:
    body = operation.get("requestBody", {}).get("content", {})
    answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    contents = [each for answer in answers for each in answer.get("content", {}).values()]
    return {
        "method": method.upper(),
        "path": path,
        "summary": (operation.get("description") or "").strip(),
        "tables": [
            ("Parameters", [_parameter(each) for each in operation.get("parameters", [])]),
            ("What it takes", _fields(next((each.get("schema", {}) for each in body.values()), {}), sent=True)),
            ("What it gives", _fields(next((each.get("schema", {}) for each in contents), {}))),
        ],
        "example": _call(method, path, body),
        "group": path.removeprefix("/api/v1/").split("/", 1)[0],
    }


@requires("read-public")
def api_docs(request: HttpRequest) -> HttpResponse:
    """The API in words: every route with its parameters, drawn from the same schema as /api/schema/."""
    return render(request, "api-docs.html", {"routes": _routes()})


API_SAYS = {
    400: "This request cannot be understood.",
    403: "You may not do this.",
    404: "There is nothing here.",
    429: "Too many requests from your address. Wait a minute, or sign in.",
    500: "Something broke on our side. It was logged; nothing was half stored.",
    503: "The database does not answer.",
}


def error(request: HttpRequest, status: int, words: str = "") -> HttpResponse:
    """An error page or, for a script, its message as JSON."""
    if request.path.startswith("/api/v1/"):
        return JsonResponse({"detail": words or API_SAYS[status]}, status=status)
    # Where something is broken, the page asks nothing of the database: it is that of somebody who is signed out.
    asks = None if status in (429, 500, 503) else request
    return HttpResponse(render_to_string(f"errors/{status}.html", {"words": words}, asks), status=status)


def form_out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose CSRF token is no longer valid, for example after a new sign-in: the input is kept and can be sent
    again.

    Only forms of our own pages are offered again, as the browser's Origin header tells; requests from other sites are
    refused. Passwords and files are never sent back.
    """
    our_origin = f"{request.scheme}://{request.get_host()}"
    if request.headers.get("Origin") != our_origin:
        return error(request, 403)
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
    return error(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """503 if the machine is at fault and may recover soon, else 500."""
    words = outage(sys.exc_info()[1])
    response = error(request, 503 if words else 500, words or "")
    if words:
        response["Retry-After"] = str(RETRY_AFTER)
    return response
