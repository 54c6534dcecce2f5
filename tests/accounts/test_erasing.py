"""A person is erased: nothing in the database names them, and nothing that they did is gone."""

import json

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, models

from accounts import audit, notices, second_factor
from accounts.actions import make_account, set_role
from accounts.mail import queue
from accounts.models import AuditEntry, Mail, SecondFactor, Session, SignOn, User
from accounts.tokens import make_token
from annotations.assignment.leases import next_assignment
from annotations.campaigns.invitations import invite
from annotations.campaigns.members import add_annotators, make_annotator
from annotations.labels.actions import submit_label
from annotations.models import Assignment, Campaign, Label
from bank import database
from tests.access.world import PUBLIC
from tests.markup import flat

pytestmark = pytest.mark.django_db
NAME, ADDRESS = "Zerlinde.Quast", "zerlinde@quast.example"


def named_in_the_database():
    """Every table and column of text or JSON in which the name or the address stands, in whatever case."""
    found = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            for field in model._meta.local_concrete_fields:
                if not isinstance(
                    field, models.CharField | models.TextField | models.JSONField | models.GenericIPAddressField
                ):
                    continue
                table, column = model._meta.db_table, field.column
                query = f'SELECT count(*) FROM "{table}" WHERE lower(CAST("{column}" AS text)) LIKE %s'
                for secret in (NAME, ADDRESS, "203.0.113.77"):
                    cursor.execute(query, [f"%{secret.lower()}%"])
                    if cursor.fetchone()[0]:
                        found.append(f"{table}.{column}")
    return found


@pytest.fixture
def known(world, people, client):
    """Somebody who has labelled, holds an item, was told things, and stands in the audit log in every way."""
    person, _ = make_account(name=NAME, role="annotator", password="a-long-password", email=ADDRESS)
    campaign = world.campaigns[PUBLIC]
    Campaign.objects.filter(pk=campaign.pk).update(overlap=5)
    add_annotators(campaign=campaign, people=[person])
    now = database.now()
    label = submit_label(
        assignment=next_assignment(campaign=campaign, annotator=make_annotator(person), now=now),
        verdict={"choice": "left"},
        now=now,
        idempotency_key="one",
    )
    client.post("/accounts/sign-in/", {"username": NAME.upper(), "password": "wrong"}, REMOTE_ADDR="203.0.113.77")
    client.post("/accounts/sign-in/", {"username": NAME, "password": "a-long-password"}, REMOTE_ADDR="203.0.113.77")
    make_token(person=person, how="make_user")
    notices.tell(person, key="one", text="Something", link="/")
    queue(ADDRESS, "Something", "else")
    SignOn.objects.create(person=person, issuer="https://acme.example", subject=ADDRESS)
    second_factor.begin(person)
    audit.record("second-factor-ended", by=people["administrator"], about=NAME)
    set_role(person=person, role="researcher", by=people["administrator"])
    invite(campaign=campaign, by=people["curator"], days=3, now=now, emails=[ADDRESS])
    return person, label


def as_it_was(label_of):
    labels = [(row.pk, row.verdict(), row.annotator.pseudonym, row.excluded) for row in Label.objects.order_by("pk")]
    entries = list(AuditEntry.objects.order_by("number").values_list("number", "action", "who", "digest"))
    return labels, entries


def test_nothing_names_an_erased_person_and_what_they_did_stays(known, people, client_of, client):
    person, label = known
    held = named_in_the_database()
    assert {"accounts_user.username", "accounts_auditentry.about", "annotations_annotator.name"} <= set(held)
    labels, entries = as_it_was(label)
    board = json.dumps(client_of("researcher").get(f"/api/v1/leaderboards/{PUBLIC}/models/").json())
    page = f"/people/{person.pk}/"
    administrator = client_of("administrator")
    assert "Type the name" in flat(administrator.post(page, {"do": "erase", "name": "somebody"}, follow=True))
    assert named_in_the_database() == held
    said = flat(administrator.post(page, {"do": "erase", "name": NAME}, follow=True))
    assert named_in_the_database() == []
    assert NAME not in said
    now_labels, now_entries = as_it_was(label)
    assert now_labels == labels
    assert now_entries[: len(entries)] == entries
    assert [entry[1] for entry in now_entries[len(entries) :]] == ["account-erased"]
    assert list(audit.broken()) == []
    assert json.dumps(client_of("researcher").get(f"/api/v1/leaderboards/{PUBLIC}/models/").json()) == board
    gone = User.objects.get(pk=person.pk)
    assert (gone.is_active, gone.email, gone.has_usable_password()) == (False, "", False)
    assert not Assignment.objects.filter(annotator__person=gone, state="leased").exists()
    assert not Mail.objects.exists()
    assert not SignOn.objects.exists()
    assert not SecondFactor.objects.filter(person=gone).exists()
    assert not any(row.get_decoded().get("_auth_user_id") == str(gone.pk) for row in Session.objects.all())
    assert client.get("/accounts/settings/").status_code == 302
    make_account(name=NAME, role="annotator")  # the name is free


def test_what_is_changed_by_hand_after_an_erasure_still_shows(known, people):
    call_command("erase_person", NAME, yes=True)
    changed = AuditEntry.objects.filter(action="role-changed").get()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE accounts_auditentry SET details = '{{}}' WHERE number = {changed.number}")
    assert [one.number for one in audit.broken()] == [changed.number]


def test_the_last_administrator_and_oneself_are_not_erased(people, client_of):
    own = f"/people/{people['administrator'].pk}/"
    client_of("administrator").post(own, {"do": "erase", "name": "administrator"})
    with pytest.raises(CommandError, match="one always remains"):
        call_command("erase_person", "administrator", yes=True)
    with pytest.raises(CommandError, match="Nothing was erased"):  # nobody is asked where there is no terminal
        call_command("erase_person", "curator")
    with pytest.raises(CommandError, match="no account"):
        call_command("erase_person", "nobody")
    assert User.objects.filter(username="administrator", is_active=True).exists()
