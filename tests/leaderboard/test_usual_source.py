"""Whose verdicts a board of models shows where people have labelled nothing and nobody names a source."""

from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.utils import timezone

from judging.models import Judgment, Run
from leaderboard.hidden import closed_of
from leaderboard.models import Edition
from tests.leaderboard.conftest import judgments
from tests.markup import flat

pytestmark = pytest.mark.django_db
MODELS, API = "/leaderboards/grove/models/", "/api/v1/leaderboards/{}/"
FULL = {"criteria": True}


@pytest.fixture
def tried(brought):
    """``tried(judge, rows, settings)``: a run made here over the first ``rows`` verdicts, none of them of a file."""

    def make(judge, rows=None, *, settings=None, **fields):
        before = set(Run.objects.values_list("pk", flat=True))
        brought("judgments", [*judgments(judge, noise=0.6, seed=2, settings=settings)][:rows])
        (run,) = Run.objects.exclude(pk__in=before)
        fields = {"state": Run.State.FINISHED, "finished_at": timezone.now(), "held": 0} | fields
        Run.objects.filter(pk=run.pk).update(imported=False, **fields)
        run.refresh_from_db()
        return run

    return make


def said_to(client):
    """The models that somebody sees who names no source, by page and API, and the page."""
    page = client.get(MODELS)
    rows = client.get(API.format("models"), {"benchmark": "grove"}).json()
    assert page.status_code == 200
    return [row["model"] for row in rows], flat(page.text)


def test_a_try_out_stands_in_place_of_no_fuller_run_that_is_sealed_and_the_page_says_sealed(tried, client_of, grove):
    """A try-out of 12 items was a visitor's default ranking, in another order than the full run's."""
    full = tried("keen", settings=FULL, held=int(closed_of(grove)))
    tried("keen", 24, settings={"criteria": False})
    rows, page = said_to(client_of("researcher"))
    assert rows == []
    assert "Sealed, no edition yet" in page
    rows, page = said_to(client_of("curator"))
    assert len(rows) == 4
    assert f"so these are the verdicts of keen, run {full.pk}." in page
    Run.objects.filter(pk=full.pk).update(finished_at=timezone.now() - timedelta(days=2))
    rows, page = said_to(client_of("researcher"))
    assert (len(rows), f"keen, run {full.pk}." in page) == (4, True), "told on the day after it has ended"


def test_a_fuller_run_that_goes_on_comes_before_a_try_out(tried, client_of):
    full = tried("keen")
    tried("early", 24, settings={"reasoning": "after"})
    Judgment.objects.filter(run=full).exclude(pk__in=Judgment.objects.filter(run=full)[:6]).delete()
    Run.objects.filter(pk=full.pk).update(state=Run.State.RUNNING, finished_at=None)
    assert "so these are the verdicts of keen." in said_to(client_of("researcher"))[1]
    Judgment.objects.filter(run=full).delete()
    rows, page = said_to(client_of("researcher"))
    assert (rows, "A judge's fuller run has no verdict yet" in page.replace("&#x27;", "'")) == ([], True)


def test_a_try_out_alone_is_shown_and_says_how_small_it_is(tried, client_of):
    tried("early").delete()  # its items stay
    tried("keen", 24)
    rows, page = said_to(client_of("researcher"))
    assert rows
    assert "so these are the verdicts of keen, a try-out of 12 of 118 items." in page


def test_of_whole_runs_the_one_with_the_settings_of_the_newest_edition_comes_first(tried, client_of, grove):
    tried("keen")
    other = tried("dull", 200)
    assert "so these are the verdicts of keen." in said_to(client_of("curator"))[1]
    Edition.objects.create(benchmark=grove, kind="pair", number=1, run=other, board="{}")
    assert "so these are the verdicts of dull." in said_to(client_of("curator"))[1]


def test_what_stands_beside_the_board_of_models_has_its_source(tried, client_of):
    tried("keen")
    client = client_of("researcher")
    two = {"a": "Alder", "b": "Birch"}
    for name, asked in (("apart", {}), ("places", {}), ("compare", two)):
        asked = asked | {"benchmark": "grove"}
        usual = client.get(API.format(name), asked)
        named = client.get(API.format(name), asked | {"source": "keen"})
        assert (usual.status_code, usual.json()) == (200, named.json())
    assert client.get(API.format("places"), {"benchmark": "grove"}).json()


def test_runs_with_different_settings_are_named_in_words_and_equal_ones_once(tried, client_of, board):
    first, other = tried("keen"), tried("keen", settings={"reasoning": "after"})
    again = Run.objects.get(pk=first.pk)
    again.pk = None
    again.save()
    Judgment.objects.filter(run=first, item__sample__key__gte="s18").update(run=again)
    told = client_of("curator").get(API.format("models"), {"source": "keen", "benchmark": "grove"})
    assert told.status_code == 400
    words = told.json()["detail"]
    assert f"runs {first.pk} and {again.pk}: pairwise-criteria, both orders; run {other.pk}: " in words
    assert "reason after" in words
    assert "{" not in words
    with pytest.raises(CommandError, match="Choose one as run"):
        board("models", "--source", "keen")
