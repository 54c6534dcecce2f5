"""manage.py make_items {score,pair,batch} --benchmark SLUG [--models A,B] [--anchor MODEL] [--sample N] [--bare]"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from bank.management.importing import bad_input_fails
from bank.models import Item
from bank.samples import benchmarks, items

AS_GIVEN = ("kind", "anchor", "sample", "seed", "rotations", "bare", "size", "least", "apart")


class Command(InstallationCommand):
    help = "Make items to judge and label from stored responses."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=Item.Kind.values)
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--models", default="", metavar="A,B", help="default: all that responded, by name")
        parser.add_argument("--anchor", default="", metavar="MODEL", help="pair every model with this one")
        parser.add_argument("--sample", type=int, metavar="N", help="draw N samples")
        parser.add_argument("--seed", type=int, default=0, metavar="S")
        parser.add_argument(
            "--size",
            type=int,
            metavar="N",
            help="of batches, balanced by model and length; of pairs, those within",
        )
        parser.add_argument(
            "--least", type=int, default=0, metavar="N", help="only answers of N characters, not refused or cut off"
        )
        parser.add_argument("--apart", action="store_true", help="only samples without items of other kinds")
        parser.add_argument("--rotations", action="store_true", help="score: the answers to rotated options, too")

        parser.add_argument(
            "--bare", action="store_true", help="score: the samples themselves, texts or pictures without a response"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with bad_input_fails():
            plan = items.plan_items(
                benchmark=benchmarks.find_benchmark(options["benchmark"]),
                models=[name.strip() for name in options["models"].split(",") if name.strip()],
                **{name: options[name] for name in AS_GIVEN},
            )
            made, everything = items.make_items(plan)
        self.stdout.write(f"Made {made} items; {everything - made} were there already.")
