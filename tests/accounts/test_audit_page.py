"""What people do with accounts, passwords and tokens is in the audit log, which administrators read."""

import csv
import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from accounts.models import AuditEntry

pytestmark = pytest.mark.django_db
LOG = "/people/audit/"


def entries(*columns):
    return list(AuditEntry.objects.order_by("number").values_list("action", *columns))


def test_signing_in_and_out_and_failing_to_is_kept_with_the_address(people):
    client = Client(REMOTE_ADDR="192.0.2.7")
    for password in ("wrong", "a-long-password"):
        client.post("/accounts/sign-in/", {"username": "curator", "password": password})
    client.post("/accounts/sign-out/")
    assert entries("name", "address") == [
        ("sign-in-failed", "curator", "192.0.2.7"),
        ("sign-in", "curator", "192.0.2.7"),
        ("sign-out", "curator", "192.0.2.7"),
    ]


def test_attempts_that_are_refused_fill_no_log(people):
    for _ in range(20):
        Client().post("/accounts/sign-in/", {"username": "curator", "password": "wrong"})
    assert AuditEntry.objects.count() == 11
    assert AuditEntry.objects.first().details == {"locked": True}


def test_accounts_roles_passwords_and_tokens_leave_who_did_what_to_whom(people, client_of):
    administrator, me = client_of("administrator"), client_of("researcher")
    administrator.post("/people/", {"name": "ada", "role": "annotator", "password": ""})
    page = f"/people/{people['curator'].pk}/"
    for sent in ({"do": "role", "role": "annotator"}, {"do": "password"}, {"do": "off"}):
        administrator.post(page, sent)
    me.post("/accounts/tokens/", {"scopes": ["read"], "ends": "30"})
    start = AuditEntry.objects.first().about
    me.post("/accounts/tokens/", {"revoke": start})
    new = {"old_password": "a-long-password", "new_password1": "another long one", "new_password2": "another long one"}
    me.post("/accounts/password/", new)
    assert entries("name", "about", "details") == [
        ("account-made", "administrator", "ada", {"role": "annotator"}),
        ("role-changed", "administrator", "curator", {"old": "curator", "new": "annotator"}),
        ("password-changed", "administrator", "curator", {}),
        ("account-switched", "administrator", "curator", {"now": "off"}),
        ("token-made", "researcher", start, {"scopes": ["read"]}),
        ("token-ended", "researcher", start, {}),
        ("password-changed", "researcher", "researcher", {}),
    ]


def test_what_commands_do_is_kept_by_their_names(db):
    call_command("make_user", "ada", role="curator", token=True, stdout=io.StringIO())
    call_command("make_user", "ada", role="researcher", stdout=io.StringIO())
    assert entries("command", "about") == [
        ("account-made", "make_user", "ada"),
        ("token-made", "make_user", "ada"),
        ("role-changed", "make_user", "ada"),
    ]


def test_administrators_filter_the_log_and_take_it_along(people, client_of):
    administrator = client_of("administrator")
    for name in ("ada", "=bo"):
        Client().post("/accounts/sign-in/", {"username": name, "password": "wrong"})
    administrator.post(f"/people/{people['curator'].pk}/", {"do": "role", "role": "annotator"})
    html = administrator.get(LOG).content.decode()
    assert html.index("changed a role</a>") < html.index("failed to sign in</a>")
    assert "ada" not in administrator.get(f"{LOG}?action=role-changed").content.decode().split("<tbody>")[1]
    assert "changed a role" in administrator.get(f"{LOG}?person=curator").content.decode().split("<tbody>")[1]
    assert "No entry matches" in administrator.get(f"{LOG}?until=2020-01-01").content.decode()
    assert "This filter was ignored" in administrator.get(f"{LOG}?since=yesterday").content.decode()
    lines = b"".join(administrator.get(f"{LOG}export/?action=sign-in-failed")).decode()
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert [row["who"] for row in rows] == ["ada", "'=bo"]
    assert all(len(row["digest"]) == 64 for row in rows)


def test_verify_audit_finds_what_was_changed_and_what_was_cut_off(people):
    def verify(*arguments):
        out = io.StringIO()
        call_command("verify_audit", *arguments, stdout=out)
        return out.getvalue()

    assert "empty" in verify()
    for _ in range(3):
        Client().post("/accounts/sign-in/", {"username": "ada", "password": "wrong"})
    noted = verify().splitlines()[-1]
    assert noted.startswith("3:")
    assert "whole" in verify("--expect", noted)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_auditentry SET name = 'eve' WHERE number = 2")
    with pytest.raises(CommandError, match="2: was changed"):
        verify()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_auditentry SET name = 'ada' WHERE number = 2")
        cursor.execute("DELETE FROM accounts_auditentry WHERE number = 3")
    with pytest.raises(CommandError, match="3: is not the entry that was there"):
        verify("--expect", noted)
