"""Attacks on editions: what somebody who knows every answer works out about the keys from all that is published."""

import random
from itertools import combinations

import pytest

from bank.criteria import Criterion, note_closed
from bank.models import Benchmark, Capability, EvaluatedModel, Item, ItemResponse, Response, Sample
from bank.models.items import content_hash
from judging.models import Judge, Judgment, Run
from leaderboard import editions
from leaderboard.models import Edition

pytestmark = [pytest.mark.django_db, pytest.mark.check("M4")]
LETTERS = "ABCD"
API = "/api/v1/leaderboards/models/"


def asked(slug, keys, *, options=LETTERS, level=lambda n: ""):
    """A public benchmark of multiple choice (without ``options``: of yes or no) whose keys are closed."""
    benchmark = Benchmark.objects.create(slug=slug, title=slug, visibility="public")
    levels = {
        name: Capability.objects.create(benchmark=benchmark, name=name, path=name, position=at)
        for at, name in enumerate(dict.fromkeys(filter(None, map(level, range(len(keys))))))
    }
    samples = Sample.objects.bulk_create(
        Sample(
            benchmark=benchmark,
            key=f"q{n:03}",
            instruction="Which?",
            options={label: f"thing {label}" for label in options},
            position=n,
            capability=levels.get(level(n)),
        )
        for n in range(len(keys))
    )
    Criterion.unguarded.bulk_create(
        Criterion(sample=sample, key="key", kind="answer_key", text=key, shown_to="staff")
        for sample, key in zip(samples, keys, strict=True)
    )
    note_closed(benchmark.samples.all())
    return benchmark


def answered(benchmark, said):
    """Store answers: ``said`` by model, one a sample, None where there is none."""
    samples = list(benchmark.samples.order_by("position"))
    for name, texts in said.items():
        model, _ = EvaluatedModel.objects.get_or_create(name=name)
        Response.objects.bulk_create(
            Response(sample=sample, model=model, text=text)
            for sample, text in zip(samples, texts, strict=True)
            if text is not None
        )


def marked(benchmark, keys, *, without):
    """A finished run of marks, 5 where an answer is the key; ``without`` gives by model a sample that it lacks."""
    judge = Judge.objects.create(name=f"marker of {benchmark.slug}", base_url="http://localhost/v1", model="m")
    run = Run.objects.create(
        benchmark=benchmark, judge=judge, protocol="reference-score", state=Run.State.FINISHED, settings={}
    )
    key_of = {f"q{n:03}": key for n, key in enumerate(keys)}
    responses = Response.objects.filter(sample__benchmark=benchmark).select_related("sample", "model").order_by("pk")
    kept = [one for one in responses if without.get(one.model.name) != one.sample.key]
    items = Item.objects.bulk_create(
        Item(
            kind="score",
            sample=one.sample,
            content_hash=content_hash(kind="score", sample_id=one.sample_id, response_ids=[one.pk]),
        )
        for one in kept
    )
    ItemResponse.objects.bulk_create(
        ItemResponse(item=item, position=0, response=one) for item, one in zip(items, kept, strict=True)
    )
    Judgment.objects.bulk_create(
        Judgment(run=run, item=item, status="ok", score=5 if one.text == key_of[one.sample.key] else 1)
        for item, one in zip(items, kept, strict=True)
    )
    return run


def right_by_model(client, benchmark, kind="choice", column="vanilla"):
    """What an anonymous visitor is told: by model how many of its answers are right."""
    rows = client.get(API, {"benchmark": str(benchmark), "kind": kind}).json()
    told = {}
    for row in rows:
        if row[column] is not None:
            share = row[column] if kind != "reference" else (row[column] - 1) / 4
            told[row["model"]] = round(share * row["n"])
    return told


def published(benchmark, kind="choice", **more):
    try:
        return editions.publish(benchmark=benchmark, kind=kind, **more)
    except editions.Refused:
        return None


def test_a_model_and_forty_checkpoints_that_differ_in_one_answer_each_tell_no_key(client, at_chance):
    """Each difference of two shares is about one key: 36 of 36 were read so."""
    rng, hits, n = random.Random(4), 0, 0
    for round_ in range(5):
        keys = [rng.choice(LETTERS) for _ in range(40)]
        benchmark = asked(f"quiz{round_}", keys)
        base = [rng.choice(LETTERS) for _ in range(40)]
        said = {"base": base}
        for at in range(40):
            other = rng.choice([letter for letter in LETTERS if letter != base[at]])
            said[f"checkpoint {at:02}"] = [*base[:at], other, *base[at + 1 :]]
        answered(benchmark, said)
        assert published(benchmark)
        told = right_by_model(client, benchmark)
        for at in range(40):
            checkpoint = f"checkpoint {at:02}"
            change = told.get(checkpoint, 0) - told["base"] if checkpoint in told else 0
            guess = {1: said[checkpoint][at], -1: base[at]}.get(change) or rng.choice(LETTERS)
            hits, n = hits + (guess == keys[at]), n + 1
    at_chance(hits, n, 1 / 4, "40 checkpoints")
    assert set(told) == {"base"}


def test_a_curator_is_told_by_name_which_models_are_left_out_and_beside_which(client):
    benchmark = asked("quiz", ["A", "B"] * 20)
    answered(benchmark, {"base": ["A", "C"] * 20, "step": ["B", *(["C", "A"] * 20)[1:39], "C"]})
    answered(benchmark, {"near": ["B", "C", *["A", "C"] * 19]})
    draft = editions.draft(benchmark=benchmark, kind="choice")
    assert draft.left_out == {"near": "beside those of base, its answers would tell of fewer than 10 samples"}
    assert not Edition.objects.exists()


def test_a_published_model_stays_and_a_later_one_that_differs_in_few_answers_never_enters(client):
    """Also where the new one came to the bank first, and where the published one is not in the new edition."""
    keys = ["A", "B"] * 20
    benchmark = asked("quiz", keys)
    EvaluatedModel.objects.create(name="early")
    answered(benchmark, {"base": ["A", "C"] * 20})
    assert published(benchmark)
    answered(benchmark, {"early": ["B", "C", *["A", "C"] * 19], "far": ["C", "B"] * 20})
    assert published(benchmark)
    assert set(right_by_model(client, benchmark)) == {"base", "far"}
    Response.objects.filter(model__name="base").delete()
    published(benchmark)
    assert "early" not in right_by_model(client, benchmark)


def test_two_models_with_opposite_answers_to_all_questions_of_yes_or_no_but_few_are_not_published_both(client):
    """One of the two is right wherever they differ, so the sum of both shares tells the rest."""
    keys = ["yes", "no"] * 20
    benchmark = asked("poll", keys, options="")
    said = ["yes"] * 20 + ["no"] * 20
    answered(benchmark, {"one": said, "other": [said[0], *["no"] * 19, *["yes"] * 20]})
    assert published(benchmark, "yes-no")
    assert set(right_by_model(client, benchmark, "yes-no", "accuracy")) == {"one"}


def test_checkpoints_that_differ_in_few_answers_of_a_level_have_no_levels(client):
    keys = [LETTERS[n % 4] for n in range(60)]
    benchmark = asked("quiz", keys, level=lambda n: ("Reading", "Counting", "Colours")[n % 3])
    base = [LETTERS[n // 3 % 4] for n in range(60)]
    step = [
        letter if n % 3 == 0 or n > 34 else LETTERS[(LETTERS.index(letter) + 1) % 4] for n, letter in enumerate(base)
    ]
    step[0] = LETTERS[(LETTERS.index(base[0]) + 1) % 4]
    answered(benchmark, {"base": base, "step": step})
    draft = editions.draft(benchmark=benchmark, kind="choice")
    assert (draft.left_out, draft.without_levels) == ({}, ["step"])
    published(benchmark)
    rows = {row["model"]: row for row in client.get(API, {"benchmark": "quiz", "kind": "choice"}).json()}
    assert rows["base"]["levels"]
    assert not rows["step"]["levels"]


def test_a_kind_by_a_run_that_lacks_a_sample_tells_no_key_beside_another_kind(client, at_chance):
    """``choice`` over 40 samples, marks over 39 of them: the 40th key followed."""
    rng, hits, n = random.Random(11), 0, 0
    for round_ in range(5):
        keys = [rng.choice(LETTERS) for _ in range(40)]
        benchmark = asked(f"quiz{round_}", keys)
        said = {f"model {at:02}": [rng.choice(LETTERS) for _ in range(40)] for at in range(40)}
        answered(benchmark, said)
        run = marked(benchmark, keys, without={f"model {at:02}": f"q{at:03}" for at in range(40)})
        assert published(benchmark)
        published(benchmark, "reference", run=run)
        by_key = right_by_model(client, benchmark)
        by_mark = right_by_model(client, benchmark, "reference", "score")
        for at in range(40):
            model = f"model {at:02}"
            guess = rng.choice(LETTERS)
            if model in by_key and model in by_mark:
                own = said[model][at]
                guess = own if by_key[model] > by_mark[model] else rng.choice([one for one in LETTERS if one != own])
            hits, n = hits + (guess == keys[at]), n + 1
    at_chance(hits, n, 1 / 4, "two kinds over the same questions")


def test_kinds_over_the_same_samples_are_published_both_and_refused_in_words_where_one_lacks_a_sample():
    keys = ["A", "B"] * 20
    benchmark = asked("quiz", keys)
    answered(benchmark, {"one": ["A", "C"] * 20})
    run = marked(benchmark, keys, without={"one": "q039"})
    editions.publish(benchmark=benchmark, kind="choice")
    with pytest.raises(editions.Refused, match=r"The numbers of one, .* with those of edition 1 of choice"):
        editions.publish(benchmark=benchmark, kind="reference", run=run)
    run.delete()
    Item.objects.all().delete()
    Judge.objects.all().delete()
    editions.publish(benchmark=benchmark, kind="reference", run=marked(benchmark, keys, without={}))


def test_an_edition_of_before_whose_facts_tell_no_answers_is_held_against_other_kinds_by_its_samples():
    keys = ["A", "B"] * 20
    benchmark = asked("quiz", keys)
    answered(benchmark, {"one": ["A", "C"] * 20})
    old = editions.publish(benchmark=benchmark, kind="reference", run=marked(benchmark, keys, without={"one": "q039"}))
    numbers = {
        name: {key: fact.partition(":")[0] for key, fact in cell.items()} for name, cell in old.cells["one"].items()
    }
    Edition.objects.filter(pk=old.pk).update(cells={"one": numbers})
    with pytest.raises(editions.Refused, match="with those of edition 1 of reference"):
        editions.publish(benchmark=benchmark, kind="choice")


def test_a_correction_of_keys_that_two_kinds_show_in_other_samples_tells_no_key_of_the_one_that_is_left():
    """Ten keys in one kind, eleven in the other: the difference of the differences is the eleventh."""
    keys = ["A", "B"] * 20
    benchmark = asked("quiz", keys)
    answered(benchmark, {"one": ["A", "C"] * 20})
    run = marked(benchmark, keys, without={})
    editions.publish(benchmark=benchmark, kind="choice")
    editions.publish(benchmark=benchmark, kind="reference", run=run)
    closed = list(Criterion.unguarded.filter(sample__benchmark=benchmark).order_by("sample__position"))
    for row in closed[:10]:
        row.text = "D"
        row.save()
    editions.publish(benchmark=benchmark, kind="choice")
    row = closed[10]
    row.text = "D"
    row.save()
    for judgment in Judgment.objects.filter(item__sample__in=[row.sample_id for row in closed[:11]]):
        Judgment.objects.filter(pk=judgment.pk).update(score=6 - judgment.score)
    with pytest.raises(editions.Refused, match="The numbers of one"):
        editions.publish(benchmark=benchmark, kind="reference", run=run)


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_level_of_which_all_is_right_is_an_interval_that_looks_as_with_one_wrong(wrong, client):
    """Ten keys at once were read so."""
    keys = ["A"] * 10 + ["B"] * 10 + ["C"] * 20
    benchmark = asked("quiz", keys, level=lambda n: "Two" if n < 10 else "One")
    said = ["B"] * wrong + ["A"] * (10 - wrong) + ["B"] * 10 + ["D"] * (20 - wrong) + ["C"] * wrong
    answered(benchmark, {"one": said})
    published(benchmark)
    (row,) = client.get(API, {"benchmark": "quiz", "kind": "choice"}).json()
    two = row["levels"]["Two"]
    assert (two["vanilla"], two["vanilla_low"], two["vanilla_high"]) == (None, 0.9, 1)
    assert "One" not in row["levels"]  # 20 of all less 10 of it would be the level
    assert row["vanilla"] == 0.5
    page = client.get("/leaderboards/quiz/models/?kind=choice").content.decode()
    assert "90.0 to 100.0" in page
    assert "a share would tell the answer of nearly every sample" in " ".join(row["notes"])


@pytest.mark.parametrize(("right", "ends"), [(0, (0, 0.1)), (1, (0, 0.1)), (39, (0.9, 1)), (40, (0.9, 1))])
def test_yes_or_no_at_an_end_is_an_interval_and_nothing_beside_it_tells_which(right, ends, client):
    keys = ["yes"] * 20 + ["no"] * 20
    benchmark = asked("poll", keys, options="")
    other = {"yes": "no", "no": "yes"}
    answered(benchmark, {"one": [key if n < right else other[key] for n, key in enumerate(keys)]})
    published(benchmark, "yes-no")
    (row,) = client.get(API, {"benchmark": "poll", "kind": "yes-no"}).json()
    assert (row["accuracy"], row["accuracy_low"], row["accuracy_high"]) == (None, *ends)
    assert [row[name] for name in ("precision", "recall", "f1", "accuracy_se")] == [None] * 4
    assert (row["rank"], row["tier"]) == (1, 1)


def test_precision_that_would_settle_every_yes_is_left_out(client):
    keys = ["yes"] * 20 + ["no"] * 20
    benchmark = asked("poll", keys, options="")
    answered(benchmark, {"one": ["yes"] * 15 + ["no"] * 25})
    published(benchmark, "yes-no")
    (row,) = client.get(API, {"benchmark": "poll", "kind": "yes-no"}).json()
    assert (row["accuracy"], row["precision"], row["recall"]) == (35 / 40, None, None)


def test_ranks_and_tiers_tell_no_more_than_the_numbers_of_an_edition(client):
    """Three that are right in 40, in 39 and in 39 other ones; two that are equal as they are rounded."""
    keys = [LETTERS[n % 4] for n in range(60)]
    benchmark = asked("quiz", keys)
    shifted = [LETTERS[(n + 1) % 4] for n in range(60)]
    all_right, one_wrong = keys[:], [shifted[0], *keys[1:]]
    answered(benchmark, {"all": all_right, "half": keys[:30] + shifted[30:], "other half": shifted[:30] + keys[30:]})
    published(benchmark)
    before = client.get(API, {"benchmark": "quiz", "kind": "choice"}).json()
    assert [(row["model"], row["rank"], row["rank_low"], row["rank_high"]) for row in before] == [
        ("all", 1, 1, 1), ("half", 2, 2, 3), ("other half", 2, 2, 3),
    ]  # fmt: skip
    Edition.objects.all().delete()
    Response.objects.filter(model__name="all").delete()
    answered(benchmark, {"all": one_wrong})
    published(benchmark)
    after = client.get(API, {"benchmark": "quiz", "kind": "choice"}).json()
    assert [row | {"as_of": None} for row in after] == [row | {"as_of": None} for row in before]


def test_what_three_models_tell_together_is_the_documented_remainder(client):
    """The docs say so: only two models are compared. One answers all, two others the same in half of the rest each."""
    keys = ["A", "B"] * 20
    benchmark = asked("quiz", keys)
    base = ["A"] * 15 + ["C"] * 25
    half, rest = [None] * 40, [None] * 40
    half[1:20], rest[20:] = base[1:20], base[20:]
    rest[19:20], half[19:20] = base[19:20], [None]
    answered(benchmark, {"base": base, "half": half, "rest": rest})
    published(benchmark)
    told = right_by_model(client, benchmark)
    assert all(len({*one} ^ {*other}) for one, other in combinations(told, 2))
    assert told.get("base", 0) - told.get("half", 0) - told.get("rest", 0) in (0, 1)
