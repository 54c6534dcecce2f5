"""Many rows at once, past the ORM: what stands in the columns is what was given, whatever rows have in common."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from bank.database import bulk
from bank.database.unfinished import newest_id
from bank.models import Benchmark, Import, Sample

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def benchmark():
    return Benchmark.objects.create(slug="b", title="B", visibility="public")


def columns(benchmark, keys, **given):
    texts = "instruction hint language question_type split source group status"
    found = {name: [""] * len(keys) for name in texts.split()}
    found |= {"key": keys, "options": ["{}"] * len(keys), "metadata": ["{}"] * len(keys)}
    found |= {"absent_images": ["[]"] * len(keys), "benchmark_id": bulk.Constant(benchmark.pk, len(keys))}
    return found | {"position": range(len(keys)), "capability_id": [None] * len(keys)} | given


def stored(*names):
    return list(Sample.objects.order_by("position").values_list(*names))


@pytest.mark.parametrize("many", [1, 2, 999, 1000, 2500])
def test_columns_of_one_value_and_of_many_come_out_as_they_went_in(many, benchmark):
    keys = [f"k{number}" for number in range(many)]
    hints = ["first", *["between"] * (many - 2), "first"][:many]  # alike at both ends, not in the middle
    bulk.insert_columns(Sample, columns(benchmark, keys, hint=hints, source=['one\'s "own" ?1'] * many))
    assert stored("key", "hint", "source", "capability_id", "benchmark_id") == [
        (key, hint, 'one\'s "own" ?1', None, benchmark.pk) for key, hint in zip(keys, hints, strict=True)
    ]


def test_a_column_of_one_value_is_kept_as_that_value():
    column = bulk.compact(["a", "a"])
    assert column == bulk.Constant("a", 2)
    assert (list(column), len(column), bulk.compact(column)) == (["a", "a"], 2, column)
    for other in (["a", "b"], ["a", "b", "a"], [], [None, ""]):
        assert bulk.compact(other) is other


def test_what_the_database_refuses_is_an_integrity_error_and_leaves_nothing(benchmark):
    with pytest.raises(IntegrityError), transaction.atomic():
        bulk.insert_columns(Sample, columns(benchmark, ["a", "b", "a"]))
    assert stored("key") == []


def test_rows_go_in_as_columns_do(benchmark):
    given = columns(benchmark, ["a", "b"])
    bulk.insert(Sample, list(given), [])
    bulk.insert(Sample, list(given), list(zip(*given.values(), strict=True)))
    assert stored("key", "benchmark_id") == [("a", benchmark.pk), ("b", benchmark.pk)]


def test_the_newest_row_is_none_of_an_unfinished_import(benchmark):
    assert newest_id(Sample) == 0
    bulk.insert_columns(Sample, columns(benchmark, [f"k{number}" for number in range(6)]))
    keys = [pk for (pk,) in stored("pk")]
    under_way = Import.objects.create(holder="h", until=timezone.now())
    reserved = under_way.ranges.create(table=Sample._meta.db_table, first=keys[2], last=keys[4])
    for last, newest in ((keys[4], keys[5]), (keys[5], keys[1]), (keys[5] + 100, keys[1])):
        under_way.ranges.update(last=last)
        assert newest_id(Sample) == newest == stored("pk")[-1][0]
    reserved.delete()
    assert newest_id(Sample) == keys[5]
