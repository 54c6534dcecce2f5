"""Known faults of the locked packages that evalsite runs on: ``python -m tests.audit PIP_AUDIT``. A fault fails.

It asks the package index. Where that does not answer, or knows nothing of faults, it says so and lets pass.
"""

import json
import subprocess
import sys
from typing import Any

LOCKED = ("requirements/base.txt", "requirements/parquet.txt")


def main(pip_audit: str) -> int:
    command = [pip_audit, "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json"]
    command += [part for path in LOCKED for part in ("-r", path)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"Not audited: {(done.stderr.strip().splitlines() or ['pip-audit said nothing'])[-1]}")
        return 0
    faults = [(one, fault) for one in packages for fault in one.get("vulns", [])]
    for one, fault in faults:
        mended = ", ".join(fault["fix_versions"]) or "no version yet"
        print(f"{one['name']} {one['version']}: {fault['id']}, mended in {mended}. {fault['description'][:300]}")
    unknown = sum("skip_reason" in one for one in packages)
    print(
        f"{len(packages) - unknown} packages audited: {len(faults)} known faults. Of {unknown} the index says nothing."
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
