"""manage.py add_judge NAME --base-url URL --model NAME"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from judging.endpoints.judges import add_judge


class Command(InstallationCommand):
    help = "Add a judge behind an OpenAI-compatible endpoint, at any host. Keys stay in the environment."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--base-url", required=True, metavar="URL", help="e.g. http://localhost:8000/v1")
        parser.add_argument("--model", required=True, metavar="NAME", help="its name at the endpoint")
        parser.add_argument("--key-env", default="", metavar="VAR", help="environment variable that holds the key")
        parser.add_argument("--concurrency", type=int, default=16, metavar="N", help="calls at once (16)")
        parser.add_argument("--rpm", type=int, metavar="N", help="calls a minute, over all workers")
        parser.add_argument("--tpm", type=int, metavar="N", help="tokens a minute, over all workers")
        parser.add_argument("--timeout", type=int, default=120, metavar="S", help="seconds one call may take (120)")
        parser.add_argument(
            "--waits",
            default="",
            metavar="MINUTES,...",
            help="before a run whose endpoint fails is tried again, each time (1,5,15,30,60)",
        )
        parser.add_argument(
            "--give-up-after", type=int, metavar="MINUTES", help="of nothing but errors: the run pauses (1440)"
        )
        parser.add_argument("--price-in", type=float, metavar="USD", help="per million tokens sent")
        parser.add_argument("--price-out", type=float, metavar="USD", help="per million tokens received")
        parser.add_argument("--family", default="", help="of the model, for the bias towards its own family")

    def handle(self, *, name: str, base_url: str, model: str, key_env: str, **options: Any) -> None:
        limits = {
            key: options[key]
            for key in (
                "concurrency",
                "rpm",
                "tpm",
                "timeout",
                "price_in",
                "price_out",
                "family",
                "waits",
                "give_up_after",
            )
        }
        try:
            judge = add_judge(name=name, base_url=base_url, model=model, key_env=key_env, any_host=True, **limits)
        except BadInput as error:
            raise CommandError(str(error)) from None
        key = f"its key from {judge.key_env}" if judge.key_env else "no key"
        self.stdout.write(f"{judge.name}: {judge.model} at {judge.base_url}, {judge.concurrency} calls at once, {key}.")
