"""The audit log is only added to, and what somebody does to it by hand shows."""

import threading

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection

from accounts import audit
from accounts.models import AuditEntry
from tests.access.world import PUBLIC

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def three(people):
    audit.record("sign-in", by=people["curator"], address="203.0.113.7")
    audit.record("sign-in-failed", name="nobody", address="203.0.113.8")
    return audit.record("role-changed", by=people["administrator"], about="curator", old="researcher", new="curator")


def by_hand(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def said():
    return [(one.number, one.why) for one in audit.broken()]


def test_entries_are_numbered_without_gaps_and_the_chain_holds(three):
    assert list(AuditEntry.objects.values_list("number", "action", "name")) == [
        (3, "role-changed", "administrator"),
        (2, "sign-in-failed", "nobody"),
        (1, "sign-in", "curator"),
    ]
    assert said() == []


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ("UPDATE accounts_auditentry SET address = '203.0.113.9' WHERE number = 2", 2),
        ("UPDATE accounts_auditentry SET action = 'sign-in' WHERE number = 2", 2),
        ("UPDATE accounts_auditentry SET details = '{}' WHERE number = 3", 3),
        ("DELETE FROM accounts_auditentry WHERE number = 1", 1),
        ("DELETE FROM accounts_auditentry WHERE number = 3", 3),
        ("DELETE FROM accounts_auditentry", 1),
    ],
)
def test_what_is_changed_or_taken_out_by_hand_shows(three, change, number):
    by_hand(change)
    assert [where for where, _ in said()][:1] == [number]


def test_entries_are_neither_changed_nor_deleted_by_the_programme(three):
    for attempt in (three.save, three.delete, AuditEntry.objects.all().delete):
        with pytest.raises(TypeError, match="append-only"):
            attempt()
    with pytest.raises(TypeError, match="append-only"):
        AuditEntry.objects.update(action="sign-in")


def test_what_is_not_in_the_list_of_actions_is_an_error():
    with pytest.raises(KeyError, match="danced"):
        audit.record("danced")


@pytest.mark.django_db(transaction=True)
def test_entries_of_many_at_once_stand_one_after_the_other():
    audit.record("sign-in", name="first")

    def add(number):
        audit.record("sign-in-failed", name=f"guess {number}")
        connection.close()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(AuditEntry.objects.values_list("number", flat=True)) == list(range(1, 10))
    assert said() == []


def test_what_leaves_with_criteria_and_what_a_new_key_takes_over_is_in_the_log(world, client_of, settings):
    page = f"/bank/benchmarks/{world.samples[PUBLIC].benchmark}/export/"
    form = {"what": "samples", "shape": "jsonl", "criteria": "on", "reason": "for the paper"}
    b"".join(client_of("curator").post(page, form).streaming_content)
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode(), *settings.CRITERIA_KEYS]
    call_command("rotate_criteria_key")
    rotated, exported = AuditEntry.objects.filter(action__in=["criteria-exported", "keys-rotated"])[:2]
    assert (rotated.action, rotated.command) == ("keys-rotated", "rotate_criteria_key")
    assert (exported.name, exported.details["reason"]) == ("curator", "for the paper")
    assert said() == []
