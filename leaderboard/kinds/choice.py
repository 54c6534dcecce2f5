"""Answers to multiple choice, compared with their keys (MMBench, CircularEval)."""

from collections.abc import Sequence

from django.db.models import QuerySet

from judging.models import Judgment, Run
from leaderboard import metrics
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from stats.figures import percent, signed_points


class Keyed(Kind):
    """Answers that are right or wrong by a key. Judges only read which option an answer chose.

    Whether keys exist is hidden too, so this kind is offered on the basis of questions and answers alone.
    """

    keyed = True
    hidden = ("answer_key",)
    metrics = metrics.READINGS
    reference = "majority of people"
    counted_word = "sample"
    edition_digits = 3  # the ends of intervals depend on the share and on sizes alone, see boards.models.keyed

    def judgments(self, runs: Sequence[Run]) -> QuerySet[Judgment]:
        # A label found in the answer itself was not read by the judge.
        return super().judgments(runs).filter(extraction="judge")


ONE_PASS = NumberColumn(
    "vanilla", "One pass %", percent, "Right in the pass with the options as they stand (VanillaEval)"
)


class Choice(Keyed):
    name = "choice"
    title = "Multiple choice"
    aliases = ("multiple-choice", "choice-extraction")
    column = "option"
    question = "choice"
    rotates = True
    shape = Shape(
        NumberColumn("circular", "Circular %", percent, "Right in every rotation of the options"),
        "right %",
        "circular: right in every rotation of the options",
        beside=(
            ONE_PASS,
            NumberColumn("difference", "Difference", signed_points, "Circular minus one pass, in points"),
        ),
    )
    shapes = {
        "vanilla": Shape(ONE_PASS, "right %", "one pass: nobody answered in every rotation of the options"),
    }
