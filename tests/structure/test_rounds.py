"""`make test` is two rounds, and neither hides what the other finds."""

import os
import re
import subprocess

import pytest

from tests.judging.outside import ROOT

ROUNDS = {"pytest": "on SQLite", "tests.on_postgres": "on PostgreSQL"}


@pytest.mark.parametrize("failing", [(), ("pytest",), ("tests.on_postgres",), tuple(ROUNDS)])
def test_both_rounds_run_whatever_the_first_one_finds_and_either_fails_the_command(failing, tmp_path):
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    fails = "|".join(failing) or "none"
    python.write_text(f'#!/bin/sh\necho "ran $2"\ncase "$2" in {fails}) exit 3;; esac\n', encoding="utf-8")
    python.chmod(0o755)
    for name in ("made", "base", "dev"):  # all that the tests need is installed
        (tmp_path / name).touch()
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "test", f"VENV={tmp_path}"], cwd=ROOT, env=outer, capture_output=True, text=True, encoding="utf-8"
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("ran ")] == [f"ran {one}" for one in ROUNDS]
    assert (done.returncode != 0) == bool(failing)
    for one, words in ROUNDS.items():
        assert (f"round, {words}, failed" in done.stdout) == (one in failing)


# Which tests meet a module's own SQL, its locks on joined rows, or what it does otherwise on one of the databases.
TESTED_ON_BOTH = {
    "accounts/indexes.py": "structure/test_indexes.py",
    "accounts/jobs.py": "operations/test_jobs.py",
    "annotations/assignment/slots.py": "annotations/test_leases.py",
    "annotations/campaigns/auto_enqueue.py": "annotations/test_data.py",
    "annotations/labels/imports.py": "bank/test_stage.py",
    "bank/database/__init__.py": "bank/test_imports.py",
    "bank/database/bulk.py": "bank/test_bulk.py",
    "bank/intake/imports/context.py": "bank/test_stage.py",
    "bank/intake/imports/items.py": "bank/test_stage.py",
    "bank/intake/imports/provenance.py": "bank/test_imports.py",
    "bank/intake/imports/responses.py": "bank/test_stage.py",
    "bank/intake/imports/samples.py": "bank/test_stage.py",
    "bank/intake/imports/stage.py": "bank/test_stage.py",
    "bank/intake/imports/writer.py": "bank/test_import_processes.py",
    "bank/intake/uploads/staging.py": "bank/test_uploads_elsewhere.py",
    "bank/management/rotation.py": "bank/test_rotation.py",
    "bank/samples/editor.py": "bank/test_bank_pages.py",
    "bank/samples/listing.py": "bank/test_bank_pages.py",
    "bank/samples/reviews.py": "bank/test_bank_pages.py",
    "evalsite/backups/databases.py": "operations/test_backup.py",
    "evalsite/backups/making.py": "operations/test_backup.py",
    "evalsite/backups/restoring.py": "operations/test_backup.py",
    "evalsite/checks.py": "operations/test_doctor.py",
    "evalsite/doctor.py": "operations/test_doctor.py",
    "evalsite/queues.py": "operations/test_jobs.py",
    "evalsite/tidying.py": "operations/test_tidy.py",
    "judging/judgments/imports.py": "bank/test_stage.py",
    "judging/judgments/releases.py": "access/test_analyses.py",
    "judging/recipes/evaluations.py": "judging/test_recipes.py",
    "leaderboard/kept/counters.py": "leaderboard/test_unchanged.py",
}
BY_ITSELF = {  # tested against a PostgreSQL of their own in the first round
    "evalsite/keys.py": "operations/test_start.py",
    "evalsite/management/commands/migrate.py": "operations/test_start.py",
    "evalsite/to_postgres.py": "operations/test_to_postgres.py",
}


def test_what_has_sql_of_its_own_is_tested_on_both_databases():
    own_sql = re.compile(
        r"\.vendor\b|\bstage\.(do|ask|number)\(|\.cursor\(|\.execute\(|\.raw\(statement|\bRawSQL\b|skip_locked|select_for_update\((of|\)\.select_related)"
    )
    rooms = ("accounts", "annotations", "bank", "evalsite", "judging", "leaderboard", "stats")
    found = {
        str(path.relative_to(ROOT))
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if "migrations" not in path.parts and own_sql.search(path.read_text(encoding="utf-8"))
    }
    assert found == TESTED_ON_BOTH.keys() | BY_ITSELF.keys()
    for tests in TESTED_ON_BOTH.values():
        assert "pytest.mark.both_databases" in (ROOT / "tests" / tests).read_text(encoding="utf-8"), tests
