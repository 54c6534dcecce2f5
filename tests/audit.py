"""Known faults of every package that a file in ``requirements/`` locks: ``python -m tests.audit PIP_AUDIT``.

It asks the package index. Exit status 1: a known fault; 2: the index knew none of the packages, so nothing was audited.
``--may-be-offline`` lets the latter pass, loudly: for ``make check``, which also runs where no index can be asked.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LOCKED = tuple(sorted(map(str, Path("requirements").glob("*.txt"))))
PIN = re.compile(r"^[\w.-]+(?:\[[\w,.-]*\])?==[^\s;\\]+", re.MULTILINE)


def main(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="tests.audit")
    parser.add_argument("pip_audit")
    parser.add_argument("--may-be-offline", action="store_true")
    options = parser.parse_args(arguments)
    return audit(options.pip_audit, unaudited=0 if options.may_be_offline else 2)


def pins() -> list[list[str]]:
    """``name==version`` of every lock, in as many lists as a package has versions: pip-audit takes one of each."""
    rounds: list[dict[str, str]] = []
    for pin in sorted({pin for path in LOCKED for pin in PIN.findall(Path(path).read_text(encoding="utf-8"))}):
        name = pin.partition("==")[0].partition("[")[0]
        free = next((one for one in rounds if name not in one), None)
        if free is None:
            rounds.append(free := {})
        free[name] = pin
    return [[*one.values()] for one in rounds]


def audit(pip_audit: str, *, unaudited: int) -> int:
    """The exit status, ``unaudited`` where the index knew nothing."""
    packages: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        for number, pinned in enumerate(pins()):
            listed = Path(folder, f"{number}.txt")
            listed.write_text("\n".join(pinned), encoding="utf-8")
            command = [pip_audit, "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json", "-r", listed]
            done = subprocess.run(command, capture_output=True, text=True)
            try:
                packages += json.loads(done.stdout)["dependencies"]
            except (ValueError, KeyError):
                return _not_audited((done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1], unaudited)
    faults = [(one, fault) for one in packages for fault in one.get("vulns", [])]
    for one, fault in faults:
        mended = ", ".join(fault["fix_versions"]) or "no version yet"
        print(f"{one['name']} {one['version']}: {fault['id']}, mended in {mended}. {fault['description'][:300]}")
    unknown = sum("skip_reason" in one for one in packages)
    if unknown == len(packages):
        return _not_audited(f"of {unknown} packages the index says nothing", unaudited)
    print(
        f"{len(packages) - unknown} packages audited: {len(faults)} known faults. Of {unknown} the index says nothing."
    )
    return 1 if faults else 0


def _not_audited(why: str, status: int) -> int:
    print(f"*** NOT AUDITED: {why}. Known faults of the packages were NOT looked for. ***")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
