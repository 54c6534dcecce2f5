"""manage.py submission_queue BENCHMARK [--like RUN]"""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from bank.models import Submission
from bank.samples.benchmarks import find_benchmark
from judging.models import Run
from judging.runs import submissions


class Command(InstallationCommand):
    help = (
        "Show who judges what researchers submit to a benchmark, and the queue; with --like or --off change it. "
        "Workers judge it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("benchmark", help="SLUG (its newest version) or SLUG@VERSION")
        parser.add_argument("--like", type=int, metavar="RUN", help="the run whose judge, prompt and settings are used")
        parser.add_argument("--per-submission", type=float, metavar="USD", help="what judging one may cost")
        parser.add_argument("--per-day", type=float, metavar="USD", help="what all may cost in a day (UTC)")
        parser.add_argument("--off", action="store_true", help="judge no more of them; what is going on ends")

    def handle(self, *, benchmark: str, like: int | None, off: bool, **options: Any) -> None:
        changes = {name: options[name] for name in ("per_submission", "per_day") if options[name] is not None}
        try:
            chosen = find_benchmark(benchmark)
            rules = submissions.judging_of(chosen)
            if like is not None:
                changes |= {"like": Run.objects.filter(pk=like).select_related("judge").first(), "active": True}
                if changes["like"] is None:
                    raise BadInput(f"There is no run {like}.")
            if off:
                changes["active"] = False
            if changes:
                kept = ("like", "active", "per_submission", "per_day")
                values = {name: getattr(rules, name) for name in kept if rules} | changes
                if "like" not in values:
                    raise BadInput("Nobody judges these submissions yet: say like which run, with --like RUN.")
                rules = submissions.set_judging(by=None, benchmark=chosen, **values)
        except BadInput as error:
            raise CommandError(str(error), returncode=2) from None
        if rules is None or not rules.active:
            self.stdout.write(f"Nobody judges what is submitted to {chosen}.")
        else:
            a_day = f"${rules.per_day:.2f} a day" if rules.per_day is not None else "no limit a day"
            each = f"${rules.per_submission:.2f} each" if rules.per_submission is not None else "no limit each"
            self.stdout.write(f"Judged like run {rules.like_id} ({rules.like.judge.name}); {each}, {a_day}.")
        for submission in Submission.objects.filter(benchmark=chosen).order_by("pk").select_related("benchmark", "by"):
            at = submissions.progress(submission, staff=True)
            if at is not None:
                place = f" {at.place} of {at.waiting}" if at.place else ""
                counts = f", {at.done} of {at.planned} judgments" if at.planned else ""
                reason = f" ({at.reason})" if at.reason else ""
                self.stdout.write(f"{submission.pk} {submission.name}: {at.state}{place}{counts}{reason}")
        spent = submissions.spent_on(chosen, submissions.day_of(timezone.now()))
        self.stdout.write(f"Given out today: ${spent:.4f}.")
