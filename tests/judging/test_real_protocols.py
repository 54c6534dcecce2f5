"""Every protocol over real samples of the sets it comes from, by page, by command and by API."""

import io
import json
import re
import shutil

import pytest
from django.core.management import call_command
from django.urls import reverse

from bank.models import Benchmark, Sample
from judging.models import Judgment, Run
from tests.judging.server import Server, answer

pytestmark = pytest.mark.django_db

FEW = 3
MODEL = "gpt-4o-mini-2024-07-18"


def mllm_bench(data, here):
    """A few questions with their pictures, and the answers of the anchor and one model."""
    questions = json.loads((data / "questions_with_criteria.json").read_text())[:FEW]
    ids = {str(question["id"]) for question in questions}
    (here / "questions_with_criteria.json").write_text(json.dumps(questions))
    anchor = json.loads((data / "anchor.json").read_text())
    (here / "anchor.json").write_text(json.dumps([row for row in anchor if str(row["unique_idx"]) in ids]))
    (here / "answers").mkdir()
    lines = (data / f"answers/{MODEL}.jsonl").read_text().splitlines()
    kept = [line for line in lines if str(json.loads(line)["id"]) in ids]
    (here / f"answers/{MODEL}.jsonl").write_text("\n".join(kept))
    (here / "images").mkdir()
    for key in ids:
        shutil.copy(data / f"images/{key}.jpg", here / "images")


def mllm_as_a_judge(data, here):
    for file in data.glob("*.jsonl"):
        shutil.copy(file, here)


def mia_bench(data, here):
    name = "instruction_benchmark_all.json"
    (here / name).write_text(json.dumps(json.loads((data / name).read_text())[:FEW]))


def mmbench(data, here):
    (here / "samples_parsed.json").write_text(json.dumps(json.loads((data / "samples_parsed.json").read_text())[:FEW]))


def pope(data, here):
    name = "coco_pope_popular.json"
    (here / name).write_text("\n".join((data / name).read_text().splitlines()[:FEW]))


SETS = {"mllm-bench": mllm_bench, "mllm-as-a-judge": mllm_as_a_judge, "mia-bench": mia_bench}
SETS |= {"mmbench": mmbench, "pope": pope}
HAVE_RESPONSES = ("mllm-bench", "mllm-as-a-judge")
KINDS = {"pairwise-criteria": "pair", "pair": "pair", "batch": "batch"}


def graded(prompt: str) -> str:
    weights = re.findall(r"^Component [0-9]+ is worth ([0-9.]+)\.$", prompt, re.MULTILINE)
    parts = [f"score of component {n}: {weight}/{weight}" for n, weight in enumerate(weights, 1)]
    total = f"{sum(map(float, weights)):g}"
    return f"{', '.join(parts)}, total score: {total}/{total}.".capitalize()


def ranked(prompt: str) -> str:
    letters = re.findall(r"^<answer-([A-Z])-", prompt, re.MULTILINE)
    return "Judgement: " + ", ".join(f"[[{letter}]]" for letter in letters)


# Protocol, set, what a judge replies, settings, and what every verdict of the run is.
CASES = [
    ("pairwise-criteria", "mllm-bench", lambda prompt: "Answer1", {}, "choice"),
    ("pair", "mllm-as-a-judge", lambda prompt: "Judgement: [[B]]", {"context": "none"}, "choice"),
    ("score", "mllm-as-a-judge", lambda prompt: "Fine.\nJudgement: [[4]]", {"context": "none"}, "score"),
    ("batch", "mllm-as-a-judge", ranked, {"context": "none", "reasoning": "none"}, "ranking"),
    ("components", "mia-bench", graded, {"context": "none"}, "score"),
    ("choice-extraction", "mmbench", lambda prompt: "Choice: A", {}, "option"),
    ("reference-score", "mmbench", lambda prompt: "It is near.\nMark: 3", {}, "score"),
    ("reasoning-quality", "mmbench", lambda prompt: "It is clear.\nScore: 6", {"repeats": 2}, "score"),
    ("yes-no", "pope", lambda prompt: "Answer: No", {}, "answer"),
]


def prepare(name: str, kind: str, data, here) -> Benchmark:
    """A few samples of a set with responses, and its items of a kind."""
    SETS[name](data / name, here)
    call_command(
        "import_benchmark",
        name,
        str(here),
        benchmark=name,
        skip_bad=True,
        verbosity=0,
        stdout=io.StringIO(),
        visibility="public",
    )
    if name in HAVE_RESPONSES:
        call_command("import_responses", name, str(here), benchmark=name, verbosity=0, stdout=io.StringIO())
    else:
        rows = [
            {"sample": sample.key, "model": MODEL, "text": text} | ({"variant": f"circular-{k}"} if k else {})
            for sample in Sample.objects.filter(benchmark__slug=name)
            for k, text in enumerate(["Hard to say from here.", "B", "(C)", "D."][: max(1, len(sample.options))])
        ]
        file = here / "responses.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)))
        call_command("import_responses", "generic", str(file), benchmark=name, verbosity=0, stdout=io.StringIO())
    given = {"models": MODEL, "anchor": "llava-v1.5-13b"} if name == "mllm-bench" else {"rotations": name == "mmbench"}
    call_command("make_items", kind, benchmark=name, verbosity=0, stdout=io.StringIO(), **given)
    return Benchmark.objects.get(slug=name)


@pytest.mark.parametrize(("protocol", "name", "reply", "settings", "column"), CASES, ids=[case[0] for case in CASES])
def test_a_protocol_runs_over_real_samples_by_page_command_and_api(
    shared_data, tmp_path, client_of, judge_at, work_on, protocol, name, reply, settings, column
):
    benchmark = prepare(name, KINDS.get(protocol, "score"), shared_data, tmp_path)
    client = client_of("curator")
    with Server(lambda call: answer(reply(call.text))) as server:
        judge = judge_at(server.url, concurrency=8)
        chosen = {"judge": judge.pk, "benchmark": benchmark.pk, "protocol": protocol, "prompt": "default", "new": "on"}
        sent = client.post(reverse("judging:run-new"), chosen | settings)
        assert sent.status_code == 302, sent.context["form"].errors
        said = {"benchmark": name, "judge": judge.name, "protocol": protocol}
        asked = json.dumps(settings)
        call_command("judge", **said, chosen=asked, wait=True, new=True, stdout=io.StringIO())
        made = client.post("/api/v1/runs/", said | {"settings": settings, "new": True}, content_type="application/json")
        assert made.status_code == 201, made.json()
        for run in Run.objects.filter(state="queued"):
            work_on(run)
    runs = list(Run.objects.order_by("pk"))
    assert [run.state for run in runs] == ["finished"] * 3, [run.state_reason for run in runs]
    assert {(run.verdicts, run.failures) for run in runs} == {(runs[0].planned, 0)}
    assert runs[0].planned
    assert not Judgment.objects.filter(**{column: None}).exists()
    if protocol == "choice-extraction":  # the first pass asks the judge, rotations name their label themselves
        sources = Judgment.objects.values_list("item__places__response__variant", "extraction", "option")
        assert {(variant, source) for variant, source, _ in sources} == {
            ("", "judge"),
            *((f"circular-{k}", "label") for k in (1, 2, 3)),
        }
        # What stands behind the label is the sample's own option: B turned by one is its C.
        assert {option for variant, _, option in sources if variant == "circular-1"} == {"C"}
