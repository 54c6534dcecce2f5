"""What a judge wrote stays with staff until a curator releases it, and then loses what is hidden."""

import pytest

from bank.models import CriteriaAccess
from tests.access.world import CANARY, PRIVATE, PUBLIC, spellings

pytestmark = pytest.mark.django_db
SAID = f"The second answer misses a thing. It should say: Counts {CANARY} things. So Answer1."


@pytest.fixture
def judgment(world):
    judgment = world.judgments[PUBLIC]
    judgment.analysis = SAID
    judgment.save()
    return judgment


@pytest.mark.check("A7")
def test_it_is_released_by_a_curator_read_without_criteria_by_researchers_and_withheld_again(
    judgment, client_of, people
):
    page, api = f"/judging/judgments/{judgment.pk}/", f"/api/v1/judgments/{judgment.pk}/analysis/"
    curator, researcher = client_of("curator"), client_of("researcher")
    assert "What the judge said" not in researcher.get(page).content.decode()
    assert researcher.get(api).status_code == 403
    assert researcher.post(f"/judging/runs/{judgment.run_id}/release/").status_code == 403

    curator.post(f"/judging/runs/{judgment.run_id}/release/")
    judgment.run.refresh_from_db()
    assert judgment.run.analyses_released_by == people["curator"]
    assert not CriteriaAccess.objects.filter(how="redaction").exists()
    shown = researcher.get(page)
    assert "The second answer misses a thing. It should say: […]. So Answer1." in shown.content.decode()
    assert researcher.get(api).json() == {
        "id": judgment.pk,
        "analysis": "The second answer misses a thing. It should say: […]. So Answer1.",
        "raw": None,
        "gaps": 1,
        "withheld": False,
    }
    for secret in spellings():
        assert secret not in shown.content
    read = CriteriaAccess.objects.filter(how="redaction")
    assert [(one.who, one.about, one.sample_ids) for one in read] == [
        (people["researcher"], f"judgment {judgment.pk}", [judgment.item.sample_id])
    ] * 2
    assert CANARY in curator.get(api).json()["analysis"]
    assert client_of("annotator").get(api).status_code == 403

    curator.post(f"/judging/runs/{judgment.run_id}/withhold/")
    assert researcher.get(api).status_code == 403


@pytest.mark.check("A12")
def test_a_release_opens_no_raw_reply_no_failed_call_and_nothing_private(world, judgment, client_of):
    curator, researcher = client_of("curator"), client_of("researcher")
    for run in world.runs.values():
        curator.post(f"/judging/runs/{run.pk}/release/")
        for one in run.judgments.all():
            for path in (f"/judging/judgments/{one.pk}/", f"/api/v1/judgments/{one.pk}/analysis/"):
                answer = researcher.get(path)
                assert answer.status_code == (404 if run == world.runs[PRIVATE] else 200)
                assert not any(secret in answer.content for secret in spellings())
