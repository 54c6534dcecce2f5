"""A new curator's way: three samples with criteria written, reviewed, checked, and the benchmark published."""

import pytest
from playwright.sync_api import expect

from bank.criteria import Criterion
from bank.models import Benchmark, Sample
from tests.bank.conftest import picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(browser, live_server, sign_in, people):
    """Pages of signed-in people: ``desk("curator")``. With ``script=False`` the browser runs none."""
    contexts = []

    def sit(role, *, script=True):
        context = browser.new_context(java_script_enabled=script, base_url=live_server.url)
        contexts.append(context)
        sign_in(context, people[role])
        return context.new_page()

    yield sit
    for context in contexts:
        context.close()


def write(page, key, question, criterion):
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_label("Instruction").fill(question)
    page.get_by_label("Capability").select_option(label="\u2003OCR")
    page.get_by_label("Text of criterion 1").fill(criterion)
    page.get_by_label("Add pictures").set_input_files(
        {"name": "sign.png", "mimeType": "image/png", "buffer": picture(size=(640, 600))}
    )


@pytest.mark.parametrize("script", [pytest.param(True, marks=pytest.mark.soak, id="with script"), False])
def test_three_samples_are_written_reviewed_checked_and_published(script, desk, people, media, live_server):
    mine = desk("curator", script=script)
    mine.goto("/bank/")
    mine.get_by_role("link", name="New benchmark").click()
    mine.get_by_label("Title").fill("Signs")
    mine.get_by_label("Short name").fill("signs")
    mine.get_by_label("Licence").fill("CC0 1.0")
    mine.get_by_label("Capability tree").select_option("mllm-bench")
    mine.get_by_role("button", name="Make it").click()
    mine.get_by_role("link", name="Write a sample").click()
    for number in range(3):
        write(mine, f"sign-{number}", f"What does sign {number} say?", f"It says {number}.")
        mine.get_by_role("button", name="Save, then another" if number < 2 else "Save", exact=True).last.click()
    mine.get_by_role("link", name="Signs").first.click()
    mine.get_by_label("Benchmark", exact=True).get_by_role("link", name="Review", exact=True).click()
    mine.get_by_label("administrator, administrator").check()
    mine.get_by_role("button", name="Open the round").click()
    assert "Round 1 is open over 3 samples" in mine.content()

    other = desk("administrator", script=script)
    other.goto("/bank/")
    other.get_by_role("link", name="My reviews").click()
    other.get_by_role("link", name="Begin").click()
    for number in range(3):
        assert f"{number + 1} of 3" in other.get_by_role("heading", level=1).inner_text()
        assert f"It says {number}." in other.content()
        for box in other.get_by_label("holds", exact=True).all():
            box.check()
        other.get_by_label("Fine as it is").check()
        other.get_by_role("button", name="Submit and next").click()
    assert "That was your last one" in other.content()
    other.get_by_role("link", name="Check").first.click()
    for number in range(3):
        other.get_by_label("Approve").check() if number < 2 else other.get_by_label("Reject").check()
        if number == 2:
            other.get_by_label("Reason").fill("The third sign stands in the set already.")
        other.get_by_role("button", name="Decide and next").click()

    mine.goto("/bank/benchmarks/signs/")
    mine.get_by_role("link", name="Publish").click()
    expect(mine.get_by_text("2 approved samples").first).to_be_visible()
    with mine.expect_navigation():
        mine.get_by_role("button", name="Publish").click()
    benchmark = Benchmark.objects.get(slug="signs")
    assert benchmark.visibility == "public"
    assert sorted(Sample.objects.values_list("status", flat=True)) == ["approved", "approved", "rejected"]
    assert Criterion.unguarded.count() == 3
    assert Sample.objects.exclude(author=people["curator"]).count() == 0
