"""Pages over many verdicts, which a job draws and a server process only shows."""

import logging
import re
from datetime import timedelta
from importlib import import_module
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import jobs
from accounts.models import Grant, Team
from annotations.models import Label
from bank.models import Benchmark, Sample
from bank.recipes import spec, store
from evalsite import tidying
from judging.models import Judgment, Run
from leaderboard import kinds
from leaderboard.boards import seen
from leaderboard.kept import pages as prepared
from leaderboard.kept import values
from leaderboard.models import HourlyValue, PreparedPage, Snapshot
from leaderboard.scope import Scope
from tests.leaderboard.conftest import judgments
from tests.leaderboard.test_recipe_boards import answered, quiz
from tests.operations.test_jobs import not_before, waiting

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
MODELS = "/leaderboards/grove/models/"
ROWS = "/api/v1/leaderboards/models/?benchmark=grove&source=keen"


@pytest.fixture
def many(voted, monkeypatch):
    """The grove, as if its verdicts were many, in a process that computes nothing itself."""
    import_module("evalsite.urls")  # what takes a board by its name has the true one
    monkeypatch.setattr(prepared, "MANY", 10)
    monkeypatch.setattr("leaderboard.boards.models", Mock(side_effect=AssertionError("computed in a server process")))
    Sample.objects.update(closed=0)
    return voted


def work(*, leaving=()):
    """Do what waits, as the processes of pages and heavy jobs do, ``leaving`` jobs of these names undone."""
    computing, seen.models = seen.models, boards_models
    try:
        while found := [(name, arguments) for name, arguments in waiting() if name not in leaving]:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"DELETE FROM {'accounts_job' if connection.vendor == 'sqlite' else 'procrastinate_jobs'}"
                )
            for name, arguments in found:
                import_string(jobs.REGISTERED[name].path)(**arguments)
    finally:
        seen.models = computing


boards_models = seen.models


ELO = ("elo", "elo_low", "elo_high", "elo_n")


@pytest.fixture
def very_many(many, monkeypatch):
    """Elo takes seconds there."""
    monkeypatch.setattr("leaderboard.votes.MANY", 10)
    return many


def elo_of(rows):
    return {row["model"]: [row[name] for name in ELO] for row in rows}


def methods_in(rows):
    return {row["elo_method"] for row in rows}


@pytest.fixture
def quiz_of_recipe(db):
    """A recipe by which two models answered 40 questions with open keys."""
    benchmark = quiz()
    made, _ = store.save(
        spec.parsed(
            {"name": "mine", "scenario": [{"benchmark": "animals"}], "metric": "accuracy"}
            | {"turns": [{"kind": "likelihood"}]}
        )
    )
    for model in ("good", "bad"):
        answered(made, benchmark, model, ["A"] * 40)
    return made


@pytest.fixture
def visitor(client_of):
    return client_of("anonymous")


def page(client, address=MODELS, **headers):
    return client.get(address, **headers).content.decode()


def label_again():
    Label.objects.update(choice="first", changed_at=timezone.now())


def test_a_page_is_drawn_by_a_job_and_opens_by_itself_when_it_is_there(many, visitor):
    first = visitor.get(MODELS)
    assert (first.status_code, first["Refresh"]) == (202, "3")
    assert "Being computed" in first.content.decode()
    visitor.get(MODELS)
    assert [name for name, _ in waiting()] == ["prepare_page"]
    work()
    drawn = visitor.get(MODELS)
    assert drawn.status_code == 200
    assert "Alder" in drawn.content.decode()
    assert "As of" not in drawn.content.decode()
    assert waiting() == []


@pytest.mark.one_database
def test_a_drawn_page_says_what_its_picture_shows_and_one_drawn_before_pictures_had_words_still_opens(many, visitor):
    visitor.get(MODELS)
    work()
    assert 'property="og:image:alt" content="Models on grove' in page(visitor)
    row = PreparedPage.objects.get()
    row.content["text"] = row.content["text"].rpartition(prepared.PART)[0]
    row.save()
    older = visitor.get(MODELS)
    assert (older.status_code, "Alder" in older.text, "og:image:alt" in older.text) == (200, True, False)


def test_the_api_says_that_rows_are_being_computed_and_when_to_ask_again(many, visitor):
    first = visitor.get(ROWS)
    assert (first.status_code, first["Retry-After"], first.json()) == (202, "3", {"detail": prepared.WAITS})
    as_csv = visitor.get(f"{ROWS}&format=csv")
    assert (as_csv.status_code, as_csv["Content-Type"]) == (202, "text/csv; charset=utf-8")
    work()
    rows = visitor.get(ROWS).json()
    assert {row["model"] for row in rows} >= {"Alder", "Birch"}
    assert visitor.get(f"{ROWS}&format=csv").content.decode().count("\n") == len(rows) + 1


def test_a_page_is_shown_as_of_when_it_was_drawn_while_a_newer_one_is(many, visitor):
    visitor.get(MODELS)
    work()
    before = page(visitor)
    label_again()
    stale = page(visitor)
    assert "updating" in stale
    assert [name for name, _ in waiting()] == ["prepare_page"]
    assert re.findall(r"<td.*?</td>", stale, re.DOTALL) == re.findall(r"<td.*?</td>", before, re.DOTALL)
    work()
    fresh = page(visitor)
    assert "updating" not in fresh
    assert re.findall(r"<td.*?</td>", fresh, re.DOTALL) != re.findall(r"<td.*?</td>", before, re.DOTALL)
    assert "Newer figures are there" in page(visitor, HTTP_HX_REQUEST="true")


PEOPLE = "/api/v1/leaderboards/models/?benchmark=grove"


def of_now(benchmark):
    """The rows as they are computed for whoever waits for no page."""
    return boards_models(Scope(benchmark, kinds.get("pair"), staff=False)).as_json()


def test_elo_of_very_many_votes_is_computed_by_a_job_of_its_own_while_they_come_in(very_many, visitor):
    visitor.get(PEOPLE)
    work()
    first = visitor.get(PEOPLE).json()
    assert elo_of(first) == elo_of(of_now(very_many))
    assert methods_in(first) == {"online-bootstrap"}

    label_again()
    visitor.get(PEOPLE)
    work(leaving=["draw_anew"])
    rows, exact = visitor.get(PEOPLE).json(), of_now(very_many)
    assert [row["wins"] for row in rows] == [row["wins"] for row in exact] != [row["wins"] for row in first]
    assert elo_of(rows) == elo_of(first) != elo_of(exact)
    (method,) = methods_in(rows)
    assert re.fullmatch(r"online-bootstrap, as of \d{4}-\d\d-\d\d \d\d:\d\d UTC", method)

    work()
    assert elo_of(visitor.get(PEOPLE).json()) == elo_of(exact)
    assert methods_in(visitor.get(PEOPLE).json()) == {"online-bootstrap"}
    assert waiting() == []


def test_a_page_says_as_of_when_its_elo_is(very_many, visitor):
    address = f"{MODELS}?elo=online-bootstrap&show=elo"
    visitor.get(address)
    work()
    assert "Elo is as of" not in page(visitor, address)
    label_again()
    visitor.get(address)
    work(leaving=["draw_anew"])
    assert "over so many votes it is computed at most once an hour" in page(visitor, address)
    work()
    assert "Elo is as of" not in page(visitor, address)


def test_elo_is_computed_anew_an_hour_after_it_was(very_many, visitor):
    visitor.get(PEOPLE)
    work()
    at = HourlyValue.objects.get().at
    label_again()
    visitor.get(PEOPLE)
    work(leaving=["draw_anew"])
    assert [name for name, _ in waiting()] == ["draw_anew"]
    assert not_before("draw_anew") == at + timedelta(hours=1)


def test_elo_that_was_kept_goes_when_something_may_have_to_be_hidden(very_many, visitor):
    visitor.get(PEOPLE)
    work()
    before = elo_of(visitor.get(PEOPLE).json())
    Label.objects.filter(choice="second").update(excluded=True)
    visitor.get(PEOPLE)
    work(leaving=["draw_anew"])
    rows = visitor.get(PEOPLE).json()
    assert elo_of(rows) == elo_of(of_now(very_many)) != before
    assert methods_in(rows) == {"online-bootstrap"}


def test_a_view_is_frozen_with_elo_of_now_whatever_pages_show(very_many, visitor, client_of):
    visitor.get(PEOPLE)
    work()
    label_again()
    visitor.get(PEOPLE)
    work(leaving=["draw_anew"])
    client_of("researcher").post("/leaderboards/grove/models/freeze/?elo=online-bootstrap")
    work(leaving=["draw_anew"])
    frozen = Snapshot.objects.get().rows
    assert elo_of(frozen) == elo_of(of_now(very_many)) != elo_of(visitor.get(PEOPLE).json())
    assert methods_in(frozen) == {"online-bootstrap"}


WITHHOLD = {
    "a label": lambda: Label.objects.filter(pk=Label.objects.first().pk).update(excluded=True),
    "a verdict": lambda: Judgment.objects.filter(pk=Judgment.objects.first().pk).delete(),
    "a sample": lambda: Sample.objects.filter(key="s01").update(status="retired"),
}


@pytest.mark.parametrize("withhold", WITHHOLD.values(), ids=WITHHOLD)
def test_what_was_hidden_is_seen_on_no_page_that_was_drawn_before(many, visitor, withhold):
    for address in (MODELS, ROWS):
        visitor.get(address)
    work()
    assert [visitor.get(address).status_code for address in (MODELS, ROWS)] == [200, 200]
    withhold()
    assert [visitor.get(address).status_code for address in (MODELS, ROWS)] == [202, 202]


def test_a_benchmark_that_is_made_private_is_gone_at_once(many, visitor, client_of):
    visitor.get(MODELS)
    work()
    Benchmark.objects.update(visibility="private")
    assert visitor.get(MODELS).status_code == 404
    assert client_of("curator").get(MODELS).status_code == 202


OF_SEVERAL = (
    "/",
    "/leaderboards/",
    "/leaderboards/grove/correlation/",
    "/leaderboards/grove/plots/correlation.svg",
    "/api/v1/leaderboards/correlation/?benchmark=grove",
)


def test_what_shows_other_benchmarks_is_not_shown_once_one_of_them_is_hidden(many, visitor):
    other = Benchmark.objects.create(slug="other", title="Other", visibility="public")
    Sample.objects.create(benchmark=other, key="s", position=0)
    for address in OF_SEVERAL:
        assert visitor.get(address).status_code == 202
    work()
    assert 202 not in [visitor.get(address).status_code for address in OF_SEVERAL]
    Sample.objects.filter(benchmark=other).update(status="retired")
    assert [visitor.get(address).status_code for address in OF_SEVERAL] == [202] * len(OF_SEVERAL)


def test_nobody_learns_of_a_private_benchmark_with_many_verdicts(many, visitor, client_of, monkeypatch):
    Benchmark.objects.update(visibility="private")
    assert client_of("curator").get("/?as=visitor").status_code == 202
    assert visitor.get("/").status_code == 200
    Benchmark.objects.update(visibility="public")
    assert visitor.get("/").status_code == 202
    work()
    before = page(visitor, "/")
    other = Benchmark.objects.create(slug="other", title="Other", visibility="private")
    Sample.objects.create(benchmark=other, key="s", position=0)
    assert page(visitor, "/") == before


def test_a_name_without_version_is_the_page_of_the_newest_version(many, visitor, monkeypatch):
    visitor.get(MODELS)
    work()
    assert "Alder" in page(visitor)
    Benchmark.objects.create(slug="grove", version="2", title="Grove", visibility="public")
    monkeypatch.setattr("leaderboard.boards.models", boards_models)  # of few verdicts
    assert "Alder" not in page(visitor)


def test_nobody_gets_the_page_of_another_role(many, visitor, client_of):
    client_of("curator").get(MODELS)
    work()
    assert client_of("curator").get(MODELS).status_code == 200
    assert visitor.get(MODELS).status_code == 202


def test_a_right_that_ends_takes_its_pages_along(many, client_of, people):
    Benchmark.objects.update(visibility="private")
    team = Team.objects.create(name="Foresters")
    team.members.add(people["researcher"])
    Grant.objects.create(benchmark="grove", team=team, right="view")
    Grant.objects.create(benchmark="other", person=people["researcher"], right="view")
    for address in (MODELS, ROWS):
        assert client_of("researcher").get(address).status_code == 202
    work()
    assert [client_of("researcher").get(address).status_code for address in (MODELS, ROWS)] == [200, 200]
    team.members.clear()
    assert [client_of("researcher").get(address).status_code for address in (MODELS, ROWS)] == [404, 404]


def test_a_page_that_was_asked_for_with_one_right_is_not_drawn_with_another(many, client_of, people):
    client, rows = client_of("researcher"), "/api/v1/leaderboards/correlation/?benchmark=grove"
    Benchmark.objects.update(visibility="private")
    granted = Grant.objects.create(benchmark="grove", person=people["researcher"], right="view")
    assert client.get(rows).status_code == 202
    Grant.objects.filter(pk=granted.pk).update(right="curate")
    work()
    Grant.objects.filter(pk=granted.pk).update(right="view")
    assert client.get(rows).status_code == 202
    granted.delete()
    assert client.get(rows).status_code == 404


def test_a_page_that_may_rest_on_hidden_inputs_tells_visitors_the_day_alone(many, visitor, client_of):
    Sample.objects.update(closed=1)
    for each in (visitor, client_of("curator")):
        each.get(MODELS)
    work()
    today = f"As of {timezone.now():%-d %b %Y}."
    before = page(visitor)
    assert today in before
    run = Run.objects.first()
    Run.objects.filter(pk=run.pk).update(spent=9)  # nothing that the page shows
    assert page(visitor) == before
    assert "updating" in page(client_of("curator"))
    values.forget()
    work()
    assert page(visitor) == before


def test_a_database_that_takes_no_job_still_shows_what_was_drawn(many, visitor, monkeypatch):
    visitor.get(MODELS)
    work()
    label_again()
    monkeypatch.setattr(jobs, "defer", Mock(side_effect=OperationalError("database is locked")))
    assert "updating" in page(visitor)


def test_a_page_that_cannot_be_drawn_is_an_error_until_something_is_written(many, visitor, monkeypatch, caplog):
    visitor.raise_request_exception = False
    visitor.get(MODELS)
    monkeypatch.setattr("tests.leaderboard.test_prepared.boards_models", Mock(side_effect=ZeroDivisionError))
    with caplog.at_level(logging.ERROR):
        work()
    assert "A page could not be drawn" in caplog.text
    assert visitor.get(MODELS).status_code == 500
    label_again()
    monkeypatch.undo()
    monkeypatch.setattr(prepared, "MANY", 10)
    visitor.get(MODELS)
    work()
    assert visitor.get(MODELS).status_code == 200


@pytest.mark.one_database
def test_a_view_that_does_not_exist_is_refused_in_words(many, visitor):
    visitor.get(f"{MODELS}?ties=perhaps")
    work()
    refused = visitor.get(f"{MODELS}?ties=perhaps")
    assert refused.status_code == 400
    assert "This view does not exist" in refused.content.decode()


def test_addresses_that_nobody_knows_make_no_endless_work(many, visitor, monkeypatch):
    monkeypatch.setattr(prepared, "MOST_WAITING", 3)
    for n in range(9):
        assert visitor.get(f"{MODELS}?level={n}").status_code == 202
    assert PreparedPage.objects.count() == 3


ONE_PAGE = {
    "what no page reads": [f"?x={n}" for n in range(9)],
    "marks of campaigns in mails": ["?utm_source=mail&fbclid=1", "?utm_source=chat", ""],
    "a parameter twice": [f"?source={n}&source=keen" for n in range(9)],
    "the other way round": ["?source=keen&ties=half", "?ties=half&source=keen"],
}


@pytest.mark.parametrize("queries", ONE_PAGE.values(), ids=ONE_PAGE)
@pytest.mark.parametrize("below", ["models/", "judges/", "plots/forest.svg", "votes/", ""])
@pytest.mark.one_database
def test_addresses_that_say_the_same_are_one_page(many, visitor, queries, below):
    answers = [visitor.get(f"/leaderboards/grove/{below}{query}").status_code for query in queries]
    assert set(answers) == {202}
    assert PreparedPage.objects.count() == 1
    assert len(waiting()) == 1


def test_of_an_address_the_newest_views_are_kept_and_the_one_that_asks_for_nothing(many, visitor, monkeypatch):
    monkeypatch.setattr(prepared, "MOST_HERE", 3)
    for query in ("", *(f"?level={n}" for n in range(5))):
        visitor.get(f"{MODELS}{query}")
        work()
    kept = [page.asked["query"] for page in PreparedPage.objects.order_by("pk")]
    assert kept == [[], *([["level", str(n)]] for n in (2, 3, 4))]


def test_strangers_who_ask_for_much_of_one_address_take_the_room_of_nobody_else(many, visitor, client_of, monkeypatch):
    monkeypatch.setattr(prepared, "MOST_WAITING_HERE", 3)
    for n in range(9):
        visitor.get(f"{MODELS}?level={n}")
    assert PreparedPage.objects.count() == 3
    visitor.get("/leaderboards/grove/judges/")
    client_of("researcher").get(MODELS)
    assert PreparedPage.objects.count() == 5


def test_a_benchmark_of_few_verdicts_is_computed_at_once(voted, visitor):
    assert visitor.get(MODELS).status_code == 200
    assert not PreparedPage.objects.exists()


def test_after_a_large_import_pages_of_late_are_drawn_again(many, brought, visitor, monkeypatch):
    visitor.get(f"{MODELS}?source=keen")
    work()
    rows = list(judgments("new", noise=0.6, seed=5))
    for size in ("SOME", "LARGE"):
        monkeypatch.setattr(f"bank.intake.registry.{size}", len(rows))
    brought("judgments", rows)
    work()
    assert "new" in page(visitor, f"{MODELS}?source=keen")
    assert "updating" not in page(visitor, f"{MODELS}?source=keen")


def test_a_view_over_many_verdicts_is_frozen_by_a_job(many, client_of):
    client = client_of("researcher")
    answer = client.post("/leaderboards/grove/models/freeze/?source=keen", follow=True)
    assert "The view is being frozen" in answer.content.decode()
    assert not Snapshot.objects.exists()
    work()
    snapshot = Snapshot.objects.get()
    assert (snapshot.what, snapshot.scope["source"], snapshot.by.username) == ("models", "keen", "researcher")
    assert len(snapshot.rows) > 3


def test_a_copy_of_the_database_holds_no_page_in_clear(many, client_of):
    client_of("curator").get(MODELS)
    work()
    with connection.cursor() as cursor:
        cursor.execute("SELECT content FROM leaderboard_preparedpage")
        (stored,) = cursor.fetchone()
    assert len(stored) > 1000
    assert "Alder" not in stored


def test_pages_go_after_a_week(many, visitor):
    visitor.get(MODELS)
    PreparedPage.objects.update(asked_at=timezone.now() - timedelta(days=8))
    tidying.clear()
    assert not PreparedPage.objects.exists()


def test_boards_over_many_answers_by_recipes_are_drawn_by_a_job(visitor, client_of, monkeypatch, quiz_of_recipe):
    addresses = {
        "/recipes/mine/board/": "good",
        "/recipes/mine/answers/?model=good": "Question 1?",
        "/desiderata/": "",
        "/api/v1/leaderboards/recipes/?recipe=mine": "good",
        "/api/v1/leaderboards/desiderata/": "",
    }
    at_once = {address: visitor.get(address) for address in addresses}
    assert [answer.status_code for answer in at_once.values()] == [200] * len(addresses)
    assert "Open the board" not in page(client_of("curator"), "/recipes/mine/")
    monkeypatch.setattr(prepared, "MANY", 10)
    values.forget()
    monkeypatch.setattr("leaderboard.boards.recipes.board", Mock(side_effect=AssertionError("computed in a server")))
    assert [visitor.get(address).status_code for address in addresses] == [202] * len(addresses)
    assert "Open the board" in page(client_of("curator"), "/recipes/mine/")
    assert visitor.get("/recipes/none/board/").status_code == 404
    assert "/recipes/none/board/" not in {row.asked["path"] for row in PreparedPage.objects.all()}
    monkeypatch.undo()
    monkeypatch.setattr(prepared, "MANY", 10)
    work()
    for address, words in addresses.items():
        answer = visitor.get(address)
        assert answer.status_code == 200, address
        assert words in answer.content.decode(), address
    Benchmark.objects.update(visibility="private")
    values.forget()
    assert visitor.get("/recipes/mine/board/").status_code == 404
