"""How far a campaign is: one number on every page, whoever looks and however it is asked."""

import re

import pytest

from annotations.assignment.leases import next_assignment
from annotations.campaigns.members import remove_annotator
from annotations.models import CampaignItem, Label
from bank.models import Item
from tests.annotations.test_quality import answer
from tests.markup import flat

pytestmark = pytest.mark.django_db


def text_of(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", flat(response)))


@pytest.fixture
def under_way(campaign_of, now):
    """Ten pairs for two people each: two of practice and two of gold, six to label. Four people, of whom two have
    practised and labelled gold and two others, and one label is excluded; one person has left.
    """
    campaign, members = campaign_of(10, 4, practice_pass=0.5, gold_rate=0.5, overlap=2)
    items = CampaignItem.objects.filter(campaign=campaign)
    for places, practice in (([0, 1], True), ([2, 3], False)):
        ids = list(items.filter(position__in=places).values_list("pk", flat=True))
        CampaignItem.objects.filter(pk__in=ids).update(gold={"choice": "first"}, practice=practice, decoy=False)
    items.update(decoy=False)
    for annotator in members[:2]:
        for _ in range(6):
            answer(next_assignment(campaign=campaign, annotator=annotator, now=now), "first", now)
    excluded = Label.objects.filter(assignment__campaign_item__gold__isnull=True).first()
    Label.objects.filter(pk=excluded.pk).update(excluded=True)
    remove_annotator(campaign=campaign, annotator=members[3], now=now)
    return campaign


@pytest.mark.parametrize("role", ["curator", "researcher"])
def test_list_start_page_and_page_of_a_campaign_count_alike(role, under_way, client_of):
    ordinary = Label.objects.filter(excluded=False, assignment__campaign_item__gold__isnull=True)
    filled, items = ordinary.count(), 6
    assert 0 < filled < 12
    client = client_of(role)
    row = flat(client.get("/campaigns/")).partition("<tbody>")[2].partition("</tr>")[0]
    row = re.sub(r"<[^>]+>", " ", row)
    row = re.sub(r"\s+", " ", row)
    page = text_of(client.get(f"/campaigns/{under_way.pk}/"))
    assert f" {filled} of 12 " in row
    assert f" {items} 2 " in row  # items, labels each
    assert "2 of 3" in row  # people who have labelled
    assert f"{filled} of 12, " in page
    assert f"{items} pairs, 2 labels each" in page
    complete = sum(
        ordinary.filter(assignment__campaign_item=pk).count() >= 2
        for pk in CampaignItem.objects.values_list("pk", flat=True)
    )
    assert f"{complete} of {items}" in page
    on_gold = Label.objects.filter(excluded=False, assignment__campaign_item__practice=False).count() - filled
    assert f"{on_gold} more on gold or beyond what was asked" in page
    if role == "curator":
        home = text_of(client.get("/"))
        assert f"{filled} of 12" in home
        assert "2 of 3 people have labelled" in home
    else:
        assert "can be read one by one when people no longer label these items" in page
        assert "Kept back" in page
        assert "No labels yet" not in page


def test_a_new_campaign_says_of_how_many_samples_its_items_are(pairs, client_of):
    benchmark = pairs(5)
    Item.objects.filter(sample__key__in=["s0", "s1"]).delete()
    sent = {"benchmark": benchmark.pk, "protocol": "pair", "overlap": 2, "who": "everybody"}
    page = text_of(client_of("curator").post("/campaigns/count/", sent))
    assert re.search(r"Samples ?3 ?of 5", page)
