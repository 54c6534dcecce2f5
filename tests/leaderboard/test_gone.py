"""Pages that are no more say so, and where their numbers are now."""

import re
from html import unescape

import pytest
from django.urls import reverse

from leaderboard.views.gone import GONE
from tests.markup import flat

# Of those that were addresses of their own.
ARGUMENTS: dict[str, dict[str, str]] = {
    "corruptions": {},
    "outside-scores": {},
    "profile": {"name": "grove"},
    "runs-compare": {},
}


@pytest.mark.parametrize("what", sorted(ARGUMENTS))
def test_an_address_that_is_gone_answers_410_and_leads_to_where_its_numbers_are(what, voted, client_of):
    client = client_of("researcher")
    answer = client.get(reverse(f"leaderboard:{what}", kwargs=ARGUMENTS[what]))
    assert answer.status_code == 410
    title, words, _ = GONE[what]
    page = flat(answer)
    assert title in page
    assert words in unescape(page)
    (link,) = re.findall(r'class="btn" href="([^"]+)">Go there', page)
    assert client.get(link).status_code == 200
