"""docs/tables.md is drawn from the models."""

from tests import tables


def test_the_diagrams_are_those_of_the_models():
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), "run python -m tests.tables"
