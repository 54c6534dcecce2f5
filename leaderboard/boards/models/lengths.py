"""How long the answers of models are, and the replies of judges (MLLM-as-a-Judge, Figures 3, 8 and 14 to 17)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from django.db.models.functions import Length

from bank import guard
from judging.models import Judgment
from leaderboard import votes
from leaderboard.boards.base import Board, cached
from leaderboard.hidden import of_one_source, without_sealed
from leaderboard.rows import Number, Row, number, of_judge, shown
from leaderboard.scope import Scope
from leaderboard.sight import Sight
from leaderboard.votes import scores
from stats.figures import whole
from stats.proportions import mean

STEPS = 20  # of a histogram; the last one is open
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, kw_only=True)
class LengthRow(Row):
    """Lengths of the answers of a ``model``, in characters, or of the replies of a ``judge``, in tokens as its endpoint
    counts them: their mean, and the lengths below which a tenth, a quarter, half, three quarters and nine tenths of
    them lie. ``counts``: how many lie in each step of ``width`` from 0 on, the last with all that are longer.
    """

    model: str = ""
    judge: str = ""
    run: int | None = None
    unit: str
    mean: Number = shown("Mean", whole)
    p10: float
    p25: float
    p50: float = shown("Half are below", whole, "The median")
    p75: float
    p90: float
    width: int
    counts: list[int]
    n: int
    simulated: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class LengthsBoard(Board[LengthRow]):
    """``rows``: of answers; ``replies``: of judges."""

    replies: Sequence[LengthRow] = ()


def lengths(scope: Scope) -> LengthsBoard:
    """Of the answers that the viewer may know the lengths of, and of the judges of this kind of verdict."""
    return cached(scope, "lengths", lambda scope: LengthsBoard(_of_answers(scope), replies=_of_replies(scope)))


@guard.working()
def _of_answers(scope: Scope) -> list[LengthRow]:
    facts = ("model__name", "variant", "sample__group", "sample__key", "length")
    answers = votes.answers_of(scope).filter(blind=False).annotate(length=Length("text")).order_by()
    frame = pd.DataFrame(answers.values_list(*facts), columns=["model", "variant", "group", "key", "length"])
    if frame.empty:
        return []
    frame["group"] = votes.group_of(frame)
    named = frame["model"].where(frame["variant"] == "", frame["model"] + " (" + frame["variant"] + ")")
    width = _width(frame["length"])
    return [_row(part, width, model=str(model), unit="characters") for model, part in frame.groupby(named)]


@guard.working()
def _of_replies(scope: Scope) -> list[LengthRow]:
    if Sight(scope).only_editions:
        return []
    scope = of_one_source(without_sealed(scope))
    groups = scores.items_asked(scope)["group"]
    found = []
    for runs in votes.judge_groups(scope):
        if not scope.staff and any(run.held for run in runs):  # what a call took tells how much was hidden in it
            continue
        told = Judgment.objects.filter(run__in=runs, status=Judgment.Status.OK, completion_tokens__gt=0)
        frame = pd.DataFrame(told.order_by().values_list("item", "completion_tokens"), columns=["item", "length"])
        frame = frame.join(groups, on="item", how="inner")
        if len(frame):
            found.append((runs[-1], frame))
    width = _width(pd.concat([frame["length"] for _, frame in found])) if found else 1
    return [_row(frame, width, **of_judge(run), unit="tokens") for run, frame in found]


def _width(values: "pd.Series[int]") -> int:
    """A round step of which the histogram's reach all but the longest hundredth."""
    most = float(np.quantile(values, 0.99)) / STEPS
    power = 10.0 ** max(0, int(np.log10(max(most, 1))))
    return int(next(step * power for step in (1, 2, 5, 10) if most <= step * power))


def _row(frame: pd.DataFrame, width: int, **of: object) -> LengthRow:
    values = frame["length"].to_numpy(np.float64)
    counts = np.bincount(np.minimum(values // width, STEPS - 1).astype(int), minlength=STEPS)
    shares = dict(zip(("p10", "p25", "p50", "p75", "p90"), np.quantile(values, SHARES).tolist(), strict=True))
    average = number(mean(values=values, cluster=frame["group"].astype(str).to_numpy()))
    return LengthRow(**of, **shares, mean=average, width=width, counts=counts.tolist(), n=len(values))  # type: ignore[arg-type]
