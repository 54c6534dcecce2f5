"""Pages that a job draws: the same as those drawn on request, for every role and at every address.

What else an address asks for is the address's own, whoever comes: it is asked as a stranger and as a curator.
"""

import re

import pytest
from django.utils import timezone

from leaderboard.kept import pages as prepared
from leaderboard.kept import values
from leaderboard.models import PreparedPage
from tests.access.conftest import ROLES
from tests.access.crawl import crawl
from tests.access.test_crawl import admitted
from tests.access.test_routes import doors
from tests.access.world import PRIVATE, PUBLIC

pytestmark = pytest.mark.django_db
OWN = re.compile(rb'<form id="personal".*?</form>|<p class="small dim">As of [^<]*</p>', re.DOTALL)
QUERIES = ("", "?source=some-judge&model=model-one&outcome=win&a=model-one&b=model-two")


def shown(answer):
    """Without what is the person's own and where it stands, and what tells of which day the page is."""
    return answer.status_code, re.sub(rb"\s+", b"", OWN.sub(b"", answer.body))


# What is kept is kept by role: those who read least here, the others in soak.
@pytest.mark.parametrize(
    "role", [role if role == "anonymous" else pytest.param(role, marks=pytest.mark.soak) for role in ROLES]
)
def test_a_page_that_a_job_drew_is_the_page_that_is_drawn_on_request(role, world, client_of, monkeypatch):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    addresses = [
        (name, path + query)
        for slug in (PUBLIC, PRIVATE)
        for name, path in doors(world, slug)
        if name.startswith(("leaderboard:", "api-leaderboard", "home")) and role in admitted(name)
        for query in (QUERIES if name.startswith("leaderboard:") and role in ("anonymous", "curator") else ("",))
    ]

    def client():
        made = client_of(role)
        made.raise_request_exception = False
        return made

    with monkeypatch.context() as large:
        large.setattr(prepared, "MANY", -1)
        asking = client()
        waiting = [(name, path) for name, path in addresses if asking.get(path).status_code == 202]
    assert len(waiting) > 20
    on_request = crawl(client, waiting, "get")
    assert 202 not in {answer.status_code for answer in on_request.values()}
    monkeypatch.setattr(prepared, "MANY", -1)
    values.forget()
    for page in PreparedPage.objects.all():
        prepared.prepare(page.pk)
    drawn = crawl(client, waiting, "get")
    assert 202 not in {answer.status_code for answer in drawn.values()}
    assert [at for at, answer in drawn.items() if shown(answer) != shown(on_request[at])] == []
