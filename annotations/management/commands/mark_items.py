"""manage.py mark_items CAMPAIGN (--file PATH | --from CAMPAIGN): mark items as hidden gold or practice."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from annotations.assignment import gold
from annotations.assignment.errors import Refused
from annotations.assignment.gold import mark_all_gold
from annotations.models import Campaign
from bank.errors import BadInput
from bank.management.importing import Failed, bad_input_fails, counted


class Command(InstallationCommand):
    help = "Mark items nobody has been assigned yet as hidden gold or practice, with their right verdicts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", metavar="CAMPAIGN")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--file", type=Path, metavar="PATH", help="rows with sample, verdict and optionally note, responses"
        )
        source.add_argument(
            "--from",
            dest="source",
            metavar="CAMPAIGN",
            help="take the adjudicated or majority verdicts of that campaign",
        )
        parser.add_argument("--practice", action="store_true", help="practice items (default: hidden gold)")
        parser.add_argument("--most", type=int, metavar="N", help="with --from: at most N items, drawn with the seed")
        parser.add_argument("--skip-bad", action="store_true", help="mark the good rows even if others are bad")

    def handle(self, *args: Any, **options: Any) -> None:
        with bad_input_fails():
            campaign = _campaign(options["campaign"])
            if options["file"]:
                marked = gold.gold_from_file(campaign, options["file"])
            else:
                marked = gold.gold_from_campaign(campaign, _campaign(options["source"]), most=options["most"])
            for problem in marked.problems:
                self.stderr.write(problem)
            if marked.problems and not options["skip_bad"]:
                raise Failed(
                    f"{counted(len(marked.problems), 'problems')}: nothing was marked (--skip-bad marks the rest)."
                )
            try:
                count = mark_all_gold(marked.verdicts, practice=options["practice"], alike=marked.alike)
            except Refused as refusal:
                raise Failed(str(refusal)) from None
        kind = "practice" if options["practice"] else "hidden gold"
        self.stdout.write(f"{counted(count, 'items')} of {campaign.name!r} are now {kind}.")
        if not options["practice"] and not campaign.gold_rate:
            self.stdout.write("None of them comes yet: the campaign's settings say how often hidden gold does.")


def _campaign(name: str) -> Campaign:
    campaign = Campaign.objects.filter(name=name).first()
    if campaign is None:
        raise BadInput(f"Unknown campaign: {name!r}.")
    return campaign
