"""Versions of a judge's prompt beside each other, on the same items that people labelled."""

import pytest

from judging.models import Judge, Run
from tests.bank.conftest import folder, manage
from tests.leaderboard.test_tables import got, told
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def two_versions(voted):
    """The good judge's run and the poor one's are those of one judge, by two versions of a prompt."""
    judge = Judge.objects.get(name="keen")
    for version, name in ((1, "keen"), (2, "dull")):
        settings = {"criteria": False, "prompt": f"ours@{version}"}
        Run.objects.filter(judge__name=name).update(
            judge=judge, settings=settings, settings_hash=f"{version}" * 8, template_version=version, spent=version
        )
    return judge


def test_a_version_stands_beside_the_one_before_it_with_a_paired_difference(two_versions, client_of):
    rows = told("versions")
    first = rows[0]
    assert (first["judge"], first["prompt"], first["version"], first["before"]) == ("keen", "ours", 2, 1)
    assert first["measure"] == "Agreement, where people chose a side"
    assert first["value"] < first["value_before"]
    assert first["difference"] == pytest.approx(first["value"] - first["value_before"])
    assert first["difference_high"] < 0
    assert first["significant"] is True
    assert first["spent"] == 2
    assert {row["spent"] for row in got(client_of("researcher"), "versions").json()} == {None}, "costs are for staff"


def test_the_differences_are_those_of_the_page_that_compares_the_two_runs(two_versions):
    runs = list(Run.objects.filter(judge=two_versions).order_by("template_version").values_list("pk", flat=True))
    compared = told("compare", "--a", f"run-{runs[1]}", "--b", f"run-{runs[0]}")
    by_measure = {row["measure"]: row["difference"] for row in compared}
    assert {row["measure"]: row["difference"] for row in told("versions")} == by_measure


def test_the_board_of_judges_shows_them_and_leads_to_the_rows(two_versions, client_of):
    page = flat(client_of("researcher").get("/leaderboards/grove/judges/"))
    assert "Versions of prompts, each beside the one before it" in page
    assert "ours, version 2" in page
    assert "$" not in page.split('id="versions"')[1].split("</table>")[0]


def test_judges_whose_other_settings_differ_and_single_versions_are_not_compared(two_versions, client_of):
    run = Run.objects.get(template_version=2)
    Run.objects.filter(pk=run.pk).update(settings=run.settings | {"reasoning": "first"})
    assert told("versions") == []
    assert "Versions of prompts" not in flat(client_of("researcher").get("/leaderboards/grove/judges/"))
