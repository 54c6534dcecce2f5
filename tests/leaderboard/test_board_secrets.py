"""Who sees what on the boards: names, single votes, votes of campaigns that go on, and never a criterion."""

import re
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.campaigns.blinding import note_blind_in
from annotations.campaigns.sampling import Plan
from annotations.models import Annotator, Campaign, CampaignItem, Label
from bank.models import Benchmark, Item, Sample
from judging.models import Run
from leaderboard.kept import values as leaderboard_cache
from tests.leaderboard.conftest import PEOPLE, SECRET, judgments, labels
from tests.markup import flat

pytestmark = pytest.mark.django_db
# What curators see of boards administrators see, too: they are asked in soak.
ROLES = ("anonymous", "annotator", "researcher", "curator", pytest.param("administrator", marks=pytest.mark.soak))
STAFF = {"curator", "administrator"}
READERS = {"researcher", *STAFF}
ORACLE = "baseline-criteria-overlap"
API = "/api/v1/leaderboards"


@pytest.fixture
def item(voted):
    """A pair that three people labelled."""
    counts = {}
    for pk in Label.objects.values_list("item", flat=True):
        counts[pk] = counts.get(pk, 0) + 1
    return Item.objects.get(pk=min(pk for pk, n in counts.items() if n == 3))


@pytest.fixture
def going_on(voted):
    """The campaign of the labels, opened again for one more label each."""
    open_again()
    return Campaign.objects.get()


@pytest.fixture
def oracle(brought, voted):
    """The overlap baseline, over every pair."""
    brought("judgments", judgments(ORACLE, noise=1.0, seed=9))
    return Run.objects.get(judge__name=ORACLE)


def pages(item):
    base = "/leaderboards/grove"
    run = Run.objects.get(judge__name="keen").pk
    yield "/"
    yield "/leaderboards/"
    for path in ("models/", "judges/", "agreement/", "agreement/?all=1", "models/?source=individuals"):
        yield f"{base}/{path}"
    yield f"{base}/plots/forest.svg?source=keen"
    yield f"{base}/votes/?model=Alder"
    yield f"{base}/votes/?model=Alder&source=keen&outcome=loss"
    yield f"{base}/compare/?a=majority&b=run-{run}"
    yield f"{base}/items/{item.pk}/?model=Alder"
    for what in ("models", "judges", "agreement"):
        yield f"{API}/{what}/?benchmark=grove"
        yield f"{API}/{what}/?benchmark=grove&format=csv"


@pytest.mark.parametrize("role", ROLES)
def test_no_page_and_no_route_of_the_boards_tells_a_criterion(role, item, client_of, oracle):
    client = client_of(role)
    for path in pages(item):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert SECRET not in flat(answer), path


@pytest.mark.parametrize("role", ROLES)
def test_a_private_benchmark_exists_for_staff_alone(role, item, client_of):
    Benchmark.objects.update(visibility=Benchmark.Visibility.PRIVATE)
    client = client_of(role)
    for path in pages(item):
        answer = client.get(path)
        if "grove" in path:
            assert answer.status_code == (200 if role in STAFF else 404), path
        else:
            assert ("grove" in flat(answer)) == (role in STAFF), path


def test_the_newest_version_that_is_public_answers_to_the_slug(voted, client, client_of):
    Benchmark.objects.create(slug="grove", version="2", title="grove", visibility=Benchmark.Visibility.PRIVATE)
    assert "Alder" in flat(client.get("/leaderboards/grove/models/"))
    assert "Alder" not in flat(client_of("curator").get("/leaderboards/grove/models/"))
    assert client.get("/leaderboards/grove@2/models/").status_code == 404


# ---- names ----


@pytest.mark.parametrize("role", ROLES)
def test_staff_read_names_and_everybody_else_pseudonyms(role, voted, client_of):
    client = client_of(role)
    pseudonyms = set(Annotator.objects.values_list("pseudonym", flat=True))
    for path in ("/leaderboards/grove/agreement/", f"{API}/agreement/?benchmark=grove"):
        text = flat(client.get(path))
        assert all((f'"{name}"' in text) == (role in STAFF) for name in PEOPLE), path
        if role not in STAFF:
            assert all(pseudonym in text for pseudonym in pseudonyms), path


def test_names_are_not_left_in_what_is_kept_for_others(voted, client_of):
    path = "/leaderboards/grove/agreement/"
    assert "Chen" in flat(client_of("curator").get(path))
    assert "Chen" not in flat(client_of("researcher").get(path))
    assert "Chen" not in flat(client_of("anonymous").get(path))


# ---- people's votes ----


@pytest.mark.parametrize("role", ROLES)
def test_single_labels_are_for_researchers_and_staff(role, item, client_of):
    text = flat(client_of(role).get(f"/leaderboards/grove/items/{item.pk}/"))
    people = Annotator.objects.filter(labels__item=item)
    assert "by majority" in text
    assert all((person.name in text) == (role in STAFF) for person in people)
    assert all((person.pseudonym in text) == (role == "researcher") for person in people)


@pytest.mark.parametrize("role", ROLES)
def test_what_people_still_label_blind_shows_no_vote_of_anybody_below_staff(role, item, going_on, client_of):
    client = client_of(role)
    staff = role in STAFF
    text = flat(client.get(f"/leaderboards/grove/items/{item.pk}/"))
    assert ("by majority" in text) == staff
    assert ("People are labelling this item" in text) == (not staff)
    # Whose answer is whose is hidden too, and what judges said of it, which would be ready to be copied.
    assert ("says <strong>" in text) == staff
    assert ("keen" in text) == staff
    run = Run.objects.get(judge__name="keen").pk
    listed = flat(client.get("/leaderboards/grove/votes/?model=Alder"))
    assert "won 0" not in listed, "what is held back is not counted as zeros"
    compared = flat(client.get(f"/leaderboards/grove/compare/?a=majority&b=run-{run}"))
    judged = flat(client.get("/leaderboards/grove/votes/?model=Alder&source=keen"))
    for page in (listed, compared, judged):
        assert ("What does sign" in page) == staff
    # The aggregates of the board stay public.
    assert "Alder" in flat(client.get("/leaderboards/grove/models/"))


def test_one_item_that_people_label_blind_is_left_out_and_the_others_stay(item, client):
    key = item.sample.key
    second = make_campaign(
        name="second", benchmark=item.sample.benchmark, protocol="pair", plan=Plan(how="keys", keys=(key,))
    )
    model = item.places.first().response.model.name
    text = flat(client.get(f"/leaderboards/grove/votes/?model={model}"))
    assert f"/items/{item.pk}/" not in text
    assert "What does sign" in text
    run = Run.objects.get(judge__name="keen").pk
    compared = flat(client.get(f"/leaderboards/grove/compare/?a=majority&b=run-{run}"))
    assert "those that people label blind until their round closes, are not listed" in compared
    close_campaign(campaign=second, now=timezone.now())
    assert f"/items/{item.pk}/" in flat(client.get(f"/leaderboards/grove/votes/?model={model}"))


def test_what_a_campaign_has_opened_is_shown_as_it_is_counted(item, client):
    """Its finished items may be read by everybody, though it goes on with others."""
    campaign = make_campaign(name="second", benchmark=item.sample.benchmark, protocol="pair", blind=False)
    assert campaign.state == Campaign.State.OPEN
    model = item.places.first().response.model.name
    assert f"/items/{item.pk}/" in flat(client.get(f"/leaderboards/grove/votes/?model={model}"))
    assert "by majority" in flat(client.get(f"/leaderboards/grove/items/{item.pk}/"))


@pytest.mark.parametrize("role", ROLES)
def test_annotators_stand_side_by_side_for_those_who_may_read_labels(role, voted, client_of):
    one, other = Annotator.objects.order_by("pk")[:2]
    answer = client_of(role).get("/leaderboards/grove/compare/", {"a": one.pseudonym, "b": other.pseudonym})
    assert answer.status_code == (200 if role in READERS else 404)
    if role in READERS:
        assert (one.name in flat(answer)) == (role in STAFF)


def test_home_shows_no_item_that_people_label_blind(item, client, client_of):
    visitors = (client, client_of("researcher"), client_of("curator"))
    assert all("What does sign" in flat(visitor.get("/?as=visitor")) for visitor in visitors)
    open_again()
    Item.objects.update(blind=True)  # the one that is in no campaign, too
    assert not any("What does sign" in flat(visitor.get("/?as=visitor")) for visitor in visitors)


# ---- the baseline that reads criteria ----


@pytest.mark.parametrize("role", ROLES)
def test_the_overlap_baseline_tells_single_verdicts_to_staff_alone(role, item, oracle, client_of):
    client = client_of(role)
    staff = role in STAFF
    for query in (f"source={ORACLE}", f"run={oracle.pk}"):
        expected = 200 if staff else 400
        assert client.get(f"/leaderboards/grove/models/?{query}").status_code == expected
        assert client.get(f"/leaderboards/grove/votes/?model=Alder&{query}").status_code == expected
        assert client.get(f"{API}/models/?benchmark=grove&{query}").status_code == expected
    compared = client.get(f"/leaderboards/grove/compare/?a=majority&b=run-{oracle.pk}")
    assert compared.status_code == (200 if staff else 404)
    for page in ("/leaderboards/grove/judges/", "/leaderboards/grove/bias/"):
        assert (f"b=run-{oracle.pk}" in flat(client.get(page))) == staff
    assert f"b=run-{oracle.pk}" not in flat(client.get("/"))  # a baseline is a floor
    shown = flat(client.get(f"/leaderboards/grove/items/{item.pk}/"))
    assert ("Words of the criteria" in shown) == staff
    assert ORACLE not in shown
    assert (ORACLE in flat(client.get("/leaderboards/grove/models/"))) == staff


@pytest.mark.check("J4")
@pytest.mark.parametrize("role", ROLES)
def test_no_number_of_the_overlap_baseline_is_anybody_elses_than_staffs(role, oracle, client_of):
    """The finding: an annotator read its verdicts item by item off the public board, which counted each new label."""
    client = client_of(role)
    staff = role in STAFF
    for what in ("judges", "agreement", "bias"):
        rows = client.get(f"{API}/{what}/?benchmark=grove").json()
        assert any(ORACLE in (row.get("judge"), row.get("a"), row.get("b")) for row in rows) == staff, what
    for page in ("judges/", "agreement/", "bias/", "correlation/", "judges/compare/"):
        shown = flat(client.get(f"/leaderboards/grove/{page}"))
        assert (ORACLE in shown or "Words of the criteria" in shown) == staff, page
    assert client.get(f"/judging/runs/{oracle.pk}/").status_code == {"annotator": 403, "anonymous": 302}.get(
        role, 200 if staff else 404
    )


def test_labels_given_while_practising_are_no_votes_on_the_item_either(brought, client_of):
    brought("labels", labels())
    place = CampaignItem.objects.order_by("pk").first()
    CampaignItem.objects.filter(pk=place.pk).update(practice=True)
    text = flat(client_of("curator").get(f"/leaderboards/grove/items/{place.item_id}/"))
    assert "No labels yet" in text


def open_again():
    Campaign.objects.update(state=Campaign.State.OPEN, overlap=9)
    note_blind_in(Campaign.objects.get())


CHANGES = {
    "a campaign is opened": open_again,
    "a split is hidden": lambda: Benchmark.objects.update(hidden_splits=["test"]),
    "samples are rejected": lambda: Sample.objects.update(status=Sample.Status.REJECTED),
    "runs become tryouts": lambda: Run.objects.update(tryout=True),
}


@pytest.mark.parametrize("role", [pytest.param("anonymous", marks=pytest.mark.soak), "annotator", "researcher"])
def test_pages_that_were_computed_before_show_no_more_after_a_change_than_those_computed_anew(role, item, client_of):
    Sample.objects.update(split="test")
    client, paths = client_of(role), list(pages(item))

    def shown():
        return {path: told(client.get(path)) for path in paths}

    before = shown()
    # What hides is noted for all roles alike: annotators are shown what strangers are, and the round that they label.
    for name, change in CHANGES.items() if role != "annotator" else [*CHANGES.items()][:1]:
        with transaction.atomic():  # each by itself, beside all that is kept of before it and of other changes
            change()
            after = shown()
            with nothing_is_cached():
                assert [path for path, page in shown().items() if page != after[path]] == [], name
            assert after != before, name
            transaction.set_rollback(True)


def told(answer):
    """What is answered, but for when it was computed, and the token of its forms."""
    moving = r"""<time .*?</time>|X-CSRFToken": "\w+|csrfmiddlewaretoken" value="\w+"""
    return answer.status_code, re.sub(moving, "", flat(answer))


@contextmanager
def nothing_is_cached():
    """An empty cache for as long as this lasts."""
    backend = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "empty"}
    with override_settings(CACHES=settings.CACHES | {"default": backend}):
        leaderboard_cache.forget()
        yield
