"""Filters by weights and organisation: rows are hidden, numbers stay; and marks of biases beside judges."""

import re

import pytest

from bank.models import EvaluatedModel
from leaderboard.kinds import KINDS
from tests.leaderboard.conftest import judgments, labels
from tests.leaderboard.test_bias_board import always_first, mostly_first
from tests.leaderboard.test_board_pages import Tables
from tests.leaderboard.test_graded_boards import scores
from tests.markup import flat

pytestmark = pytest.mark.django_db
BASE = "/leaderboards/grove"


def rows_of(html):
    return {cells[1][0]: cells for cells in Tables(html).rows if len(cells) > 4}  # of models alone


@pytest.mark.parametrize("kind", ["pair", "score"])
def test_a_filter_by_weights_or_organisation_hides_rows_and_leaves_their_numbers(kind, voted, brought, client):
    brought("labels", scores(0.5, 1, annotator="Ada"))
    page = f"{BASE}/models/?kind={kind}"
    assert "Organisation" not in flat(client.get(page))
    EvaluatedModel.objects.filter(name__in=["Alder", "Birch"]).update(organisation="Wood & Co", open=True)
    EvaluatedModel.objects.filter(name="Cedar").update(organisation="Resin", open=False)
    everyone = rows_of(flat(client.get(page)))
    for query, left in (
        ("weights=open", {"Alder", "Birch"}),
        ("weights=closed", {"Cedar"}),
        ("organisation=Resin", {"Cedar"}),
        ("weights=open&organisation=Wood+%26+Co", {"Alder", "Birch"}),
    ):
        html = flat(client.get(f"{page}&{query}"))
        shown = rows_of(html)
        assert set(shown) == left
        assert f"{len(left)} of {len(everyone)} models are shown" in html
        for name in left:
            assert shown[name][0] == everyone[name][0]  # the rank among all
            assert shown[name][2] == everyone[name][2]
    nobody = flat(client.get(f"{page}&weights=closed&organisation=Wood+%26+Co"))
    assert "Nothing is counted under these filters" in nobody


def test_models_are_shown_by_size_as_their_cards_tell_it(voted, client):
    """The groups of MIA-Bench, Table 1: up to 8, 13 and more billions of parameters."""
    page = f"{BASE}/models/?kind=pair"
    assert "Parameters" not in flat(client.get(page))
    for name, size in {"Alder": "7B", "Birch": "13 B", "Cedar": "8 x 7B"}.items():
        EvaluatedModel.objects.filter(name=name).update(parameters=size)
    for size, left in (("8", {"Alder"}), ("13", {"Birch"}), ("110", {"Cedar"})):
        assert set(rows_of(flat(client.get(f"{page}&size={size}")))) == left


def test_a_judge_that_is_swayed_carries_a_mark_that_leads_to_its_bias(brought, client):
    brought("labels", labels())
    brought("judgments", [*mostly_first(), *judgments("keen", noise=0.6, seed=2)])
    html = flat(client.get(f"{BASE}/judges/?show=bias"))
    lazy = re.search(r"<tr(?:(?!</tr>).)*lazy.*?</tr>", html, re.S).group(0)
    assert re.search(
        r'class="chip bad" href="/leaderboards/grove/bias/" title="points towards the answer shown first[^"]*">'
        r"position \+66\.1</a>",
        lazy,
    )
    keen = re.search(r"<tr(?:(?!</tr>).)*>keen<.*?</tr>", html, re.S).group(0)
    assert "position" not in keen


@pytest.mark.parametrize("kind", KINDS)
def test_every_board_opens_in_every_kind_that_an_address_names(kind, brought, client):
    brought("labels", labels())
    brought("judgments", always_first())  # swayed: its mark leads to its bias, in the same kind
    pages = (
        "models",
        "judges",
        "agreement",
        "bias",
        "correlation",
        "models/matrix",
        "models/together",
    )
    found = {page: client.get(f"{BASE}/{page}/?kind={kind}").status_code for page in pages}
    assert set(found.values()) <= ({200} if kind == "pair" else {200, 400}), found  # what a page has not, it says
    assert found["judges"] == 200
