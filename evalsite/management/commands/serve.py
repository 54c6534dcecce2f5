"""manage.py serve: everything a person needs to try evalsite on this machine, in one process group."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from bank.models import Benchmark
from evalsite.demo import PASSWORD, SIGN_INS, load

STOP_WITHIN = 10  # seconds


class Command(BaseCommand):
    help = "Start evalsite: database, demo data, web server and worker. Ctrl-C stops all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not bring the demo data in")

    def handle(self, *args: Any, **options: Any) -> None:
        address = ("127.0.0.1", settings.PORT)
        if _taken(address):
            raise CommandError(
                f"Port {settings.PORT} is in use. Stop what listens there, or choose another: PORT=8001 make run"
            )
        demo = self._prepare(with_demo=settings.LOCAL and not options["no_demo"])
        processes = [self._web(address), self._worker()]
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        try:
            self._announce(address, processes, demo)
            while all(process.poll() is None for process in processes):
                time.sleep(0.5)
            raise CommandError("The web server or the worker ended; see the lines above.")
        except KeyboardInterrupt:
            self.stdout.write("\nStopping ...")
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)  # asked twice, it still stops in order
            _stop(processes)
        self.stdout.write("Stopped. The data is kept.")

    def _prepare(self, *, with_demo: bool) -> bool:
        settings.DATA.mkdir(parents=True, exist_ok=True)
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        if not with_demo:
            return False
        if not Benchmark.objects.exists():
            self.stdout.write("Bringing the demo data in ...")
            load()
        return Benchmark.objects.filter(slug="everyday-scenes").exists()

    def _web(self, address: tuple[str, int]) -> subprocess.Popen[bytes]:
        host, port = address
        shape = ["--workers", "2", "--threads", "4", "--max-requests", "20000", "--max-requests-jitter", "2000"]
        quiet = ["--no-control-socket", "--log-level", "warning", "--graceful-timeout", "5", "--timeout", "120"]
        return _start(["-m", "gunicorn", "evalsite.wsgi", "--bind", f"{host}:{port}", *shape, *quiet])

    def _worker(self) -> subprocess.Popen[bytes]:
        return _start(["manage.py", "worker"])

    def _announce(self, address: tuple[str, int], processes: list[subprocess.Popen[bytes]], demo: bool) -> None:
        url = f"http://localhost:{address[1]}/"
        while not _answers(url + "healthz"):
            if any(process.poll() is not None for process in processes):
                raise CommandError("The web server or the worker did not start; see the lines above.")
            time.sleep(0.1)
        self.stdout.write(f"\nevalsite runs at {url}\n")
        if demo:
            self.stdout.write("Sign in as one of these:")
            for name, what in SIGN_INS.items():
                self.stdout.write(f"  {name:<11} {PASSWORD:<15} {what}")
        self.stdout.write("Ctrl-C stops it.\n")
        self.stdout.flush()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _taken(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:
            return True
    return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 (our own address)
            return True
    except (urllib.error.URLError, OSError):
        return False


def _start(arguments: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, cwd=settings.BASE_DIR, preexec_fn=_end_with_parent)  # noqa: S603 (ours)


def _end_with_parent() -> None:
    """Where the system can (Linux): a killed parent takes its children with it, so that no port stays taken."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() == 1:
            os._exit(1)


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
