"""Quotas of capabilities: how many samples each is to have, who sees to it, and how far it is."""

import pytest

from bank.models import Benchmark, Sample
from bank.samples import capabilities
from tests.markup import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def wood(db):
    """Perception / Colour with two approved, one draft and one rejected sample; Perception itself with one more."""
    benchmark = Benchmark.objects.create(slug="wood", title="Wood")
    top = capabilities.add(benchmark=benchmark, name="Perception")
    colour = capabilities.add(benchmark=benchmark, name="Colour", parent=top)
    states = [(colour, "approved"), (colour, "approved"), (colour, "draft"), (colour, "rejected"), (top, "approved")]
    for number, (node, status) in enumerate(states):
        Sample.objects.create(
            benchmark=benchmark, key=f"s{number}", instruction="?", capability=node, status=status, position=number
        )
    return benchmark


def change(client, wood, name, **values):
    node = wood.capabilities.get(name=name)
    return client.post(f"/bank/benchmarks/{wood}/capabilities/", {"do": "quota", "node": node.pk} | values, follow=True)


def test_a_quota_counts_approved_samples_with_those_below_and_names_who_sees_to_it(wood, client_of, people):
    client = client_of("curator")
    change(client, wood, "Colour", quota="5", owner=people["curator"].pk)
    page = flat(change(client, wood, "Perception", quota="3"))
    assert "The quota of Perception is changed." in page
    assert client.get(f"/api/v1/benchmarks/{wood.pk}/quotas/").json() == [
        {"path": "Perception", "quota": 3, "owner": "", "approved": 3, "under_way": 1, "rejected": 1, "missing": 0},
        {
            "path": "Perception / Colour",
            "quota": 5,
            "owner": "curator",
            "approved": 2,
            "under_way": 1,
            "rejected": 1,
            "missing": 3,
        },
    ]
    change(client, wood, "Perception", quota="")
    assert [row.path for row in capabilities.quotas_of(wood)] == ["Perception / Colour"]


@pytest.mark.parametrize(("quota", "owner"), [("many", ""), ("-1", ""), ("2000000", ""), ("1", "researcher")])
def test_what_is_no_quota_or_nobody_who_may_write_samples_is_refused(quota, owner, wood, client_of, people):
    page = flat(change(client_of("curator"), wood, "Colour", quota=quota, owner=people[owner].pk if owner else ""))
    assert "quota" in page.lower() or "may write samples" in page
    assert capabilities.quotas_of(wood) == []


def test_quotas_come_from_a_file_and_go_out_by_command(wood, manage, people, tmp_path):
    path = tmp_path / "quotas.csv"
    path.write_text("capability,quota,owner\nPerception / Colour,4,curator\n", encoding="utf-8")
    status, out, _ = manage("quotas", path, "--benchmark", "wood")
    assert status == 0
    assert out.splitlines() == [
        "capability,quota,owner,approved,under_way,rejected,missing",
        "Perception / Colour,4,curator,2,1,1,2",
    ]
    path.write_text("capability,quota,owner\nPerception,4,\nTaste,1,\n", encoding="utf-8")
    status, _, words = manage("quotas", path, "--benchmark", "wood")
    assert status != 0
    assert "Line 3" in words
    assert [row.quota for row in capabilities.quotas_of(wood)] == [4]  # all or nothing
