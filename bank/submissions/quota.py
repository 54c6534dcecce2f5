"""How many submissions a person has left. Counted in the database: exact for concurrent requests from any process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F

from accounts.models import User
from bank.models import Benchmark, FileLease, SubmissionCount, SubmissionRules
from bank.submissions import Exceeded

ALL = "all"
CHECKS_PER_HOUR = 60
LEASE = timedelta(minutes=5)  # after which the file of a process that died keeps nobody waiting


@dataclass(frozen=True, slots=True)
class Left:
    """Submissions left today and in total; None means no limit."""

    today: int | None
    in_all: int | None

    @property
    def none(self) -> bool:
        return 0 in (self.today, self.in_all)


def _day(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def _until(now: datetime, *, hour: bool = False) -> int:
    """Seconds until the next hour or day, in UTC."""
    now = now.astimezone(UTC)
    start = now.replace(minute=0, second=0, microsecond=0)
    end = start + timedelta(hours=1) if hour else start.replace(hour=0) + timedelta(days=1)
    return max(1, int((end - now).total_seconds()) + 1)


def left(*, rules: SubmissionRules, person: User, now: datetime) -> Left:
    """The submissions that a person has left. Only ``spend`` is binding."""
    counts = SubmissionCount.objects.filter(benchmark=rules.benchmark_id, person=person, period__in=[ALL, _day(now)])
    used = dict(counts.values_list("period", "used"))
    rest = {
        period: None if limit is None else max(0, limit - used.get(period, 0)) for period, limit in _limits(rules, now)
    }
    return Left(rest[_day(now)], rest[ALL])


def _limits(rules: SubmissionRules, now: datetime) -> list[tuple[str, int | None]]:
    """The limit of each period that counts a submission."""
    return [(_day(now), rules.per_day), (ALL, rules.in_all)]


def refuse(*, rules: SubmissionRules, have: Left, now: datetime) -> None:
    """Raises Exceeded if nothing is left."""
    if have.none:
        raise _used_up(rules, ALL if have.in_all == 0 else _day(now), now)


@transaction.atomic
def spend(*, rules: SubmissionRules, person: User, now: datetime) -> None:
    """Count one submission, for the day and in total. Raises Exceeded without counting."""
    for period, limit in _limits(rules, now):
        if not _take(rules.benchmark_id, person, period, limit):
            raise _used_up(rules, period, now)


@transaction.atomic
def spend_check(*, benchmark: Benchmark, person: User, now: datetime) -> None:
    """Count one check of a file that makes no submission. Raises Exceeded."""
    period = f"check {now.astimezone(UTC):%Y-%m-%dT%H}"
    if not _take(benchmark.pk, person, period, CHECKS_PER_HOUR):
        message = f"{CHECKS_PER_HOUR} files an hour are checked for one person; wait until the hour is over."
        raise Exceeded(message, _until(now, hour=True))
    old = SubmissionCount.objects.filter(benchmark=benchmark, person=person, period__startswith="check ")
    old.exclude(period=period).delete()


@contextmanager
def one_at_a_time(*, person: User, now: datetime) -> Iterator[None]:
    """Read one file of a person at a time, whichever process reads it. Raises Exceeded while another one is read."""
    until = now + LEASE
    FileLease.objects.bulk_create([FileLease(person=person, until=now)], ignore_conflicts=True)
    if not FileLease.objects.filter(person=person, until__lte=now).update(until=until):
        raise Exceeded("Another file of yours is being read. Send this one when that is done.", 5)
    try:
        yield
    finally:
        FileLease.objects.filter(person=person, until=until).update(until=now)


def lock_person(*, benchmark: int, person: int) -> None:
    """Within a transaction: let nobody else score a submission of this person to this benchmark until it ends."""
    key = {"benchmark_id": benchmark, "person_id": person, "period": ALL}
    SubmissionCount.objects.bulk_create([SubmissionCount(**key)], ignore_conflicts=True)
    SubmissionCount.objects.select_for_update().get(**key)


def _take(benchmark: int, person: User, period: str, limit: int | None) -> bool:
    """Raise the counter unless it has reached the limit. The update's own condition decides."""
    row = SubmissionCount(benchmark_id=benchmark, person=person, period=period)
    SubmissionCount.objects.bulk_create([row], ignore_conflicts=True)
    counter = SubmissionCount.objects.filter(benchmark_id=benchmark, person=person, period=period)
    if limit is not None:
        counter = counter.filter(used__lt=limit)
    return bool(counter.update(used=F("used") + 1))


def _used_up(rules: SubmissionRules, period: str, now: datetime) -> Exceeded:
    limit, words = (rules.in_all, "in all, and have") if period == ALL else (rules.per_day, "a day, and have today")
    hint = "Ask a curator if you need more." if period == ALL else "The day ends at midnight UTC."
    times = "once" if limit == 1 else f"{limit} times"
    return Exceeded(f"You may submit to {rules.benchmark.title} {times} {words}. {hint}", _until(now))
