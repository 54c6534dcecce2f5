"""The one table of settings in the documentation, compared with what the code reads."""

import re

from tests.judging.outside import ROOT

TABLE = re.compile(r"^\| `(\w+)` \|", re.M)
READ = re.compile(
    r"""(?:env\.\w+|keys\.(?:number|truth|origins|address))\(\s*"([A-Z\d_]+)"|"""
    r"""os\.environ\.get\(\s*["']([A-Z_]+)["']"""
)


def test_every_setting_that_is_read_stands_in_the_table_and_no_other():
    documented = TABLE.findall((ROOT / "docs" / "operations.md").read_text(encoding="utf-8"))
    folders = ("accounts", "bank", "judging", "annotations", "leaderboard", "evalsite")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = {one or other for path in sources for one, other in READ.findall(path.read_text(encoding="utf-8"))}
    found |= set(re.findall(r'^    "([A-Z_]+)": "python3', (ROOT / "evalsite" / "keys.py").read_text("utf-8"), re.M))
    assert sorted(documented) == sorted(found)


def test_the_table_is_reached_from_the_readme():
    assert "docs/operations.md" in (ROOT / "README.md").read_text(encoding="utf-8")
