"""manage.py serve: everything a person needs to try evalsite on this machine, in one process group."""

import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from bank.models import Benchmark
from evalsite import checks
from evalsite.demo import llmfao
from evalsite.demo.accounts import PASSWORD, SIGN_INS
from evalsite.demo.loader import load

STOP_WITHIN = 10  # seconds


class Command(BaseCommand):
    help = "Start evalsite: database, demo data, web server and worker. Ctrl-C stops all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not bring the demo data in")
        parser.add_argument(
            "--bind",
            metavar="ADDRESS",
            default=f"127.0.0.1:{settings.PORT}",
            help="where the web server listens, HOST:PORT (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = address = _parse_bind(options["bind"])
        if settings.LOCAL and not _is_here(host):
            raise CommandError(
                f"{host} can be reached by others, and this is an installation for this machine: its accounts have "
                "passwords that everybody knows. Set ALLOWED_HOSTS, SECRET_KEY, CRITERIA_KEYS: docs/operations.md."
            )
        if problem := _why_not_bound(address):
            raise CommandError(
                f"Port {port} is in use. Stop what listens there, or choose another: PORT=8001 make run"
                if problem.errno == errno.EADDRINUSE
                else f"Nothing can listen at {options['bind']}: {problem.strerror or problem}."
            )
        demo = self._prepare(with_demo=settings.LOCAL and not options["no_demo"])
        web = ["-m", "gunicorn", "--config", "python:evalsite.web_server", "--bind", options["bind"]]
        processes = [_start(web), _start(["manage.py", "worker"])]
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        try:
            self._announce(address, processes, demo)
            if demo and not llmfao.is_here():
                llmfao.load_llmfao()
                self.stdout.write("LLMFAO is in, too: real votes of 124 people and two judges.")
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
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        if faults := list(checks.faults(web=True)):
            raise CommandError("evalsite does not start.\n" + "\n".join(faults))
        if not with_demo:
            return False
        if not Benchmark.objects.exists():
            self.stdout.write("Bringing the demo data in ...")
            load()
        return Benchmark.objects.filter(slug="everyday-scenes").exists()

    def _announce(self, address: tuple[str, int], processes: list[subprocess.Popen[bytes]], demo: bool) -> None:
        while not _answers(_local_url(address) + "healthz"):
            if any(process.poll() is not None for process in processes):
                raise CommandError("The web server or the worker did not start; see the lines above.")
            time.sleep(0.1)
        if settings.LOCAL:
            self.stdout.write(f"\nevalsite runs at http://localhost:{address[1]}/\n")
        else:
            names = ", ".join(f"https://{name.removeprefix('.')}/" for name in settings.ALLOWED_HOSTS)
            self.stdout.write(f"\nevalsite listens at {_local_url(address)} for a proxy that speaks HTTPS as {names}\n")
        if demo:
            self.stdout.write("Sign in as one of these:")
            for name, description in SIGN_INS.items():
                self.stdout.write(f"  {name:<11} {PASSWORD:<15} {description}")
        self.stdout.write("Ctrl-C stops it.\n")
        self.stdout.flush()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, [IPV6]:PORT or :PORT."""
    host, _, port = bind.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise CommandError(f"--bind takes HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000, not {bind!r}.")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 (all addresses, as gunicorn reads :PORT)


def _is_here(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _local_url(address: tuple[str, int]) -> str:
    """The address under which this machine asks itself."""
    host, port = address
    if _is_address(host) and ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _why_not_bound(address: tuple[str, int]) -> OSError | None:
    """Why nothing can listen there, if so."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        return error
    return None


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
