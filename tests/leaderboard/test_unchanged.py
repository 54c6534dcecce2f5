"""Boards and pages are kept exactly as long as nothing is written that they may show, by whichever connection."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.models import User
from annotations.models import Adjudication, Annotator, Assignment, CampaignItem, Label
from bank.criteria.tables import Criterion, opened
from bank.models import Benchmark, Capability, EvaluatedModel, Import, Item, Sample
from evalsite import doctor, worker
from judging.models import Judge, Judgment, Run, RunHold
from leaderboard.kept import counters
from leaderboard.kept.values import until_changed
from tests.leaderboard.conftest import judgments

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def elsewhere(write):
    """Writes by another connection, as another process would."""

    def written():
        try:
            return write()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(written).result()


def make(slug):
    return Benchmark.objects.create(slug=slug, title=slug, visibility="public")


def counted():
    return until_changed("benchmarks", lambda: Benchmark.objects.count())


def test_what_was_kept_is_made_again_after_a_write_here_or_elsewhere():
    assert counted() == 0
    make("a")
    assert counted() == 1
    elsewhere(lambda: make("b"))
    assert counted() == 2


def test_nothing_is_made_twice_without_a_write():
    times = []
    for _ in range(3):
        until_changed("once", lambda: times.append(1))
    assert times == [1]


def test_what_a_transaction_saw_is_forgotten_with_it():
    with transaction.atomic():
        assert counted() == 0
        make("a")
        assert counted() == 1
        transaction.set_rollback(True)
    assert counted() == 0


def test_what_was_read_while_something_was_written_is_not_kept():
    def read_then_written():
        count = Benchmark.objects.count()
        elsewhere(lambda: make("late"))
        return count

    assert until_changed("benchmarks", read_then_written) == 0
    assert counted() == 1


def test_a_worker_that_only_lives_changes_nothing(voted):
    before = counters.version()
    worker.beat("w")
    worker.beat("w")
    RunHold.objects.create(run=Run.objects.first(), worker="w", until=timezone.now())
    worker.leave("w")
    assert counters.version() == before


def test_signing_in_changes_nothing_and_another_role_does(people):
    before = counters.version()
    User.objects.update(last_login=timezone.now(), preferences={"theme": "dark"})
    assert counters.version() == before
    User.objects.filter(role="researcher").update(role="curator")
    assert counters.version() != before


WRITES = {
    "a label": lambda: Label.objects.filter(pk=Label.objects.first().pk).update(excluded=True),
    "a judgment": lambda: Judgment.objects.filter(pk=Judgment.objects.first().pk).delete(),
    "a run": lambda: Run.objects.update(state="cancelled"),
    "a sample": lambda: Sample.objects.filter(key="s01").update(status="retired"),
    "a capability": lambda: Capability.objects.filter(name="Poetry").update(path="Poems"),
    "a criterion": opened()(lambda: Criterion.objects.update(position=3)),
    "a campaign": lambda: CampaignItem.objects.update(gold=True),
    "a decision": lambda: Adjudication.objects.create(
        campaign_item=CampaignItem.objects.first(), choice="first", by=User.objects.get()
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_changes_what_is_kept_of_its_benchmark_and_of_no_other(voted, write):
    other = make("other")
    User.objects.create(username="decides")
    own, of_other, of_all = counters.version(voted.pk), counters.version(other.pk), counters.version()
    write()
    assert counters.version(voted.pk) != own
    assert counters.version(other.pk) == of_other
    assert counters.version() != of_all


def test_what_belongs_to_no_benchmark_changes_what_is_kept_of_all(voted):
    before = counters.version(voted.pk)
    EvaluatedModel.objects.update(organisation="Trees")
    assert counters.version(voted.pk) != before
    before = counters.version(voted.pk)
    Judge.objects.update(family="of oaks")
    assert counters.version(voted.pk) != before


def test_taking_an_item_to_label_changes_nothing(voted):
    before = counters.version()
    CampaignItem.objects.update(taken=1)
    Assignment.objects.update(draft="I think")
    assert counters.version() == before


def test_an_import_that_writes_for_long_keeps_nobody_waiting(voted):
    """Both writers count for one benchmark; the other's label is there before the first has ended."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    before = counters.version(voted.pk)
    with transaction.atomic():
        Sample.objects.filter(key="s01").update(status="retired")
        elsewhere(lambda: Label.objects.filter(pk=Label.objects.first().pk).update(excluded=True))
        between = elsewhere(lambda: counters.version(voted.pk))
    after = counters.version(voted.pk)
    assert len({before, between, after}) == 3


def test_a_migration_takes_the_triggers_away_and_brings_them_back(voted):
    counters.remove()
    before = counters.version()
    Run.objects.update(state="cancelled")
    assert counters.version() == before
    assert "missing: run `manage.py migrate`" in doctor.migrations().words
    call_command("migrate", verbosity=0)
    assert not doctor.migrations().is_fault
    assert counters.version() != before
    before = counters.version()
    Run.objects.update(state="finished")
    assert counters.version() != before


def test_a_page_follows_a_change_at_once(client):
    benchmark = Benchmark.objects.create(slug="open", title="Old title", visibility="public")
    assert "Old title" in client.get("/leaderboards/open/models/").content.decode()
    Benchmark.objects.filter(pk=benchmark.pk).update(title="New title")
    assert "New title" in client.get("/leaderboards/open/models/").content.decode()
    benchmark.visibility = Benchmark.Visibility.PRIVATE
    benchmark.save()
    assert client.get("/leaderboards/open/models/").status_code == 404


HIDING = {
    "a label that is excluded": (lambda: Label.objects.filter(pk=Label.objects.first().pk).update(excluded=True), True),
    "a label that is given again": (lambda: Label.objects.filter(pk=Label.objects.first().pk).update(seconds=9), False),
    "a verdict that is removed": (lambda: Judgment.objects.filter(pk=Judgment.objects.first().pk).delete(), True),
    "a run that goes on": (lambda: Run.objects.update(verdicts=9, spent=0.1), False),
    "a run that held more": (lambda: Run.objects.update(held=1), True),
    "a split that is hidden": (lambda: Benchmark.objects.update(hidden_splits=["test"]), True),
    "an item that is asked first": (lambda: CampaignItem.objects.update(priority=4), False),
    "items that get blind": (lambda: Item.objects.update(blind=True), True),
    "items that no longer are": (lambda: Item.objects.update(blind=False), False),
    "the end of an import": (lambda: Import.objects.create(holder="h", until=timezone.now()).delete(), False),
    "a name that is taken away": (lambda: User.objects.update(first_name=""), True),
}


@pytest.mark.parametrize(("write", "hides"), HIDING.values(), ids=HIDING)
def test_what_is_added_hides_nothing_and_what_is_changed_or_removed_may(voted, write, hides):
    User.objects.create(username="somebody")
    before, hiding = counters.version(voted.pk), counters.version(voted.pk, hiding=True)
    write()
    assert counters.version(voted.pk) != before
    assert (counters.version(voted.pk, hiding=True) != hiding) == hides


def without_verdicts(benchmark):
    return until_changed("what they are about", object, benchmark=benchmark.pk, votes=False)


def gives_again():
    Label.objects.filter(pk=Label.objects.first().pk).update(choice="second")


def judges_one_more():
    judgment = Judgment.objects.first()
    judgment.pk, judgment.repeat = None, 7
    judgment.save(force_insert=True)


VERDICTS = {
    "a judgment": judges_one_more,
    "a label that is given again": gives_again,
    "a run that goes on": lambda: Run.objects.update(verdicts=9, spent=0.1),
    "an item that is asked first": lambda: CampaignItem.objects.update(priority=4),
}
OTHERS = {
    "somebody who labels": lambda: Annotator.objects.create(pseudonym="a third"),
    "a label that is excluded": lambda: Label.objects.update(excluded=True),
    "a judgment that is removed": lambda: Judgment.objects.filter(pk=Judgment.objects.first().pk).delete(),
    "a sample": lambda: Sample.objects.filter(key="s01").update(instruction="Why?"),
    "an item that gets blind": lambda: Item.objects.update(blind=True),
    "an item that no longer is": lambda: Item.objects.update(blind=False),
    "the end of an import": lambda: Import.objects.create(holder="h", until=timezone.now()).delete(),
    "a run that starts": lambda: Run.objects.create(
        judge=Judge.objects.first(), benchmark=Benchmark.objects.first(), protocol="pair", settings={"order": "fixed"}
    ),
}


@pytest.mark.parametrize("write", VERDICTS.values(), ids=VERDICTS)
def test_what_verdicts_are_about_is_kept_while_they_come_in(voted, write):
    before, kept = counters.version(voted.pk), without_verdicts(voted)
    write()
    assert counters.version(voted.pk) != before
    assert without_verdicts(voted) is kept


def test_what_verdicts_are_about_is_kept_while_a_label_comes_in(voted):
    label = Label.objects.first()
    Label.objects.filter(pk=label.pk).delete()
    kept = without_verdicts(voted)
    label.save(force_insert=True)
    assert without_verdicts(voted) is kept


@pytest.mark.parametrize("write", OTHERS.values(), ids=OTHERS)
def test_what_verdicts_are_about_is_read_again_after_any_other_write(voted, write):
    kept = without_verdicts(voted)
    write()
    assert without_verdicts(voted) is not kept


@pytest.mark.skipif("sqlite" in settings.DATABASES["default"]["ENGINE"], reason="only PostgreSQL plans by counts")
def test_after_an_import_of_some_size_the_database_plans_by_how_many_rows_there_are(brought, monkeypatch):
    rows = list(judgments("keen", noise=0.6, seed=2))
    monkeypatch.setattr("bank.intake.registry.SOME", len(rows))
    brought("judgments", rows)
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'judging_judgment'")
        assert cursor.fetchone()[0] == len(rows)
