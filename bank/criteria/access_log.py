"""Who read criteria, when, how and why: pages of the access log, newest first.

Pages are keyed by primary key, so the thousandth is as fast as the first. Dates become bounds on the key, because
records are written in chronological order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from accounts.models import User
from bank.database import keyset
from bank.models import AccessedSample, CriteriaAccess, Sample

PAGE = 50
NAMED = 3  # samples named in a row of the page
NAMED_IN_FILE = 100
COMPUTATIONS = ("boards", "judging", "recipe", "scoring")  # ways in which nobody reads
PASSING = ("labelling", "redaction")  # ways in which pages read for whoever opens them, annotators above all
# What a reading was for, where nobody gave a reason.
PURPOSES = {
    "boards": "to count answers against their keys",
    "judging": "for the prompts of a run",
    "recipe": "for what a recipe asks",
    "scoring": "to score a submission",
    "labelling": "shown to an annotator by the campaign",
    "redaction": "to take criteria out of a text that was shown",
    "page": "opened on the sample's page",
    "editor": "opened in the editor",
    "history": "opened in the history of a sample",
    "judgment page": "opened with a judgment",
    "prompt preview": "opened with a preview of a prompt",
    "quality": "to look for faults of samples",
    "drafts": "to compare drafts",
    "release": "to read an analysis before its release",
    "api": "asked for by the API",
    "command": "by a command",
}


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Filters of the log; empty values do not filter."""

    person: str = ""  # a user name, or a command's name
    how: str = ""
    computed: bool = True  # with what boards, runs and scores read by themselves
    passing: bool = True  # with what is read for whoever opens a page, such as an annotator's item
    sample: str = ""  # a key, in any benchmark
    sample_id: int | None = None
    since: date | None = None  # days in UTC, inclusive
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A record with the first of its samples: (id, benchmark, key), the latter two empty if the sample was deleted."""

    access: CriteriaAccess
    samples: Sequence[tuple[int, str, str]]

    @property
    def purpose(self) -> str:
        """What it was for, where nobody gave a reason."""
        return PURPOSES.get(self.access.how, "")

    @property
    def more(self) -> int:
        return self.access.sample_count - len(self.samples)


@dataclass(frozen=True, slots=True)
class LogPage:
    rows: list[Row] = field(default_factory=list)
    older: int | None = None  # key where the next page starts
    newer: int | None = None

    @property
    def has_about(self) -> bool:
        return any(row.access.about for row in self.rows)


def ways() -> list[str]:
    """Every ``how`` in the log, with one index lookup each."""
    names: list[str] = []
    while (next_one := _next_way(names[-1] if names else "")) is not None:
        names.append(next_one)
    return names


def _next_way(after: str) -> str | None:
    return CriteriaAccess.objects.filter(how__gt=after).order_by("how").values_list("how", flat=True).first()


def page(asked: LogFilter, *, before: int | None = None, after: int | None = None) -> LogPage:
    """The newest records, or those before (older) or after (newer) a key."""
    newwards = after is not None
    place = after if newwards else before
    matching = _keys(asked, place, newwards=newwards, limit=PAGE + 1)
    keys, has_newer, has_older = keyset.cut(matching, PAGE, begun=place is not None, backwards=newwards)
    return LogPage(
        rows=_rows(keys, NAMED),
        older=keys[-1] if keys and has_older else None,
        newer=keys[0] if keys and has_newer else None,
    )


def everything(asked: LogFilter) -> Iterator[Row]:
    """All records, newest first, for a file."""
    last: int | None = None
    while keys := _keys(asked, last, limit=1000):
        yield from _rows(keys, NAMED_IN_FILE)
        last = keys[-1]


def _keys(asked: LogFilter, place: int | None, *, newwards: bool = False, limit: int) -> list[int]:
    """Keys of matching records beyond a place, newest first; ``newwards`` those before it, from the nearest on."""
    if not ((asked.computed and asked.passing) or asked.how):
        # Way by way: the index has each in order, and computations may be a million.
        left_out = (*(() if asked.computed else COMPUTATIONS), *(() if asked.passing else PASSING))
        kept = [replace(asked, how=way) for way in ways() if way not in left_out]
        keys = {key for each in kept for key in _keys(each, place, newwards=newwards, limit=limit)}
        return sorted(keys, reverse=not newwards)[:limit]
    conditions = _conditions(asked)
    if conditions is None:
        return []
    start = None if place is None else (0, place)
    ids = _sample_ids(asked)
    if ids is None:
        order = keyset.Keyset(descending=True)
        rows = order.beyond(CriteriaAccess.objects.filter(**conditions), start, backwards=newwards)
        return list(rows.order_by(*order.ordering(backwards=newwards)).values_list("pk", flat=True)[:limit])
    # Query from the sample's side: its index has the records in order.
    moved = {f"access__{name}".replace("access__pk", "access_id"): value for name, value in conditions.items()}
    order = keyset.Keyset(descending=True, key="access_id")
    touched = order.beyond(AccessedSample.objects.filter(sample_id__in=ids, **moved), start, backwards=newwards)
    touched = touched.order_by(*order.ordering(backwards=newwards))
    return list(touched.values_list("access_id", flat=True).distinct()[:limit])


def _conditions(asked: LogFilter) -> dict[str, Any] | None:
    """The filters of CriteriaAccess; None if nothing can match."""
    conditions: dict[str, Any] = {}
    if asked.how:
        conditions["how"] = asked.how
    if asked.person:
        user = User.objects.filter(username=asked.person).first()
        conditions |= {"who": user} if user else {"by_command": asked.person}
    if asked.since:
        conditions["at__gte"] = start = datetime.combine(asked.since, time(), UTC)
        first = CriteriaAccess.objects.filter(at__gte=start).order_by("at").values_list("pk", flat=True).first()
        if first is None:
            return None
        conditions["pk__gte"] = first
    if asked.until:
        conditions["at__lt"] = end = datetime.combine(asked.until, time(), UTC) + timedelta(days=1)
        last = CriteriaAccess.objects.filter(at__lt=end).order_by("-at").values_list("pk", flat=True).first()
        if last is None:
            return None
        conditions["pk__lte"] = last
    return conditions


def _sample_ids(asked: LogFilter) -> list[int] | None:
    if asked.sample_id is not None:
        return [asked.sample_id]
    if asked.sample:
        return list(Sample.objects.filter(key=asked.sample).order_by().values_list("pk", flat=True)[:200])
    return None


def _rows(keys: Sequence[int], named: int) -> list[Row]:
    records = CriteriaAccess.objects.select_related("who").in_bulk(keys)
    firsts: QuerySet[AccessedSample, Any] = (
        AccessedSample.objects.filter(access__in=keys)
        .annotate(place=Window(RowNumber(), partition_by="access_id", order_by=F("pk").asc()))
        .filter(place__lte=named)
        .order_by("pk")
        .values_list("access_id", "sample_id")
    )
    listed = list(firsts)
    columns = ("pk", "benchmark__slug", "benchmark__version", "key")
    sample_names = {
        pk: (f"{slug}@{version}", key)
        for pk, slug, version, key in Sample.objects.filter(pk__in={sample for _, sample in listed})
        .order_by()
        .values_list(*columns)
    }
    samples: dict[int, list[tuple[int, str, str]]] = {}
    for access, sample in listed:
        samples.setdefault(access, []).append((sample, *sample_names.get(sample, ("", ""))))
    return [Row(records[key], samples.get(key, [])) for key in keys]
