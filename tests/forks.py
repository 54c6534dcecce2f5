"""Programs of an installation in processes that are forked from one which has imported the packages: most of what it
costs to start Python. Of evalsite nothing is loaded there and no settings are read: each program does so by itself, in
an environment of its own.

``python tests/forks.py ADDRESS PROGRAM ARGUMENT ...`` runs a program so from a shell, with its files and its status.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    *("asyncio", "concurrent.futures.process", "ctypes", "email.mime.text", "html", "http.client", "logging.config"),
    *("multiprocessing", "smtplib", "statistics", "timeit", "tomllib", "unittest", "wsgiref.simple_server", "zipfile"),
    *("django.contrib.auth.hashers", "django.contrib.postgres.fields", "django.contrib.staticfiles.finders"),
    *("django.core.mail", "django.core.management", "django.core.paginator", "django.db.backends.postgresql.base"),
    *("django.db.migrations.executor", "django.db.models", "django.forms", "django.template"),
    *("django.template.loader_tags", "django.test.client", "django.views.decorators.cache", "django.views.generic"),
    *("aiohttp", "cryptography.fernet", "cryptography.hazmat.primitives.ciphers.aead", "environ", "genai_prices"),
    *("inflection", "jinja2.meta", "jinja2.sandbox", "jiter", "markdown_it", "nh3", "numpy", "openai", "orjson"),
    *("pandas", "PIL.Image", "PIL.ImageDraw", "PIL.ImageFont", "PIL.ImageOps", "platformdirs", "psycopg", "pydantic"),
    *("pygments.formatters.html", "pygments.lexers", "rapidfuzz", "resvg_py"),
    *("requests", "rich.console", "rich.progress", "rich.table", "scipy.optimize", "scipy.stats", "uritemplate"),
    *("uvloop", "yaml", "yarl"),
)
_served: dict[str, "subprocess.Popen[bytes]"] = {}


def address() -> str:
    """Where this process's own server listens, an abstract name; it ends with this process."""
    if not _served:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(name := f"\0evalsite-forks-{os.getpid()}")
        listening.listen()
        command = [sys.executable, "-m", "tests.forks", "--serve", str(os.getpid())]
        _served[name] = subprocess.Popen(command, cwd=ROOT, stdin=listening, stdout=subprocess.DEVNULL)
        listening.close()
    return next(iter(_served))


def command(program: Path) -> str:
    """What a shell runs in place of Python with a program."""
    return f'"{sys.executable}" -IS "{__file__}" "{address().replace(chr(0), "@")}" "{program}"'


def run(arguments: list[str], *, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """As ``subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)``."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error, open(os.devnull) as nothing:
        files = [one.fileno() for one in (nothing, out, error)]
        status = Forked(address(), arguments, str(ROOT), environment, files).wait(300)
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), error.read())


def start(arguments: list[str], *, environment: dict[str, str], out: IO[str] | None = None) -> "Forked":
    """As ``subprocess.Popen([sys.executable, *arguments], cwd=ROOT, text=True)``, its output in a file, or by pipes."""
    with open(os.devnull) as nothing:
        if out is not None:
            files = [nothing.fileno(), out.fileno(), out.fileno()]
            return Forked(address(), arguments, str(ROOT), environment, files)
        from_out, to_out = os.pipe()
        from_error, to_error = os.pipe()
        process = Forked(address(), arguments, str(ROOT), environment, [nothing.fileno(), to_out, to_error])
    os.close(to_out)
    os.close(to_error)
    process.stdout, process.stderr = os.fdopen(from_out), os.fdopen(from_error)
    return process


def talk(arguments: list[str], *, environment: dict[str, str]) -> "Forked":
    """As ``subprocess.Popen([sys.executable, *arguments], cwd=ROOT, text=True)`` with pipes to it and from it."""
    from_us, to_it = os.pipe()
    from_it, to_us = os.pipe()
    process = Forked(address(), arguments, str(ROOT), environment, [from_us, to_us, 2])
    os.close(from_us)
    os.close(to_us)
    process.stdin, process.stdout = os.fdopen(to_it, "w"), os.fdopen(from_it)
    return process


class Forked:
    """What tests ask of a ``subprocess.Popen``, of a process that a server has forked."""

    def __init__(
        self, server: str, arguments: list[str], folder: str, environment: dict[str, str], files: list[int]
    ) -> None:
        self.args, self.returncode = arguments, None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self._answers = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._answers.settimeout(300)
        self._answers.connect(server)
        socket.send_fds(self._answers, [json.dumps([arguments, folder, environment]).encode()], files)
        self.pid = int(self._answers.recv(20))

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                self.returncode = int(self._answers.recv(20))
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._answers.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it said until its end, by both pipes; nothing by those that are closed."""
        if self.stdin is not None:
            self.stdin.close()
        said = {}

        def read(name: str) -> None:
            pipe = getattr(self, name)
            if pipe is not None and not pipe.closed:
                said[name] = pipe.read()
                pipe.close()

        reading = [threading.Thread(target=read, args=[name], daemon=True) for name in ("stdout", "stderr")]
        for thread in reading:
            thread.start()
        self.wait(timeout)
        for thread in reading:
            thread.join(timeout)
        return said.get("stdout", ""), said.get("stderr", "")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve(parent: int) -> list[str]:
    """Returns in each forked process, as what its program is to be run as; ends with the parent."""
    for name in PACKAGES:
        importlib.import_module(name)
    assert "sqlite3" not in sys.modules  # evalsite says which one it takes
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)  # as in conftest.py
    server = socket.socket(fileno=os.dup(0))
    server.settimeout(5)
    while os.getppid() == parent:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        try:
            one, _ = server.accept()
        except TimeoutError:
            continue
        if os.fork():
            one.close()
            continue
        server.close()
        said, files, *_ = socket.recv_fds(one, 2**20, 3)
        if child := os.fork():
            for file in files:
                os.close(file)
            with suppress(BrokenPipeError):  # who asked has gone
                one.send(str(child).encode())
                one.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
            os._exit(0)
        one.close()
        for place, file in enumerate(files):
            os.dup2(file, place)
            os.close(file)
        arguments, folder, environment = json.loads(said)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        if environment.get("PYTHONUNBUFFERED"):
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] (write_through leaves it in the buffer)
        return arguments
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] != "--serve":
        _, server, *asked = sys.argv
        sys.exit(Forked(server.replace("@", "\0"), asked, os.getcwd(), dict(os.environ), [0, 1, 2]).wait(300))
    sys.argv = _serve(int(sys.argv[2]))
    if sys.argv[0] == "-c":
        exec(sys.argv.pop(1), {"__name__": "__main__"})
    elif sys.argv[0] == "-m":
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
