"""A dev and a test split, drawn within each capability."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from bank.errors import BadInput
from bank.models import Benchmark, Capability, Sample
from bank.samples import splits


def tree(leaves, *, per_group=1, slug="many"):
    benchmark = Benchmark.objects.create(slug=slug, title=slug)
    for name, size in leaves.items():
        leaf = Capability.objects.create(benchmark=benchmark, name=name, path=f"top / {name}")
        Sample.objects.bulk_create(
            Sample(
                benchmark=benchmark,
                key=f"{name}-{at}",
                instruction="?",
                capability=leaf,
                group=f"{name} {at // per_group}" if per_group > 1 else "",
                position=at,
            )
            for at in range(size)
        )
    return benchmark


@pytest.mark.django_db
def test_each_capability_is_divided_four_to_six_and_the_same_seed_draws_the_same():
    benchmark = tree({"counting": 50, "reading": 20, "maps": 5})
    drawn = splits.draw(benchmark=benchmark)
    assert drawn.by_leaf == [("top / counting", 20, 30), ("top / maps", 2, 3), ("top / reading", 8, 12)]
    assert drawn == splits.draw(benchmark=benchmark)
    assert set(drawn.dev) != set(splits.draw(benchmark=benchmark, seed=1).dev)
    assert splits.set_splits(benchmark=benchmark, drawn=drawn) == 75
    assert benchmark.samples.filter(split="dev").count() == 30
    assert benchmark.samples.first().revisions.count() == 1


@pytest.mark.django_db
def test_samples_of_a_group_stay_together():
    benchmark = tree({"counting": 60}, per_group=4)
    splits.set_splits(benchmark=benchmark, drawn=splits.draw(benchmark=benchmark))
    by_group = {}
    for group, split in benchmark.samples.values_list("group", "split"):
        by_group.setdefault(group, set()).add(split)
    assert all(len(found) == 1 for found in by_group.values())
    assert benchmark.samples.filter(split="dev").count() == 24


class TestSizes(TestCase):
    @settings(max_examples=20)
    @given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.floats(0.1, 0.9))
    def test_over_small_capabilities_nothing_is_lost_and_the_share_holds(self, sizes, share):
        benchmark = tree({f"leaf {at}": size for at, size in enumerate(sizes)})
        drawn = splits.draw(benchmark=benchmark, share=share)
        assert sorted([*drawn.dev, *drawn.test]) == sorted(benchmark.samples.values_list("pk", flat=True))
        assert abs(len(drawn.dev) - share * sum(sizes)) <= 1


@pytest.mark.django_db
def test_a_hidden_split_is_not_drawn_again_and_two_names_are_needed():
    benchmark = tree({"counting": 10})
    drawn = splits.draw(benchmark=benchmark)
    with pytest.raises(BadInput, match="two different splits"):
        splits.set_splits(benchmark=benchmark, drawn=drawn, dev="a", test="a")
    splits.set_splits(benchmark=benchmark, drawn=drawn)
    Benchmark.objects.update(hidden_splits=["test"])
    benchmark.refresh_from_db()
    with pytest.raises(BadInput, match="hidden splits already"):
        splits.set_splits(benchmark=benchmark, drawn=drawn)


@pytest.mark.django_db
def test_it_is_drawn_by_command_and_by_page(client_of):
    benchmark = tree({"counting": 10})
    out = StringIO()
    call_command("draw_split", benchmark="many", dry_run=True, stdout=out)
    assert "top / counting: 4 dev, 6 test" in out.getvalue()
    assert not benchmark.samples.exclude(split="").exists()
    call_command("draw_split", benchmark="many", names="train,val", stdout=out)
    assert benchmark.samples.filter(split="train").count() == 4
    with pytest.raises(CommandError):
        call_command("draw_split", benchmark="many", share=2.0)
    client, asked = client_of("curator"), {"share": "0.5", "seed": "1", "dev": "dev", "test": "test"}
    assert "top / counting" in client.post("/bank/benchmarks/many/split/", asked).content.decode()
    client.post("/bank/benchmarks/many/split/", asked | {"write": ""})
    assert benchmark.samples.filter(split="dev").count() == 5
