"""Every tutorial does what it says, run as it is written."""

import json
import random
import re

import pytest
from playwright.sync_api import expect

from evalsite.demo.accounts import PASSWORD
from stats import ladder
from tests.docs.pages import differs, parts

BY_COMMANDS = ("judge-against-people", "own-comparisons", "gate")
IN_SOAK = ("own-judge", "recipe", "providers", "inspect")
IN_THE_BROWSER = ("first-campaign", pytest.param("submissions", marks=pytest.mark.soak))
SAID = {  # what a step of a page may say
    "open": r"As \*\*(?P<person>\w+)\*\*, open `(?P<path>\S+)`\.",
    "start": r"Press the solid button until the first pair is there\.",
    "press": r"Press \*\*(?P<name>[^*]+)\*\*\.",
    "write": r"Write `(?P<text>[^`]+)` into \*\*(?P<field>[^*]+)\*\*\.",
    "tick_in_row": r"In the row \*\*(?P<row>[^*]+)\*\*, tick \*\*(?P<column>[^*]+)\*\*\.",
    "tick": r"Tick \*\*(?P<name>[^*]+)\*\*\.",
    "send": r"Choose the file `(?P<file>\S+)`\.",
    "see": r"You see \*\*(?P<text>[^*]+)\*\*\.",
    "label": r"For each of the (?P<count>\d+) pairs, press `1` or `2` for the (?P<which>longer|shorter) answer, then "
    r"`Enter`\.",
}


@pytest.mark.parametrize("page", [*BY_COMMANDS, *(pytest.param(page, marks=pytest.mark.soak) for page in IN_SOAK)])
def test_a_tutorial_prints_what_it_shows(page, reader):
    followed(page, reader, None)


@pytest.mark.browser
@pytest.mark.parametrize("page", IN_THE_BROWSER)
def test_a_tutorial_in_the_browser_leads_where_it_says(page, reader, browser):
    hand = Hand(browser, reader)
    followed(page, reader, hand)
    assert hand.steps
    for tab in hand.pages.values():  # else the server waits for their connections when it stops
        tab.context.close()


def test_whichever_half_an_installation_draws_the_same_answers_are_told_once_and_then_are_no_better(
    tmp_path, monkeypatch
):
    """What the page of submissions shows of its two models; the halves are drawn by each installation's own key."""
    monkeypatch.chdir(tmp_path)
    written = next(part.text for part in parts("submissions") if part.kind == "run")
    exec(re.search(r"<<'END'\n(.*?)^END$", written, re.MULTILINE | re.DOTALL)[1], {})
    rows = [json.loads(line) for line in (tmp_path / "arithmetic.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = {row["key"]: row["answer"] for row in rows}
    said = [json.loads(line) for line in (tmp_path / "my-model.jsonl").read_text(encoding="utf-8").splitlines()]
    marks = [row["text"] == f"The answer is {keys[row['sample']]}." for row in said]
    for seed in range(60):
        coin = random.Random(seed)
        hits = [mark for mark in marks if coin.random() < 0.5]
        asked = {"hits": hits, "cluster": range(len(hits))}
        first = ladder.told(base=[0.25] * len(hits), best=0.25, **asked)
        assert first, seed
        assert ladder.told(base=hits, best=first, **asked) is None, seed


def followed(page, reader, hand):
    printed, wrong = "", []
    for part in parts(page):
        if part.kind == "file":
            (reader.folder / part.name).write_text(part.text, encoding="utf-8")
        elif part.kind == "run":
            printed = reader.run(part.text)
        elif part.kind == "printed":
            if differs(printed, reader.here(part.text)):
                wrong.append(f"--- the page shows\n{part.text}\n--- but it is\n{printed}")
        else:
            hand.does(part.text)
    assert not wrong, "\n".join(wrong)


class Hand:
    """Does in a browser what the sentences of a page say."""

    def __init__(self, browser, reader):
        self.browser, self.reader, self.pages, self.page, self.steps = browser, reader, {}, None, 0

    def does(self, sentence):
        for verb, pattern in SAID.items():
            if found := re.fullmatch(pattern, sentence):
                self.steps += 1
                return getattr(self, verb)(**found.groupdict())
        raise AssertionError(f"no step can be read from: {sentence}")

    def open(self, person, path):
        if person not in self.pages:
            page = self.browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(f"{self.reader.site}/accounts/sign-in/")
            page.get_by_label("Name").fill(person)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(re.compile(r"(?<!sign-in/)$"))
            self.pages[person] = page
        self.page = self.pages[person]
        assert self.page.goto(self.reader.site + path).ok, path

    def press(self, name):
        either = self.page.get_by_role("button", name=name).or_(self.page.get_by_role("link", name=name))
        either.first.click()
        self.page.wait_for_load_state("networkidle")

    def write(self, text, field):
        self.page.get_by_label(field).first.fill(text)

    def tick(self, name):
        self.page.get_by_label(name).first.check()

    def tick_in_row(self, row, column):
        self.tick(f"{row} is {column.lower()}")  # what a screen reader says

    def send(self, file):
        self.page.locator("input[type=file]").first.set_input_files(self.reader.folder / file)

    def see(self, text):
        expect(self.page.get_by_text(text).filter(visible=True).first).to_be_visible()

    def start(self):
        while self.page.locator("#work").count() == 0:
            self.page.locator("main .btn.primary").first.click()
            self.page.wait_for_load_state("networkidle")

    def label(self, count, which):
        texts = self.page.locator("article.answer .reply:not([hidden])")
        for _ in range(int(count)):
            expect(texts).to_have_count(2)
            longer = max((0, 1), key=lambda place: len(texts.nth(place).inner_text()))
            work = self.page.locator("#work")
            item = work.get_attribute("data-assignment")
            self.page.keyboard.press(str((longer if which == "longer" else 1 - longer) + 1))
            self.page.keyboard.press("Enter")
            expect(self.page.locator(f'#work[data-assignment="{item}"]')).to_have_count(0)
