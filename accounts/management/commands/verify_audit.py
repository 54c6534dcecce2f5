"""manage.py verify_audit"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts import audit
from accounts.management.base import InstallationCommand
from accounts.models import AuditEntry


class Command(InstallationCommand):
    help = (
        "Check that no entry of the audit log was changed or removed. Prints the last number and its digest: note them "
        "elsewhere and pass them to --expect later, to check that nothing was truncated in the meantime."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--expect", metavar="NUMBER:DIGEST", help="what an earlier check printed")

    def handle(self, *, expect: str | None, **options: Any) -> None:
        breaks = [f"{one.number}: {one.why}" for one in audit.broken()]
        if expect:
            number, _, digest = expect.partition(":")
            if not number.isdigit() or not digest:
                raise CommandError("--expect takes NUMBER:DIGEST, as this command prints them.", returncode=2)
            if not AuditEntry.objects.filter(number=number, digest=digest).exists():
                breaks.append(f"{number}: is not the entry that was there before")
        if breaks:
            raise CommandError("The audit log is not whole.\n" + "\n".join(breaks))
        last = AuditEntry.objects.order_by("-number").first()
        self.stdout.write(f"The audit log is whole: {last.number} entries." if last else "The audit log is empty.")
        if last:
            self.stdout.write(f"{last.number}:{last.digest}")
