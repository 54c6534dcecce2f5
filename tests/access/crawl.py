"""Every address as one role, in every method and form: what came back, by what was asked."""

import re
from dataclasses import dataclass

from django.db import transaction

from leaderboard.kept import values as leaderboard_cache

METHODS = ("get", "head", "options", "post")
FORMS = "forms"
API = "api-"
# What else is asked of an address that opens, by the beginnings of the routes' names.
_FORMS = [
    (API, "?format=json"),
    (API, "?format=csv"),
    ("leaderboard:", "?source=some-judge"),
    ("leaderboard:", "?source=some-judge&model=model-one&outcome=win&a=model-one&b=model-two"),
    ("api-leaderboard", "?source=some-judge&benchmark=open-bench"),
    ("annotations:campaign-detail", "?power=1"),
    ("judging:run", "?show=failed"),
    ("judging:judgment-list", "?differs=orders&sort=slowest"),
]
# Random with each request, the same in length: the form's token, in pages and the cookie.
TOKEN = re.compile(rb'(name="csrfmiddlewaretoken"\s+value="|X-CSRFToken": "|csrftoken=)[A-Za-z0-9]{32,64}')
RANDOM_COOKIES = {"csrftoken", "sessionid"}
# An idempotency key is made with each page, a token for the API by each form that asks for one.
BEFORE = rb'name="key"\s+value="|class="mono token"\s*>\s*|name="revoke"\s+value="|aria-label="Revoke '
KEY = re.compile(rb"(" + BEFORE + rb")[A-Za-z0-9-]{8,64}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its status, its headers and its body, made comparable."""

    status_code: int
    headers: dict[str, str]
    body: bytes

    @property
    def everything(self) -> bytes:
        return repr(self.headers).encode() + self.body


def crawl(make_client, doors, how) -> dict[tuple[str, ...], Answer]:
    """The answer to each address by (route, path, form); what the requests change is undone.

    ``doors`` gives (route, path). ``how`` is a method, or FORMS: GET in every other form of the address, with what is
    cached since a crawl by GET before it.
    """
    found = {}
    if how != FORMS:
        leaderboard_cache.forget()
    client = make_client()
    point = transaction.savepoint()
    for name, path in dict.fromkeys(doors):
        if how == FORMS:
            if not name.startswith(API):
                found[name, path, "fragment"] = _answer(client.get(path, HTTP_HX_REQUEST="true"))
            for beginning, query in _FORMS:
                if name.startswith(beginning):
                    found[name, path, query] = _answer(client.get(path + query))
        else:
            found[name, path, ""] = _answer(getattr(client, how)(path))
        if name == "accounts:sign-out":
            client = make_client()
    transaction.savepoint_rollback(point)
    if how != "get":
        leaderboard_cache.forget()
    return found


def _answer(response) -> Answer:
    raw = b"".join(response.streaming_content) if response.streaming else response.content
    body = KEY.sub(rb"\1", TOKEN.sub(rb"\1", raw))
    dropped = {"Date", "Expires"} | ({"ETag"} if body != raw else set())  # an ETag is made of the body, token and all
    found = [(name, value) for name, value in response.headers.items() if name not in dropped]
    # A message's cookie is signed with the time: what it says is before the stamp and the signature.
    said = {
        name: cookie.value.rsplit(":", 2 if name == "messages" else 0)[0] for name, cookie in response.cookies.items()
    }
    found += [(name, value) for name, value in said.items() if name not in RANDOM_COOKIES]
    return Answer(response.status_code, dict(sorted(found)), body)
