"""What a submitter is told of the judging follows no hidden length: two benchmarks that differ in nothing but how long
their criteria are, judged by an endpoint whose time and tokens grow with its prompt.
"""

import json
import re
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from accounts.models import Notice
from bank.criteria import Criterion
from bank.models import EvaluatedModel, Submission
from bank.submissions import actions
from judging.collecting import submissions as queue
from judging.models import QueuedSubmission, Run
from judging.runs.actions import start_run
from tests.judging.server import Server, after, answer
from tests.judging.small import make_benchmark
from tests.judging.test_submission_queue import API, serve
from tests.markup import flat

pytestmark = pytest.mark.django_db
LENGTHS = {"short": 10, "long": 6000}  # characters of a criterion
ANSWERS = (10, 400, 1600, 6400)  # characters of an answer: an attacker looks for the one that is too dear
SETTINGS = {"context": "none", "criteria": True}


def by_length(call):
    """The second answer is better; the time and the tokens go with the prompt."""
    usage = {"prompt_tokens": len(call.text) // 4, "completion_tokens": len(call.text) // 40}
    return after(len(call.text) / 1_000_000, answer("[[B]]", usage=usage))


@pytest.fixture
def worlds(people, judge_at):
    """The two benchmarks by name, with a finished run each to judge like, so that its calls could be measured."""
    made = {}
    people["researcher"].email = "researcher@example.org"
    people["researcher"].save()
    with Server(by_length) as server:
        judge = judge_at(server.url, price_in=1000.0, price_out=1000.0)
        for name, length in LENGTHS.items():
            benchmark = make_benchmark(samples=6, pictures=False, slug=name)
            benchmark.anchor, benchmark.title = EvaluatedModel.objects.get(name="osprey-13b"), "World"
            benchmark.save()
            for row in Criterion.unguarded.filter(sample__benchmark=benchmark):
                row.text = "x" * length
                row.save()
            given = {"per_day": None, "in_all": None, "count_failed": False, "private_half": True}
            actions.set_rules(
                by=people["curator"], benchmark=benchmark, open=True, hidden_splits=(), required_splits=(), **given
            )
            made[name] = benchmark, start_run(judge=judge, benchmark=benchmark, protocol="pair", settings=SETTINGS)
        serve()
        assert {Run.objects.get(pk=run.pk).state for _, run in made.values()} == {"finished"}
        yield made


def seen(benchmark, client):
    """Everything that is told of the judging, with what names the world or a row left out."""
    found = []
    for submission in Submission.objects.filter(benchmark=benchmark).order_by("pk"):
        judging = client.get(f"{API}{submission.pk}/").json()["judging"]
        judging["run"] = judging["run"] is not None
        page = flat(client.get(f"/submissions/{submission.pk}/"))
        block = re.search(r'<section class="panel" id="judged">.*?</section>', page, re.DOTALL)[0]
        told = list(Notice.objects.filter(link=f"/submissions/{submission.pk}/").values_list("text", "at__date"))
        mails = [f"{one.subject}\n{one.body}" for one in mail.outbox if f"/submissions/{submission.pk}/" in one.body]
        text = json.dumps([submission.name, judging, block, [str(one) for one in told], mails])
        text = re.sub(rf"submissions/{submission.pk}/|{benchmark.slug}", "*", text)
        found.append(re.sub(r"\s+", " ", text))
    return found


@pytest.mark.check("J1")
@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"per_submission": 10.0}, marks=pytest.mark.soak),
        pytest.param({"per_day": 9.0}, marks=pytest.mark.soak),
        {"per_submission": 20.0, "per_day": 16.0},
    ],
)
def test_no_word_state_or_day_of_a_judging_follows_the_length_of_criteria(
    limits, worlds, people, client_of, tmp_path, monkeypatch
):
    client, told = client_of("researcher"), {}
    for benchmark, run in worlds.values():
        queue.set_judging(by=None, benchmark=benchmark, like=Run.objects.get(pk=run.pk), **limits)
        for length in ANSWERS:
            path = tmp_path / f"{benchmark.slug}-{length}.jsonl"
            keys = benchmark.samples.values_list("key", flat=True)
            path.write_text("".join(json.dumps({"sample": key, "text": "y" * length}) + "\n" for key in keys))
            name, person = f"m{length}", people["researcher"]
            actions.submit(person=person, benchmark=benchmark, name=name, path=path, now=timezone.now())
    today = timezone.now()
    for day in range(6):
        monkeypatch.setattr(queue.timezone, "now", lambda day=day: today + timedelta(days=day))
        for _ in range(2):
            serve()
            now = [seen(benchmark, client) for benchmark, _ in worlds.values()]
            assert now[0] == now[1], day
            told[day] = now[0]
        assert day or all("waiting" in one for one in told[day]), "on the day itself nothing is told"
        states = [re.search(r'"state": "(\w+)"', one)[1] for one in told[day]]
        if set(states) <= {"judged", "stopped"} and told[day] == told[day - 1]:
            break  # all of it was told on the day before
    assert set(states) == {"judged", "stopped"}, "the limits do something"
    assert "$" not in "".join(told[day])
    assert {re.search(r'"finished_at": "[^"]*(T[^"]*)"', one)[1] for one in told[day]} == {"T00:00:00Z"}
    rows = QueuedSubmission.objects.filter(run__isnull=False).select_related("run", "submission")
    spent = [sum(row.run.spent for row in rows if row.submission.benchmark == one) for one, _ in worlds.values()]
    assert spent[1] > 2 * spent[0], "the lengths do differ in money"
