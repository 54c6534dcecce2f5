"""In which order items are handed out, how many a day, and what becomes of an annotator who leaves."""

from datetime import timedelta

import pytest
from scipy.stats import chisquare

from annotations.assignment.errors import AlreadyLabelled, DayIsFull, NotInvited
from annotations.assignment.leases import next_assignment, skip
from annotations.campaigns.members import add_annotators, remove_annotator
from annotations.labels.actions import submit_label
from annotations.models import Assignment, CampaignItem, Label
from bank.models import Item
from leaderboard.view import scope_of
from leaderboard.votes import labels_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
FIRST = {"choice": "left"}


def label(assignment, now, choice="left"):
    return submit_label(assignment=assignment, verdict={"choice": choice}, now=now).label


def items_of(campaign, annotator, now):
    """The items that an annotator gets one after the other, each labelled at once."""
    order = []
    while (assignment := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
        order.append(assignment.campaign_item.item_id)
        label(assignment, now)
    return order


class TestOrders:
    def set(self, campaign, order):
        campaign.order = order
        campaign.save()
        return campaign

    def test_fixed_and_shuffled_finish_one_item_after_the_other(self, campaign_of, now):
        campaign, people = campaign_of(4, 3, overlap=2)
        for order in ("fixed", "shuffled"):
            self.set(campaign, order)
            seen = [next_assignment(campaign=campaign, annotator=one, now=now).campaign_item.position for one in people]
            assert seen == [0, 0, 1]
            Assignment.objects.all().delete()
            CampaignItem.objects.update(taken=0)

    def test_everybody_goes_through_the_items_in_an_order_of_their_own_that_stays(self, campaign_of, now):
        """As evaluators of MLLM-Bench had orders of theirs (Table 14): whoever comes back goes on in the same one,
        whatever others have done meanwhile.
        """
        campaign, people = campaign_of(12, 4, overlap=4)
        self.set(campaign, "by-person")
        one, *others = people
        begun = [next_assignment(campaign=campaign, annotator=one, now=now).campaign_item.item_id for _ in range(2)]
        assert begun[0] == begun[1]
        orders = [items_of(campaign, annotator, now) for annotator in others]
        orders.append(items_of(campaign, one, now))
        assert orders[-1][0] == begun[0]
        assert all(len(order) == 12 for order in orders)
        assert len({tuple(order) for order in orders}) == 4
        in_campaign = list(campaign.campaign_items.order_by("position").values_list("item", flat=True))
        assert in_campaign not in orders
        Label.objects.all().delete()
        Assignment.objects.all().delete()
        CampaignItem.objects.update(taken=0)
        assert [items_of(campaign, annotator, now) for annotator in [*others, one]] == orders

    def test_no_place_comes_first_for_many_in_orders_of_their_own(self, campaign_of, now):
        campaign, people = campaign_of(5, 60, overlap=60)
        self.set(campaign, "by-person")
        first = [next_assignment(campaign=campaign, annotator=one, now=now).campaign_item.position for one in people]
        counts = [first.count(position) for position in range(5)]
        assert chisquare(counts).pvalue > 1e-4

    def test_least_labelled_first_spreads_the_labels(self, campaign_of, now):
        campaign, people = campaign_of(4, 3, overlap=2)
        seen = [next_assignment(campaign=campaign, annotator=one, now=now).campaign_item.position for one in people]
        assert seen == [0, 1, 2]

    @pytest.fixture
    def differing(self, campaign_of, now):
        """Two of three have labelled each item, and differ about the third one only: the campaign and the last."""
        campaign, (one, two, three) = campaign_of(4, 3, overlap=3)
        self.set(campaign, "disputed")
        for annotator in (one, two):
            while (assignment := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
                disputed = assignment.campaign_item.position == 2 and annotator == two
                Assignment.objects.filter(pk=assignment.pk).update(order="01")
                assignment.order = "01"
                label(assignment, now, "right" if disputed else "left")
        return campaign, three

    def test_most_disputed_first_follows_what_annotators_said(self, differing, now):
        campaign, three = differing
        assert CampaignItem.objects.get(position=2).priority > 0
        assert next_assignment(campaign=campaign, annotator=three, now=now).campaign_item.position == 2

    def test_among_equally_labelled_items_the_disputed_one_comes_first(self, differing, now):
        campaign, three = differing
        self.set(campaign, "least")
        assert next_assignment(campaign=campaign, annotator=three, now=now).campaign_item.position == 2

    def test_least_labelled_first_goes_before_what_is_disputed(self, differing, now):
        campaign, three = differing
        self.set(campaign, "least")
        CampaignItem.objects.filter(position=3).update(taken=1)
        assert next_assignment(campaign=campaign, annotator=three, now=now).campaign_item.position == 3


class TestDailyCap:
    def test_nobody_gets_more_in_a_day_and_the_next_day_goes_on(self, campaign_of, now):
        campaign, (one, two) = campaign_of(4, 2, overlap=2)
        campaign.daily_cap = 2
        campaign.save()
        first = next_assignment(campaign=campaign, annotator=one, now=now)
        ahead = next_assignment(campaign=campaign, annotator=one, now=now, prefetch=True)
        label(first, now)
        label(ahead, now)
        with pytest.raises(DayIsFull, match="2 items today"):
            next_assignment(campaign=campaign, annotator=one, now=now)
        assert next_assignment(campaign=campaign, annotator=two, now=now)
        assert next_assignment(campaign=campaign, annotator=one, now=now + timedelta(hours=13))

    def test_what_is_leased_ahead_counts(self, campaign_of, now):
        campaign, (one, _) = campaign_of(4, 2, overlap=2)
        campaign.daily_cap = 1
        campaign.save()
        assert next_assignment(campaign=campaign, annotator=one, now=now)
        with pytest.raises(DayIsFull):
            next_assignment(campaign=campaign, annotator=one, now=now, prefetch=True)


class TestLeaving:
    @pytest.mark.check("G7")
    def test_labels_are_kept_or_excluded_as_was_chosen(self, campaign_of, now):
        campaign, (one, two) = campaign_of(2, 2, overlap=1)
        done = items_of(campaign, one, now)
        assert next_assignment(campaign=campaign, annotator=two, now=now) is None
        assert remove_annotator(campaign=campaign, annotator=one, now=now) == 0
        assert next_assignment(campaign=campaign, annotator=two, now=now) is None
        assert remove_annotator(campaign=campaign, annotator=one, now=now, exclude=True) == 2
        assert labels_of(scope_of(benchmark=campaign.benchmark)).empty
        assert sorted(items_of(campaign, two, now)) == sorted(done)
        assert Label.objects.filter(excluded=True).count() == Label.objects.filter(excluded=False).count() == 2
        assert set(CampaignItem.objects.values_list("taken", flat=True)) == {1}
        with pytest.raises(NotInvited):
            next_assignment(campaign=campaign, annotator=one, now=now)

    def test_nobody_comes_back_into_an_open_campaign_by_asking(self, campaign_of, now):
        campaign, (one, _) = campaign_of(2, 2)
        campaign.open_to_all = True
        campaign.save()
        held = next_assignment(campaign=campaign, annotator=one, now=now)
        remove_annotator(campaign=campaign, annotator=one, now=now)
        with pytest.raises(NotInvited):
            next_assignment(campaign=campaign, annotator=one, now=now)
        with pytest.raises(NotInvited):
            submit_label(assignment=held, verdict=FIRST, now=now)
        assert add_annotators(campaign=campaign, people=[one.person]) == 1
        assert next_assignment(campaign=campaign, annotator=one, now=now)

    def test_an_excluded_label_stays_its_annotators_only_one(self, campaign_of, now):
        campaign, (one, _) = campaign_of(1, 2)
        held = next_assignment(campaign=campaign, annotator=one, now=now)
        label(held, now)
        remove_annotator(campaign=campaign, annotator=one, now=now, exclude=True)
        add_annotators(campaign=campaign, people=[one.person])
        assert next_assignment(campaign=campaign, annotator=one, now=now) is None
        held.refresh_from_db()
        for act in (skip, submit_label):
            with pytest.raises(AlreadyLabelled):
                act(assignment=held, now=now, **({"verdict": FIRST} if act is submit_label else {}))


def test_items_stand_for_nothing_but_themselves(campaign_of, now):
    """Every item of the benchmark is handed out once to each."""
    campaign, (one, two) = campaign_of(5, 2, overlap=2)
    every = sorted(Item.objects.values_list("pk", flat=True))
    assert sorted(items_of(campaign, one, now)) == sorted(items_of(campaign, two, now)) == every
