"""manage.py publish {SLUG [--private | --keys | --saw-nothing CAMPAIGN|RUN | --edition KIND [--split NAME] [--run ID]
[--judges] [--dry-run]] | NAME --recipe}
"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from annotations.labels import provenance as labels
from bank.management.importing import Failed, bad_input_fails
from bank.models import Benchmark
from bank.recipes import store
from bank.samples.benchmarks import find_benchmark, open_keys, set_visibility
from judging.judgments import provenance as judgments
from judging.models import Run
from leaderboard import editions
from leaderboard.editions import recipes as recipe_editions
from leaderboard.kinds import WITH_EDITIONS
from leaderboard.view import scope_of
from stats.figures import number_of


class Command(InstallationCommand):
    help = (
        "Publish a benchmark: everybody sees its approved samples and its boards. With --edition publish a board that "
        "depends on hidden answers or weights, as it is now; with --recipe the board of a recipe."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="SLUG or SLUG@VERSION; a recipe's NAME")
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--private", action="store_true", help="make it staff's alone again")
        group.add_argument(
            "--keys",
            action="store_true",
            help="show everybody the answer keys, references and weights of approved samples outside hidden splits; it "
            "cannot be taken back",
        )
        group.add_argument(
            "--saw-nothing",
            metavar="CAMPAIGN|RUN",
            help="a campaign's name or a run's number: whoever gave these verdicts of a file saw nothing hidden",
        )
        group.add_argument("--edition", choices=WITH_EDITIONS, metavar="KIND", help=", ".join(WITH_EDITIONS))
        group.add_argument("--recipe", action="store_true", help="an edition of the board of this recipe")
        parser.add_argument("--split", default="", metavar="NAME", help="a hidden split, with --edition")
        parser.add_argument("--run", type=int, metavar="ID", help="whose verdicts count; default as last time")
        parser.add_argument("--judges", action="store_true", help="with --edition: its board of judges")
        parser.add_argument("--dry-run", action="store_true", help="with --edition: print what it would tell, no more")

    def handle(
        self,
        *,
        private: bool,
        keys: bool,
        saw_nothing: str | None,
        recipe: bool,
        edition: str | None,
        split: str,
        run: int | None,
        judges: bool,
        dry_run: bool,
        **options: Any,
    ) -> None:
        with bad_input_fails():
            if recipe:
                self._publish_recipe(options["benchmark"])
                return
            benchmark = find_benchmark(options["benchmark"])
            if keys:
                opened = open_keys(benchmark=benchmark, command="publish")
                self.stdout.write(f"The keys of {opened:,} samples of {benchmark} are open to everybody from now on.")
                return
            if saw_nothing:
                self._open_verdicts(benchmark, saw_nothing)
                return
            if not edition:
                set_visibility(benchmark=benchmark, visibility="private" if private else "public", command="publish")
                self.stdout.write(f"{benchmark} is {'for staff only' if private else 'published'}.")
                return
            usual = None if judges else editions.usual_run(scope_of(benchmark=benchmark, kind=edition, split=split))
            judge_run = usual
            if run is not None and (judge_run := Run.objects.filter(pk=run).first()) is None:
                raise Failed(f"There is no run {run}.")
            view: dict[str, Any] = {"benchmark": benchmark, "kind": edition, "split": split, "run": judge_run}
            if dry_run:
                self._describe(editions.draft(**view, judges=judges))
                return
            published = editions.publish(**view, judges=judges, command="publish")
        board = f"{edition} board of {'judges of ' if judges else ''}{benchmark}"
        self.stdout.write(f"Published edition {published.number} of the {board}.")

    def _open_verdicts(self, benchmark: Benchmark, name: str) -> None:
        campaign = benchmark.campaigns.filter(name=name).first()
        run = benchmark.runs.filter(pk=int(name)).first() if name.isascii() and name.isdigit() else None
        if (campaign is None) == (run is None):
            which = "both a campaign and a run" if run else "neither a campaign nor a run"
            raise Failed(f"{benchmark} has {which} {name!r}.")
        if campaign:
            opened = labels.for_staff(campaign)
            labels.say_saw_nothing(campaign=campaign, command="publish")
        elif run:
            opened = judgments.for_staff(run)
            judgments.say_saw_nothing(run=run, command="publish")
        verdicts = number_of(opened, "label" if campaign else "judgment")
        self.stdout.write(
            f"{verdicts} of {name} that were for staff alone follow what is open to everybody from now on."
        )

    def _describe(self, draft: editions.Draft) -> None:
        self.stdout.write(f"Edition {draft.number} is not published: this is what it would tell.")
        for term, said in draft.in_words():
            self.stdout.write(f"{term}: {said}.")
        if draft.problem:
            raise Failed(draft.problem)

    def _publish_recipe(self, name: str) -> None:
        try:
            recipe = store.get(name)
        except store.UnknownRecipe as error:
            raise Failed(str(error)) from None
        published = recipe_editions.publish(recipe, command="publish")
        self.stdout.write(f"Published edition {published.number} of the board of {recipe}.")
