"""Log lines say which request they belong to, and tell no values."""

import io
import logging
import re

import pytest
from django.test import Client


@pytest.fixture
def lines():
    """What the console is told, line by line."""
    root, told = logging.getLogger(), io.StringIO()
    (console,) = (handler for handler in root.handlers if type(handler) is logging.StreamHandler)
    handler = logging.StreamHandler(told)
    handler.setFormatter(console.formatter)
    root.addHandler(handler)
    yield lambda: told.getvalue().splitlines()
    root.removeHandler(handler)


def test_each_line_names_its_request(db, lines):
    for path in ("/nowhere/", "/nowhere/else/"):
        Client().get(path)
    ids = [re.search(r"\brequest_id=([0-9a-f]{16})$", line)[1] for line in lines() if "nowhere" in line]
    assert len(ids) == 2
    assert len(set(ids)) == 2


def test_an_exception_is_told_without_the_values_of_variables(lines):
    secret = "-".join(("zq7", "secret"))
    try:
        raise ValueError(len(secret))
    except ValueError:
        logging.getLogger("evalsite.something").exception("It broke")
    told = "\n".join(lines())
    assert "It broke" in told
    assert "ValueError: 10" in told
    assert "zq7-secret" not in told
