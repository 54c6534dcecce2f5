"""A curator drops a file and goes on to the report; the network fails on the way."""

import threading

import pytest
from playwright.sync_api import expect

from bank.intake.uploads import actions
from bank.intake.uploads import worker as work
from bank.models import Sample, Upload
from tests.bank.test_mapping import table
from tests.bank.test_uploads import SECRET, bundle, zipped
from tests.browser.conftest import violations

pytestmark = pytest.mark.django_db(transaction=True)

DROP = """async ([name, bytes]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name));
  document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def worker(media):
    """A worker beside the browser, as ``manage.py worker`` starts one."""
    from django.db import connection

    stop = threading.Event()

    def run():
        while not stop.wait(0.1):
            work.work_all()
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_a_dropped_zip_is_checked_looked_at_and_brought_in(
    worker, people, live_server, browser, sign_in, faults, monkeypatch
):
    import base64

    monkeypatch.setattr(actions, "CHUNK", 300)
    context = browser.new_context()
    sign_in(context, people["curator"])
    context.add_init_script("{ const wait = setTimeout; window.setTimeout = (then, ms) => wait(then, ms / 20); }")
    page = context.new_page()
    said = faults(page)
    lost = []

    def flaky(route):
        """The third piece arrives, but its answer is lost; the fifth never arrives."""
        if route.request.method == "PATCH":
            lost.append(route.request.headers["upload-offset"])
            if len(lost) == 3:
                route.fetch()
                return route.abort()
            if len(lost) == 5:
                return route.abort()
        return route.continue_()

    page.route("**/api/v1/uploads/**", flaky)
    page.goto(live_server.url + "/bank/uploads/")
    page.evaluate(DROP, ["boats.zip", base64.b64encode(zipped(bundle())).decode()])
    page.wait_for_url("**/bank/uploads/*/")
    page.get_by_role("heading", name="First samples").wait_for()
    assert len(lost) > 5
    assert "8 samples" in page.get_by_role("region", name="Parts").inner_text()
    assert "2 criteria, hidden" in page.locator(".tiles footer").first.inner_text()
    look = page.locator(".tiles img").first
    look.scroll_into_view_if_needed()  # pictures below the fold are fetched when they come near
    expect(look).to_have_js_property("naturalWidth", 32)
    assert SECRET not in page.content()
    page.get_by_label("Title").fill("Boats in pictures")
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("Imported.").wait_for()
    assert Sample.objects.count() == 8
    assert Upload.objects.get().state == "done"
    page.get_by_role("link", name="Look at the samples").click()
    page.get_by_text("Boats in pictures").first.wait_for()
    context.close()
    assert [text for text in said if "ERR_FAILED" not in text] == []


@pytest.mark.parametrize(("width", "scheme"), [pytest.param(1440, "light", marks=pytest.mark.soak), (375, "dark")])
def test_a_table_of_columns_of_ones_own_is_named_and_becomes_a_board(
    worker, people, live_server, browser, sign_in, faults, width, scheme
):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    sign_in(context, people["curator"])
    page = context.new_page()
    said = faults(page)
    page.goto(live_server.url + "/bank/uploads/")
    file = {"name": "votes.csv", "mimeType": "text/csv", "buffer": table()}
    page.locator("input[type=file]").first.set_input_files(file)
    page.wait_for_url("**/columns/")
    expect(page.get_by_text("The column names are new to us.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    expect(page.get_by_label("gleich")).to_have_count(1)
    page.get_by_label("What urteil holds").select_option("")
    expect(page.get_by_label("gleich")).to_have_count(0)
    page.get_by_label("What urteil holds").select_option("winner")
    page.get_by_label("gleich").select_option("tie")
    page.get_by_label("beide schlecht").select_option("both_bad")
    page.get_by_role("button", name="Check the rows").click()
    page.locator("#choices button[type=submit]").click()
    page.get_by_role("link", name="Open the board").click()
    expect(page.locator("table").first).to_contain_text("Wren")
    assert said == []
    context.close()
