"""What is hidden cannot be worked out from what is shown: attacks that once gave hidden text away, played again.

Each attacker has the public source, a token and all the time in the world, and not the installation's key.
"""

import hashlib
import json
import re

import orjson
import pytest

from bank import exposure
from bank.criteria import Criterion
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from bank.models.items import content_hash
from bank.samples.benchmarks import open_keys
from judging import protocols
from judging.endpoints.judges import ensure_baselines
from judging.models import Judgment, Run
from judging.runs import actions, plan, requests
from tests.hidden import close, ended_before_today, write_criterion
from tests.judging.conftest import judge_at, work_on  # noqa: F401 (fixtures)
from tests.judging.server import Server, answer

pytestmark = pytest.mark.django_db
ANSWERS = ["crimson", "seven", "Lisbon", "42"]


@pytest.fixture
def judged(settings, tmp_path, judge_at, work_on):  # noqa: F811
    """A run of reference-score over hidden references, ended before today, by an endpoint that counts its tokens."""
    benchmark = Benchmark.objects.create(slug="answers", title="Answers", visibility="public")
    for number, text in enumerate(ANSWERS):
        sample = Sample.objects.create(benchmark=benchmark, key=f"s{number}", instruction="What is it?")
        write_criterion(sample=sample, key="ref", kind="soft_reference", text=text)
    ensure_baselines()
    model = EvaluatedModel.objects.create(name="heron-7b")
    for sample in Sample.objects.all():
        given = Response.objects.create(sample=sample, model=model, text="It is red.")
        hashed = content_hash(kind="score", sample_id=sample.pk, response_ids=[given.pk])
        Item.objects.create(kind="score", sample=sample, content_hash=hashed).places.create(position=0, response=given)

    def counting(call):
        return answer("It says red.\nScore: 3", usage={"prompt_tokens": len(call.text), "completion_tokens": 5})

    with Server(counting) as server:
        judge = judge_at(server.url, price_in=1, price_out=1)
        run = work_on(actions.start_run(judge=judge, benchmark=benchmark, protocol="reference-score"))
    assert run.judgments.filter(status="ok").count() == len(ANSWERS)
    ended_before_today()
    return run


def everything(client, run):
    """All that the pages and the API say about a run and its judgments."""
    keys = run.judgments.values_list("pk", flat=True)
    paths = ["/api/v1/judgments/", "/api/v1/runs/", f"/api/v1/runs/{run.pk}/", "/judging/", f"/judging/runs/{run.pk}/"]
    paths += [f"/judging/runs/{run.pk}/progress/", "/judging/judgments/", *(f"/judging/judgments/{pk}/" for pk in keys)]
    texts = {path: client.get(path).content.decode() for path in paths}
    export = client.post("/judging/judgments/export/", {"shape": "jsonl"})
    return texts | {"export": b"".join(export.streaming_content).decode()}


@pytest.mark.check("J2")
def test_a_guess_at_a_hidden_answer_is_not_confirmed_by_any_hash(judged, client_of):
    """The finding: 12 of 12 answers recovered from prompt_sha256 by hashing guesses. The attacker here even has the
    run's seed and every true answer."""
    said = "\n".join(everything(client_of("researcher"), judged).values())
    template = requests.template_of(judged)
    for judgment in judged.judgments.all():
        asked = requests.judge_request(
            judged,
            plan.Job(_subject(judgment), judgment.order, 0),
            template=template,
            protocol=protocols.get(judged.protocol),
        )
        parts = {
            "template": template.sha256,
            "text": asked.text,
            "images": [],
            "model": judged.judge.model,
            "parameters": dict(asked.parameters),
            "order": judgment.order,
            "repeat": 0,
        }
        guessed = hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()
        assert judgment.prompt_sha256
        assert guessed != judgment.prompt_sha256
        assert guessed[:16] not in said
        assert judgment.prompt_sha256[:16] not in said
        assert judgment.call_key[:16] not in said
        assert asked.material.nonce not in said
    public = {judged.template_sha256, judged.settings_hash}
    found = set(re.findall(r"\b[0-9a-f]{16,64}\b", said))
    assert {one for one in found if not any(known.startswith(one) for known in public)} == set()


def _subject(judgment):
    found = plan.subjects_by_item([judgment.item_id])[judgment.item_id]
    text = Criterion.unguarded.get(sample_id=found.sample_id).text
    return plan.replace(found, criteria=(plan.Criterion("ref", "soft_reference", text),))


@pytest.mark.check("J1")
def test_no_figure_below_staff_tells_how_long_a_hidden_answer_is(judged, client_of):
    """The finding: prompt_tokens and cost differed in 135 of 144 judgments of two worlds."""
    before = everything(client_of("researcher"), judged)
    for judgment in judged.judgments.all():
        Judgment.objects.filter(pk=judgment.pk).update(
            prompt_tokens=judgment.prompt_tokens + 175, cost=judgment.cost * 3, latency=99.0
        )
    type(judged).objects.update(spent=99.0, cached=7)
    judged.judge.runs.update(started_at=None)
    after = everything(client_of("researcher"), judged)
    masked = re.compile(r'csrfmiddlewaretoken" value="[^"]+"|CSRFToken": "[^"]+"|"started_at": ?[^,]+,')
    for path, text in before.items():
        assert masked.sub("", text) == masked.sub("", after[path]), path
    rows = json.loads(after["/api/v1/judgments/"])["results"]
    assert {row[name] for row in rows for name in ("prompt_tokens", "completion_tokens", "cost", "latency")} == {None}
    assert client_of("curator").get("/api/v1/judgments/").json()["results"][0]["prompt_tokens"]


@pytest.mark.check("J3")
def test_a_mark_against_a_hidden_key_is_told_to_nobody_below_staff(judged, client_of):
    """With the answer, which everybody reads, a mark tells the key or exact reference; a free text it does not."""
    keyed, exact = judged.judgments.order_by("pk")[:2]
    Criterion.unguarded.filter(sample=keyed.item.sample).update(kind="answer_key")
    Criterion.unguarded.filter(sample=exact.item.sample).update(kind="exact_reference")
    close()
    Run.objects.update(held=exposure.UNKNOWN)
    researcher, curator = client_of("researcher"), client_of("curator")
    seen = {row["id"] for row in researcher.get("/api/v1/judgments/").json()["results"]}
    assert seen == set(judged.judgments.exclude(pk__in=[keyed.pk, exact.pk]).values_list("pk", flat=True))
    assert keyed.pk in {row["id"] for row in curator.get("/api/v1/judgments/").json()["results"]}
    open_keys(benchmark=judged.benchmark, command="publish")
    assert keyed.pk in {row["id"] for row in researcher.get("/api/v1/judgments/").json()["results"]}
