"""What is hashed over hidden text cannot be made without the installation's key, and wrong keys are found out."""

import hashlib

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

from accounts import secrets
from accounts.models import InstallationKey

pytestmark = pytest.mark.django_db


def test_the_same_message_gives_the_same_hash_for_one_purpose_and_no_other():
    assert secrets.keyed("prompt", "crimson") == secrets.keyed("prompt", "crimson")
    assert secrets.keyed("prompt", "crimson") != secrets.keyed("call", "crimson")
    assert secrets.keyed("prompt", "crimson") != hashlib.sha256(b"crimson").hexdigest()


def test_two_installations_hash_differently():
    here = secrets.keyed("prompt", "crimson")
    InstallationKey.objects.all().delete()
    secrets.forget()
    assert secrets.keyed("prompt", "crimson") != here


def test_hashes_stay_the_same_when_everything_goes_under_a_new_key(settings):
    before, old = secrets.keyed("prompt", "crimson"), settings.CRITERIA_KEYS[0]
    new = Fernet.generate_key().decode()
    settings.CRITERIA_KEYS = [new, old]
    call_command("rotate_criteria_key")
    settings.CRITERIA_KEYS = [new]
    secrets.forget()
    assert secrets.keyed("prompt", "crimson") == before


def test_keys_that_are_not_those_of_the_database_are_found_out_and_no_new_key_is_made(settings):
    before = secrets.keyed("prompt", "crimson")
    own, settings.CRITERIA_KEYS = settings.CRITERIA_KEYS, [Fernet.generate_key().decode()]
    with pytest.raises(secrets.WrongKeys, match="not the keys of this database"):
        secrets.check_keys()
    settings.CRITERIA_KEYS = own
    secrets.check_keys()
    assert secrets.keyed("prompt", "crimson") == before


def test_a_database_with_hidden_text_and_without_its_key_gets_none_under_other_keys(world, settings):
    InstallationKey.objects.all().delete()
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(secrets.WrongKeys):
        secrets.check_keys()
    assert not InstallationKey.objects.exists()
