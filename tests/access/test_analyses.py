"""What a judge wrote stays with staff until two people release it, and then loses what is hidden."""

import re

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

import bank.criteria
from accounts.models import AuditEntry, Role, User
from annotations.campaigns.actions import close_campaign
from bank.models import CriteriaAccess, Item, Response, Submission
from bank.text.similarity import Initials
from judging.models import AnalysisRelease, Judgment
from tests.access.world import CANARY, PRIVATE, PUBLIC, spellings
from tests.hidden import write_criterion
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SAID = f"The second answer misses a thing. It should say: Counts {CANARY} things. So Answer1."
SEEN = "The second answer misses a thing. It should say: […]. So Answer1."
HELD = f"The second answer misses a thing: {'/'.join(CANARY)[::-1]}."  # backwards


@pytest.fixture
def judgment(world):
    judgment = world.judgments[PUBLIC]
    close_campaign(campaign=world.campaigns[PUBLIC], now=timezone.now())  # until then its items are labelled blind
    judgment.analysis = SAID
    judgment.save()
    return judgment


@pytest.fixture
def second(people, client_of):
    """The client of another curator."""
    User.objects.create_user("curator2", password="pw", role=Role.CURATOR)
    client = client_of("researcher")
    client.force_login(User.objects.get(username="curator2"))
    return client


def propose(client, run):
    return client.post(f"/judging/runs/{run}/release/")


def confirm(client, run, *judgments):
    return client.post(f"/judging/runs/{run}/release/confirm/", {"judgment": [one.pk for one in judgments]})


def decide(client, judgment, decision):
    sent = {"judgment": judgment.pk, "decision": decision}
    return client.post(f"/judging/runs/{judgment.run_id}/release/decide/", sent)


def said(client, judgment):
    """What the API answers for an analysis: the text, None where it is withheld, or the status that refuses it."""
    answer = client.get(f"/api/v1/judgments/{judgment.pk}/analysis/")
    if answer.status_code != 200:
        return answer.status_code
    return None if answer.json()["withheld"] else answer.json()["analysis"]


@pytest.mark.check("A7")
def test_it_is_proposed_by_one_curator_confirmed_by_another_and_read_without_criteria_by_researchers(
    judgment, client_of, people, second
):
    page, api = f"/judging/judgments/{judgment.pk}/", f"/api/v1/judgments/{judgment.pk}/analysis/"
    curator, researcher = client_of("curator"), client_of("researcher")
    assert propose(researcher, judgment.run_id).status_code == 403
    assert confirm(researcher, judgment.run_id, judgment).status_code == 403
    propose(curator, judgment.run_id)
    assert "Not released" in flat(researcher.get(page))
    assert said(researcher, judgment) == 403
    confirm(curator, judgment.run_id, judgment)  # the same person
    assert said(researcher, judgment) == 403
    confirm(second, judgment.run_id, judgment)
    assert not CriteriaAccess.objects.filter(how="redaction").exists()
    shown = researcher.get(page)
    assert SEEN in flat(shown)
    assert researcher.get(api).json() == {
        "id": judgment.pk,
        "analysis": SEEN,
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
    html = " ".join(flat(curator.get(f"/judging/runs/{judgment.run_id}/")).split())
    assert f"1 of {judgment.run.releases.count()} confirmed by two people" in html

    curator.post(f"/judging/runs/{judgment.run_id}/withhold/")
    assert said(researcher, judgment) == 403
    logged = AuditEntry.objects.filter(action__startswith="release-").order_by("number")
    assert [(one.action, one.name) for one in logged] == [
        ("release-proposed", "curator"),
        ("release-confirmed", "curator2"),
        ("release-ended", "curator"),
    ]


def test_an_administrator_is_the_second_only_where_there_is_no_other_curator(judgment, client_of, second):
    curator, administrator, researcher = (client_of(name) for name in ("curator", "administrator", "researcher"))
    propose(curator, judgment.run_id)
    confirm(administrator, judgment.run_id, judgment)
    assert said(researcher, judgment) == 403
    User.objects.filter(username="curator2").update(is_active=False)
    confirm(administrator, judgment.run_id, judgment)
    assert said(researcher, judgment) == SEEN


def test_the_database_itself_refuses_one_person_twice(judgment, people):
    curator, now = people["curator"], timezone.now()
    said_twice = {"proposed_by": curator, "proposed_at": now, "confirmed_by": curator, "confirmed_at": now}
    with pytest.raises(IntegrityError), transaction.atomic():
        AnalysisRelease.objects.create(judgment=judgment, run=judgment.run, **said_twice)


def test_what_is_held_back_is_decided_one_by_one_and_in_spite_of_it_by_two(judgment, client_of, second):
    Judgment.objects.filter(pk=judgment.pk).update(analysis=HELD)
    curator, researcher = client_of("curator"), client_of("researcher")
    propose(curator, judgment.run_id)
    page = flat(second.get(f"/judging/runs/{judgment.run_id}/analyses/"))
    assert "held back" in page
    confirm(second, judgment.run_id, *judgment.run.judgments.all())
    assert said(researcher, judgment) == 403
    decide(second, judgment, "despite")
    decide(second, judgment, "despite")
    assert said(researcher, judgment) == 403
    decide(curator, judgment, "despite")
    assert said(researcher, judgment).startswith("The second answer misses a thing")
    decide(curator, judgment, "keep")
    assert said(researcher, judgment) == 403
    assert AnalysisRelease.objects.get(judgment=judgment).decision == "keep"


def test_what_a_changed_criterion_would_hold_back_is_withheld_though_it_was_confirmed(judgment, client_of, second):
    researcher = client_of("researcher")
    propose(client_of("curator"), judgment.run_id)
    confirm(second, judgment.run_id, judgment)
    assert said(researcher, judgment) == SEEN
    new = {"key": "new", "kind": "guideline", "text": "The second answer misses a thing. It", "shown_to": "staff"}
    write_criterion(sample=judgment.item.sample, position=7, **new)
    assert "misses a thing" not in said(researcher, judgment)
    new = {"key": "key", "kind": "answer_key", "text": "B", "shown_to": "staff"}
    write_criterion(sample=judgment.item.sample, position=8, **new)
    assert said(researcher, judgment) is None


def test_the_page_shows_the_analysis_beside_the_criteria_marked_and_the_reading_is_logged(judgment, second, client_of):
    propose(client_of("curator"), judgment.run_id)
    page = second.get(f"/judging/runs/{judgment.run_id}/analyses/")
    html = flat(page)
    assert re.search(r"<del\s*>", html)
    assert html.count("zq7Canary") >= 2  # in the analysis, struck through, and in the criterion
    initials = Initials.of(judgment.analysis)
    assert len(initials.words) > 3
    assert all(letters in html for letters in (initials.words, initials.sentences, initials.lines))
    assert CriteriaAccess.objects.filter(how="release", reason=f"release of run {judgment.run_id}").exists()
    assert client_of("researcher").get(f"/judging/runs/{judgment.run_id}/analyses/").status_code == 403


def test_a_run_over_answers_that_came_by_submission_is_refused_whole_and_told_how_many(world, judgment, client_of):
    curator = client_of("curator")
    propose(curator, judgment.run_id)
    Response.objects.filter(places__item=judgment.item).update(submission=Submission.objects.first())
    number = Item.objects.filter(judgments__run=judgment.run, responses__submission__isnull=False).distinct().count()
    html = flat(curator.get(f"/judging/runs/{judgment.run_id}/analyses/"))
    assert f"{number} of its items contain submitted answers" in " ".join(html.split())
    User.objects.create_user("curator2", password="pw", role=Role.CURATOR)
    curator.force_login(User.objects.get(username="curator2"))
    confirm(curator, judgment.run_id, judgment)
    assert said(client_of("researcher"), judgment) == 403
    AnalysisRelease.objects.all().delete()
    propose(curator, judgment.run_id)
    assert not AnalysisRelease.objects.exists()


def test_where_a_sample_hides_nothing_its_analyses_need_no_release(judgment, client_of):
    researcher = client_of("researcher")
    assert said(researcher, judgment) == 403
    hidden = bank.criteria.Criterion.unguarded.filter(sample=judgment.item.sample).exclude(shown_to="public")
    hidden.delete()
    bank.criteria.CriterionRevision.unguarded.filter(sample=judgment.item.sample).delete()
    assert said(researcher, judgment) == SAID


@pytest.mark.check("A12")
def test_a_release_opens_no_raw_reply_no_failed_call_and_nothing_private(world, judgment, client_of, second):
    curator, researcher = client_of("curator"), client_of("researcher")
    for run in world.runs.values():
        propose(curator, run.pk)
        confirm(second, run.pk, *Judgment.objects.filter(release__run=run))
        for one in run.judgments.all():
            for path in (f"/judging/judgments/{one.pk}/", f"/api/v1/judgments/{one.pk}/analysis/"):
                answer = researcher.get(path)
                private = run == world.runs[PRIVATE]
                assert answer.status_code in ((404,) if private else (200, 403))
                assert not any(secret in answer.content for secret in spellings())
