"""Old keys can be thrown away: everything encrypted goes under the newest, whatever table it is in."""

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.crypto import Cipher, EncryptedTextField
from bank.criteria import Criterion
from bank.management import rotation
from judging.models import Attempt, Judgment

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def tokens():
    """Every stored token, by table and key."""
    found = {}
    for column in rotation.columns():
        table, name = str(column).split(".")
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT id, "{name}" FROM {table} WHERE "{name}" <> \'\'')
            found |= {(table, name, pk): token for pk, token in cursor.fetchall()}
    return found


def texts():
    return (
        [(row.pk, row.key, row.category, row.weight, row.text) for row in Criterion.unguarded.order_by("pk")],
        list(Judgment.objects.order_by("pk").values_list("pk", "analysis", "raw")),
        list(Attempt.objects.order_by("pk").values_list("pk", "detail")),
    )


def test_every_encrypted_field_of_every_model_is_found():
    expected = {
        (model, one.name)
        for model in apps.get_models(include_auto_created=True)
        for one in model._meta.get_fields()
        if isinstance(one, EncryptedTextField)
    }
    assert {(column.model, column.name) for column in rotation.columns()} == expected
    assert {"bank_criterion.text", "judging_judgment.analysis", "judging_judgment.raw", "judging_attempt.detail"} <= {
        str(column) for column in rotation.columns()
    }


def test_all_texts_go_under_the_newest_key_and_read_the_same(world, settings, capsys):
    before, old = texts(), tokens()
    old_key, new_key = settings.CRITERIA_KEYS[0], Fernet.generate_key().decode()
    settings.CRITERIA_KEYS = [new_key, old_key]
    call_command("rotate_criteria_key", dry_run=True)
    assert f"Would encrypt {len(old)} texts again. Nothing was written." in capsys.readouterr().out
    assert tokens() == old
    call_command("rotate_criteria_key")
    said = capsys.readouterr().out
    assert f"Encrypted {len(old)} texts" in said
    assert "the older ones can be taken out" in said
    assert "zq7" not in said
    settings.CRITERIA_KEYS = [new_key]
    assert texts() == before
    new = tokens()
    assert new.keys() == old.keys()
    assert not set(new.values()) & set(old.values())
    call_command("rotate_criteria_key")
    assert tokens() == new


def test_killed_in_the_middle_it_goes_on_from_there(world, settings, monkeypatch):
    monkeypatch.setattr(rotation, "BATCH", 3)
    before, old = texts(), tokens()
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode(), *settings.CRITERIA_KEYS]

    def killed(done):
        if done >= 7:
            raise SystemExit

    with pytest.raises(SystemExit):
        rotation.rotate(killed)
    middle = tokens()
    changed = {place for place in old if middle[place] != old[place]}
    assert 7 <= len(changed) < len(old)
    assert texts() == before
    assert rotation.rotate() == len(old) - len(changed)
    assert {place: tokens()[place] for place in changed} == {place: middle[place] for place in changed}
    assert sum(count.older for count in rotation.survey().values()) == 0
    assert texts() == before


def test_what_no_key_opens_stops_it_before_anything_is_written(world, settings):
    wrong = Criterion.unguarded.order_by("pk").first()
    with connection.cursor() as cursor:
        foreign = Cipher([Fernet.generate_key().decode()]).seal("a secret", "bank_criterion.text", bytes(16))
        cursor.execute("UPDATE bank_criterion SET text = %s WHERE id = %s", [foreign, wrong.pk])
    old = tokens()
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode(), *settings.CRITERIA_KEYS]
    with pytest.raises(CommandError) as refused:
        call_command("rotate_criteria_key")
    assert refused.value.returncode == 1
    assert "1 in bank_criterion.text" in str(refused.value)
    assert "Nothing was written" in str(refused.value)
    assert tokens() == old
