"""A PostgreSQL of a test's own, which it may restart: the one that the tests share keeps others waiting."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.operations.served import free_port

PLACES = [*sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True), os.environ.get("PATH", "")]


class Cluster:
    def __init__(self, folder: str) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self.call("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale")
        self.start()

    def start(self) -> None:
        where = f"-p {self.port} -h 127.0.0.1 -k {self.folder}"
        self.call("pg_ctl", "start", "-l", f"{self.folder}/log", "-o", where)

    def restart(self, mode: str) -> None:
        """``fast`` ends all sessions in order; ``immediate`` is a crash, after which it reads its log again."""
        self.call("pg_ctl", "restart", "-m", mode, "-l", f"{self.folder}/log")

    def call(self, program: str, *arguments: str) -> None:
        command = [found(program), "-D", f"{self.folder}/data", *arguments]
        if os.geteuid() == 0:  # as whom PostgreSQL refuses to run
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, check=True)


def found(program: str) -> str:
    return shutil.which(program, path=os.pathsep.join(PLACES)) or pytest.skip(f"no PostgreSQL to start: no {program}")


@contextmanager
def cluster():
    """A running one with an empty database; skips where there is none to start."""
    found("postgres")
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        made = Cluster(folder)
        try:
            yield made
        finally:
            made.call("pg_ctl", "stop", "-m", "immediate")
