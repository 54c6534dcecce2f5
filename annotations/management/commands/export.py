"""manage.py export {samples,responses,items,labels,judgments,all} --benchmark SLUG --format SHAPE"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from annotations.campaigns.run_doubts import SUBSETS, subset_of
from annotations.models import Campaign
from bank.database import chunks
from bank.errors import BadInput
from bank.intake import exports, huggingface
from bank.intake.registry import EVERYTHING, SHAPES, TABLES
from bank.management.importing import Failed, bad_input_fails
from bank.models import Benchmark
from bank.samples.benchmarks import find_benchmark
from judging.judgments.exports import by_keys
from judging.models import Run

FOLDER = "huggingface"
OF_CAMPAIGN = ("labels", "preferences")


class Command(InstallationCommand):
    help = "Write a table of a benchmark, or what a campaign asks, as a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=[*TABLES, EVERYTHING], help=f"{EVERYTHING}: as {FOLDER}")
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        held = "; ".join(f"{name}: {', '.join(shape.tables)}" for name, shape in SHAPES.items() if shape.maker)
        parser.add_argument("--format", dest="shape", choices=list(SHAPES), required=True, help=held)
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help=f"default: standard output; as {FOLDER} a folder or a .zip"
        )
        parser.add_argument("--with-images", action="store_true", help="samples with their pictures, as a zip")
        hidden = parser.add_mutually_exclusive_group()
        hidden.add_argument("--with-criteria", action="store_true", help="samples with what they are judged by")
        hidden.add_argument("--with-analyses", action="store_true", help="judgments with analyses and raw replies")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why hidden text is read, for the access log")
        parser.add_argument("--campaign", metavar="NAME", help="labels, preferences or items of this campaign alone")
        parser.add_argument("--run", type=int, metavar="ID", help="judgments of this run alone")
        parser.add_argument("--model", default="", metavar="NAME", help="as inspect: whose scores")
        parser.add_argument(
            "--subset", choices=list(SUBSETS), help="judgments that agree with people (hq), or not (hard); with --run"
        )
        parser.add_argument("--names", action="store_true", help="annotators by name instead of by pseudonym")

    def handle(self, *args: Any, **options: Any) -> None:
        what, shape, output = options["what"], options["shape"], options["output"]
        _check(options)
        with bad_input_fails():
            benchmark = find_benchmark(options["benchmark"])
            maker = exports.shape_for(what, shape).maker
            asked = _asked(benchmark, options)
            try:
                if shape == FOLDER and output is not None and output.suffix != ".zip":
                    huggingface.write_folder(what, benchmark, asked, output)
                    return
                if maker:
                    made = exports.file_pieces(what=what, shape=shape, benchmark=benchmark, asked=asked)
                    exports.write_pieces(made=made, output=output)
                    return
                records = _subset(benchmark, options) or exports.records(what, benchmark=benchmark, asked=asked)
                if options["with_images"]:
                    exports.write_pieces(made=exports.zipped(records=records, shape=shape), output=output)
                    return
                count = exports.write(records=records, what=what, shape=shape, output=output)
            except OSError as error:
                raise Failed(f"{output} cannot be written: {error.strerror}") from None
        self.stderr.write(f"{count:,} {what}")


def _check(options: dict[str, Any]) -> None:
    hidden = options["with_criteria"] or options["with_analyses"]
    if hidden and not options["reason"].strip():
        raise Failed("Exporting hidden text needs a reason: --reason TEXT.")
    if options["with_images"] and (options["what"] != "samples" or SHAPES[options["shape"]].maker):
        raise Failed("Only samples have pictures: export samples --with-images.")


def _asked(benchmark: Benchmark, options: dict[str, Any]) -> exports.ExportRequest:
    """Who asks, and for what. Raises BadInput."""
    what, campaign = options["what"], None
    if options["campaign"] is not None:
        found = Campaign.objects.filter(name=options["campaign"], benchmark=benchmark).first()
        if found is None or not (what in OF_CAMPAIGN or SHAPES[options["shape"]].of_campaign):
            raise BadInput(f"No {what} of a campaign {options['campaign']!r}.")
        campaign = found.pk
    return exports.ExportRequest(
        command=f"export {what}",
        reason=options["reason"],
        criteria=options["with_criteria"],
        analyses=options["with_analyses"],
        names=options["names"],
        campaign=campaign,
        run=options["run"],
        model=options["model"],
    )


def _subset(benchmark: Benchmark, options: dict[str, Any]) -> exports.Records | None:
    """The judgments of a subset of a run. None where none is named. Raises BadInput."""
    if not options["subset"]:
        return None
    run = Run.objects.filter(pk=options["run"] or 0, benchmark=benchmark).select_related("benchmark").first()
    if run is None or options["what"] != "judgments":
        raise BadInput(f"A subset needs judgments and a run on {benchmark}: --run ID.")
    return by_keys(chunks(subset_of(run, options["subset"])))
