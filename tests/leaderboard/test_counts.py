"""What pages count and call by one noun is one number, or each says what it counts."""

import pytest

from bank.models import Item
from tests.leaderboard.conftest import folder, grove, manage
from tests.leaderboard.test_poor_data import judgment, label
from tests.markup import flat

__all__ = ["folder", "grove", "manage"]
pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

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
        howto = flat(page).partition("How to read it")[2].partition("</section>")[0]
        for column, word in WORDS_OF[board].items():
            told = f"<b>{word}</b>" in howto if word else COLOURED in howto
            assert told == (column in there), (chosen, column)
            seen |= {(column, told)}
    assert seen >= {(column, told) for column in WORDS_OF[board] for told in (True, False) if column != "bias"}
