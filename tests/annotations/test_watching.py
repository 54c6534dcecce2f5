"""A campaign's page as whoever runs it reads it: the one thing to do, what is in sight, and what is folded."""

import re

import pytest

from annotations.campaigns.actions import make_campaign
from annotations.models import Label
from tests.annotations.test_campaign_pages import label_all
from tests.markup import flat

pytestmark = pytest.mark.django_db

NONE_YET = "This round has no guidelines"


def solid(response):
    """The words of the solid buttons of a page."""
    return [
        words.strip() for words in re.findall(r'class="btn primary"[^>]*>(?:<svg.*?</svg>)?([^<]*)<', flat(response))
    ]


def folds(response):
    """The folds of a page by the words in bold, with whether they are open."""
    found = re.findall(r'<details class="(?:panel )?fold"([^>]*)>.*?<b>([^<]*)</b>', flat(response))
    return {name: " open" in attributes for attributes, name in found}


def test_a_campaign_without_labels_has_one_solid_button_and_it_invites(client_of, campaign_of):
    campaign, _ = campaign_of(3, 1)
    page = client_of("curator").get(f"/campaigns/{campaign.pk}/")
    assert solid(page) == ["Copy", "Invite"]  # Copy is in the menu, behind its own question
    assert "First: invite people" in flat(page)
    assert folds(page) == {"What can be told apart": False}
    assert "Median time" not in flat(page), "of no labels"


def test_with_labels_the_solid_button_opens_the_form_of_invitations_until_all_labels_are_there(
    client_of, campaign_of, now
):
    campaign, (one, other) = campaign_of(3, 2, overlap=2)
    label_all(campaign, one, "left", now)
    client, path = client_of("curator"), f"/campaigns/{campaign.pk}/"
    page = client.get(path)
    assert solid(page) == ["Invite", "Copy"]
    assert folds(page) == {"Recent labels": False, "What can be told apart": False, "Invite": False}
    page = client.get(f"{path}?invite=1")
    assert solid(page) == ["Copy", "Invite"]
    assert folds(page)["Invite"]
    label_all(campaign, other, "left", now)
    assert solid(client.get(path)) == ["Copy"]


def test_the_solid_button_of_a_draft_opens_it(client_of, campaign_of):
    campaign, _ = campaign_of(2, 1, opened=False)
    assert solid(client_of("curator").get(f"/campaigns/{campaign.pk}/")) == ["Open", "Copy"]


def test_a_link_just_made_stands_in_the_open_form(client_of, campaign_of, now):
    campaign, (one,) = campaign_of(3, 1)
    label_all(campaign, one, "left", now)
    page = client_of("curator").post(f"/campaigns/{campaign.pk}/invite/", {"days": 3}, follow=True)
    assert folds(page)["Invite"]
    assert "/invitations/" in flat(page)


def test_a_round_without_guidelines_says_so_with_the_way_to_write_them(client_of, campaign_of):
    campaign, _ = campaign_of(2, 1, opened=False)
    client, path = client_of("curator"), f"/campaigns/{campaign.pk}/"
    assert NONE_YET in flat(client.get(path))
    assert f'href="{path}settings/#guidelines"' in flat(client.get(path))
    assert 'id="guidelines"' in flat(client.get(f"{path}settings/"))
    assert NONE_YET not in flat(client_of("researcher").get(path)), "who cannot write them"
    client.post(f"{path}guidelines/", {"guidelines": "Look closely."})
    assert NONE_YET not in flat(client.get(path))
    assert folds(client.get(path))["Guidelines"] is False


def test_before_a_campaign_is_opened_its_form_says_that_it_has_no_guidelines(client_of, pairs):
    sent = {"benchmark": pairs(2).pk, "protocol": "pair", "overlap": 1, "how": "all"}
    client = client_of("curator")
    assert NONE_YET in flat(client.post("/campaigns/count/", sent))
    assert NONE_YET not in flat(client.post("/campaigns/count/", sent | {"guidelines": "Look closely."}))


def test_a_median_time_that_nobody_can_have_needed_is_marked(client_of, campaign_of, now):
    campaign, (one,) = campaign_of(20, 1)
    label_all(campaign, one, "left", now)
    client, path = client_of("curator"), f"/campaigns/{campaign.pk}/"
    for seconds, marked in ((1, True), (30, False)):
        Label.objects.update(seconds=seconds)
        assert ("a label of this kind takes about 45 s" in flat(client.get(path))) is marked


def test_twenty_annotators_are_shown_until_all_are_asked_for(client_of, pairs, annotators):
    people = [one.person for one in annotators(22)]
    campaign = make_campaign(name="Many", benchmark=pairs(1), protocol="pair", annotators=people)
    client, path = client_of("curator"), f"/campaigns/{campaign.pk}/"
    few, all_of_them = flat(client.get(path)), flat(client.get(f"{path}?show=people"))
    assert few.count('aria-label="Change person-') == 20
    assert "All 22 annotators" in few
    assert all_of_them.count('aria-label="Change person-') == 22
    assert "All 22 annotators" not in all_of_them
