"""Real pages in Debian's chromium."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Error, expect

expect.set_options(timeout=30_000)  # a busy machine is slow, not wrong
# Playwright's loop runs in the thread of the tests, which Django would refuse to let near the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
# What htmx says of a request that a newer one took the place of. One that failed says htmx:sendError, too.
REPLACED = ("htmx:afterRequest", "htmx:sendAbort")
# What depends on size and colours, of what axe checks.
LOOKS = ("color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable")

# In another machine's fonts lines break elsewhere: so letters stand closer, and further apart, than in this one's.
LETTERS_APART = {-0.04: LOOKS, 0.08: ("target-size",)}  # em
SPACED = """(em) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { letter-spacing: ${em}em !important }`);
  document.adoptedStyleSheets = [sheet];
}"""


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in Path(item.path).parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture
def sign_in(live_server):
    """Sets the session of a person in a browser context: quicker than typing, which one test does."""
    from django.test import Client

    def enter(context, user):
        client = Client()
        client.force_login(user)
        cookie = client.cookies["sessionid"]
        context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": live_server.url}])

    return enter


@pytest.fixture
def faults():
    """What a page complains about in the console; ``faults(page)`` starts to listen and gives the list."""

    def listen(page):
        found = []

        def heard(message):
            if message.type in ("error", "warning") and not message.text.startswith(REPLACED):
                found.append(message.text)

        page.on("console", heard)
        page.on("pageerror", lambda error: found.append(str(error)))
        return found

    return listen


def go_offline(page):
    """Cut the network once the page has all that it asked for: the next item and its pictures are at hand."""
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)


def violations(page, *rules):
    """What axe finds, as readable lines; with ``rules`` by these alone."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(url="/static/axe.min.js")  # compiled once; sent as a text it would be for each page
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = page.evaluate("options => axe.run(document, options)", {"resultTypes": ["violations"], **only})
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary'][:160]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def opened(page, url):
    """What was answered by an address; None for a file, which is not shown but saved."""
    try:
        return page.goto(url)
    except Error as fault:
        if "Download is starting" not in fault.message and "ERR_ABORTED" not in fault.message:
            raise
        return None


def looked_at(page, url, said, *, status=200, pages_alone=False):
    """What is wrong with a page on a light screen, and then on a dark phone, where it is not loaded again.

    ``said`` is what ``faults`` listens to; with ``pages_alone`` None for what is no whole page of this address.
    """
    said.clear()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    answer = opened(page, url)
    if pages_alone and not (answer and answer.ok and answer.url == url and answer.text().startswith("<!DOCTYPE html>")):
        return None
    wrong = [("status", answer.status)] if answer.status != status else []
    wrong += [("axe", text) for text in violations(page)] + overflow(page)
    page.set_viewport_size({"width": 375, "height": 800})
    page.emulate_media(color_scheme="dark")
    wrong += overflow(page)
    for apart, rules in LETTERS_APART.items():
        page.evaluate(SPACED, apart)
        wrong += [(f"axe, dark phone, letters {apart} em apart", text) for text in violations(page, *rules)]
    page.evaluate("document.adoptedStyleSheets = []")
    return wrong + [("console", text) for text in said if status == 200]


def overflow(page):
    root = "document.documentElement"
    over = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    return [("overflow", page.viewport_size["width"], over)] if over > 0 else []
