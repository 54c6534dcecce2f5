"""How long answers and replies are, counted by hand."""

import pytest

from bank.models import Benchmark, EvaluatedModel, Item, ItemResponse, Response, Sample
from bank.models.items import content_hash
from judging.models import Judge, Judgment, Run
from tests.hidden import write_criterion

pytestmark = pytest.mark.django_db
ANSWERS = "/api/v1/leaderboards/lengths/?benchmark=meadow&kind=score"


@pytest.fixture
def meadow():
    """Ten samples with an answer of 10, 20, ... 100 characters, which a judge scored in 100, 200, ... 1,000 tokens."""
    benchmark = Benchmark.objects.create(slug="meadow", title="Meadow", visibility="public")
    model = EvaluatedModel.objects.create(name="Finch")
    run = Run.objects.create(
        judge=Judge.objects.create(name="keen"), benchmark=benchmark, protocol="score", state="finished"
    )
    for n in range(1, 11):
        sample = Sample.objects.create(benchmark=benchmark, key=f"s{n}", instruction="Do.", position=n)
        answer = Response.objects.create(sample=sample, model=model, text="x" * 10 * n)
        hashed = content_hash(kind="score", sample_id=sample.pk, response_ids=[answer.pk])
        item = Item.objects.create(kind="score", sample=sample, content_hash=hashed)
        ItemResponse.objects.create(item=item, position=0, response=answer)
        Judgment.objects.create(run=run, item=item, status="ok", score=3, completion_tokens=100 * n)
    return benchmark


def test_lengths_of_answers_and_of_replies_have_mean_quantiles_and_a_histogram(meadow, client):
    (row,) = client.get(ANSWERS).json()
    assert (row["model"], row["unit"], row["n"], row["mean"]) == ("Finch", "characters", 10, 55)
    # By linear interpolation between the ten: a tenth lies 0.9 steps above the shortest.
    assert [row[name] for name in ("p10", "p25", "p50", "p75", "p90")] == pytest.approx([19, 32.5, 55, 77.5, 91])
    assert row["mean_low"] < 55 < row["mean_high"]
    assert row["width"] == 5
    assert row["counts"] == [0, 0, *[1, 0] * 8, 1, 1]  # 100 lies beyond the twentieth step, which is open
    (row,) = client.get(f"{ANSWERS}&part=replies").json()
    assert (row["judge"], row["unit"], row["mean"], row["p50"], row["width"]) == ("keen", "tokens", 550, 550, 50)
    page = client.get("/leaderboards/meadow/bias/?kind=score").content.decode()
    assert "Answers of models, in characters" in page
    assert "Replies of judges, in tokens" in page


def test_how_much_a_judge_wrote_about_hidden_text_is_for_staff(meadow, client, client_of):
    Run.objects.update(held=1)
    assert client.get(f"{ANSWERS}&part=replies").json() == []
    assert len(client_of("curator").get(f"{ANSWERS}&part=replies").json()) == 1


def test_how_long_answers_are_that_are_compared_with_closed_keys_is_for_staff(meadow, client, client_of):
    for sample in meadow.samples.all():
        write_criterion(sample=sample, key="key", kind="answer_key", text="A", shown_to="staff")
    assert client.get(ANSWERS).json() == []
    assert client_of("curator").get(ANSWERS).json()[0]["n"] == 10
