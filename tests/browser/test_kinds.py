"""Every kind of label in a browser: by keyboard alone, by finger, with the network gone, in Chinese."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from annotations.campaigns.actions import close_campaign
from annotations.campaigns.invitations import invite, token_of
from annotations.models import Assignment, Campaign, Label, Membership
from tests.annotations.kinds import WEIGHTS, benchmark_of, campaign_of, judged, judged_by_two
from tests.browser.conftest import go_offline, looked_at

pytestmark = [pytest.mark.django_db(transaction=True)]
LONG = [f"Answer number {n}. " + "Two boats lie at the quay. " * 60 for n in range(4)]
RTL = "هناك قاربان عند الرصيف."
CJK = "码头边停着两艘船。" * 3


@pytest.fixture
def kinds(db):
    """A campaign of every kind on one benchmark, two items each; a dictionary of them."""
    benchmark = benchmark_of(answers=[LONG[0], RTL, CJK, LONG[3]])
    judged(benchmark, order="10")
    judged(benchmark, order="01")
    judged_by_two(benchmark)
    settings = {"batch": {"ties": True}, "score": {"confidence": True}}
    names = ("pair", "pair-graded", "score", "batch", "components", "choice-extraction", "yes-no", "label", "review")
    names += ("compare-analyses",)
    return {name: campaign_of(name, benchmark=benchmark, ballot=settings.get(name))[0] for name in names}


@pytest.fixture
def open_(page, live_server, kinds, sign_in):
    """``open_(kind)`` shows its labelling page, with the next item at hand."""
    sign_in(page.context, User.objects.get(username="ada"))

    def show(kind):
        with page.expect_response(lambda response: response.url.endswith("/ahead/")):
            page.goto(f"{live_server.url}/annotate/{kinds[kind].pk}/")
        return page

    return show


@pytest.fixture
def phone(browser, kinds, sign_in):
    """A page on a phone, of somebody who is signed in."""
    context = browser.new_context(
        has_touch=True, is_mobile=True, reduced_motion="reduce", viewport={"width": 375, "height": 800}
    )
    sign_in(context, User.objects.get(username="ada"))
    yield context.new_page()
    context.close()


def label_of(page, kind):
    """The label of this kind, once the server has it."""
    for _ in range(200):
        if found := Label.objects.filter(campaign__protocol=kind).first():
            return found
        page.wait_for_timeout(50)
    raise AssertionError(f"no label of {kind}")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def submit(page):
    """Enter, and wait for another item."""
    before = page.locator("#work").get_attribute("data-assignment")
    page.keyboard.press("Enter")
    expect(page.locator("#work")).not_to_have_attribute("data-assignment", before)


def test_every_kind_by_keyboard_alone(page, open_, faults):
    said = faults(page)
    open_("score")
    press(page, "4")
    submit(page)
    assert label_of(page, "score").score == 4

    open_("choice-extraction")
    press(page, "2")
    submit(page)
    assert label_of(page, "choice-extraction").option == "B"

    open_("yes-no")
    press(page, "n")
    submit(page)
    assert label_of(page, "yes-no").answer is False

    open_("label")
    press(page, "2")
    submit(page)
    assert label_of(page, "label").option == "river"

    open_("components")
    for points in ("4", "2.5", "0"):
        page.keyboard.type(points)
        if points != "0":
            press(page, "Enter")
    expect(page.locator("[data-total-points]")).to_have_text("6.5")
    submit(page)
    label = label_of(page, "components")
    assert label.parts == dict(zip(WEIGHTS, (4, 2.5, 0), strict=True))

    open_("batch")
    held = Assignment.objects.get(pk=page.locator("#work").get_attribute("data-assignment"))
    order = [int(place) for place in held.order]
    press(page, "ArrowDown", " ", "ArrowDown", "ArrowDown", "Escape")  # put back
    press(page, " ", "ArrowDown", " ")  # A below B
    press(page, "ArrowDown", "ArrowDown", "1")  # D on top
    expect(page.locator("[data-order]")).to_have_text("DBAC")
    press(page, "ArrowDown", "=")  # B ties with D
    submit(page)
    assert label_of(page, "batch").ranking == [sorted([order[3], order[1]]), [order[0]], [order[2]]]

    open_("review")
    press(page, "1", "3")
    box = page.locator("[data-analysis]")
    box.focus()
    text = box.inner_text()
    press(page, "Control+Home", "Shift+End", "m")
    expect(page.locator("[data-marks] li")).to_have_count(1)
    assert box.inner_text() == text
    page.keyboard.type("nothing of this is written")
    assert box.inner_text() == text
    press(page, "Control+Enter")
    label = label_of(page, "review")
    assert (label.agree, label.grade, label.hallucination) == (True, 3, True)
    assert label.spans[0][0] == 0

    open_("compare-analyses")
    held = Assignment.objects.get(pk=page.locator("#work").get_attribute("data-assignment"))
    press(page, "2")
    expect(page.locator("#comment")).to_be_focused()
    page.wait_for_timeout(500)  # Enter sooner than that is meant for the item that has gone
    press(page, "Control+Enter")
    expect(page.locator("#notice")).to_contain_text("Say why, in a sentence or two.")
    page.keyboard.type("It is the fuller one, 0 faults.")
    press(page, "Control+Enter")
    label = label_of(page, "compare-analyses")
    assert (label.choice, label.comment) == (("second", "first")[held.order == "10"], "It is the fuller one, 0 faults.")
    assert said == []


def test_a_digit_puts_a_lifted_card_down_and_a_key_shows_all_of_it(open_, page):
    open_("batch")
    more, less = (page.get_by_role("button", name=words) for words in ("Show all of it", "Fold it"))
    expect(more).to_have_count(2)  # the two long answers
    press(page, "a")
    expect(less).to_have_count(2)
    less.first.evaluate("button => button.closest('.rk').focus()")
    press(page, "a")
    expect(less).to_have_count(1)
    page.locator(".rk").first.focus()
    press(page, " ", "3")
    expect(page.locator("[data-order]")).to_have_text("BCAD")
    expect(page.locator(".rk.lift")).to_have_count(0)
    submit(page)
    label_of(page, "batch")


TAPPED = {
    "pair": (["Second"], {"choice"}),
    "pair-graded": (["About the same"], {"choice", "preference"}),
    "score": (["4 Good"], {"score"}),
    "choice-extraction": (["B two boats"], {"option"}),
    "yes-no": (["No"], {"answer"}),
    "label": (["harbour"], {"option"}),
    "components": (["About length.", "About mention.", "About genre."], {"parts", "score"}),
    "review": (["Yes", "3 Average", "No"], {"agree", "grade", "hallucination"}),
    "compare-analyses": (["Second"], {"choice"}),
}


def test_every_other_kind_is_labelled_by_finger(phone, live_server, kinds):
    for kind, (taps, columns) in TAPPED.items():
        phone.goto(f"{live_server.url}/annotate/{kinds[kind].pk}/")
        for number, words in enumerate(taps):
            if kind == "components":
                phone.get_by_label(words).tap()
                phone.keyboard.type("1")
            else:
                group = phone.locator("#ballot fieldset.choices").nth(number if kind == "review" else 0)
                group.locator("label", has_text=words).first.tap()
        if kind == "compare-analyses":
            phone.get_by_label("Why?").fill("The fuller one.")
        phone.get_by_role("button", name="Submit and next").tap()
        assert set(label_of(phone, kind).verdict()) == columns
    assert phone.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_ranking_is_dragged_by_finger_and_the_same_order_is_asked_twice(phone, live_server, kinds):
    page = phone
    page.goto(f"{live_server.url}/annotate/{kinds['batch'].pk}/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name="Submit and next").tap()
    expect(page.locator("#notice")).to_contain_text("You have not changed the order")
    page.evaluate("scrollTo({top: document.querySelector('.ranklist').offsetTop - 80, behavior: 'instant'})")
    first, second = (page.locator(".rk").nth(n).bounding_box() for n in (0, 1))
    grip = page.locator(".rk .grip").first.bounding_box()
    x, y = grip["x"] + grip["width"] / 2, first["y"] + 30
    touch = page.context.new_cdp_session(page)
    steps = [y + (second["y"] + second["height"] - 10 - y) * n / 8 for n in range(9)]
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for at in steps:
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": at}]})
    page.wait_for_timeout(150)  # a finger that rests before it lifts: else Chromium takes the next tap for a stop
    touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": steps[-1] + 1}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator("[data-order]")).to_have_text("BACD")
    up = page.locator(".rk").nth(3).get_by_role("button", name="Move up")
    up.evaluate("button => button.scrollIntoView({block: 'center', behavior: 'instant'})")
    up.tap()
    expect(page.locator("[data-order]")).to_have_text("BADC")
    before = page.locator("#work").get_attribute("data-assignment")
    page.get_by_role("button", name="Submit and next").tap()
    expect(page.locator("#work")).not_to_have_attribute("data-assignment", before)
    held = Assignment.objects.get(pk=before)
    order = [int(place) for place in held.order]
    assert label_of(page, "batch").ranking == [[order[1]], [order[0]], [order[3]], [order[2]]]


def test_drafts_of_any_kind_survive_a_reload_and_labels_a_lost_network(page, open_):
    open_("batch")
    press(page, "3")  # of the card on top
    expect(page.locator("[data-saved]")).to_be_visible()
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.locator("[data-order]")).to_have_text("BCAD")
    with page.expect_response(lambda response: response.url.endswith("/ahead/")):
        page.reload()
    go_offline(page)
    submit(page)
    expect(page.locator("#unsent")).to_contain_text("1 saved here")
    assert not Label.objects.exists()
    # What a browser kept for hours is sent by the next page that opens, once.
    page.context.set_offline(False)
    page.reload()
    assert label_of(page, "batch").ranking is not None
    expect(page.locator("#unsent")).to_be_hidden()
    assert Label.objects.count() == 1


@pytest.mark.soak  # an annotator's whole way in Chinese, and every kind with larger text, are below
def test_in_chinese_with_large_text_every_kind_looks_right(page, open_, live_server, kinds, faults):
    person = User.objects.get(username="ada")
    said = faults(page)
    wrong = []
    for kind in kinds:
        languages = {"language": "zh-hans", "text": "large"} if kind in ("score", "review") else {}
        User.objects.filter(pk=person.pk).update(preferences=languages)
        wrong += [(kind, fault) for fault in looked_at(page, f"{live_server.url}/annotate/{kinds[kind].pk}/", said)]
        if languages:
            expect(page.get_by_role("button", name="提交并继续")).to_be_visible()
            expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    assert wrong == []
    page.wait_for_timeout(450)  # a stroke within 0.4 s is meant for the item before
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_be_visible()


WIDTHS = (1024, 1280, 1366, 1440, 1536, 1680, 1920)
CHOSEN = {"components": ("1", "Tab", "1", "Tab", "1"), "review": ("1", "3", "2")}  # keys of a verdict; else "2"
# What sticks out: the page, a part of the bar, a button, or words of a button, which are not cut off either.
STICKING_OUT = """(width) => {
  const visible = (each) => each.getClientRects().length && getComputedStyle(each).clipPath === "none";
  const box = (each) => each.getBoundingClientRect();
  const said = (each) => `${each.className || each.tagName} ${each.innerText.replace(/\\s+/g, " ")}`;
  const wrong = [];
  if (document.documentElement.scrollWidth > width) wrong.push("page");
  for (const each of document.querySelectorAll(".work .bar > *, .work .btn, .choice, .work .qline > *"))
    if (visible(each) && (box(each).right > width + 0.5 || box(each).left < -0.5)) wrong.push(said(each));
  for (const each of document.querySelectorAll(".work .bar .prog .num, .work .bar .btn"))
    if (visible(each) && box(each).height > 36) wrong.push(`two lines: ${said(each)}`);
  for (const button of document.querySelectorAll(".choice, .work .btn"))
    for (const words of button.querySelectorAll("span, b, kbd"))
      if (visible(words))
        if (box(words).right > box(button).right + 0.5 || box(words).left < box(button).left - 0.5
            || box(words).bottom > box(button).bottom + 0.5 || words.scrollWidth > words.clientWidth + 1)
          wrong.push(`words: ${said(button)}`);
  return [...new Set(wrong)];
}"""


@pytest.mark.parametrize("text", ["", "larger"])
def test_no_kind_is_wider_than_its_window(page, live_server, kinds, sign_in, text):
    """With all that the bar may say: a long name, a pace, a draft saved, the time that is left."""
    sign_in(page.context, User.objects.get(username="ada"))
    User.objects.filter(username="ada").update(preferences={"text": text})
    wrong = []
    four = campaign_of("pairwise-criteria", benchmark=kinds["pair"].benchmark)[0]
    for kind, campaign in (kinds | {"pairwise-criteria": four}).items():
        named = type(campaign).objects.filter(pk=campaign.pk)
        named.update(name=f"{kind}, boats and what is mirrored in the water, round 2")
        page.goto(f"{live_server.url}/annotate/{campaign.pk}/")
        press(page, *CHOSEN.get(kind, "2"))
        page.evaluate("""() => {
          document.querySelector(".pace").textContent = "118 s per item, about 2 h 56 min to go";
          document.querySelector("[data-saved]").hidden = false;
          document.getElementById("lease").hidden = false;
        }""")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            wrong += [(kind, width, fault) for fault in page.evaluate(STICKING_OUT, width)]
    assert wrong == []


# Words of three Latin letters or more that a page shows or tells, but for material, names and keys.
LATIN = """() => {
  const material =
    "script, style, kbd, [lang]:not(html), .asked, .opts, .crit, .reply, .analysis, .options .choice, .points label";
  const said = [];
  const texts = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    if (!texts.currentNode.parentElement.closest(material)) said.push(texts.currentNode.data);
  for (const name of ["aria-label", "title", "placeholder", "data-missing"])
    for (const each of document.querySelectorAll(`[${name}]`))
      if (!each.closest(material)) said.push(each.getAttribute(name));
  return said.flatMap((text) => text.match(/(?<![\\w-])[A-Za-z]{3,}(?![\\w-])/g) || []);
}"""
NAMES = {
    "evalsite",
    "API",
    "Esc",
    "Shift",
    "English",
    "kinds",
    "Kinds",
    "ada",
    "annotator",
    "harbour",
    "river",
    "flows",
    "UTC",
}


def test_an_annotators_whole_way_is_chinese_where_the_browser_is(browser, live_server, kinds):
    ada = User.objects.get(username="ada")
    ada.set_password("a long pass phrase")
    ada.save()
    campaigns = Campaign.objects.in_bulk([campaign.pk for campaign in kinds.values()])
    ended, begun = kinds["pair"].pk, kinds["pair-graded"].pk
    Membership.objects.filter(campaign=begun).update(guidelines_read=None)
    curator = User.objects.create_user("cleo", role="curator")
    (invitation,) = invite(campaign=campaigns[begun], by=curator, days=3, now=timezone.now())
    context = browser.new_context(locale="zh-CN", reduced_motion="reduce")
    page, found = context.new_page(), {}
    names = NAMES | {word for name in kinds for word in re.findall(r"[A-Za-z]{3,}", name)}

    def look(path=""):
        if path:
            page.goto(f"{live_server.url}{path}")
        expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
        if english := set(page.evaluate(LATIN)) - names:
            found[page.url.removeprefix(live_server.url)] = sorted(english)

    look(f"/invitations/{token_of(invitation)}/")
    look("/accounts/sign-in/")
    page.get_by_label("用户名").fill("ada")
    page.get_by_label("密码").fill("a long pass phrase")
    press(page, "Enter")
    page.wait_for_url("**/annotate/")
    look()
    for campaign in kinds.values():
        look(f"/annotate/{campaign.pk}/")
    look(f"/annotate/{begun}/prepare/")
    press(page, "Enter")
    expect(page.locator("#work")).to_be_visible()
    look()
    look(f"/annotate/{ended}/")
    press(page, "2")
    submit(page)
    label_of(page, "pair")
    close_campaign(campaign=campaigns[ended], now=timezone.now())
    page.goto(live_server.url)
    expect(page.locator("main [hx-get]")).to_have_count(0)  # the boards that the labels feed are there
    for path in ("", "/annotate/", f"/annotate/{ended}/done/"):
        look(path)
    for name in ("settings", "password", "tokens", "notices"):
        look(f"/accounts/{name}/")
    expect(page.locator(".notices time")).to_have_text(re.compile("现在|分钟前"))
    expect(page.locator(".notices time")).to_have_attribute("title", re.compile("年"))
    context.close()
    assert found == {}


def test_a_line_of_analysis_is_marked_as_a_whole_by_one_key(page, open_):
    open_("review")
    press(page, "1", "3", "1")
    expect(page.get_by_role("button", name="Mark all of it")).to_be_enabled()
    press(page, "m")
    expect(page.locator("[data-marks] li")).to_have_count(1)
    submit(page)
    label = label_of(page, "review")
    assert label.spans == [[0, label.assignment.displayed_length]]


def test_points_that_a_part_cannot_have_are_told_at_once(page, open_):
    open_("components")
    page.keyboard.type("9")
    expect(page.locator("[data-points-wrong]")).to_have_text("Part 1: a number from 0 to 4.")
    expect(page.locator("[data-total-points]")).to_have_class(re.compile("bad"))
    press(page, "Backspace", "3")
    expect(page.locator("[data-points-wrong]")).to_have_text("")
    expect(page.locator("[data-total-points]")).not_to_have_class(re.compile("bad"))


def test_two_pictures_move_together_and_turn(page, live_server, kinds, sign_in, settings, tmp_path):
    from bank import images
    from bank.models import SampleImage
    from tests.bank.conftest import picture

    settings.MEDIA_ROOT = tmp_path
    for place, colour in enumerate(("teal", "navy")):
        image = images.ingest(picture(size=(320, 240), colour=colour))
        facts = {name: getattr(image, name) for name in ("sha256", "original_sha256", "kind", "width", "height")}
        for sample in kinds["pair"].benchmark.samples.all():
            SampleImage.objects.create(sample=sample, position=place, **facts)
    sign_in(page.context, User.objects.get(username="ada"))
    page.goto(f"{live_server.url}/annotate/{kinds['pair'].pk}/")
    press(page, "b", "z")
    pictures = page.locator(".given .pic > a.open img")
    expect(pictures).to_have_count(2)
    shifts = [pictures.nth(n).evaluate("image => image.style.transform") for n in (0, 1)]
    assert "scale" in shifts[0]
    assert shifts[0] == shifts[1]
    press(page, "z", "r")
    assert "rotate(90deg)" in pictures.first.evaluate("image => image.style.transform")
    press(page, "b")
    expect(pictures).to_have_count(1)
