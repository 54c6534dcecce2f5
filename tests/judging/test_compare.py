"""Two runs compared, and a run cloned with changes."""

import pytest
from django.urls import reverse

from annotations.models import Campaign, CampaignItem
from bank.models import Item
from judging.models import Run
from judging.runs.compare import CannotCompare, compare
from tests.judging.small import make_benchmark
from tests.judging.test_pages import choices, text_of

pytestmark = pytest.mark.django_db
BOTH = {"settings": {"order": "both", "criteria": True}}


def votes(*choices, orders=("01", "10")) -> list[dict]:
    return [
        {"choice": choice, "order": order, "item": item}
        if choice
        else {"status": "refused", "order": order, "item": item}
        for item, pair in enumerate(choices)
        for order, choice in zip(orders, pair, strict=True)
    ]


def test_votes_over_both_orders_are_one_verdict_and_an_item_without_both_is_not_counted(
    people,
    run_of,
):
    bank = make_benchmark(samples=4, slug="four")
    first = run_of(
        bank, votes(("first", "first"), ("first", "second"), ("second", "undecided"), ("first", None)), **BOTH
    )
    rows = votes(("first", "first"), ("second", "second"), ("second", "second"), ("first", "first"))
    second = run_of(bank, rows, judge="osprey", **BOTH)
    found = compare(first, second, viewer=people["researcher"])
    assert found.counts == (3, 4, 3)
    assert found.matrix == [("First", [1, 0, 0]), ("Tie", [0, 0, 1]), ("Second", [0, 0, 1])]
    same, side, kappa = found.figures
    assert [(shown.estimate.value, shown.estimate.n) for shown in (same, side)] == [(pytest.approx(2 / 3), 3), (1.0, 2)]
    # Observed 2/3; by chance (1*1 + 1*0 + 1*2) / 9 = 1/3: kappa = (2/3 - 1/3) / (1 - 1/3) = 0.5.
    assert kappa.estimate.value == pytest.approx(0.5)
    assert [(row.sample.key, row.first, row.second) for row in found.differing] == [("1", "Tie", "Second")]
    assert found.differ == 1
    assert ("judge", "kestrel", "osprey") in found.changes


def test_scores_are_compared_by_their_difference_and_the_furthest_apart_stand_first(
    people,
    benchmark,
    run_of,
):
    one = run_of(benchmark, [{"score": score, "item": n} for n, score in enumerate((1, 3, 5))], protocol="score")
    two = run_of(benchmark, [{"score": score, "item": n} for n, score in enumerate((2, 5, 5))], protocol="score")
    found = compare(one, two, viewer=people["researcher"])
    by_title = {figure.title: figure for figure in found.figures}
    assert by_title["Mean difference"].estimate.value == pytest.approx(1.0)
    assert by_title["The same verdict"].estimate.value == pytest.approx(1 / 3)
    assert [(row.first, row.second) for row in found.differing] == [("3", "5"), ("1", "2")]
    assert found.labels == ["1", "2", "3", "5"]


def test_rankings_are_compared_by_their_distance(people, benchmark, run_of):
    one = run_of(benchmark, [{"ranking": [[0], [1]]}, {"ranking": [[1], [0]], "item": 1}], protocol="batch")
    two = run_of(benchmark, [{"ranking": [[0], [1]]}, {"ranking": [[0], [1]], "item": 1}], protocol="batch")
    found = compare(one, two, viewer=people["curator"])
    assert {figure.title: figure.estimate.value for figure in found.figures} == {
        "The same verdict": 0.5,
        "Mean distance of the rankings": 0.5,
    }
    assert [(row.first, row.second) for row in found.differing] == [("B > A", "A > B")]


def test_runs_without_anything_in_common_say_so(people, benchmark, run_of):
    votes_run = run_of(benchmark, [{"choice": "first"}])
    with pytest.raises(CannotCompare, match="no kind of verdict"):
        compare(votes_run, run_of(benchmark, [{"score": 1}]), viewer=people["curator"])
    with pytest.raises(CannotCompare, match="different benchmarks"):
        compare(votes_run, run_of(make_benchmark(slug="other"), [{"choice": "tie"}]), viewer=people["curator"])
    apart = compare(votes_run, run_of(benchmark, [{"choice": "tie", "item": 1}]), viewer=people["curator"])
    assert (apart.counts, apart.figures) == ((1, 1, 0), [])


def test_the_page_shows_both_runs_and_keeps_what_a_viewer_may_not_see(client_of, benchmark, baseline, run_of):
    one = run_of(benchmark, [{"choice": "first"}, {"choice": "tie", "item": 1}])
    two = run_of(benchmark, [{"choice": "second"}, {"choice": "tie", "item": 1}], judge="osprey")
    path = reverse("leaderboard:judges-compare", args=[benchmark])
    page = text_of(client_of("researcher").get(path, {"run": [one.pk, two.pk]}))
    for words in (
        "50.0%",
        "2 items with a verdict of both",
        "Different settings",
        "osprey",
        "Where the two runs differ",
    ):
        assert words in page
    assert "Which two?" in text_of(client_of("researcher").get(path, {"run": one.pk}))
    oracle = run_of(benchmark, [{"choice": "first"}], judge="baseline-criteria-overlap")
    hidden = run_of(make_benchmark(slug="closed", visibility="private"), [{"choice": "first"}])
    for other, status in ((oracle, 200), (hidden, 400)):
        pair = {"run": [one.pk, other.pk]}
        assert client_of("researcher").get(path, pair).status_code == 400
        assert f"run {other.pk}" not in text_of(client_of("researcher").get(path))
        assert client_of("curator").get(path, pair).status_code == status
    assert "Different settings" not in text_of(client_of("anonymous").get(path, {"run": [one.pk, two.pk]}))


def test_a_clone_begins_with_all_that_the_run_had(client_of, benchmark, judge_at, start):
    judge = judge_at("http://127.0.0.1:9/v1", price_in=1, price_out=1)
    settings = {"order": "shuffled", "criteria": False, "prompt": "rephrased", "repeats": 2, "temperature": None}
    run = start(judge, settings=settings | {"ask_again": 2, "unanswered": "loses"}, budget=3.5)
    client = client_of("curator")
    form = client.get(reverse("judging:run-new"), {"from": run.pk}).context["form"]
    begun = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    given = {name: value for name, value in begun.items() if value not in (None, "", False)}
    client.post(reverse("judging:run-new"), given)
    clone = Run.objects.latest("pk")
    assert clone.pk != run.pk
    assert (clone.settings, clone.judge, clone.budget) == (run.settings, run.judge, run.budget)
    client.post(reverse("judging:run-new"), given | {"repeats": 1})
    assert Run.objects.latest("pk").settings == run.settings | {"repeats": 1}
    assert choices(judge, benchmark)["judge"] == given["judge"]


@pytest.mark.parametrize(
    "items",
    [
        {"sample": 2, "seed": 5},
        {"models": ["heron-7b", "osprey-13b"]},
        {"campaign": "Round 1"},
        {"ids": ...},
    ],
)
def test_a_clone_is_over_the_same_items_with_the_same_request(client_of, judge_at, start, items):
    bank = make_benchmark(samples=4, slug="four")
    chosen = list(Item.objects.filter(sample__benchmark=bank).order_by("pk"))
    if "ids" in items:
        items = {"ids": [one.pk for one in chosen[:3]]}
    if "campaign" in items:
        campaign = Campaign.objects.create(name="Round 1", benchmark=bank)
        CampaignItem.objects.create(campaign=campaign, item=chosen[1])
    settings = {"order": "fixed", "top_p": 0.5, "seed": 3, "items": items}
    run = start(judge_at("http://127.0.0.1:9/v1"), on=bank, settings=settings, batched=True)
    clone = _cloned(client_of("curator"), run)
    assert clone.pk != run.pk
    assert (clone.settings, clone.items_hash, clone.batched) == (run.settings, run.items_hash, True)


def test_a_clone_of_the_first_few_items_is_over_those_whatever_has_come_since(client_of, judge_at, start):
    bank = make_benchmark(samples=4, slug="four")
    run = start(judge_at("http://127.0.0.1:9/v1"), on=bank, limit=2)
    clone = _cloned(client_of("curator"), run)
    assert (clone.items_hash, clone.run_items.count()) == (run.items_hash, 2)
    assert "the items of run" in text_of(client_of("curator").get(reverse("judging:run-detail", args=[clone.pk])))
    again = _cloned(client_of("curator"), clone)
    assert again.items_hash == run.items_hash


def _cloned(client, run: Run) -> Run:
    form = client.get(reverse("judging:run-new"), {"from": run.pk}).context["form"]
    begun = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    client.post(
        reverse("judging:run-new"), {name: value for name, value in begun.items() if value not in (None, "", False)}
    )
    return Run.objects.latest("pk")
