"""Submitted models of which no exact number is told, but the Ladder's steps, as their senders are (``stats.ladder``).

An answer can ask a judge about what it was shown, so each exact total of a submitted model is an equation about chosen
samples, and a dozen of them tell every one. So of one sender's models the best alone has a number, rounded down to a
step, until a curator releases a model.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bank.models import Submission
from leaderboard.boards.base import ModelRow
from leaderboard.methods import IN_STEPS
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import Scope
from stats import ladder
from stats.figures import number_of
from stats.proportions import wilson

NO_BETTER = "no better than the best that its sender was told of"


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a submitted model's main number: the share of its scale, None where it is no better than what its
    sender was told before; ``n`` samples, in steps of ``step``.
    """

    sender: int
    share: float | None
    n: int

    @property
    def step(self) -> int:
        return ladder.step_of(self.n)

    def number(self, scale: tuple[float, float]) -> Number:
        """On this scale, with an interval that holds for every score within the step."""
        if self.share is None:
            return Number(n=self.n, reason=NO_BETTER)
        low, high = scale
        least = wilson(successes=self.share * self.n, n=self.n).low
        most = wilson(successes=min(self.n, self.share * self.n + self.step), n=self.n).high
        value, least, most = (low + share * (high - low) for share in (self.share, least, most))
        points = 100 * self.step / self.n
        reason = (
            f"told in steps of {self.step} of {number_of(self.n, 'sample')} ({points:.1f} % of the scale), rounded "
            "down; the interval holds for all scores within the step"
        )
        return Number(value, least, most, n=self.n, method=IN_STEPS, reason=reason)


def unreleased(scope: Scope) -> list[Submission]:
    """The submissions to the benchmark, first ones first, whose models no curator has released."""
    waiting = Submission.objects.filter(benchmark=scope.benchmark, released_at=None, model__isnull=False)
    return list(waiting.exclude(state__in=(Submission.State.FAILED, Submission.State.WITHDRAWN)).order_by("pk"))


def told_to_senders(scope: Scope, rows: Sequence[ModelRow]) -> dict[str, Told]:
    """What the sender of each submitted model among these exact rows is told of it, by the model's name."""
    main, (low, high) = scope.kind.shape.main.name, scale_of(scope)
    # Steps of the samples there are: how many of the calls gave a verdict can follow hidden text, too.
    n = scope.benchmark.samples.in_use().count()
    shares = {
        row.model: (value - low) / (high - low)
        for row in rows
        if row.n >= ladder.LEAST and (value := row.number(main).value) is not None
    }
    sent: dict[int, list[str]] = defaultdict(list)
    submissions = Submission.objects.filter(benchmark=scope.benchmark, name__in=shares, model__isnull=False)
    for sender, name in submissions.order_by("pk").values_list("by", "name"):
        sent[sender].append(name)
    told = {}
    for sender, names in sent.items():
        for name, share in zip(names, ladder.told_in_turn([shares[each] for each in names], n), strict=True):
            told[name] = Told(sender, share, n)
    return told


def best_alone(told: Mapping[str, Told]) -> dict[str, Told]:
    """The same with a number for the best of each sender alone."""
    best = {one.sender: one.share for one in told.values() if one.share is not None}  # a later one is better
    return {
        name: one if one.share is not None and one.share == best[one.sender] else Told(one.sender, None, one.n)
        for name, one in told.items()
    }


def rows_of(scope: Scope, exact: Sequence[ModelRow], told: Mapping[str, Told]) -> list[ModelRow]:
    """The rows of these models with their main number alone, as it is told."""
    main, rows = scope.kind.shape.main.name, []
    for row in exact:
        if row.model in told:
            kept = {name: getattr(row, name) for name in ("tie_rule", "failure_rule") if hasattr(row, name)}
            number = told[row.model].number(scale_of(scope))
            rows.append(type(row)(model=row.model, n=told[row.model].n, **kept | {main: number}))  # type: ignore[call-arg]
    return rows


def is_told(method: str, reason: str) -> bool:
    """Whether a number with these is that of a model that is told in steps."""
    return method == IN_STEPS or reason == NO_BETTER


def strengths(scope: Scope, rows: Sequence[ModelRow], anchor: Number) -> dict[str, Number]:
    """What places these rows among others. Of pairs, on the scale of strengths: a submitted model meets the anchor
    alone, so that its strength is the anchor's and the logarithm of its odds.
    """
    numbers = {row.model: row.number(scope.kind.shape.main.name) for row in rows}
    if not scope.kind.pairwise:
        return numbers
    base = anchor.value or 0.0
    return {name: _as_strength(number, base) for name, number in numbers.items()}


def _as_strength(rate: Number, base: float) -> Number:
    if rate.value is None:
        return UNKNOWN
    value, low, high = (None if share is None else base + _log_odds(share) for share in rate.ends)
    return Number(value, low, high)


def _log_odds(share: float) -> float:
    if share in (0.0, 1.0):
        return math.inf if share else -math.inf
    return math.log(share / (1 - share))


def scale_of(scope: Scope) -> tuple[float, float]:
    """The ends of the scale of the number that is told."""
    return (0.0, 1.0) if scope.kind.pairwise else scope.kind.ends(scope.benchmark)
