"""What all tests share: people of every role and a small benchmark, made through the public actions."""

import gc
import json
import logging
import os
import random
import re
import secrets
import sys
import threading
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, settings
from scipy.stats import binomtest

from accounts import installation_key
from accounts.models import Role, User
from evalsite.demo.llmfao import unpacked
from leaderboard.kept import values as leaderboard_cache
from leaderboard.show import singly
from tests import chromium
from tests.judging import outside
from tests.once import key, once

gc.set_threshold(
    200_000, 50, 100
)  # pages make many objects that live: looking through them took a twelfth of the suite

# A machine that does other work beside is slow to draw examples, too: that is no fault.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
# Modules whose tests share an installation of their own: it is made once, in one process.
# What takes longest is begun first: at the end no process waits for another.
LONGEST = (
    *("browser/test_pages.py", "access/test_crawl.py", "docs/test_tutorials.py", "browser/test_injection.py"),
    *("access/test_arriving.py", "access/test_going_on.py", "access/test_served_worlds.py", "judging/test_sharing.py"),
    *("operations/test_start.py", "access/test_links.py", "judging/test_processes.py", "operations/test_served.py"),
    *("leaderboard/test_demo.py", "browser/"),
)
TOGETHER = (
    *("test_served_worlds.py", "test_served.py", "test_processes.py", "test_sharing.py", "test_tutorials.py"),
    *("test_backup.py", "test_sign_on.py", "test_cors.py"),
)
DATA = Path(__file__).resolve().parent / "data"  # what may be passed on; see its README


def pytest_configure(config):
    """While the processes of a whole round read the tests, the database is made that all of them copy."""
    is_whole = config.args_source is config.ArgsSource.TESTPATHS or "TEST_DATABASE_URL" in os.environ
    starts_others = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if is_whole and starts_others and not config.option.collectonly:
        threading.Thread(target=outside.make_tables, daemon=True).start()


def pytest_collection_modifyitems(config, items):
    """The longest first; on PostgreSQL only what touches the database, be it that of an installation: ``here``."""
    items.sort(key=lambda item: next((n for n, path in enumerate(LONGEST) if path in item.nodeid), len(LONGEST)))
    if "TEST_DATABASE_URL" not in os.environ:
        return
    kept = [
        item
        for item in items
        if {"db", "transactional_db", "here"} & set(item.fixturenames) or item.get_closest_marker("django_db")
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_xdist_make_scheduler(config, log):
    """Each test goes to whichever process is free, but those stay together that share what took long to make.

    xdist's own groups (``--dist loadgroup``) have no effect with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if f"{nodeid.partition('.py::')[0]}.py".endswith(TOGETHER):
                return nodeid.partition("::")[0]
            if "_fifty_" in nodeid:  # two at once would exceed PostgreSQL's hundred connections
                return "fifty connections"
            return re.sub(r"(test_crawl\.py)::\w+\[(?:\w+-)?(\w+)\]", r"\1[\2]", nodeid)

    return Scheduling(config, log)


def pytest_terminal_summary(terminalreporter):
    """What attackers learnt. What was skipped and why, a line for each reason: nobody takes a test for run that was
    not.
    """
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, ())]
    if lines := [line for report in reports for name, line in report.user_properties if name == "learnt"]:
        terminalreporter.section("what attackers learnt")
        for line in sorted(lines):
            terminalreporter.line(line)
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        terminalreporter.section("skipped")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix):
    """The database of each process begins as a copy of the first one, whose tables were made by the migrations."""
    name = connection.settings_dict["TEST"]["NAME"]
    if connection.vendor == "sqlite":
        outside.with_tables(Path(name))
    elif name:
        outside.postgres_with_tables(name)


@pytest.fixture(autouse=True)
def no_job_left(request, django_db_blocker):
    """Jobs of tests that commit go with them, from tables that are Procrastinate's, which Django does not empty."""
    yield
    marker = request.node.get_closest_marker("django_db")
    if marker and marker.kwargs.get("transaction") and connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_periodic_defers, procrastinate_events")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of public research data, or a skip that says where it is expected."""
    if not SHARED.is_dir():
        pytest.skip("no research data at ../shared/data, which may not be passed on (docs/reproduction.md)")
    return SHARED


@pytest.fixture(scope="session")
def llmfao_folder(tmp_path_factory):
    """The released files of llmfao about the 13 prompts that people voted on, as they were released."""
    return unpacked(tmp_path_factory.mktemp("llmfao"))


@pytest.fixture(scope="session")
def identities():
    """Printed numbers of the papers: ``{paper, table, rule, inputs, expected, got, matches}``."""
    return json.loads((DATA / "identities.json").read_text(encoding="utf-8"))


@pytest.fixture
def at_chance(record_property, db, monkeypatch):
    """Asserts that an attack got no more of its secrets right than guessing does, by an exact binomial test with
    p > .01, or ``more`` as a share; what it learnt stands at the end of the run.

    What is drawn is the same in every run: of a hundred installations one lets an attacker guess that well.
    """
    key()
    dice = random.Random(7)
    monkeypatch.setattr(secrets, "randbelow", dice.randrange)
    monkeypatch.setattr(secrets, "token_hex", lambda size=16: f"{dice.getrandbits(8 * size):0{2 * size}x}")

    def check(right, of, chance, what, *, more=None):
        p = binomtest(right, of, chance, alternative="greater").pvalue
        record_property("learnt", f"{what}: {right} of {of}, guessing gives {of * chance:.0f}, p = {p:.3f}")
        assert p > 0.01 if more is None else right / of <= chance + more, what

    return check


@pytest.fixture
def people(db):
    """One person of every role, by role."""

    def make():
        return {role: User.objects.create_user(role, password="a-long-password", role=role) for role in Role.values}

    return once("people", make)


@pytest.fixture
def client_of(people):
    """Signed-in clients by role; ``client_of("anonymous")`` is signed out."""

    def make(role: str) -> Client:
        client = Client()
        if role != "anonymous":
            client.force_login(people[role])
        return client

    return make


@pytest.fixture(scope="session")
def browser_type_launch_args():
    """Debian's chromium, as the browser tests drive it."""
    if chromium.executable() is None:
        pytest.skip(chromium.NEEDED)
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    return {
        "executable_path": chromium.executable(),
        "headless": True,
        "args": ["--no-sandbox", "--disable-gpu", "--disable-quic", *quiet],
    }


@pytest.fixture(autouse=True)
def no_faulty_table(request):
    """A page that stands though one of its tables cannot be made fails its test, unless that is what is tested."""
    if request.node.get_closest_marker("faulty_tables"):
        yield
        return

    class Raising(logging.Handler):
        def emit(self, record):
            raise record.exc_info[1]

    handler = Raising()
    singly.log.addHandler(handler)
    yield
    singly.log.removeHandler(handler)


@pytest.fixture(autouse=True)
def nothing_kept():
    """What a process keeps of the database goes with the database of each test."""
    leaderboard_cache.forget()
    installation_key.forget()


@pytest.fixture
def no_pyarrow(monkeypatch):
    """As if pyarrow were not installed: pandas, which loaded it with the other tests, keeps texts without it, too."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pd.option_context("mode.string_storage", "python"):
        yield


@pytest.fixture
def media(settings, tmp_path):
    """A media folder of its own, and one for uploads."""
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.STAGED = tmp_path / "staged"
    settings.EXPORTS = tmp_path / "exports"
    return settings.MEDIA_ROOT


@pytest.fixture(scope="session")
def s3_endpoint():
    """The address of an S3 server."""
    pytest.importorskip("storages", reason="no django-storages: make setup EXTRAS=s3")
    moto = pytest.importorskip("moto.server", reason="no moto[server]")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket_of(s3_endpoint):
    """Makes an empty bucket that no settings name yet."""
    from tests.s3 import Bucket

    return lambda: Bucket(s3_endpoint)


@pytest.fixture
def bucket(bucket_of, settings, media):
    """One that the settings name."""
    made = bucket_of()
    made.use(settings)
    return made


@pytest.fixture
def world(people, media):
    """A small installation with canaries in every hidden field; see tests.access.world."""
    from tests.access.world import build

    return once("world", lambda: build(people))
