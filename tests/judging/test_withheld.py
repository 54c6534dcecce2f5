"""What pages and API say of a run that holds hidden criteria and goes on."""

import pytest
from django.urls import reverse
from django.utils import timezone

from bank import exposure
from bank.models import Item
from judging.extras import attack_report
from judging.judgments import browse
from judging.models import Judgment, Run, Trial
from tests.hidden import ended_before_today
from tests.judging.test_pages import text_of

pytestmark = pytest.mark.django_db
SENTENCE = "Counts are shown on the day after the run has ended: it uses hidden criteria."
FIGURES = ("done", "failed", "calls", "lost", "cached", "spent")


@pytest.fixture
def going(benchmark, run_of):
    """A run with criteria, at work: two verdicts and a failure of six."""
    rows = [{"item": 0, "choice": "first"}, {"item": 1, "choice": "undecided"}, {"item": 2, "status": "refused"}]
    counts = {"planned": 6, "verdicts": 2, "failures": 1, "undecided": 1, "calls": 4, "lost": 1, "spent": 0.5}
    return run_of(benchmark, rows, state=Run.State.RUNNING, held=exposure.Inputs.GUIDELINE, **counts)


@pytest.mark.parametrize("state", ["queued", "running"])
def test_the_page_of_a_run_that_goes_on_says_in_a_sentence_when_counts_are_shown(going, state, client_of):
    Run.objects.update(state=state)
    for name in ("run-detail", "run-progress"):
        path = reverse(f"judging:{name}", args=[going.pk])
        page = text_of(client_of("researcher").get(path))
        assert SENTENCE in page
        assert "Not finished" in page
        for words in (
            "No verdict 1",
            "Undecided 1",
            "2 of 6",
            "Refused by the judge",
            "Calls made4",
            "first order",
            "%",
        ):
            assert words not in page, words
        page = text_of(client_of("curator").get(path))
        assert SENTENCE not in page
        for words in ("No verdict 1", "Undecided 1", "2 of 6", "Refused by the judge", "Calls made4", "first order"):
            assert words in page, words


def test_lists_of_runs_have_dashes_for_a_run_that_goes_on(going, client_of):
    for path in (reverse("judging:index"), reverse("judging:judge-detail", args=[going.judge_id])):
        page = text_of(client_of("researcher").get(path))
        assert "Counts are shown on the day after a run has ended" in page
        assert "– of 6" in page
        assert "2 of 6" in text_of(client_of("curator").get(path))


def test_the_list_of_a_judges_runs_tells_no_price_of_a_run_with_criteria_below_staff(going, client_of):
    Run.objects.update(state="finished")
    path = reverse("judging:judge-detail", args=[going.judge_id])
    assert "$0.50" not in text_of(client_of("researcher").get(path))
    assert "$0.50" in text_of(client_of("curator").get(path))


def test_the_api_has_null_for_every_figure_of_a_run_that_goes_on(going, client_of):
    one = f"/api/v1/runs/{going.pk}/"
    for told in (
        client_of("researcher").get(one).json(),
        client_of("researcher").get("/api/v1/runs/").json()["results"][0],
    ):
        assert {name: told[name] for name in FIGURES} == dict.fromkeys(FIGURES)
        assert (told["state"], told["total"]) == ("running", 6)
    told = client_of("curator").get(one).json()
    assert [told[name] for name in ("done", "failed", "calls", "lost")] == [2, 1, 4, 1]


def test_a_comparison_with_a_run_that_goes_on_waits_until_it_has_ended(going, run_of, benchmark, client_of):
    other = run_of(benchmark, [{"item": 0, "choice": "first"}], judge="osprey", state="finished")
    path = reverse("leaderboard:judges-compare", args=[benchmark]) + f"?run={other.pk}&run={going.pk}"
    assert "its verdicts are shown on the day after it has ended" in text_of(client_of("researcher").get(path))
    assert "its verdicts are shown on the day after it has ended" not in text_of(client_of("curator").get(path))


def test_what_attacks_did_is_shown_the_day_after_the_run_has_ended(going, client_of, monkeypatch):
    settings = {"order": "fixed", "attacks": ["praise@1"]}
    Run.objects.update(kind=Run.Kind.ATTACKS, settings=settings)
    item = going.items.first()
    Judgment.objects.all().delete()
    for attack in ("", "praise@1"):
        Trial.objects.create(run=going, item=item, attack=attack, choice="first")
    path, page = f"/api/v1/runs/{going.pk}/attacks/", reverse("judging:run-detail", args=[going.pk])
    assert client_of("researcher").get(path).json() == []
    assert SENTENCE in text_of(client_of("researcher").get(page))
    assert client_of("curator").get(path).json()[0]["n"] == 1
    Run.objects.update(state="finished", finished_at=timezone.now())
    assert client_of("researcher").get(path).json() == []
    ended_before_today()
    assert client_of("researcher").get(path).json() == []  # about one sample
    assert "Too few samples" in text_of(client_of("researcher").get(page))
    monkeypatch.setattr(attack_report, "LEAST_SAMPLES", 1)
    assert client_of("researcher").get(path).json()[0]["n"] == 1


def test_what_attacks_did_is_made_of_trials_that_are_seen_one_by_one(going, client_of, monkeypatch):
    """Two reports that differ by a hidden sample would have told its verdict."""
    Run.objects.update(kind=Run.Kind.ATTACKS, settings={"order": "fixed", "attacks": ["praise@1"]}, state="finished")
    monkeypatch.setattr(attack_report, "LEAST_SAMPLES", 1)
    Judgment.objects.all().delete()
    first, second = going.items.all()[:2]
    for item in (first, second):
        for attack in ("", "praise@1"):
            Trial.objects.create(run=going, item=item, attack=attack, choice="first")
    ended_before_today()
    path = f"/api/v1/runs/{going.pk}/attacks/"
    told = {role: client_of(role) for role in ("researcher", "curator")}
    assert [told[role].get(path).json()[0]["n"] for role in told] == [2, 2]
    Item.objects.filter(pk=second.pk).update(blind=True)
    assert [told[role].get(path).json()[0]["n"] for role in told] == [1, 2]
    Item.objects.filter(pk=second.pk).update(blind=False, outside=True)
    assert [told[role].get(path).json()[0]["n"] for role in told] == [1, 2]


@pytest.mark.parametrize("query", ["", "show=first", "run={run}"])
def test_where_a_page_of_judgments_ends_tells_nothing_of_a_run_that_goes_on(query, going, client_of, monkeypatch):
    monkeypatch.setattr(browse, "SEARCHED", 1_000)
    items = list(going.items.all())
    more = [
        Judgment(run=going, item=item, order=order, repeat=repeat, choice="first")
        for repeat in range(1, 201)
        for order in ("01", "10")
        for item in items
    ]
    Judgment.objects.bulk_create(more)
    path = f"{reverse('judging:judgment-list')}?{query.format(run=going.pk)}"
    before = text_of(client_of("researcher").get(path)), client_of("researcher").get(path).context["listing"].after
    Judgment.objects.create(run=going, item=items[0], order="10", repeat=300, choice="first")
    again = text_of(client_of("researcher").get(path)), client_of("researcher").get(path).context["listing"].after
    assert again == before
    assert again[1] == ""
