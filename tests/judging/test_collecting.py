"""Runs that collect: a model's answers to a benchmark, and descriptions of its pictures."""

import re
from collections import Counter
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from bank.criteria import Criterion
from bank.errors import BadInput
from bank.models import Benchmark, Response, Sample, SampleImage
from judging.models import Attempt, Collected, Run
from judging.runs import actions
from judging.runs.actions import start_collecting
from leaderboard.boards.seen import models
from leaderboard.view import scope_of
from tests.hidden import show, write_criterion
from tests.judging.server import Server, answer, completion, error
from tests.judging.small import make_benchmark
from tests.markup import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def quiz(benchmark):
    """The small benchmark with three options in its first two samples."""
    for key in "01":
        sample = benchmark.samples.get(key=key)
        sample.options = {"A": "a bowl", "B": "a cup", "C": "a spoon"}
        sample.save()
    return benchmark


@pytest.fixture
def collect(judge_at, work_on, benchmark):
    """Work a collecting run against a server; returns the run and the calls."""

    def act(script, *, kind="responses", judge=None, **values):
        with Server(script) as server:
            judge = judge_at(server.url, name=f"endpoint {server.port}")
            run = start_collecting(kind=kind, judge=judge, benchmark=values.pop("on", benchmark), **values)
            return work_on(run), server.calls

    return act


def test_a_model_answers_every_sample_with_its_picture_and_the_answers_stand_in_the_bank(benchmark, collect):
    run, calls = collect(lambda call: answer(f"It is a bowl: {call.text.strip()}"), model="new-vl 7B")
    assert run.state == Run.State.FINISHED
    stored = Response.objects.filter(model__name="new-vl 7B").order_by("sample__position")
    assert [one.text for one in stored] == [f"It is a bowl: What is on table {n}?" for n in range(3)]
    assert set(stored.values_list("status", "tokens", "variant", "submission")) == {("ok", 10, "", None)}
    assert all(len(call.images) == 1 for call in calls)
    assert {row.response_id for row in run.collected.all()} == set(stored.values_list("pk", flat=True))
    assert (run.planned, run.verdicts, run.failures) == (3, 3, 0)
    assert not any("walnut" in call.text for call in calls)  # criteria are for judges


def test_without_pictures_a_model_answers_blind_as_a_model_of_its_own(benchmark, collect):
    collect(lambda call: answer("a bowl"), model="new-vl 7B")
    run, calls = collect(lambda call: answer("a cup"), model="new-vl 7B", settings={"no_pictures": True})
    assert run.state == Run.State.FINISHED
    assert [call.images for call in calls] == [[]] * 3
    assert not any("picture" in call.text.lower() for call in calls)
    texts = {name: {text} for name, text in Response.objects.values_list("model__name", "text") if "new" in name}
    assert texts == {"new-vl 7B": {"a bowl"}, "new-vl 7B without pictures": {"a cup"}}


def test_who_cannot_see_and_samples_whose_pictures_are_not_here_can_be_asked_without_them(benchmark, judge_at, work_on):
    SampleImage.objects.all().delete()
    benchmark.samples.update(absent_images=1)
    with Server(lambda call: answer("a cup")) as server:
        judge = judge_at(server.url, abilities={"vision": False})
        with pytest.raises(BadInput, match="stored here"):
            start_collecting(kind="responses", judge=judge, benchmark=benchmark)
        out = StringIO()
        call_command("collect", "responses", "--benchmark=everyday", "--endpoint=kestrel", "--no-pictures", stdout=out)
        run = work_on(Run.objects.get())
    assert "kestrel-vl without pictures" in out.getvalue()
    assert (run.verdicts, run.failures) == (3, 0)
    with pytest.raises(CommandError, match="no_pictures"):
        call_command("collect", "captions", "--benchmark=everyday", "--endpoint=kestrel", "--no-pictures")


def test_options_are_asked_in_every_rotation_and_stored_as_circular_evaluation_names_them(quiz, collect):
    _, calls = collect(lambda call: answer("B"), settings={"circular": True}, model="m")
    assert len(calls) == 3 + 3 + 1
    first = [call.text for call in calls if "table 0" in call.text]
    assert sorted(re.findall(r"A\. (.+)\nB\. (.+)\nC\. (.+)", "\n".join(first))) == [
        ("a bowl", "a cup", "a spoon"),
        ("a cup", "a spoon", "a bowl"),
        ("a spoon", "a bowl", "a cup"),
    ]
    rows = Response.objects.filter(model__name="m", sample__key="0").order_by("variant")
    assert [(one.variant, one.option_order) for one in rows] == [
        ("", ["A", "B", "C"]),
        ("circular-1", ["B", "C", "A"]),
        ("circular-2", ["C", "A", "B"]),
    ]
    plain = Response.objects.get(model__name="m", sample__key="2")
    assert (plain.variant, plain.option_order) == ("", None)


def test_refusals_and_answers_cut_short_are_kept_as_what_they_are_and_failed_calls_are_no_answers(benchmark, collect):
    refusal = completion({"role": "assistant", "content": None, "refusal": "I would rather not."})
    replies = {"0": refusal, "1": answer("It is a bo", finish="length"), "2": error(400)}
    run, _ = collect(lambda call: replies[call.text.strip()[-2]], model="m")
    assert run.state == Run.State.FINISHED
    stored = Response.objects.filter(model__name="m").order_by("sample__position").values_list("text", "status")
    assert list(stored) == [("I would rather not.", "refused"), ("It is a bo", "truncated")]
    assert Counter(run.collected.values_list("status", flat=True)) == {"refused": 1, "truncated": 1, "error": 1}
    assert (run.verdicts, run.failures) == (0, 3)
    assert Attempt.objects.filter(run=run, sample__key="2", outcome="permanent", item=None).count() == 1
    assert actions.retry_failed(run=run) == 1  # an answer is never changed
    assert Response.objects.filter(model__name="m").count() == 2


def test_a_run_goes_on_where_it_stopped_and_what_is_stored_is_not_asked_again(benchmark, judge_at, work_on):
    Response.objects.filter(sample__key="0").first()
    with Server(lambda call: answer("fresh")) as server:
        judge = judge_at(server.url)
        given = {"kind": "responses", "judge": judge, "benchmark": benchmark, "model": "heron-7b"}
        with pytest.raises(BadInput, match="All responses of heron-7b are stored"):
            start_collecting(**given)
        given["model"] = "fresh-1b"
        run = start_collecting(**given, limit=2)
        assert start_collecting(**given, limit=2).pk == run.pk
        work_on(run)
        wider = start_collecting(**given)
        assert (wider.pk != run.pk, wider.planned) == (True, 1)
        work_on(wider)
        Collected.objects.filter(run=run).first().delete()
        actions.pause_run  # noqa: B018
    assert len(server.calls) == 3
    assert Response.objects.filter(model__name="fresh-1b").count() == 3


def test_an_answer_that_somebody_stored_meanwhile_stays_and_the_run_says_so(benchmark, judge_at, work_on):
    def script(call):
        return answer("mine")

    with Server(script) as server:
        run = start_collecting(kind="responses", judge=judge_at(server.url), benchmark=benchmark, model="osprey-13b 2")
        sample = benchmark.samples.get(key="1")
        from bank.models import EvaluatedModel

        model = EvaluatedModel.objects.create(name="osprey-13b 2")
        Response.objects.create(sample=sample, model=model, text="theirs")
        run = work_on(run)
    assert Response.objects.get(sample=sample, model=model).text == "theirs"
    row = run.collected.get(sample=sample)
    assert (row.status, row.text, row.response_id) == ("error", "mine", None)
    assert "stored meanwhile" in row.reason


def test_descriptions_stand_beside_their_pictures_with_who_wrote_them_and_judges_get_them(
    benchmark, collect, judge_at, start, work_on
):
    SampleImage.objects.filter(sample__key="0").update(description="From a file.")
    before = benchmark.samples.get(key="1").edition
    run, calls = collect(lambda call: answer("A bowl of walnut wood."), kind="captions", model="eyes-2b")
    assert (len(calls), run.planned, run.verdicts) == (2, 2, 2)
    assert all(len(call.images) == 1 and "cannot see it" in call.text for call in calls)
    shown = dict(SampleImage.objects.values_list("sample__key", "description"))
    assert shown == {"0": "From a file.", "1": "A bowl of walnut wood.", "2": "A bowl of walnut wood."}
    image = SampleImage.objects.get(sample__key="1")
    assert image.described_by == f"eyes-2b, run {run.pk}"
    sample = benchmark.samples.get(key="1")
    assert sample.edition == before + 1
    assert sample.revisions.first().note == f"Described by eyes-2b, run {run.pk}"
    with Server(lambda call: answer("Answer1")) as server:
        judged = work_on(start(judge_at(server.url, name="words"), settings={"context": "caption"}))
    assert judged.verdicts == 6
    assert not any(call.images for call in server.calls)
    assert sum("A bowl of walnut wood." in call.text for call in server.calls) == 4


def test_descriptions_are_replaced_when_that_is_asked_for(benchmark, collect):
    SampleImage.objects.update(description="Old.")
    with pytest.raises(BadInput, match="All pictures have a description"):
        collect(lambda call: answer("New."), kind="captions")
    run, _ = collect(lambda call: answer("New."), kind="captions", settings={"replace": True})
    assert set(SampleImage.objects.values_list("description", flat=True)) == {"New."}
    assert [row.text for row in run.collected.all()] == ["New."] * 3


def test_a_part_of_a_benchmark_and_the_requests_parameters_are_chosen_and_kept(benchmark, collect):
    wanted = {"items": {"sample": 2, "seed": 7}, "temperature": 0.5, "max_tokens": 300, "seed": 11}
    run, calls = collect(lambda call: answer("x"), settings=wanted, model="m")
    assert len(calls) == 2
    assert run.item_set == {"sample": 2, "seed": 7}
    body = calls[0].body
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 300, 11)
    assert run.settings == {"prompt": "default", "circular": False, "temperature": 0.5, "max_tokens": 300, "seed": 11}
    again, _ = collect(lambda call: answer("x"), settings=wanted, model="other")
    assert set(again.tasks.values_list("sample", flat=True)) == set(run.tasks.values_list("sample", flat=True))


def test_by_command(benchmark, judge_at):
    def command(kind="responses", **options):
        out = StringIO()
        call_command("collect", kind, stdout=out, **{"benchmark": "everyday", "endpoint": "kestrel"} | options)
        return out.getvalue()

    with Server(lambda call: answer("x")) as server:
        judge_at(server.url)
        said = command(wait=True, model="m", chosen='{"items": {"sample": 2}}')
    assert "is finished: 2 responses, 0 without a response" in said
    assert "A worker will take it" in command("captions")
    for options, words in (
        ({"endpoint": "nobody"}, "Unknown endpoint 'nobody'. Known: kestrel"),
        ({"chosen": '{"order": "both"}'}, "order is not a setting"),
        ({"chosen": '{"items": {"level": "x"}}'}, "has no level 'x'"),
        ({"benchmark": "nothing"}, "nothing"),
    ):
        with pytest.raises(CommandError, match=words):
            command(**options)
    assert Run.objects.count() == 2


def test_by_api(client_of, benchmark, judge_at):
    judge_at("http://127.0.0.1:9/v1")
    given = {"kind": "responses", "judge": "kestrel", "benchmark": "everyday", "model": "m"}
    client = client_of("curator")
    made = client.post("/api/v1/runs/", given, content_type="application/json")
    assert made.status_code == 201
    assert (made.json()["kind"], made.json()["model_name"], made.json()["total"]) == ("responses", "m", 3)
    again = client.post("/api/v1/runs/", given, content_type="application/json")
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    refused = client_of("researcher").post("/api/v1/runs/", given, content_type="application/json")
    assert refused.status_code == 403
    wrong = client.post("/api/v1/runs/", given | {"settings": {"circular": 1}}, content_type="application/json")
    assert list(wrong.json()) == ["settings"]


def test_pictures_are_made_smaller_by_the_same_rule_each_time_and_never_larger(collect):
    import base64
    import io

    from PIL import Image

    _, calls = collect(lambda call: answer("x"), settings={"image_size": 64, "detail": "low"}, on=_large())
    image = calls[0].body["messages"][0]["content"][0]["image_url"]
    assert image["detail"] == "low"
    with Image.open(io.BytesIO(base64.b64decode(image["url"].partition(",")[2]))) as sent:
        assert sent.size == (64, 32)


def _large():
    import hashlib
    import io

    from django.conf import settings
    from PIL import Image

    benchmark = make_benchmark(samples=1, slug="large", pictures=False)
    buffer = io.BytesIO()
    Image.new("RGB", (200, 100), (9, 90, 120)).save(buffer, "PNG")
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    image = SampleImage.objects.create(
        sample=benchmark.samples.get(), sha256=sha256, original_sha256=sha256, kind="png", width=200, height=100
    )
    path = settings.MEDIA_ROOT / image.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
    return benchmark


def test_by_page(client_of, quiz, judge_at, work_on):
    client = client_of("curator")
    with Server(lambda call: answer("B") if "table 0" in call.text else error(400)) as server:
        judge = judge_at(server.url)
        assert b"Options in every rotation" in client.get("/judging/collect/new/").content
        given = {"kind": "responses", "endpoint": judge.pk, "benchmark": quiz.pk, "model": "m", "prompt": "default"}
        given |= {"temperature": "-", "circular": "on", "sample": "2", "sample_seed": "3", "max_tokens": "50"}
        made = client.post("/judging/collect/new/", given)
        run = Run.objects.get()
        assert (made.status_code, made["Location"]) == (302, f"/judging/runs/{run.pk}/")
        assert run.item_set == {"sample": 2, "seed": 3}
        assert run.settings == {"prompt": "default", "circular": True, "temperature": None, "max_tokens": 50}
        work_on(run)
    page = flat(client.get(f"/judging/runs/{run.pk}/"))
    assert "2 drawn with seed 3" in page
    assert "answers of a model, m" in page
    assert "the endpoint refused the request" in page.casefold()
    assert "Retry" in page
    wrong = client.post("/judging/collect/new/", given | {"level": "nowhere"})
    assert wrong.status_code == 422
    assert "has no level" in flat(wrong)
    assert client_of("researcher").get(f"/judging/runs/{run.pk}/").status_code == 200


def test_calls_that_would_fail_are_counted_before_the_start(client_of, quiz, judge_at):
    client, judge = client_of("curator"), judge_at("http://127.0.0.1:9")
    given = {"kind": "responses", "endpoint": judge.pk, "benchmark": quiz.pk, "model": "m", "prompt": "default"}
    assert "would fail" not in flat(client.post("/judging/runs/estimate/", given))
    Sample.objects.filter(pk=quiz.samples.first().pk).update(absent_images=[{"name": "a.png"}])
    told = flat(client.post("/judging/runs/estimate/", given))
    number = quiz.samples.count()
    assert f"1 of {number} calls would fail: 1 sample lacks a picture here" in told
    assert not Run.objects.exists()


def test_a_run_of_which_every_call_failed_is_not_shown_as_finished(client_of, quiz, judge_at, work_on):
    with Server(lambda call: error(400)) as server:
        run = start_collecting(kind="responses", judge=judge_at(server.url), benchmark=quiz, model="m", limit=2)
        work_on(run)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    client = client_of("curator")
    for path in ("/judging/", f"/judging/runs/{run.pk}/"):
        assert "All failed" in flat(client.get(path)), path


def keyed(count=4):
    """Questions of four options whose keys, C, everybody may see."""
    benchmark = Benchmark.objects.create(slug="mm", title="MM", visibility="public")
    for n in range(count):
        options = {"A": f"one {n}", "B": "two", "C": "three", "D": "four"}
        sample = Sample.objects.create(
            benchmark=benchmark, key=f"q{n}", instruction=f"Question {n}?", options=options, position=n
        )
        write_criterion(sample=sample, key="answer", kind="answer_key", text="C", shown_to="public")
    return benchmark


def knows_the_even(call):
    """Right about questions 0 and 2; says A, whatever stands there, about 1; says nothing readable about 3."""
    number = int(call.text.split("Question ")[1][0])
    if number == 3:
        return answer("It depends.")
    right = next(line[0] for line in call.text.splitlines() if line.endswith("three"))
    return answer(right if number % 2 == 0 else "A")


def begin(judge, benchmark, **values):
    return start_collecting(kind="responses", judge=judge, benchmark=benchmark, **values)


STOP = {"circular": True, "stop_rotations": True}


def test_the_rotations_of_a_question_stop_after_a_wrong_one_and_the_board_counts_it_as_wrong(
    judge_at, work_on, client_of
):
    benchmark = keyed()
    with Server(knows_the_even) as server:
        run = work_on(begin(judge_at(server.url, concurrency=1), benchmark, settings=STOP))
        asked = Counter(call.text.split("Question ")[1][0] for call in server.calls)
    assert asked == {"0": 4, "1": 1, "2": 4, "3": 4}  # what nobody can read does not stop
    assert (run.state, run.verdicts, run.failures, run.saved) == ("finished", 16, 0, 3)
    skipped = Response.objects.filter(status="skipped")
    assert set(skipped.values_list("sample__key", "variant", "text")) == {
        ("q1", f"circular-{n}", "") for n in (1, 2, 3)
    }
    page = flat(client_of("researcher").get(f"/judging/runs/{run.pk}/"))
    assert "3 of 16 calls saved" in page
    assert client_of("researcher").get(f"/api/v1/runs/{run.pk}/").json()["saved"] == 3
    for failures in ("wrong", "exclude"):
        scope = scope_of(benchmark="mm", kind="choice", failures=failures)
        (row,) = models(scope).as_json()
        of = 4 if failures == "wrong" else 3
        assert (row["vanilla"], row["vanilla_n"]) == (2 / of, of)
        assert (row["circular"], row["circular_n"]) == (2 / of, of)
    assert row["failures"] == 1
    assert row["circular_best"] == 3 / 4


def test_a_rotation_that_was_not_asked_counts_only_while_one_that_was_is_wrong(judge_at, work_on):
    benchmark = keyed()
    with Server(knows_the_even) as server:
        work_on(begin(judge_at(server.url, concurrency=1), benchmark, settings=STOP))
    Criterion.unguarded.filter(sample__key="q1").delete()
    q1 = Sample.objects.get(key="q1")
    write_criterion(sample=q1, key="answer", kind="answer_key", text="A", shown_to="public")
    (row,) = models(scope_of(benchmark="mm", kind="choice")).as_json()
    assert (row["vanilla_n"], row["circular_n"]) == (4, 3)  # nobody knows what q1's rotations would have been


def test_what_would_tell_a_hidden_key_is_refused(judge_at, people, client_of):
    benchmark = keyed()
    judge = judge_at("http://127.0.0.1:9/v1")
    show("staff", Criterion.unguarded.filter(sample__key="q3"))
    with pytest.raises(BadInput, match="would tell the answer keys"):
        begin(judge, benchmark, settings=STOP)
    body = {"kind": "responses", "judge": judge.name, "benchmark": "mm", "settings": STOP}
    assert client_of("curator").post("/api/v1/runs/", body, content_type="application/json").status_code == 400
    show("public")
    with pytest.raises(BadInput, match="batch asks all rotations"):
        begin(judge, benchmark, settings=STOP, batched=True)
    with pytest.raises(BadInput, match="without circular"):
        begin(judge, benchmark, settings={"stop_rotations": True})
    assert not Run.objects.exists()
