"""What is installed is what the lock names: an audit of the lock is one of what runs."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REQUIREMENTS = Path(__file__).resolve().parent.parent.parent / "requirements"


@pytest.mark.parametrize(
    "name", ["base.txt", "dev.txt", "postgres.txt", "parquet.txt", "sentry.txt", "bleu.txt", "s3.txt", "sso.txt"]
)
def test_every_package_is_installed_in_the_version_of_the_lock(name):
    lines = (REQUIREMENTS / name).read_text(encoding="utf-8").splitlines()
    locked = [Requirement(line.rstrip(" \\")) for line in lines if line and not line.startswith((" ", "#"))]
    other = {}
    for one in locked:
        if one.marker is None or one.marker.evaluate():
            try:
                found = version(one.name)
            except PackageNotFoundError:
                found = "none"
            if not one.specifier.contains(found, prereleases=True):
                other[str(one)] = found
    assert locked
    assert not other, "run `make setup`, or `make lock` after a change in pyproject.toml"
