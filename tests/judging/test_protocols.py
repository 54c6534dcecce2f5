"""Every protocol from its items to stored verdicts, against a server that answers as judges do."""

from io import StringIO

import pytest
from django.core.management import call_command

from bank.criteria import Criterion
from bank.errors import BadInput
from bank.models import Item, ItemResponse, Response, Sample, SampleImage
from bank.models.items import content_hash
from judging.models import Judge, Run
from judging.runs import actions
from judging.runs.plan import planned_judgments
from tests.hidden import write_criterion
from tests.judging.server import Server, answer, error

pytestmark = pytest.mark.django_db
KINDS = {"score": "score", "components": "score", "batch": "batch"}


def item_of(sample: Sample, *texts: str, kind: str = "score", variant: str = "") -> Item:
    """An item of the sample with answers that say this, by models of their own."""
    from bank.models import EvaluatedModel

    models = [EvaluatedModel.objects.get_or_create(name=f"model {n}")[0] for n in range(len(texts))]
    made = [
        Response.objects.create(sample=sample, model=model, text=text, variant=variant)
        for model, text in zip(models, texts, strict=True)
    ]
    hashed = content_hash(kind=kind, sample_id=sample.pk, response_ids=[one.pk for one in made])
    item = Item.objects.create(kind=kind, sample=sample, content_hash=hashed)
    for position, one in enumerate(made):
        ItemResponse.objects.create(item=item, position=position, response=one)
    return item


@pytest.fixture
def sample(benchmark):
    return benchmark.samples.get(key="0")


@pytest.fixture
def judged(benchmark, judge_at, work_on):
    """Work a run of this protocol with a server that answers so; returns the run and the calls."""

    def act(protocol: str, script, **values) -> tuple[Run, list]:
        with Server(script) as server:
            run = actions.start_run(
                judge=judge_at(server.url, name=f"judge at {server.port}"),
                benchmark=benchmark,
                protocol=protocol,
                **values,
            )
            done = work_on(run)
        assert done.state == Run.State.FINISHED, done.state_reason
        assert done.judgments.count() == planned_judgments(done)
        return done, server.calls

    return act


def test_a_score_is_one_of_the_benchmarks_own_scale(benchmark, sample, judged):
    benchmark.score_scale = [{"value": step, "label": ""} for step in range(7)]
    benchmark.save()
    item_of(sample, "A walnut bowl.")
    run, made = judged("score", lambda call: answer("It is good.\nJudgement: [[6]]"))
    assert [(one.score, one.analysis) for one in run.judgments.all()] == [(6.0, "It is good.")]
    assert "\n6\n" in made[0].text
    benchmark.score_scale = []
    benchmark.save()
    run, made = judged("score", lambda call: answer("Judgement: [[6]]"), new=True)
    assert [(one.score, one.status) for one in run.judgments.all()] == [(None, "parse_failed")]
    assert "1: Poor" in made[0].text


def test_a_pair_without_criteria_is_judged_in_both_orders(judged):
    run, made = judged("pair", lambda call: answer("Judgement: [[A]]"))
    assert set(run.judgments.values_list("order", "choice")) == {("01", "first"), ("10", "second")}
    assert not any("Names the walnut" in call.text for call in made)


def test_a_ranking_stands_in_canonical_order_whatever_order_was_shown(sample, judged):
    item_of(sample, "third of all", "best of all", "second of all", "worst of all", kind="batch")
    wanted = ["best", "second", "third", "worst"]

    def by_quality(call):
        places = sorted(range(4), key=lambda n: call.text.index(f"{wanted[n]} of all"))
        return answer("Judgement: " + ", ".join(f"[[{'ABCD'[places.index(n)]}]]" for n in range(4)))

    for order, count in (("shuffled", 1), ("both", 2), ("fixed", 1)):
        run, made = judged("batch", by_quality, settings={"order": order})
        assert [one.ranking for one in run.judgments.all()] == [[[1], [2], [0], [3]]] * count
        assert len(made) == count


def test_components_get_points_and_a_wrong_total_is_told(sample, judged):
    Criterion.unguarded.filter(sample=sample).delete()
    for key, weight in (("1", 4.0), ("2", 6.0)):
        write_criterion(sample=sample, key=key, kind="component", text=f"Part {key}", weight=weight)
    item_of(sample, "A bowl.")
    reply = "Score of component 1: 3/4, score of component 2: 6/6, total score: 10/10.\nPart 1 is short."
    run, _ = judged("components", lambda call: answer(reply))
    (one,) = run.judgments.all()
    assert (one.parts, one.score, one.analysis) == ({"1": 3.0, "2": 6.0}, 9.0, "Part 1 is short.")
    assert "the sum of its points, 9, counts" in one.reason


@pytest.mark.parametrize(
    ("protocol", "replies"),
    [
        ("score", [f"Judgement: [[{said}]]" for said in ("-1", "11", "NaN", "7.5", "４", "true", "", "1e1")]),
        (
            "components",
            [
                f"Score of component 1: {first}/4{second}, total score: {total}/10."
                for first, second, total in (
                    ("-1", ", score of component 2: 6/6", 5),
                    ("5", ", score of component 2: 6/6", 11),
                    ("NaN", ", score of component 2: 6/6", 10),
                    ("４", ", score of component 2: 6/6", 10),
                    ("true", ", score of component 2: 6/6", 10),
                    ("4", "", 4),
                    ("4", ", score of component 2: 6/6, score of component 3: 1/1", 10),
                )
            ],
        ),
        (
            "batch",
            [
                f"Judgement: {', '.join(f'[[{letter}]]' for letter in said)}"
                for said in ("BA", "BAA", "BAD", "bac", "ВАС", "")
            ],
        ),
    ],
)
@pytest.mark.check("F4", "F5")
def test_what_is_no_verdict_of_the_protocol_is_stored_as_none_and_never_clamped(sample, judged, protocol, replies):
    """Checks F4 and F5, from the reply of an endpoint to the row."""
    Criterion.unguarded.filter(sample=sample).delete()
    for key, weight in (("1", 4.0), ("2", 6.0)):
        write_criterion(sample=sample, key=key, kind="component", text=f"Part {key}", weight=weight)
    item_of(sample, *["A bowl.", "A cup.", "A jug."][: 3 if protocol == "batch" else 1], kind=KINDS[protocol])
    settings = {"repeats": len(replies), **({"order": "fixed"} if protocol == "batch" else {})}
    run, _ = judged(protocol, lambda call: answer(replies[call.number]), settings=settings)
    rows = run.judgments.values_list("status", "score", "parts", "ranking")
    assert set(rows) == {("parse_failed", None, None, None)}
    assert (run.verdicts, run.failures) == (0, len(replies))


def test_a_label_in_the_text_needs_no_call_a_judge_reads_the_rest_and_nonsense_is_a_draw_that_says_so(sample, judged):
    sample.options = {"A": "a bowl", "B": "a cup", "C": "a spoon"}
    sample.save()
    items = [
        item_of(sample, text, variant=variant)
        for variant, text in (
            ("", "The answer is (B)."),
            ("circular-1", "B"),  # behind B stood the option C
            ("circular-2", "the thing one drinks from"),  # C, A, B were shown
            ("free", "I do not know"),
            ("lost", "hm"),
        )
    ]

    def reads(call):
        if "drinks" in call.text:
            assert call.text.index("a spoon") < call.text.index("a bowl") < call.text.index("a cup")
            return answer("Choice: C")
        return answer("Choice: X" if "do not know" in call.text else "No idea, sorry?")

    run, made = judged("choice-extraction", reads)
    found = [(one.option, one.extraction) for one in run.judgments.order_by("item_id")]
    assert found[:4] == [("B", "label"), ("C", "label"), ("B", "judge"), ("X", "judge")]
    assert found[4][1] == "random"
    assert found[4][0] in ("A", "B", "C", "X")
    assert run.judgments.get(item=items[4]).reason.startswith("drawn: ")
    assert len(made) == run.calls == 3
    assert not any(call.images for call in made)


def test_an_answer_that_denies_an_option_is_asked_about_and_never_read_as_it(sample, judged):
    sample.options = {"A": "None", "B": "nan", "C": "a cup"}
    sample.save()
    for variant, text in (("", "The answer is not A."), ("b", "B is wrong."), ("c", "It has vitamin C.")):
        item_of(sample, text, variant=variant)
    run, made = judged("choice-extraction", lambda call: answer("Choice: X"))
    assert list(run.judgments.values_list("option", "extraction").distinct()) == [("X", "judge")]
    assert len(made) == 3


def unanswered(sample: Sample, **why: str) -> None:
    """Make the answers of models to a sample none, by status."""
    for place, status in why.items():
        text = "" if status == "empty" else "I cannot help with that."
        model = f"model {place.removeprefix('of_')}"
        Response.all_objects.filter(sample=sample, model__name=model).update(status=status, text=text)


def test_an_answer_that_is_empty_refused_or_an_error_costs_no_call_and_has_no_verdict(benchmark, sample, judged):
    first = benchmark.samples.get(key="1")
    for one in (sample, first):
        item_of(one, "A bowl.")
    unanswered(sample, of_0="empty")
    run, made = judged("score", lambda call: answer("Judgement: [[4]]"))
    found = run.judgments.order_by("item__sample__position").values_list("status", "score")
    assert [*found] == [("empty", None), ("ok", 4.0)]
    assert len(made) == run.calls == 1
    assert run.judgments.get(status="empty").reason == "not asked: the answer is empty"
    assert actions.retry_failed(run=run) == 0
    said = StringIO()
    call_command("leaderboard", "models", benchmark=benchmark.slug, kind="score", source=run.judge.name, stdout=said)
    told = "Not asked about: one item, where an answer is empty, refused or an error; there is no verdict."
    assert told in said.getvalue()


@pytest.mark.parametrize(
    ("protocol", "why", "verdict"),
    [
        ("pair", {"of_0": "empty"}, {"choice": "second"}),
        ("pair", {"of_1": "refused"}, {"choice": "first"}),
        ("pair", {"of_0": "error", "of_1": "empty"}, {"choice": "tie"}),
        ("pair-graded", {"of_0": "filtered"}, {"choice": "second", "preference": 0.0}),
        ("pairwise-criteria", {"of_1": "empty"}, {"choice": "first"}),
        ("score", {"of_0": "empty"}, {"score": 1.0}),
        ("batch", {"of_0": "empty", "of_2": "error"}, {"ranking": [[1], [0, 2]]}),
        ("components", {"of_0": "empty"}, {"score": 0.0, "parts": {"part": 0.0}}),
        ("reference-score", {"of_0": "refused"}, {"score": 1.0}),
        ("reasoning-quality", {"of_0": "refused"}, {"score": 0.0}),
    ],
)
def test_a_run_may_count_such_an_answer_as_lost_in_every_order_and_repeat(
    benchmark, sample, judged, protocol, why, verdict
):
    benchmark.samples.exclude(pk=sample.pk).delete()
    sample.items.all().delete()
    write_criterion(sample=sample, key="part", kind="component", text="It is named.", weight=4)
    write_criterion(sample=sample, key="right", kind="soft_reference", text="A bowl.")
    texts = {"batch": ["A bowl.", "A cup.", "A plate."]}.get(protocol, ["A bowl.", "A cup."])
    kind = KINDS.get(protocol, "pair" if protocol.startswith("pair") else "score")
    item_of(sample, *texts[: 1 if kind == "score" else None], kind=kind)
    unanswered(sample, **why)
    run, made = judged(protocol, lambda call: error(500), settings={"unanswered": "loses"})
    assert made == []
    rows = list(run.judgments.all())
    assert len(rows) == planned_judgments(run)
    for name, value in verdict.items():
        got = [getattr(row, name) for row in rows]
        assert (
            all(sorted(map(sorted, one)) == sorted(map(sorted, value)) for one in got)
            if name == "ranking"
            else (got == [value] * len(rows))
        )


def test_a_run_may_ask_about_such_answers_and_a_ranking_of_two_others_is_asked(sample, judged):
    sample.items.all().delete()
    item_of(sample, "A bowl.", "A cup.", "A plate.", kind="batch")
    unanswered(sample, of_1="empty")
    _, made = judged("batch", lambda call: answer("Judgement: [[A]], [[B]], [[C]]"))
    assert len(made) == 1
    item_of(sample, "A jug.", variant="asked")
    unanswered(sample, of_0="refused")
    _, made = judged("score", lambda call: answer("Judgement: [[4]]"), settings={"unanswered": "asked"})
    assert len(made) == 1
    for protocol in ("choice-extraction", "yes-no", "label"):
        categories = {"categories": ["a", "b"]} if protocol == "label" else {}
        with pytest.raises(BadInput, match="has no lowest verdict"):
            judged(protocol, lambda call: answer("x"), settings={"unanswered": "loses"} | categories)


def test_yes_and_no_are_read_off_plain_answers_and_asked_of_the_rest(sample, judged):
    for variant, text in (("", "Yes, there is."), ("b", "I cannot see one anywhere"), ("c", "Who knows")):
        item_of(sample, text, variant=variant)
    run, made = judged("yes-no", lambda call: answer("Answer: No" if "anywhere" in call.text else "Answer: X"))
    found = list(run.judgments.order_by("item_id").values_list("answer", "option", "extraction"))
    assert found == [(True, None, "label"), (False, None, "judge"), (None, "X", "judge")]
    assert len(made) == 2


def test_samples_and_answers_get_a_category_from_judges_and_from_the_random_one(benchmark, sample, judged, work_on):
    item_of(sample, "A bowl.")
    item_of(sample)
    settings = {"categories": [{"value": "wood", "about": "or cork"}, "clay"], "question": "What is it made of?"}
    run, made = judged(
        "label", lambda call: answer("Label: Wood" if "A bowl." in call.text else "hm"), settings=settings
    )
    rows = run.judgments.order_by("item_id").values_list("option", "extraction", "status")
    assert list(rows) == [("wood", None, "ok"), (None, None, "parse_failed")]
    assert all("- wood: or cork\n- clay\n" in call.text for call in made)
    drawn = work_on(
        actions.start_run(
            judge=Judge.objects.get(baseline="random"),
            benchmark=benchmark,
            protocol="label",
            settings=settings | {"repeats": 20},
        )
    )
    assert set(drawn.judgments.values_list("option", flat=True)) == {"wood", "clay"}


def test_what_needs_an_answer_leaves_samples_by_themselves_out(sample, judged):
    item_of(sample, "A bowl.")
    item_of(sample)
    run, _ = judged("score", lambda call: answer("Judgement: [[4]]"))
    assert list(run.judgments.values_list("score", flat=True)) == [4.0]


def test_marks_and_reasoning_are_judged_against_the_reference(sample, judged):
    write_criterion(sample=sample, key="k", kind="exact_reference", text="A bowl of walnut wood")
    item_of(sample, "A bowl, since it is round.")
    run, made = judged("reference-score", lambda call: answer("Mark: 4"), settings={"reasoning": "none"})
    assert [one.score for one in run.judgments.all()] == [4.0]
    assert "A bowl of walnut wood" in made[0].text
    assert not made[0].images
    marks = iter(("Score: 7", "Score: 8", "Score: 6"))
    run, made = judged("reasoning-quality", lambda call: answer(f"It follows.\n{next(marks)}"))
    assert sorted(run.judgments.values_list("score", flat=True)) == [6.0, 7.0, 8.0]
    assert {call.body["temperature"] for call in made} == {1.0}


def test_an_item_that_lacks_what_is_asked_about_ends_as_an_error_in_words_and_costs_no_call(sample, judged):
    item_of(sample, "A bowl.")
    run, made = judged("components", lambda call: answer("?"))
    assert [(one.status, one.reason) for one in run.judgments.all()] == [("error", "the sample has no components")]
    assert made == []


def test_a_description_or_objects_go_in_place_of_the_picture(benchmark, sample, judged):
    SampleImage.objects.filter(sample=sample).update(
        description="A table in the sun.", objects_found=["bowl", {"name": "cup", "box": [1, 2, 3, 4]}]
    )
    run, made = judged("pair", lambda call: answer("[[A]]"), settings={"context": "caption+objects"})
    assert run.judgments.filter(status="ok").count() == 2
    missing = set(run.judgments.filter(status="error").values_list("reason", flat=True))
    assert missing == {"a picture of the sample has no description"}
    assert len(made) == 2
    for call in made:
        assert not call.images
        assert "A table in the sun." in call.text
        assert '"name": "cup"' in call.text


@pytest.mark.parametrize("protocol", ["score", "pair", "batch", "components"])
def test_baselines_give_every_kind_of_table_its_floor(protocol, benchmark, sample, work_on):
    write_criterion(sample=sample, key="p", kind="component", text="Name the bowl", weight=10.0)
    item_of(sample, "A walnut bowl.")
    item_of(sample, "bowl", "a bowl of walnut", "no", kind="batch", variant="b")
    settings = {} if protocol == "components" else {"criteria": True}
    for judge in Judge.objects.exclude(baseline=""):
        asked = {"judge": judge, "benchmark": benchmark, "protocol": protocol, "settings": settings}
        if judge.baseline in ("first", "longest") and protocol in ("score", "components"):
            with pytest.raises(BadInput, match="cannot judge"):
                actions.start_run(**asked)
            continue
        run = work_on(actions.start_run(**asked))
        assert run.state == Run.State.FINISHED
        assert run.judgments.count() == run.judgments.filter(status="ok").count() == planned_judgments(run)
        if (judge.baseline, protocol) == ("longest", "batch"):
            assert run.judgments.get().ranking == [[1], [0, 2]]


def test_no_baseline_reads_options(benchmark, baseline):
    with pytest.raises(BadInput, match="cannot judge with the protocol choice-extraction"):
        actions.start_run(judge=baseline("random"), benchmark=benchmark, protocol="choice-extraction")


def test_a_call_that_fails_is_no_draw(sample, judged):
    sample.options = {"A": "a bowl", "B": "a cup"}
    sample.save()
    item_of(sample, "hm")
    run, _ = judged("choice-extraction", lambda call: error(400, message="no"))
    assert [(one.status, one.option) for one in run.judgments.all()] == [("error", None)]


def test_without_its_picture_an_item_is_not_judged_as_if_there_were_none(benchmark, sample, judged):
    SampleImage.objects.filter(sample=sample).delete()
    sample.absent_images = [{"file": "", "url": "https://pictures.example.org/1.jpg"}]
    sample.save()
    run, made = judged("pair", lambda call: answer("[[A]]"))
    ends = set(run.judgments.filter(item__sample=sample).values_list("status", "reason"))
    assert ends == {("error", "a picture of the sample is not stored here")}
    assert len(made) == 4
    run, made = judged("pair", lambda call: answer("[[A]]"), settings={"context": "none"})
    assert run.judgments.filter(item__sample=sample, status="ok").count() == 2
    assert all("a picture that you do not see" in call.text for call in made)
