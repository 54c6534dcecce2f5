"""docs/rows.md tells every table of numbers, and what each takes."""

import re
from pathlib import Path

import pytest

from leaderboard.registry import TABLES
from leaderboard.view import PARAMETERS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "rows.md").read_text()
LINES = {line.split("`")[1]: line for line in DOCUMENT.splitlines() if line.startswith("| `")}


def test_it_names_every_table_and_no_other():
    assert set(LINES) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_it_names_what_a_table_takes_of_its_own(name):
    own = LINES[name].split("|")[2]
    assert {option.replace("-", "_") for option in re.findall(r"--([\w-]+)", own)} == set(TABLES[name].takes)


def test_it_names_every_parameter_of_a_view():
    of_view = {name for table in TABLES.values() for name in table.view} | {"kind"}
    missing = [name for name in PARAMETERS if name in of_view and f"`--{name.replace('_', '-')}`" not in DOCUMENT]
    assert missing == []
