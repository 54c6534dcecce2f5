"""While people label blind, boards below staff stand as they did when the round was opened."""

import json
import random
import re
from datetime import date

import pytest
from django.utils import timezone

from accounts.models import User
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import close_campaign, make_campaign, open_campaign
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.members import make_annotator
from annotations.campaigns.sampling import Plan
from annotations.labels.actions import change_label, submit_label
from annotations.models import CampaignItem, Label
from bank.models import Benchmark, Item
from leaderboard.registry import TABLES
from tests.leaderboard.conftest import judgments, without_state
from tests.leaderboard.test_poor_data import label as label_of
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

BOARDS = ("models", "judges", "agreement", "bias")
PAGES = ("/", "/leaderboards/", "/leaderboards/grove/", *(f"/leaderboards/grove/{what}/" for what in BOARDS))
CHANCE = re.compile(r'"X-CSRFToken": "\w+"|name="csrfmiddlewaretoken" value="\w+"|<time.*?</time>|nonce="[^"]+"')
BELOW = ("anonymous", "annotator", "researcher")


def with_state(client, what, **asked):
    asked |= {"elo": "none"} if what == "models" else {}  # in full it tells each vote of the order, so it goes
    answer = client.get(f"/api/v1/leaderboards/{what}/", {"benchmark": "grove"} | asked)
    return answer.json() if answer.status_code == 200 else answer.status_code


def rows_of(client, what, **asked):
    """What the rows say, but as of when."""
    rows = with_state(client, what, **asked)
    if isinstance(rows, int):
        return rows
    return [without_state(row) for row in rows]


@pytest.fixture
def boards(client_of):
    """The rows of the main boards for a role."""
    return lambda role: {what: rows_of(client_of(role), what) for what in BOARDS}


def again(benchmark, **settings):
    """A blind round over all pairs, and who labels there."""
    person = User.objects.create_user("bea", role="annotator")
    campaign = make_campaign(name="Again", benchmark=benchmark, protocol="pair", annotators=[person], **settings)
    return campaign, make_annotator(person)


def label_some(campaign, annotator, choose, most=12):
    for _ in range(most):
        shown = next_assignment(campaign=campaign, annotator=annotator, now=timezone.now())
        if shown is None:
            return
        submit_label(assignment=shown, verdict={"choice": choose()}, now=timezone.now())


def test_no_board_below_staff_moves_or_empties_when_a_round_is_opened_and_labelled(voted, boards):
    before = {role: boards(role) for role in BELOW}
    assert all(before["anonymous"].values())
    campaign, annotator = again(voted)
    assert {role: boards(role) for role in BELOW} == before
    label_some(campaign, annotator, lambda: "left")
    assert {role: boards(role) for role in BELOW} == before
    assert boards("curator")["models"] != before["anonymous"]["models"], "staff see the round"
    close_campaign(campaign=campaign, now=timezone.now())
    closed, staffs = boards("anonymous"), boards("curator")
    for what in ("models", "judges", "bias"):  # agreement names people to staff
        assert closed[what] == staffs[what] != before["anonymous"][what]
    open_campaign(campaign=campaign, again=True)
    assert boards("anonymous") == closed
    label_some(campaign, annotator, lambda: "right")
    assert boards("anonymous") == closed


def test_a_judge_that_comes_while_people_label_counts_when_the_round_closes(voted, brought, boards):
    before = boards("anonymous")
    campaign, _ = again(voted)
    brought("judgments", judgments("late", noise=0.6, seed=5))
    for what in ("judges", "bias"):
        during = boards("anonymous")[what]
        assert [row for row in during if row.get("judge") != "late"] == before[what]
        assert not any(row.get("n") for row in during if row.get("judge") == "late")
    close_campaign(campaign=campaign, now=timezone.now())
    assert "late" in {row["judge"] for row in boards("anonymous")["judges"]}


def test_nothing_of_an_open_round_can_be_worked_out_below_staff(voted, client_of):
    """Two worlds with other labels in the round: every table and page is the same to whoever may not see it."""
    campaign, annotator = again(voted)
    label_some(campaign, annotator, lambda: "left", most=40)
    other = random.Random(3)

    def told(role):
        client = client_of(role)
        tables = {name: rows_of(client, name) for name in TABLES}
        pages = {address: flat(client.get(address)) for address in PAGES}
        return json.dumps(tables, sort_keys=True), {address: CHANCE.sub("", page) for address, page in pages.items()}

    worlds = []
    for choices in (("first",), ("first", "second", "tie")):
        for label in Label.objects.filter(campaign=campaign):
            Label.objects.filter(pk=label.pk).update(choice=other.choice(choices), changed_at=timezone.now())
        worlds.append({role: told(role) for role in BELOW})
    assert worlds[0] == worlds[1]
    assert "Alder" in worlds[0]["anonymous"][0]


def test_a_label_that_is_changed_while_another_round_is_open_counts_as_it_was(voted, boards):
    Label.objects.all().delete()
    mine, annotator = again(voted)
    label_some(mine, annotator, lambda: "left", most=500)
    make_campaign(name="Other", benchmark=voted, protocol="pair")
    for label in Label.objects.filter(campaign=mine):
        change_label(assignment=label.assignment, verdict={"choice": "right"}, now=timezone.now())
    assert boards("anonymous")["models"] == []
    close_campaign(campaign=mine, now=timezone.now())
    told, staffs = boards("anonymous")["models"], boards("curator")["models"]
    assert {row["model"]: row["n"] for row in told} == {row["model"]: row["n"] for row in staffs}
    wins = {row["model"]: (row["wins"], row["losses"]) for row in told}
    turned = {row["model"]: (row["losses"], row["wins"]) for row in staffs}
    assert wins == turned


def test_a_board_says_as_of_when_it_stands_and_until_when(voted, client_of):
    due = timezone.now().date().replace(year=2031)
    again(voted, due=due)
    for what in BOARDS:
        page = flat(client_of("anonymous").get(f"/leaderboards/grove/{what}/"))
        assert f"As of {timezone.now():%-d %b %Y}, the last closed state.</b>" in page
        assert f"are being labelled again, blind, until {due:%-d %b %Y}. What is said of them now shows when" in page
        assert f"by people, as of {timezone.now():%-d %b %Y}" in page


@pytest.mark.parametrize("due", [None, date(2031, 12, 4)], ids=["without an end", "with one"])
def test_every_row_says_as_of_when_it_is_and_what_is_kept_back_until_when(due, voted, client_of):
    visitor = client_of("anonymous")
    for what in BOARDS:
        assert not any("kept_back" in row for row in with_state(visitor, what))
    campaign, _ = again(voted, due=due)
    opened = Item.objects.filter(blind=True).earliest("blind_since").blind_since
    asked = Item.objects.filter(blind=True, kind="pair").count()
    until = due.isoformat() if due else None
    for what in (*BOARDS, "stand-in", "places", "apart", "ceiling"):
        for row in with_state(visitor, what):
            assert row["as_of"] == opened.isoformat(), what
            assert row["kept_back"] == {"items": asked, "until": until}, what
    flat_rows = visitor.get("/api/v1/leaderboards/models/?benchmark=grove&format=csv").content.decode()
    assert flat_rows.splitlines()[0].endswith("as_of,kept_back")
    close_campaign(campaign=campaign, now=timezone.now())
    assert all(row["as_of"] is None for row in with_state(visitor, "models"))
    assert not any("kept_back" in row for row in with_state(visitor, "models"))


def test_staff_see_both_states(voted, client_of):
    curator, visitor = client_of("curator"), client_of("anonymous")
    campaign, annotator = again(voted)
    label_some(campaign, annotator, lambda: "tie", most=100)
    for what in BOARDS:
        address = f"/leaderboards/grove/{what}/"
        assert rows_of(curator, what, state="closed") == rows_of(visitor, what)
        page = flat(curator.get(address))
        assert "With open rounds: not public.</b>" in page
        assert f'href="{address}?state=closed"' in page
        closed = flat(curator.get(f"{address}?state=closed"))
        assert "the last closed state.</b>" in closed
        assert "With open rounds: not public" not in closed
    assert rows_of(curator, "models") != rows_of(visitor, "models")
    assert with_state(curator, "models", state="open") == 400
    assert curator.get("/leaderboards/grove/models/?state=open").status_code == 400
    assert rows_of(visitor, "models", state="closed") == rows_of(visitor, "models")


def test_what_was_never_labelled_before_counts_when_its_round_closes(voted, client_of):
    Label.objects.all().delete()
    campaign, annotator = again(voted)
    label_some(campaign, annotator, lambda: "left", most=500)
    visitor = client_of("anonymous")
    assert rows_of(visitor, "models", source="humans") == []
    close_campaign(campaign=campaign, now=timezone.now())
    assert len(rows_of(visitor, "models", source="humans")) == 4


def test_since_when_an_item_is_labelled_is_since_the_earliest_round_that_is_open_on_it(voted):
    first, _ = again(voted)
    second = make_campaign(name="Second", benchmark=voted, protocol="pair")
    opened = {
        campaign: set(CampaignItem.objects.filter(campaign=campaign).values_list("asked_since", flat=True))
        for campaign in (first, second)
    }
    since = Item.objects.filter(campaign_items__campaign=first)
    assert set(since.values_list("blind_since", flat=True)) == opened[first]
    close_campaign(campaign=first, now=timezone.now())
    assert set(since.values_list("blind_since", flat=True)) == opened[second]
    close_campaign(campaign=second, now=timezone.now())
    assert set(since.values_list("blind_since", flat=True)) == {None}


def test_the_list_behind_a_number_prints_that_number_and_what_of_it_is_hidden(voted, client_of):
    """A round over a part of the pairs: the list has the others, and says what the board counts beside them."""
    keys = tuple(f"s{n:02}" for n in range(12))
    campaign = make_campaign(
        name="Part", benchmark=voted, protocol="pair", plan=Plan(how="keys", keys=keys), due=date(2031, 12, 4)
    )
    visitor = client_of("anonymous")
    for row in rows_of(visitor, "models"):
        listed = flat(visitor.get("/leaderboards/grove/votes/", {"model": row["model"]}))
        n, of_model = row["n"], Item.objects.filter(blind=True, places__response__model__name=row["model"])
        hidden = of_model.filter(labels__isnull=False).distinct().count()
        shown = f"{n - hidden} of them are shown here, " if n > hidden else "none of them is shown here"
        assert f"{row['wins']:.0f} won of {n} = {100 * row['win_rate']:.1f}%; {shown}" in listed
        assert f"; {hidden} are hidden until 4 Dec 2031" in listed
        assert f"{hidden} items that people label blind, hidden until 4 Dec 2031" in listed
    close_campaign(campaign=campaign, now=timezone.now())
    for row in rows_of(visitor, "models"):
        listed = flat(visitor.get("/leaderboards/grove/votes/", {"model": row["model"]}))
        assert f"{row['wins']:.0f} won of {row['n']} = {100 * row['win_rate']:.1f}%" in listed
        assert "are hidden" not in listed


def test_no_level_of_judges_is_about_few_items_that_people_label_blind(voted, client_of):
    """Of the 36 samples twelve are labelled again, six in each of two levels: the whole counts them, no level does."""
    open_levels = cells(client_of("anonymous"))
    keys = [f"s{n:02}" for n in range(12)]
    make_campaign(name="Part", benchmark=voted, protocol="pair", plan=Plan(how="keys", keys=tuple(keys)))
    levels = Item.objects.filter(blind=True).values_list("sample__capability__path", flat=True)
    assert len(set(levels)) > 1
    during = cells(client_of("anonymous"))
    outside = Item.objects.filter(blind=False, labels__isnull=False)
    for level, n in during.items():
        assert n <= outside.filter(sample__capability__path__startswith=level).distinct().count()
    assert sum(during.values()) < sum(open_levels.values())


def cells(client):
    """How many pairs the first judge's levels are about, by level."""
    page = client.get("/leaderboards/grove/judges/").context["board"]
    of_metric = page.against["majority"].cells["agreement"]
    return {level: value.n for level, value in of_metric[max(of_metric)].items()}


def test_what_a_round_has_opened_counts_with_what_it_asked_when_another_round_asks_for_it_again(voted, boards):
    """Its finished items were open to all, and so in the last closed state of the next round."""
    Label.objects.all().delete()
    CampaignItem.objects.all().delete()
    first, annotator = again(voted, overlap=1)
    label_some(first, annotator, lambda: "left", most=500)
    open_finished(campaign=first, by=None, now=timezone.now())
    before = boards("anonymous")["models"]
    assert [row["coverage"] for row in before] == [1.0] * len(before) != []
    make_campaign(name="Second", benchmark=voted, protocol="pair")
    assert boards("anonymous")["models"] == before


def test_no_board_of_single_labels_tells_what_an_open_round_gives_to_everybody(voted, client_of):
    """Labels on decoys count as one vote, so that nobody finds the gold among them: of rounds that have closed."""

    def told():
        visitor = client_of("anonymous")
        return rows_of(visitor, "models", source="individuals"), rows_of(visitor, "judges")

    before = told()
    assert before[0]
    campaign, _ = again(voted)
    places = CampaignItem.objects.filter(campaign=campaign)
    places.filter(pk__in=list(places.values_list("pk", flat=True)[:60])).update(decoy=True)
    assert told() == before
    close_campaign(campaign=campaign, now=timezone.now())
    assert told() != before


NAMES = ("Alder", "Birch", "Cedar", "Dogwood")
MEETINGS = [(a, b) for at, a in enumerate(NAMES) for b in NAMES[at + 1 :]]


def test_models_that_meet_on_few_samples_stay_on_the_board_and_no_cell_is_about_two_of_them(brought, client_of, boards):
    """LLMFAO has 59 models on 13 prompts: no two of them meet on ten, and each is on all."""
    chosen = random.Random(7)
    labels = []
    for n in range(36):
        verdict = chosen.choice(["first", "second", "tie"])
        labels += [label_of(n, verdict, pair=MEETINGS[n % 6], who=who) for who in ("Ada", "Ben")]
    brought("labels", labels)
    visitor = client_of("anonymous")
    matrix = flat(visitor.get("/leaderboards/grove/models/matrix/"))
    before = boards("anonymous")["models"]
    assert len(before) == 4
    make_campaign(name="Again", benchmark=Benchmark.objects.get(), protocol="pair")
    assert boards("anonymous")["models"] == before
    during = flat(visitor.get("/leaderboards/grove/models/matrix/"))
    cell = re.compile(r"/votes/\?[^\"]*other=")
    assert cell.search(matrix)
    assert not cell.search(during)
    compared = visitor.get("/api/v1/leaderboards/compare/?benchmark=grove&a=Alder&b=Birch").json()
    assert {row["measure"] for row in compared} == {"Bradley–Terry strength"}


def test_a_model_of_few_of_the_samples_counts_without_them(brought, client_of, boards):
    """Its figure would be about fewer than ten that people label."""
    labels = [label_of(n, "first" if n % 3 else "second", who=who) for n in range(20) for who in ("Ada", "Ben")]
    labels += [label_of(n, "first", pair=("Alder", "Cedar"), who=who) for n in range(9) for who in ("Ada", "Ben")]
    brought("labels", labels)
    assert {row["model"]: row["n"] for row in boards("anonymous")["models"]} == {"Alder": 29, "Birch": 20, "Cedar": 9}
    make_campaign(name="Again", benchmark=Benchmark.objects.get(), protocol="pair")
    assert {row["model"]: row["n"] for row in boards("anonymous")["models"]} == {"Alder": 20, "Birch": 20}
