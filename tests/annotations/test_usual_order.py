"""In which order a campaign gives its items where nobody says."""

from collections import Counter

import pytest
from django.utils import timezone

from accounts.models import User
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.members import make_annotator
from annotations.labels.actions import submit_label
from annotations.models import Campaign, Label
from bank.models import Item
from tests.annotations import kinds

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def labelled(protocol, verdict, each, **settings):
    """How many labels the items have after three people gave so many each."""
    benchmark = kinds.benchmark_of()
    for item in Item.objects.filter(sample__benchmark=benchmark, kind="pair"):
        for by in ("one", "two", "three"):
            kinds.judged(benchmark, item=item, by=by)
    people = [User.objects.create_user(name, role="annotator") for name in ("ada", "ben", "cy")]
    campaign = make_campaign(
        name=protocol, benchmark=benchmark, protocol=protocol, annotators=people, seed=3, overlap=3, **settings
    )
    campaign.memberships.update(guidelines_read=1)
    for _ in range(each):
        for person in people:
            held = next_assignment(campaign=campaign, annotator=make_annotator(person), now=timezone.now())
            submit_label(assignment=held, verdict=verdict, now=timezone.now())
    return campaign, Counter(Counter(Label.objects.values_list("assignment__campaign_item", flat=True)).values())


def test_reviews_come_to_three_of_one_verdict_after_the_other():
    campaign, times = labelled("review", {"agree": True}, 2)
    assert campaign.campaign_items.count() > 2
    assert (campaign.order, times) == (Campaign.Order.SHUFFLED, {3: 2})


def test_where_an_order_is_asked_for_it_holds():
    campaign, times = labelled("review", {"agree": True}, 1, order="least")
    assert (campaign.order, times) == (Campaign.Order.LEAST, {1: 3})
