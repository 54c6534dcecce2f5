"""manage.py make_campaign NAME --benchmark SLUG --protocol NAME: items to label, open at once."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from accounts.models import User
from annotations import ballots
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.sampling import Plan, find_run
from bank.errors import BadInput
from bank.management.importing import bad_input_fails, counted
from bank.samples.benchmarks import find_benchmark


class Command(InstallationCommand):
    help = "Make a campaign with all items of the protocol's kind. It is open immediately."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="SLUG or SLUG@VERSION")
        parser.add_argument("--protocol", required=True, metavar="NAME", help=", ".join(ballots.BALLOTS))
        parser.add_argument("--overlap", type=int, default=1, metavar="K", help="labels per item (default 1)")
        parser.add_argument("--lease", type=int, default=30, metavar="MINUTES", help="time for one item (default 30)")
        parser.add_argument("--annotators", metavar="A,B,...", help="names of accounts (default: every annotator)")
        parser.add_argument(
            "--ballot",
            type=json.loads,
            default={},
            metavar="JSON",
            help='settings of the protocol, as {"ties": true} or {"scale": {"min": 0, "max": 10, "step": 1}}',
        )
        parser.add_argument(
            "--run",
            type=int,
            metavar="ID",
            help="review, compare-analyses: the judgments of this run (default: of all)",
        )
        parser.add_argument("--judges", metavar="A,B,...", help="the same: of these judges alone")
        parser.add_argument("--criteria", action="store_true", help="show the criteria that are marked for campaigns")
        parser.add_argument(
            "--gold-rate",
            type=float,
            default=0.0,
            metavar="SHARE",
            help="how often a hidden gold item comes, 0.1 for one in ten (default 0: none; mark_items marks them)",
        )
        parser.add_argument("--guidelines", type=Path, metavar="FILE", help="a Markdown file for annotators")

    def handle(self, *args: Any, **options: Any) -> None:
        with bad_input_fails():
            people = None if options["annotators"] is None else _people(options["annotators"])
            benchmark = find_benchmark(options["benchmark"])
            campaign = make_campaign(
                name=options["name"],
                benchmark=benchmark,
                protocol=options["protocol"],
                overlap=options["overlap"],
                lease_minutes=options["lease"],
                annotators=people,
                guidelines=_text(options["guidelines"]),
                shows_criteria=options["criteria"],
                ballot=options["ballot"],
                gold_rate=options["gold_rate"],
                run=None if options["run"] is None else find_run(benchmark, options["run"]),
                plan=None if options["judges"] is None else Plan(judges=tuple(_names(options["judges"]))),
            )
        items = counted(campaign.campaign_items.count(), "items")
        who = "every annotator" if people is None else counted(len(people), "annotators")
        labels = f"{counted(campaign.overlap, 'labels')} each"
        self.stdout.write(f"Made campaign {campaign.name!r}, open now: {items}, {labels}, for {who}.")
        if people is not None and len(people) < campaign.overlap:
            self.stdout.write(f"{campaign.overlap} labels per item need as many annotators; add some on its page.")


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _people(names: str) -> list[User]:
    wanted = _names(names)
    people = {person.username: person for person in User.objects.filter(username__in=wanted)}
    missing = [name for name in wanted if name not in people]
    if missing:
        command = f"manage.py make_user {missing[0]} --role annotator"
        raise BadInput(f"Unknown account: {missing[0]!r}. Make it with: {command}")
    return [people[name] for name in wanted]


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as text: {error}") from None
