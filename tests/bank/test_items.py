"""Items made in the browser and by the API, a step at a time."""

import io
import json
from collections import Counter

import pytest
from django.core.management import call_command

from bank.errors import BadInput
from bank.models import Benchmark, EvaluatedModel, Item, ItemResponse, Response, Sample, Submission
from bank.samples.items import make_items, make_some, plan_items
from tests.annotations.conftest import at_once
from tests.bank.conftest import RESPONSES
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
PAGE = "/bank/benchmarks/small/items/"
COUNT = PAGE + "count/"
API = "/api/v1/items/"


def text_of(answer):
    return flat(answer)


def test_a_curator_makes_pairs_of_every_two_models_and_is_sent_on_to_have_them_labelled(small, client_of):
    curator = client_of("curator")
    page = text_of(curator.get(PAGE))
    assert all(f'<option value="{name}"' in page for name in ("m1", "m2", "m3"))
    asked = {"kind": "pair", "anchor": "", "seed": "0"}
    assert '<dd class="num">6</dd>' not in page
    counted = text_of(curator.post(COUNT, asked))
    assert "<dt>Items</dt><dd>6</dd>" in counted
    assert "<dt>Samples</dt><dd>2</dd>" in counted
    assert not Item.objects.exists()
    made = text_of(curator.post(PAGE, asked))
    assert "Made 6 items." in made
    assert f"/campaigns/new/?benchmark={small.pk}" in made
    assert '<dd class="num">6</dd>' in made
    assert "they are all there" in text_of(curator.post(PAGE, asked))
    assert Item.objects.count() == 6


@pytest.mark.parametrize(
    ("asked", "items"),
    [
        ({"kind": "pair", "anchor": "m2"}, 4),
        ({"kind": "pair", "models": ["m1", "m3"]}, 2),
        ({"kind": "pair", "models": ["m1", "m3"], "sample": "1"}, 1),
        ({"kind": "score", "anchor": "m2"}, 6),
        ({"kind": "batch"}, 2),
        ({"kind": "batch", "models": ["m1", "m2"]}, 0),
    ],
)
def test_as_many_items_are_made_as_were_foretold(small, client_of, asked, items):
    curator = client_of("curator")
    if items:
        assert f"<dt>Items</dt><dd>{items}</dd>" in text_of(curator.post(COUNT, asked))
    else:
        assert "No sample has the answers" in text_of(curator.post(COUNT, asked))
    curator.post(PAGE, asked)
    assert Item.objects.count() == items


def test_the_anchor_of_the_benchmark_stands_in_the_form_and_can_be_left_out(small, client_of):
    small.anchor = EvaluatedModel.objects.get(name="m3")
    small.save()
    curator = client_of("curator")
    assert '<option value="m3" selected>' in text_of(curator.get(PAGE))
    curator.post(PAGE, {"kind": "pair", "anchor": ""})
    assert Item.objects.count() == 6


def test_answers_that_were_withdrawn_and_empty_benchmarks_are_not_offered(small, client_of, people):
    withdrawn = Submission.objects.create(
        by=people["researcher"],
        benchmark=small,
        model=EvaluatedModel.objects.get(name="m1"),
        state=Submission.State.WITHDRAWN,
    )
    Response.objects.filter(model__name="m1").update(submission=withdrawn)
    curator = client_of("curator")
    assert '<option value="m1"' not in text_of(curator.get(PAGE))
    Response.objects.all().delete()
    assert 'value="pair"' not in text_of(curator.get(PAGE))
    small.samples.all().delete()
    assert "No samples yet" in text_of(curator.get(PAGE))


def test_samples_become_items_by_themselves_by_page_command_and_api(small, client_of):
    curator = client_of("curator")
    assert "<dd>2</dd>" in text_of(curator.post(COUNT, {"kind": "bare"}))
    assert curator.post(PAGE, {"kind": "bare", "sample": "1"}).status_code == 200
    (item,) = Item.objects.filter(places__isnull=True)
    assert (item.kind, item.sample.benchmark) == ("score", small)
    asked = {"benchmark": "small", "kind": "score", "bare": True}
    answer = curator.post(API, asked, content_type="application/json")
    assert answer.json() == {"made": 1, "after": None}
    out = io.StringIO()
    call_command("make_items", "score", "--benchmark", "small", "--bare", stdout=out)
    assert "Made 0 items; 2 were there already" in out.getvalue()
    with pytest.raises(BadInput, match="samples alone"):
        plan_items(kind="pair", benchmark=small, bare=True)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"kind": "pair", "sample": "3"}, "only 2 samples have responses"),
        ({"kind": "pair", "models": ["nobody"]}, "nobody is not one of the available choices"),
        ({"kind": "quartet"}, "quartet is not one of the available choices"),
        ({}, "This field is required"),
    ],
)
def test_what_cannot_be_made_is_said_and_nothing_is(small, client_of, asked, said):
    curator = client_of("curator")
    assert said in text_of(curator.post(COUNT, asked))
    assert said in text_of(curator.post(PAGE, asked))
    assert said in text_of(curator.post(PAGE, asked, headers={"HX-Request": "true"}))
    assert not Item.objects.exists()


def test_items_of_many_models_are_made_in_steps_that_may_be_repeated(small, folder, manage):
    rows = [{"sample": key, "model": f"n{n:03}", "text": str(n)} for key in ("a", "b") for n in range(99)]
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "small")[0] == 0
    plan = plan_items(kind="pair", benchmark=small)
    assert plan.count() == 2 * 102 * 101 // 2
    assert make_some(plan, seconds=0) == (5151, 1)
    assert make_some(plan, seconds=0) == (0, 1)
    assert make_some(plan, after=1, seconds=0) == (5151, 2)
    assert make_some(plan, after=2, seconds=0) == (0, 2)


@pytest.mark.django_db(transaction=True)
def test_two_who_make_the_same_items_at_once_make_each_once(small):
    def make(_):
        return make_items(plan_items(kind="pair", benchmark=small))[0]

    assert sum(at_once(make, range(4))) == Item.objects.count() == 6
    assert ItemResponse.objects.count() == 12


def test_a_step_of_the_page_goes_on_where_the_one_before_ended_and_counts_on(small, client_of):
    asked = {"kind": "pair", "anchor": "", "after": "1", "made": "3"}
    answered = text_of(client_of("curator").post(PAGE, asked, headers={"HX-Request": "true"}))
    assert "Made 6 items." in answered
    assert '<dt>Pairs</dt><dd class="num">3</dd>' in answered
    assert set(Item.objects.values_list("sample__key", flat=True)) == {"b"}


def test_answers_to_rotated_options_become_items_only_when_asked_for(small, folder, manage, client_of):
    rows = [{**row, "variant": "circular-1"} for row in RESPONSES[:3]]
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "small")[0] == 0
    curator = client_of("curator")
    assert "<dd>6</dd>" in text_of(curator.post(COUNT, {"kind": "score"}))
    assert "<dd>9</dd>" in text_of(curator.post(COUNT, {"kind": "score", "rotations": "on"}))
    curator.post(PAGE, {"kind": "score", "rotations": "on"})
    assert Item.objects.count() == 9


def test_the_api_makes_items_for_staff_alone_and_names_what_is_wrong(small, client_of):
    asked = {"benchmark": "small", "kind": "pair", "models": ["m3", "m1"], "anchor": "m2"}

    def post(role, body):
        return client_of(role).post(API, json.dumps(body), content_type="application/json")

    assert post("researcher", asked).status_code == 403
    assert not Item.objects.exists()
    assert post("curator", asked).json() == {"made": 4, "after": None}
    assert post("curator", asked).json() == {"made": 0, "after": None}
    names = [[r.model.name for r in item.ordered_responses()] for item in Item.objects.filter(sample__key="a")]
    assert names == [["m3", "m2"], ["m1", "m2"]]
    refused = post("curator", asked | {"models": ["nobody"]})
    assert refused.status_code == 400
    assert "'nobody' has no responses" in flat(refused)
    assert "ancor" in post("curator", {"benchmark": "small", "kind": "pair", "ancor": "m2"}).json()
    assert "Unknown benchmark 'smal'" in flat(post("curator", asked | {"benchmark": "smal"}))


@pytest.fixture
def six_models(db):
    """24 samples, each answered by six models; model number n writes texts of about n words, and one more by turns."""
    benchmark = Benchmark.objects.create(slug="six", title="Six")
    models = [EvaluatedModel.objects.create(name=f"m{n}") for n in range(6)]
    for number in range(24):
        sample = Sample.objects.create(benchmark=benchmark, key=str(number), instruction="?", position=number)
        Response.objects.bulk_create(
            Response(sample=sample, model=model, text="word " * ((place + number) % 6 + 1))
            for place, model in enumerate(models)
        )
    return benchmark


@pytest.mark.parametrize(("kind", "each"), [("batch", 1), ("pair", 6)])
def test_batches_of_four_take_every_model_and_length_as_often_and_pairs_are_those_within_them(six_models, kind, each):
    plan = plan_items(kind=kind, benchmark=six_models, size=4)
    assert plan.count() == 24 * each
    assert make_items(plan) == (24 * each, 24 * each)
    assert make_items(plan_items(kind=kind, benchmark=six_models, size=4)) == (0, 24 * each)
    of_model, of_length = Counter(), Counter()
    for sample in six_models.samples.all():
        answers = Response.objects.filter(sample=sample, items__kind=kind).distinct()
        assert answers.count() == 4
        of_model.update(answers.values_list("model__name", flat=True))
        of_length.update(len(answer.text) for answer in answers)
    assert max(of_model.values()) - min(of_model.values()) <= 1  # 16 each
    assert max(of_length.values()) - min(of_length.values()) <= 4, of_length


def test_a_size_is_for_batches_of_three_or_more_and_needs_as_many_answers(six_models):
    for values in (
        {"kind": "score", "size": 4},
        {"kind": "batch", "size": 2},
        {"kind": "pair", "size": 4, "anchor": "m0"},
    ):
        with pytest.raises(BadInput, match="--size"):
            plan_items(benchmark=six_models, **values)
    with pytest.raises(BadInput, match="no sample has so many answers"):
        plan_items(kind="batch", benchmark=six_models, size=7)


def test_brief_and_refused_answers_are_left_out_on_request_and_so_are_samples_with_items_of_other_kinds(six_models):
    """As MLLM-as-a-Judge makes its sets (arXiv 2402.04788, 2.2)."""
    benchmark = six_models
    first, second, *_ = benchmark.samples.order_by("position", "pk")
    Response.objects.update(text="long enough an answer")
    Response.objects.filter(sample=first, model__name="m0").update(text="brief")
    Response.objects.filter(sample=first, model__name="m1").update(status="refused")
    plan = plan_items(kind="score", benchmark=benchmark, least=6)
    answers, samples = Response.objects.count(), benchmark.samples.count()
    assert plan.count() == make_items(plan)[0] == answers - 2
    assert plan_items(kind="pair", benchmark=benchmark, least=6, anchor="m0").count() == (
        (samples - 1) * 5  # the first sample lacks the anchor
    )
    with pytest.raises(BadInput, match="no sample has so many answers"):
        plan_items(kind="batch", benchmark=benchmark, size=3, least=1_000)
    Item.objects.exclude(sample=second).delete()
    assert second.pk not in plan_items(kind="pair", benchmark=benchmark, apart=True).samples
    assert len(plan_items(kind="score", benchmark=benchmark, apart=True).samples) == samples
