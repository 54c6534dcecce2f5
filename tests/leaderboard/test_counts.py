"""What pages count and call by one noun is one number, or each says what it counts."""

import html
import re

import pytest

from annotations.campaigns.actions import make_campaign
from annotations.campaigns.sampling import Plan
from annotations.models import Label
from bank.models import EvaluatedModel, Item
from judging.models import Run
from tests.leaderboard.test_poor_data import judgment, label
from tests.markup import flat

pytestmark = pytest.mark.django_db

ASKED = [(n, pair) for n in range(10) for pair in (("Alder", "Birch"), ("Cedar", "Dogwood"))]
SPLIT = ("first", "first", "tie", "second", "second")


def given(n, choices):
    """Labels of a pair of one sample by as many people."""
    return [label(n, choice, who=f"person {at}") for at, choice in enumerate(choices)]


@pytest.mark.parametrize("rule", ["plurality", "mllm-bench"])
def test_where_people_have_no_majority_it_says_so_and_no_judge_differs_from_them(rule, brought, client):
    brought("labels", [*given(0, SPLIT), *given(1, ["tie", "tie", "undecided", "first", "second"])])
    brought("judgments", [judgment(0, "first"), judgment(1, "first")])
    split, tied = Item.objects.order_by("sample__key")
    listed = flat(client.get(f"/leaderboards/grove/votes/?model=Alder&majority={rule}"))
    assert "No majority" in listed
    assert "people split" in listed
    assert "Tie, 3 of 5" in listed
    assert "Tie, 1 of 5" not in listed
    assert "1 of 1 differs" in listed  # on the pair that most call a tie
    of_split = flat(client.get(f"/leaderboards/grove/items/{split.pk}/?majority={rule}"))
    assert "No majority" in of_split
    assert "differs" not in of_split
    assert "differs" in flat(client.get(f"/leaderboards/grove/items/{tied.pk}/?majority={rule}"))


@pytest.mark.parametrize("rule", ["plurality", "mllm-bench"])
def test_beside_a_judge_no_majority_is_called_so_and_counts_as_a_tie(rule, brought, client_of):
    brought("labels", [*given(0, SPLIT), *given(1, ["tie", "tie", "undecided", "first", "second"])])
    brought(
        "judgments",
        [judgment(n, choice, judge=name) for name, choice in (("j", "tie"), ("k", "first")) for n in (0, 1)],
    )
    client, (first, second) = client_of("curator"), Run.objects.order_by("pk")
    beside = flat(client.get(f"/leaderboards/grove/compare/?a=majority&b=run-{first.pk}&majority={rule}"))
    assert beside.count("no majority") == 1
    assert "2 the same of 2" in beside
    both = flat(client.get(f"/leaderboards/grove/judges/compare/?a=run-{first.pk}&b=run-{second.pk}&majority={rule}"))
    assert both.count("no majority") == 1


def test_the_item_of_the_start_page_calls_no_verdict_of_some_peoples_the_majority(brought, client):
    brought("labels", given(0, SPLIT))
    brought("judgments", [judgment(0, "first")])
    home = flat(client.get("/"))
    assert "No majority" in home
    assert "Tie, 1 of 5" not in home


WORDS_OF = {  # columns, and the words that explain them
    "judges": {"place": "Rank", "n": "n", "coverage": "Coverage", "bias": "Bias", "levels": ""},
    "models": {"win_rate": "Win %", "bt": "Rating", "levels": ""},
}
COLOURED = "A coloured column is"


@pytest.mark.parametrize("board", list(WORDS_OF))
def test_how_to_read_a_board_speaks_of_the_columns_that_are_there(board, voted, client):
    """Also where people chose the columns: no word is of one that is not there."""
    address = f"/leaderboards/grove/{board}/"
    seen = set()
    for chosen in ("", *WORDS_OF[board], "n,coverage", "levels,n"):
        page = client.get(address, {"show": chosen} if chosen else {})
        there = page.context["page"].table.names if page.context else set()
        howto = flat(page).partition("How to read it")[2].partition("</details>")[0]
        for column, word in WORDS_OF[board].items():
            told = f"<b>{word}</b>" in howto if word else COLOURED in howto
            assert told == (column in there), (chosen, column)
            seen |= {(column, told)}
    assert seen >= {(column, told) for column in WORDS_OF[board] for told in (True, False) if column != "bias"}


def test_counts_of_samples_and_models_say_which_of_them_no_board_counts(brought, client):
    """36 samples and 4 models have answers; people gave verdicts on pairs of two models on 30 samples."""
    brought("labels", [label(n, "first" if n % 3 else "second", who=who) for n in range(30) for who in ("Ada", "Ben")])
    counted = "36 samples (30 with items), 4 models (2 with items)"
    for address in ("/", "/leaderboards/", "/leaderboards/grove/", "/leaderboards/grove/models/", "/data/"):
        assert counted in flat(client.get(address)), address
    missing = "2 of 4 models: 2 without verdicts here"
    for address in ("/", "/leaderboards/grove/", "/leaderboards/grove/models/"):
        assert missing in flat(client.get(address)), address
    rows = client.get("/api/v1/leaderboards/models/?benchmark=grove").json()
    assert len(rows.get("rows", rows) if isinstance(rows, dict) else rows) == 2


def test_where_every_sample_and_model_has_items_nothing_is_added(voted, client):
    page = flat(client.get("/leaderboards/grove/models/"))
    assert "36 samples, 4 models," in page
    assert "4 of 4" not in page
    assert "without verdicts here" not in page


def test_the_anchor_is_said_to_be_none_of_the_models_that_it_is_compared_with(voted, client):
    voted.anchor = EvaluatedModel.objects.get(name="Alder")
    voted.save()
    assert "3 of 4 models: Alder is what the others are compared with" in flat(client.get("/leaderboards/grove/"))


def test_coverage_of_a_board_and_of_its_models_are_told_apart(brought, client, board):
    """Of ten pairs of two models all have a verdict, of ten of two others half."""
    brought("labels", [label(n, "first" if n % 3 else "second", pair=pair) for n, pair in ASKED])
    Label.objects.filter(item__sample__key__lt="s05", item__places__response__model__name="Cedar").update(excluded=True)
    rows = board("models")
    assert sorted({row["coverage"] for row in rows}) == [0.5, 1.0]
    page = flat(client.get("/leaderboards/grove/models/"))
    assert "75.0 % of the items asked about; of each model's own, 50.0 to 100.0 %" in html.unescape(page)


def test_what_a_board_counts_while_people_label_is_told_and_adds_up(voted, people, client_of):
    """A campaign over a few items takes these from visitors' board, one over all gives them back as of when it was
    opened; boards say how many, so that what staff count is what visitors count and what they are told is left out.
    """

    def seen_by(role):
        rows = client_of(role).get("/api/v1/leaderboards/models/?benchmark=grove").json()
        page = flat(client_of(role).get("/leaderboards/grove/models/"))
        return int(re.search(r"<dt>Data</dt><dd>([\d,]+) item", page)[1].replace(",", "")), page, rows

    every, page, _ = seen_by("curator")
    assert seen_by("anonymous")[0] == every
    assert "label again" not in page
    assert "labelled again" not in page
    few = Item.objects.filter(sample__key__in=["s00", "s01", "s02"])
    held = few.filter(labels__isnull=False).distinct().count()
    make_campaign(name="A few", benchmark=voted, protocol="pair", plan=Plan(how="keys", keys=("s00", "s01", "s02")))
    counted, page, _ = seen_by("anonymous")
    assert counted == every - held
    assert f"{held} items that people label again until the round closes are left out" in page
    make_campaign(name="All", benchmark=voted, protocol="pair")
    again, page, _ = seen_by("anonymous")
    left = (
        int(found[1])
        if (found := re.search(r"(\d+) more items that people label again until the round closes are", page))
        else 0
    )
    assert again + left == every
    assert f"the last closed state.</b> {again} items are being labelled again, blind, until the round closes" in page
    beyond = flat(client_of("curator").get("/leaderboards/grove/models/"))
    assert "under way as a whole and as of their last closed state" in beyond
