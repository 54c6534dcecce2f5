"""How large a benchmark is: what is computed at once, and what by a job."""

from annotations.models import Label
from bank import guard
from judging.models import Judgment


@guard.working()
def verdicts_up_to(benchmark: int, most: int) -> int:
    """How many verdicts of people and judges a benchmark has, where they are no more than twice so many."""
    judgments = Judgment.objects.filter(run__benchmark=benchmark)
    labels = Label.objects.filter(campaign__benchmark=benchmark)
    return sum(rows.order_by()[:most].count() for rows in (judgments, labels))
