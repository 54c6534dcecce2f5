"""What is hidden is hidden at rest, and who reads it leaves a trace."""

import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import FieldError, PermissionDenied
from django.db import connection

import bank.criteria
from accounts.crypto import Unreadable
from bank.criteria import CriteriaAccess, Criterion
from bank.models import Sample

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.django_db
def test_the_text_of_a_criterion_is_nowhere_in_the_database(small):
    with connection.cursor() as cursor:
        cursor.execute("SELECT text FROM bank_criterion")
        stored = [row[0] for row in cursor.fetchall()]
    assert len(stored) == 2
    assert not any("boats" in text for text in stored)


@pytest.mark.django_db
def test_a_changed_or_foreign_text_is_an_error_and_not_shown_as_it_is(small, settings):
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(Unreadable):
        list(Criterion.objects.all())


@pytest.mark.django_db
def test_a_new_key_in_front_still_reads_what_the_old_one_wrote(small, settings):
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode(), *settings.CRITERIA_KEYS]
    assert Criterion.objects.get(key="1").text == "Three boats."


@pytest.mark.django_db
@pytest.mark.check("A15")
def test_only_curators_and_administrators_read_criteria_and_each_reading_is_logged_once(small, people):
    sample = small.samples.get(key="a")
    for role in ("annotator", "researcher"):
        with pytest.raises(PermissionDenied):
            bank.criteria.for_staff(user=people[role], samples=[sample], how="page")
    assert not CriteriaAccess.objects.exists()
    found = bank.criteria.for_staff(user=people["curator"], samples=[sample], how="page")
    assert [text.text for text in found[sample.pk]] == ["Three boats.", "Says where they lie."]
    access = CriteriaAccess.objects.get()
    assert (access.who, access.how, access.sample_ids) == (people["curator"], "page", [sample.pk])


@pytest.mark.django_db
@pytest.mark.check("A5")
def test_no_filter_leads_from_a_sample_to_its_criteria():
    for lookup in ("criterion__text", "criteria__text", "criterion"):
        with pytest.raises(FieldError):
            Sample.objects.filter(**{lookup: "x"})
    with pytest.raises(FieldError):
        Criterion.objects.filter(text="Three boats.").exists()
    with pytest.raises(FieldError):
        Criterion.objects.filter(text__contains="boats").exists()


def start(**environment):
    """Load the settings in a process of its own."""
    keep = {name: value for name, value in __import__("os").environ.items() if name in ("PATH", "HOME")}
    command = [sys.executable, "-c", "import evalsite.settings"]
    return subprocess.run(command, cwd=ROOT, env=keep | environment, capture_output=True, text=True, timeout=60)


@pytest.mark.check("D9")
def test_production_does_not_start_without_its_secrets_and_says_what_to_set(tmp_path):
    production = {"EVALSITE_DATA": str(tmp_path), "ALLOWED_HOSTS": "example.org"}
    refused = start(**production)
    assert refused.returncode != 0
    assert "SECRET_KEY is not set" in refused.stderr
    refused = start(**production, SECRET_KEY="k" * 50)
    assert "CRITERIA_KEYS is not set" in refused.stderr
    refused = start(**production, SECRET_KEY="k" * 50, CRITERIA_KEYS="password")
    assert "CRITERIA_KEYS: key 1 is not 32 bytes" in refused.stderr
    assert start(**production, SECRET_KEY="k" * 50, CRITERIA_KEYS=Fernet.generate_key().decode()).returncode == 0
    assert not (tmp_path / "local-keys.env").exists()


def test_a_local_installation_makes_its_keys_once_for_its_owner_alone(tmp_path):
    assert start(EVALSITE_DATA=str(tmp_path)).returncode == 0
    path = tmp_path / "local-keys.env"
    first = path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert start(EVALSITE_DATA=str(tmp_path)).returncode == 0
    assert path.read_text() == first
