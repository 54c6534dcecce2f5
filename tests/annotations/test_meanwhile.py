"""What happens to labels, leases and pages while staff change things around them."""

import pytest
from django.urls import reverse

from annotations.actions import (
    make_annotator,
    make_campaign,
    next_assignment,
    submit_label,
)
from annotations.models import CampaignItem, Label
from bank.models import Item, User
from judging.juries import make_jury
from judging.models import Judge, Judgment, Run
from tests.annotations.kinds import benchmark_of

pytestmark = pytest.mark.django_db
AGREED = {"agree": True}


class TestAJuryThatPeopleReview:
    """One item of two is labelled; both verdicts of the jury are in the campaign."""

    @pytest.fixture
    def members(self):
        benchmark = benchmark_of()
        runs = []
        for name in ("kestrel", "osprey"):
            judge = Judge.objects.create(name=name)
            run = Run.objects.create(judge=judge, benchmark=benchmark, protocol="pair", settings_hash=name)
            for item in Item.objects.filter(sample__benchmark=benchmark, kind="pair"):
                Judgment.objects.create(run=run, item=item, choice="first")
            runs.append(run)
        return runs

    @pytest.fixture
    def label(self, members, now):
        jury = make_jury(name="jury", runs=members)
        person = User.objects.create_user("ada", role="annotator")
        campaign = make_campaign(
            name="Reviews",
            benchmark=jury.benchmark,
            protocol="review",
            run=jury,
            annotators=[person],
            ballot={"analyses": False},
        )
        held = next_assignment(campaign=campaign, annotator=make_annotator(person), now=now)
        return submit_label(assignment=held, verdict=AGREED, now=now).label

    def test_computing_it_again_loses_no_label(self, members, label):
        before = set(Judgment.objects.filter(run__judge__name="jury").values_list("pk", flat=True))
        jury = make_jury(name="jury", runs=members)
        assert Label.objects.get() == label
        assert set(Judgment.objects.filter(run=jury).values_list("pk", flat=True)) == before

    def test_what_comes_out_otherwise_is_replaced_while_nobody_reviews_it(self, members, label):
        CampaignItem.objects.exclude(assignments__label=label).delete()
        other = Item.objects.filter(kind="pair").exclude(pk=label.item_id).get()
        Judgment.objects.filter(run__in=members, item=other).update(choice="second")
        jury = make_jury(name="jury", runs=members)
        assert jury.judgments.get(item=other).choice == "second"
        assert jury.judgments.count() == 2
        assert Label.objects.get() == label

    def test_a_verdict_under_review_stands_and_it_is_said_why(self, members, label, client, people):
        Judgment.objects.filter(run__in=members, item=label.item).update(choice="second")
        jury = Run.objects.get(judge__name="jury")
        client.force_login(people["curator"])
        answer = client.post(reverse("judging:jury-compute", args=[jury.pk]), follow=True)
        assert "people review" in answer.content.decode()
        assert Label.objects.get() == label
        assert jury.judgments.get(item=label.item).choice == "first"
