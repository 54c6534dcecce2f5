"""manage.py attack_judge --benchmark SLUG --judge NAME --protocol NAME [--attacks A,B]"""

import json
from typing import Any

from django.core.management.base import CommandParser

from judging.extras import attacks
from judging.management.run_command import RunCommand
from judging.models import Run


class Command(RunCommand):
    help = (
        "Test a judge with attacks on the answers it judges, and report how far each inflates them. Without --wait a "
        "worker does it; the same command again continues the run and reports. Without --limit or items in the "
        f"settings, {attacks.DEFAULT_SAMPLE} items are drawn. None of its verdicts count on a board."
    )
    takes = ("judge", "protocol")
    settings_help = 'of the protocol and the request, e.g. {"order": "both", "items": {"sample": 100, "seed": 1}}'

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        names = ", ".join(dict.fromkeys(attack.name for attack in attacks.ALL.values()))
        parser.add_argument("--attacks", default="", metavar="A,B,...", help=f"of {names}; default all")
        parser.add_argument("--format", dest="shape", default="table", choices=["table", "json"])

    def handle(self, **options: Any) -> None:
        as_json, out = options["shape"] == "json", self.stdout
        if as_json:
            self.stdout = self.stderr  # messages are not part of the JSON
        names = [name.strip() for name in options["attacks"].split(",") if name.strip()]
        run = self.start(options, kind=Run.Kind.ATTACKS, attacks=names)
        self.stdout.write(
            f"Run {run.pk}: {run.judge.name} on {run.benchmark}, {run.protocol}, {run.items.count()} items, "
            f"{len(run.attacks)} attacks"
        )
        if run.state != Run.State.FINISHED:
            self.work_or_queue(run, options)
        if as_json:
            from judging.extras import attack_report

            rows = attack_report.MovedSerializer(attack_report.report(run).rows, many=True).data
            out.write(json.dumps(rows, ensure_ascii=False, indent=1))
        elif run.state == Run.State.FINISHED:
            self._print(run)

    def _print(self, run: Run) -> None:
        from judging.extras.attack_report import report

        results = report(run)
        line = "{:<16} {:>6} {:>8} {:>8} {:>8}  {:<18} {:>10}"
        self.stdout.write(line.format("attack", "items", "plain", "attacked", "change", "95%", "no verdict"))
        for row in results.rows:
            numbers = [row.plain.value, row.attacked.value, row.change.value, row.unread.value]
            plain, attacked, change, unread = ("-" if number is None else f"{number:.3f}" for number in numbers)
            interval = row.change.interval
            interval_text = f"{interval.low:+.3f} to {interval.high:+.3f}" if interval else "-"
            cells = (row.attack.name, row.change.n, plain, attacked, change, interval_text, unread)
            self.stdout.write(line.format(*cells).rstrip())
