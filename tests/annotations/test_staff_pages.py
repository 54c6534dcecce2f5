"""Agreement, adjudication, invitations, guidelines and the form of a campaign, as staff meet them in the browser."""

import html
import io
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from annotations import ballots
from annotations.assignment import material
from annotations.assignment.gold import mark_gold, unmark_gold
from annotations.assignment.leases import next_assignment
from annotations.campaigns import invitations
from annotations.campaigns.actions import close_campaign, make_campaign, open_campaign
from annotations.campaigns.members import add_annotators, make_annotator
from annotations.labels.actions import submit_label
from annotations.labels.adjudication import adjudicate
from annotations.labels.agreement import agreement_of, label_rows, pairwise_cells
from annotations.labels.monitor import monitor_of
from annotations.labels.verdicts import CHOICE_SCALE
from annotations.models import (
    Adjudication,
    Assignment,
    Campaign,
    CampaignItem,
    Invitation,
    Label,
    LabelReturn,
    Membership,
)
from annotations.views.forms import people_who_label
from judging.models import Judge, Run
from tests.annotations import kinds
from tests.annotations.test_quality import answer
from tests.bank.conftest import picture
from tests.markup import flat

pytestmark = pytest.mark.django_db


def text_of(response):
    return flat(response)


@pytest.fixture
def voted(campaign_of, now):
    """``voted(["ff", "fs", "tu"])``: an item each, an annotator each letter: first, second, tie, undecided."""

    def make(votes, **options):
        campaign, people = campaign_of(len(votes), len(votes[0]), overlap=len(votes[0]), order="fixed", **options)
        words = {"f": "first", "s": "second", "t": "tie"}
        for number, annotator in enumerate(people):
            while (work := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
                vote = votes[work.campaign_item.position][number]
                if vote == "u":
                    submit_label(assignment=work, verdict={"choice": "undecided", "situation": 1}, now=now)
                else:
                    answer(work, words[vote], now)
        return campaign, people

    return make


def counts(found):
    return {verdict: count for verdict, count, _ in found.majority}


class TestAgreement:
    def test_the_figures_are_those_of_cohens_example(self, voted):
        """Cohen's table [[20, 5], [10, 15]]: kappa .4 (statistics.md); Fleiss' kappa differs, 35 of 50 are the same."""
        campaign, (one, two) = voted(["ff"] * 20 + ["fs"] * 5 + ["sf"] * 10 + ["ss"] * 15)
        found = agreement_of(campaign, label_rows(campaign))
        cell = found.cells[one.pk, two.pk]
        assert (cell.same, cell.n, round(cell.of_kappa.value, 6), cell.share) == (35, 50, 0.4, 0.7)
        figures = {figure.name: figure for figure in found.figures}
        assert figures["Matching"].estimate.value == pytest.approx(0.7)
        # Two raters, margins pooled: P_e = (55² + 45²) / 100² = .505, so (.7 - .505) / .495.
        assert figures["Fleiss' kappa"].estimate.value == pytest.approx(0.195 / 0.495)
        # Krippendorff's alpha = 1 - (n - 1) D_o / D_e with n = 100 values: 1 - 99 * 30 / (100² - 55² - 45²).
        assert figures["Krippendorff's alpha, nominal"].estimate.value == pytest.approx(1 - 99 * 30 / 4950)
        for figure in found.figures:
            assert figure.estimate.interval.low < figure.estimate.value < figure.estimate.interval.high
        assert counts(found) == {"first": 20, "second": 15, "tie": 15, "undecided": 0}
        assert found.unanimous == 35

    def test_what_the_ballot_offers_is_a_category_though_nobody_chose_it(self, voted):
        """Gwet 2008: p_e = sum of share (1 - share) / (K - 1); the shares are .55 and .45, 35 of 50 are the same."""
        campaign, (one, two) = voted(["ff"] * 20 + ["fs"] * 5 + ["sf"] * 10 + ["ss"] * 15)
        for choices, chance in ((["left", "right"], 0.495), (["left", "right", "tie"], 0.2475)):
            campaign.ballot = {"choices": choices}
            found = agreement_of(campaign, label_rows(campaign))
            (of_all,) = (figure.estimate for figure in found.figures if figure.name == "Gwet's AC1")
            expected = pytest.approx((0.7 - chance) / (1 - chance))
            assert of_all.value == found.cells[one.pk, two.pk].beyond_chance["ac1"].value == expected

    def test_two_peoples_kappa_has_its_interval_by_group_where_their_items_share_a_picture(self, voted):
        campaign, (one, two) = voted(["ff"] * 20 + ["fs"] * 5 + ["sf"] * 10 + ["ss"] * 15)
        rows = label_rows(campaign)
        plain = pairwise_cells(rows)[one.pk, two.pk]
        of_item = {item: n for n, item in enumerate(sorted({row.campaign_item for row in rows}))}
        fives, halves = (
            pairwise_cells([replace(row, group=str(of_item[row.campaign_item] // size)) for row in rows])[
                one.pk, two.pk
            ]
            for size in (5, 25)
        )
        assert fives.of_kappa.value == halves.of_kappa.value == plain.of_kappa.value
        of_five, of_plain = fives.of_kappa.interval, plain.of_kappa.interval
        assert of_five.high - of_five.low > 1.5 * (of_plain.high - of_plain.low)
        assert (halves.of_kappa.interval, halves.agreement.interval) == (None, None)
        assert halves.of_kappa.reason == halves.agreement.reason == "fewer than 8 groups: no interval"
        told = pairwise_cells([row for row in rows if of_item[row.campaign_item] < 3])[one.pk, two.pk].of_kappa
        assert (told.interval, told.n, bool(told.reason)) == (None, 3, True)

    def test_shares_of_items_have_their_intervals_by_group_where_items_share_a_picture(self, voted):
        campaign, _ = voted(["ff"] * 20 + ["fs"] * 5 + ["sf"] * 10 + ["ss"] * 15)
        rows = label_rows(campaign)
        plain = agreement_of(campaign, rows)
        of_item = {item: n for n, item in enumerate(sorted({row.campaign_item for row in rows}))}
        shared = [replace(row, group=str(of_item[row.campaign_item] // 5)) for row in rows]
        fives = agreement_of(campaign, shared)
        pairs = [(plain.of_unanimous, fives.of_unanimous)]
        pairs += [(plain.majority[at][2], fives.majority[at][2]) for at in (0, 1)]
        for one, other in pairs:
            assert one.value == other.value
            assert other.interval.high - other.interval.low > 1.5 * (one.interval.high - one.interval.low)

    def test_the_rule_of_mllm_bench_and_undecided_as_a_tie(self, voted):
        campaign, _ = voted(["ffs", "fsu", "tuu", "fuu"])
        campaign.benchmark.majority = "mllm-bench"
        found = agreement_of(campaign, label_rows(campaign))
        assert counts(found) == {"first": 1, "second": 0, "tie": 0, "undecided": 3}
        assert found.unanimous == 1
        assert CHOICE_SCALE["tie"] == CHOICE_SCALE["undecided"]

    def test_one_label_each_is_no_agreement_and_no_zero(self, voted, client_of):
        campaign, _ = voted(["f", "s"])
        found = agreement_of(campaign, label_rows(campaign))
        assert all(figure.estimate.value is None for figure in found.figures)
        assert "No item has two labels" in text_of(client_of("curator").get(f"/campaigns/{campaign.pk}/agreement/"))

    @pytest.mark.parametrize(
        "protocol",
        ["score", "batch", "components", "choice-extraction", "yes-no", "label", "review", "compare-analyses"],
    )
    def test_every_kind_has_its_figures_and_pages(self, protocol, now, client_of):
        campaign, ada = kinds.campaign_of(protocol, overlap=2)
        bob = add_annotators(campaign=campaign, people=[User.objects.create_user("bob", role="annotator")])
        assert bob == 1
        given = {
            "score": {"score": 4},
            "batch": {"ranking": [2, 0, 3, 1]},
            "components": {"parts": [{"component": key, "points": 1} for key in kinds.WEIGHTS]},
            "choice-extraction": {"option": "B"},
            "yes-no": {"answer": True},
            "label": {"option": "harbour"},
            "review": {"agree": False, "grade": 2, "hallucination": False},
            "compare-analyses": {"choice": "tie"},
        }[protocol]
        for annotator in campaign.members.all():
            while (work := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
                material.shown_material(
                    work, ballots.of(campaign)
                )  # a reviewer says something about what was displayed
                submit_label(assignment=work, verdict=given, now=now, comment="Why.")
        found = agreement_of(campaign, label_rows(campaign))
        assert found.items == campaign.campaign_items.count()
        assert found.figures[0].estimate.n == found.items
        client = client_of("curator")
        place = campaign.campaign_items.first()
        for path in ("", "agreement/", "items/", f"items/{place.pk}/", "data/", "settings/"):
            assert client.get(f"/campaigns/{campaign.pk}/{path}").status_code == 200, path
        page = text_of(client.get(f"/campaigns/{campaign.pk}/items/{place.pk}/"))
        posted = {"do": "adjudicate", "verdict": "yes", "note": "Seen."}
        other = {"score": "4", "choice-extraction": "B", "label": "river", "compare-analyses": "first"}
        posted |= {"verdict": other[protocol]} if protocol in other else {}
        if protocol in ("batch", "components"):
            posted["number"] = [1, 2, 2, 4] if protocol == "batch" else [1, 2, 3]
        assert 'name="verdict"' in page or 'name="number"' in page
        assert client.post(f"/campaigns/{campaign.pk}/items/{place.pk}/decide/", posted).status_code == 302
        decided = Adjudication.objects.get(campaign_item=place).verdict()
        if protocol == "batch":
            assert decided["ranking"] == [[0], [1, 2], [3]]
        assert decided
        assert ada.pk in found.people


def test_a_judge_is_asked_for_the_categories_of_the_campaign(client_of):
    ballot = {"categories": ["harbour", {"value": "river", "about": "It flows."}], "question": "What is it?"}
    campaign, _ = kinds.campaign_of("label", ballot=ballot)
    client = client_of("curator")
    page = client.get(f"/campaigns/{campaign.pk}/").content.decode()
    link = html.unescape(re.search(r'href="(/judging/runs/new/[^"]+)"', page)[1])
    form = client.get(link).context["form"]
    assert form["categories"].value() == "harbour\nriver: It flows."
    judge = Judge.objects.get(baseline="random")
    sent = {"judge": judge.pk, "prompt": "default"} | {
        name: form[name].value() for name in ("benchmark", "protocol", "campaign", "question", "categories")
    }
    answer = client.post("/judging/runs/new/", sent)
    assert answer.status_code == 302, answer.context["form"].errors
    run = Run.objects.get()
    assert run.settings["categories"] == ballots.of(campaign).settings["categories"]
    assert run.settings["question"] == "What is it?"
    assert run.run_items.count() == campaign.campaign_items.count()
    shown = client.get(f"/judging/runs/{run.pk}/").content.decode()
    assert "harbour, river" in shown
    again = client.get(f"/judging/runs/new/?from={run.pk}").context["form"]
    assert again["categories"].value() == form["categories"].value()


class TestMonitor:
    def test_kappa_and_agreement_are_with_the_others_and_odd_work_is_flagged(self, voted, people, now):
        campaign, (one, two, three) = voted(["fft"] * 15 + ["sst"] * 15)
        Label.objects.filter(annotator=one).update(seconds=1)
        Label.objects.exclude(annotator=one).update(seconds=30)
        for place, order in ((0, "01"), (1, "10")):  # sides are drawn; these make the second one's answers alternate
            odd_or_even = CampaignItem.objects.filter(position__in=range(place, 30, 2))
            Assignment.objects.filter(annotator=two, campaign_item__in=odd_or_even).update(order=order)
        monitor = monitor_of(campaign, label_rows(campaign), people["curator"])
        members = {member.annotator: member for member in monitor.members}
        # Of the others of three nobody agrees with the first two's partner and the third at once: no majority.
        assert members[one].agreed.n == 0
        assert (members[three].agreed.same, members[three].agreed.n) == (0, 30)
        assert members[three].kappa.value == 0
        flags = {annotator: dict(member.flags) for annotator, member in members.items()}
        assert flags[one]["too fast"] == "30 of 30 in under 10 s"
        assert flags[three]["straight-lining"] == "the same verdict 30 times in a row"
        assert "straight-lining" not in flags[two]


class TestAdjudication:
    def test_the_least_agreed_item_comes_first_and_the_labels_stay(self, voted, client_of, people):
        campaign, _ = voted(["ff", "fs", "ss"])
        client = client_of("curator")
        listed = text_of(client.get(f"/campaigns/{campaign.pk}/items/"))
        found = re.findall(rf"/campaigns/{campaign.pk}/items/(\d+)/", listed)
        disputed = CampaignItem.objects.get(position=1)
        assert int(found[0]) == disputed.pk
        path = f"/campaigns/{campaign.pk}/items/{disputed.pk}/"
        assert "Choose a verdict" in text_of(client.post(f"{path}decide/", {"do": "adjudicate"}))
        client.post(f"{path}decide/", {"do": "adjudicate", "verdict": "second", "note": "It counts wrong."})
        decided = Adjudication.objects.get()
        assert (decided.choice, decided.by, decided.comment) == ("second", people["curator"], "It counts wrong.")
        assert Label.objects.filter(assignment__campaign_item=disputed).count() == 2
        assert "B is better" in text_of(client.get(f"/campaigns/{campaign.pk}/items/?show=adjudicated"))
        client.post(f"{path}decide/", {"do": "withdraw"})
        assert not Adjudication.objects.exists()
        assert client_of("researcher").get(path).status_code == 403

    def test_items_are_told_apart_by_number_and_found_by_the_key_of_their_sample(self, voted, client_of):
        campaign, _ = voted(["ff", "fs", "ss"])
        path = f"/campaigns/{campaign.pk}/items/"
        listed = text_of(client_of("curator").get(path))
        rows = re.findall(r'">(s\d)</a>.*?<td class="n dim">(\d)</td><td class="n">(\d+%)</td>', listed)
        assert rows == [("s1", "2", "0%"), ("s0", "1", "100%"), ("s2", "3", "100%")]
        found = text_of(client_of("curator").get(path + "?q=S2&show=agreed"))
        assert re.findall(r'">(s\d)</a>', found) == ["s2"]
        assert "?show=disputed&amp;q=S2" in found
        assert "whose key holds “&lt;b&gt;”" in text_of(client_of("curator").get(path + "?q=<b>"))

    def test_who_answered_is_told_only_when_it_is_asked_for_in_a_blind_campaign(self, voted, client_of):
        campaign, _ = voted(["fs"])
        path = f"/campaigns/{campaign.pk}/items/{CampaignItem.objects.get().pk}/"
        page = text_of(client_of("curator").get(path))
        told = re.search(r"<details[^>]*><summary>Show the models</summary>(.*?)</details>", page, re.DOTALL)
        assert "A is model-one, B is model-two." in told[1]
        assert "model-one" not in page.replace(told[0], "")
        Campaign.objects.update(blind=False)
        open_page = text_of(client_of("curator").get(path))
        assert "Show the models" not in open_page
        assert "model-one" in open_page

    def test_gold_and_practice_are_made_of_items_that_nobody_had(self, campaign_of, client_of, now):
        campaign, (one, _) = campaign_of(3, 2)
        held = next_assignment(campaign=campaign, annotator=one, now=now).campaign_item
        free = campaign.campaign_items.exclude(pk=held.pk).first()
        client = client_of("curator")
        posted = {"do": "practice", "verdict": "first", "note": "**Count** again."}
        client.post(f"/campaigns/{campaign.pk}/items/{free.pk}/decide/", posted)
        free.refresh_from_db()
        assert (free.gold, free.practice, free.note) == ({"choice": "first"}, True, "**Count** again.")
        refused = client.post(f"/campaigns/{campaign.pk}/items/{held.pk}/decide/", posted)
        assert (refused.status_code, "stays an ordinary one" in text_of(refused)) == (400, True)

    def test_a_label_goes_back_with_a_note_and_is_answered_by_a_look(self, voted, client_of, now):
        campaign, (one, _) = voted(["fs"])
        label = Label.objects.get(annotator=one)
        client = client_of("curator")
        path = f"/campaigns/{campaign.pk}/labels/{label.pk}/return/"
        assert client.post(path, {"note": " "}).status_code == 400
        client.post(path, {"note": "Look at the second sentence."})
        mine = Client()
        mine.force_login(one.person)
        page = text_of(mine.get(f"/annotate/{campaign.pk}/", follow=True))
        assert "Look at the second sentence." in page
        seen = label.changed_at.isoformat()
        mine.post(
            f"/annotate/assignments/{label.assignment_id}/submit/",
            {"editing": 1, "seen": seen, "choice": "tie"},
        )
        assert LabelReturn.objects.get().answered_at
        label.refresh_from_db()
        assert label.choice == "tie"
        assert "Look at the second" not in text_of(mine.get(f"/annotate/{campaign.pk}/", follow=True))


class TestPractice:
    def test_the_page_says_how_it_went_before_the_next_item(self, campaign_of, now):
        campaign, (one, _) = campaign_of(2, 2, practice_pass=0.5)
        campaign.campaign_items.filter(position=0).update(gold={"choice": "first"}, practice=True, note="*Because.*")
        client = Client()
        client.force_login(one.person)
        work = next_assignment(campaign=campaign, annotator=one, now=now)
        client.post(f"/annotate/assignments/{work.pk}/submit/", {"choice": "tie"})
        page = text_of(client.get(f"/annotate/{campaign.pk}/"))
        assert "Not quite" in page
        assert "<em>Because.</em>" in page
        assert "0 of 1 right, 1 were needed" in page
        client.post(f"/annotate/{campaign.pk}/go-on/")
        assert "below the pass mark" in text_of(client.get(f"/annotate/{campaign.pk}/"))


class TestInvitations:
    @pytest.fixture
    def link(self, campaign_of, people, now):
        campaign, _ = campaign_of(2, 1)

        def make(**options):
            (made,) = invitations.invite(campaign=campaign, by=people["curator"], now=NOW(), **{"days": 2} | options)
            return made, f"/invitations/{invitations.token_of(made)}/"

        return make

    def test_somebody_new_makes_an_account_and_labels(self, link):
        made, path = link(most=1)
        client = Client()
        sent = {"username": "newcomer", "password": "short"}
        assert "too short" in text_of(client.post(path, sent))
        assert not User.objects.filter(username="newcomer").exists()
        answer = client.post(path, sent | {"password": "long-enough-for-me"})
        assert answer.headers["Location"] == f"/annotate/{made.campaign_id}/"
        assert User.objects.get(username="newcomer").role == "guest"
        assert client.get(f"/annotate/{made.campaign_id}/", follow=True).status_code == 200
        other = Client().post(path, {"username": "second", "password": "long-enough-for-me"})
        assert other.status_code == 404
        assert Invitation.objects.get().used == 1

    def test_who_has_an_account_joins_once_and_researchers_cannot(self, link, client_of, people):
        made, path = link()
        client = client_of("annotator")
        client.post(path)
        client.post(path)
        made.refresh_from_db()
        assert made.used == 1
        assert Membership.objects.filter(annotator__person=people["annotator"]).exists()
        assert "cannot label" in text_of(client_of("researcher").post(path))

    def test_a_forged_revoked_or_old_link_opens_nothing(self, link, client_of, now):
        made, path = link()
        client = Client()
        assert client.get(path).status_code == 200
        assert client.get(path[:-2] + "x/").status_code == 404
        Campaign.objects.update(state="closed")
        closed = client.get(path)
        assert closed.status_code == 404
        assert "works again if the campaign is opened again" in text_of(closed)
        Campaign.objects.update(state="open")
        client_of("curator").post(f"/campaigns/{made.campaign_id}/invitations/{made.pk}/revoke/")
        assert client.get(path).status_code == 404
        old, path = link()
        Invitation.objects.filter(pk=old.pk).update(expires_at=NOW() - timedelta(seconds=1))
        assert client.get(path).status_code == 404

    def test_mails_go_to_each_address_for_one_person(self, campaign_of, client_of):
        campaign, _ = campaign_of(1, 1)
        client = client_of("curator")
        sent = {"days": 3, "emails": "a@example.org\nb@example.org"}
        client.post(f"/campaigns/{campaign.pk}/invite/", sent)
        assert [one.to for one in mail.outbox] == [["a@example.org"], ["b@example.org"]]
        assert "/invitations/" in mail.outbox[0].body
        assert set(Invitation.objects.values_list("most", flat=True)) == {1}
        client.post(f"/campaigns/{campaign.pk}/invite/", sent | {"emails": "nobody"})
        assert Invitation.objects.count() == 2

    def test_where_mail_is_not_set_up_nothing_is_said_to_be_sent_and_the_links_are_passed_on(
        self, campaign_of, client_of, settings
    ):
        campaign, _ = campaign_of(1, 1)
        settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
        sent = {"days": 3, "emails": "a@example.org"}
        page = text_of(client_of("curator").post(f"/campaigns/{campaign.pk}/invite/", sent, follow=True))
        assert "Mail is not set up: pass these on" in page
        assert "sent." not in page.replace("nothing was sent.", "")
        assert f"/invitations/{invitations.token_of(Invitation.objects.get())}/" in page

    def test_a_withdrawn_annotator_does_not_come_back_by_a_link(self, link, client_of, people, now):
        _, path = link()
        client_of("annotator").post(path)
        Membership.objects.filter(annotator__person=people["annotator"]).update(withdrawn_at=NOW())
        assert "removed from" in text_of(client_of("annotator").post(path, follow=True))


def NOW():
    from django.utils import timezone

    return timezone.now()


class TestMaking:
    def test_the_count_is_told_before_anything_is_made(self, client_of, pairs):
        benchmark = pairs(6)
        client = client_of("curator")
        asked = {"benchmark": benchmark.pk, "protocol": "pair", "overlap": 3}
        assert "<dd>18</dd>" in text_of(client.post("/campaigns/count/", asked))
        keys = asked | {"how": "keys", "keys": "s1\ns2"}
        assert "<dd>6</dd>" in text_of(client.post("/campaigns/count/", keys))
        assert "no sample &#x27;x&#x27;" in text_of(client.post("/campaigns/count/", keys | {"keys": "x"}))
        none = client.post("/campaigns/count/", asked | {"protocol": "batch"})
        assert "Too few models have answered" in text_of(none)
        assert not Campaign.objects.exists()

    def test_every_setting_of_the_form_is_kept_and_changed_on_its_page(self, client_of, pairs):
        benchmark = pairs(6)
        client = client_of("curator")
        sent = {
            **{"name": "All of it", "benchmark": benchmark.pk, "protocol": "pair", "overlap": 2, "lease_minutes": 5},
            **{"how": "stratified", "n": 4, "by": "source", "seed": 9, "order": "fixed", "daily_cap": 50},
            **{"due": "2030-01-31", "practice_pass": "80", "gold_rate": "12.5", "gold_pass": "60", "gold_least": 3},
            **{"who": "these", "asked": 1, "allowed": [], "confidence": "on", "draft": 1},
        }
        assert client.post("/campaigns/new/", sent).status_code == 302
        made = Campaign.objects.get()
        assert (made.state, made.order, made.daily_cap, str(made.due)) == ("draft", "fixed", 50, "2030-01-31")
        assert (made.practice_pass, made.gold_rate, made.gold_pass, made.gold_least) == (0.8, 0.125, 0.6, 3)
        assert (made.gold_stops, made.seed, made.plan["n"]) == (False, 9, 4)
        assert made.ballot["choices"] == ["left", "right"]
        assert made.ballot["confidence"] is True
        assert not made.shows_criteria
        assert "not shown" in text_of(client.get(f"/campaigns/{made.pk}/"))
        page = text_of(client.get(f"/campaigns/{made.pk}/settings/"))
        assert 'value="12.5"' in page
        client.post(f"/campaigns/{made.pk}/settings/", {"overlap": 3, "lease_minutes": 9, "order": "disputed"})
        made.refresh_from_db()
        assert (made.overlap, made.lease_minutes, made.order, made.daily_cap) == (3, 9, "disputed", None)

    def test_a_due_date_that_has_passed_is_refused_and_one_that_is_stored_stays_and_is_not_copied(
        self, client_of, pairs
    ):
        client = client_of("curator")
        sent = {"name": "Late", "benchmark": pairs(6).pk, "protocol": "pair", "overlap": 2, "lease_minutes": 5}
        sent |= {"who": "everybody", "asked": 1, "due": "2020-01-31"}
        assert "2020-01-31 is in the past" in text_of(client.post("/campaigns/new/", sent))
        assert not Campaign.objects.exists()
        client.post("/campaigns/new/", sent | {"due": NOW().date().isoformat()})
        made = Campaign.objects.get()
        settings, changed = f"/campaigns/{made.pk}/settings/", {"overlap": 2, "lease_minutes": 9}
        assert "2020-01-31 is in the past" in text_of(client.post(settings, changed | {"due": "2020-01-31"}))
        Campaign.objects.update(due="2020-01-31")  # as time does
        assert "2020-02-01 is in the past" in text_of(client.post(settings, changed | {"due": "2020-02-01"}))
        assert client.post(settings, changed | {"due": "2020-01-31"}).status_code == 302
        made.refresh_from_db()
        assert (str(made.due), made.lease_minutes) == ("2020-01-31", 9)
        client.post(f"/campaigns/{made.pk}/copy/", {"name": "Once more"})
        assert Campaign.objects.get(name="Once more").due is None

    def test_who_is_not_there_to_be_added_is_made_on_the_page_people_by_those_who_may(self, campaign_of, client_of):
        campaign, _ = campaign_of(2, 2)
        add_annotators(campaign=campaign, people=people_who_label())
        path = f"/campaigns/{campaign.pk}/"
        assert 'made on the page <a href="/people/">People</a>' in text_of(client_of("administrator").get(path))
        page = text_of(client_of("curator").get(path))
        assert "An administrator makes more accounts" in page
        assert "make_user" not in page

    def test_a_scale_of_its_own_is_put_together_row_by_row_until_there_are_labels(self, client_of, now):
        benchmark, client = kinds.benchmark_of(), client_of("curator")
        asked = {"benchmark": benchmark.pk, "own_scale": "on", "lowest": "0", "highest": "2", "step": "1"}
        asked |= {"mark": ["0", "1"], "word": ["No", "Half"], "meaning": ["None of it", ""]}
        rows = text_of(client.post("/campaigns/scale/", asked))
        assert rows.count('name="mark"') == 3
        assert 'value="None of it"' in rows
        assert "do not end at 2" in text_of(client.post("/campaigns/scale/", asked | {"step": "0.3"}))
        assert "Wrong or beside the point" in text_of(client.post("/campaigns/scale/", {"own_scale": "on"}))
        sent = asked | {"name": "Own", "protocol": "score", "overlap": 1, "lease_minutes": 5, "asked": 1}
        sent |= {"who": "everybody", "draft": 1}
        assert "do not end at 2" in text_of(client.post("/campaigns/new/", sent | {"step": "0.3"}))
        client.post("/campaigns/new/", sent)
        made = Campaign.objects.get()
        assert [(one["value"], one["label"]) for one in made.ballot["scale"]] == [(0, "No"), (1, "Half"), (2, "")]
        settings = f"/campaigns/{made.pk}/settings/"
        assert 'value="Half"' in text_of(client.get(settings))
        assert "ballot was changed" in text_of(client.post(f"/campaigns/{made.pk}/ballot/", {"asked": 1}, follow=True))
        made.refresh_from_db()
        assert len(made.ballot["scale"]) == 5
        place = made.campaign_items.first()
        mark_gold(campaign_item=place, verdict={"score": 5.0}, note="", practice=False)
        refused = client.post(f"/campaigns/{made.pk}/ballot/", asked | {"asked": 1}, follow=True)
        assert "Make them ordinary items first" in text_of(refused)
        unmark_gold(campaign_item=place)
        open_campaign(campaign=made)
        ada = make_annotator(User.objects.create_user("ada", role="annotator"))
        submit_label(assignment=next_assignment(campaign=made, annotator=ada, now=now), verdict={"score": 1}, now=now)
        refused = client.post(f"/campaigns/{made.pk}/ballot/", asked | {"asked": 1}, follow=True)
        assert "There are labels" in text_of(refused)

    def test_a_draft_is_seen_by_no_annotator(self, campaign_of):
        campaign, (one, _) = campaign_of(2, 2, opened=False)
        client = Client()
        client.force_login(one.person)
        assert campaign.name not in text_of(client.get("/annotate/"))
        assert client.get(f"/annotate/{campaign.pk}/").status_code == 404

    def test_guidelines_show_their_own_pictures_and_no_others(self, campaign_of, client_of, media):
        campaign, (one, _) = campaign_of(2, 2)
        client = client_of("curator")
        text = "Look:\n\n![A scale](the-scale.png)\n\n![Not here](other.png) ![Away](https://example.org/x.png)"
        file = SimpleUploadedFile("the scale.png", picture(), "image/png")
        client.post(f"/campaigns/{campaign.pk}/guidelines/", {"guidelines": text, "pictures": file})
        kept = campaign.pictures.get()
        assert kept.name == "the-scale.png"
        mine = Client()
        mine.force_login(one.person)
        page = text_of(mine.get(f"/annotate/{campaign.pk}/"))
        address = f"/campaigns/{campaign.pk}/pictures/the-scale.png"
        assert f'src="{address}"' in page
        assert "example.org" not in page.replace("pictures.invalid", "")
        assert "[picture: Not here]" in page
        assert mine.get(address).status_code == 200
        assert client_of("annotator").get(address).status_code == 404
        broken = SimpleUploadedFile("x.png", b"<svg onload=alert(1)>", "image/png")
        sent = {"guidelines": text, "pictures": broken}
        answer = client.post(f"/campaigns/{campaign.pk}/guidelines/", sent, follow=True)
        assert "not a readable" in text_of(answer)


class TestGoldInBulk:
    def test_verdicts_come_from_a_file_each_bad_row_named_and_nothing_is_marked_by_halves(
        self, campaign_of, client_of, now
    ):
        campaign, _ = campaign_of(4, 2, order="fixed")
        client = client_of("curator")
        address = f"/campaigns/{campaign.pk}/items/known/"

        def send(text, **more):
            file = SimpleUploadedFile("right.csv", text.encode(), "text/csv")
            return text_of(client.post(address, {"file": file, **more}, follow=True))

        bad = "sample,choice,note\ns0,first,Clear.\nnone,tie,\ns1,maybe,\n"
        answer = send(bad)
        assert "no item of the sample &#x27;none&#x27;" in answer
        assert "Nothing was marked" in answer
        assert not campaign.campaign_items.filter(gold__isnull=False).exists()
        assert "1 item is now practice" in send(bad, skip_bad="1", kind="practice")
        practice = campaign.campaign_items.get(practice=True)
        assert (practice.gold, practice.note, practice.item.sample.key) == ({"choice": "first"}, "Clear.", "s0")
        turned = "sample,responses,choice\ns2,model-two|model-one,first\n"
        assert "1 item is now hidden gold" in send(turned)
        assert campaign.campaign_items.get(item__sample__key="s2").gold == {"choice": "second"}
        assert "Say which situation" in send("sample,choice\ns3,undecided\n")

    def test_one_label_alone_settles_nothing(self, voted, now):
        source, _ = voted(["f", "s"])
        close_campaign(campaign=source, now=now)
        make_campaign(name="Round 2", benchmark=source.benchmark, protocol=source.protocol)
        with pytest.raises(CommandError, match="two labels of which most agree"):
            call_command("mark_items", "Round 2", "--from", "Round 1", stdout=io.StringIO())

    def test_verdicts_of_another_campaign_adjudicated_first(self, voted, people, now):
        source, _ = voted(["ff", "fs", "ss", "tt"])
        disputed = source.campaign_items.get(position=1)
        adjudicate(campaign_item=disputed, by=people["curator"], verdict={"choice": "second"})
        campaign = make_campaign(name="Round 2", benchmark=source.benchmark, protocol=source.protocol, seed=1)
        out = io.StringIO()
        with pytest.raises(CommandError, match="Round 1 is blind and goes on"):
            call_command("mark_items", "Round 2", "--from", "Round 1", stdout=out)
        close_campaign(campaign=source, now=now)
        make_campaign(name="Open", benchmark=source.benchmark, protocol=source.protocol, blind=False)
        with pytest.raises(CommandError, match="Open settled none of the items that nobody has here yet"):
            call_command("mark_items", "Round 2", "--from", "Open", stdout=out)
        call_command("mark_items", "Round 2", "--from", "Round 1", "--most", "3", stdout=out)
        assert "3 items of 'Round 2' are now hidden gold." in out.getvalue()
        assert "None of them comes yet" in out.getvalue()
        call_command("mark_items", "Round 2", "--from", "Round 1", "--practice", stdout=out)
        found = {place.item_id: place.gold["choice"] for place in campaign.campaign_items.all()}
        assert [found[place.item_id] for place in source.campaign_items.order_by("position")] == [
            *("first", "second", "second", "tie")
        ]
        assert campaign.campaign_items.filter(practice=True).count() == 1
        with pytest.raises(CommandError, match="another campaign"):
            call_command("mark_items", "Round 2", "--from", "Round 2", stdout=out)
