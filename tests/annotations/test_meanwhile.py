"""What happens to labels, leases and pages while staff change things around them."""

import pytest
from django.urls import reverse

from accounts.models import User
from annotations.assignment.errors import Refused, SlotTaken
from annotations.assignment.leases import next_assignment, skip
from annotations.assignment.queries import progress_of
from annotations.campaigns.actions import change_campaign, make_campaign
from annotations.campaigns.members import make_annotator, remove_annotator
from annotations.labels.actions import return_label, submit_label
from annotations.models import Campaign, CampaignItem, Label
from bank.errors import BadInput
from bank.models import Item, Sample
from judging.extras.juries import make_jury
from judging.models import Judge, Judgment, Run
from tests.annotations.kinds import benchmark_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
AGREED = {"agree": True}
FIRST = {"choice": "left"}


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


class TestTheOverlap:
    def test_it_does_not_shrink_below_what_annotators_hold(self, campaign_of, now):
        campaign, members = campaign_of(1, 3, overlap=3)
        held = [next_assignment(campaign=campaign, annotator=member, now=now) for member in members]
        with pytest.raises(BadInput, match="3 annotators"):
            change_campaign(campaign=campaign, overlap=1)
        campaign.refresh_from_db()
        assert campaign.overlap == 3
        for assignment in held[1:]:
            skip(assignment=assignment, now=now)
        change_campaign(campaign=campaign, overlap=1)
        submit_label(assignment=held[0], verdict=FIRST, now=now)
        with pytest.raises(SlotTaken):
            submit_label(assignment=held[1], verdict=FIRST, now=now)

    def test_requests_that_began_before_it_shrank_hand_out_and_take_no_slot_too_many(self, campaign_of, now):
        campaign, (one, two, three) = campaign_of(1, 3, overlap=3)
        late = next_assignment(campaign=campaign, annotator=three, now=now)
        skip(assignment=late, now=now)
        read_before = Campaign.objects.get()  # as another request has it
        next_assignment(campaign=campaign, annotator=one, now=now)
        change_campaign(campaign=campaign, overlap=1)
        assert next_assignment(campaign=read_before, annotator=two, now=now) is None
        assert next_assignment(campaign=read_before, annotator=three, now=now) is None
        late.campaign_item.campaign = read_before
        with pytest.raises(SlotTaken):
            submit_label(assignment=late, verdict=FIRST, now=now)
        assert CampaignItem.objects.get().taken == 1

    def test_a_stale_page_does_not_shrink_it_past_what_is_held(self, campaign_of, now):
        read_before, members = campaign_of(1, 3, overlap=1)
        change_campaign(campaign=Campaign.objects.get(), overlap=3)
        for member in members:
            next_assignment(campaign=Campaign.objects.get(), annotator=member, now=now)
        with pytest.raises(BadInput, match="3 annotators"):
            change_campaign(campaign=read_before, overlap=1)
        assert Campaign.objects.get().overlap == 3

    def test_hidden_gold_that_everybody_holds_does_not_count(self, campaign_of, now):
        campaign, _ = campaign_of(2, 3, overlap=3, gold_rate=0.5)
        CampaignItem.objects.filter(position=0).update(gold={"choice": "first"}, taken=3)
        change_campaign(campaign=campaign, overlap=1)
        assert Campaign.objects.get().overlap == 1


class TestWhoWasTakenOut:
    @pytest.fixture
    def held(self, campaign_of, now):
        campaign, members = campaign_of(3, 1)
        labelled = next_assignment(campaign=campaign, annotator=members[0], now=now)
        submit_label(assignment=labelled, verdict=FIRST, now=now)
        opened = next_assignment(campaign=campaign, annotator=members[0], now=now)
        return labelled, opened

    def test_their_items_are_closed_to_them(self, held, now, client):
        labelled, opened = held
        client.force_login(opened.annotator.person)
        pages = [reverse("annotations:assignment-detail", args=[one.pk]) for one in held]
        assert [client.get(page).status_code for page in pages] == [200, 200]
        remove_annotator(campaign=labelled.campaign_item.campaign, annotator=opened.annotator, now=now)
        assert [client.get(page).status_code for page in pages] == [404, 404]
        assert client.post(f"{pages[1]}draft/", {"choice": "left"}).status_code == 404
        answer = client.post("/api/v1/labels/", {"assignment": opened.pk, "choice": "left"}, "application/json")
        assert answer.status_code == 404

    def test_nothing_is_given_back_to_them(self, held, now, people):
        labelled, opened = held
        remove_annotator(campaign=labelled.campaign_item.campaign, annotator=opened.annotator, now=now)
        with pytest.raises(Refused, match="removed from"):
            return_label(label=Label.objects.get(), by=people["curator"], note="Look again.", now=now)


class TestASampleThatIsWithdrawn:
    def test_its_items_are_handed_out_no_more(self, campaign_of, now):
        campaign, members = campaign_of(3, 2)
        skipped = next_assignment(campaign=campaign, annotator=members[0], now=now)
        skip(assignment=skipped, now=now)
        gone = skipped.sample
        Sample.objects.filter(pk=gone.pk).update(status=Sample.Status.REJECTED)
        for member, left in zip(members, (2, 0), strict=True):
            assert progress_of(campaign=campaign, annotator=member).total == left
            while (held := next_assignment(campaign=campaign, annotator=member, now=now)) is not None:
                assert held.sample != gone
                submit_label(assignment=held, verdict=FIRST, now=now)
        assert Label.objects.count() == 2
        Sample.objects.filter(pk=gone.pk).update(status=Sample.Status.APPROVED)
        assert next_assignment(campaign=campaign, annotator=members[0], now=now) == skipped

    def test_what_is_open_may_be_submitted(self, campaign_of, now):
        campaign, members = campaign_of(3, 1)
        held = next_assignment(campaign=campaign, annotator=members[0], now=now)
        Sample.objects.filter(pk=held.sample.pk).update(status=Sample.Status.DRAFT)
        assert progress_of(campaign=campaign, annotator=members[0]).total == 3
        submit_label(assignment=held, verdict=FIRST, now=now)
        assert progress_of(campaign=campaign, annotator=members[0]).total == 3

    def test_hidden_gold_and_practice_of_it_are_left_out_too(self, campaign_of, now):
        campaign, members = campaign_of(2, 1, practice_pass=0.5, gold_rate=0.5)
        CampaignItem.objects.filter(position=0).update(gold={"choice": "first"}, practice=True)
        CampaignItem.objects.filter(position=1).update(gold={"choice": "first"})
        Sample.objects.update(status=Sample.Status.REJECTED)
        assert next_assignment(campaign=campaign, annotator=members[0], now=now) is None


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_a_stale_page_does_not_pause_what_is_not_open(campaign_of, client_of, state):
    campaign, _ = campaign_of()
    Campaign.objects.update(state=state)
    client_of("curator").post(reverse("annotations:campaign-pause", args=[campaign.pk]))
    assert Campaign.objects.get().state == state


def test_labels_from_a_file_are_never_opened_by_a_pause(campaign_of, client_of):
    campaign, _ = campaign_of()
    Campaign.objects.update(state="closed", imported=True)
    for verb in ("pause", "close", "open"):
        client_of("curator").post(reverse(f"annotations:campaign-{verb}", args=[campaign.pk]))
    assert Campaign.objects.get().state == "closed"
