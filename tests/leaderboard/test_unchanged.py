"""Pages are kept exactly as long as nothing is written, by whichever connection."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connections, transaction
from django.utils import timezone

from bank.models import Benchmark
from judging.models import Judgment
from leaderboard import boards
from leaderboard.cache import state, until_written
from leaderboard.kinds import KINDS
from leaderboard.scope import Scope
from tests.leaderboard.conftest import judgments

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


class TestInFiles:
    """Boards over many verdicts outlive their process."""

    @pytest.fixture
    def files(self, settings, tmp_path, monkeypatch):
        backend = "django.core.cache.backends.filebased.FileBasedCache"
        settings.CACHES = settings.CACHES | {"boards": {"BACKEND": backend, "LOCATION": tmp_path / "boards"}}
        monkeypatch.setattr("leaderboard.votes.MANY", 0)

    @pytest.fixture
    def times(self, voted, files):
        """Ask for a board in a new process: how often it was computed."""
        computed = []

        def compute(scope):
            computed.append(scope)
            return boards.models(scope)

        def ask(**options):
            cache.clear()  # what the process before had at hand
            connections["default"].__dict__.pop("_answers", None)
            scope = Scope(Benchmark.objects.get(slug="grove"), KINDS["pair"], **options)
            board = boards.cached(scope, "models", compute)
            assert [row.model for row in board.rows]
            return len(computed)

        return ask

    def test_the_next_process_reads_what_one_has_computed(self, times):
        assert (times(), times()) == (1, 1)
        assert (times(staff=True), times(staff=True)) == (2, 3)  # what staff see is written nowhere

    def test_a_restored_database_with_equal_counts_and_ids_is_not_taken_for_the_one_before(self, times):
        assert (times(), times()) == (1, 1)
        Judgment.objects.update(created_at=timezone.now())
        assert times() == 2

    def test_a_large_import_computes_the_first_page_of_visitors(self, brought, files, client_of, monkeypatch):
        rows = list(judgments("keen", noise=0.6, seed=2))
        monkeypatch.setattr("bank.intake.registry.LARGE", len(rows))
        brought("judgments", rows)
        cache.clear()
        monkeypatch.setattr("leaderboard.boards.models", Mock(side_effect=AssertionError("computed again")))
        assert "keen" in client_of("anonymous").get("/").content.decode()

    @pytest.mark.skipif("sqlite" in settings.DATABASES["default"]["ENGINE"], reason="only PostgreSQL plans by counts")
    def test_after_a_large_import_the_database_plans_by_how_many_rows_there_are(self, brought, monkeypatch):
        rows = list(judgments("keen", noise=0.6, seed=2))
        monkeypatch.setattr("bank.intake.registry.LARGE", len(rows))
        brought("judgments", rows)
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'judging_judgment'")
            assert cursor.fetchone()[0] == len(rows)

    def test_a_fault_of_that_page_is_none_of_the_import(self, brought, files, monkeypatch, caplog):
        monkeypatch.setattr("bank.intake.registry.LARGE", 1)
        monkeypatch.setattr("leaderboard.pages.home.specimen", Mock(side_effect=ValueError("no such item")))
        brought("judgments", judgments("keen", noise=0.6, seed=2))
        assert "no such item" in caplog.text

    def test_a_file_that_cannot_be_read_is_made_again(self, times, tmp_path):
        assert times() == 1
        for path in (tmp_path / "boards").iterdir():
            path.write_bytes(path.read_bytes()[:40])
        assert (times(), times()) == (2, 2)

    def test_where_nothing_can_be_written_boards_are_computed(self, times, tmp_path):
        assert times() == 1
        shutil.rmtree(tmp_path / "boards")
        (tmp_path / "boards").write_text("no folder")
        assert (times(), times()) == (2, 3)
