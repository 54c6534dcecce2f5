"""Judges and runs from the command line."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from bank.models import Response
from judging.models import Judge, Run
from tests.judging.server import Server, answer, error

RUN = {"benchmark": "everyday", "judge": "kestrel", "protocol": "pairwise-criteria"}


def judge(**options) -> str:
    out = StringIO()
    call_command("judge", stdout=out, **RUN | options)
    return out.getvalue()


@pytest.mark.django_db
def test_a_run_is_worked_here_with_wait_and_reports_in_plain_lines(benchmark, judge_at, capsys):
    replies = [answer("Answer1"), answer("Hm."), answer("Answer2")]
    with Server(lambda call: replies[call.number % 3]) as server:
        judge_at(server.url)
        said = judge(wait=True, chosen='{"order": "fixed"}')
    assert "kestrel on everyday@1, pairwise-criteria, 3 items" in said
    assert "is finished: 2 verdicts, 1 without a verdict" in said
    told = capsys.readouterr().err
    assert "1 x parse_failed: " in told
    assert "The same command with --retry asks these again." in told
    assert Run.objects.get().settings["order"] == "fixed"


@pytest.mark.django_db
def test_nobody_is_told_to_ask_again_about_an_answer_that_is_none(benchmark, judge_at, capsys, client_of):
    Response.objects.filter(model=Response.objects.first().model).update(status="empty", text="")
    with Server(lambda call: answer("Answer1")) as server:
        judge_at(server.url)
        judge(wait=True)
        told = capsys.readouterr().err
        assert "x empty: not asked: the answer is empty" in told
        assert "--retry" not in told
        page = client_of("curator").get(reverse("judging:run-detail", args=[Run.objects.get().pk])).text
    assert "Not asked: the answer is empty" in page
    assert "Retry" not in page


@pytest.mark.django_db
def test_without_wait_the_run_is_left_to_the_worker(benchmark, judge_at):
    judge_at("http://127.0.0.1:9/v1")
    assert "A worker will take it" in judge(limit=2)
    run = Run.objects.get()
    assert (run.state, run.items.count()) == ("queued", 2)
    judge(limit=2)
    assert Run.objects.count() == 1
    judge(limit=2, new=True)
    assert Run.objects.count() == 2


@pytest.mark.django_db
def test_a_run_asks_as_its_paper_does_but_for_what_is_chosen_and_says_so(benchmark, judge_at, client_of):
    """Temperature, top-p and length as MLLM-as-a-Judge has them (C.2), three samples (Table 2), in one order."""
    judge_at("http://127.0.0.1:9/v1")
    judge(protocol="pair", as_printed=True)
    printed = {"temperature": 0.9, "top_p": 0.9, "max_tokens": 2048, "ask_again": 1, "repeats": 3, "order": "fixed"}
    run = Run.objects.get()
    assert run.settings.items() >= printed.items()
    assert "as_printed" not in run.settings
    page = client_of("curator").get(reverse("judging:run-detail", args=[run.pk])).text
    assert "in MLLM-as-a-Judge: C.2" in page
    judge(protocol="pair", as_printed=True, chosen='{"repeats": 6}')
    assert Run.objects.latest("pk").settings.items() >= (printed | {"repeats": 6}).items()
    with pytest.raises(CommandError, match="asked in no paper's way"):
        judge(protocol="pair-graded", as_printed=True)


@pytest.mark.django_db
def test_what_failed_is_made_again_with_retry_all_of_it_or_by_its_status(benchmark, judge_at):
    replies = [answer("Hm."), answer("Answer1"), answer("", finish="length")]
    with Server(lambda call: replies[call.number] if call.number < 3 else answer("Answer2")) as server:
        judge_at(server.url, concurrency=1)
        fixed = {"wait": True, "chosen": '{"order": "fixed"}'}
        judge(**fixed)
        assert "Retrying 0 failed calls" in judge(**fixed, retry="refused")
        said = judge(**fixed, retry="refused, parse_failed")
        assert "Retrying 1 failed calls." in said
        assert "is finished: 2 verdicts, 1 without a verdict" in said
        said = StringIO()
        call_command("judge", "--retry", "--wait", stdout=said, **RUN, chosen='{"order": "fixed"}')
        assert "is finished: 3 verdicts, 0 without a verdict" in said.getvalue()
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_run_that_pauses_ends_the_command_with_the_reason(benchmark, judge_at):
    with Server(lambda call: error(401)) as server:
        judge_at(server.url)
        with pytest.raises(CommandError, match="the key was not accepted") as refused:
            judge(wait=True)
    assert refused.value.returncode == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        ({"judge": "nobody"}, "Unknown judge 'nobody'", 1),
        ({"benchmark": "nothing"}, "Unknown benchmark 'nothing'", 1),
        ({"protocol": "votes"}, "Unknown protocol 'votes'. Known protocols: pairwise-criteria", 1),
        ({"chosen": '{"order": "random"}'}, "both, shuffled, fixed", 1),
        ({"chosen": "order=both"}, "--settings is not JSON", 2),
        ({"budget": 5.0}, "has no prices", 1),
        ({"limit": 0}, "limit", 1),
        ({"retry": "ok"}, "'ok' is not one of parse_failed, refused", 2),
        ({"retry": "refused", "new": True}, "--new starts another", 2),
    ],
)
def test_what_cannot_be_is_said_with_what_can(benchmark, judge_at, options, words, code):
    judge_at("http://127.0.0.1:9/v1")
    with pytest.raises(CommandError, match=words) as refused:
        judge(**options)
    assert refused.value.returncode == code
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_a_benchmark_without_pairs_says_how_to_make_them(benchmark, judge_at):
    benchmark.samples.all().delete()
    judge_at("http://127.0.0.1:9/v1")
    with pytest.raises(CommandError, match="make_items pair --benchmark everyday"):
        judge()


@pytest.mark.django_db
def test_a_judge_is_added_with_its_limits_and_its_key_stays_in_the_environment():
    out = StringIO()
    call_command(
        "add_judge", "kestrel", base_url="http://10.0.0.7:8000/v1", model="k", key_env="K_API_KEY", rpm=60, stdout=out
    )
    judge = Judge.objects.get(name="kestrel")
    assert (judge.any_host, judge.rpm, judge.tpm, judge.concurrency, judge.timeout) == (True, 60, None, 16, 120)
    assert "its key from K_API_KEY" in out.getvalue()
    with pytest.raises(CommandError, match="never the key itself"):
        call_command("add_judge", "other", base_url="http://10.0.0.7/v1", model="k", key_env="sk-abc")
    with pytest.raises(CommandError, match="begin with baseline-"):
        call_command("add_judge", "baseline-mine", base_url="http://10.0.0.7/v1", model="k")


@pytest.mark.django_db(transaction=True)
def test_the_worker_command_works_what_waits(benchmark, judge_at):
    with Server(lambda call: answer("Answer1")) as server:
        judge_at(server.url)
        judge()
        call_command("worker", until_idle=True, stdout=StringIO())
    assert Run.objects.get().state == "finished"


@pytest.mark.django_db
def test_the_steps_that_the_command_tells_lead_past_what_an_endpoint_does_not_take(benchmark, judge_at, capsys):
    """A reasoning model whose refusal names no parameter: only a test of the judge shows which one it is."""
    refusal = error(400, message="This model does not support the values that were sent.")
    with Server(lambda call: refusal if "temperature" in call.body else answer("Answer1")) as server:
        judge_at(server.url)
        options = {"wait": True, "limit": 2, "chosen": '{"context": "none"}'}
        assert "is finished: 0 verdicts, 4 without a verdict" in judge(**options)
        told = capsys.readouterr().err
        assert "The endpoint says: This model does not support the values that were sent." in told
        assert "The same command with --retry asks these again." in told
        out = StringIO()
        call_command("probe_judge", "kestrel", stdout=out)
        assert "temperature: no" in out.getvalue()
        said = judge(**options, retry="error")
        assert "Retrying 4 failed calls." in said
        assert "is finished: 4 verdicts, 0 without a verdict" in said
    assert Run.objects.count() == 1
