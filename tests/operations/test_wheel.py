"""The wheel that `make wheel` builds: what lies in it, and that it runs from where it was unpacked."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests.installed import walk
from tests.judging.outside import ROOT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site-packages")
    return folder / "site-packages"


def test_it_puts_one_package_into_site_packages_and_has_the_licences_of_what_it_carries(unpacked):
    names = {path.name.partition("-")[0] for path in unpacked.iterdir()}
    assert names == {"evalsite_installed", "evalsite"}  # the second is its description
    licences = next(unpacked.glob("*.dist-info")) / "licenses"
    assert {path.relative_to(licences).as_posix() for path in licences.rglob("*LICENSE")} == {
        "LICENSE",
        "leaderboard/fonts/LICENSE",
        "static/vendor/TABLER-LICENSE",
        "static/vendor/katex/LICENSE",
    }


def test_everything_that_git_knows_of_the_apps_is_in_it_and_nothing_else(unpacked):
    parts = ["accounts", "annotations", "bank", "evalsite", "judging", "leaderboard", "stats"]
    parts += [
        "locale",
        "static",
        "templates",
        "manage.py",
        "gunicorn.conf.py",
        "pyproject.toml",
        "docs/statistics.md",
        "docs/method.md",
    ]
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *parts]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    site = unpacked / "evalsite_installed" / "site"
    carried = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert carried == set(listed) - {"evalsite/installed.py"}  # the package itself


COMMAND = [sys.executable, "-c", "import evalsite_installed; evalsite_installed.main()"]


def test_its_commands_run_from_there_with_their_data_in_the_home_folder(unpacked, tmp_path):
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(unpacked)}
    done = subprocess.run([*COMMAND, "check"], env=given, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "System check identified no issues (0 silenced).\n"), done.stderr
    assert (tmp_path / ".local" / "share" / "evalsite").is_dir()


@pytest.mark.soak  # `make installed`, which CI runs, walks the same way from an environment of pip's
def test_it_is_used_from_there(unpacked, tmp_path):
    walk(COMMAND, tmp_path, PYTHONPATH=str(unpacked))
