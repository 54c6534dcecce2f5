"""manage.py submission_queue BENCHMARK [--like RUN]"""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from bank.models import Benchmark, Submission
from bank.samples.benchmarks import find_benchmark
from judging.collecting import submissions
from judging.models import Run, SubmissionJudging


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
        try:
            chosen = find_benchmark(benchmark)
            rules = submissions.judging_of(chosen)
            if changes := _changes(like, off, options):
                rules = _changed(chosen, rules, changes)
        except BadInput as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(_in_words(chosen, rules))
        for submission in Submission.objects.filter(benchmark=chosen).order_by("pk").select_related("benchmark", "by"):
            progress = submissions.progress(submission, staff=True)
            if progress is not None:
                self.stdout.write(f"{submission.pk} {submission.name}: {_progress_in_words(progress)}")
        spent = submissions.spent_on(chosen, submissions.day_of(timezone.now()))
        self.stdout.write(f"Given out today: ${spent:.4f}.")


def _changes(like: int | None, off: bool, options: Mapping[str, Any]) -> dict[str, Any]:
    changes = {name: options[name] for name in ("per_submission", "per_day") if options[name] is not None}
    if like is not None:
        changes |= {"like": Run.objects.filter(pk=like).select_related("judge").first(), "active": True}
        if changes["like"] is None:
            raise BadInput(f"There is no run {like}.")
    if off:
        changes["active"] = False
    return changes


def _changed(benchmark: Benchmark, rules: SubmissionJudging | None, changes: dict[str, Any]) -> SubmissionJudging:
    """The rules after these changes, stored. Raises BadInput."""
    kept = ("like", "active", "per_submission", "per_day")
    values = {name: getattr(rules, name) for name in kept if rules} | changes
    if "like" not in values:
        raise BadInput("Nobody judges these submissions yet: say like which run, with --like RUN.")
    return submissions.set_judging(by=None, benchmark=benchmark, **values)


def _in_words(benchmark: Benchmark, rules: SubmissionJudging | None) -> str:
    if rules is None or not rules.active:
        return f"Nobody judges what is submitted to {benchmark}."
    a_day = f"${rules.per_day:.2f} a day" if rules.per_day is not None else "no limit a day"
    each = f"${rules.per_submission:.2f} each" if rules.per_submission is not None else "no limit each"
    return f"Judged like run {rules.like_id} ({rules.like.judge.name}); {each}, {a_day}."


def _progress_in_words(progress: submissions.Progress) -> str:
    place = f" {progress.place} of {progress.waiting}" if progress.place else ""
    counts = f", {progress.done} of {progress.planned} judgments" if progress.planned else ""
    reason = f" ({progress.reason})" if progress.reason else ""
    return f"{progress.state}{place}{counts}{reason}"
