"""Two-factor authentication: set up, asked for at each sign-in, required of staff, lost and ended."""

import base64
import re
import time

import pytest
from django.core.management import call_command
from django.test import Client

from accounts import second_factor
from accounts.models import AuditEntry, SecondFactor, Session, User
from accounts.tokens import make_token
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
PAGE, SECOND, PASSWORD = "/accounts/codes/", "/accounts/code/", "a-long-password"


def code_of(person, ahead=0):
    secret = SecondFactor.objects.get(person=person).secret
    return second_factor.code_at(secret, int(time.time()) // 30 + ahead)


def sign_in(name="curator", **more):
    client = Client()
    return client, client.post("/accounts/sign-in/", {"username": name, "password": PASSWORD} | more)


@pytest.fixture(autouse=True)
def no_step_ends(monkeypatch):
    """The clock stands, in the middle of a step: else a code is too old where its step ends while it is typed."""
    now = time.time() // 30 * 30 + 15
    monkeypatch.setattr(time, "time", lambda: now)


@pytest.fixture
def curator(people):
    return people["curator"]


@pytest.fixture
def with_codes(curator):
    """Somebody who has set codes up, and the recovery codes."""
    client = sign_in()[0]
    client.get(PAGE)
    page = flat(client.post(PAGE, {"code": code_of(curator, -1)}))
    return client, re.findall(r"<li[^>]*>([a-z2-7]{10})</li>", page)


@pytest.mark.parametrize(
    ("at", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
@pytest.mark.one_database
def test_codes_are_those_of_the_standard(at, code):
    """RFC 6238, appendix B, with the last six of its eight digits."""
    assert second_factor.code_at(base64.b32encode(b"12345678901234567890").decode(), at // 30) == code


def test_the_key_is_shown_until_a_code_of_it_is_typed_and_stored_sealed(curator):
    client, _ = sign_in()
    page = flat(client.get(PAGE))
    secret = SecondFactor.objects.get().secret
    assert secret in page
    assert f"otpauth://totp/evalsite%20testserver%3Acurator?secret={secret}&amp;issuer=evalsite%20testserver" in page
    assert "data:image/svg+xml;base64," in page
    assert "wrong or was used" in flat(client.post(PAGE, {"code": "000000"}))
    assert second_factor.of(curator) is None
    assert sign_in()[1].url != SECOND
    done = flat(client.post(PAGE, {"code": code_of(curator)}))
    assert len(re.findall(r"<li[^>]*>[a-z2-7]{10}</li>", done)) == 10
    assert secret not in flat(client.get(PAGE))
    assert AuditEntry.objects.filter(action="second-factor-made", name="curator").exists()


def test_the_password_alone_signs_nobody_in_any_more(with_codes, curator):
    client, came = sign_in(next="/campaigns/")
    assert came.url == SECOND
    assert client.get("/campaigns/").status_code == 302
    assert not AuditEntry.objects.filter(action="sign-in", number__gt=3).exists()
    assert client.post(SECOND, {"code": "123456"}).status_code == 200
    assert client.get("/campaigns/").status_code == 302
    came = client.post(SECOND, {"code": code_of(curator)})
    assert came.url == "/campaigns/"
    assert client.get("/campaigns/").status_code == 200


def test_a_code_works_once_whoever_types_it(with_codes, curator):
    code = code_of(curator)
    first, second = sign_in()[0], sign_in()[0]
    assert first.post(SECOND, {"code": code}).status_code == 302
    assert second.post(SECOND, {"code": code}).status_code == 200
    assert second.post(SECOND, {"code": code_of(curator, -1)}).status_code == 200  # nor one from before it
    assert second.post(SECOND, {"code": f" {code_of(curator, 1)[:3]} {code_of(curator, 1)[3:]} "}).status_code == 302


def test_codes_that_are_too_old_or_too_early_are_wrong(with_codes, curator):
    for ahead in (-2, 2, 100):
        assert sign_in()[0].post(SECOND, {"code": code_of(curator, ahead)}).status_code == 200


def test_a_recovery_code_works_once_and_new_ones_end_the_old(with_codes, curator):
    client, (one, two, *_) = with_codes
    assert one not in str(SecondFactor.objects.get().recovery)
    assert sign_in()[0].post(SECOND, {"code": one.upper()}).status_code == 302
    assert sign_in()[0].post(SECOND, {"code": one}).status_code == 200
    assert "9 recovery codes are left" in flat(client.get(PAGE))
    new = flat(client.post(PAGE, {"do": "recovery", "code": code_of(curator)}))
    assert len(re.findall(r"<li[^>]*>[a-z2-7]{10}</li>", new)) == 10
    assert sign_in()[0].post(SECOND, {"code": two}).status_code == 200


def test_tries_are_limited_by_whom_they_are_for(with_codes, curator):
    client, _ = sign_in()
    for _number in range(10):
        client.post(SECOND, {"code": "111111"})
    assert "Too many attempts" in flat(client.post(SECOND, {"code": code_of(curator)}))
    assert client.get("/campaigns/").status_code == 302
    assert AuditEntry.objects.filter(action="second-factor-failed", name="curator").count() == 10


def test_the_second_step_ends_after_ten_minutes_with_the_account_and_with_the_password(with_codes, curator):
    def refused(change):
        client, _ = sign_in()
        change(client)
        return "took too long" in flat(client.post(SECOND, {"code": code_of(curator)}))

    def late(client):
        session = client.session
        session["sign-in"] |= {"at": time.time() - 601}
        session.save()

    assert refused(late)
    assert refused(lambda client: User.objects.filter(pk=curator.pk).update(is_active=False))
    User.objects.filter(pk=curator.pk).update(is_active=True)

    def other_password(client):
        curator.set_password("another-long-password")
        curator.save()

    assert refused(other_password)
    assert "took too long" in flat(Client().get(SECOND))


def test_setting_up_ends_other_sessions_and_ending_takes_a_code(curator):
    other = sign_in()[0]
    client = sign_in()[0]
    client.get(PAGE)
    client.post(PAGE, {"code": code_of(curator)})
    assert other.get("/campaigns/").status_code == 302
    assert client.get("/campaigns/").status_code == 200
    client.post(PAGE, {"do": "remove", "code": "000000"})
    assert second_factor.of(curator)
    assert client.post(PAGE, {"do": "remove", "code": code_of(curator, 1)}).url == "/accounts/settings/"
    assert second_factor.of(curator) is None
    assert sign_in()[1].url != SECOND


class TestRequired:
    @pytest.fixture(autouse=True)
    def required(self, settings):
        settings.SECOND_FACTOR_FOR_STAFF = True

    def test_staff_set_it_up_before_anything_else(self, curator):
        client, _ = sign_in()
        for path in ("/", "/bank/", "/campaigns/", "/accounts/settings/", "/accounts/tokens/", "/leaderboards/"):
            assert client.get(path).headers["Location"] == PAGE, path
        refused = client.get("/api/v1/runs/")
        assert (refused.status_code, "second factor" in refused.json()["detail"]) == (403, True)
        assert "before you go on" in flat(client.get(PAGE))
        client.post(PAGE, {"code": code_of(curator)})
        assert client.get("/bank/").status_code == 200
        client.post(PAGE, {"do": "remove", "code": code_of(curator, 1)})
        assert second_factor.of(curator)  # who must have it does not end it

    def test_who_signs_in_with_a_code_goes_on_at_once(self, with_codes, curator):
        client, _ = sign_in()
        client.post(SECOND, {"code": code_of(curator)})
        assert client.get("/bank/").status_code == 200

    def test_others_and_tokens_are_not_asked(self, people, curator):
        client, _ = sign_in("researcher")
        assert client.get("/judging/").status_code == 200
        script = Client(headers={"Authorization": f"Token {make_token(person=curator)[1]}"})
        assert script.get("/api/v1/runs/").status_code == 200

    def test_who_becomes_staff_is_asked_from_the_next_request_on(self, people):
        client, _ = sign_in("researcher")
        User.objects.filter(username="researcher").update(role="curator")
        assert client.get("/judging/").headers["Location"] == PAGE

    def test_they_can_sign_out(self, curator):
        client, _ = sign_in()
        assert client.post("/accounts/sign-out/").url == "/"


def test_an_administrator_ends_them_and_so_does_a_command(with_codes, client_of, curator):
    page = f"/people/{curator.pk}/"
    administrator = client_of("administrator")
    assert "End the codes" in flat(administrator.get(page))
    assert "by password alone" in flat(administrator.post(page, {"do": "codes"}, follow=True))
    assert with_codes[0].get("/campaigns/").status_code == 302  # signed out
    assert sign_in()[1].url != SECOND
    entry = AuditEntry.objects.filter(action="second-factor-ended").get()
    assert (entry.name, entry.about) == ("administrator", "curator")
    client = sign_in()[0]
    client.get(PAGE)
    client.post(PAGE, {"code": code_of(curator)})
    call_command("make_user", "curator", "--role", "curator", "--no-codes")
    assert second_factor.of(curator) is None
    assert not any(row.get_decoded().get("_auth_user_id") == str(curator.pk) for row in Session.objects.all())
