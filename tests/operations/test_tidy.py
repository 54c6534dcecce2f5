"""`manage.py tidy` removes what its settings say and nothing else, and says how much there is of everything."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.models import Notice, Session
from bank.models import Benchmark
from judging.models import Attempt, Judge, Run
from leaderboard.models import PreparedPage

pytestmark = pytest.mark.both_databases


@pytest.fixture
def grown(db, people):
    """Of each kind that ages, one that may go by ``KEEP_...=30`` and one that may not."""
    now = timezone.now()
    for name, age in (("old", 8), ("new", 6)):
        page = PreparedPage.objects.create(key=name, asked={"path": "/"}, content={})
        PreparedPage.objects.filter(pk=page.pk).update(asked_at=now - timedelta(days=age))
    for name, ends in (("old", -1), ("new", 1)):
        Session.objects.create(session_key=name, session_data="", expire_date=now + timedelta(hours=ends))
    for key, read in (("read long ago", 40), ("read", 5), ("unread", None)):
        notice = Notice.objects.create(person=people["curator"], key=key, text="", link="")
        Notice.objects.filter(pk=notice.pk).update(
            at=now - timedelta(days=90), read_at=None if read is None else now - timedelta(days=read)
        )
    columns = {"benchmark": Benchmark.objects.create(slug="a", title="A"), "judge": Judge.objects.create(name="j")}
    for state, days in (("finished", 100), ("finished", 40), ("finished", 5), ("running", 100)):
        run = Run.objects.create(**columns, protocol="pair", settings_hash="", state=state)
        at = now - timedelta(days=days)
        Attempt.objects.create(run=run, order=state, repeat=days, at=at, outcome="error", seconds=1)


def tidy(*arguments):
    out = StringIO()
    call_command("tidy", *arguments, stdout=out)
    return out.getvalue()


def left():
    return (
        sorted(PreparedPage.objects.values_list("key", flat=True)),
        sorted(Notice.objects.values_list("key", flat=True)),
        sorted(Attempt.objects.values_list("order", "repeat")),
        Session.objects.count(),
    )


def test_with_settings_it_removes_what_is_older_and_a_dry_run_removes_nothing(grown, settings):
    settings.KEEP_NOTICES_DAYS, settings.KEEP_CALLS_DAYS = 30, 45
    before = left()
    told = tidy("--dry-run")
    assert left() == before
    for name in ("sessions", "notices", "calls without a verdict", "prepared pages"):
        (line,) = [line for line in told.splitlines() if line.startswith(name)]
        assert " 1  " in line, line
    tidy()
    assert left() == (["new"], ["read", "unread"], [("finished", 5), ("finished", 40), ("running", 100)], 1)


def test_by_default_calls_of_ended_runs_are_kept_for_ninety_days_and_notices_for_half_a_year(grown):
    tidy()
    assert left()[1:3] == (
        ["read", "read long ago", "unread"],
        [("finished", 5), ("finished", 40), ("running", 100)],
    )


def test_everything_that_grows_has_a_line(grown):
    told = tidy("--dry-run")
    for name in (
        "judgments",
        "entries of the audit log",
        "readings of criteria",
        "mails that wait",
        "pictures",
        "uploads",
    ):
        assert name in told
    assert "GB are free" in told
