"""manage.py probe_judge NAME"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from judging.endpoints.probing import probe_judge
from judging.models import Judge


class Command(InstallationCommand):
    help = "Test with a few short calls what a judge's endpoint can do; runs that start afterwards use the results."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **options: Any) -> None:
        try:
            abilities = probe_judge(judge=Judge.objects.get(name=name))
        except Judge.DoesNotExist:
            raise CommandError(f"Unknown judge {name!r}.") from None
        except BadInput as error:
            raise CommandError(str(error)) from None
        for ability, value in abilities.items():
            shown = {True: "yes", False: "no", "": "not accepted"}.get(value, value)
            self.stdout.write(f"{ability.replace('_', ' ')}: {shown}")
