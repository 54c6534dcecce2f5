"""Why there is no number: none yet, too few, kept back, and never another reason than the true one."""

import re

import pytest
from django.utils import timezone

from accounts.models import User
from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.campaigns.members import make_annotator
from bank.models import Benchmark
from tests.leaderboard.conftest import judgments
from tests.leaderboard.test_last_closed_state import label_some
from tests.leaderboard.test_poor_data import judgment, label
from tests.markup import flat

pytestmark = pytest.mark.django_db

HOME = "/"
JUDGES, MODELS = "/leaderboards/grove/judges/", "/leaderboards/grove/models/"
BIAS, AGREEMENT = "/leaderboards/grove/bias/", "/leaderboards/grove/agreement/"


@pytest.fixture
def said(client_of):
    """The title of the empty place on a page, for a visitor."""

    def title(address, role="anonymous"):
        page = flat(client_of(role).get(address))
        found = re.search(r'class="blank why".*?<h2>(.*?)</h2>', page)
        return found[1] if found else ""

    return title


def ada_labels(n, choice="first"):
    return [label(at, choice) for at in range(n)]


def test_before_anybody_has_said_anything(grove, said):
    assert said(JUDGES) == "Nothing here is to be labelled or judged yet"
    assert said(MODELS) == "No verdicts yet"
    assert said(AGREEMENT) == "Nobody to compare yet"
    assert said(BIAS).startswith("No judge has judged these")


def test_judges_alone_wait_for_people(brought, said, client_of):
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    assert said(JUDGES) == "Nobody has labelled these pairs yet"
    page = flat(client_of("anonymous").get(JUDGES))
    assert "1 judge has verdicts here. What judges say can be compared with people from 8 groups of items on." in page
    assert "Nobody has labelled these pairs yet." in flat(client_of("anonymous").get(HOME))


def test_people_alone_wait_for_a_judge(brought, said, client_of):
    brought("labels", ada_labels(12))
    assert said(JUDGES) == "No judge has judged these pairs yet"
    assert "No judge has judged these pairs yet." in flat(client_of("anonymous").get(HOME))


def test_people_and_judges_on_other_items_are_said_to_be(brought, said, client_of):
    brought("labels", ada_labels(12))
    brought("judgments", [judgment(n, "first") for n in range(20, 36)])
    assert said(JUDGES) == "People have labelled other pairs than the judges judged"
    judge = re.search(r"/judges/\d+/", client_of("curator").get("/judging/").content.decode())
    assert judge is None or "other pairs than it judged" in flat(client_of("curator").get(judge[0]))


@pytest.mark.parametrize("groups", [1, 7, 8])
def test_below_eight_groups_home_says_how_many_it_takes(groups, brought, client_of):
    """From eight on the judge stands there, without a rank below 30 items."""
    brought("labels", ada_labels(groups))
    brought("judgments", [judgment(n, "first") for n in range(groups)])
    page = flat(client_of("anonymous").get(HOME))
    few = f"{groups} of 8 groups: too few to compare." in page
    assert few == (groups < 8)
    assert ('">marker</a>' in page) == (groups == 8)


def test_what_is_labelled_for_the_first_time_is_held_back_and_says_until_when(brought, said, client_of):
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    due = timezone.now().date().replace(year=2031)
    ann = User.objects.create_user("ann", role="annotator")
    campaign = make_campaign(name="C", benchmark=Benchmark.objects.get(), protocol="pair", annotators=[ann], due=due)
    until = f"Held back until {due:%-d %b %Y}"
    assert {said(address) for address in (JUDGES, AGREEMENT)} == {until}
    label_some(campaign, make_annotator(ann), lambda: "left", most=500)
    assert {said(address) for address in (JUDGES, AGREEMENT)} == {until}
    assert f"{until}." in flat(client_of("anonymous").get(HOME))
    assert said(JUDGES, "curator") == ""
    close_campaign(campaign=campaign, now=timezone.now())
    assert said(JUDGES) == ""


def test_what_filters_leave_nothing_of_is_no_empty_board(brought, said):
    """Of the samples labelled here none is about creation."""
    brought("labels", [label(n, "first") for n in range(36) if n % 3])
    assert said(f"{MODELS}?level=Creation") == "Nothing is counted under these filters"
    assert said(MODELS) == ""
