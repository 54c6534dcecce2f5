"""manage.py remove_demo_accounts"""

from typing import Any

from django.db import transaction

from accounts import audit
from accounts.management.base import InstallationCommand
from evalsite.demo import accounts


class Command(InstallationCommand):
    help = (
        "Switch off the accounts that the demo made and that still have its password, with their tokens. What they "
        "made stays. An account that was given a password of its own stays, too."
    )

    @transaction.atomic
    def handle(self, **options: Any) -> None:
        open_accounts = accounts.still_open()
        for person in open_accounts:
            person.is_active = False
            person.set_unusable_password()
            person.save(update_fields=["is_active", "password"])
            person.end_tokens()
            audit.record("account-switched", command="remove_demo_accounts", about=person.username, now="off")
        names = ", ".join(person.username for person in open_accounts)
        self.stdout.write(f"Switched off: {names}." if open_accounts else "No account has the demo's password.")
