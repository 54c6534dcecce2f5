"""People from Prolific and MTurk: what they agree to first, what they are told at the end, and how they come in."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.actions import erase
from accounts.models import User
from accounts.tokens import make_token
from annotations.assignment.leases import next_assignment
from annotations.campaigns import invitations
from annotations.campaigns.actions import change_campaign, close_campaign
from annotations.campaigns.members import remove_annotator
from annotations.models import Annotator, Campaign, Consent, Invitation, Membership
from bank.errors import BadInput
from tests.annotations.test_quality import answer
from tests.annotations.test_rounds import label_all, signed_in
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
ASKED = "Your labels are **published** without your name."
CODE, BACK = "C1A2B3", "https://app.prolific.com/submissions/complete?cc=C1A2B3"
PID = "5f1e0c8a9b7d4e3f2a1b0c9d"


class TestConsent:
    @pytest.fixture
    def asking(self, campaign_of):
        campaign, people = campaign_of(3, 2)
        change_campaign(campaign=campaign, consent=ASKED)
        return campaign, people

    def agree_on_page(self, client, campaign):
        page = client.get(f"/annotate/{campaign.pk}/prepare/")
        return client.post(f"/annotate/{campaign.pk}/begin/", {"agreed": page.context["digest"]})

    def test_nobody_meets_an_item_before_they_agree_and_the_text_is_kept_with_the_time(self, asking, now):
        campaign, (one, _) = asking
        client, work = signed_in(one), f"/annotate/{campaign.pk}/"
        assert client.get(work).url == f"{work}prepare/"
        assert client.post(f"{work}begin/").url == f"{work}prepare/"
        assert client.get(work).url == f"{work}prepare/"
        assert "<strong>published</strong>" in flat(client.get(f"{work}prepare/"))
        assert self.agree_on_page(client, campaign).url == work
        assert client.get(work).status_code == 200
        given = Consent.objects.get()
        assert (given.text, given.annotator, given.at is not None) == (ASKED, one, True)
        assert "published" not in flat(client.get(f"{work}prepare/"))

    def test_they_are_asked_again_when_the_text_changes_and_what_they_agreed_to_stays(self, asking):
        campaign, (one, _) = asking
        client, work = signed_in(one), f"/annotate/{campaign.pk}/"
        old = client.get(f"{work}prepare/").context["digest"]
        self.agree_on_page(client, campaign)
        client.get(work)
        change_campaign(campaign=campaign, consent="Something else.")
        assert client.get(work).url == f"{work}prepare/"
        client.post(f"{work}begin/", {"agreed": old})  # of a page that was open meanwhile
        assert client.get(work).url == f"{work}prepare/"
        self.agree_on_page(client, campaign)
        assert client.get(work).status_code == 200
        assert list(Consent.objects.values_list("text", flat=True)) == [ASKED, "Something else."]
        change_campaign(campaign=campaign, consent=ASKED)
        assert client.get(work).status_code == 200  # they have agreed to this one

    def test_scripts_agree_too(self, asking):
        campaign, (one, _) = asking
        client = Client(headers={"Authorization": f"Token {make_token(person=one.person)[1]}"})
        of = f"/api/v1/campaigns/{campaign.name}/"
        refused = client.post(f"{of}next/", {}, content_type="application/json")
        assert (refused.status_code, refused.json()["code"]) == (409, "consent-needed")
        asked = client.get(f"{of}consent/").json()
        assert (asked["text"], asked["asked"]) == (ASKED, True)
        assert client.post(f"{of}consent/", {"digest": "0"}, content_type="application/json").status_code == 400
        given = {"digest": asked["digest"]}
        assert client.post(f"{of}consent/", given, content_type="application/json").status_code == 204
        assert client.post(f"{of}next/", {}, content_type="application/json").status_code == 200


class TestCompletion:
    @pytest.fixture
    def coded(self, campaign_of):
        campaign, people = campaign_of(4, 2, overlap=2)
        change_campaign(campaign=campaign, share=2, completion_code=CODE, return_url=BACK)
        return campaign, people

    def end(self, campaign, annotator):
        return flat(signed_in(annotator).get(f"/annotate/{campaign.pk}/done/"))

    def test_the_code_is_told_once_their_share_is_labelled_and_no_more_items_come(self, coded, now):
        campaign, (one, other) = coded
        answer(next_assignment(campaign=campaign, annotator=one, now=now), "first", now)
        assert CODE not in self.end(campaign, one)
        label_all(campaign, one, ["first"], now)
        assert one.labels.count() == 2
        page = self.end(campaign, one)
        assert CODE in page
        assert f'href="{BACK}"' in page
        assert "All 2 done" in page
        assert next_assignment(campaign=campaign, annotator=one, now=now, prefetch=True) is None
        assert CODE not in self.end(campaign, other)
        label_all(campaign, other, ["first"], now)
        assert CODE in self.end(campaign, other)

    def test_who_was_not_through_when_it_closed_is_told_no_code(self, coded, now):
        campaign, (one, other) = coded
        label_all(campaign, one, ["first"], now)
        answer(next_assignment(campaign=campaign, annotator=other, now=now), "first", now)
        close_campaign(campaign=campaign, now=now)
        assert CODE in self.end(campaign, one)
        assert CODE not in self.end(campaign, other)

    def test_who_was_stopped_by_hidden_gold_is_told_no_code(self, coded, now):
        campaign, (one, _) = coded
        change_campaign(campaign=campaign, share=None)
        label_all(campaign, one, ["first"], now)
        Membership.objects.filter(annotator=one).update(stopped_at=now)
        assert CODE not in self.end(campaign, one)

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "http://example.org/", "somewhere"])
    def test_the_way_back_is_an_https_address(self, coded, url):
        with pytest.raises(BadInput, match="return_url"):
            change_campaign(campaign=coded[0], return_url=url)

    def test_staff_see_by_the_api_who_agreed_and_finished(self, coded, client_of, now):
        campaign, (one, _) = coded
        label_all(campaign, one, ["first"], now)
        rows = client_of("curator").get(f"/api/v1/campaigns/{campaign.name}/members/").json()
        assert [row["has_finished"] for row in rows] == [True, False]
        assert CODE not in str(client_of("researcher").get(f"/api/v1/campaigns/{campaign.name}/").json())


class TestFromOutside:
    @pytest.fixture
    def entry(self, campaign_of, people):
        """The link for two people, and the campaign."""
        campaign, _ = campaign_of(3, 0)
        (made,) = invitations.invite(
            campaign=campaign, by=people["curator"], days=3, now=timezone.now(), most=2, outside=True
        )
        return f"/invitations/{invitations.token_of(made)}/", campaign

    def come(self, link, pid=PID, parameter="PROLIFIC_PID"):
        client = Client()
        address = f"{link}?{parameter}={pid}&STUDY_ID=1&SESSION_ID=2"
        return client, client.post(address)

    def test_an_id_makes_one_account_without_a_password_that_comes_again(self, entry):
        link, campaign = entry
        assert f"Start as {PID}" in flat(Client().get(f"{link}?PROLIFIC_PID={PID}"))
        assert not Membership.objects.filter(outside_id=PID).exists()  # looking makes nothing
        client, came = self.come(link)
        assert came.url == f"/annotate/{campaign.pk}/"
        assert client.get(came.url, follow=True).status_code == 200
        person = User.objects.get(annotator__memberships__outside_id=PID)
        assert (person.role, person.has_usable_password()) == ("guest", False)
        assert PID not in person.username
        again, came = self.come(link)
        assert again.session["_auth_user_id"] == str(person.pk)
        assert self.come(link, "A1WORKER", "workerId")[1].status_code == 302
        assert self.come(link, "A2WORKER", "workerId")[1].status_code == 404  # two may come
        assert self.come(link)[1].status_code == 302  # and come again
        assert Annotator.objects.filter(memberships__campaign=campaign).count() == 2

    @pytest.mark.parametrize("pid", ["", "../x", "a b c d", "x" * 65, "%00%00%00%00"])
    def test_no_id_or_an_odd_one_lets_nobody_in(self, entry, pid):
        _, came = self.come(entry[0], pid)
        assert "lacks your id" in flat(came)
        assert not Annotator.objects.filter(memberships__campaign=entry[1]).exists()

    def test_an_id_opens_no_account_that_it_did_not_make(self, entry, people):
        link, _ = entry
        self.come(link, "curator")
        assert User.objects.filter(annotator__memberships__outside_id="curator").get() != people["curator"]
        person = User.objects.get(annotator__memberships__outside_id="curator")
        for change in ({"role": "curator"}, {"role": "annotator"}, {"is_active": False}):
            User.objects.filter(pk=person.pk).update(**change)
            client, came = self.come(link, "curator")
            assert came.status_code == 200
            assert "_auth_user_id" not in client.session
            User.objects.filter(pk=person.pk).update(role="guest", is_active=True)
        person.set_password("a-long-password")
        person.save()
        assert "_auth_user_id" not in self.come(link, "curator")[0].session

    def test_a_link_that_has_expired_lets_in_nobody_new_and_nobody_who_came_by_it(self, entry):
        link, campaign = entry
        assert self.come(link)[1].status_code == 302
        made = Invitation.objects.get()
        token = invitations.token_of(made)
        last = made.expires_at - timedelta(seconds=1)
        for outside_id in ("", PID):
            assert invitations.find(token, now=last, outside_id=outside_id) == made
            assert invitations.find(token, now=made.expires_at, outside_id=outside_id) is None
        Invitation.objects.update(expires_at=timezone.now())
        assert self.come(link)[1].status_code == 404
        assert self.come(link, "A1WORKER", "workerId")[1].status_code == 404
        assert Annotator.objects.filter(memberships__campaign=campaign).count() == 1

    def test_an_expired_link_is_not_promised_for_when_its_campaign_is_opened_again(self, entry):
        link, _ = entry
        Campaign.objects.update(state="closed")
        assert "works again if the campaign is opened again" in flat(Client().get(link))
        Invitation.objects.update(expires_at=timezone.now())
        assert "works again" not in flat(Client().get(link))

    def test_staff_alone_see_the_ids(self, entry, client_of):
        link, campaign = entry
        self.come(link)
        page = f"/campaigns/{campaign.pk}/"
        assert PID in flat(client_of("curator").get(page))
        assert PID in str(client_of("curator").get(f"/api/v1/campaigns/{campaign.name}/members/").json())
        assert PID not in flat(client_of("researcher").get(page))

    def test_who_was_removed_does_not_come_again_and_an_erased_id_is_unknown(self, entry, now, people):
        link, campaign = entry
        self.come(link)
        member = Membership.objects.get(outside_id=PID)
        remove_annotator(campaign=campaign, annotator=member.annotator, now=now)
        assert "removed" in flat(self.come(link)[1])
        erase(person=member.annotator.person, by=people["administrator"])
        assert not Membership.objects.filter(outside_id=PID).exists()

    def test_a_link_for_people_from_outside_says_how_many(self, entry, people, client_of):
        _, campaign = entry
        for given in ({"most": None}, {"most": 3, "emails": ["a@b.example"]}):
            with pytest.raises(BadInput, match="how many"):
                invitations.invite(
                    campaign=campaign,
                    by=people["curator"],
                    days=3,
                    now=timezone.now(),
                    outside=True,
                    **given,
                )
        page = f"/campaigns/{campaign.pk}/"
        made = client_of("curator").post(f"{page}invite/", {"days": 3, "most": 5, "outside": "on"}, follow=True)
        assert "Participants from outside" in flat(made)

    def test_an_ordinary_link_takes_no_id(self, entry, people):
        _, campaign = entry
        (made,) = invitations.invite(campaign=campaign, by=people["curator"], days=3, now=timezone.now())
        client, came = self.come(f"/invitations/{invitations.token_of(made)}/")
        assert came.status_code == 200
        assert "_auth_user_id" not in client.session
