"""manage.py add_judge NAME --base-url URL --model NAME"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from judging.endpoints.inputs import JudgeIn
from judging.endpoints.judges import add_judge
from judging.endpoints.prices import listed
from judging.inputs import add_arguments, checked, fields_of


class Command(InstallationCommand):
    help = "Add a judge behind an OpenAI-compatible endpoint, at any host. Its key stays in the environment."

    limits = [name for name in fields_of(JudgeIn) if name not in ("name", "key")]  # a typed key would stay in a history

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        add_arguments(parser, JudgeIn, list(self.limits))

    def handle(self, **options: Any) -> None:
        given = checked(JudgeIn, {name: options[name] for name in ("name", *self.limits)})
        try:
            judge = add_judge(**given.validated_data, any_host=True)
        except BadInput as error:
            raise CommandError(str(error)) from None
        if given.validated_data["price_in"] is None and (known := listed(judge.base_url, judge.model)):
            self.stdout.write(
                f"Its prices are those that are listed: {known.words}. --price-in and --price-out give others."
            )
        key = f"its key from {judge.key_env}" if judge.key_env else "no key"
        self.stdout.write(f"{judge.name}: {judge.model} at {judge.base_url}, {judge.concurrency} calls at once, {key}.")
