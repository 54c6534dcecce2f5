"""manage.py prices"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from judging.endpoints.prices import PRICES, listed
from judging.models import Judge


class Command(InstallationCommand):
    help = "What judges and models cost, in US dollars per million tokens, beside what is listed for them today."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--fill", action="store_true", help="give those without prices the ones that are listed")
        parser.add_argument("--update", metavar="NAME", nargs="+", default=[], help="give these judges the listed ones")

    def handle(self, **options: Any) -> None:
        for judge in Judge.objects.exclude(base_url="").order_by("name"):
            known = listed(judge.base_url, judge.model)
            if known and (judge.name in options["update"] or (options["fill"] and judge.price_in is None)):
                for name in PRICES:
                    setattr(judge, name, getattr(known, name))
                judge.save(update_fields=PRICES)
            own = " ".join("-" if (price := getattr(judge, name)) is None else f"{price:g}" for name in PRICES)
            self.stdout.write(f"{judge.name}: {own}; listed: {known.words if known else 'nothing'}")
