"""manage.py quotas --benchmark SLUG [FILE]"""

import csv
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from accounts.management.base import InstallationCommand
from accounts.models import User
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.management.importing import bad_input_fails
from bank.models import Benchmark
from bank.samples import benchmarks, capabilities

HEAD = ("capability", "quota", "owner")


class Command(InstallationCommand):
    help = (
        "How many approved samples each capability is to have, who sees to it, and how far it is, as CSV. With FILE "
        "(CSV of capability,quota,owner; capability is the path of names, such as Perception / Colour), set them first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path)
        parser.add_argument("--benchmark", required=True, metavar="SLUG")

    def handle(self, *, file: Path | None, benchmark: str, **options: Any) -> None:
        with bad_input_fails():
            chosen = benchmarks.find_benchmark(benchmark)
            if file is not None:
                self._set(chosen, file)
        writer = csv.writer(self.stdout, lineterminator="\n")
        writer.writerow([*HEAD, "approved", "under_way", "rejected", "missing"])
        for row in capabilities.quotas_of(chosen):
            counts = (row.approved, row.under_way, row.rejected, row.missing)
            writer.writerow([row.path, row.quota, row.owner, *counts])

    @transaction.atomic
    def _set(self, benchmark: Benchmark, file: Path) -> None:
        rows = _rows_of(file)
        nodes = {node.path: node for node in benchmark.capabilities.select_related("benchmark")}
        for number, row in enumerate(rows, start=2):
            path, typed, owner = ((row.get(name) or "").strip() for name in HEAD)
            quota = whole_number(typed)
            if path not in nodes or (typed and quota is None):
                raise BadInput(f"Line {number}: a capability of {benchmark}, a whole number, a user's name or nothing.")
            person = _person(owner, number) if owner else None
            capabilities.set_quota(node=nodes[path], quota=quota, owner=person)


def _rows_of(file: Path) -> list[dict[str, Any]]:
    try:
        return list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{file} cannot be read: {error}.") from None


def _person(name: str, line: int) -> User:
    person = User.objects.filter(username=name).first()
    if person is None:
        raise BadInput(f"Line {line}: there is nobody called {name}.")
    return person
