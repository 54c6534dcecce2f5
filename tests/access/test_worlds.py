"""Nothing hidden shows below staff, and nothing that shows depends on what is hidden.

One crawl looks for canaries; a second one, of a world with other criteria and the same judgments, must bring the same
bytes, headers and lengths.
"""

import itertools

import pytest
from django.utils import timezone

from tests.access.crawl import crawl
from tests.access.test_routes import TABLE, doors
from tests.access.world import CANARY, OPEN_RULE, PRIVATE, PUBLIC, UNSEEN, rewrite, spellings

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
OTHER = "jk5Other<&\"'>wp8"


@pytest.fixture
def still(monkeypatch):
    """The clock stands, so that two worlds are seen at the same moment."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


@pytest.mark.parametrize("role", ["anonymous", "annotator", "researcher"])
@pytest.mark.check("A1", "A2", "A4", "A9")
def test_below_staff_nothing_hidden_shows_and_nothing_that_shows_depends_on_it(role, still, world, client_of, caplog):
    def client():
        made = client_of(role)
        made.raise_request_exception = False
        return made

    every = list(itertools.chain(doors(world, PUBLIC), doors(world, PRIVATE)))
    first = dict(crawl(client, every))
    assert {name for name, *_ in first} == set(TABLE)
    assert [asked for asked, answer in first.items() if answer.status >= 500] == []
    secrets = spellings()
    assert [asked for asked, answer in first.items() if any(one in answer.everything for one in secrets)] == []
    own = ("annotations:assignment", "annotations:work", "annotations:ahead", "api-campaign-next")
    for asked, answer in first.items():  # drafts, and what is private
        if role == "annotator" and asked[0].startswith(own):
            assert f"{UNSEEN}-draft".encode() not in answer.everything, asked
        else:
            assert UNSEEN.encode() not in answer.everything, asked
    assert any(OPEN_RULE.encode() in answer.body for answer in first.values())
    assert CANARY not in caplog.text
    rewrite(world, OTHER)
    second = dict(crawl(client, every))
    assert first.keys() == second.keys()
    assert [asked for asked, answer in first.items() if answer != second[asked]] == []
