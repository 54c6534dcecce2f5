"""manage.py export {samples,responses,items,labels,judgments} --benchmark SLUG --format {jsonl,csv,parquet}"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from annotations.campaigns.run_doubts import SUBSETS, subset_of
from annotations.labels.exports import label_records, label_studio, preferences
from annotations.models import Campaign
from bank.database import chunks
from bank.errors import BadInput
from bank.intake import exports
from bank.management.importing import Failed, bad_input_fails
from bank.models import Benchmark
from bank.samples.benchmarks import find_benchmark
from judging.judgments.exports import by_keys
from judging.models import Run

LABEL_STUDIO = "label-studio"


class Command(InstallationCommand):
    help = "Write a table of a benchmark in the generic format."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=list(exports.COLUMNS))
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        shapes = (*exports.SHAPES, LABEL_STUDIO)
        parser.add_argument("--format", dest="shape", choices=shapes, required=True, help=f"{LABEL_STUDIO}: labels")
        parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
        parser.add_argument("--with-images", action="store_true", help="samples with their pictures, as a zip")
        hidden = parser.add_mutually_exclusive_group()
        hidden.add_argument("--with-criteria", action="store_true", help="samples with what they are judged by")
        hidden.add_argument("--with-analyses", action="store_true", help="judgments with analyses and raw replies")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why hidden text is read, for the access log")
        parser.add_argument("--campaign", metavar="NAME", help="labels and preferences of this campaign alone")
        parser.add_argument("--run", type=int, metavar="ID", help="with --subset: the run whose judgments these are")
        parser.add_argument(
            "--subset", choices=list(SUBSETS), help="judgments that agree with people (hq), or not (hard)"
        )
        parser.add_argument("--names", action="store_true", help="annotators by name instead of by pseudonym")

    def handle(self, *args: Any, **options: Any) -> None:
        hidden = options["with_criteria"] or options["with_analyses"]
        if hidden and not options["reason"].strip():
            raise Failed("Exporting hidden text needs a reason: --reason TEXT.")
        asked = exports.ExportRequest(
            command=f"export {options['what']}",
            reason=options["reason"],
            criteria=options["with_criteria"],
            analyses=options["with_analyses"],
            names=options["names"],
        )
        if options["with_images"] and (options["what"] != "samples" or options["shape"] == LABEL_STUDIO):
            raise Failed("Only samples have pictures: export samples --with-images.")
        with bad_input_fails():
            benchmark = find_benchmark(options["benchmark"])
            records = _part(benchmark, options) or exports.records(options["what"], benchmark=benchmark, asked=asked)
            try:
                made = label_studio(records) if options["shape"] == LABEL_STUDIO else None
                if options["with_images"]:
                    made = exports.zipped(records=records, shape=options["shape"])
                if made is not None:
                    exports.write_pieces(made=made, output=options["output"])
                    return
                count = exports.write(
                    records=records, what=options["what"], shape=options["shape"], output=options["output"]
                )
            except OSError as error:
                raise Failed(f"{options['output']} cannot be written: {error.strerror}") from None
        self.stderr.write(f"{count:,} {options['what']}")


def _part(benchmark: Benchmark, options: dict[str, Any]) -> exports.Records | None:
    """The records of one campaign or of a subset of a run. None to export the whole table. Raises BadInput."""
    what = options["what"]
    if options["shape"] == LABEL_STUDIO and what != "labels":
        raise BadInput(f"{LABEL_STUDIO} is a format for labels only.")
    if options["subset"]:
        run = Run.objects.filter(pk=options["run"] or 0, benchmark=benchmark).select_related("benchmark").first()
        if run is None or what != "judgments":
            raise BadInput(f"A subset needs judgments and a run on {benchmark}: --run ID.")
        return by_keys(chunks(subset_of(run, options["subset"])))
    if options["campaign"] is None:
        return None
    campaign = Campaign.objects.filter(name=options["campaign"]).first()
    if campaign is None or what not in ("labels", "preferences"):
        raise BadInput(f"No {what} of a campaign {options['campaign']!r}.")
    if what == "preferences":
        return preferences(item__sample__benchmark=benchmark, campaign=campaign)
    return label_records(item__sample__benchmark=benchmark, campaign=campaign, names=options["names"])
