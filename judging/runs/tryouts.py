"""Trying a run on a few items before it is paid for."""

import random

from django.db.models import QuerySet

from bank.models import Item
from bank.models.catalogue import in_hidden_splits
from judging import protocols
from judging.models import Run
from judging.runs import item_sets, plan

ITEMS = 5
SEED = 5


def draw(items: QuerySet[Item]) -> QuerySet[Item]:
    """A few of these items, the same each time: if there are enough, of those that people have labelled. None of a
    hidden split.
    """
    shown = items.exclude(in_hidden_splits("sample__"))
    # The relation belongs to the app of labels, which is above this one.
    labelled = list(shown.filter(labels__isnull=False).order_by("pk").values_list("pk", flat=True).distinct())
    pool = labelled if len(labelled) >= ITEMS else list(shown.order_by("pk").values_list("pk", flat=True))
    return items.filter(pk__in=random.Random(SEED).sample(pool, min(ITEMS, len(pool))))


def is_small(run: Run) -> bool:
    """Whether the page of a tryout can show the run, be it that somebody has gone on with it since."""
    return run.kind == Run.Kind.JUDGMENTS and not run.imported and run.run_items.count() <= ITEMS


def all_items(run: Run) -> int:
    """How many items a run with the settings of a tryout could judge; 0 for other runs."""
    if not is_small(run):
        return 0
    try:
        items = plan.judgeable_items(benchmark=run.benchmark, protocol=protocols.get(run.protocol))
        return item_sets.items(run.item_set, benchmark=run.benchmark, query=items).count()
    except (protocols.BadSettings, item_sets.BadItemSet):
        return 0
