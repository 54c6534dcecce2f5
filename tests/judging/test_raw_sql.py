"""Statements past the ORM say and change the same as those of the ORM."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from bank.models import Benchmark
from judging.work import raw_sql

pytestmark = pytest.mark.django_db


@pytest.fixture
def benchmarks():
    made = [Benchmark(slug=slug, title=slug.title(), score_scale=[{"value": 1}]) for slug in ("a", "b", "c")]
    return Benchmark.objects.bulk_create(made)


def test_rows_are_read_by_a_value_and_by_several(benchmarks):
    assert raw_sql.read(Benchmark, ("title",), slug="b") == [("B",)]
    assert sorted(raw_sql.read(Benchmark, ("slug", "title"), slug=["a", "c", "x"], title=["A", "C"])) == [
        ("a", "A"),
        ("c", "C"),
    ]
    assert raw_sql.read(Benchmark, ("title",), slug="'; --") == []


def test_an_object_knows_the_columns_that_were_asked_for_in_any_order(benchmarks):
    with transaction.atomic():
        found = raw_sql.find(Benchmark, only=("score_scale", "slug", "id"), lock=True, slug="a")
    assert (found.pk, found.slug, found.score_scale) == (benchmarks[0].pk, "a", [{"value": 1}])
    assert found.get_deferred_fields() >= {"title", "visibility"}
    assert raw_sql.find(Benchmark, slug="x") is None


def test_an_update_changes_the_named_rows_and_says_how_many(benchmarks):
    at = timezone.now() - timedelta(days=1)
    assert raw_sql.change(Benchmark, {"title": 'O"%s', "score_scale": [], "created_at": at}, slug=["a", "b"]) == 2
    assert set(Benchmark.objects.filter(created_at=at).values_list("slug", "title")) == {("a", 'O"%s'), ("b", 'O"%s')}
    assert Benchmark.objects.get(slug="a").score_scale == []
    assert Benchmark.objects.get(slug="c").title == "C"
    assert raw_sql.change(Benchmark, {"title": ""}, slug="x") == 0
