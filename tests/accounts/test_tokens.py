"""Tokens for the API: scopes, ends and last use; made by the one who uses them."""

import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import loop, mail
from accounts.models import Mail, Notice, Scope, Token
from accounts.rules import RULES, rule_of_action
from accounts.tokens import make_token, tell_of_ends
from bank.models import Benchmark
from evalsite.views import _schema
from tests.access.test_routes import routes
from tests.bank.test_submissions import migration

pytestmark = pytest.mark.django_db
PAGE = "/accounts/tokens/"
READING = {"scopes": ["read"], "ends": "90"}


def shown(answer):
    return re.findall(r'class="mono token">([0-9a-z_]+)<', answer.content.decode())


def sending(token):
    return Client(headers={"Authorization": f"Token {token}"})


def said(answer):
    return answer.json()["detail"]


@pytest.fixture
def curator(people):
    people["curator"].email = "curator@example.org"
    people["curator"].save()
    return people["curator"]


@pytest.fixture
def mailing(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"


def test_a_person_makes_a_token_sees_it_once_and_revokes_it(client_of, people):
    client = client_of("researcher")
    token, listed = shown(client.post(PAGE, READING | {"name": "nightly gate"}))
    assert token.startswith(listed)
    assert "nightly gate" in client.get(PAGE).content.decode()
    assert listed.startswith("evalsite_")
    assert len(listed) < 20
    assert sending(token).get("/api/v1/runs/").status_code == 200
    assert shown(client.get(PAGE)) == [listed]
    gone = client.post(PAGE, {"revoke": listed}, follow=True)
    assert "The token is revoked" in gone.content.decode()
    assert sending(token).get("/api/v1/runs/").status_code == 401
    assert shown(client.get(PAGE)) == []


def test_nobody_sees_or_revokes_anothers(client_of, people):
    made, token = make_token(person=people["curator"])
    client = client_of("researcher")
    assert shown(client.get(PAGE)) == []
    for start in (made.token_key, "", "        ", token, "\x00"):
        client.post(PAGE, {"revoke": start})
    assert Token.objects.count() == 1


def test_ten_are_the_most(client_of):
    client = client_of("annotator")
    for _ in range(12):
        answer = client.post(PAGE, READING)
    assert Token.objects.count() == 10
    assert len(shown(answer)) == 10
    assert "revoke one first" in answer.content.decode()


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        ("guest", ["read"]),
        ("annotator", ["read", "label"]),
        ("researcher", ["read", "submit"]),
        ("curator", ["read", "label", "submit", "run"]),
    ],
)
def test_the_page_offers_the_scopes_that_the_role_can_use_and_no_others(role, offered, client_of):
    client = client_of(role)
    assert re.findall(r'name="scopes" value="(\w+)"', client.get(PAGE).content.decode()) == offered
    client.post(PAGE, {"scopes": [*offered, "everything"], "ends": "30"})
    client.post(PAGE, {"ends": "30"})
    assert not Token.objects.exists()


def test_a_token_ends_after_a_period_or_at_the_end_of_a_day_and_never_later_than_the_setting(client_of, settings):
    client, today = client_of("curator"), timezone.localdate()
    for ends, day, days in (("30", "", 30), ("day", today + timedelta(days=4), 4)):
        client.post(PAGE, {"scopes": ["run"], "ends": ends, "day": day})
        left = Token.objects.get().expiry - timezone.now()
        assert timedelta(days=days - 1) < left <= timedelta(days=days + 1)
        Token.objects.all().delete()
    refused = [today + timedelta(days=366), today - timedelta(days=1), "", "9999-12-31", "0001-01-01"]
    for day in refused:
        answer = client.post(PAGE, {"scopes": ["run"], "ends": "day", "day": day})
        assert 'role="alert"' in answer.content.decode(), day
    settings.TOKEN_MAX_DAYS = 60
    assert re.findall(r'<option value="(\w+)"', client.get(PAGE).content.decode()) == ["30", "60", "day"]
    client.post(PAGE, {"scopes": ["run"], "ends": "90"})
    assert not Token.objects.exists()


def test_the_page_says_what_each_token_may_do_when_it_ends_and_when_it_was_used(client_of, people):
    token = make_token(person=people["curator"], scopes=["read", "label"], lasts=timedelta(days=30))[1]
    client = client_of("curator")
    page = client.get(PAGE).content.decode()
    assert "read, label" in page
    assert "never used" in page
    sending(token).get("/api/v1/runs/")
    page = client.get(PAGE).content.decode()
    assert "last used" in page
    assert "never used" not in page


def test_the_last_use_is_written_once_a_minute_at_most(people):
    _made, token = make_token(person=people["researcher"])
    earlier = timezone.now() - timedelta(seconds=50)
    Token.objects.update(last_used=earlier)
    sending(token).get("/api/v1/runs/")
    assert Token.objects.get().last_used == earlier
    Token.objects.update(last_used=earlier - timedelta(seconds=20))
    sending(token).get("/api/v1/runs/")
    assert Token.objects.get().last_used > earlier


def test_a_token_without_the_scope_is_refused_with_its_name_and_a_session_is_not(people, client_of):
    reading = sending(make_token(person=people["administrator"], scopes=["read"])[1])
    assert reading.get("/api/v1/runs/").status_code == 200
    answer = reading.post("/api/v1/runs/", {}, content_type="application/json")
    assert answer.status_code == 403
    assert "lacks the scope “run”" in said(answer)
    assert "“submit”" in said(reading.get("/api/v1/submissions/"))
    assert client_of("administrator").get("/api/v1/submissions/").status_code == 200
    running = sending(make_token(person=people["administrator"], scopes=["run"])[1])
    assert "“read”" in said(running.get("/api/v1/runs/"))
    assert running.post("/api/v1/runs/", {}, content_type="application/json").status_code == 400


def test_hidden_text_is_not_exported_with_a_token_that_may_not_read(people):
    path = f"/api/v1/benchmarks/{Benchmark.objects.create(slug='towns', title='Towns').pk}/export/"
    asked = {"what": "samples", "criteria": True, "reason": "a check"}
    running, both = (
        sending(make_token(person=people["curator"], scopes=each)[1]) for each in (["run"], ["run", "read"])
    )
    assert "lacks the scope “read”" in said(running.post(path, asked, content_type="application/json"))
    assert running.post(path, {"what": "samples"}, content_type="application/json").status_code == 200
    assert both.post(path, asked, content_type="application/json").status_code == 200


def test_a_token_allows_no_more_than_its_owners_role(people):
    token = make_token(person=people["curator"])[1]
    people["curator"].role = "annotator"
    people["curator"].save()
    answer = sending(token).post("/api/v1/runs/", {}, content_type="application/json")
    assert answer.status_code == 403
    assert "scope" not in said(answer)


@pytest.mark.parametrize("scope", Scope.values)
def test_a_token_of_one_scope_opens_the_routes_of_that_scope_alone(scope, people):
    client = sending(make_token(person=people["administrator"], scopes=[scope])[1])
    client.raise_request_exception = False
    for name, route, view in routes():
        if name.startswith("api-") and "<" not in route and name not in ("api-schema", "api-docs"):
            action = getattr(view, "actions", {}).get("get")
            needed = RULES[rule_of_action(view.cls, action)].scope
            answer = client.get(reverse(name))
            assert (answer.status_code == 403) == (needed != scope), name


def test_the_document_says_of_every_operation_which_scope_it_needs():
    for path, operations in _schema()["paths"].items():
        for method, operation in operations.items():
            (scope,) = next(needed["knoxApiToken"] for needed in operation["security"] if "knoxApiToken" in needed)
            assert f"needs the scope `{scope}`" in operation["description"], (method, path)
            writes = method != "get" and scope == "read"
            assert not writes, (method, path)


def test_whatever_only_staff_may_change_needs_the_scope_run():
    for rule, (roles, scope, _) in RULES.items():
        own = rule in ("label", "submit")
        reads = rule.startswith("read-") or rule in ("be-signed-in", "freeze-views")
        assert scope == (rule if own else "read" if reads else "run"), (rule, roles)


def test_a_token_that_ended_or_never_was_is_refused_with_words(people):
    _made, token = make_token(person=people["curator"])
    Token.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    for text in (token, token, "evalsite_unknown", "\xe9"):
        answer = sending(text).get("/api/v1/runs/")
        assert answer.status_code == 401
        assert "has ended" in said(answer)


def test_a_person_is_told_once_a_week_before_a_token_ends_by_bell_and_mail(curator, mailing):
    make_token(person=curator, lasts=timedelta(days=30))
    make_token(person=curator, lasts=timedelta(days=5))  # who made it knows
    tell_of_ends()
    assert not Notice.objects.exists()
    Token.objects.filter(tell_at__isnull=False).update(tell_at=timezone.now())
    for _ in range(2):
        tell_of_ends()
    notice = Notice.objects.get(person=curator)
    assert "for the API ends on" in notice.text
    assert notice.link == PAGE
    assert Mail.objects.count() == 1
    loop.run(mail.send_waiting)


def test_tokens_of_before_stay_with_all_scopes_and_an_end_of_which_their_owners_are_told(curator, mailing):
    made, token = make_token(person=curator)
    soon = make_token(person=curator, lasts=timedelta(days=10))[0]
    Token.objects.update(scopes=[], tell_at=None)
    Token.objects.exclude(pk=soon.pk).update(expiry=None)
    migration("accounts", "tokens").give_ends(apps, None)
    made.refresh_from_db()
    assert made.scopes == Scope.values
    assert timedelta(days=89) < made.expiry - timezone.now() < timedelta(days=91)
    assert Token.objects.get(pk=soon.pk).expiry == soon.expiry
    assert sending(token).get("/api/v1/runs/").status_code == 200
    for _ in range(2):
        tell_of_ends()
    assert Notice.objects.count() == Mail.objects.count() == 2  # one for each
    Token.objects.filter(pk=made.pk).update(tell_at=timezone.now() - timedelta(days=2))
    tell_of_ends()
    assert Notice.objects.count() == 3  # and once more a week before


def test_ended_tokens_go_with_tidying(people):
    make_token(person=people["curator"])
    ended = make_token(person=people["curator"])[0]
    Token.objects.filter(pk=ended.pk).update(expiry=timezone.now() - timedelta(days=1))
    call_command("tidy")
    assert Token.objects.count() == 1
