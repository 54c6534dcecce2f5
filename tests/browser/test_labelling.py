"""The labelling page in a browser: by keyboard, over a bad network, on a phone, with axe."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import Session, User
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.members import make_annotator
from annotations.models import Assignment, Label, LabelRevision, Membership
from bank import images
from bank.models import Benchmark, EvaluatedModel, Response, Sample, SampleImage
from bank.samples.items import make_items, plan_items
from tests.bank.conftest import picture
from tests.browser.conftest import go_offline, overflow, violations

pytestmark = [pytest.mark.django_db(transaction=True)]

LEFT = f"The area is $a^2$.\n\n```python\nprint('{'a line of code that is too long, ' * 8}')\n```"
RIGHT = "As GPT-4, I see <img src=x onerror=alert(1)> **two** boats.\n\n" + "A long paragraph. " * 200


@pytest.fixture
def campaign(settings, tmp_path):
    """Five pairs with two pictures each, for one annotator."""
    settings.MEDIA_ROOT = tmp_path
    benchmark = Benchmark.objects.create(slug="boats", title="Boats", visibility="public")
    models = [EvaluatedModel.objects.create(name=name) for name in ("gpt-4-vision", "LLaVA-1.5")]
    stored = [images.ingest(picture(size=(640, 480), colour=colour)) for colour in ("teal", "navy")]
    for number in range(5):
        sample = Sample.objects.create(benchmark=benchmark, key=f"s{number}", instruction=f"Boats, number {number}?")
        for position, image in enumerate(stored):
            facts = {name: getattr(image, name) for name in ("sha256", "original_sha256", "kind", "width", "height")}
            SampleImage.objects.create(sample=sample, position=position, description="Some boats", **facts)
        for model, text in zip(models, (LEFT, RIGHT), strict=True):
            Response.objects.create(sample=sample, model=model, text=text)
    make_items(plan_items(kind="pair", benchmark=benchmark))
    person = User.objects.create_user("ada", role="annotator")
    make_annotator(person)
    made = make_campaign(name="Boats, round 1", benchmark=benchmark, protocol="pairwise-criteria", annotators=[person])
    Membership.objects.update(guidelines_read=1)
    return made


@pytest.fixture
def complaints(page, faults):
    """What the page's console says that it should not, filled while the test runs."""
    return faults(page)


@pytest.fixture
def work(page, live_server, campaign, sign_in, complaints):
    """The labelling page, with the next item at hand."""
    sign_in(page.context, User.objects.get(username="ada"))
    with page.expect_response(lambda response: response.url.endswith("/ahead/")):
        page.goto(f"{live_server.url}/annotate/{campaign.pk}/")
    return page


def current(page):
    return page.locator("#work").get_attribute("data-assignment")


def decide(page, *keys):
    """Press the keys, then Enter, and wait until another item stands there."""
    before = current(page)
    for key in (*keys, "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#work")).not_to_have_attribute("data-assignment", before)


def stored(page, count):
    """Wait until the server has so many labels."""
    for _ in range(600):
        if Label.objects.count() >= count:
            break
        page.wait_for_timeout(50)
    assert Label.objects.count() == count


def test_three_items_by_keyboard_alone(work, complaints):
    Assignment.objects.update(order="10")
    decide(work, "1")
    decide(work, "t")
    decide(work, "u", "2")
    stored(work, 3)
    expect(work.locator(".prog")).to_contain_text("3 of 5")
    labels = list(Label.objects.order_by("pk").values_list("choice", "situation"))
    assert labels == [("second", None), ("tie", None), ("undecided", 2)]
    assert all(seconds is not None and seconds < 60 for seconds in Label.objects.values_list("seconds", flat=True))
    assert complaints == []


def test_the_last_item_leads_to_a_page_that_says_so(work, campaign, complaints):
    long = "Boats and what is mirrored in the water below them, round 2"
    make_campaign(name=long, benchmark=campaign.benchmark, protocol="pair", annotators=[User.objects.get()])
    for _ in range(4):
        decide(work, "0")
    work.keyboard.press("0")
    work.keyboard.press("Enter")
    expect(work.get_by_role("heading", name="All 5 done. Thank you, ada.")).to_be_visible()
    stored(work, 5)
    assert violations(work) == []
    work.set_viewport_size({"width": 375, "height": 800})
    expect(work.get_by_role("link", name="Next: Boats and what is mirrored")).to_be_visible()
    assert overflow(work) == []
    work.get_by_label("Was anything unclear or tiring?").fill("The third one.")
    work.get_by_role("button", name="Send").click()
    expect(work.get_by_role("status").filter(has_text="The curators see it")).to_be_visible()
    work.get_by_role("link", name="Your last label").click()
    expect(work.get_by_role("button", name="Update")).to_be_visible()
    assert complaints == []


def test_from_home_to_the_first_label_by_enter_alone(page, live_server, campaign, sign_in, faults):
    Membership.objects.update(guidelines_read=None)
    campaign.guidelines = "Look at the boats."
    campaign.save()
    said = faults(page)
    sign_in(page.context, User.objects.get(username="ada"))
    page.goto(live_server.url)
    expect(page.get_by_role("heading", name="Hello, ada.")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_text("Look at the boats.")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(page.locator("#work")).to_have_attribute("data-shape", "pair")
    page.goto(live_server.url)
    expect(page.get_by_text("Guidelines read")).to_be_visible()
    assert said == []


@pytest.mark.parametrize("width", [1440, 1280, 1024, 375])
def test_what_a_step_says_covers_nothing_and_moves_nothing(work, width):
    work.set_viewport_size({"width": width, "height": 800})
    height = work.locator(".verdict").bounding_box()["height"]
    work.keyboard.press("s")
    expect(work.locator(".snack")).to_contain_text("Skipped")
    assert work.locator(".verdict").bounding_box()["height"] == height
    covered = """() => {
      const box = document.querySelector(".snack").getBoundingClientRect();
      return [...document.querySelectorAll(".strip a, .pictools, .choice, .after > .btn, .after > .pop")]
        .map((each) => [each.className, each.getBoundingClientRect()])
        .filter(([, other]) => other.left < box.right && box.left < other.right)
        .filter(([, other]) => other.top < box.bottom && box.top < other.bottom)
        .map(([name]) => name);
    }"""
    assert work.evaluate(covered) == []
    assert work.locator(".verdict .snack").count() == 1


def test_a_draft_survives_a_reload(work):
    work.keyboard.press("2")
    work.keyboard.press("c")
    work.keyboard.type("1 2 u s: the keys are off while I type")
    expect(work.locator("[data-saved]")).to_be_visible()
    # Not `wait_for_function`: what it asks a second time, the page's own policy of contents forbids.
    while "draft" in work.evaluate("Object.keys(localStorage).join()"):
        work.wait_for_timeout(50)
    work.evaluate("localStorage.clear()")
    work.reload()
    expect(work.locator("[name=choice][value=right]")).to_be_checked()
    expect(work.locator("#comment")).to_have_value("1 2 u s: the keys are off while I type")
    assert not Label.objects.exists()


def test_back_edits_the_last_label_and_returns(work):
    decide(work, "1")
    open_item = current(work)
    stored(work, 1)
    work.keyboard.press("ArrowLeft")
    expect(work.get_by_role("button", name="Update")).to_be_visible()
    expect(work.locator("[name=choice][value=left]")).to_be_checked()
    work.keyboard.press("0")
    work.keyboard.press("Enter")
    expect(work.locator("#work")).to_have_attribute("data-assignment", open_item)
    assert Label.objects.get().choice == "tie"
    assert LabelRevision.objects.count() == 1


def test_undo_in_the_toast_goes_back_too(work):
    decide(work, "1")
    work.get_by_role("button", name="Undo").click()
    expect(work.get_by_role("button", name="Update")).to_be_visible()
    stored(work, 1)


def test_a_skip_that_is_undone_brings_back_the_item_its_draft_and_its_time(work):
    first = current(work)
    work.keyboard.press("2")
    work.keyboard.press("s")
    expect(work.locator("#work")).not_to_have_attribute("data-assignment", first)
    with work.expect_response("**/ahead/"):
        work.get_by_role("button", name="Undo").click()
    expect(work.locator("#work")).to_have_attribute("data-assignment", first)
    expect(work.locator(".snack")).to_contain_text("The item is yours again")
    expect(work.locator("#notice")).to_be_hidden()
    expect(work.locator("[name=choice][value=right]")).to_be_checked()
    held = Assignment.objects.filter(state="leased")
    assert held.count() == 2
    assert held.get(pk=first).lease_until > timezone.now() + timezone.timedelta(minutes=29)
    work.reload()
    expect(work.locator("#work")).to_have_attribute("data-assignment", first)
    decide(work, "1")
    stored(work, 1)


def test_ctrl_z_right_after_a_skip_takes_the_skip_back(work):
    decide(work, "1")
    stored(work, 1)
    skipped = current(work)
    work.keyboard.press("s")
    expect(work.locator("#work")).not_to_have_attribute("data-assignment", skipped)
    work.keyboard.press("Control+z")
    expect(work.locator("#work")).to_have_attribute("data-assignment", skipped)
    expect(work.locator(".snack")).to_contain_text("The item is yours again")
    work.keyboard.press("Control+z")
    expect(work.get_by_role("button", name="Update")).to_be_visible()


def test_the_time_for_an_item_is_shown_when_it_runs_short(work):
    expect(work.locator("#lease")).to_be_hidden()
    Assignment.objects.update(lease_until=timezone.now() + timezone.timedelta(minutes=4, seconds=30))
    work.reload()
    expect(work.locator("#lease")).to_contain_text("4:2")


def test_enter_goes_on_after_a_practice_item(work, campaign):
    practice = campaign.campaign_items.order_by("position").first()
    campaign.campaign_items.filter(pk=practice.pk).update(practice=True, gold={"choice": "first"})
    campaign.practice_pass = 0.0
    campaign.save()
    Assignment.objects.all().delete()
    work.reload()
    expect(work.locator(".bar .chip", has_text="practice")).to_be_visible()
    work.keyboard.press("1")
    work.keyboard.press("Enter")
    expect(work.get_by_role("button", name="Go on")).to_contain_text("Enter")
    work.wait_for_timeout(450)  # a second stroke is meant for the item that has just gone
    work.keyboard.press("Enter")
    expect(work.locator("#ballot")).to_be_visible()


def test_unable_to_decide_asks_for_the_situation(work):
    work.keyboard.press("u")
    expect(work.locator(".situations")).to_be_visible()
    expect(work.locator(".choices")).to_be_hidden()
    work.keyboard.press("Enter")
    work.wait_for_timeout(450)  # within 0.4 s of a new item a second stroke is not taken for a wish
    work.keyboard.press("Enter")
    expect(work.locator("#notice")).to_contain_text("Say which situation")
    work.keyboard.press("Escape")
    expect(work.locator(".choices")).to_be_visible()
    assert work.locator("[name=choice]:checked").count() == 0
    decide(work, "u", "1")
    stored(work, 1)
    assert Label.objects.get().situation == 1


class TestNetwork:
    def test_a_slow_server_is_not_called_a_lost_network(self, work):
        slow = []
        work.route("**/ahead/", lambda route: route.abort())
        work.route("**/submit/", lambda route: slow.append(route))
        work.reload()
        before = current(work)
        work.keyboard.press("1")
        work.keyboard.press("Enter")
        expect(work.locator("#notice")).to_contain_text("Still sending")
        slow.pop().continue_()
        expect(work.locator("#work")).not_to_have_attribute("data-assignment", before)
        expect(work.locator("#notice")).to_be_hidden()
        stored(work, 1)

    def test_a_skip_pressed_while_a_label_is_sent_is_answered_and_skips_nothing_unseen(self, work):
        slow = []
        work.route("**/ahead/", lambda route: route.abort())
        work.route("**/submit/", lambda route: slow.append(route))
        work.reload()
        before = current(work)
        work.keyboard.press("1")
        work.keyboard.press("Enter")
        work.wait_for_timeout(450)  # within 0.4 s a stroke is a second one of the same wish
        work.keyboard.press("s")
        expect(work.locator("#notice")).to_contain_text("Still sending", timeout=900)
        slow.pop().abort()
        expect(work.locator("#notice")).to_contain_text("No network")
        work.unroute("**/submit/")
        expect(work.locator("#work")).not_to_have_attribute("data-assignment", before)
        stored(work, 1)
        assert not Assignment.objects.filter(state="skipped").exists()

    def test_an_item_whose_picture_does_not_come_is_labelled_only_when_it_is_here(self, work):
        work.route("**/images/**", lambda route: route.fulfill(status=503))
        work.reload()
        before = current(work)
        expect(work.locator("#work img").first).to_have_js_property("complete", True)
        work.keyboard.press("1")
        work.wait_for_timeout(450)  # within 0.4 s of a new item a stroke is not answered
        work.keyboard.press("Enter")
        expect(work.locator("#notice")).to_contain_text("A picture has not come")
        assert not Label.objects.exists()
        work.unroute("**/images/**")
        work.keyboard.press("Enter")  # asks for it again
        for shown in work.locator("#work img").all():
            expect(shown).not_to_have_js_property("naturalWidth", 0)
        work.keyboard.press("Enter")
        expect(work.locator("#work")).not_to_have_attribute("data-assignment", before)
        stored(work, 1)

    def test_labels_wait_for_the_network_and_are_sent_once(self, work, context):
        go_offline(work)
        decide(work, "1")
        expect(work.locator("#unsent")).to_be_visible()
        expect(work.locator("#unsent")).to_contain_text("Offline, 1 saved here")
        assert not work.locator("#toasts").inner_text()
        work.keyboard.press("0")
        work.keyboard.press("Enter")
        expect(work.locator("#notice")).to_contain_text("Your label is kept here")
        assert not Label.objects.exists()
        context.set_offline(False)
        stored(work, 2)
        expect(work.locator(".prog")).to_contain_text("2 of 5")
        expect(work.locator("#unsent")).to_be_hidden()
        work.reload()
        work.wait_for_timeout(300)
        stored(work, 2)

    @pytest.mark.check("G4")
    def test_after_five_minutes_without_a_network_a_reload_sends_what_was_kept(self, work, context, live_server):
        work.clock.install()
        with work.expect_response(lambda response: response.url.endswith("/ahead/")):
            work.reload()
        go_offline(work)
        decide(work, "2")
        work.clock.fast_forward("05:00")
        expect(work.locator("#unsent")).to_be_visible()
        expect(work.locator("#unsent")).to_contain_text("1 saved here")
        assert not Label.objects.exists()
        other = context.new_page()
        context.set_offline(False)
        work.close()
        other.goto(f"{live_server.url}/annotate/{Assignment.objects.first().campaign_item.campaign_id}/")
        stored(other, 1)

    def test_a_lost_reply_stores_one_label(self, work):
        lost = []

        def lose_the_first(route):
            if lost:
                route.continue_()
            else:
                lost.append(route.fetch().status)
                route.abort()

        work.route("**/submit/", lose_the_first)
        decide(work, "1")
        expect(work.locator("#unsent")).to_be_visible()
        expect(work.locator("#unsent")).to_be_hidden(timeout=10_000)
        assert lost == [200]
        stored(work, 1)

    def test_signed_out_the_label_waits_for_the_sign_in(self, work, sign_in):
        Session.objects.all().delete()
        decide(work, "1")
        expect(work.locator("#unsent")).to_be_visible()
        expect(work.locator("#unsent")).to_contain_text("Signed out, 1 saved here")
        assert not work.locator("#toasts").inner_text()  # nothing says "Submitted"
        assert not Label.objects.exists()
        sign_in(work.context, User.objects.get(username="ada"))
        work.evaluate("dispatchEvent(new Event('online'))")
        stored(work, 1)

    @pytest.mark.check("G2")
    def test_a_stale_tab_is_told_and_keeps_its_text(self, work, context):
        other = context.new_page()
        other.goto(work.url)
        other.keyboard.press("c")
        other.keyboard.type("typed in the other tab")
        expect(other.locator("[data-saved]")).to_be_visible()
        decide(work, "1")
        stored(work, 1)
        other.keyboard.press("Escape")
        other.keyboard.press("2")
        other.keyboard.press("Enter")
        expect(other.locator("body")).to_contain_text("labelled this item already")
        assert Label.objects.count() == 1
        kept = other.evaluate("Object.entries(localStorage).filter(([name]) => name.includes('draft')).join()")
        assert "typed in the other tab" in kept + (other.locator("#comment").input_value() or "")


@pytest.mark.check("G3")
def test_a_lease_that_ends_is_said_in_words(work):
    Assignment.objects.update(lease_until=timezone.now() + timezone.timedelta(seconds=2))
    work.reload()
    expect(work.locator("#notice")).to_contain_text("The time for this item is over")
    work.keyboard.press("1")
    work.keyboard.press("Enter")
    stored(work, 1)


class TestShown:
    def test_markdown_latex_and_hidden_names(self, work, complaints):
        expect(work.locator(".katex").first).to_be_visible()
        assert work.locator(".mask").count() >= 1
        assert work.locator(".reply img").count() == 0
        assert "gpt" not in re.sub(r"\w{60,}", "", work.content()).lower()  # but in random tokens
        assert complaints == []

    def test_raw_text_and_scrolling(self, work):
        work.get_by_role("button", name="Raw text of answer 1").click()
        expect(work.locator("#answer-1 [data-rawtext]")).to_be_visible()
        expect(work.locator("#answer-1 .reply").first).to_be_hidden()
        work.get_by_role("button", name="Apart").click()
        expect(work.get_by_role("button", name="Apart")).to_have_attribute("aria-pressed", "true")

    def test_the_picture_zooms_steps_and_fills_the_screen(self, work):
        image = work.locator(".pic a.open img")
        work.keyboard.press("z")
        expect(work.locator(".pic").first).to_have_class(re.compile("zoomed"))
        work.keyboard.press("z")
        first = image.get_attribute("src")
        work.keyboard.press(".")
        expect(image).not_to_have_attribute("src", first)
        work.get_by_role("button", name="Full screen").click()
        expect(work.locator("#lightbox")).to_be_visible()
        work.keyboard.press("Escape")
        expect(work.locator("#lightbox")).to_be_hidden()

    def test_flags_and_guidelines_and_help(self, work):
        work.keyboard.press("f")
        work.get_by_label("An answer is cut off or garbled").check()
        work.keyboard.press("Escape")
        work.keyboard.press("g")
        expect(work.get_by_role("dialog", name="Guidelines")).to_be_visible()
        work.keyboard.press("g")
        expect(work.get_by_role("dialog", name="Guidelines")).to_be_hidden()
        work.keyboard.press("?")
        expect(work.get_by_role("dialog", name="Help")).to_be_visible()
        work.keyboard.press("Escape")
        expect(work.get_by_role("dialog", name="Help")).to_be_hidden()
        decide(work, "1")
        stored(work, 1)
        assert Label.objects.get().flags == ["answer"]

    def test_keys_can_be_changed_and_clashes_are_refused(self, work):
        before = current(work)
        work.keyboard.press("h")
        work.locator("[data-rebind=skip]").click()
        work.keyboard.press("1")
        expect(work.locator("#rebinding")).to_contain_text("1 already means First is better")
        work.locator("[data-rebind=skip]").click()
        with work.expect_response("**/accounts/settings/"):
            work.keyboard.press("x")
        expect(work.locator("#rebinding")).to_contain_text("X now means Skip")
        work.keyboard.press("Escape")
        work.reload()
        expect(work.locator("[data-cap=skip]").first).to_have_text("X")
        work.keyboard.press("s")
        expect(work.locator("#work")).to_have_attribute("data-assignment", before)
        work.keyboard.press("x")
        expect(work.locator("#work")).not_to_have_attribute("data-assignment", before)

    def test_the_choice_submits_by_itself_where_that_is_wished(self, work):
        before = current(work)
        work.keyboard.press("h")
        work.get_by_label("Submit right after choosing").check()
        work.keyboard.press("Escape")
        work.keyboard.press("2")
        expect(work.locator("#work")).not_to_have_attribute("data-assignment", before)
        stored(work, 1)


@pytest.mark.parametrize(("scheme", "width", "height"), [("light", 1440, 900), ("dark", 375, 800)])
def test_axe_finds_nothing(work, complaints, scheme, width, height):
    work.set_viewport_size({"width": width, "height": height})
    work.emulate_media(color_scheme=scheme)
    work.wait_for_timeout(200)
    assert violations(work) == []
    work.keyboard.press("u")
    assert violations(work) == []
    work.keyboard.press("c")
    assert violations(work) == []
    work.keyboard.press("Escape")
    work.keyboard.press("h")
    assert violations(work) == []
    assert complaints == []


def test_nothing_overflows(work):
    for width in (375, 768, 1024, 1280, 1440, 1920):
        work.set_viewport_size({"width": width, "height": 800})
        assert work.evaluate("document.documentElement.scrollWidth") <= width
        if width >= 900:
            assert work.evaluate("document.documentElement.scrollHeight") <= 800


def test_on_a_phone_the_verdict_is_at_hand(work):
    work.set_viewport_size({"width": 375, "height": 800})
    question = work.locator(".question").bounding_box()
    assert question["y"] + question["height"] <= work.locator(".verdict").bounding_box()["y"]
    for button in work.locator(".choice:visible, .after .btn:visible").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= 800
    work.locator(".choice", has_text="Second").click()
    work.get_by_role("button", name="Submit and next").click()
    stored(work, 1)


@pytest.mark.parametrize("path", ["/annotate/", "/annotate/{pk}/"])
def test_without_scripts_the_page_is_a_form(browser, live_server, campaign, sign_in, path):
    context = browser.new_context(java_script_enabled=False)
    sign_in(context, User.objects.get(username="ada"))
    page = context.new_page()
    page.goto(live_server.url + path.format(pk=campaign.pk))
    if path == "/annotate/":
        page.get_by_role("link", name="Start").click()
    page.locator(".choice", has_text="Unable").click()
    expect(page.locator(".situations")).to_be_visible()
    page.locator(".choice", has_text="Closed-ended").click()
    page.get_by_role("button", name="Submit and next").click()
    expect(page.locator(".prog")).to_contain_text("1 of 5")
    assert Label.objects.get().situation == 1
    context.close()
