"""The list of judgments: what it shows to whom, in which order, and that every page begins where the last one ended."""

import csv
import io
import json
import re

import pytest
from django.urls import reverse
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bank import exposure
from bank.models import Capability, CriteriaAccess, Import, Item, Sample
from judging.judgments import browse, filters
from judging.models import Judgment, Run
from tests.hidden import ended_before_today, write_criterion
from tests.judging.small import make_benchmark
from tests.judging.test_pages import text_of
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
LIST = "judging:judgment-list"


def verdicts(page) -> list[int]:
    return [int(pk) for pk in re.findall(r'<th scope="row" class="fills"><a href="/judging/judgments/(\d+)/"', page)]


def shown(client, **query) -> list[Judgment]:
    page = client.get(reverse(LIST), query)
    assert page.status_code == 200
    known = Judgment.objects.in_bulk(verdicts(flat(page)))
    return [known[pk] for pk in verdicts(flat(page))]


def walk(client, **query) -> list[int]:
    """Every key of a list, page by page."""
    found, path = [], reverse(LIST) + "?" + "&".join(f"{name}={value}" for name, value in query.items())
    for _ in range(100):
        page = flat(client.get(path))
        found += verdicts(page)
        onward = re.search(r'rel="next" href="([^"]+)"', page)
        if not onward:
            return found
        path = reverse(LIST) + onward[1].replace("&amp;", "&")
    raise AssertionError("the list does not end")


FAILED = {"status": "refused", "reason": "refused", "repeat": 3}


@pytest.fixture
def mixed(benchmark, run_of):
    """Two judges on one benchmark: votes, failures, slow and dear calls."""
    rows = [
        {"choice": "first", "latency": 2.0, "cost": 0.01},
        {"choice": "second", "order": "10", "latency": 9.5, "cost": 0.002},
        {"choice": "undecided", "item": 1, "latency": 0.5},
        {"choice": "first", "item": 1, "order": "10"},
        {"status": "parse_failed", "reason": "no vote on the last line", "item": 2, "latency": 4.0, "cost": 0.5},
        FAILED | {"item": 2},
    ]
    return run_of(benchmark, rows), run_of(benchmark, [{"choice": "tie", "latency": 3.0}], judge="osprey")


def test_each_filter_keeps_what_it_names(client_of, mixed):
    client, (first, second) = client_of("curator"), mixed
    assert len(shown(client)) == 7
    assert {row.run_id for row in shown(client, run=second.pk)} == {second.pk}
    assert {row.run_id for row in shown(client, judge="kestrel")} == {first.pk}
    assert [row.choice for row in shown(client, show="tie")] == ["tie"]
    assert [row.choice for row in shown(client, show="undecided")] == ["undecided"]
    assert {row.status for row in shown(client, show="failed")} == {"parse_failed", "refused"}
    assert [row.status for row in shown(client, show="refused")] == ["refused"]
    assert len(shown(client, show="verdicts")) == 5
    assert {row.item.sample.key for row in shown(client, sample="1")} == {"1"}
    assert len(shown(client, protocol="pair")) == 0
    assert [row.latency for row in shown(client, seconds="4")] == [4.0, 9.5]
    assert [row.cost for row in shown(client, cost="0.1", judge="kestrel")] == [0.5]
    assert shown(client, judge="nobody") == shown(client, sample="none such") == shown(client, run=10**6) == []


def test_a_level_keeps_what_is_below_it(client_of, benchmark, mixed):
    top = Capability.objects.create(benchmark=benchmark, name="Perception", path="Perception")
    below = Capability.objects.create(benchmark=benchmark, name="Colour", path="Perception / Colour", parent=top)
    Capability.objects.create(benchmark=benchmark, name="Percept", path="Percept")
    Sample.objects.filter(key="1").update(capability=below)
    Sample.objects.filter(key="2").update(capability=Capability.objects.get(name="Percept"))
    client = client_of("curator")
    assert {row.item.sample.key for row in shown(client, benchmark="everyday", level="Perception")} == {"1"}
    assert "Perception" in text_of(client.get(reverse(LIST), {"run": mixed[0].pk}))


def test_orders_put_the_slowest_and_the_dearest_first_and_leave_out_what_has_no_value(client_of, mixed):
    client = client_of("curator")
    assert [row.latency for row in shown(client, sort="slowest")] == [9.5, 4.0, 3.0, 2.0, 0.5]
    assert [row.cost for row in shown(client, sort="dearest")] == [0.5, 0.01, 0.002]
    keys = [row.pk for row in shown(client, sort="oldest")]
    assert keys == sorted(keys)
    assert [row.pk for row in shown(client)] == keys[::-1]


def test_items_whose_verdicts_differ_between_orders_or_repeats_stand_together(client_of, benchmark, run_of):
    rows = [
        *({"choice": "first", "order": order, "repeat": repeat} for order in ("01", "10") for repeat in (0, 1)),
        {"choice": "first", "item": 1, "order": "01"},
        {"choice": "second", "item": 1, "order": "10"},
        {"choice": "first", "item": 2, "order": "01"},
        {"choice": "tie", "item": 2, "order": "01", "repeat": 1},
        {"status": "refused", "item": 2, "order": "10"},
    ]
    run_of(benchmark, rows)
    client = client_of("curator")
    assert [(row.item.sample.key, row.order) for row in shown(client, differs="orders")] == [("1", "01"), ("1", "10")]
    assert [(row.item.sample.key, row.repeat) for row in shown(client, differs="repeats")] == [
        ("2", 0),
        ("2", 0),
        ("2", 1),
    ]
    assert shown(client, differs="orders", sample="2") == []


def test_scores_and_rankings_differ_as_votes_do(client_of, benchmark, run_of):
    run_of(benchmark, [{"score": 4, "repeat": 0}, {"score": 5, "repeat": 1}, {"score": 3, "item": 1}])
    run_of(benchmark, [{"ranking": [[0], [1]], "item": 2}, {"ranking": [[1], [0]], "item": 2, "repeat": 1}])
    found = shown(client_of("curator"), differs="repeats")
    assert {row.item.sample.key for row in found} == {"0", "2"}
    assert len(found) == 4


@pytest.mark.parametrize("sort", ["newest", "oldest", "slowest", "dearest"])
@pytest.mark.parametrize("judge", ["", "kestrel"])
def test_pages_hold_every_judgment_once_in_order(client_of, benchmark, run_of, monkeypatch, sort, judge):
    monkeypatch.setattr(browse, "PAGE", 4)
    for run in range(3):
        rows = [
            {"choice": "first", "item": n % 3, "repeat": n, "latency": n % 4 or None, "cost": (n * 7 + run) % 5}
            for n in range(9)
        ]
        run_of(benchmark, rows, judge="kestrel" if run < 2 else "osprey")
    order = filters.ORDERS[sort]
    found = Judgment.objects.filter(**{"run__judge__name": judge} if judge else {}).order_by(*order.keyset.ordering())
    if order.column:
        found = found.filter(**{f"{order.column}__isnull": False})
    keys = list(found.values_list("pk", flat=True))
    assert walk(client_of("curator"), sort=sort, judge=judge) == keys


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_pages_lead_past_what_an_unfinished_import_has_written(client_of, benchmark, run_of, monkeypatch, sort):
    monkeypatch.setattr(browse, "PAGE", 4)
    run_of(benchmark, [{"choice": "first", "item": n % 3, "repeat": n} for n in range(15)])
    keys = list(Judgment.objects.order_by("pk").values_list("pk", flat=True))
    under_way = Import.objects.create(holder="h", until=timezone.now())
    under_way.ranges.create(table=Judgment._meta.db_table, first=keys[5], last=keys[9])
    seen = [*keys[:5], *keys[10:]]
    assert walk(client_of("curator"), sort=sort) == (seen if sort == "oldest" else seen[::-1])


def test_previous_leads_back_page_by_page(client_of, benchmark, run_of, monkeypatch):
    monkeypatch.setattr(browse, "PAGE", 2)
    run_of(benchmark, [{"choice": "first", "repeat": n} for n in range(7)])
    client, path, seen = client_of("curator"), reverse(LIST), []

    def link(page: str, rel: str) -> str | None:
        found = re.search(rf'rel="{rel}"[^>]* href="([^"]+)"', page)
        return found and reverse(LIST) + found[1].replace("&amp;", "&")

    while path:
        page = flat(client.get(path))
        seen.append(verdicts(page))
        path = link(page, "next")
    assert [len(keys) for keys in seen] == [2, 2, 2, 1]
    for keys in seen[-2::-1]:
        page = flat(client.get(link(page, "prev")))
        assert verdicts(page) == keys
    assert link(page, "prev") is None
    assert link(flat(client.get(reverse(LIST) + "?after=3&trail=<b>")), "prev") is None


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    looked=st.integers(1, 3),
    show=st.sampled_from(["", "first", "tie", "failed"]),
    sort=st.sampled_from(list(filters.ORDERS)),
    level=st.booleans(),
    choices=st.lists(st.sampled_from(["first", "tie", None]), min_size=3, max_size=14),
)
def test_a_search_that_stops_after_a_stretch_goes_on_where_it_stopped(
    benchmark, people, run_of, looked, show, sort, level, choices
):
    """Whatever is looked for and however short the stretches: nothing is lost, doubled or out of order."""
    Run.objects.all().delete()  # with their judgments: those of the example before
    real = browse._positions

    def short(query, order, start, stop):
        return real(query, order, looked, looked + 1) if start else real(query, order, start, stop)

    top, _ = Capability.objects.get_or_create(benchmark=benchmark, name="Perception", path="Perception")
    Sample.objects.filter(key="1").update(capability=top)
    for part in (choices[::3], choices[1::3], choices[2::3]):
        rows = [
            ({"choice": choice} if choice else {"status": "refused"})
            | {"item": n % 3, "repeat": n, "latency": n % 3, "cost": n % 2}
            for n, choice in enumerate(part)
        ]
        run_of(benchmark, rows)
    chosen = filters.JudgmentFilters(show=show, sort=sort, level="Perception" if level else "", benchmark="everyday")
    wanted = Judgment.objects.order_by(*filters.ORDERS[sort].keyset.ordering())
    wanted = wanted.filter(item__sample__key="1") if level else wanted
    wanted = wanted.filter(status="refused") if show == "failed" else wanted.filter(**{"choice": show} if show else {})
    found, after, pages = [], "", 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(browse, "PAGE", 3)
        patched.setattr(browse, "_positions", short)
        while pages == 0 or after:
            page = browse.listing(chosen, people["researcher"], after=after)
            found += [row.pk for row in page.rows]
            after, pages = page.after, pages + 1
            assert pages < 100
    assert found == list(wanted.values_list("pk", flat=True))


def test_pages_of_items_that_differ_go_on_and_hold_whole_items(client_of, benchmark, run_of, monkeypatch):
    monkeypatch.setattr(browse, "PAGE", 2)
    monkeypatch.setattr(browse, "STRETCH", 3)
    rows = [{"choice": ("first", "second")[n % 2], "item": n // 2, "repeat": n % 2} for n in range(6)]
    runs = [run_of(benchmark, rows) for _ in range(2)]
    found = [Judgment.objects.get(pk=pk) for pk in walk(client_of("curator"), differs="repeats")]
    assert [row.run_id for row in found] == [runs[1].pk] * 6 + [runs[0].pk] * 6
    assert len({row.pk for row in found}) == 12


def test_filters_and_order_stand_in_the_address_and_senseless_ones_are_left_out(client_of, mixed):
    client = client_of("curator")
    chosen = filters.JudgmentFilters(judge="a b", show="tie", seconds=2.5, sort="slowest")
    assert chosen.query_string() == "judge=a+b&show=tie&seconds=2.5&sort=slowest"
    for query in (
        {"run": "x"},
        {"show": "secrets"},
        {"seconds": "-1"},
        {"seconds": "nan"},
        {"after": "_"},
        {"sort": "analysis"},
    ):
        assert len(shown(client, **query)) == 7, query
    assert client.get(reverse(LIST), {"sample": "\x00", "after": "9" * 50, "item": "9" * 30}).status_code == 200


def test_a_researcher_sees_what_may_be_seen_one_by_one_and_no_more(client_of, benchmark, run_of, baseline, mixed):
    hidden = make_benchmark(slug="closed", visibility="private")
    run_of(hidden, [{"choice": "first"}])
    Run.objects.create(
        judge=baseline("criteria-overlap"), benchmark=benchmark, protocol="pairwise-criteria", settings_hash="y"
    )
    oracle = Run.objects.order_by("pk").last()
    Judgment.objects.create(run=oracle, item=Item.objects.filter(sample__benchmark=benchmark).first(), choice="first")
    client = client_of("researcher")
    assert len(shown(client)) == 7
    assert len(shown(client_of("curator"))) == 9
    page = text_of(client.get(reverse(LIST)))
    assert "baseline-criteria-overlap" not in page
    assert "Closed" not in page
    assert shown(client, run=oracle.pk) == shown(client, benchmark="closed") == []


def test_nothing_is_counted_over_all_judgments(client_of, mixed, django_assert_max_num_queries):
    client = client_of("curator")
    with django_assert_max_num_queries(20) as asked:
        client.get(reverse(LIST), {"show": "failed", "sort": "newest"})
    assert not [one["sql"] for one in asked if "COUNT" in one["sql"] and "judging_judgment" in one["sql"]]


# -- as a file ------------------------------------------------------------------------------------------------------


def download(client, form, **query):
    path = reverse("judging:judgment-export") + "?" + "&".join(f"{name}={value}" for name, value in query.items())
    return client.post(path, form)


def test_a_selection_leaves_as_a_file_without_what_the_judges_wrote(client_of, mixed):
    Judgment.objects.update(analysis="quotes the walnut", raw="quotes the walnut")
    for role in ("curator", "researcher"):
        answered = download(client_of(role), {"shape": "jsonl"}, judge="kestrel", show="failed")
        lines = [json.loads(line) for line in b"".join(answered.streaming_content).splitlines()]
        assert [line["status"] for line in lines] == ["parse_failed", "refused"]
        assert not {"analysis", "raw"} & set().union(*lines)
    everything = b"".join(download(client_of("curator"), {"shape": "csv"}).streaming_content).decode()
    assert len(list(csv.DictReader(io.StringIO(everything)))) == 7
    assert not CriteriaAccess.objects.exists()


def test_items_that_differ_leave_whole(client_of, benchmark, run_of):
    run_of(benchmark, [{"choice": "first"}, {"choice": "second", "repeat": 1}, {"choice": "tie", "item": 1}])
    answered = download(client_of("curator"), {"shape": "jsonl"}, differs="repeats")
    lines = [json.loads(line) for line in b"".join(answered.streaming_content).splitlines()]
    assert [line["choice"] for line in lines] == ["first", "second"]


def test_analyses_leave_for_staff_with_a_reason_and_the_log_tells(client_of, people, mixed):
    Judgment.objects.update(analysis="quotes the walnut")
    given = {"shape": "jsonl", "analyses": "on", "reason": ""}
    assert download(client_of("curator"), given).status_code == 422
    assert download(client_of("researcher"), given | {"reason": "I want to"}).status_code == 403
    answered = download(client_of("curator"), given | {"reason": "error study"}, sample="0")
    assert b"quotes the walnut" in b"".join(answered.streaming_content)
    record = CriteriaAccess.objects.get()
    assert (record.who, record.how, record.reason) == (people["curator"], "export of analyses", "error study")
    assert record.sample_ids == [Sample.objects.get(key="0").pk]


def test_reasons_from_files_and_hidden_points_stay_with_staff(client_of, benchmark, run_of):
    run_of(benchmark, [{"status": "refused", "reason": "quotes walnut"}], imported=True)
    held = exposure.inputs_of("component")
    write_criterion(sample=benchmark.samples.first(), key="walnut", kind="component", weight=4.0, text="Two words.")
    run_of(benchmark, [{"parts": {"walnut": 2.0}, "score": 5}], protocol="components", state="finished", held=held)
    ended_before_today()
    mine = b"".join(download(client_of("researcher"), {"shape": "jsonl"}).streaming_content)
    assert b"walnut" not in mine
    assert "walnut" not in text_of(client_of("researcher").get(reverse(LIST)))
    assert mine.count(b"\n") == 1
    assert b"walnut" in b"".join(download(client_of("curator"), {"shape": "jsonl"}).streaming_content)
