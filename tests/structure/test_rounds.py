"""`make test` is two rounds, and neither hides what the other finds."""

import os
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
