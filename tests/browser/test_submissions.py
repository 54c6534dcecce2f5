"""A researcher's way in a browser: take the ids, send a file that does not pass, mend it, read the scores."""

import json
import re
from pathlib import Path

import pytest

from accounts.tokens import make_token
from bank.models import Submission
from tests.bank.conftest import folder, manage
from tests.bank.test_submissions import LABELS, allow, choices
from tests.browser.conftest import violations

__all__ = ["allow", "choices", "folder", "manage"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_researcher_submits_by_page_and_by_api_and_reads_the_scores(
    choices, allow, people, live_server, browser, sign_in, faults, tmp_path
):
    benchmark = choices(dev=4, test=20)
    allow(benchmark, hidden=["test"], per_day=5, notes="Answer by **letter**.")
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    sign_in(context, people["researcher"])
    page = context.new_page()
    said = faults(page)
    page.goto(live_server.url + "/submissions/")
    with page.expect_download() as taken:
        page.get_by_role("link", name="Ids to fill in").click()
    rows = [json.loads(line) for line in Path(taken.value.path()).read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 24
    for row in rows:
        n = int(row["sample"].lstrip("devst"))
        row["text"] = f"({LABELS[n % 4]})"
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows[1:]) + '{"sample": "x", "text": "A"}\n', "utf-8")

    page.get_by_role("link", name="Submit responses").first.click()
    page.get_by_label("File").set_input_files(bad)
    page.get_by_label("Model's name").fill("Finch")
    page.get_by_role("button", name="Check only").click()
    page.get_by_text("The file would not pass").wait_for()
    assert "1 missing" in page.content()
    assert page.get_by_label("Model's name").input_value() == "Finch"
    page.get_by_label("File").set_input_files(good)
    page.get_by_role("button", name="Check only").click()
    page.get_by_text("The file is still chosen").wait_for()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/submissions/\d+/$"))
    table = page.get_by_role("region", name="test, multiple choice")
    assert re.search(r"Value, %[\s\S]*100", table.inner_text())
    assert "At least 100%" in page.content()
    assert violations(page) == []
    page.locator("summary", has_text="Withdraw").click()
    page.get_by_label("Reason").fill("a bug")
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_text("a bug").first.wait_for()
    page.goto(live_server.url + "/submissions/")
    assert "withdrawn" in page.get_by_role("row", name="Finch").inner_text()
    assert said == []

    token = make_token(person=people["researcher"])[1]
    answer = context.request.post(
        live_server.url + "/api/v1/submissions/",
        headers={"Authorization": f"Token {token}"},
        multipart={
            "benchmark": "choices",
            "model": "Wren",
            "file": {"name": "wren.jsonl", "mimeType": "application/jsonl", "buffer": good.read_bytes()},
        },
    )
    assert answer.status == 201
    numbers = [score["numbers"] for score in answer.json()["scores"]]
    assert numbers[0]["vanilla"]["value"] == 1.0
    assert (numbers[1]["vanilla"], numbers[1]["best"]) == (None, 1.0), "the same answers are no better"
    assert Submission.objects.count() == 2
    context.close()
