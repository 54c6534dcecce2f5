"""Pages are kept exactly as long as nothing is written, by whichever connection."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from bank.models import Benchmark
from leaderboard.cache import state, until_written

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kept_until_written():
    """Here as it is."""


def make_elsewhere(slug):
    """Writes by another connection, as another process would."""

    def write():
        try:
            Benchmark.objects.create(slug=slug, title=slug, visibility="public")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()


def counted():
    return until_written("benchmarks", lambda: Benchmark.objects.count())


def test_reading_changes_nothing_and_every_write_does():
    Benchmark.objects.create(slug="a", title="a", visibility="public")
    for _ in range(20):  # on PostgreSQL a write in any database of the server counts as one
        first = state()
        assert Benchmark.objects.count() == 1
        if state() == first:
            break
    else:
        raise AssertionError("Reading changes the state.")
    Benchmark.objects.update(title="b")
    assert state() != first


def test_what_was_kept_is_made_again_after_a_write_here_or_elsewhere():
    assert counted() == 0
    Benchmark.objects.create(slug="a", title="a", visibility="public")
    assert counted() == 1
    make_elsewhere("b")
    assert counted() == 2


def test_nothing_is_made_twice_without_a_write():
    for attempt in range(20):  # on PostgreSQL a write in any database of the server counts as one
        times = []
        for _ in range(3):
            until_written(f"once {attempt}", lambda made=times: made.append(1))
        if len(times) == 1:
            return
    raise AssertionError("It was made again each time.")


def test_inside_a_transaction_nothing_is_kept():
    with transaction.atomic():
        assert state() is None
        assert counted() == 0
        Benchmark.objects.create(slug="a", title="a", visibility="public")
        assert counted() == 1
        transaction.set_rollback(True)
    assert counted() == 0


def test_what_was_read_while_something_was_written_is_not_kept():
    def read_then_written():
        count = Benchmark.objects.count()
        make_elsewhere("late")
        return count

    assert until_written("benchmarks", read_then_written) == 0
    assert counted() == 1


def test_a_page_follows_a_change_at_once(client):
    benchmark = Benchmark.objects.create(slug="open", title="Old title", visibility="public")
    assert "Old title" in client.get("/leaderboards/open/models/").content.decode()
    Benchmark.objects.filter(pk=benchmark.pk).update(title="New title")
    assert "New title" in client.get("/leaderboards/open/models/").content.decode()
    benchmark.visibility = Benchmark.Visibility.PRIVATE
    benchmark.save()
    assert client.get("/leaderboards/open/models/").status_code == 404
