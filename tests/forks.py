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
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    *("asyncio", "email.mime.text", "http.client", "logging.config", "multiprocessing", "zipfile"),
    *(
        "aiohttp",
        "cryptography.fernet",
        "django.core.management",
        "django.db.models",
        "django.forms",
        "django.template",
    ),
    *(
        "django.template",
        "environ",
        "genai_prices",
        "jinja2",
        "jiter",
        "markdown_it",
        "nh3",
        "numpy",
        "openai",
        "orjson",
        "pandas",
    ),
    *("PIL.Image", "platformdirs", "prometheus_client", "pydantic", "rapidfuzz", "rich.table", "scipy.optimize"),
    *("scipy.stats", "uvloop", "yaml", "yarl"),
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
        status = _asked(address(), arguments, str(ROOT), environment, [one.fileno() for one in (nothing, out, error)])
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), error.read())


def _asked(server: str, arguments: list[str], folder: str, environment: dict[str, str], files: list[int]) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.settimeout(300)
        one.connect(server)
        socket.send_fds(one, [json.dumps([arguments, folder, environment]).encode()], files)
        return int(one.recv(9))


def _serve(parent: int) -> list[str]:
    """Returns in each forked process, as what its program is to be run as; ends with the parent."""
    for name in PACKAGES:
        importlib.import_module(name)
    gc.freeze()
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
        return arguments
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] != "--serve":
        sys.exit(_asked(sys.argv[1].replace("@", "\0"), sys.argv[2:], os.getcwd(), dict(os.environ), [0, 1, 2]))
    sys.argv = _serve(int(sys.argv[2]))
    if sys.argv[0] == "-c":
        exec(sys.argv[1], {"__name__": "__main__"})
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
