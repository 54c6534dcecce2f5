"""The audit of packages: a known fault fails the check, an index that says nothing does not."""

import json

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
    ("answer", "status", "words"),
    [
        ({"dependencies": [SOUND, FAULTY]}, 1, "aiohttp 1.0: PYSEC-1, mended in 1.1. Reads what it should not."),
        ({"dependencies": [SOUND, UNKNOWN]}, 0, "1 packages audited: 0 known faults. Of 1 the index says nothing."),
        (None, 0, "Not audited: no connection"),
    ],
)
def test_a_known_fault_fails_and_an_index_that_says_nothing_does_not(answer, status, words, tmp_path, capsys):
    program = tmp_path / "pip-audit"
    said = f"cat <<'END'\n{json.dumps(answer)}\nEND" if answer else "echo no connection >&2; exit 1"
    program.write_text(f"#!/bin/sh\n{said}\n", encoding="utf-8")
    program.chmod(0o755)
    assert audit.main(str(program)) == status
    assert words in capsys.readouterr().out
