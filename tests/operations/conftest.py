"""One installation that is served for the tests of a module."""

import pytest

from tests.judging.outside import installation
from tests.operations.served import free_port, running, wait_for


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with installation(tmp_path_factory.mktemp("operations") / "data") as outside:
        yield outside


@pytest.fixture(scope="module")
def served(here, tmp_path_factory):
    """`manage.py serve` as the README starts it: (port, the file with all that it said)."""
    port, log = free_port(), tmp_path_factory.mktemp("served") / "log"
    with running(here, ["manage.py", "serve", "--bind", f"127.0.0.1:{port}"], log) as process:
        wait_for(port, process, log)
        wait_for(port, process, log, path="/readyz")
        yield port, log
