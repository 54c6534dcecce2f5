"""Every route as every role in every method: who gets through, and that nothing hidden shows below staff.

One crawl looks for canaries; a second one, of a world with other criteria and the same judgments, must bring the same
bytes, headers and lengths.
"""

from collections import defaultdict
from urllib.parse import quote

import pytest
from django.utils import timezone

from bank import database
from tests.access.conftest import ROLES
from tests.access.crawl import API, FORMS, METHODS, crawl
from tests.access.test_routes import LABELLERS, READERS, STAFF, TABLE, doors, refused
from tests.access.world import CANARY, OPEN_RULE, PRIVATE, PUBLIC, UNSEEN, rewrite, spellings

pytestmark = pytest.mark.django_db
OTHER = "jk5Other<&\"'>wp8"
# API routes whose POST is for others than their GET.
POSTS = {
    "api-label-list": LABELLERS,
    "api-judge-list": STAFF,
    **dict.fromkeys(("api-benchmark-list", "api-sample-list", "api-response-list", "api-recipe-response-list"), STAFF),
    "api-campaign-list": STAFF,
    "api-edition-list": STAFF,
    "api-run-list": STAFF,
    "api-prompt-list": STAFF,
    "api-jury-list": STAFF,
    "api-item-list": STAFF,
    "api-recipe-list": STAFF,
    "api-evaluation-list": STAFF,
    "api-outside-score-list": STAFF,
    "leaderboard:outside-scores": STAFF,
}
# Who may ask what a route does, though not all of them get an answer from it.
ASKED = {"api-judgment-analysis": READERS}
# Doors behind which it matters whose the object is: staff may come, but these are the annotator's own.
OWN = {"api-campaign-next"}
# Where staff, and they alone, read hidden text on purpose.
HIDDEN_TEXT = {
    "bank:criteria",
    "bank:criteria-history",
    "bank:sample-edit",
    "bank:sample-check",
    "bank:benchmark-drafts",
    "bank:export-file",
    "api-export-file",
    "api-draft-list",
    "api-draft-detail",
    "bank:review",
    "api-sample-criteria",
    "judging:judgment-detail",
    "leaderboard:run-tryout",
    "judging:judgment-prompt",
    "judging:trial-detail",
    "judging:trial-prompt",
    "api-judgment-analysis",
}
STRICT = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
}


def admitted(name):
    """The roles that a route opens to in some method."""
    return TABLE[name] | POSTS.get(name, set()) | ASKED.get(name, set())


# tests/conftest.py sends the tests of one role to one process, where they share what it was answered. What curators get
# administrators get, too: all of it in soak, and the doors that are theirs alone below. What guests get elsewhere
# visitors get (test_guests): the neighbouring world is theirs in soak.
def as_each(*roles, in_soak=("administrator",)):
    soak = [pytest.param(role, marks=pytest.mark.soak) for role in roles if role in in_soak]
    return pytest.mark.parametrize("role", [*(role for role in roles if role not in in_soak), *soak])


@pytest.fixture(scope="module")
def known():
    """What was answered, by (role, how it was asked, benchmark), and the moment at which the clock stands."""
    return {"now": timezone.now()}


@pytest.fixture
def asked(known, world, client_of, monkeypatch, caplog):
    """``asked(role, how, slug)``: what each address answers to a role, with the objects of one benchmark.

    ``how`` is a method, or FORMS for the other forms of what opens to GET. HEAD and OPTIONS are asked of what does not
    open to GET: Django makes HEAD of GET, and a page has no answer of its own to OPTIONS; routes of the API have. Doors
    that are closed to the role are tried once, with the public benchmark before its text is rewritten: the rule answers
    before the view does, and all of its answers are alike.
    """
    monkeypatch.setattr(timezone, "now", lambda: known["now"])
    monkeypatch.setattr(database, "now", lambda: known["now"])  # the database's

    def ask(role, how, slug):
        def client():
            made = client_of(role)
            made.raise_request_exception = False
            return made

        addresses = list(doors(world, slug))
        if slug != PUBLIC:  # what names no benchmark is the same address
            same = set(doors(world, PUBLIC))
            addresses = [door for door in addresses if door not in same]
        answered = known.get((role, "get", slug), {})
        if how == FORMS:
            addresses = [(name, path) for (name, path, _), answer in answered.items() if answer.status_code == 200]
        elif how in ("head", "options"):
            addresses = [
                (name, path)
                for (name, path, _), answer in answered.items()
                if answer.status_code != 200 or (how == "options" and name.startswith(API))
            ]
        opened = [(name, path) for name, path in addresses if role in admitted(name)]
        found = crawl(client, opened, how)
        if slug == PUBLIC and (role, how, slug) not in known:
            found |= crawl(client, [door for door in addresses if door not in opened], how)
        assert CANARY not in caplog.text
        return found

    return ask


@pytest.fixture
def answers(known, asked):
    """As ``asked``, of the world as it was built: once for all tests of the module."""

    def of(role, how, slug=PUBLIC):
        if how != "get":
            of(role, "get", slug)
        if (role, how, slug) not in known:
            known[role, how, slug] = asked(role, how, slug)
        return known[role, how, slug]

    return of


@as_each(*ROLES)
@pytest.mark.parametrize(
    "method",
    ["get", "post", "head", "options"],
)
@pytest.mark.check("B1", "B4")
def test_each_role_gets_through_its_own_doors_only(role, method, answers):
    wrong = []
    for (name, path, _), answer in answers(role, method).items():
        allowed = role in TABLE[name]
        if method == "post":
            allowed = role in POSTS.get(name, TABLE[name])
        elif method == "options":
            allowed = role in admitted(name)
        if allowed and name in OWN and role != "annotator":
            continue
        if answer.status_code >= 500 or (refused(answer) and allowed) or not (refused(answer) or allowed):
            # A read-only API route refuses a method before it asks who comes.
            if answer.status_code == 405 and not allowed:
                continue
            wrong.append((name, path, answer.status_code, "allowed" if allowed else "refused"))
    assert wrong == []


@pytest.mark.check("B1")
def test_an_administrators_own_doors_open_to_them_and_to_no_curator(world, client_of):
    own = [(name, path) for name, path in doors(world, PUBLIC) if TABLE[name] == {"administrator"}]
    assert len(own) > 5
    for name, path in own:
        opened = {role: not refused(client_of(role).get(path)) for role in ("administrator", "curator")}
        assert opened == {"administrator": True, "curator": False}, name


@as_each(*sorted(STAFF))
@pytest.mark.check("A1")
def test_staff_read_hidden_text_only_where_they_mean_to(role, answers):
    secrets = spellings()
    seen = {
        name for (name, *_), answer in answers(role, "get").items() if any(secret in answer.body for secret in secrets)
    }
    assert seen <= HIDDEN_TEXT
    assert {"bank:criteria", "api-sample-criteria"} <= seen


@as_each("anonymous", "guest", "annotator", "researcher", in_soak=("guest",))
@pytest.mark.check("A1", "A2", "A4", "A9")
def test_below_staff_nothing_hidden_shows_and_nothing_that_shows_depends_on_it(role, answers, asked, world):
    def in_all(ask, methods):
        return {
            (*where, how, slug): answer
            for slug in (PUBLIC, PRIVATE)
            for how in methods
            for where, answer in ask(role, how, slug).items()
        }

    first = in_all(answers, ["get", FORMS, "head", "options", "post"])
    assert {name for name, *_ in first} == set(TABLE)
    assert [where for where, answer in first.items() if answer.status_code >= 500] == []
    closed = defaultdict(set)
    for (name, path, _, how, _), answer in first.items():
        if refused(answer) and role not in admitted(name):
            to = answer.headers.get("Location", "").replace(quote(path), "PATH")
            closed[how == "head", name.startswith(API)].add((answer.status_code, to, answer.body))
    assert closed
    assert [answers for answers in closed.values() if len(answers) > 1] == []
    secrets = spellings()
    assert [where for where, answer in first.items() if any(one in answer.everything for one in secrets)] == []
    own = ("annotations:assignment", "annotations:work", "annotations:ahead", "api-campaign-next")
    for where, answer in first.items():  # drafts, and what is private
        if role == "annotator" and where[0].startswith(own):
            assert f"{UNSEEN}-draft".encode() not in answer.everything, where
        else:
            assert UNSEEN.encode() not in answer.everything, where
    assert any(OPEN_RULE.encode() in answer.body for answer in first.values())
    rewrite(world, OTHER)
    second = in_all(asked, ["get", FORMS, "post"])  # Django makes HEAD of GET, and OPTIONS of the methods alone
    assert first.keys() >= second.keys()
    assert {how for *_, how, _ in second} == {"get", "post", FORMS}
    assert [where for where, answer in second.items() if answer != first[where]] == []


@as_each(*ROLES)
@pytest.mark.check("D2")
def test_every_response_carries_the_headers(role, answers, client_of):
    found = {where: answer for method in METHODS for where, answer in answers(role, method).items()}
    found |= {path: client_of(role).get(path) for path in ("/nowhere/", "/bank/images/../x.png")}
    for where, answer in found.items():
        headers = answer.headers
        policy = {part.strip() for part in headers["Content-Security-Policy"].split(";")}
        assert policy >= STRICT, where
        assert not any("unsafe" in part for part in policy), where
        assert headers["X-Content-Type-Options"] == "nosniff", where
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin", where
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin", where
        assert headers["X-Frame-Options"] == "DENY", where
        assert headers["Referrer-Policy"] == "same-origin", where


@as_each("curator")
@pytest.mark.check("D10")
def test_signed_in_pages_are_kept_nowhere_and_answers_of_the_api_are_asked_for_again(role, answers):
    for (name, *_), answer in answers(role, "get").items():
        control = answer.headers.get("Cache-Control", "")
        if name.endswith("image") or answer.status_code == 302:
            continue
        assert "no-store" in control or (name.startswith("api-") and "private" in control), (name, control)
