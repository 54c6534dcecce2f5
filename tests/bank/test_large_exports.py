"""Every export of a benchmark whose answers are all different: SQLite takes no statement with a thousand conditions."""

import json

import pytest

from annotations.campaigns.actions import make_campaign
from annotations.models import Assignment, CampaignItem, Label
from bank.database import now
from bank.models import Benchmark, EvaluatedModel, Item, ItemResponse, Response, Sample
from bank.models.items import content_hash
from judging.models import Judge, Judgment, Run, RunItem
from tests.once import once

pytestmark = pytest.mark.both_databases

SAMPLES = 1_200  # each with two answers of its own
TABLES = ["samples", "responses", "items", "labels", "judgments", "preferences"]
ROWS = dict.fromkeys(TABLES, SAMPLES) | {"responses": 2 * SAMPLES}


@pytest.fixture
def large(people, folder):
    """A pair a sample, each judged in both orders' first, and labelled once."""

    def make():
        benchmark = Benchmark.objects.create(slug="large", title="Large", visibility="public")
        models = [EvaluatedModel.objects.create(name=name) for name in ("lark", "wren")]
        samples = Sample.objects.bulk_create(
            Sample(benchmark=benchmark, key=f"q{n:04}", instruction=f"Question {n}?", position=n)
            for n in range(SAMPLES)
        )
        answers = Response.objects.bulk_create(
            Response(sample=sample, model=model, text=f"{model} on {sample.key}")
            for sample in samples
            for model in models
        )
        pairs = list(zip(samples, answers[::2], answers[1::2], strict=True))
        items = Item.objects.bulk_create(
            Item(
                kind="pair",
                sample=sample,
                content_hash=content_hash(kind="pair", sample_id=sample.pk, response_ids=[one.pk, two.pk]),
            )
            for sample, one, two in pairs
        )
        ItemResponse.objects.bulk_create(
            ItemResponse(item=item, position=position, response=response)
            for item, (_, *both) in zip(items, pairs, strict=True)
            for position, response in enumerate(both)
        )
        run = Run.objects.create(
            judge=Judge.objects.create(name="oracle"),
            benchmark=benchmark,
            protocol="pair",
            settings={},
            settings_hash="s",
            state="finished",
            imported=True,
            finished_at=now(),
        )
        RunItem.objects.bulk_create(RunItem(run=run, item=item) for item in items)
        Judgment.objects.bulk_create(Judgment(run=run, item=item, order="01", choice="first") for item in items)
        campaign = make_campaign(
            name="All", benchmark=benchmark, protocol="pair", annotators=[people["annotator"]], overlap=1
        )
        annotator = people["annotator"].annotator
        leases = Assignment.objects.bulk_create(
            Assignment(
                campaign_item=item,
                annotator=annotator,
                slot=0,
                state="submitted",
                order="01",
                leased_at=now(),
                lease_until=now(),
            )
            for item in CampaignItem.objects.filter(campaign=campaign).order_by("pk")
        )
        Label.objects.bulk_create(
            Label(
                assignment=lease,
                campaign=campaign,
                item_id=lease.campaign_item.item_id,
                annotator=annotator,
                choice="first",
                created_at=now(),
                changed_at=now(),
            )
            for lease in leases
        )
        return benchmark, run, campaign

    return once("large", make)


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_many_different_answers_is_written_whole(table, large, manage, client_of):
    status, out, err = manage("export", table, "--benchmark", "large", "--format", "jsonl")
    assert (status, err) == (0, f"{ROWS[table]:,} {table}\n")
    assert len(rows_of(out)) == ROWS[table]
    sent = client_of("curator").post("/bank/benchmarks/large/export/", {"what": table, "shape": "jsonl"})
    assert b"".join(sent.streaming_content).decode() == out


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.one_database
def test_a_table_goes_into_a_parquet_file_with_all_its_rows(table, large, manage, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / f"{table}.parquet"
    status, _, err = manage("export", table, "--benchmark", "large", "--format", "parquet", "--output", path)
    assert (status, err) == (0, f"{ROWS[table]:,} {table}\n")
    rows = parquet.read_table(path).to_pylist()
    assert len(rows) == ROWS[table]
    if table == "preferences":
        assert {(row["agree"], row["against"]) for row in rows} == {(1, 0)}


def test_a_list_of_judgments_and_a_campaign_are_sent_whole(large, client_of):
    _, run, campaign = large
    chosen = client_of("curator").post(f"/judging/judgments/export/?run={run.pk}", {"shape": "jsonl"})
    assert len(rows_of(b"".join(chosen.streaming_content).decode())) == SAMPLES
    for shape in ("jsonl", "preferences"):
        labels = client_of("curator").get(f"/campaigns/{campaign.pk}/data/download/?as={shape}")
        assert len(rows_of(b"".join(labels.streaming_content).decode())) == SAMPLES
    subset = client_of("curator").get(f"/campaigns/from/runs/{run.pk}/hq.jsonl")
    assert len(rows_of(b"".join(subset.streaming_content).decode())) == SAMPLES


@pytest.mark.parametrize("what", ["items", "judgments", "labels", "responses", "samples"])
def test_the_pages_of_a_list_by_api_hold_all_rows(what, large, client_of):
    client, path, seen = client_of("curator"), f"/api/v1/{what}/?benchmark=large&page_size=500", set()
    while path:
        page = client.get(path).json()
        assert "results" in page, page
        seen |= {row["id"] for row in page["results"]}
        path = page["next"]
    assert len(seen) == ROWS[what]
