"""docs/tables.md is drawn from the models."""

from evalsite.management.commands import tables


def test_the_diagrams_are_those_of_the_models():
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), "run manage.py tables"
