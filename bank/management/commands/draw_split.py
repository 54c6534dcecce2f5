"""manage.py draw_split --benchmark SLUG [--share 0.4] [--seed S]"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from bank.management.importing import bad_input_fails
from bank.samples import benchmarks, splits


class Command(InstallationCommand):
    help = "Draw a dev and a test split, stratified by capability; samples of a group stay together."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--share", type=float, default=splits.SHARE, metavar="S", help="of dev; default 0.4")
        parser.add_argument("--seed", type=int, default=0, metavar="N")
        parser.add_argument("--names", default=f"{splits.DEV},{splits.TEST}", metavar="DEV,TEST")
        parser.add_argument("--dry-run", action="store_true", help="say what it would draw, and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        with bad_input_fails():
            benchmark = benchmarks.find_benchmark(options["benchmark"])
            dev, _, test = (part.strip() for part in options["names"].partition(","))
            drawn = splits.draw(benchmark=benchmark, share=options["share"], seed=options["seed"])
            for path, first, second in drawn.by_leaf:
                self.stdout.write(f"{path or 'no capability'}: {first} {dev}, {second} {test}")
            if options["dry_run"]:
                return
            changed = splits.set_splits(benchmark=benchmark, drawn=drawn, dev=dev, test=test)
        self.stdout.write(f"{len(drawn.dev):,} {dev}, {len(drawn.test):,} {test}; {changed:,} samples changed.")
