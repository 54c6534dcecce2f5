"""What a judge costs, how long it takes, and what people who reviewed its verdicts say of them."""

from collections.abc import Sequence

import numpy as np
from django.db.models import Avg, Count, Sum

from annotations.models import Label
from judging.models import Judgment, Run
from leaderboard.boards.base import Row, number
from stats.proportions import mean, rate

PER = 1000


def running(runs: Sequence[Run]) -> dict[int, Row]:
    """By run: ``cost`` (US dollars per 1,000 judgments), ``seconds`` (mean of a call), ``asked`` and ``ok``; of reviews
    ``agree`` and ``hallucination`` (shares) and ``grade`` (1 to 5) with intervals, and ``reviews``, how many.

    Null where nothing is known: a judgment that was imported without its cost is not one that cost nothing.
    """
    ids = [run.pk for run in runs]
    found: dict[int, Row] = {}
    rows = (
        Judgment.objects.filter(run__in=ids)
        .order_by()
        .values("run")
        .annotate(asked=Count("pk"), spent=Sum("cost"), priced=Count("cost"), seconds=Avg("latency"))
    )
    for row in rows:
        cost = PER * row["spent"] / row["priced"] if row["priced"] else None
        found[row["run"]] = {"cost": cost, "seconds": row["seconds"], "asked": row["asked"]}
    reviews = Label.objects.filter(assignment__campaign_item__reviewed__run__in=ids, excluded=False)
    reviews = reviews.exclude(assignment__campaign_item__practice=True)
    names = ("assignment__campaign_item__reviewed__run", "item", "agree", "grade", "hallucination")
    by_run: dict[int, list[tuple[int, bool | None, int | None, bool | None]]] = {}
    for run, item, agree, grade, hallucination in reviews.values_list(*names):
        by_run.setdefault(run, []).append((item, agree, grade, hallucination))
    for run, given in by_run.items():
        found.setdefault(run, {"cost": None, "seconds": None, "asked": 0})
        found[run] |= {"reviews": len(given)}
        for place, name in ((1, "agree"), (2, "grade"), (3, "hallucination")):
            known = [(row[0], row[place]) for row in given if row[place] is not None]
            cluster = np.asarray([item for item, _ in known])
            values = np.asarray([float(value) for _, value in known if value is not None])
            estimate = mean(values=values, cluster=cluster) if name == "grade" else rate(hits=values, cluster=cluster)
            found[run] |= number(name, estimate if known else None)
    return found
