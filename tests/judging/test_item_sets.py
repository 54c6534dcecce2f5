"""Which part of a benchmark a run is about."""

import re

import pytest
from django.core.management import call_command

from annotations.models import Campaign
from bank.errors import BadInput
from bank.models import Capability
from tests.judging.small import make_benchmark
from tests.markup import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def many():
    benchmark = make_benchmark(samples=12, slug="many", pictures=False)
    tree = Capability.objects.create(benchmark=benchmark, name="perception", path="perception")
    below = Capability.objects.create(benchmark=benchmark, name="counting", parent=tree, path="perception/counting")
    for number, sample in enumerate(benchmark.samples.order_by("position")):
        sample.split = "dev" if number < 5 else "test"
        sample.capability = (tree, below, None)[number % 3]
        sample.save()
    return benchmark


@pytest.fixture
def keys(start, baseline, many):
    """The keys of the samples whose items a run is about."""

    def act(**part) -> list[int]:
        run = start(baseline("first"), on=many, settings={"items": part}, new=True)
        return sorted(int(key) for key in run.items.values_list("sample__key", flat=True))

    return act


def test_a_split_a_level_with_all_below_it_and_both(keys):
    assert keys() == list(range(12))
    assert keys(split="dev") == [0, 1, 2, 3, 4]
    assert keys(level="counting") == [1, 4, 7, 10]
    assert keys(level="perception") == [0, 1, 3, 4, 6, 7, 9, 10]
    assert keys(level="perception", split="dev") == [0, 1, 3, 4]


def test_a_sample_is_the_same_for_its_seed_grows_with_its_size_and_stays_within_the_filter(keys):
    four = keys(sample=4, seed=1)
    assert four == keys(sample=4, seed=1)
    assert set(four) < set(keys(sample=8, seed=1))
    assert len({tuple(keys(sample=6, seed=seed)) for seed in range(6)}) > 1
    assert set(keys(sample=3, split="dev")) <= {0, 1, 2, 3, 4}
    assert keys(sample=100) == list(range(12))


def test_items_of_some_models_and_items_one_by_one(keys, many):
    assert keys(models=["heron-7b", "osprey-13b"]) == list(range(12))
    with pytest.raises(BadInput, match="match that selection"):
        keys(models=["heron-7b"])
    item = many.samples.get(key="3").items.get()
    assert keys(ids=[item.pk]) == [3]


def test_the_items_of_a_campaign(keys, many):
    call_command("make_campaign", "first round", benchmark="many", protocol="pair", verbosity=0)
    campaign = Campaign.objects.get()
    for one in campaign.campaign_items.select_related("item__sample"):
        if one.item.sample.key not in ("2", "5"):
            one.delete()
    assert keys(campaign="first round") == [2, 5]
    with pytest.raises(BadInput, match="no campaign 'second'"):
        keys(campaign="second")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"level": "nowhere"}, "has no level 'nowhere'"),
        ({"split": "no such"}, "match that selection"),
        ({"sample": 0}, "sample must be a whole number"),
        ({"sample": True}, "sample must be a whole number"),
        ({"seed": 3}, "say how many"),
        ({"ids": ["1"]}, "ids must be whole numbers"),
        ({"ids": [10**12]}, "not items of this kind"),
        ({"colour": "red"}, "colour is not part of an item set"),
        ({"models": "heron-7b"}, "models must be a list"),
    ],
)
def test_a_set_that_cannot_be_is_refused_in_words(keys, part, words):
    with pytest.raises(BadInput, match=words):
        keys(**part)


def test_the_same_set_goes_on_with_the_same_run_and_the_set_is_kept(start, baseline, many):
    part = {"items": {"sample": 4, "seed": 1}}
    run = start(baseline("first"), on=many, settings=part)
    assert run.item_set == {"sample": 4, "seed": 1}
    assert "items" not in run.settings
    assert start(baseline("first"), on=many, settings=part).pk == run.pk
    assert start(baseline("first"), on=many).pk != run.pk


@pytest.mark.parametrize("page", ["runs", "attacks", "collect"])
def test_the_forms_offer_the_splits_and_levels_of_the_chosen_benchmark(many, judge_at, client_of, page):
    judge_at("http://127.0.0.1:9/v1")
    other = make_benchmark(samples=1, slug="other", pictures=False)
    other.samples.update(split="held-out")
    client = client_of("curator")

    def offered(path: str, benchmark) -> list[str]:
        body = flat(client.get(path, {"benchmark": benchmark.pk}))
        lists = re.findall(r"<datalist.*?</datalist>", body)
        return re.findall(r'<option value="([^"]+)">', "".join(lists))

    for path in (f"/judging/{page}/new/", "/judging/runs/choices/"):
        assert offered(path, many) == ["dev", "test", "counting", "perception"]
        assert offered(path, other) == ["held-out"]
    body = flat(client.get(f"/judging/{page}/new/", {"benchmark": many.pk}))
    assert 'list="splits"' in body
    assert 'list="levels"' in body
    assert client.get("/judging/runs/choices/", {"benchmark": "x"}).status_code == 200


def test_samples_that_were_rejected_are_judged_by_no_new_run_drafts_are(keys, many, start, baseline, client_of):
    before = start(baseline("longest"), on=many)
    many.samples.filter(key__in=["0", "5"]).update(status="rejected")
    many.samples.filter(key="1").update(status="draft")
    assert keys() == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert keys(split="dev") == [1, 2, 3, 4]
    assert keys(run=before.pk) == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert len(keys(sample=11)) == 10
    with pytest.raises(BadInput, match="rejected samples"):
        keys(ids=[many.samples.get(key="0").items.get().pk])
    asked = {"judge": baseline("first").pk, "benchmark": many.pk, "protocol": "pairwise-criteria", "prompt": "default"}
    estimate = flat(client_of("curator").get("/judging/runs/estimate/", asked))
    assert "<dt>Items</dt><dd>10</dd>" in estimate


def test_a_run_whose_samples_were_rejected_since_goes_on_instead_of_another(many, start, baseline):
    run = start(baseline("first"), on=many)
    many.samples.filter(key="3").update(status="rejected")
    assert start(baseline("first"), on=many) == run
    assert start(baseline("first"), on=many, new=True).items.count() == 11
