"""The search box: what each person finds, and what nobody does."""

import re

import pytest

from bank.models import Benchmark, Item, Sample, Submission
from judging.models import OVERLAP, Judge, Run
from tests.hidden import write_criterion
from tests.leaderboard.conftest import folder, grove, manage
from tests.markup import flat

__all__ = ["folder", "grove", "manage"]
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def found(client, text):
    return flat(client.get("/find/", {"q": text}))


def test_a_visitor_finds_models_benchmarks_and_samples_and_gets_to_them(grove, client, manage):
    manage("make_items", "pair", "--benchmark", "grove", "--sample", "5")
    page = found(client, "aLdEr")
    (alder,) = re.findall(r'<a href="(/models/\d+/)">Alder</a>', page)
    assert "Alder" in client.get(alder).content.decode()
    assert '<a href="/leaderboards/grove@1/models/">grove</a>' in page
    assert 'href="/leaderboards/grove@1/"' in found(client, "grov")
    sample = Item.objects.first().sample
    page = found(client, sample.key)
    link = page.split(f">{sample.key}</a>")[0].rsplit('href="', 1)[1].split('"')[0]
    assert client.get(link).status_code == 200
    assert "Nothing found" in found(client, "baobab")
    assert "at least 2 characters" in found(client, "a")


def test_what_is_private_is_found_by_staff_alone(grove, client, client_of):
    assert ">Alder</a>" in found(client, "Alder")
    Benchmark.objects.update(visibility="private")
    for text in ("Alder", "grove", Sample.objects.first().key):
        assert "Nothing found" in found(client, text)
        assert "Nothing found" not in found(client_of("curator"), text)


def test_no_criterion_is_found_whoever_asks(grove, client_of):
    sample = Sample.objects.filter(benchmark=grove).first()
    write_criterion(sample=sample, kind="guideline", key="x", text="Counts the mistletoe.", position=9)
    for role in ("anonymous", "researcher", "administrator"):
        assert "Nothing found" in found(client_of(role), "mistletoe")


def test_what_somebody_else_submitted_and_judges_without_runs_are_not_told_of(grove, client, client_of, people):
    Judge.objects.create(name="sequoia-judge")
    assert "Nothing found" in found(client, "sequoia")
    assert "sequoia-judge" in found(client_of("researcher"), "sequoia")
    alder = grove.samples.first().responses.get(model__name="Alder").model
    submission = Submission.objects.create(by=people["researcher"], benchmark=grove, model=alder)
    alder.responses.update(submission=submission)
    assert "Nothing found" in found(client, "Alder")
    assert ">Alder</a>" in found(client_of("researcher"), "Alder")
    assert not Judge.objects.filter(baseline=OVERLAP, runs__isnull=False).exists()


def test_a_judge_whose_page_a_visitor_may_not_open_is_not_found(grove, client, client_of):
    judge = Judge.objects.create(name="sequoia-overlap", baseline=OVERLAP)
    Run.objects.create(judge=judge, benchmark=grove, protocol="pair", state=Run.State.FINISHED)
    assert client.get(f"/judges/{judge.pk}/").status_code == 404
    assert "sequoia-overlap" not in found(client, "sequoia")
    assert "sequoia-overlap" in found(client_of("curator"), "sequoia")


def test_while_somebody_types_they_see_the_first_of_each_kind_and_pages_they_may_open(grove, client, client_of):
    def typed(by, text):
        return flat(by.get("/find/", {"q": text}, headers={"HX-Request": "true"}))

    shown = typed(client, "al")
    assert "<html" not in shown
    assert re.search(r'<a href="/models/\d+/">Alder', shown)
    assert typed(client, "a").strip() == ""
    assert 'href="/method/"' in typed(client, "form")
    assert "/judging/runs/new/" not in typed(client, "new run")
    assert '<a href="/judging/runs/new/">New run of a judge' in typed(client_of("curator"), "new run")
    assert "/people/" not in typed(client_of("curator"), "accounts")
    assert "/people/" in typed(client_of("administrator"), "accounts")


def test_what_was_perhaps_meant_is_offered_and_nothing_private_is(grove, client, client_of):
    assert '<a href="/find/?q=Alder">Alder</a>' in found(client, "Aldr")
    Benchmark.objects.update(visibility="private")
    assert "Did you mean" not in found(client, "Aldr")
    assert "Did you mean" in found(client_of("curator"), "Aldr")


def test_a_saved_view_is_found_by_its_owner_alone(grove, client_of):
    path = "/leaderboards/grove/models/?kind=pair"
    client_of("researcher").post("/accounts/views/", {"path": path, "name": "Pairs of trees"})
    assert f'href="{path}"' in found(client_of("researcher"), "pairs of")
    assert f'href="{path}"' not in found(client_of("curator"), "pairs of")
    assert "/accounts/views/" in client_of("researcher").get("/leaderboards/").content.decode()  # which it loads
    htmx = {"HX-Request": "true"}
    assert f'href="{path}"' in client_of("researcher").get("/accounts/views/", headers=htmx).content.decode()
    assert f'href="{path}"' not in client_of("curator").get("/accounts/views/", headers=htmx).content.decode()
    assert client_of("researcher").get("/accounts/views/").url == "/leaderboards/"  # no part of a page by itself
