"""A judge run over real items of MLLM-Bench, against an endpoint with every misfortune."""

from collections import Counter
from dataclasses import replace

import pytest
from django.core.management import call_command

from bank.models import Benchmark, CriteriaAccess, Item
from judging.models import Run, reason_key
from tests.judging.server import Server, answer, completion, error, status
from tests.judging.small import QUICK

pytestmark = pytest.mark.django_db


def test_sixty_real_items_come_to_their_exact_ends(shared_data, judge_at, start, work_on):
    folder = str(shared_data / "mllm-bench")
    call_command("import_benchmark", "mllm-bench", folder, benchmark="mllm-bench", verbosity=0, visibility="public")
    call_command("import_responses", "mllm-bench", folder, benchmark="mllm-bench", verbosity=0)
    models = ["gpt-4o-mini-2024-07-18"]
    call_command(
        "make_items", "pair", benchmark="mllm-bench", models=",".join(models), anchor="llava-v1.5-13b", verbosity=0
    )
    seen: Counter[str] = Counter()

    def script(call):
        seen[call.text] += 1
        fate = sum(call.text.encode()) % 8
        again = seen[call.text] > 1
        return [
            answer("Answer1"),
            answer("They differ.\n\n**Answer2**"),
            completion({"role": "assistant", "content": None, "refusal": "No."}),
            answer("Both are fine."),
            answer("Answer1") if again else error(429, retry_after="0.05"),
            answer("unable to decide: situation two") if again else status(500),
            status(200, "<html>"),
            answer("", finish="content_filter"),
        ][fate]

    with Server(script) as server:
        run = start(judge_at(server.url, concurrency=16), on=Benchmark.objects.named("mllm-bench"), limit=60)
        run = work_on(run, patience=replace(QUICK, refusals=1000))
    assert run.state == Run.State.FINISHED
    assert run.judgments.count() == 120
    expected = ["ok", "ok", "refused", "parse_failed", "ok", "ok", "error", "filtered"]
    fates = Counter(expected[sum(text.encode()) % 8] for text in seen)
    unseen = run.judgments.filter(reason_hash=reason_key("a picture of the sample is not stored here"))
    assert set(unseen.values_list("item__sample__key", flat=True)) == {"30"}
    fates["error"] += unseen.count()
    assert Counter(run.judgments.values_list("status", flat=True)) == fates
    assert not run.judgments.exclude(status="ok").exclude(choice=None).exists()
    assert run.calls == len(server.calls)
    assert all(call.images for call in server.calls)
    assert CriteriaAccess.objects.filter(how="judging", about=f"run {run.pk}").exists()
    assert Item.objects.count() >= 60
