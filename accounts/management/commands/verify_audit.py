"""manage.py verify_audit"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import audit
from accounts.models import AuditEntry


class Command(BaseCommand):
    help = (
        "Check that every entry of the audit log is as it was written and none is missing. Prints the last number and "
        "its digest: noted elsewhere and given to --expect later, they show that nothing was cut off meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--expect", metavar="NUMBER:DIGEST", help="what an earlier check printed")

    def handle(self, *, expect: str | None, **options: Any) -> None:
        found = [f"{one.number}: {one.why}" for one in audit.broken()]
        if expect:
            number, _, digest = expect.partition(":")
            if not number.isdigit() or not digest:
                raise CommandError("--expect takes NUMBER:DIGEST, as this command prints them.", returncode=2)
            if not AuditEntry.objects.filter(number=number, digest=digest).exists():
                found.append(f"{number}: is not the entry that was there")
        if found:
            raise CommandError("The audit log is not whole.\n" + "\n".join(found))
        last = AuditEntry.objects.order_by("-number").first()
        self.stdout.write(f"The audit log is whole: {last.number} entries." if last else "The audit log is empty.")
        if last:
            self.stdout.write(f"{last.number}:{last.digest}")
