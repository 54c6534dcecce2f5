"""One installation for all tutorials, as `make run` leaves it but for the invented benchmarks, and two local models."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest

from tests import forks
from tests.docs.local_models import ollama, vllm
from tests.docs.pages import ROOT
from tests.judging.outside import with_tables
from tests.judging.server import Server
from tests.operations.served import free_port, wait_for

os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # as for tests/browser: Playwright's loop runs in the tests' thread
# The demo's accounts and its real data. Of runs `make run` makes 14 before: so their numbers are the same.
PREPARED = """
import django; django.setup()
from django.core.management import call_command
from django.db import connection
from evalsite.demo import accounts, llmfao
call_command("migrate", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("DELETE FROM sqlite_sequence WHERE name = 'judging_run'")
    cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('judging_run', 14)")
for name in accounts.SIGN_INS:
    accounts.make_account(name)
llmfao.load_llmfao()
"""


class Reader:
    """Somebody who follows a page: in a folder of their own, with evalsite and two local models running."""

    def __init__(self, folder, data, addresses):
        self.folder, self.addresses = folder, addresses
        self.site = f"http://localhost:{addresses[':8000']}"
        command = folder / "bin" / "manage.py"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {forks.command(ROOT / "manage.py")} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        self.environment = kept | {  # none of the settings that make an installation one for others
            "EVALSITE_DATA": str(data),
            "DJANGO_SETTINGS_MODULE": "evalsite.settings",
            "PATH": f"{command.parent}:{os.environ['PATH']}",
        }

    def here(self, text: str) -> str:
        """What a page says, with the ports of these tests in place of the usual ones."""
        for usual, port in self.addresses.items():
            text = text.replace(f"localhost{usual}", f"localhost:{port}")
        return text

    def run(self, commands: str) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-c", self.here(commands)],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    with Server(vllm("Qwen/Qwen2.5-7B-Instruct")) as first, Server(ollama("llama3.2")) as second:
        addresses = {":8000": free_port(), ":8001": first.port, ":11434": second.port}
        found = Reader(folder, folder / "data", addresses)
        keys = forks.run(["-c", "import django; django.setup()"], environment=found.environment)
        assert keys.returncode == 0, keys.stderr
        with_tables(folder / "data" / "evalsite.sqlite3", key=False)
        prepared = forks.run(["-c", PREPARED], environment=found.environment)
        assert prepared.returncode == 0, prepared.stderr
        with serving(found, addresses[":8000"], folder / "log"):
            yield found


@contextmanager
def serving(reader, port, log):
    command = ["manage.py", "serve", "--no-demo", "--bind", f"127.0.0.1:{port}"]
    with log.open("w") as out:
        process = forks.start(command, environment=reader.environment, out=out)
        try:
            wait_for(port, process, log)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
