"""The hidden tables as tests read and change them: past their readers."""

from datetime import timedelta

from django.utils import timezone

import bank.criteria
from bank import exposure
from bank.criteria import Criterion
from bank.models import Sample
from judging.models import Run


def criteria(*keys, **filters):
    """Criteria with one of these keys, which are encrypted, under filters of the ORM."""
    found = Criterion.unguarded.filter(**filters)
    return Criterion.unguarded.filter(pk__in=[row.pk for row in found if not keys or row.key in keys])


def write_criterion(*, sample, **values):
    """A criterion of a sample, as an import writes it."""
    row = Criterion.unguarded.create(sample=sample, **values)
    bank.criteria.note_closed(Sample.objects.filter(pk=sample.pk))
    return row


def write_criteria(rows):
    """Criteria of many samples: ``rows`` are what ``write_criterion`` takes."""
    Criterion.unguarded.bulk_create(Criterion(**row) for row in rows)
    close()


def close():
    """Note what is closed, after criteria were written past their readers."""
    bank.criteria.note_closed(Sample.objects.all())


def show(who, rows=None):
    """Show these criteria, or all, to ``who``: to everybody as ``publish --keys`` does it, for good."""
    rows = Criterion.unguarded.all() if rows is None else rows
    samples = list(rows.values_list("sample", flat=True))
    rows.update(shown_to=who)
    Sample.objects.filter(pk__in=samples).update(closed=exposure.NOTHING)
    close()


def ended_before_today(*runs):
    """Let these runs, or all, have ended two days ago, so that people below staff are told of them."""
    rows = Run.objects.filter(pk__in=[run.pk for run in runs]) if runs else Run.objects.all()
    rows.filter(state=Run.State.FINISHED).update(finished_at=timezone.now() - timedelta(days=2))


def change(rows, **values):
    """Give rows other values: each is sealed with its row, which ``update`` does not know."""
    for row in rows:
        for name, value in values.items():
            setattr(row, name, value)
        row.save()
