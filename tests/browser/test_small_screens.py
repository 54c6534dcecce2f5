"""Boards on a phone: letters are as large there as elsewhere, and a row of filters reads from its first to its last."""

import pytest

from bank.models import EvaluatedModel
from judging.models import Judge
from tests.leaderboard.conftest import brought, folder, grove, manage, voted

__all__ = ["brought", "folder", "grove", "manage", "voted"]

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"width": 375, "height": 800}
LEAST = 12  # pixels
# Letters of a drawing are as large as its scale makes them.
SMALL = """(least) => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest(".sr, title, script, option")) continue;
    const matrix = element instanceof SVGElement ? element.getScreenCTM() : { a: 1, b: 0, c: 0, d: 1 };
    const scale = Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c));
    const size = parseFloat(getComputedStyle(element).fontSize) * scale;
    if (size < least - 0.05) found.push(`${node.data.trim()}: ${size.toFixed(1)} px in ${element.tagName}`);
  }
  return found;
}"""


def test_no_letter_of_a_board_is_smaller_than_twelve_pixels_on_a_phone(voted, live_server, page):
    base = "/leaderboards/grove"
    boards = ("", "models/", "judges/", "agreement/", "bias/", "correlation/", "models/matrix/?source=keen")
    paths = ["/", "/leaderboards/", *(f"{base}/{board}" for board in boards)]
    paths += [f"/models/{EvaluatedModel.objects.first().pk}/", f"/judges/{Judge.objects.get(name='keen').pk}/"]
    page.set_viewport_size(PHONE)
    wrong = {}
    for path in paths:
        assert page.goto(live_server.url + path).status == 200, path
        page.wait_for_load_state("networkidle")
        wrong[path] = page.evaluate(SMALL, LEAST)
    assert not any(wrong.values()), "\n".join(f"{path}: {found[:5]}" for path, found in wrong.items() if found)


def test_the_other_filters_stand_after_those_in_sight_on_a_phone_as_elsewhere(voted, live_server, page):
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    more = page.locator(".morefilters > summary")
    for width in (1440, 375):
        page.set_viewport_size({"width": width, "height": 800})
        starts = [box.bounding_box()["x"] for box in page.locator(".filters > .sel").all()]
        assert more.bounding_box()["x"] > max(starts), width
    more.click()
    assert page.locator(".morefilters .menu-list").is_visible()
