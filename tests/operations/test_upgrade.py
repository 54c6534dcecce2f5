"""A data folder of 0.1.0, with data in it, taken over by today's code."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.judging.outside import Installation

KEPT = Path(__file__).resolve().parent.parent / "data" / "evalsite-0.1.0.tar.xz"
COUNTS = """
from annotations.models import Label
from bank.models import Item, Response, Sample, SampleImage
from judging.models import Judgment
answer = [table.objects.count() for table in (Sample, SampleImage, Response, Item, Judgment, Label)]
"""
CRITERIA = """
from bank import criteria
from bank.models import Sample
samples = list(Sample.objects.values_list("pk", flat=True))
texts = criteria.for_command(command="test", sample_ids=samples, reason="after an upgrade")
answer = sorted(one.text for rows in texts.values() for one in rows)
"""
# What `leaderboard models --benchmark shapes` of 0.1.0 gave.
BOARD = {"gamma": (9, 6, 4), "alpha": (8, 7, 5), "beta": (3, 7, 11)}


@pytest.fixture
def older(tmp_path):
    with tarfile.open(KEPT) as packed:
        packed.extractall(tmp_path / "data")
    return Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")


def test_it_is_migrated_with_its_data_and_its_numbers_stay(older):
    early = older.start("leaderboard", "models", "--benchmark", "shapes")
    assert "run `manage.py migrate`" in early.communicate()[1]
    told = older.manage("migrate")
    assert "Run `manage.py rotate_criteria_key` once" in told
    assert "for staff alone from now on" in told
    assert older.ask(COUNTS) == [12, 12, 36, 36, 72, 30]
    assert "The audit log is whole: 6 entries." in older.manage("verify_audit")
    rows = json.loads(older.manage("leaderboard", "models", "--benchmark", "shapes", "--format", "json"))
    assert {row["model"]: (row["wins"], row["ties"], row["losses"]) for row in rows} == BOARD
    older.manage("rotate_criteria_key")
    assert older.ask(CRITERIA) == sorted(f"Names the hidden colour number {number}." for number in range(12))
    older.manage("worker", "--until-idle")
    assert os.listdir(older.environment["EVALSITE_DATA"])
