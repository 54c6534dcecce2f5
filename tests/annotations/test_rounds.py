"""What annotators meet around the items: guidelines first, their own desk, and how a round went."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Delivery, Notice, User, Webhook
from annotations import ballots
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.campaigns.guidelines import change_guidelines
from annotations.campaigns.members import add_annotators, make_annotator
from annotations.labels.actions import change_label, return_label, submit_label
from annotations.labels.desk import desk_of
from annotations.labels.result import result_of
from annotations.models import Annotator, CampaignItem, Label, Membership
from bank.models import Benchmark
from tests.annotations import kinds
from tests.annotations.test_quality import answer, known
from tests.markup import flat

pytestmark = pytest.mark.django_db


def signed_in(annotator):
    client = Client()
    client.force_login(annotator.person)
    return client


def label_all(campaign, annotator, choices, now):
    """Label what is left with these canonical choices in turn."""
    given = 0
    while (shown := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
        answer(shown, choices[given % len(choices)], now)
        given += 1
    Label.objects.filter(annotator=annotator).update(seconds=30)


def desk(annotator):
    return desk_of(annotator, annotator.person, name="Ada")


class TestFirst:
    @pytest.fixture
    def fresh(self, campaign_of):
        campaign, people = campaign_of(3, 1, guidelines="Read **slowly**.")
        Membership.objects.update(guidelines_read=None)
        return campaign, people[0]

    def test_nobody_meets_the_first_item_before_the_guidelines_and_keys(self, fresh):
        campaign, one = fresh
        client = signed_in(one)
        answered = client.get(f"/annotate/{campaign.pk}/")
        assert answered.url == f"/annotate/{campaign.pk}/prepare/"
        assert not one.assignments.exists()
        page = flat(client.get(answered.url))
        assert "<strong>slowly</strong>" in page
        assert '<kbd class="cap">1</kbd> First' in page
        assert client.post(f"/annotate/{campaign.pk}/begin/").url == f"/annotate/{campaign.pk}/"
        assert 'id="ballot"' in flat(client.get(f"/annotate/{campaign.pk}/"))

    def test_who_may_join_becomes_a_member_by_reading_and_who_may_not_finds_nothing(self, pairs, annotators):
        campaign = make_campaign(name="For all", benchmark=pairs(2), protocol="pair")
        one, two = annotators(2)
        signed_in(one).post(f"/annotate/{campaign.pk}/begin/")
        assert Membership.objects.get().guidelines_read == 1
        Membership.objects.create(campaign=campaign, annotator=two, withdrawn_at=timezone.now())
        for page in ("prepare", "done"):
            assert signed_in(two).get(f"/annotate/{campaign.pk}/{page}/").status_code == 404
        assert signed_in(two).post(f"/annotate/{campaign.pk}/begin/").status_code == 404

    def test_changed_guidelines_say_what_is_new_to_those_who_have_read_them(self, fresh, now):
        campaign, one = fresh
        client = signed_in(one)
        client.post(f"/annotate/{campaign.pk}/begin/")
        assert change_guidelines(campaign=campaign, text="Ties are fine.", about="ties are fine", now=now)
        assert not change_guidelines(campaign=campaign, text="Ties are fine.", about="again", now=now)
        page = flat(client.get("/annotate/"))
        assert "Guidelines changed" in page
        assert "Version 2. 1 Mar ties are fine" in page
        client.post(f"/annotate/{campaign.pk}/begin/")
        assert "Guidelines read" in flat(client.get("/annotate/"))

    def test_a_draft_changes_its_guidelines_without_a_new_version(self, fresh, now):
        campaign, _ = fresh
        campaign.state = "draft"
        change_guidelines(campaign=campaign, text="Better.", about="", now=now)
        assert campaign.guidelines_version == 1

    def test_keys_are_those_that_the_person_has_chosen(self, fresh):
        campaign, one = fresh
        one.person.preferences = {"keyboard": {"first": "j"}}
        one.person.save()
        assert '<kbd class="cap">J</kbd> First' in flat(signed_in(one).get(f"/annotate/{campaign.pk}/prepare/"))

    @pytest.mark.parametrize("protocol", ballots.BALLOTS)
    def test_every_protocol_names_its_keys(self, protocol):
        ballot = ballots.get(protocol)
        assert protocol == "label" or all(str(choice.said) and choice.key for choice in ballot.keys)
        assert protocol == "label" or ballot.keys


class TestDesk:
    def test_the_next_step_is_named_and_what_was_begun_stands_on_top(self, pairs, annotators, now):
        one = annotators(1)[0]
        benchmark = pairs(4)
        made = [
            make_campaign(name=name, benchmark=benchmark, protocol="pair", annotators=[one.person], **options)
            for name, options in (
                ("Begun", {}),
                ("Late", {"due": timezone.now().date() + timedelta(days=9)}),
                ("Soon", {"due": timezone.now().date() + timedelta(days=2), "guidelines": "Look."}),
                ("Practised", {"practice_pass": 0.5, "guidelines": "Look."}),
            )
        ]
        known(made[3], [0, 1], practice=True)
        Membership.objects.filter(campaign__in=made[:1]).update(guidelines_read=1)
        answer(next_assignment(campaign=made[0], annotator=one, now=now), "first", now)
        shown = desk(one)
        assert shown.current.row.campaign == made[0]
        assert shown.current.row.verb == "Go on"
        assert [row.campaign.name for row in shown.others] == ["Soon", "Late", "Practised"]
        assert [row.verb for row in shown.others] == ["Read guidelines", "See what to do", "Read guidelines"]
        assert shown.others[2].left == 2  # the practice items do not count
        page = flat(signed_in(one).get("/"))
        assert "1 min of guidelines. 2 practice items." in page
        assert "Hello, person-0. 1 done, 13 to go." in page
        assert page.index("Begun") < page.index("Soon") < page.index("Late")

    def test_practice_not_passed_waits_for_a_curator_and_offers_no_button(self, campaign_of, now):
        campaign, (one,) = campaign_of(3, 1, practice_pass=1.0)
        known(campaign, [0], practice=True)
        answer(next_assignment(campaign=campaign, annotator=one, now=now), "tie", now)
        shown = desk(one)
        assert shown.current is None
        assert shown.others[0].blocked
        assert "practice not passed yet" in flat(signed_in(one).get("/annotate/"))

    def test_everybodys_progress_does_not_tell_which_item_was_gold(self, campaign_of, now):
        campaign, (one,) = campaign_of(8, 1, gold_rate=0.5)
        known(campaign, [0, 1, 2, 3], practice=False)
        done = []
        while (assignment := next_assignment(campaign=campaign, annotator=one, now=now)) is not None:
            answer(assignment, "first", now)
            done.append(desk_of(one, one.person, name="").current)
        counts = [card.together.done for card in done if card]
        assert counts == list(range(1, len(counts) + 1))

    def test_a_label_that_came_back_is_told_with_its_note_and_counted_once_answered(self, campaign_of, now, people):
        campaign, (one, _) = campaign_of(3, 2)
        label = answer(next_assignment(campaign=campaign, annotator=one, now=now), "first", now)
        return_label(label=label, by=people["curator"], note="Tie?", now=now)
        page = flat(signed_in(one).get("/"))
        assert "One of your labels came back." in page
        assert "“Tie?”" in page
        assert "one label" not in page
        change_label(assignment=label.assignment, verdict={"choice": "tie"}, now=now)
        statistics = desk(one).statistics
        assert (statistics.reviewed, statistics.kept) == (1, 0)
        assert "came back" not in flat(signed_in(one).get("/"))

    def test_a_round_that_closed_is_told_until_its_notice_is_opened(self, campaign_of, now):
        campaign, (one,) = campaign_of(3, 1)
        answer(next_assignment(campaign=campaign, annotator=one, now=now), "first", now)
        close_campaign(campaign=campaign, now=now)
        browser = signed_in(one)
        told = desk(one).notices
        assert [notice.text for notice in told] == [
            f"{campaign.name} is closed. Thank you for your labels: see what became of them."
        ]
        assert f'name="open" value="{told[0].pk}"' in browser.get("/").content.decode()
        opened = browser.post("/accounts/notices/", {"open": told[0].pk})
        assert opened["Location"] == f"/annotate/{campaign.pk}/done/"
        assert desk(one).notices == []

    def test_own_statistics_count_sides_as_they_were_shown(self, campaign_of, now):
        campaign, (one,) = campaign_of(6, 1)
        for _ in range(6):
            shown = next_assignment(campaign=campaign, annotator=one, now=now)
            submit_label(assignment=shown, verdict={"choice": "left"}, now=now, seconds=10)
        statistics = desk(one).statistics
        assert (statistics.sides.first, statistics.sides.second) == (6, 0)
        assert statistics.labels == 6

    def test_boards_that_labels_feed_tell_who_leads_and_private_ones_are_absent(self, campaign_of, now):
        campaign, (one, two) = campaign_of(4, 2, overlap=2)
        for person in (one, two):
            label_all(campaign, person, ["first"], now)
        close_campaign(campaign=campaign, now=now)
        assert 'hx-get="/boards-fed/"' in flat(signed_in(one).get("/"))
        fragment = flat(signed_in(one).get("/boards-fed/"))
        assert "model-one" in fragment
        Benchmark.objects.update(visibility="private")
        assert "Pairs" not in flat(signed_in(one).get("/boards-fed/"))
        assert desk(one).boards == []

    def test_visitors_and_curators_keep_their_own_home(self, client_of, campaign_of):
        campaign_of(2, 1)
        for role in ("anonymous", "curator", "researcher"):
            assert "Hello, " not in flat(client_of(role).get("/"))
        assert "Hello, " in flat(client_of("annotator").get("/"))


class TestResult:
    @pytest.fixture
    def labelled(self, campaign_of, now):
        """Three people: the first two agree, the third differs on every third item."""
        campaign, people = campaign_of(12, 3, overlap=3)
        CampaignItem.objects.filter(campaign=campaign).update(taken=0)
        label_all(campaign, people[0], ["first"], now)
        label_all(campaign, people[1], ["first"], now)
        label_all(campaign, people[2], ["first", "first", "second"], now)
        return campaign, people

    def test_while_the_round_runs_it_tells_nothing_of_the_others_labels(self, labelled):
        campaign, (one, *_) = labelled
        result = result_of(campaign, one, one.person)
        assert (result.agreed, result.shares, result.looks, result.settled) == (None, [], [], 0)
        page = flat(signed_in(one).get(f"/annotate/{campaign.pk}/", follow=True))
        assert "All 12 done. Thank you, person-0." in page
        assert "Every other item" not in page  # they had all of them
        assert "when the round closes" in page
        assert "6 min" in page
        assert "Worth another look" not in page
        finished = desk(one)
        assert finished.statistics.agreed.n == 0
        assert finished.ended[0].agreed is None

    def test_whoever_comes_before_their_first_label_is_told_that_nothing_is_done(self, campaign_of):
        campaign, (one, *_) = campaign_of(3, 1)
        page = flat(signed_in(one).get(f"/annotate/{campaign.pk}/done/"))
        assert "0 done, 3 to go." in page
        assert "Your last label" not in page

    def test_a_closed_round_tells_agreement_with_its_interval_and_what_to_look_at(self, labelled, now):
        campaign, people = labelled
        close_campaign(campaign=campaign, now=now)
        third = people[2]
        result = result_of(campaign, third, third.person)
        assert [share.n for _who, share in result.shares] == [12, 12, 12]
        assert result.shares[0][1].value == pytest.approx(8 / 12)
        assert result.agreed_words == "you and the others chose the same on 16 of 24"
        assert result.shares[-1][0] == "You and the majority of the others"
        assert len(result.looks) == 4
        assert all("2 of the 2 others" in look.words for look in result.looks)
        page = flat(signed_in(third).get(f"/annotate/{campaign.pk}/done/"))
        assert "You and person A" in page
        for other in people[:2]:
            assert other.name not in page
            assert other.pseudonym not in page

    def test_items_of_a_private_benchmark_or_of_another_open_campaign_are_not_looked_at_again(self, labelled, now):
        campaign, people = labelled
        close_campaign(campaign=campaign, now=now)
        again = make_campaign(name="Again", benchmark=campaign.benchmark, protocol="pair", annotators=[])
        assert result_of(campaign, people[2], people[2].person).looks == []
        close_campaign(campaign=again, now=now)
        assert result_of(campaign, people[2], people[2].person).looks
        Benchmark.objects.update(visibility="private")
        result = result_of(campaign, people[2], people[2].person)
        assert (result.looks, result.board) == ([], "")
        assert result.shares

    def test_labels_on_items_that_people_label_blind_elsewhere_are_in_no_number(self, labelled, now):
        campaign, people = labelled
        close_campaign(campaign=campaign, now=now)
        again = make_campaign(name="Again", benchmark=campaign.benchmark, protocol="pair", annotators=[])
        result = result_of(campaign, people[2], people[2].person)
        assert (result.shares, result.settled, result.agreed.n) == ([], 0, 0)
        assert desk(people[2]).statistics.agreed.n == 0
        close_campaign(campaign=again, now=now)
        assert result_of(campaign, people[2], people[2].person).shares

    def test_a_number_about_a_hidden_split_is_about_ten_of_its_samples(self, labelled, now):
        campaign, people = labelled
        close_campaign(campaign=campaign, now=now)
        Benchmark.objects.update(hidden_splits=["test"])
        samples = campaign.benchmark.samples
        samples.filter(pk__in=samples.order_by("pk").values("pk")[:9]).update(split="test")
        campaign.refresh_from_db()
        assert result_of(campaign, people[2], people[2].person).shares == []
        assert desk(people[2]).statistics.agreed.n == 3
        samples.update(split="test")
        assert [share.n for _who, share in result_of(campaign, people[2], people[2].person).shares] == [12, 12, 12]

    def test_how_often_others_agree_is_not_told_of_one_sample_of_a_hidden_split(self, labelled, now):
        campaign, people = labelled
        close_campaign(campaign=campaign, now=now)
        Benchmark.objects.update(hidden_splits=["test"])
        campaign.benchmark.samples.update(split="test")
        campaign.refresh_from_db()
        first = Label.objects.filter(annotator=people[0]).first()
        Label.objects.exclude(annotator=people[2]).exclude(pk=first.pk).delete()
        assert result_of(campaign, people[2], people[2].person).agreed.n == 0
        assert desk(people[2]).statistics.agreed.n == 0

    def test_what_they_flagged_is_worth_another_look_at_once(self, labelled):
        campaign, people = labelled
        label = Label.objects.filter(annotator=people[2]).first()
        Label.objects.filter(pk=label.pk).update(flags=["answer"])
        (look,) = result_of(campaign, people[2], people[2].person).looks
        assert (look.assignment, look.words) == (label.assignment_id, "you flagged it: An answer is cut off or garbled")

    def test_known_answers_are_told_at_the_end_alone(self, campaign_of, now):
        campaign, people = campaign_of(8, 2, overlap=2, gold_rate=0.5, gold_stops=False)
        known(campaign, [0, 1], practice=False)
        for person in people:
            label_all(campaign, person, ["first"], now)
        assert result_of(campaign, people[0], people[0].person).gold is None
        close_campaign(campaign=campaign, now=now)
        gold = result_of(campaign, people[0], people[0].person).gold
        assert (gold.same, gold.n) == (2, 2)

    def test_one_side_chosen_too_often_is_said(self, campaign_of, now):
        campaign, (one,) = campaign_of(12, 1)
        for _ in range(12):
            shown = next_assignment(campaign=campaign, annotator=one, now=now)
            submit_label(assignment=shown, verdict={"choice": "left"}, now=now)
        assert "more than chance (p below 0.005)" in result_of(campaign, one, one.person).chance

    def test_the_next_campaign_is_offered(self, labelled, pairs):
        campaign, (one, *_) = labelled
        other = make_campaign(name="Another", benchmark=pairs(2, slug="more"), protocol="pair", annotators=[one.person])
        page = flat(signed_in(one).get(f"/annotate/{campaign.pk}/done/"))
        assert "Next: Another, 2 left" in page
        assert f'href="/annotate/{other.pk}/prepare/"' in page

    def test_a_word_to_the_curators_stands_on_the_campaigns_page_for_staff_alone(self, labelled, client_of):
        campaign, (one, *_) = labelled
        client = signed_in(one)
        client.post(f"/annotate/{campaign.pk}/say/", {"message": "Item 3 is <b>unclear</b>."})
        assert "Item 3 is &lt;b&gt;unclear&lt;/b&gt;." in flat(client.get(f"/annotate/{campaign.pk}/done/"))
        assert "Item 3 is" in flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))
        assert "Item 3 is" not in flat(client_of("researcher").get(f"/campaigns/{campaign.pk}/"))
        client.post(f"/annotate/{campaign.pk}/say/", {"message": ""})
        assert "Item 3 is" not in flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))

    def test_somebody_without_work_reads_what_comes_next(self, client_of):
        assert not Annotator.objects.exists()
        assert "No campaign yet" in flat(client_of("annotator").get("/"))


class TestDecisions:
    """Of a ranking each two answers are compared, of points each part."""

    @pytest.fixture
    def closed(self, now, client_of):
        """``closed(kind, *verdicts)``: the result of the last of the people who gave these on every item, and pages."""

        def close(kind, *verdicts):
            campaign, first = kinds.campaign_of(kind, overlap=len(verdicts))
            others = [User.objects.create_user(f"other{n}", role="annotator") for n in range(len(verdicts) - 1)]
            add_annotators(campaign=campaign, people=others)
            people = [first, *map(make_annotator, others)]
            for person, verdict in zip(people, verdicts, strict=True):
                while (shown := next_assignment(campaign=campaign, annotator=person, now=now)) is not None:
                    submit_label(assignment=shown, verdict=verdict(shown), now=now)
            close_campaign(campaign=campaign, now=now)
            page = flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))
            return result_of(campaign, people[-1], people[-1].person), page

        return close

    @staticmethod
    def ranked(*best_first):
        return lambda shown: {"ranking": [[shown.order.index(str(answer))] for answer in best_first]}

    def test_rankings_with_two_neighbours_exchanged_agree_on_five_of_six_orders(self, closed):
        result, page = closed("batch", self.ranked(0, 1, 2, 3), self.ranked(1, 0, 2, 3))
        assert result.agreed.share == pytest.approx(5 / 6)
        assert result.agreed_words == "you and the others put 10 of 12 pairs of answers in the same order"
        assert [share.value for _who, share in result.shares] == [pytest.approx(5 / 6)] * 2
        assert result.settled == 0
        assert "83% <small>of 12 orders of two answers</small>" in page

    def test_rankings_are_compared_with_the_majority_on_each_two_answers(self, closed):
        orders = ((0, 1, 2, 3), (0, 1, 3, 2), (1, 0, 2, 3), (0, 1, 2, 3))
        result, _page = closed("batch", *(self.ranked(*order) for order in orders))
        assert result.shares[-1][0] == "You and the majority of the others"
        assert (result.shares[-1][1].value, result.shares[-1][1].n) == (1.0, 12)

    def test_points_are_compared_part_by_part(self, closed):
        def points(*given):
            parts = [{"component": key, "points": each} for key, each in zip(kinds.WEIGHTS, given, strict=True)]
            return lambda shown: {"parts": parts}

        result, _page = closed("components", points(4, 2, 1), points(4, 2, 3))
        assert result.agreed_words == "you and the others gave the same points to 4 of 6 parts"


class TestTold:
    def test_whoever_made_a_campaign_is_told_once_when_every_item_has_its_labels(self, pairs, people, annotators, now):
        (one,) = annotators(1)
        campaign = make_campaign(
            name="Told", benchmark=pairs(2), protocol="pair", annotators=[one.person], by=people["curator"]
        )
        Webhook.objects.create(url="https://a.example/", events=["campaign.finished"], secret="x", by=people["curator"])
        shown = next_assignment(campaign=campaign, annotator=one, now=now)
        assert not Notice.objects.exists()
        answer(shown, "first", now)
        label_all(campaign, one, ["first"], now)
        for _ in range(2):
            next_assignment(campaign=campaign, annotator=one, now=now)
        assert Delivery.objects.get().event == "campaign.finished"
        told = Notice.objects.get(person=people["curator"])
        assert told.text == "Told is complete: every item has its labels. Closing it opens its rows."
        assert told.link == f"/campaigns/{campaign.pk}/"

    def test_those_who_labelled_are_told_that_it_closed_and_that_a_label_came_back(self, campaign_of, now, people):
        campaign, (one, two) = campaign_of(2, 2)
        label_all(campaign, one, ["first"], now)
        one.person.preferences = {"language": "zh-hans"}
        one.person.save()
        return_label(label=one.labels.first(), by=people["curator"], note="Look again.", now=now)
        close_campaign(campaign=campaign, now=now)
        texts = list(Notice.objects.filter(person=one.person).order_by("pk").values_list("text", flat=True))
        assert [campaign.name in text for text in texts] == [True, True]
        assert "Look again." not in " ".join(texts)
        assert "已结束" in texts[1]
        assert not Notice.objects.filter(person=two.person).exists()
