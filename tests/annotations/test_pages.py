"""The labelling pages as a browser without scripts sees them, and the fragments that the script asks for."""

import re

import pytest
from django.test import Client

from annotations.assignment.leases import next_assignment, release_expired
from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.labels.actions import submit_label
from annotations.models import Assignment, Campaign, Label, LabelRevision
from bank import images
from bank.models import CriteriaAccess, EvaluatedModel, Sample, SampleImage
from tests.access.world import write_criteria
from tests.bank.conftest import picture
from tests.markup import flat

pytestmark = pytest.mark.django_db

FRAGMENT = {"HTTP_HX_REQUEST": "true"}
NAMED = ["As GPT-4, I see two.", "I am LLaVA-1.5 and **I** see <b>three</b>."]


@pytest.fixture
def room(campaign_of):
    """A campaign with two annotators, each with a signed-in client."""
    campaign, members = campaign_of(4, 2, overlap=2)
    clients = []
    for member in members:
        client = Client()
        client.force_login(member.person)
        clients.append(client)
    return campaign, members, clients


def page_of(campaign):
    return f"/annotate/{campaign.pk}/"


def field(html, name):
    return re.search(rf'name="{name}" value="([^"]*)"', html)[1]


def submit_url(html):
    return re.search(r'action="(/annotate/assignments/\d+/submit/)"', html)[1]


def text_of(response):
    return flat(response)


class TestLabelling:
    def test_three_forms_label_three_items_without_a_script(self, room):
        campaign, _, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        for done in range(3):
            assert f"data-done-shown>{done}</b> of <span data-total-shown>4<" in html
            response = client.post(submit_url(html), {"choice": "left", "key": field(html, "key")}, follow=True)
            assert response.redirect_chain == [(page_of(campaign), 302)]
            html = text_of(response)
        assert Label.objects.count() == 3

    def test_a_picture_that_is_not_here_is_told_and_only_web_addresses_become_links(self, room):
        campaign, _, (client, _) = room
        address = "https://pictures.example.org/1.jpg"
        Sample.objects.update(absent_images=[{"file": "answer-is-b.jpg", "url": address}])
        html = text_of(client.get(page_of(campaign)))
        assert "The picture is not stored here" in html
        assert f'href="{address}"' in html
        Sample.objects.update(absent_images=[{"file": "answer-is-b.jpg", "url": "javascript:alert(1)"}])
        html = text_of(client.get(page_of(campaign)))
        assert "flag this item" in html
        assert "javascript:" not in html
        assert "answer-is-b" not in html

    @pytest.mark.check("G1")
    def test_a_double_click_stores_one_label(self, room):
        campaign, _, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        for _ in range(2):
            response = client.post(submit_url(html), {"choice": "tie", "key": field(html, "key")})
            assert response.status_code == 302
        assert Label.objects.count() == 1

    def test_undecided_without_a_situation_comes_back_with_what_was_typed(self, room):
        campaign, _, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        response = client.post(submit_url(html), {"choice": "undecided", "key": "k", "comment": "hard <one>"})
        assert response.status_code == 400
        assert "Say which situation" in text_of(response)
        assert "hard &lt;one&gt;</textarea>" in text_of(response)
        sent = {"choice": "undecided", "situation": "2", "key": "k", "flags": ["other", "nonsense"], "seconds": "nan"}
        assert client.post(submit_url(html), sent).status_code == 302
        label = Label.objects.get()
        assert (label.choice, label.situation, label.flags, label.seconds) == ("undecided", 2, ["other"], None)

    @pytest.mark.check("G2")
    def test_a_stale_tab_is_told_so_and_keeps_its_text(self, room):
        campaign, _, (client, _) = room
        tab_one, tab_two = text_of(client.get(page_of(campaign))), text_of(client.get(page_of(campaign)))
        client.post(submit_url(tab_one), {"choice": "left", "key": field(tab_one, "key")})
        sent = {"choice": "right", "key": field(tab_two, "key"), "comment": "from the other tab"}
        response = client.post(submit_url(tab_two), sent)
        assert response.status_code == 409
        assert "labelled this item already" in text_of(response)
        assert "from the other tab</textarea>" in text_of(response)
        assert Label.objects.count() == 1
        answer = client.post(submit_url(tab_two), sent, **FRAGMENT)
        assert (answer.status_code, answer.json()["code"]) == (409, "already-labelled")

    def test_a_slot_that_somebody_else_took_is_said_in_words(self, room, now):
        campaign, _, (client, other) = room
        Campaign.objects.update(overlap=1)
        html = text_of(client.get(page_of(campaign)))
        mine = Assignment.objects.get()
        release_expired(now=mine.lease_until.replace(year=mine.lease_until.year + 1))
        other.get(page_of(campaign))
        response = client.post(submit_url(html), {"choice": "left", "key": "k", "comment": "kept"})
        assert response.status_code == 409
        assert "another annotator" in text_of(response)
        assert "kept</textarea>" in text_of(response)

    def test_a_closed_campaign_is_said_in_words(self, room, now):
        campaign, _, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        close_campaign(campaign=campaign, now=now)
        assert client.post(submit_url(html), {"choice": "left", "key": "k"}).status_code == 409
        assert "The campaign is closed" in text_of(client.get(page_of(campaign)))

    def test_skip_gives_the_item_back_and_goes_on(self, room):
        campaign, _, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        response = client.post(submit_url(html).replace("submit", "skip"), {"key": "k"}, follow=True)
        assert submit_url(text_of(response)) != submit_url(html)
        assert Assignment.objects.filter(state="skipped").count() == 1

    def test_what_one_person_has_chosen_is_chosen_on_no_other_page(self, room):
        campaign, _, (one, other) = room
        html = text_of(one.get(page_of(campaign)))
        sent = {"choice": "undecided", "situation": "1", "flags": "harmful"}
        one.post(submit_url(html).replace("submit", "draft"), sent)
        assert text_of(one.get(page_of(campaign))).count(" checked") == 3
        assert " checked" not in text_of(other.get(page_of(campaign)))
        assert text_of(one.get(page_of(campaign))).count(" checked") == 3

    def test_a_draft_is_there_again_on_another_device(self, room, people):
        campaign, members, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        sent = {"choice": "undecided", "situation": "1", "comment": "so far", "flags": "harmful", "seconds": "41.5"}
        response = client.post(submit_url(html).replace("submit", "draft"), sent)
        assert "saved" in response.json()
        elsewhere = Client()
        elsewhere.force_login(members[0].person)
        again = text_of(elsewhere.get(page_of(campaign)))
        assert 'value="undecided" required aria-keyshortcuts="U" checked' in again
        assert 'value="1" aria-keyshortcuts="1" checked' in again
        assert "so far</textarea>" in again
        assert 'value="harmful" checked' in again
        assert 'data-seconds="41.5"' in again
        assert "Draft saved" in again

    def test_back_shows_the_last_label_and_update_keeps_the_old_one(self, room):
        campaign, _, (client, _) = room
        html = text_of(client.get(page_of(campaign)))
        client.post(submit_url(html), {"choice": "right", "key": "k", "comment": "first thought"})
        following = text_of(client.get(page_of(campaign)))
        back = re.search(r'data-back="([^"]+)"', following)[1]
        edit = text_of(client.get(back))
        assert "Update" in edit
        assert 'value="right" required aria-keyshortcuts="2" checked' in edit
        assert "first thought</textarea>" in edit
        sent = {"editing": "1", "seen": field(edit, "seen"), "choice": "tie", "comment": "second thought"}
        assert client.post(submit_url(edit), sent).status_code == 302
        assert Label.objects.get().choice == "tie"
        assert LabelRevision.objects.get().comment == "first thought"
        again = client.post(submit_url(edit), sent | {"choice": "left"})
        assert again.status_code == 409
        assert "another tab" in text_of(again)

    def test_the_fragment_is_the_page_without_its_frame(self, room):
        campaign, _, (client, _) = room
        page = text_of(client.get(page_of(campaign)))
        fragment = text_of(client.get(page_of(campaign), **FRAGMENT))
        assert fragment.startswith('<div class="work"')
        assert "<html" not in fragment
        assert submit_url(fragment) == submit_url(page)

    def test_the_item_ahead_is_another_one_and_nothing_more_is_leased(self, room):
        campaign, _, (client, _) = room
        page = text_of(client.get(page_of(campaign)))
        ahead = text_of(client.post(page_of(campaign) + "ahead/", **FRAGMENT))
        assert submit_url(ahead) != submit_url(page)
        assert submit_url(text_of(client.post(page_of(campaign) + "ahead/", **FRAGMENT))) == submit_url(ahead)
        assert Assignment.objects.count() == 2

    def test_the_end_says_what_to_do(self, room, now):
        campaign, (one, _), (client, _) = room
        while (assignment := next_assignment(campaign=campaign, annotator=one, now=now)) is not None:
            submit_label(assignment=assignment, verdict={"choice": "tie"}, now=now)
        html = text_of(client.get(page_of(campaign), follow=True))
        assert "All 4 done. Thank you, person-0." in html
        assert "Your last label" in html
        assert client.post(page_of(campaign) + "ahead/").status_code == 204


class TestMine:
    def test_the_list_shows_my_campaigns_and_no_others(self, room, pairs):
        campaign, _, (client, _) = room
        make_campaign(name="Foreign", benchmark=pairs(1, slug="other"), protocol="pair", annotators=[])
        html = text_of(client.get("/annotate/"))
        assert campaign.name in html
        assert "Foreign" not in html
        assert f'href="{page_of(campaign)}"' in html

    def test_without_a_campaign_the_page_says_whom_to_ask(self, client_of):
        assert "Ask the curator" in text_of(client_of("annotator").get("/annotate/"))

    def test_what_is_not_mine_is_absent(self, room, client_of):
        campaign, _, (client, other) = room
        client.get(page_of(campaign))
        held = Assignment.objects.get()
        stranger = client_of("annotator")
        for who in (other, stranger):
            for path in ("", "images/0/"):
                assert who.get(f"/annotate/assignments/{held.pk}/{path}").status_code == 404
            for path in ("submit/", "skip/", "draft/"):
                answer = who.post(f"/annotate/assignments/{held.pk}/{path}", {"choice": "left"})
                absent = who.post(f"/annotate/assignments/999999/{path}", {"choice": "left"})
                assert answer.status_code == absent.status_code == 404
        assert stranger.get(page_of(campaign)).status_code == 404
        for number in (999_999, 10**30):
            assert client.get(f"/annotate/{number}/").status_code == 404
        assert not Label.objects.exists()

    def test_a_draft_is_absent_for_its_own_members(self, room):
        campaign, _, (client, _) = room
        Campaign.objects.update(state="draft")
        assert client.get(page_of(campaign)).status_code == 404
        assert client.post(f"{page_of(campaign)}ahead/").status_code == 404
        assert not Assignment.objects.exists()

    def test_researchers_label_nothing(self, room, client_of):
        campaign, _, _ = room
        assert client_of("researcher").get(page_of(campaign)).status_code == 403
        assert client_of("anonymous").get(page_of(campaign)).status_code == 302


class TestBlind:
    @pytest.fixture
    def named(self, campaign_of):
        campaign, members = campaign_of(2, 1, texts=NAMED)
        EvaluatedModel.objects.filter(name="model-one").update(name="gpt-4-1106-vision-preview", organisation="OpenAI")
        EvaluatedModel.objects.filter(name="model-two").update(name="LLaVA-v1.5-13B", family="LLaVA")
        client = Client()
        client.force_login(members[0].person)
        return campaign, client

    def test_names_in_answers_are_hidden_and_html_is_text(self, named):
        campaign, client = named
        html = text_of(client.get(page_of(campaign)))
        assert html.count('<span class="mask">model name hidden</span>') == 4  # rendered and raw, two answers
        assert "&lt;b&gt;three&lt;/b&gt;" in html
        assert "<strong>I</strong>" in html

    @pytest.mark.check("G9")
    def test_nothing_tells_which_model_answered(self, named, settings, tmp_path):
        settings.MEDIA_ROOT = tmp_path
        campaign, client = named
        stored = images.ingest(picture())
        facts = {name: getattr(stored, name) for name in ("sha256", "original_sha256", "kind", "width", "height")}
        for sample in Sample.objects.all():
            SampleImage.objects.create(sample=sample, **facts)
        page = client.get(page_of(campaign))
        ahead = client.post(page_of(campaign) + "ahead/", **FRAGMENT)
        for response in (page, ahead):
            seen = (text_of(response) + str(response.headers)).lower()
            # Tokens against forgery may spell anything.
            seen = re.sub(r"\b(?=\w*[g-z])[a-z0-9]{30,}\b", "", seen)
            for clue in ("gpt", "llava", "openai", "model-one", "model-two", "preview", "response-", stored.sha256):
                assert clue not in seen
        image = re.search(r'src="(/annotate/assignments/\d+/images/0/)"', text_of(page))[1]
        answer = client.get(image)
        assert answer.headers["Content-Type"] == "image/png"
        assert "private" in answer.headers["Cache-Control"]

    def test_a_campaign_that_is_not_blind_shows_what_answers_say(self, named):
        campaign, client = named
        Campaign.objects.update(blind=False)
        html = text_of(client.get(page_of(campaign)))
        assert "As GPT-4, I see two." in html

    def test_sides_follow_the_stored_order(self, named):
        campaign, client = named
        client.get(page_of(campaign))
        held = Assignment.objects.get()
        for order, first in (("01", "I see two"), ("10", "see &lt;b&gt;three")):
            Assignment.objects.update(order=order)
            html = text_of(client.get(f"/annotate/assignments/{held.pk}/"))
            assert first in html[html.index('id="answer-1"') : html.index('id="answer-2"')]


class TestCriteria:
    @pytest.fixture
    def with_criteria(self, room):
        campaign, members, (client, _) = room
        base = {"kind": "guideline", "category": "", "weight": None}
        for sample in Sample.objects.all():
            rows = [
                base | {"key": "1", "text": "Counts the boats.", "shown_to": "campaign"},
                base | {"key": "2", "text": "The answer is seventeen.", "shown_to": "staff"},
            ]
            write_criteria(sample, rows)
        return campaign, members[0], client

    def test_criteria_stay_hidden_unless_the_campaign_shows_them(self, with_criteria):
        campaign, _, client = with_criteria
        assert "Counts the boats" not in text_of(client.get(page_of(campaign)))
        assert not CriteriaAccess.objects.exists()

    def test_a_campaign_shows_those_marked_for_campaigns_and_logs_each_look(self, with_criteria):
        campaign, annotator, client = with_criteria
        Campaign.objects.update(shows_criteria=True)
        html = text_of(client.get(page_of(campaign)))
        assert "Counts the boats" in html
        assert "seventeen" not in html
        looked = CriteriaAccess.objects.get()
        assert (looked.who, looked.how) == (annotator.person, "labelling")
