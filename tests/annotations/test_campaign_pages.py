"""The pages on which staff make and watch campaigns."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.blinding import open_finished
from annotations.labels.actions import submit_label
from annotations.labels.agreement import label_rows
from annotations.labels.monitor import monitor_of
from annotations.models import Assignment, Campaign, Label, Membership
from bank.models import Benchmark, Item
from tests.annotations.kinds import benchmark_of
from tests.markup import flat

pytestmark = pytest.mark.django_db


def text_of(response):
    return flat(response)


def label_all(campaign, annotator, choice, now, **options):
    """Every item gets the same canonical verdict, whichever way it was shown."""
    while (assignment := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
        Assignment.objects.filter(pk=assignment.pk).update(order="01")
        assignment.order = "01"
        submit_label(assignment=assignment, verdict={"choice": choice}, now=now, **options)


class TestMaking:
    def test_a_curator_makes_one_in_the_page(self, client_of, people, pairs):
        benchmark = pairs(2)
        client = client_of("curator")
        assert "New campaign" in text_of(client.get("/campaigns/"))
        sent = {
            **{"name": "Round 1", "benchmark": benchmark.pk, "protocol": "pairwise-criteria", "overlap": 2},
            **{"lease_minutes": 20, "who": "these", "annotators": [people["annotator"].pk], "blind": "on"},
            "guidelines": "# Look\n[at this](https://example.org)",
        }
        response = client.post("/campaigns/new/", sent, follow=True)
        campaign = Campaign.objects.get()
        assert response.redirect_chain == [(f"/campaigns/{campaign.pk}/", 302)]
        assert campaign.blind
        assert not campaign.shows_criteria
        assert list(campaign.members.all()) == [people["annotator"].annotator]
        assert 'href="https://example.org"' in text_of(response)

    def test_what_cannot_be_made_comes_back_with_words(self, client_of, pairs):
        benchmark = pairs(1)
        make_campaign(name="Round 1", benchmark=benchmark, protocol="pair")
        sent = {
            **{"name": "Round 1", "benchmark": benchmark.pk, "protocol": "pair", "overlap": 1},
            **{"lease_minutes": 20, "who": "everybody"},
        }
        client = client_of("curator")
        assert "Choose another name" in text_of(client.post("/campaigns/new/", sent))
        assert "how many samples" in text_of(client.post("/campaigns/new/", sent | {"name": "x", "how": "stratified"}))
        assert Campaign.objects.count() == 1

    def test_the_list_counts_labels_in_all_and_of_the_last_week(self, client_of, pairs, annotators):
        campaign = make_campaign(name="Round 1", benchmark=pairs(3), protocol="pair", overlap=1)
        label_all(campaign, annotators(1)[0], "left", timezone.now())
        Label.objects.filter(pk=Label.objects.first().pk).update(created_at=timezone.now() - timedelta(days=8))
        shown = text_of(client_of("curator").get("/campaigns/"))
        assert '<b class="strong">3</b> of 3' in shown
        assert '<td class="n wide-only">2</td>' in shown

    def test_an_empty_list_says_what_to_do(self, client_of, pairs):
        assert "on its page Items" in text_of(client_of("curator").get("/campaigns/"))
        pairs(1)
        assert "New campaign" in text_of(client_of("curator").get("/campaigns/"))
        assert "New campaign" not in text_of(client_of("researcher").get("/campaigns/"))


class TestRunning:
    def test_buttons_open_pause_and_close(self, client_of, campaign_of):
        campaign, _ = campaign_of()
        client = client_of("curator")
        for action, state in (("pause", "paused"), ("open", "open"), ("close", "closed")):
            assert client.post(f"/campaigns/{campaign.pk}/{action}/").status_code == 302
            campaign.refresh_from_db()
            assert campaign.state == state
            assert client.get(f"/campaigns/{campaign.pk}/{action}/").status_code == (302 if action == "open" else 405)

    def test_a_closed_campaign_opens_again_only_when_that_is_confirmed_and_the_audit_log_tells_it(
        self, client_of, campaign_of
    ):
        campaign, _ = campaign_of()
        client, path = client_of("curator"), f"/campaigns/{campaign.pk}/"
        assert "cannot be taken back" in text_of(client.get(path))
        client.post(f"{path}close/")
        assert "new labels here may know of both" in text_of(client.get(path))
        assert "has to be confirmed" in text_of(client.post(f"{path}open/", follow=True))
        campaign.refresh_from_db()
        assert campaign.state == "closed"
        assert "then opened again" in text_of(client.post(f"{path}open/", {"again": "1"}, follow=True))
        campaign.refresh_from_db()
        assert campaign.state == "open"
        entry = AuditEntry.objects.get(action="campaign-opened-again")
        assert (entry.name, entry.about) == ("curator", campaign.name)

    def test_annotators_come_and_go(self, client_of, people, campaign_of):
        campaign, _ = campaign_of(people=0)
        client = client_of("curator")
        client.post(f"/campaigns/{campaign.pk}/annotators/add/", {"people": [people["annotator"].pk]})
        member = Membership.objects.get()
        client.post(f"/campaigns/{campaign.pk}/annotators/{member.annotator_id}/remove/")
        member.refresh_from_db()
        assert member.withdrawn_at
        researcher = {"people": [people["researcher"].pk]}
        client.post(f"/campaigns/{campaign.pk}/annotators/add/", researcher)
        assert Membership.objects.count() == 1

    def test_guidelines_are_changed(self, client_of, campaign_of):
        campaign, _ = campaign_of()
        client_of("curator").post(f"/campaigns/{campaign.pk}/guidelines/", {"guidelines": "**Look** twice."})
        campaign.refresh_from_db()
        assert campaign.guidelines == "**Look** twice."

    def test_only_staff_write(self, client_of, campaign_of):
        campaign, _ = campaign_of()
        for action in ("open", "pause", "close", "guidelines", "annotators/add"):
            for role, status in (("researcher", 403), ("annotator", 403), ("anonymous", 302)):
                assert client_of(role).post(f"/campaigns/{campaign.pk}/{action}/").status_code == status
        assert client_of("researcher").get("/campaigns/new/").status_code == 403


class TestWatching:
    def test_counts_times_and_agreement(self, campaign_of, people, now):
        campaign, (one, two, _) = campaign_of(4, 3, overlap=2)
        label_all(campaign, one, "left", now, seconds=10)
        label_all(campaign, two, "left", now, seconds=30, flags=["other"])
        monitor = monitor_of(campaign, label_rows(campaign), people["curator"])
        assert (monitor.items, monitor.slots, monitor.labels, monitor.complete) == (4, 8, 8, 4)
        assert (monitor.agreed.same, monitor.agreed.n, monitor.agreed.share) == (4, 4, 1.0)
        assert monitor.seconds == 20
        assert monitor.flagged == 4
        assert [(row.labels, row.items) for row in monitor.depths] == [(2, 4), (1, 0), (0, 0)]
        rows = {member.name: member for member in monitor.members}
        assert rows["person-0"].seconds == 10
        assert (rows["person-0"].first, rows["person-0"].second) == (4, 0)
        assert rows["person-2"].labels == 0
        assert rows["person-2"].last_seen is None

    def test_undecided_agrees_with_a_tie(self, campaign_of, people, now):
        campaign, (one, two) = campaign_of(2, 2, overlap=2)
        label_all(campaign, one, "tie", now)
        while (assignment := next_assignment(campaign=campaign, annotator=two, now=now)) is not None:
            submit_label(assignment=assignment, verdict={"choice": "undecided", "situation": 1}, now=now)
        assert monitor_of(campaign, label_rows(campaign), people["curator"]).agreed.share == 1.0

    def test_missing_agreement_is_a_dash_not_zero(self, campaign_of, people, client_of, now):
        campaign, (one, _) = campaign_of()
        label_all(campaign, one, "left", now)
        monitor = monitor_of(campaign, label_rows(campaign), people["curator"])
        assert monitor.agreed.share is None
        assert "<dd>– <small>of 0" in flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))

    def test_researchers_read_pseudonyms(self, client_of, campaign_of, now):
        campaign, (one, _) = campaign_of(2, 2)
        label_all(campaign, one, "left", now, comment="a remark")
        open_finished(campaign=campaign, by=None, now=now)
        html = text_of(client_of("researcher").get(f"/campaigns/{campaign.pk}/"))
        assert one.pseudonym in html
        assert "person-0" not in html
        assert "a remark" in html
        assert "person-0" in text_of(client_of("curator").get(f"/campaigns/{campaign.pk}/?show=noted"))

    def test_campaigns_on_private_benchmarks_are_absent_for_researchers(self, client_of, campaign_of):
        campaign, _ = campaign_of()
        Benchmark.objects.update(visibility="private")
        assert client_of("researcher").get(f"/campaigns/{campaign.pk}/").status_code == 404
        assert campaign.name not in text_of(client_of("researcher").get("/campaigns/"))
        assert client_of("curator").get(f"/campaigns/{campaign.pk}/").status_code == 200


class TestForm:
    def test_a_benchmark_without_items_is_listed_and_its_items_are_made_in_the_form(self, client_of, pairs):
        benchmark = pairs(3)
        Item.objects.all().delete()
        client = client_of("curator")
        assert "Pairs (no items yet)" in text_of(client.get("/campaigns/new/"))
        sent = {"name": "Typed", "benchmark": benchmark.pk, "protocol": "pair", "overlap": 2}
        assert "Make 3 pairs now" in text_of(client.post("/campaigns/count/", sent))
        page = text_of(client.post("/campaigns/new/", sent | {"make_items": "1"}))
        assert "3 items of Pairs were made." in page
        assert 'value="Typed"' in page
        assert "<dd>3</dd>" in text_of(client.post("/campaigns/count/", sent))
        assert not Campaign.objects.exists()

    def test_components_of_a_benchmark_for_staff_alone_are_shown_by_a_button_beside_the_reason(self, client_of):
        benchmark = benchmark_of()
        sent = {"name": "Parts", "benchmark": benchmark.pk, "protocol": "components", "overlap": 1}
        client = client_of("curator")
        assert "Show criteria in this campaign" not in text_of(client.post("/campaigns/count/", sent))
        Benchmark.objects.update(visibility="private")
        told = text_of(client.post("/campaigns/count/", sent))
        assert "is for staff only" in told
        assert "Show criteria in this campaign" in told
        page = text_of(client.post("/campaigns/new/", sent | {"show_criteria": "1"}))
        assert "not blind, criteria shown" in page
        shown = sent | {"shows_criteria": "on"}
        assert "<dd>2</dd>" in text_of(client.post("/campaigns/count/", shown))
        benchmark.samples.update(absent_images=[{"position": 0, "file": "a.jpg", "url": ""}])
        assert "A picture of every item is not stored here" in text_of(client.post("/campaigns/count/", shown))
        item = text_of(client.post("/campaigns/preview/", shown, HTTP_HX_REQUEST="true"))
        assert "points" in item
        assert "A picture is not stored here" in item
        assert "Sides are drawn" not in item

    def test_the_hours_come_from_past_labels_of_the_protocol(self, client_of, campaign_of, now):
        campaign, (one, two) = campaign_of(12, 2, protocol="pair", overlap=2)
        asked = {"benchmark": campaign.benchmark.pk, "protocol": "pair", "overlap": 3}
        client = client_of("curator")
        assert "our guess: nobody has labelled this way" in text_of(client.post("/campaigns/count/", asked))
        for annotator in (one, two):
            label_all(campaign, annotator, "left", now, seconds=100)
        page = text_of(client.post("/campaigns/count/", asked))
        assert "<dd>1 h</dd>" in page
        assert "the median of the last 24 labels" in page

    def test_an_item_is_shown_as_annotators_see_it_with_names_hidden_and_nothing_stored(self, client_of, pairs):
        benchmark = pairs(1, texts=["As model-one, I see two.", "Three."])
        sent = {"benchmark": benchmark.pk, "protocol": "pair", "overlap": 1, "blind": "on"}
        client = client_of("curator")
        fragment = text_of(client.post("/campaigns/preview/", sent, HTTP_HX_REQUEST="true"))
        assert "Question 0?" in fragment
        assert "model name hidden" in fragment
        assert "model-one" not in fragment
        assert "First is better" in fragment
        assert "<html" not in fragment
        assert "<html" in text_of(client.post("/campaigns/preview/", sent))
        assert not Campaign.objects.exists()
        assert not Assignment.objects.exists()

    def test_many_items_for_everybody_are_confirmed_with_the_numbers(self, client_of, pairs, monkeypatch):
        monkeypatch.setattr("annotations.campaigns.sizing.MANY", 3)
        benchmark = pairs(4)
        client = client_of("curator")
        sent = {
            **{"name": "Many", "benchmark": benchmark.pk, "protocol": "pair", "overlap": 2},
            **{"lease_minutes": 20, "who": "everybody"},
        }
        answer = client.post("/campaigns/new/", sent)
        campaign = Campaign.objects.get()
        assert campaign.state == "draft"
        assert answer.url == f"/campaigns/{campaign.pk}/open/"
        page = text_of(client.get(answer.url))
        assert "<dd>8</dd>" in page
        assert "Work in all" in page
        client.post(answer.url)
        campaign.refresh_from_db()
        assert campaign.state == "draft"
        client.post(answer.url, {"confirmed": "1"})
        campaign.refresh_from_db()
        assert campaign.state == "open"

    def test_chosen_people_and_few_items_need_no_confirmation(self, client_of, pairs, people, monkeypatch):
        monkeypatch.setattr("annotations.campaigns.sizing.MANY", 3)
        sent = {
            **{"name": "Few", "benchmark": pairs(4).pk, "protocol": "pair", "overlap": 1, "lease_minutes": 20},
            **{"who": "these", "annotators": [people["annotator"].pk]},
        }
        client_of("curator").post("/campaigns/new/", sent)
        assert Campaign.objects.get().state == "open"
