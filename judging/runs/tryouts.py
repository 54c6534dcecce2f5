"""Trying a run on a few items before it is paid for: drawing them, trying again with changes, going on with all."""

import math
import random
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Sum

from accounts.models import User
from bank.errors import BadInput
from bank.models import Item
from bank.models.catalogue import in_hidden_splits
from judging import protocols
from judging.models import Judgment, PromptTemplate, Run
from judging.protocols import prompts
from judging.protocols.prompts.stored import add_template
from judging.runs import actions, item_sets, plan

ITEMS = 5
SEED = 5
READABLE = 0.8  # share of the tried items whose replies can all be read, from which on a run may go on


def draw(items: QuerySet[Item], *, seed: int = SEED) -> QuerySet[Item]:
    """A few of these items, the same each time: if there are enough, of those that people have labelled. None of a
    hidden split.
    """
    shown = items.exclude(in_hidden_splits("sample__"))
    # The relation belongs to the app of labels, which is above this one.
    labelled = list(shown.filter(labels__isnull=False).order_by("pk").values_list("pk", flat=True).distinct())
    pool = labelled if len(labelled) >= ITEMS else list(shown.order_by("pk").values_list("pk", flat=True))
    return items.filter(pk__in=random.Random(seed).sample(pool, min(ITEMS, len(pool))))


def is_small(run: Run) -> bool:
    """Whether the page of a tryout can show the run, be it that somebody has gone on with it since."""
    return (
        run.kind == Run.Kind.JUDGMENTS and not run.imported and run.run_items.order_by()[: ITEMS + 1].count() <= ITEMS
    )


def items_of(run: Run) -> QuerySet[Item]:
    """The items that a run with the settings of a tryout would judge. Raises BadSettings or BadItemSet."""
    judgeable = plan.judgeable_items(benchmark=run.benchmark, protocol=protocols.get(run.protocol))
    return item_sets.items(run.item_set, benchmark=run.benchmark, query=judgeable)


def all_items(run: Run) -> int:
    """How many items a run with the settings of a tryout could judge; 0 for other runs."""
    if not is_small(run):
        return 0
    try:
        return items_of(run).count()
    except (protocols.BadSettings, item_sets.BadItemSet):
        return 0


def untried(run: Run) -> QuerySet[Item]:
    """The items that are left to judge when the run goes on. Raises BadSettings or BadItemSet."""
    return items_of(run).exclude(pk__in=run.items.values("pk"))


def trials(run: Run) -> QuerySet[Run]:
    """The tryouts of this judge on the same items: this one, and those with another prompt or settings."""
    return Run.objects.filter(
        kind=Run.Kind.JUDGMENTS, judge=run.judge, benchmark=run.benchmark, items_hash=run.items_hash, imported=False
    )


def spent(run: Run) -> float:
    """US dollars spent on all trials of this judge on these items."""
    return trials(run).aggregate(spent=Sum("spent"))["spent"] or 0.0


def needed(run: Run) -> int:
    """How many of its items must be readable before it goes on; those that need no call do not count."""
    return math.ceil(READABLE * asked(run))


def asked(run: Run) -> int:
    """How many of its items the judge is asked about."""
    not_asked = Judgment.objects.filter(run=run, reason_hash__in=plan.not_asked_keys())
    return run.run_items.exclude(item__in=not_asked.values("item")).count()


def readable(run: Run) -> int:
    """How many of its items have been judged in all their calls, with a reply that can be read each time."""
    judgments = Judgment.objects.filter(run=run, item=OuterRef("pk"))
    items = run.items.filter(Exists(judgments)).exclude(Exists(judgments.exclude(status=Judgment.Status.OK)))
    return items.count() if run.state not in Run.GOING else 0


def prompt_of(run: Run) -> prompts.Prompt:
    """The prompt that the run asks by."""
    return prompts.get(run.protocol, run.settings.get("prompt", "default"))


def next_prompt(run: Run) -> tuple[str, int]:
    """The name and version that a changed prompt gets; a built-in one is continued under a name of its own."""
    asked = prompt_of(run)
    name = f"{asked.name}-own"[:40] if asked.name in prompts.names(run.protocol) else asked.name
    newest = PromptTemplate.objects.filter(protocol=run.protocol, name=name).order_by("-version").first()
    return name, newest.version + 1 if newest else 1


@transaction.atomic
def try_again(*, run: Run, by: User | None, text: str, changes: Mapping[str, Any] | None, others: bool) -> Run:
    """Try the same items once more, or as many ``others``. Raises BadInput.

    A changed ``text`` is stored as the next version of the prompt. ``changes`` are settings; None takes one out.
    """
    changed = dict(changes or {})
    settings = {name: value for name, value in run.settings.items() if name not in changed}
    settings |= {name: value for name, value in changed.items() if value is not None}
    text = text.replace("\r\n", "\n").rstrip("\n")
    if text and text != prompt_of(run).text.rstrip("\n"):
        settings["prompt"] = _stored(run, text, by)
    tried = run.items.values("pk")
    pool = items_of(run)
    items = draw(pool.exclude(pk__in=tried), seed=run.pk) if others else pool.filter(pk__in=tried)
    return _start(run, settings=settings, by=by, items=items, new=True, tryout=True)


def go_on(*, run: Run, by: User | None) -> Run:
    """Judge all items as the tryout was judged, whose verdicts are kept. Raises BadInput while too few of its replies
    can be read.
    """
    few, of = needed(run), asked(run)
    if readable(run) < few:
        raise BadInput(
            f"The run stays closed until {f'at least {few}' if few < of else 'all'} of {of} items can be read."
        )
    return _start(run, settings=run.settings, by=by)


def _start(run: Run, *, settings: Mapping[str, Any], by: User | None, **others: Any) -> Run:
    return actions.start_run(
        judge=run.judge,
        benchmark=run.benchmark,
        protocol=run.protocol,
        settings=dict(settings) | {"items": run.item_set},
        budget=run.budget,
        by=by,
        reuse=run.reuse,
        batched=run.batched,
        **others,
    )


def _stored(run: Run, text: str, by: User | None) -> str:
    """The setting ``prompt`` for a changed text, which is stored unless it is there already. Raises BadInput."""
    name, _ = next_prompt(run)
    asked = PromptTemplate.objects.filter(protocol=run.protocol, name=prompt_of(run).name).first()
    for row in PromptTemplate.objects.filter(protocol=run.protocol, name=name):
        if row.text == text:
            return f"{name}@{row.version}"
    as_published = bool(asked and asked.as_published)
    row = add_template(protocol=run.protocol, name=name, text=text, as_published=as_published, by=by)
    return f"{name}@{row.version}"
