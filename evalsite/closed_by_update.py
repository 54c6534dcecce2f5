"""What an update closed that everybody could see before, in words: told once, by ``manage.py migrate`` (ADR 31)."""

from collections.abc import Iterator

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Q

from annotations.models import Label
from bank import exposure
from bank.models import Benchmark, Item, Response
from bank.models.catalogue import in_hidden_splits
from judging.models import Judgment, Run

UPDATE = ("bank", "0006_sealing")


def is_ahead() -> bool:
    """Whether the database holds tables that this update has not changed yet."""
    applied = MigrationRecorder(connection).applied_migrations()
    return bool(applied) and UPDATE not in applied


def in_words() -> Iterator[str]:
    """A paragraph for each public benchmark of which something was closed."""
    for benchmark in Benchmark.objects.filter(visibility=Benchmark.Visibility.PUBLIC).order_by("slug", "pk"):
        closed = list(_closed(benchmark))
        if closed:
            keys = exposure.closed_in(benchmark.samples.all()) & exposure.KEYED
            opens = f" `manage.py publish {benchmark} --keys` opens its keys to everybody, for good." if keys else ""
            yield f"{benchmark}: for staff alone from now on are {'; '.join(closed)}.{opens}"


def _closed(benchmark: Benchmark) -> Iterator[str]:
    of_item, of_sample = Q(item__sample__benchmark=benchmark), Q(sample__benchmark=benchmark)
    hidden = in_hidden_splits("item__sample__")
    answers = Response.objects.filter(of_sample, submission=None).exclude(in_hidden_splits("sample__"))
    answers = answers.filter(exposure.any_of(exposure.Inputs.ANSWER_KEY, "sample__closed"))
    for rows, held, of in ((Judgment.objects, "run__held", "judges"), (Label.objects, "campaign__held", "people")):
        seen = rows.filter(of_item).exclude(hidden)
        keyed = seen.filter(exposure.any_of(exposure.KEYED, held, "item__sample__closed"))
        outside = seen.filter(exposure.any_of(exposure.UNKNOWN, held, "item__sample__closed"), item__outside=True)
        yield from _counted(keyed.count(), f"single verdicts of {of} who were, or may have been, shown keys or weights")
        yield from _counted((outside.difference(keyed)).count(), f"single verdicts of {of} on submitted answers")
    yield from _counted(answers.count(), "answers of models to questions whose key is not public")
    blind = Item.objects.filter(of_sample, blind=True)
    yield from _counted(blind.count(), "items, until they have the labels that a blind campaign asks for")
    ended = Run.objects.filter(benchmark=benchmark, state=Run.State.CANCELLED, held__gt=0, state_reason__gt="")
    yield from _counted(ended.count(), "runs that were not finished, whose judge was shown keys: start them anew")


def _counted(count: int, what: str) -> Iterator[str]:
    if count:
        yield f"{count:,} {what}"
