"""The search box: what each person finds, and what nobody does."""

import pytest

from bank.criteria import Criterion
from bank.models import Benchmark, Item, Sample, Submission
from judging.models import OVERLAP, Judge
from tests.leaderboard.conftest import folder, grove, manage
from tests.markup import flat

__all__ = ["folder", "grove", "manage"]
pytestmark = pytest.mark.django_db


def found(client, text):
    return flat(client.get("/find/", {"q": text}))


def test_a_visitor_finds_models_benchmarks_and_samples_and_gets_to_them(grove, client, manage):
    manage("make_items", "pair", "--benchmark", "grove", "--sample", "5")
    page = found(client, "aLdEr")
    assert '<a href="/leaderboards/grove@1/models/">Alder</a>' in page
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
    Criterion.unguarded.create(sample=sample, kind="guideline", key="x", text="Counts the mistletoe.", position=9)
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
