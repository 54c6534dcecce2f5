"""Ranks as a board tells them: by command, API and page, where groups, votes and wins are few or uneven."""

import random
import re

import pytest

from bank.models import Benchmark
from leaderboard.boards.seen import models
from leaderboard.view import scope_of
from tests.bank.conftest import picture
from tests.leaderboard.conftest import by_model
from tests.markup import flat
from tests.once import once

pytestmark = pytest.mark.django_db


@pytest.fixture
def contest(folder, manage):
    """``contest(name, votes)`` makes a benchmark of ``votes``: (sample, group, first, second, choice)."""

    def make(name, votes):
        (folder.root / "sign.png").write_bytes(picture())
        of_sample = {sample: group for sample, group, *_ in votes}
        models = sorted({model for _, _, *pair, _ in votes for model in pair})
        asked = [
            {"key": key, "group": group, "instruction": f"What does {key} say?", "images": ["sign.png"]}
            for key, group in of_sample.items()
        ]
        texts = [{"sample": key, "model": model, "text": f"{model}, {key}"} for key in of_sample for model in models]
        labels = [
            {
                "kind": "pair",
                "protocol": "pair",
                "sample": sample,
                "annotator": "Ada",
                "responses": [first, second],
                "choice": choice,
            }
            for sample, _, first, second, choice in votes
        ]
        own = ("--benchmark", name)
        assert manage("import_benchmark", "generic", folder("samples", asked), *own, "--public")[0] == 0
        assert manage("import_responses", "generic", folder("responses", texts), *own)[0] == 0
        assert manage("import_labels", "generic", folder("labels", labels), *own)[0] == 0
        return Benchmark.objects.get(slug=name)

    return lambda name, votes: once(name, lambda: make(name, votes))


def test_where_one_group_has_nearly_all_rows_neither_win_rate_nor_strength_has_an_interval(contest, board, client):
    rng = random.Random(1)
    votes = [
        (f"s{n:03}", "big" if n < 95 else f"g{n}", "Alder", "Birch", "first" if rng.random() < 0.6 else "second")
        for n in range(104)
    ]
    contest("lopsided", votes)
    rows = board("models", benchmark="lopsided")
    reason = "one group has nearly all of the weight: no interval"
    for row in rows:
        assert row["bt"] is not None
        assert (row["bt_low"], row["win_rate_low"], row["tier"]) == (None, None, None)
        assert {f"bt: {reason}", f"win_rate: {reason}"} <= set(row["notes"])
    assert client.get("/api/v1/leaderboards/models/?benchmark=lopsided").json() == rows


@pytest.mark.parametrize("prompts", [10, 40])
def test_a_model_that_lost_everything_widens_nobodys_range_and_the_others_may_be_the_best(
    prompts, contest, board, client
):
    votes = []
    for n in range(prompts):
        votes.append((f"s{n:02}", "", "Alder", "Birch", "first" if n % 5 < 3 else "second"))
        votes += [(f"s{n:02}", "", model, "Cedar", "first") for model in ("Alder", "Birch")]
    name = f"winless-{prompts}"
    contest(name, votes)
    rows = by_model(board("models", benchmark=name))
    assert {model: (row["rank"], row["rank_low"], row["rank_high"]) for model, row in rows.items()} == {
        "Alder": (1, 1, 2),
        "Birch": (2, 1, 2),
        "Cedar": (3, 1, 3),
    }
    page = client.get(f"/leaderboards/{name}/models/").text
    told = "<b>Alder and Birch</b> may be the best, all together with 95%. Alder comes first, win % "
    provisional = "May be the best, all together with 95%: Alder and Birch."
    assert (provisional if prompts == 10 else told) in page
    assert "is a range: the places this model may have, at 95%" in page


def test_a_model_with_few_items_is_provisional_and_its_row_says_so(contest, board, client):
    rng = random.Random(2)
    votes = [(f"s{n:02}", "", "Alder", "Birch", "first" if rng.random() < 0.6 else "second") for n in range(60)]
    votes += [(f"s{n:02}", "", "Cedar", "Birch", "first" if n % 3 else "second") for n in range(12)]
    contest("provisional", votes)
    rows = by_model(board("models", benchmark="provisional"))
    assert "rank: provisional, over fewer than 30 items" in rows["Cedar"]["notes"]
    assert "rank: provisional, over fewer than 30 items" not in rows["Birch"]["notes"]
    assert "2 ranked, 1 not yet" in client.get("/leaderboards/provisional/models/").text


def test_down_the_page_no_rank_is_better_than_that_of_a_stronger_model(contest, board):
    rng = random.Random(3)
    models, strength = [f"M{n:02}" for n in range(10)], {}
    votes = []
    for n, model in enumerate(models):
        strength[model] = 1.2 - 0.25 * n
    for n in range(900):
        first, second = rng.sample(models, 2)
        if first in models[5:7] and rng.random() < 0.85:
            continue
        odds = 1 / (1 + 2.718 ** (strength[second] - strength[first]))
        votes.append((f"s{n:03}", "", first, second, "first" if rng.random() < odds else "second"))
    for model in models[5:7]:
        votes = [vote for at, vote in enumerate(votes) if model not in vote or at % 8 == 0]
    contest("uneven", votes)
    rows = board("models", benchmark="uneven")
    assert [row["rank"] for row in rows] == sorted(row["rank"] for row in rows)
    tiers = [row["tier"] for row in rows]
    assert tiers == sorted(tiers)
    assert all(row["tier"] <= row["rank"] <= row["rank_high"] for row in rows)


def test_a_tier_says_no_number_of_better_models_that_is_not_so(contest, client_of):
    """Of 59 models of LLMFAO nine were said to have more significantly better ones than there are."""
    rng = random.Random(3)
    votes = []
    for n in range(1500):
        first, second = sorted(rng.sample(range(12), 2))
        if 5 in (first, second) and n % 7:
            continue
        odds = 1 / (1 + 2.718 ** (0.3 * (first - second)))
        votes.append((f"s{n:04}", "", f"M{first:02}", f"M{second:02}", "first" if rng.random() < odds else "second"))
    benchmark = contest("many", votes)
    found = models(scope_of(benchmark=benchmark, staff=True))
    better = {row.model: {other for other, worse in found.worse.items() if row.model in worse} for row in found.rows}
    of_tier, begun = {row.model: row.tier for row in found.rows}, 0
    assert any(len(better[row.model]) != row.tier - 1 for row in found.rows), "a tier is no count"
    for row in found.rows:
        assert all(of_tier[other] < row.tier for other in better[row.model]), "no two of a tier are told apart"
        begins = row.tier > begun
        assert row.tier == begun + begins
        assert not begins or row.tier == 1 or better[row.model]
        begun = row.tier
    page = flat(client_of("curator").get(f"/leaderboards/{benchmark.slug}/models/").text)
    assert "models significantly better" not in page
    assert re.search(r"<b>Tier 2</b>places? \d+.*?; somebody above is significantly better than place \d+", page)


def test_where_groups_of_models_never_met_none_is_first_and_the_best_is_said_of_those_that_are_connected(
    contest, board
):
    rng = random.Random(6)
    votes = []
    for pair in range(5):
        names = f"d{2 * pair}", f"d{2 * pair + 1}"
        votes += [(f"s{pair}-{n}", "", *names, "first" if rng.random() < 0.55 else "second") for n in range(30)]
    benchmark = contest("islands", votes)
    rows = board("models", benchmark="islands")
    places = {(row["rank"], row["rank_low"], row["rank_high"], row["tier"]) for row in rows}
    assert (len(rows), places) == (10, {(None, None, None, None)})
    notes = models(scope_of(benchmark=benchmark)).notes
    assert any(note.startswith("5 groups of models that never met: nothing says who is first of all") for note in notes)
    (best,) = (note for note in notes if "May be the best" in note)
    assert best.startswith("May be the best of the 2 that are connected, all together with 95%: d")


def test_a_model_that_won_none_of_two_hundred_in_twenty_groups_has_a_win_rate_below_six_percent(contest, board):
    rng = random.Random(4)
    votes = []
    for n in range(200):
        group = f"g{n // 10}"
        votes.append((f"s{n:03}", group, "Alder", "Birch", "first" if rng.random() < 0.5 else "second"))
        votes.append((f"s{n:03}", group, "Cedar", "Birch", "second"))
    contest("rare", votes)
    rows = by_model(board("models", "--anchor", "Birch", benchmark="rare"))
    assert (rows["Cedar"]["win_rate"], rows["Cedar"]["win_rate_groups"]) == (0, 20)
    assert rows["Cedar"]["win_rate_high"] < 0.06
