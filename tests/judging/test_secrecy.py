"""A judge that prints the criteria, a provider that echoes the prompt: neither is seen below staff, nor left lying."""

import pickle

import pytest
from django.core.cache import cache
from django.db import connection

from accounts.models import Session
from judging.models import Attempt, Judgment
from judging.runs import actions
from tests.access.world import CANARY, PUBLIC, spellings
from tests.judging.server import Server, answer, error

pytestmark = pytest.mark.django_db


def rows_with(secret):
    """Names of tables that hold a text as it is."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            found |= {table for row in cursor if any(secret in str(cell) for cell in row)}
    return found


@pytest.mark.check("A7", "A11", "A12")
def test_a_whole_run_leaves_criteria_nowhere_but_encrypted(world, judge_at, work_on, client_of, caplog):
    calls = []

    def leaky(call):
        calls.append(call)
        if len(calls) % 3 == 0:
            return error(400, message=f"Cannot process: {call.text[call.text.index('zq7') :]}")
        return answer(f"I was told: {call.text[-2000:]}\nIn short: {CANARY}\n{'Answer1' if len(calls) % 3 else CANARY}")

    benchmark = world.samples[PUBLIC].benchmark
    with Server(leaky) as server:
        # Without pictures: the world has samples whose picture is not there, about which no judge is asked.
        asked = {"protocol": "pairwise-criteria", "settings": {"context": "none"}}
        run = work_on(actions.start_run(judge=judge_at(server.url), benchmark=benchmark, **asked))
    assert any(CANARY in call.text for call in calls)
    said = Judgment.objects.filter(run=run, status="ok").values_list("raw", flat=True)
    assert said
    assert all(CANARY in text for text in said)
    assert any("zq7Canary" in one.detail for one in Attempt.objects.filter(run=run))

    pages = [f"/judging/runs/{run.pk}/", f"/judging/runs/{run.pk}/progress/", f"/judging/runs/{run.pk}/?show=failed"]
    pages += ["/judging/", f"/judging/judges/{run.judge_id}/", f"/api/v1/runs/{run.pk}/", "/api/v1/judgments/"]
    pages += [f"/judging/judgments/{pk}/" for pk in run.judgments.values_list("pk", flat=True)]
    pages += [f"/leaderboards/{PUBLIC}/models/?source=kestrel", f"/leaderboards/{PUBLIC}/judges/"]
    for role in ("researcher", "annotator", "anonymous"):
        client = client_of(role)
        for page in pages:
            shown = client.get(page)
            body = shown.content + repr(shown.headers).encode()
            assert not any(secret in body for secret in spellings()), (role, page)
    failed = next(one for one in Attempt.objects.filter(run=run) if "zq7Canary" in one.detail)
    where = Judgment.objects.get(run=run, item=failed.item, order=failed.order, repeat=failed.repeat)
    assert "zq7Canary" in client_of("curator").get(f"/judging/judgments/{where.pk}/").content.decode()

    assert rows_with("zq7Canary") == set()
    assert "zq7Canary" not in caplog.text
    assert "zq7Canary" not in repr([session.get_decoded() for session in Session.objects.all()])
    assert "zq7Canary" not in repr([pickle.loads(value) for value in cache._cache.values()])
