"""The audit of packages: a known fault fails it, and so does an index that says nothing, unless that is expected."""

import json
import subprocess
from pathlib import Path

import pytest

from tests import audit

FAULTY = {
    "name": "aiohttp",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "description": "Reads what it should not."}],
}
SOUND = {"name": "django", "version": "5.2", "vulns": []}
UNKNOWN = {"name": "pillow", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("answer", "status", "offline", "words"),
    [
        ({"dependencies": [SOUND, FAULTY]}, 1, 1, "aiohttp 1.0: PYSEC-1, mended in 1.1. Reads what it should not."),
        ({"dependencies": [SOUND, UNKNOWN]}, 0, 0, "1 packages audited: 0 known faults. Of 1 the index says nothing."),
        ({"dependencies": [UNKNOWN, UNKNOWN]}, 2, 0, "NOT AUDITED: of 2 packages the index says nothing"),
        ({"dependencies": []}, 2, 0, "NOT AUDITED"),
        (None, 2, 0, "NOT AUDITED: no connection"),
    ],
)
def test_a_known_fault_fails_and_so_does_an_audit_of_nothing(
    answer, status, offline, words, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(audit, "LOCKED", ["requirements/sso.txt"])
    program = tmp_path / "pip-audit"
    said = f"cat <<'END'\n{json.dumps(answer)}\nEND" if answer else "echo no connection >&2; exit 1"
    program.write_text(f"#!/bin/sh\n{said}\n", encoding="utf-8")
    program.chmod(0o755)
    assert audit.main(str(program)) == status
    assert words in capsys.readouterr().out
    assert audit.main("--may-be-offline", str(program)) == offline
    assert words in capsys.readouterr().out


def test_every_pin_of_every_lock_is_audited_and_no_list_names_a_package_twice(tmp_path):
    """Two locks were left out once; then all were named together, and pip-audit refused the second version of a package
    in them: nothing was audited.
    """
    program, said = tmp_path / "pip-audit", tmp_path / "said"
    answer = json.dumps({"dependencies": [SOUND]})
    program.write_text(
        f"#!/bin/sh\nfor last; do :; done\ncat $last >> {said}\necho >> {said}\necho -- >> {said}\necho '{answer}'\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    assert audit.main(str(program)) == 0
    lists = [one.split() for one in said.read_text(encoding="utf-8").split("--\n") if one.strip()]
    for one in lists:
        names = [pin.partition("==")[0].partition("[")[0] for pin in one]
        assert len(names) == len(set(names))
    locks = subprocess.run(
        ["git", "ls-files", "requirements/*.txt"], capture_output=True, text=True, check=True
    ).stdout.split()
    pinned = {
        line.split()[0].rstrip("\\").partition(";")[0]
        for name in locks
        for line in Path(name).read_text(encoding="utf-8").splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    }
    assert {pin for one in lists for pin in one} == pinned
    assert {"requirements/sso.txt", "requirements/s3.txt"} <= set(locks)


@pytest.mark.parametrize(("target", "flag"), [("check", True), ("audit", False)])
def test_only_the_whole_check_lets_an_audit_of_nothing_pass(target, flag):
    planned = subprocess.run(["make", "-n", "-o", ".venv/dev", target], capture_output=True, text=True, check=True)
    (line,) = (line for line in planned.stdout.splitlines() if "tests.audit" in line)
    assert ("--may-be-offline" in line) is flag
