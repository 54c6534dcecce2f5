"""Recipes: models asked over real HTTP, in conversations, with examples, by likelihood; and what is refused."""

import math
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Role, User
from bank.criteria import Criterion
from bank.errors import BadInput
from bank.models import Benchmark, Item, Recipe, Response, Sample, SampleImage
from bank.recipes import marked_answers, spec, store
from judging.models import Attempt, Collected, Evaluation, Judge, Run, RunTask
from judging.protocols.prompts.stored import add_template
from judging.recipes import evaluations
from judging.runs.actions import retry_failed, start_collecting
from tests.hidden import show, write_criterion
from tests.judging.server import Server, answer, completion, error
from tests.judging.small import picture
from tests.judging.talker import Talker

pytestmark = pytest.mark.django_db
TEXTS = ("a cat", "a dog", "a fox")
ABSENT = [{"position": 0, "file": "gone.jpg", "url": "", "description": ""}]
COT_THEN_LIKELIHOOD = [{"kind": "cot"}, {"kind": "likelihood"}]


@pytest.fixture
def quiz(db):
    """Six questions of three options with pictures; the key of question n is option n mod 3, and all keys are open."""
    return make_quiz()


def make_quiz(slug="animals", questions=6, **columns):
    benchmark = Benchmark.objects.create(slug=slug, title=slug.title(), **({"visibility": "public"} | columns))
    for number in range(questions):
        sample = Sample.objects.create(
            benchmark=benchmark,
            key=f"q{number}",
            instruction=f"question q{number}: What is this?",
            options=dict(zip("ABC", TEXTS, strict=True)),
            position=number,
            group=f"picture {number // 2}",
            split="dev",
        )
        sha256, width, height = picture(number)
        SampleImage.objects.create(
            sample=sample,
            sha256=sha256,
            original_sha256=sha256,
            kind="png",
            width=width,
            height=height,
            phash=f"{1 << number:016x}",
        )
        write_criterion(sample=sample, key="key", kind="answer_key", text="ABC"[number % 3], shown_to="public")
    return benchmark


def sure(benchmark=None, *, share=0.8):
    """A model that gives the right option of every question this probability."""
    rest = (1 - share) / 2
    return {
        f"q{number}": {text: share if place == number % 3 else rest for place, text in enumerate(TEXTS)}
        for number in range(6)
    }


@pytest.fixture
def recipe(db):
    """Store a recipe about the quiz."""

    def make(**values) -> Recipe:
        value = {"name": "mine", "scenario": [{"benchmark": "animals"}], "metric": "accuracy"} | values
        return store.save(spec.parsed(value))[0]

    return make


@pytest.fixture
def evaluate(judge_at, work_on):
    """Evaluate a model by a recipe to the end; returns the evaluation, its calls and the endpoint."""

    def act(recipe, talker, *, probe=True, name="hawk", **values):
        with Server(talker) as server:
            judge = judge_at(server.url, name=f"{name} {server.port}", model="hawk-vl", concurrency=8)
            if probe:
                judge.abilities = {"logprobs": True, "prompt_logprobs": True}
                judge.save()
            evaluation = evaluations.start_evaluation(recipe=recipe, judge=judge, model=name, **values)
            while run := evaluations.advance(evaluation):
                if run.state not in (Run.State.QUEUED, Run.State.RUNNING):
                    break
                work_on(run)
            evaluation.refresh_from_db()
            return evaluation, server.calls, judge

    return act


def texts(call):
    """Role and text of each message of a call."""
    return [
        (
            message["role"],
            message["content"]
            if isinstance(message["content"], str)
            else "".join(part.get("text", "") for part in message["content"]),
        )
        for message in call.body["messages"]
    ]


def frame_of(recipe, benchmark):
    return marked_answers.as_frame(recipe, store.spec_of(recipe), benchmark)


@pytest.mark.both_databases
def test_reasons_then_likelihoods_are_two_turns_of_one_conversation(quiz, recipe, evaluate):
    mine = recipe(turns=COT_THEN_LIKELIHOOD)
    evaluation, calls, _ = evaluate(mine, Talker(sure()))
    assert evaluation.finished_at
    assert len(calls) == 12
    second = next(call for call in calls if len(call.body["messages"]) == 3 and "q1" in texts(call)[0][1])
    (_, question), (role, said), (_, asked) = texts(second)
    assert question == "question q1: What is this?\nA. a cat\nB. a dog\nC. a fox\nLet's think step by step."
    assert (role, said) == ("assistant", "First I look at question q1, then I think.")
    assert asked == "So which option is right? Answer with its letter."
    assert (second.body["logprobs"], second.body["top_logprobs"]) == (True, 20)
    first, last = Response.all_objects.filter(sample__key="q1").order_by("turn")
    assert (first.text, first.turn, last.text, last.turn, last.recipe) == (said, 0, "B", 1, mine)
    assert dict(last.likelihoods["pool"]) == pytest.approx({"A": math.log(0.1), "B": math.log(0.8), "C": math.log(0.1)})
    assert last.likelihoods["mass"] == pytest.approx(1)
    frame = frame_of(mine, quiz)
    assert (len(frame), frame["right"].mean()) == (6, 1)
    assert frame["confidence"].tolist() == pytest.approx([0.8] * 6)


def test_what_a_recipe_collects_is_on_no_page_or_board_of_ordinary_answers(quiz, recipe, evaluate):
    evaluate(recipe(turns=[{"kind": "likelihood"}]), Talker(sure()))
    assert Response.all_objects.count() == 6
    assert not Response.objects.exists()
    assert not quiz.samples.first().responses.exists()


def test_the_likelihood_of_an_answer_that_is_put_into_its_mouth_is_the_sum_over_its_tokens(quiz, recipe, evaluate):
    mine = recipe(turns=[{"kind": "likelihood", "pool": ["a cat", "a dog", "a fox"], "by": "prompt"}])
    _, calls, _ = evaluate(mine, Talker(sure()))
    assert len(calls) == 18
    assert {texts(call)[-1] for call in calls} == {("assistant", text) for text in TEXTS}
    assert all(call.body["continue_final_message"] and not call.body["add_generation_prompt"] for call in calls)
    row = Response.all_objects.get(sample__key="q2")
    assert row.text == "a fox"
    assert dict(row.likelihoods["pool"]) == pytest.approx(
        {"a cat": math.log(0.1), "a dog": math.log(0.1), "a fox": math.log(0.8)}
    )


def test_per_token_a_longer_answer_is_not_at_a_disadvantage(quiz, recipe, evaluate):
    quick = {key: {"cat": 0.5, "crocodile": 0.4} for key in sure()}
    pool = {"kind": "likelihood", "pool": ["cat", "crocodile"], "by": "prompt"}
    total, per_token = (recipe(name=by, turns=[pool | {"sum": by}]) for by in ("total", "per-token"))
    for each in (total, per_token):
        evaluate(each, Talker(quick))
    said = {
        each.name: set(Response.all_objects.filter(recipe=each).values_list("text", flat=True))
        for each in (total, per_token)
    }
    assert said == {"total": {"cat"}, "per-token": {"crocodile"}}


def test_down_a_tree_each_step_is_a_turn(quiz, recipe, evaluate):
    shares = {key: {"animal": 0.9, "plant": 0.1, "dog": 0.7, "cat": 0.2, "moss": 0.5, "fern": 0.5} for key in sure()}
    for number in range(6):
        Criterion.unguarded.filter(sample__key=f"q{number}").update(kind="answer_key")
    Sample.objects.update(options={})
    for row in Criterion.unguarded.all():
        row.text = "animal/cat" if row.sample.key == "q0" else "animal/dog"
        row.save()
    tree = {"tree": ["animal/cat", "animal/dog", "plant/moss", "plant/fern"]}
    mine = recipe(metric="weighted-accuracy", turns=[{"kind": "likelihood", "pool": tree, "by": "prompt"}])
    _, calls, _ = evaluate(mine, Talker(shares))
    assert len(calls) == 6 * 4  # two steps of two answers
    assert list(Response.all_objects.filter(sample__key="q0").order_by("turn").values_list("text", flat=True)) == [
        "animal",
        "animal/dog",
    ]
    frame = frame_of(mine, quiz).set_index("key")
    assert (frame.loc["q0", "credit"], frame.loc["q1", "credit"]) == (0.5, 1)
    assert (frame.loc["q0", "right"], frame.loc["q1", "right"]) == (0, 1)


def test_counts_are_chosen_among_those_around_the_key(quiz, recipe, evaluate):
    Sample.objects.update(options={})
    for number, row in enumerate(Criterion.unguarded.order_by("sample__position")):
        row.text = str(10 + number)
        row.save()
    shares = {f"q{number}": {str(10 + number): 0.9, str(11 + number): 0.05} for number in range(6)}
    mine = recipe(turns=[{"kind": "likelihood", "pool": {"numbers": 2}, "by": "prompt"}])
    evaluate(mine, Talker(shares))
    row = Response.all_objects.get(sample__key="q3")
    assert sorted(int(answer) for answer, _ in row.likelihoods["pool"]) == [11, 12, 13, 14, 15]
    assert frame_of(mine, quiz)["right"].mean() == 1


def test_captions_are_chosen_among_those_of_the_nearest_other_pictures(quiz, recipe, evaluate):
    Sample.objects.update(options={})
    captions = ["a cat sleeps", "a dog runs", "a cat sits", "the moon", "a cat jumps", "a train"]
    for row, caption in zip(Criterion.unguarded.order_by("sample__position"), captions, strict=True):
        row.text = caption
        row.save()
    shares = {f"q{number}": {captions[number]: 0.9} for number in range(6)}
    mine = recipe(turns=[{"kind": "likelihood", "pool": {"nearest": 2}, "by": "prompt"}])
    evaluate(mine, Talker(shares))
    pool = {answer for answer, _ in Response.all_objects.get(sample__key="q0").likelihoods["pool"]}
    assert pool == {"a cat sleeps", "a cat sits", "a cat jumps"}
    assert frame_of(mine, quiz)["right"].mean() == 1


def test_other_labels_are_asked_for_and_what_is_answered_in_them_is_mapped_back(quiz, recipe, evaluate):
    mine = recipe(metric="mr", turns=[{"kind": "likelihood"}])
    _, calls, _ = evaluate(mine, Talker(sure()))
    assert len(calls) == 6 * 7
    asked = "\n".join(texts(call)[0][1] for call in calls)
    for sentence in ("1 for A, 2 for B, 3 for C", "Smith for A, Johnson for B", "C for A, A for B, B for C"):
        assert f"In your answer write {sentence}" in asked
    shifted = Response.all_objects.get(sample__key="q0", variant="unnatural-1")
    assert shifted.text == "C"  # which stands for A
    frame = frame_of(mine, quiz)
    assert set(frame["condition"]) == {
        "",
        "natural-1",
        "natural-2",
        "natural-3",
        "neutral-1",
        "neutral-2",
        "unnatural-1",
    }
    assert frame["right"].mean() == 1


def test_who_does_not_follow_other_labels_matches_none(quiz, recipe, evaluate):
    mine = recipe(metric="mr", turns=[{"kind": "likelihood"}])
    evaluation, _, _ = evaluate(mine, Talker(sure(), follows=False))
    frame = frame_of(mine, quiz)
    assert evaluation.runs.get().failures == 0
    assert len(frame) == 6 * 7  # what it says instead of 1, Smith and foo is an answer, too
    right = frame.groupby("condition")["right"].mean()
    assert (right[""], right.drop("").max()) == (1, 0)
    assert not frame.loc[frame["condition"] == "natural-1", "read"].any()


def test_examples_stand_before_the_question_and_never_share_its_picture(quiz, recipe, evaluate):
    mine = recipe(
        metric="riam",
        instruction={"examples": {"how": "random", "k": 2}},
        turns=[{"kind": "likelihood"}],
    )
    _, calls, _ = evaluate(mine, Talker(sure()))
    assert len(calls) == 6 * 3
    for call in calls:
        text = texts(call)[0][1]
        keys = [part[:2] for part in text.split("question ")[1:]]
        *shown, own = keys
        assert len(set(keys)) == len(keys)
        assert int(own[1]) // 2 not in {int(key[1]) // 2 for key in shown}
        assert all(f"Answer: {'ABC'[int(key[1]) % 3]}" in text for key in shown)
        assert bool(shown) == ("about other pictures" in text)
    assert sorted(Response.all_objects.filter(sample__key="q0").values_list("variant", flat=True)) == [
        "",
        "shots-1",
        "shots-2",
    ]


def test_examples_with_pictures_are_turns_of_their_own(quiz, recipe, evaluate):
    mine = recipe(
        instruction={"examples": {"how": "fixed", "k": 1, "keys": ["q4", "q0"], "images": True}},
        turns=[{"kind": "direct"}],
    )
    _, calls, _ = evaluate(mine, Talker(sure()))
    call = next(call for call in calls if "q1:" in texts(call)[-1][1])
    assert [role for role, _ in texts(call)] == ["user", "assistant", "user"]
    assert "question q4" in texts(call)[0][1]
    assert texts(call)[1] == ("assistant", "B")
    assert [sum(part["type"] == "image_url" for part in call.body["messages"][at]["content"]) for at in (0, 2)] == [
        1,
        1,
    ]
    of_its_picture = next(call for call in calls if "q5:" in texts(call)[-1][1])
    assert "question q0" in texts(of_its_picture)[0][1]


@pytest.mark.parametrize("how", ["top-text", "top-image"])
def test_the_nearest_examples_are_by_text_or_by_picture(how, quiz, recipe, evaluate):
    near = quiz.samples.get(key="q5")
    if how == "top-text":
        near.instruction = "question q5: a heron on a lake, is it asleep?"
        near.save()
        asked = quiz.samples.get(key="q0")
        asked.instruction = "question q0: is the heron on the lake asleep?"
        asked.save()
    else:
        SampleImage.objects.filter(sample__key="q0").update(phash="ffff0000ffff0000")
        SampleImage.objects.filter(sample__key="q5").update(phash="ffff0000ffff0001")
    mine = recipe(instruction={"examples": {"how": how, "k": 1}}, turns=[{"kind": "likelihood"}])
    _, calls, _ = evaluate(mine, Talker(sure()))
    text = next(texts(call)[0][1] for call in calls if texts(call)[0][1].rfind("question q0") > len("question") + 60)
    assert "question q5" in text


def test_a_query_pool_is_dealt_by_the_seed(quiz, recipe, evaluate):
    queries = [
        f"{n} {{{{ instruction }}}}{{% for label, text in options %}}\n{{{{ label }}}}. {{{{ text }}}}{{% endfor %}}"
        for n in "xyz"
    ]
    mine = recipe(instruction={"queries": queries, "deal": "seeded"}, turns=[{"kind": "likelihood"}])
    _, calls, _ = evaluate(mine, Talker(sure()))
    dealt = {texts(call)[0][1][2:13]: texts(call)[0][1][0] for call in calls}
    assert len(set(dealt.values())) > 1
    again = recipe(name="again", instruction={"queries": queries, "deal": "seeded"}, turns=[{"kind": "likelihood"}])
    _, calls, _ = evaluate(again, Talker(sure()), name="other")
    assert {texts(call)[0][1][2:13]: texts(call)[0][1][0] for call in calls} == dealt


def test_every_rotation_is_asked_and_read_as_what_stood_there(quiz, recipe, evaluate):
    mine = recipe(metric="circular", turns=[{"kind": "direct"}])
    evaluate(mine, Talker(sure()))
    frame = frame_of(mine, quiz)
    assert sorted(frame["rotation"]) == [0] * 6 + [1] * 6 + [2] * 6
    assert frame["right"].mean() == 1


def test_a_chinese_question_is_asked_in_chinese(quiz, recipe, evaluate):
    Sample.objects.update(language="zh")
    _, calls, _ = evaluate(recipe(turns=[{"kind": "direct"}]), Talker(sure()))
    assert all(texts(call)[0][1].endswith("请直接回答选项字母。") for call in calls)


def test_a_label_that_is_not_returned_counts_nothing_and_of_none_at_all_nothing_is_drawn(quiz, recipe, evaluate):
    shares = sure() | {"q0": {"a cat": 1.0, "a dog": 0.0, "a fox": 0.0}}
    mine = recipe(turns=[{"kind": "likelihood"}])
    with_gap = Talker(shares)

    def script(call):
        if "q1" in texts(call)[0][1]:
            well = {"token": "Well", "logprob": -0.1, "top_logprobs": []}
            return completion({"role": "assistant", "content": "Well"}, logprobs_of=[well])
        if "q2" in texts(call)[0][1]:
            return answer("C")
        return with_gap(call)

    evaluation, _, _ = evaluate(mine, script)
    assert dict(Response.all_objects.get(sample__key="q0").likelihoods["pool"]) == {"A": 0.0, "B": None, "C": None}
    other = Response.all_objects.get(sample__key="q1")
    assert (other.text, other.likelihoods["mass"]) == ("Well", 0)
    frame = frame_of(mine, quiz).set_index("key")
    assert (frame.loc["q1", "read"], frame.loc["q1", "right"], frame.loc["q1", "said"]) == (False, 0, "")
    assert "q2" not in frame.index
    failed = Collected.objects.get(run__evaluation=evaluation, sample__key="q2")
    assert (failed.status, failed.reason) == ("error", "the endpoint returned no log-probabilities")


@pytest.mark.both_databases
def test_what_failed_is_asked_again_from_where_it_stood(quiz, recipe, evaluate, work_on):
    mine = recipe(turns=COT_THEN_LIKELIHOOD)
    talker, failing = Talker(sure()), {"q3"}

    def script(call):
        second = len(call.body["messages"]) == 3
        return error(400) if second and any(key in texts(call)[0][1] for key in failing) else talker(call)

    evaluation, _, judge = evaluate(mine, script)
    assert Attempt.objects.filter(sample__key="q3").count() == 1
    run = evaluation.runs.get()
    assert (run.verdicts, run.failures) == (5, 1)
    assert retry_failed(run=run) == 1
    failing.clear()
    with Server(script) as server:
        Judge.objects.filter(pk=judge.pk).update(base_url=server.url)
        run = work_on(Run.objects.get(pk=run.pk))
        assert len(server.calls) == 1  # the reasons were there
    assert (run.state, run.verdicts, run.failures) == ("finished", 6, 0)
    assert len(frame_of(mine, quiz)) == 6


def test_a_reply_that_a_filter_stopped_is_kept_as_the_models_response(quiz, recipe, evaluate):
    mine = recipe(turns=[{"kind": "direct"}])
    talker = Talker(sure())

    def script(call):
        return error(400, kind="content_filter") if "q3" in texts(call)[0][1] else talker(call)

    evaluation, _, _ = evaluate(mine, script)
    run = evaluation.runs.get()
    assert (run.state, run.verdicts, run.failures) == ("finished", 5, 1)
    kept = Response.all_objects.get(sample__key="q3")
    assert (kept.text, kept.status, kept.recipe) == ("", "filtered", mine)
    assert Collected.objects.get(sample__key="q3").response == kept


def test_what_is_answered_is_not_asked_again_and_five_tried_ones_are_part_of_the_whole(quiz, recipe, evaluate):
    mine = recipe(turns=[{"kind": "likelihood"}])
    _, tried, _ = evaluate(mine, Talker(sure()), limit=5)
    _, rest, _ = evaluate(mine, Talker(sure()))
    assert (len(tried), len(rest)) == (5, 1)
    evaluation, again, _ = evaluate(mine, Talker(sure()))
    assert (len(again), bool(evaluation.finished_at)) == (0, True)


@pytest.mark.both_databases
def test_a_command_asks_again_what_failed_and_goes_on_with_new_questions(quiz, recipe, judge_at, capsys):
    recipe(turns=[{"kind": "likelihood"}])
    talker = Talker(sure(), broken={"q3"})
    with Server(talker) as server:
        judge_at(server.url, name="hawk")
        Judge.objects.filter(name="hawk").update(abilities={"logprobs": True})
        call_command("evaluate", recipe="mine", endpoint="hawk", wait=True)
        assert Response.all_objects.count() == 5
        call_command("evaluate", recipe="mine", endpoint="hawk", wait=True)
        assert (Response.all_objects.count(), len(server.calls)) == (5, 6)  # what failed waits for --retry
        talker.broken.clear()
        call_command("evaluate", recipe="mine", endpoint="hawk", wait=True, retry=True)
        assert (Response.all_objects.count(), len(server.calls)) == (6, 7)
        sample = quiz.samples.get(key="q0")
        Sample.objects.filter(pk=sample.pk).update(status="draft")
        Response.all_objects.filter(sample=sample).delete()
        Collected.objects.filter(sample=sample).delete()
        RunTask.objects.filter(sample=sample).delete()
        Sample.objects.filter(pk=sample.pk).update(status="approved")
        call_command("evaluate", recipe="mine", endpoint="hawk", wait=True)
        assert (Response.all_objects.count(), len(server.calls)) == (6, 8)
    assert "Asking 1 failed questions again" in capsys.readouterr().err


def test_reasons_of_right_answers_are_marked_by_the_recipes_judge(quiz, recipe, evaluate, judge_at, work_on):
    with Server(lambda call: answer("Clear and to the point.\nScore: 7")) as marker:
        judge_at(marker.url, name="marker")
        shares = sure() | {"q0": {"a cat": 0.1, "a dog": 0.8, "a fox": 0.1}}
        mine = recipe(metric="language", judge="marker", turns=COT_THEN_LIKELIHOOD)
        evaluation, _, _ = evaluate(mine, Talker(shares))
        assert len(marker.calls) == 5 * 5  # five marks of each reason whose conclusion is right
        assert all("First I look at question" in call.text for call in marker.calls)
    marks = evaluation.runs.get(kind=Run.Kind.MARKS)
    assert set(marks.judgments.values_list("score", flat=True)) == {7.0}
    assert not Item.objects.exists()
    assert evaluation.finished_at
    researcher = User(role=Role.RESEARCHER)
    # That there are marks, and how many, tells which answers are right.
    assert list(Run.objects.visible_to(researcher)) == [evaluation.runs.get(kind=Run.Kind.RECIPE)]


def test_reasons_of_wrong_answers_are_marked_on_request(quiz, recipe, evaluate, judge_at, work_on):
    with Server(lambda call: answer("Score: 7")) as marker:
        judge_at(marker.url, name="marker")
        shares = sure() | {"q0": {"a cat": 0.1, "a dog": 0.8, "a fox": 0.1}}
        mine = recipe(metric="language", judge="marker", turns=COT_THEN_LIKELIHOOD, marked="all")
        evaluation, _, _ = evaluate(mine, Talker(shares))
        assert len(marker.calls) == 6 * 5
    assert evaluation.finished_at
    assert frame_of(mine, quiz)["right"].tolist() == [0, 1, 1, 1, 1, 1]


def test_without_pictures_the_text_alone_is_asked_and_absent_pictures_are_not_missed(quiz, recipe, evaluate):
    quiz.samples.update(absent_images=ABSENT)
    mine = recipe(turns=[{"kind": "direct"}], instruction={"pictures": False})
    evaluation, calls, judge = evaluate(mine, Talker(sure()))
    assert evaluation.finished_at
    assert len(calls) == 6
    assert not any("image_url" in call.text for call in calls)
    assert evaluations.estimate(mine, judge=judge, model="hawk").absent == 0
    assert Response.all_objects.filter(recipe=mine).count() == 6


def test_each_corruption_alone_is_asked_at_each_strength_beside_the_plain_question(quiz, recipe, evaluate):
    mine = recipe(metric="rrm", corruption={"strategy": "each", "text": True}, turns=[{"kind": "direct"}])
    names = [condition.name for condition in store.spec_of(mine).conditions]
    evaluation, calls, _ = evaluate(mine, lambda call: answer("A"))
    assert evaluation.finished_at
    assert len(names) == len(set(names)) == 1 + 2 + 5 + 2 + 4 * 5 + 2
    assert sorted(Response.all_objects.filter(sample__key="q0").values_list("variant", flat=True)) == sorted(names)
    lower = "question q0: what is this?"
    assert sum(lower in texts(call)[-1][1] for call in calls) >= 1
    reversed_options = Response.all_objects.get(sample__key="q0", variant="corrupted-reverse-options-1")
    assert reversed_options.option_order == ["C", "B", "A"]
    answers = frame_of(mine, quiz)
    assert len(answers) == 6 * len(names)
    turned = answers[answers["condition"] == "corrupted-reverse-options-1"].iloc[0]
    assert (turned["letter"], turned["said"], turned["key_letter"]) == ("A", "C", "C")


@pytest.mark.parametrize(
    ("values", "abilities", "words"),
    [
        ({"turns": [{"kind": "likelihood"}]}, {}, "test it first"),
        ({"turns": [{"kind": "likelihood"}]}, {"logprobs": False}, "Use a recipe whose last turn is direct"),
        (
            {"turns": [{"kind": "likelihood", "by": "prompt"}]},
            {"logprobs": True, "prompt_logprobs": False},
            "first-token",
        ),
        (
            {"scenario": [{"benchmark": "plants"}], "turns": [{"kind": "direct"}]},
            {},
            "no benchmark here is called that",
        ),
        ({"scenario": [{"benchmark": "animals", "split": "test"}], "turns": [{"kind": "direct"}]}, {}, "no questions"),
        (
            {"instruction": {"examples": {"how": "fixed", "k": 1, "keys": ["q9"]}}, "turns": [{"kind": "direct"}]},
            {},
            "q9 cannot be an example",
        ),
        (
            {"instruction": {"examples": {"how": "random", "k": 5}}, "turns": [{"kind": "direct"}]},
            {},
            "has 4 questions that can be examples for q0",
        ),
        (
            {"turns": [{"kind": "likelihood", "pool": {"numbers": 2}}]},
            {"logprobs": True},
            "the key of q0 is not a whole number",
        ),
        ({"instruction": {"queries": ["nowhere"]}, "turns": [{"kind": "direct"}]}, {}, "Unknown prompt 'nowhere'"),
        (
            {
                "scenario": [{"benchmark": "bare"}],
                "metric": "rrm",
                "corruption": {"strategy": "each", "image": True},
                "turns": [{"kind": "direct"}],
            },
            {},
            "6 questions have no picture to corrupt, such as q0",
        ),
        (
            {"metric": "language", "judge": "nobody", "turns": COT_THEN_LIKELIHOOD},
            {"logprobs": True},
            "no judge here is called that",
        ),
        (
            {
                "instruction": {"examples": {"how": "top-text", "k": 1, "embeddings": "none.parquet"}},
                "turns": [{"kind": "direct"}],
            },
            {},
            "no file none.parquet",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words_before_any_call(values, abilities, words, quiz, recipe, judge_at):
    judge = judge_at("http://127.0.0.1:9/v1", name="hawk")
    judge.abilities = abilities
    judge.save()
    bare = make_quiz("bare")
    SampleImage.objects.filter(sample__benchmark=bare).delete()
    with pytest.raises(BadInput, match=words):
        evaluations.start_evaluation(recipe=recipe(**values), judge=judge)
    assert not Run.objects.exists()
    assert not Evaluation.objects.exists()


def test_examples_never_come_from_a_hidden_split_or_with_a_key_that_is_not_open(quiz, recipe, judge_at):
    judge = judge_at("http://127.0.0.1:9/v1", name="hawk")
    mine = recipe(instruction={"examples": {"how": "random", "k": 1}}, turns=[{"kind": "direct"}])
    Benchmark.objects.update(hidden_splits=["dev"])
    with pytest.raises(BadInput, match="no questions with a key that everybody may see"):
        evaluations.start_evaluation(recipe=mine, judge=judge)
    Benchmark.objects.update(hidden_splits=[])
    show("staff")
    with pytest.raises(BadInput, match="no questions with a key that everybody may see"):
        evaluations.start_evaluation(recipe=mine, judge=judge)


def test_an_estimate_counts_what_is_left(quiz, recipe, evaluate):
    mine = recipe(turns=COT_THEN_LIKELIHOOD)
    _, _, judge = evaluate(mine, Talker(sure()), limit=2)
    estimate = evaluations.estimate(mine, judge=judge, model="hawk")
    assert (estimate.questions, estimate.answers, estimate.stored, estimate.calls) == (6, 6, 2, 8)


def test_questions_without_their_picture_are_counted_and_where_all_lack_it_nothing_starts(quiz, recipe, judge_at):
    mine, judge = recipe(turns=[{"kind": "direct"}]), judge_at("http://127.0.0.1:9/v1")
    quiz.samples.filter(key__in=["q0", "q1"]).update(absent_images=ABSENT)
    estimate = evaluations.estimate(mine, judge=judge)
    assert (estimate.questions, estimate.absent, estimate.calls) == (6, 2, 4)
    said = StringIO()
    call_command("evaluate", recipe=str(mine), endpoint=judge.name, estimate=True, stdout=said)
    assert "6 questions (2 without their picture: not asked)" in said.getvalue()
    quiz.samples.update(absent_images=ABSENT)
    assert evaluations.estimate(mine, judge=judge).calls == 0
    with pytest.raises(BadInput, match="a picture of each of the 6 questions is not stored here"):
        evaluations.start_evaluation(recipe=mine, judge=judge)
    assert not Run.objects.exists()


def test_a_version_that_was_used_stays_and_a_change_makes_the_next_one(quiz, recipe, evaluate):
    first = recipe(turns=[{"kind": "direct"}])
    changed = recipe(turns=[{"kind": "direct"}], seed=3)
    assert (changed.pk, changed.version) == (first.pk, 1)  # nobody had used it
    evaluate(changed, Talker(sure()))
    second = recipe(turns=[{"kind": "direct"}], seed=4)
    assert (second.version, Recipe.objects.get(pk=changed.pk).spec["seed"]) == (2, 3)
    assert recipe(turns=[{"kind": "direct"}], seed=3) == changed
    with pytest.raises(BadInput, match="kept as a record"):
        store.remove(changed)


def test_a_recipe_goes_out_as_yaml_and_comes_back_the_same(recipe, tmp_path, capsys):
    for built_in in Recipe.objects.filter(built_in=True):
        says = store.spec_of(built_in)
        assert spec.from_yaml(spec.to_yaml(says)) == says
    mine = recipe(turns=COT_THEN_LIKELIHOOD)
    call_command("recipe", "export", "mine", output=str(tmp_path / "mine.yaml"))
    call_command("recipe", "import", str(tmp_path / "mine.yaml"))
    assert Recipe.objects.filter(name="mine").get() == mine
    assert "says the same already" in capsys.readouterr().out


def test_those_that_came_with_the_installation_stay_as_they_are(db):
    assert Recipe.objects.filter(built_in=True).count() == 15
    mmbench = store.spec_of(store.get("mmbench"))
    with pytest.raises(BadInput, match="came with the installation"):
        store.save(mmbench.model_copy(update={"seed": 9}))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"metric": "ece", "turns": [{"kind": "direct"}]}, "ece needs likelihoods"),
        ({"turns": [{"kind": "cot"}]}, "let a direct or likelihood turn follow"),
        ({"turns": [{"kind": "likelihood", "pool": ["one"]}]}, "a pool of one answer has nothing to choose from"),
        ({"turns": [{"kind": "direct", "pool": "options"}]}, "a direct turn has no pool"),
        ({"metric": "rrm", "turns": [{"kind": "direct"}]}, "rrm needs a corruption"),
        ({"metric": "riam", "turns": [{"kind": "direct"}]}, "riam needs in-context examples"),
        ({"metric": "mr", "turns": [{"kind": "likelihood", "pool": "yes-no"}]}, "the last pool must be options"),
        ({"colour": "red", "turns": [{"kind": "direct"}]}, "colour: is not a key of recipes"),
        ({"turns": []}, "turns"),
        ({"name": "Not A Name", "turns": [{"kind": "direct"}]}, "name"),
        ({"corruption": {"strategy": "single"}, "turns": [{"kind": "direct"}]}, "names one method"),
        ({"turns": [{"kind": "likelihood", "pool": "letters"}]}, "turns.0.pool: options, yes-no, a list of answers"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused_in_words(value, words, recipe):
    with pytest.raises(BadInput, match=words):
        recipe(**value)


def test_a_command_evaluates_tests_the_endpoint_first_and_says_what_it_cannot_do(quiz, recipe, judge_at, capsys):
    recipe(turns=[{"kind": "likelihood", "by": "prompt"}])
    with Server(Talker(sure(), prompt=False)) as server:
        judge_at(server.url, name="hawk")
        with pytest.raises(CommandError, match="hawk does not return the likelihood of an answer it is given"):
            call_command("evaluate", recipe="mine", endpoint="hawk", wait=True)
    with pytest.raises(CommandError, match="There is no recipe 'theirs'"):
        call_command("evaluate", recipe="theirs", endpoint="hawk")
    with pytest.raises(CommandError, match="Unknown endpoint 'owl'"):
        call_command("evaluate", recipe="mine", endpoint="owl")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("{{ instruction }", "Line 1"),
        ("{{ question }}", "Unknown variable: question"),
        ("{{ instruction }}", "Option A is not shown in full"),
        ("{% include 'x' %}{{ instruction }}", "not allowed"),
        ("{{ instruction * 99999999 }}", "not allowed|cannot be rendered"),
    ],
)
def test_a_query_that_shows_not_all_or_does_what_none_may_is_refused(query, words, quiz, recipe, judge_at):
    judge = judge_at("http://127.0.0.1:9/v1", name="hawk")
    mine = recipe(instruction={"queries": [query]}, turns=[{"kind": "direct"}])
    with pytest.raises(BadInput, match=words):
        evaluations.start_evaluation(recipe=mine, judge=judge)


def test_prompts_that_staff_wrote_for_models_are_asked_by_recipes_and_by_collecting_runs(
    quiz, recipe, evaluate, judge_at, work_on
):
    text = "Please explain.\n{{ instruction }}\n{% for label, text in options %}\n{{ label }}. {{ text }}\n{% endfor %}"
    add_template(protocol="responses", name="explain", text=text)
    with pytest.raises(BadInput, match="Option A is not shown"):
        add_template(protocol="responses", name="short", text="{{ instruction }}")
    mine = recipe(instruction={"queries": ["explain"]}, turns=[{"kind": "direct"}])
    _, calls, judge = evaluate(mine, Talker(sure()))
    assert all(texts(call)[0][1].startswith("Please explain.\nquestion q") for call in calls)
    with Server(Talker(sure())) as server:
        Judge.objects.filter(pk=judge.pk).update(base_url=server.url)
        run = start_collecting(
            kind="responses", judge=Judge.objects.get(pk=judge.pk), benchmark=quiz, settings={"prompt": "explain"}
        )
        assert run.settings["prompt"] == "explain@1"
        work_on(run)
        assert all(call.text.startswith("Please explain.") for call in server.calls)
    assert Response.objects.count() == 6


def test_collected_answers_to_chinese_questions_are_asked_for_in_chinese(quiz, judge_at, work_on):
    Sample.objects.filter(key="q0").update(language="zh")
    with Server(Talker(sure())) as server:
        judge = judge_at(server.url, name="hawk")
        work_on(start_collecting(kind="responses", judge=judge, benchmark=quiz))
        endings = {call.text.split("question ")[1][:2]: call.text.splitlines()[-1] for call in server.calls}
    assert (endings["q0"], endings["q1"]) == ("请直接回答选项字母。", "Answer with the letter of the option.")
