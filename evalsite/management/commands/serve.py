"""manage.py serve: everything a person needs to try evalsite on this machine, in one process group."""

import errno
import os
import socket
import sys
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import connections

from accounts.management.base import UncheckedCommand
from bank.models import Benchmark
from evalsite import doctor
from evalsite.demo import llmfao, recipes
from evalsite.demo.accounts import PASSWORD, SIGN_INS
from evalsite.demo.loader import load


class Command(UncheckedCommand):
    help = "Start evalsite: database, demo data, web server and worker. Ctrl-C stops all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not bring the demo data in")
        parser.add_argument("--no-worker", action="store_true", help="only the web server: workers run elsewhere")
        parser.add_argument(
            "--bind",
            metavar="ADDRESS",
            default=f"127.0.0.1:{settings.PORT}",
            help="where the web server listens, HOST:PORT (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        address = _checked_address(options["bind"])
        doctor.wait_for_database()
        demo = self._prepare(with_demo=settings.LOCAL and not options["no_demo"])
        if options["no_worker"]:
            self.stdout.write(self._announcement(address, demo))
            arguments = ["gunicorn", "--config", "python:evalsite.web_server", "--bind", options["bind"]]
        else:
            arguments = ["evalsite.supervisor", "--bind", options["bind"], "--health", _local_url(address) + "healthz"]
            arguments += ["--say", self._announcement(address, demo)]
            if demo and not (llmfao.is_here() and recipes.is_here()):
                arguments += ["--then", "load_demo"]
        connections.close_all()
        self.stdout.flush()
        os.chdir(settings.BASE_DIR)
        if settings.LOCAL:  # who tries evalsite reads how to sign in, and after that what is wrong
            os.environ.setdefault("LOG_LEVEL", "WARNING")
        os.environ["EVALSITE_DATA"] = str(settings.DATA)  # as it was meant where this was called
        os.execv(sys.executable, [sys.executable, "-m", *arguments])  # noqa: S606 (ours)

    def _prepare(self, *, with_demo: bool) -> bool:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        if faults := list(doctor.faults(web=True)):
            raise CommandError("evalsite does not start.\n" + "\n".join(faults))
        if not with_demo:
            return False
        if not Benchmark.objects.exists():
            self.stdout.write("Bringing the demo data in ...")
            load()
        return Benchmark.objects.filter(slug="everyday-scenes").exists()

    def _announcement(self, address: tuple[str, int], demo: bool) -> str:
        if settings.LOCAL:
            lines = [f"\nevalsite runs at http://localhost:{address[1]}/, its data is in {settings.DATA}\n"]
        else:
            names = ", ".join(f"https://{name.removeprefix('.')}/" for name in settings.ALLOWED_HOSTS)
            lines = [f"\nevalsite listens at {_local_url(address)} for a proxy that speaks HTTPS as {names}\n"]
        if demo:
            lines.append("Sign in as one of these:")
            lines += [f"  {name:<11} {PASSWORD:<15} {description}" for name, description in SIGN_INS.items()]
        return "\n".join([*lines, "Ctrl-C stops it."])


def _parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, [IPV6]:PORT or :PORT."""
    host, _, port = bind.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise CommandError(f"--bind takes HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000, not {bind!r}.")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 (all addresses, as gunicorn reads :PORT)


def _checked_address(bind: str) -> tuple[str, int]:
    """Raises CommandError for one that would be reached by others, or where nothing can listen."""
    host, port = address = _parse_bind(bind)
    if settings.LOCAL and not _is_here(host):
        raise CommandError(
            f"{host} can be reached by others, and this is an installation for this machine: its accounts have "
            "passwords that everybody knows. Set ALLOWED_HOSTS, SECRET_KEY, CRITERIA_KEYS: docs/operations.md."
        )
    if problem := _why_not_bound(address):
        raise CommandError(
            f"Port {port} is in use. Stop what listens there, or set PORT to another."
            if problem.errno == errno.EADDRINUSE
            else f"Nothing can listen at {bind}: {problem.strerror or problem}."
        )
    return address


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
