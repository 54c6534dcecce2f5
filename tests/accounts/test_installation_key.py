"""What is hashed over hidden text cannot be made without the installation's key, and wrong keys are found out."""

import hashlib

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

from accounts import installation_key
from accounts.models import InstallationKey

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_the_same_message_gives_the_same_hash_for_one_purpose_and_no_other():
    assert installation_key.keyed("prompt", "crimson") == installation_key.keyed("prompt", "crimson")
    assert installation_key.keyed("prompt", "crimson") != installation_key.keyed("call", "crimson")
    assert installation_key.keyed("prompt", "crimson") != hashlib.sha256(b"crimson").hexdigest()


def test_two_installations_hash_differently():
    here = installation_key.keyed("prompt", "crimson")
    InstallationKey.objects.all().delete()
    installation_key.forget()
    assert installation_key.keyed("prompt", "crimson") != here


def test_hashes_stay_the_same_when_everything_goes_under_a_new_key(settings):
    before, old = installation_key.keyed("prompt", "crimson"), settings.CRITERIA_KEYS[0]
    new = Fernet.generate_key().decode()
    settings.CRITERIA_KEYS = [new, old]
    call_command("rotate_criteria_key")
    settings.CRITERIA_KEYS = [new]
    installation_key.forget()
    assert installation_key.keyed("prompt", "crimson") == before


def test_keys_that_are_not_those_of_the_database_are_found_out_and_no_new_key_is_made(settings):
    before = installation_key.keyed("prompt", "crimson")
    own, settings.CRITERIA_KEYS = settings.CRITERIA_KEYS, [Fernet.generate_key().decode()]
    with pytest.raises(installation_key.WrongKeys, match="not the keys of this database"):
        installation_key.check_keys()
    settings.CRITERIA_KEYS = own
    installation_key.check_keys()
    assert installation_key.keyed("prompt", "crimson") == before


def test_a_database_with_hidden_text_and_without_its_key_gets_none_under_other_keys(world, settings):
    InstallationKey.objects.all().delete()
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(installation_key.WrongKeys):
        installation_key.check_keys()
    assert not InstallationKey.objects.exists()


def test_checking_keys_never_leaves_a_moment_without_one(monkeypatch):
    """A run that begins checks them, while calls of other runs hash: those may not wait for the database."""
    installation_key.keyed("prompt", "crimson")
    read = installation_key._stored_key
    without = []

    def reading():
        without.append(installation_key._kept is None)
        return read()

    monkeypatch.setattr(installation_key, "_stored_key", reading)
    installation_key.check_keys()
    assert without == [False]
