"""manage.py mark_items CAMPAIGN (--file PATH | --from CAMPAIGN): many items at once as hidden gold or practice."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotations.assignment import gold
from annotations.assignment.errors import Refused
from annotations.assignment.gold import mark_all_gold
from annotations.models import Campaign
from bank.errors import BadInput
from bank.management.importing import Failed, bad_input_fails, counted


class Command(BaseCommand):
    help = "Say which verdicts are right about items that nobody has begun: hidden gold, or practice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", metavar="CAMPAIGN")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--file", type=Path, metavar="PATH", help="rows of sample, verdict and maybe note, responses"
        )
        source.add_argument(
            "--from", dest="source", metavar="CAMPAIGN", help="what was adjudicated or a majority there"
        )
        parser.add_argument("--practice", action="store_true", help="practice items (default: hidden gold)")
        parser.add_argument("--most", type=int, metavar="N", help="with --from: so many of them, drawn by the seed")
        parser.add_argument("--skip-bad", action="store_true", help="mark the good ones although others are bad")

    def handle(self, *args: Any, **options: Any) -> None:
        with bad_input_fails():
            campaign = _campaign(options["campaign"])
            if options["file"]:
                found = gold.gold_from_file(campaign, options["file"])
            else:
                found = gold.gold_from_campaign(campaign, _campaign(options["source"]), most=options["most"])
            for problem in found.problems:
                self.stderr.write(problem)
            if found.problems and not options["skip_bad"]:
                raise Failed(
                    f"{counted(len(found.problems), 'problems')}: nothing was marked (--skip-bad marks the rest)."
                )
            try:
                done = mark_all_gold(found.verdicts, practice=options["practice"])
            except Refused as refusal:
                raise Failed(str(refusal)) from None
        kind = "practice" if options["practice"] else "hidden gold"
        self.stdout.write(f"{counted(done, 'items')} of {campaign.name!r} are {kind} now.")


def _campaign(name: str) -> Campaign:
    found = Campaign.objects.filter(name=name).first()
    if found is None:
        raise BadInput(f"There is no campaign {name!r}.")
    return found
