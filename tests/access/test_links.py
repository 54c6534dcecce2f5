"""No page sends its reader to where nothing is: links are followed as every role from the start page on."""

import re
from html import unescape
from urllib.parse import urljoin, urlsplit

import pytest

pytestmark = pytest.mark.django_db
HREF = re.compile(r'<a[^>]*\shref="([^"#]*)')
MOST = 120


def shape(address):
    """The same for addresses that differ in numbers and values alone: the same lines made them."""
    parts = urlsplit(address)
    keys = sorted(pair.split("=")[0] for pair in parts.query.split("&") if pair)
    return re.sub(r"\d+", "N", parts.path), tuple(keys)


@pytest.mark.parametrize("role", ["anonymous", "researcher", "curator"])
def test_every_link_on_a_page_opens_for_whom_it_is_shown(role, world, client_of):
    client = client_of(role)
    waiting, seen = [("/", "")], {shape("/")}
    dead, followed = [], 0
    while waiting and followed < MOST:
        address, page = waiting.pop(0)
        followed += 1
        answer = client.get(address)
        if answer.status_code in (301, 302):
            found = [answer.headers["Location"]]
        else:
            if answer.status_code != 200:
                dead.append((answer.status_code, address, "on", page))
            is_page = not answer.streaming and answer.headers["Content-Type"].startswith("text/html")
            found = HREF.findall(answer.content.decode()) if is_page else []
        for link in found:
            target = urljoin(address, unescape(link))
            if target.startswith("/") and not target.startswith("//") and shape(target) not in seen:
                seen.add(shape(target))
                waiting.append((target, address))
    assert dead == []
    assert followed > 15
