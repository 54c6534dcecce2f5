"""The access log of criteria, for administrators."""

from collections.abc import Iterator
from datetime import date

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts import csv
from accounts.http import filters_of
from accounts.rules import requires
from bank.criteria import access_log
from bank.criteria.access_log import LogFilter
from bank.forms.fields import whole_number

HEAD = ("time", "who", "how", "about", "samples", "sample_ids", "reason")
# In place of a way: what staff read on purpose; with what pages read for whoever opens them; with computations, too.
STAFF, PEOPLE, ALL = "staff", "people", "all"
FILTERS = ("person", "how", "sample", "sample_id", "since", "until")
NOT_A_DAY = "Days are written like 2026-03-31; this filter was left out."


@requires("administer")
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Who read criteria, when, how, of which samples and why; newest first."""
    log_filter, problem = _asked(request, usual=STAFF)
    log = access_log.page(log_filter, before=_key(request, "before"), after=_key(request, "after"))
    values = filters_of(request, FILTERS, 200)
    context = {
        "section": "access-log",
        "log": log,
        "asked": log_filter,
        "given": values,
        "ways": access_log.ways(),
        "problem": problem,
        "query": urlencode(values),
        "export": urlencode({"how": STAFF} | values),
    }
    return render(request, "bank/access-log.html", context)


@requires("administer")
@require_safe
def export(request: HttpRequest) -> HttpResponseBase:
    """The same records as CSV, all pages. Of many samples the first hundred ids are listed."""
    asked, _ = _asked(request)
    return csv.download("criteria-access.csv", HEAD, _rows(asked))


def _rows(asked: LogFilter) -> Iterator[list[object]]:
    for row in access_log.everything(asked):
        access = row.access
        ids = " ".join(str(pk) for pk, _, _ in row.samples) + (" ..." if row.more else "")
        yield [
            access.at.isoformat(timespec="seconds"),
            access.who.username if access.who else access.by_command,
            access.how,
            access.about,
            access.sample_count,
            ids,
            access.reason,
        ]


def _asked(request: HttpRequest, *, usual: str = PEOPLE) -> tuple[LogFilter, str]:
    """The filters in the URL, and a message if one is invalid. ``usual``: whose readings where it does not say."""
    values, days, problem = filters_of(request, FILTERS, 200), {}, ""
    for name in ("since", "until"):
        try:
            days[name] = date.fromisoformat(values[name]) if name in values else None
            if days[name] == date.max:
                raise ValueError
        except ValueError:
            days[name], problem = None, NOT_A_DAY
    whose = values.get("how", usual)
    log_filter = LogFilter(
        person=values.get("person", ""),
        how="" if whose in (STAFF, PEOPLE, ALL) else whose,
        computed=whose not in (STAFF, PEOPLE),
        passing=whose != STAFF,
        sample=values.get("sample", ""),
        sample_id=_key(request, "sample_id"),
        since=days["since"],
        until=days["until"],
    )
    return log_filter, problem


def _key(request: HttpRequest, name: str) -> int | None:
    """A key in the URL; None if it is not valid."""
    return whole_number(request.GET.get(name))
