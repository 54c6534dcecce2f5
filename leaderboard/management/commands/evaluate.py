"""manage.py evaluate --recipe NAME --endpoint NAME"""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Role, User
from bank.errors import BadInput
from bank.models import Recipe
from bank.recipes import store
from judging.endpoints.probing import probe_judge
from judging.management.run_command import follow, tell_failures
from judging.models import Evaluation, Judge, Run
from judging.recipes import evaluations
from leaderboard.boards.recipes import board as boards
from leaderboard.show.files import PRINTED, print_rows

EVERYTHING = User(role=Role.ADMINISTRATOR)  # whoever may run commands may see everything


class Command(BaseCommand):
    help = (
        "Let an endpoint answer by a recipe, and show what comes of it. Without --wait a worker does it. What is "
        "answered already is not asked again; the same command goes on where it stopped."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--recipe", required=True, metavar="NAME", help="NAME (its newest version) or NAME@VERSION")
        parser.add_argument("--endpoint", metavar="NAME", help="its name in add_judge")
        parser.add_argument("--board", action="store_true", help="show the board of the recipe, and ask nobody")
        parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two models on the same questions")
        parser.add_argument("--against", metavar="RECIPE", help="another recipe, compared on --model's answers by both")
        parser.add_argument("--model", default="", metavar="NAME", help="the model that the answers belong to")
        parser.add_argument("--budget", type=float, metavar="USD", help="pause when this much is spent")
        parser.add_argument("--limit", type=int, metavar="N", help="the first N questions of each scenario only")
        parser.add_argument("--estimate", action="store_true", help="say what it would take, and start nothing")
        parser.add_argument("--retry", action="store_true", help="ask again what failed")
        parser.add_argument("--wait", action="store_true", help="ask in this process")
        parser.add_argument(
            "--give-up-after",
            type=float,
            metavar="MINUTES",
            help="with --wait: pause after so long of nothing but errors (as the endpoint has it)",
        )
        parser.add_argument("--format", choices=PRINTED, default="table", help="of the board, with --wait")

    def handle(self, *, recipe: str, endpoint: str | None, model: str, **options: Any) -> None:
        try:
            chosen = store.get(recipe)
            if options["compare"]:
                a, b = options["compare"]
                self._compared(boards.compare(chosen, EVERYTHING, a, b), f"{a} and {b}", options["format"])
                return
            if options["against"]:
                other = store.get(options["against"])
                rows = boards.compare_recipes(chosen, other, EVERYTHING, model)
                self._compared(rows, f"{model} by {chosen} and {other}", options["format"])
                return
            if options["board"]:
                self._board(chosen, options["format"])
                return
            if endpoint is None:
                raise CommandError(
                    "Say who is asked: --endpoint NAME (or --board, to see what there is).", returncode=2
                )
            judge = Judge.objects.get(name=endpoint)
            spec = store.spec_of(chosen)
            if options["estimate"]:
                self._estimate(evaluations.estimate(chosen, judge=judge, model=model, limit=options["limit"]))
                return
            if any(evaluations.ABILITIES[way][0] not in judge.abilities for way in spec.ways) and judge.base_url:
                self.stderr.write(f"Testing with a few short calls what {judge.name} can do ...")
                probe_judge(judge=judge)
            evaluation = evaluations.start_evaluation(
                recipe=chosen, judge=judge, model=model, limit=options["limit"], budget=options["budget"]
            )
            if options["retry"]:
                self.stderr.write(f"Asking {evaluations.retry(evaluation):,} failed questions again.")
        except Judge.DoesNotExist:
            names = ", ".join(Judge.objects.exclude(base_url="").values_list("name", flat=True)) or "none yet"
            raise CommandError(f"Unknown endpoint {endpoint!r}. Known: {names}. Add one with add_judge.") from None
        except (BadInput, store.UnknownRecipe) as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"{chosen}: {evaluation.model_name} by {judge.name}")
        if not options["wait"]:
            self.stdout.write("A worker will take it (manage.py worker); --wait works it in this process.")
            return
        self._work(evaluation, options["give_up_after"])
        self._board(chosen, options["format"])

    def _estimate(self, estimate: evaluations.Estimate) -> None:
        absent = f" ({estimate.absent:,} without their picture: not asked)" if estimate.absent else ""
        cost = "no prices known" if estimate.cost is None else f"${estimate.cost:.2f}"
        self.stdout.write(
            f"{estimate.questions:,} questions{absent}, {estimate.answers:,} answers ({estimate.stored:,} stored), "
            f"{estimate.calls:,} calls, about {estimate.sent:,} tokens sent and {estimate.received:,} received, {cost}"
        )

    def _work(self, evaluation: Evaluation, give_up_after: float | None) -> None:
        """Work the runs of the evaluation one after the other. Raises CommandError if one stops."""
        worked = set()
        while run := evaluations.advance(evaluation):
            if run.state in (Run.State.PAUSED, Run.State.CANCELLED):
                raise CommandError(run.state_reason or f"Run {run.pk} is {run.state}.")
            worked.add(run.pk)
            made = "marks" if run.kind == Run.Kind.MARKS else "answers"
            follow(self, run, made=made, doing="Asking", give_up_after=give_up_after)
        evaluation.refresh_from_db()
        for run in evaluation.runs.exclude(pk__in=worked):
            tell_failures(self, run)
        if evaluation.state_reason:
            raise CommandError(evaluation.state_reason)

    def _compared(self, rows: Sequence[boards.RecipeMeasure], title: str, shape: str) -> None:
        names = ("scenario", "condition", "a", "b", "difference", "difference_low", "difference_high", "p", "n")
        print_rows(self, [row.as_json() for row in rows], shape, title=title, names=names)

    def _board(self, recipe: Recipe, shape: str) -> None:
        board = boards.board(recipe, EVERYTHING)
        names = ("rank", "model", "scenario", "value", "value_low", "value_high", "accuracy", "n", "unread")
        print_rows(self, board.as_json(), shape, title=board.metric.title, names=names, notes=board.notes)
