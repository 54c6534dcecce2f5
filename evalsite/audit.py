"""The audit log, for administrators: who did what with their rights, as a page and as a file."""

import csv
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts.audit import ACTIONS
from accounts.models import AuditEntry
from bank.access import requires
from bank.formats.generic import escape

A_PAGE = 100
FILTERS = ("person", "action", "since", "until")
HEAD = ("number", "time", "action", "who", "about", "address", "details", "digest")
NOT_A_DAY = "Days are written like 2026-03-31; this filter was left out."


@requires("administer")
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """What was done, newest first, by action, person and day."""
    found, given, problem = _found(request)
    shown = Paginator(found, A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "audit",
        "page": shown,
        "rows": [(entry, ACTIONS.get(entry.action, entry.action), _told(entry.details)) for entry in shown],
        "given": given,
        "query": urlencode(given),
        "actions": ACTIONS.items(),
        "problem": problem,
    }
    return render(request, "accounts/audit.html", context)


@requires("administer")
@require_safe
def export(request: HttpRequest) -> HttpResponseBase:
    """The same entries as CSV, all of them, oldest first, with the digests that chain them."""
    found, _, _ = _found(request)
    response = StreamingHttpResponse(_lines(found.order_by("number")), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit-log.csv"'
    return response


def _told(details: dict[str, Any]) -> list[tuple[str, str]]:
    """Each detail in short, and in full where that leaves something out."""
    return [
        (f"{len(value)} {name}", ", ".join(map(str, value))) if isinstance(value, list) else (f"{name} {value}", "")
        for name, value in details.items()
        if value is not False
    ]


class _Line:
    """What csv.writer writes to: hands each line on."""

    def write(self, text: str) -> str:
        return text


def _lines(found: "QuerySet[AuditEntry]") -> Iterator[str]:
    writer: Any = csv.writer(_Line())
    yield writer.writerow(HEAD)
    for one in found.iterator():
        details = " ".join(f"{name}={value}" for name, value in one.details.items())
        cells = [one.action, one.name or one.command, one.about, one.address, details, one.digest]
        yield writer.writerow([one.number, one.at.isoformat(timespec="seconds"), *map(escape, cells)])


def _found(request: HttpRequest) -> tuple["QuerySet[AuditEntry]", dict[str, str], str]:
    """The entries that the address asks for, its filters, and what is wrong with them in words."""
    given = {name: request.GET.get(name, "").strip().replace("\x00", "")[:150] for name in FILTERS}
    given, problem = {name: value for name, value in given.items() if value}, ""
    if given.get("action") not in ACTIONS:
        given.pop("action", None)
    found = AuditEntry.objects.select_related("who").order_by("-number")
    if "person" in given:
        found = found.filter(Q(name=given["person"]) | Q(command=given["person"]) | Q(about=given["person"]))
    if "action" in given:
        found = found.filter(action=given["action"])
    for name, lookup, days in (("since", "at__gte", 0), ("until", "at__lt", 1)):
        if name in given:
            try:
                day = date.fromisoformat(given[name]) + timedelta(days=days)
                found = found.filter(**{lookup: datetime.combine(day, time.min, tzinfo=UTC)})
            except (ValueError, OverflowError):
                problem = NOT_A_DAY
    return found, given, problem
