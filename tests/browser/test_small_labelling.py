"""Labelling on small screens: nothing lies between verdict and buttons, and no word of the verdict is cut."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_kinds import kinds, open_, press

__all__ = ["kinds", "open_"]

pytestmark = [pytest.mark.django_db(transaction=True)]

CUT = """() => [...document.querySelectorAll(".choice .brief")]
  .filter((words) => words.checkVisibility() && words.scrollWidth > words.closest(".choice").clientWidth)
  .map((words) => words.textContent)"""


def test_no_word_of_a_graded_verdict_is_cut_on_the_smallest_phone(page, open_):
    page.set_viewport_size({"width": 320, "height": 640})
    open_("pair-graded")
    expect(page.locator(".degrees .choice")).to_have_count(5)
    assert page.evaluate(CUT) == []


def test_on_a_phone_the_buttons_stand_right_below_the_verdict_and_what_was_done_is_told_above_it(page, open_):
    page.set_viewport_size({"width": 375, "height": 800})
    open_("pair")
    verdict, submit = page.locator(".choices"), page.locator(".after .btn.primary")

    def between():
        above = verdict.bounding_box()
        return submit.bounding_box()["y"] - above["y"] - above["height"]

    assert between() <= 16
    press(page, "1", "Enter")
    told = page.locator("#toasts .snack")
    expect(told).to_contain_text("Submitted")
    assert between() <= 16
    assert told.bounding_box()["y"] + told.bounding_box()["height"] <= page.locator("#ballot").bounding_box()["y"]
