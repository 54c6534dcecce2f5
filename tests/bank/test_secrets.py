"""What is hidden is hidden at rest, and who reads it leaves a trace."""

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import FieldError, PermissionDenied
from django.core.management import call_command
from django.db import connection

import bank.criteria
from accounts.crypto import Unreadable
from bank.criteria import CriteriaAccess, Criterion
from bank.criteria.tables import Closed
from bank.models import Sample
from tests import forks
from tests.hidden import change, criteria

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
        list(Criterion.unguarded.all())


@pytest.mark.django_db
def test_a_new_key_in_front_still_reads_what_the_old_one_wrote(small, settings):
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode(), *settings.CRITERIA_KEYS]
    assert criteria("1").get().text == "Three boats."


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
        Criterion.unguarded.filter(text="Three boats.").exists()
    with pytest.raises(FieldError):
        Criterion.unguarded.filter(text__contains="boats").exists()


def start(**environment):
    """Load the settings in a process of its own."""
    keep = {name: value for name, value in __import__("os").environ.items() if name in ("PATH", "HOME")}
    return forks.run(["-c", "import evalsite.settings"], environment=keep | environment)


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


def rows_of(table, *names):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(names)} FROM {table}")
        return cursor.fetchall()


@pytest.mark.django_db
def test_keys_categories_and_weights_of_criteria_are_nowhere_in_the_database_either(small):
    change(Criterion.unguarded.all(), category="zq-category", weight=3.75)
    for key, category, weight, hashed in rows_of("bank_criterion", "key", "category", "weight", "key_hash"):
        assert key not in ("1", "2")
        assert "zq-category" not in category  # two letters are in random base64 now and then
        assert "3.75" not in str(weight)
        assert len(hashed) == 64
    assert {(row.category, row.weight) for row in Criterion.unguarded.all()} == {("zq-category", 3.75)}


@pytest.mark.django_db
@pytest.mark.check("J6")
def test_the_hidden_tables_refuse_whoever_asks_them_past_their_readers(small, people):
    """The offending import, as somebody would write it: it finds a closed table."""
    from bank.criteria import Criterion as hidden
    from bank.criteria import CriterionRevision

    for table in (hidden, CriterionRevision):
        for ask in (
            table.objects.all,
            table.objects.count,
            table.objects.first,
            lambda t=table: t.objects.filter(pk=1),
        ):
            with pytest.raises(Closed, match="read by the functions of"):
                ask()
    sample = small.samples.get(key="a")
    assert bank.criteria.for_staff(user=people["curator"], samples=[sample], how="page")
    with pytest.raises(Closed):  # a reader closes behind itself
        hidden.objects.all()
    # What Django itself does with rows goes on working.
    call_command("dumpdata", "bank.criterion", stdout=(out := io.StringIO()))
    assert "Three boats." in out.getvalue()
    sample.delete()
    assert criteria().count() == 0


@pytest.mark.check("J6")
def test_bank_models_hands_out_no_hidden_table():
    from bank import models

    assert {"Criterion", "CriterionRevision"}.isdisjoint(vars(models))


@pytest.mark.check("J6")
def test_an_import_of_the_hidden_tables_breaks_the_contract(tmp_path):
    """A copy of the code with the offending line in it: import-linter names it."""
    for name in ("accounts", "annotations", "bank", "evalsite", "judging", "leaderboard", "stats", "pyproject.toml"):
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "demo"))
        else:
            shutil.copy(place, tmp_path / name)
    offender = tmp_path / "leaderboard" / "pages" / "search.py"
    offender.write_text("from bank.criteria.tables import Criterion\n" + offender.read_text(encoding="utf-8"))
    lint = Path(sys.executable).parent / "lint-imports"
    said = subprocess.run([lint, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": "."})
    assert said.returncode == 1
    assert "leaderboard.pages.search -> bank.criteria" in said.stdout
