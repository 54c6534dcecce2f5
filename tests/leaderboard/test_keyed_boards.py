"""Boards of answers compared with keys, and of weighted components: who is right how often, and what stays hidden."""

import base64
import json
import re
from dataclasses import replace

import pytest
from django.utils import timezone

from accounts.models import User
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.campaigns.members import make_annotator
from annotations.labels.actions import submit_label
from bank.models import Benchmark, Response, Submission
from bank.submissions import actions
from judging.models import Run
from leaderboard import editions
from leaderboard.boards.models.abilities import abilities
from leaderboard.boards.seen import judges, models
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from tests.annotations import kinds
from tests.bank.conftest import folder, manage, picture
from tests.hidden import change, criteria, show
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
LABELS = ("A", "B", "C", "D")
TREE = (["Seeing", "Coarse"], ["Seeing", "Fine"], ["Reasoning", "Logic"], ["Reasoning", "Maths"])
SAMPLES = 48


def quiz_scope(**filters):
    """The board of the quiz as staff see it."""
    return scope_of(benchmark="quiz", kind="choice", staff=True, **filters)


def key(n):
    return LABELS[n % 4]


def shown(n, shift):
    """The letter under which the key of question n stands in a rotation: place i shows option i + shift."""
    return LABELS[(n % 4 - shift) % 4]


def questions(**more):
    return [
        {
            "key": f"q{n}",
            "instruction": "Which?",
            "options": {label: f"thing {label}" for label in LABELS},
            "answer": key(n),
            "capability": TREE[(n // 4) % 4],
        }
        | more
        for n in range(SAMPLES)
    ]


def rotations(model, *, right, text="({})"):
    """Every question in every rotation; ``right(n, shift)`` says which are right."""
    return [
        {
            "sample": f"q{n}",
            "model": model,
            "variant": f"circular-{shift}" if shift else "",
            "text": text.format(shown(n, shift) if right(n, shift) else shown(n + 1, shift)),
        }
        for n in range(SAMPLES)
        for shift in range(4)
    ]


@pytest.fixture
def quiz(folder, manage):
    """48 questions; Sure is always right, Shaky only in its first pass on every second."""
    rows = [
        *rotations("Sure", right=lambda n, shift: True),
        *rotations("Shaky", right=lambda n, shift: n % 2 == 0 and (shift == 0 or n % 4 == 0)),
    ]
    assert (
        manage("import_benchmark", "generic", folder("samples", questions()), "--benchmark", "quiz", "--public")[0] == 0
    )
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "quiz")[0] == 0
    return Benchmark.objects.get(slug="quiz")


def test_multiple_choice_counts_one_pass_and_every_rotation_by_level(quiz):
    board = models(quiz_scope())
    assert [row["model"] for row in board.as_json()] == ["Sure", "Shaky"]
    sure, shaky = board.as_json()
    assert (sure["vanilla"], sure["circular"], sure["difference"], sure["rank"], sure["tier"]) == (1, 1, 0, 1, 1)
    assert (shaky["vanilla"], shaky["circular"], shaky["difference"]) == (0.5, 0.25, -0.25)
    assert shaky["circular_low"] < 0.25 < shaky["circular_high"]
    assert (shaky["n"], shaky["coverage"], shaky["rank"], shaky["tier"]) == (SAMPLES, 1.0, 2, 2)
    assert shaky["extraction"] == {"label": 4 * SAMPLES, "judge": 0, "random": 0, "none": 0, "no_text": 0}
    assert list(shaky["levels"]) == ["Seeing", "Reasoning", *(" / ".join(path) for path in TREE)]
    assert {level["n"] for level in shaky["levels"].values()} == {24, 12}
    # Each letter is the key of a quarter; Shaky names the next one where it is wrong.
    assert board.right == dict.fromkeys(LABELS, 0.25)
    assert board.letters["Sure"] == dict.fromkeys(LABELS, 0.25)


def test_abilities_of_unequal_depth_have_their_mean_of_all_models_at_each_depth(quiz, folder, manage, client_of):
    """Two models in every rotation, one level below Seeing and two below Counting: the page of models was an error."""
    lone = questions(capability=["Counting"])[:12]
    lone = [row | {"key": f"lone{n}"} for n, row in enumerate(lone)]
    answers = [
        {"sample": row["key"], "model": model, "variant": f"circular-{shift}" if shift else "", "text": shown(n, shift)}
        for n, row in enumerate(lone)
        for shift in range(4)
        for model in ("Sure", "Shaky")
    ]
    assert manage("import_benchmark", "generic", folder("samples", lone), "--benchmark", "quiz", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", answers), "--benchmark", "quiz")[0] == 0
    rows = {row.ability: (row.mean.value, row.models, row.n) for row in abilities(quiz_scope()).rows}
    assert rows == {
        "Counting": (1.0, 2, 12),
        "Seeing": (0.625, 2, 24),
        "Reasoning": (0.625, 2, 24),
        **{" / ".join(path): (0.625, 2, 12) for path in TREE},
    }
    page = client_of("curator").get("/leaderboards/quiz/models/", {"kind": "choice"})
    assert (page.status_code, "All models together" in page.text) == (200, True)


def test_letters_are_those_that_stood_before_the_options_in_every_pass(quiz, folder, manage):
    """MMBench, Figure 4: in one pass, shares are about the questions; a model that says A says it in all passes."""
    always = [row | {"text": "A"} for row in rotations("Always A", right=lambda n, shift: True)]
    assert manage("import_responses", "generic", folder("responses", always), "--benchmark", "quiz")[0] == 0
    quiz.samples.exclude(key__in=["q0", "q4", "q8", "q12", "q1"]).update(status="draft")  # four keys A, one B
    board = models(quiz_scope())
    assert board.letters["Always A"] == {"A": 1.0}
    assert board.right == dict.fromkeys(LABELS, 0.25)
    assert board.letters["Sure"] == board.right


def test_a_rotation_that_is_missing_is_not_a_wrong_one(quiz, folder, manage):
    part = [row for row in rotations("Brief", right=lambda n, shift: True) if row["variant"] != "circular-3"]
    part += [row for row in rotations("Brief", right=lambda n, s: True)[:80] if row["variant"] == "circular-3"]
    assert manage("import_responses", "generic", folder("responses", part), "--benchmark", "quiz")[0] == 0
    row = next(row for row in models(quiz_scope()).as_json() if row["model"] == "Brief")
    assert (row["vanilla"], row["circular"], row["n"]) == (1, 1, SAMPLES)
    only = [row for row in rotations("Once", right=lambda n, shift: n < 40) if not row["variant"]]
    assert manage("import_responses", "generic", folder("responses", only), "--benchmark", "quiz")[0] == 0
    row = next(row for row in models(quiz_scope()).as_json() if row["model"] == "Once")
    assert (row["vanilla"], row["circular"], row["rank"]) == (pytest.approx(40 / 48), None, None)


def test_answers_that_say_nothing_are_not_right_or_left_out_with_both_extremes_beside_them(quiz, folder, manage):
    rows = rotations("Vague", right=lambda n, shift: n % 2 == 0)
    for row in rows:
        if row["sample"] in ("q0", "q1", "q2") and row["variant"] in ("", "circular-2"):
            row["text"] = "Hard to say."
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "quiz")[0] == 0

    def vague(**view):
        return next(row for row in models(quiz_scope(**view)).as_json() if row["model"] == "Vague")

    wrong, left_out = vague(), vague(failures="exclude")
    assert vague(failures="wrong") == wrong
    assert (wrong["failure_rule"], wrong["failures"], wrong["n"]) == ("wrong", 3, 48)
    assert (left_out["failure_rule"], left_out["failures"], left_out["n"]) == ("exclude", 3, 45)
    assert (wrong["vanilla"], left_out["vanilla"]) == pytest.approx((22 / 48, 22 / 45))
    assert (wrong["circular"], left_out["circular"]) == pytest.approx((22 / 48, 22 / 45))
    for row in (wrong, left_out):  # q1's other passes name a wrong option
        assert (row["vanilla_worst"], row["vanilla_best"]) == pytest.approx((22 / 48, 25 / 48))
        assert (row["circular_worst"], row["circular_best"]) == pytest.approx((22 / 48, 24 / 48))


def test_answers_that_deny_the_right_option_are_not_right(quiz, folder, manage):
    denied = [row for row in rotations("Denied", right=lambda n, shift: True) if not row["variant"]]
    for n, row in enumerate(denied):
        row["text"] = ["The answer is not {}.", "{} is wrong.", "I would rule out option {}"][n % 3].format(key(n))
    assert manage("import_responses", "generic", folder("responses", denied), "--benchmark", "quiz")[0] == 0
    row = next(row for row in models(quiz_scope()).as_json() if row["model"] == "Denied")
    assert (row["vanilla"], row["extraction"]["label"], row["extraction"]["none"]) == (0, 0, SAMPLES)


@pytest.mark.parametrize("predictions", [("The answer is not A.", "B is wrong."), ("nan", "nan"), ("None", "null")])
def test_a_prediction_that_denies_an_option_or_is_an_empty_cell_in_words_names_none_whatever_the_options_say(
    predictions, manage, tmp_path, board
):
    """The keys are A and B. ``nan`` is what programs write for an answer that is missing; here an option says it."""
    image = base64.b64encode(picture()).decode()
    table, answers = tmp_path / "MMBench_DEV_EN.tsv", tmp_path / "model-x.tsv"
    table.write_text(
        "index\tquestion\tA\tB\tC\tanswer\timage\n"
        f"1\tHow many birds are there?\tNone\tTwo\tOne\tA\t{image}\n"
        "2\tWhat stands in the cell?\tNA\tnull\tnan\tB\t1\n"
    )
    answers.write_text("index\tprediction\n" + "".join(f"{n}\t{said}\n" for n, said in enumerate(predictions, 1)))
    assert manage("import_benchmark", "auto", table, "--benchmark", "cells", "--public")[0] == 0
    status, _, err = manage("import_responses", "auto", answers, "--benchmark", "cells", "--model", "model-x")
    assert (status, err) == (0, "")
    (row,) = board("models", "--kind", "choice", benchmark="cells")
    assert (row["vanilla"], row["n"], row["failures"]) == (0, 2, 2)
    assert row["extraction"] == {"label": 0, "judge": 0, "random": 0, "none": 2, "no_text": 0}


def test_a_judge_reads_what_names_no_option_and_the_steps_are_told(quiz, folder, manage):
    vague = rotations("Vague", right=lambda n, shift: True, text="It is thing {} I think")
    vague = [row for row in vague if not row["variant"]]
    for row in vague:
        row["text"] = "The one on the left, I think."
    assert manage("import_responses", "generic", folder("responses", vague), "--benchmark", "quiz")[0] == 0
    silent = next(row for row in models(quiz_scope()).as_json() if row["model"] == "Vague")
    assert (silent["vanilla"], silent["extraction"]["none"], silent["extraction"]["label"]) == (0, SAMPLES, 0)
    told = [
        {
            "kind": "score",
            "protocol": "choice-extraction",
            "sample": f"q{n}",
            "responses": ["Vague"],
            "judge": "reader",
            "option": key(n) if n < 36 else "X",
            "extraction": "judge" if n < 24 else "random",
        }
        for n in range(SAMPLES)
    ]
    assert manage("import_judgments", "generic", folder("judgments", told), "--benchmark", "quiz")[0] == 0
    board = models(quiz_scope())
    read = next(row for row in board.as_json() if row["model"] == "Vague")
    assert read["vanilla"] == 36 / 48
    assert read["extraction"] == {"label": 0, "judge": 24, "random": 12, "none": 12, "no_text": 0}
    assert len(board.runs) == 1


def test_a_tryout_replaces_no_complete_reading_and_what_it_was_not_asked_is_not_wrong(quiz, folder, manage, client_of):
    """The newest run was taken however small, and what it had not been asked about counted as wrong."""
    text = "The one on the left, I think."
    vague = [row | {"text": text} for row in rotations("Vague", right=lambda n, shift: True) if not row["variant"]]
    assert manage("import_responses", "generic", folder("responses", vague), "--benchmark", "quiz")[0] == 0

    def read_by(judge, asked):
        common = {"kind": "score", "protocol": "choice-extraction", "responses": ["Vague"], "judge": judge}
        told = [common | {"sample": f"q{n}", "option": key(n) if n % 2 else "X"} for n in range(asked)]
        assert manage("import_judgments", "generic", folder("judgments", told), "--benchmark", "quiz")[0] == 0
        return Run.objects.get(judge__name=judge).pk

    def board(**view):
        found = models(quiz_scope(**view))
        return found.runs, next(row for row in found.as_json() if row["model"] == "Vague")

    complete = read_by("reader", SAMPLES)
    before = board()
    assert (before[0], before[1]["vanilla"], before[1]["n"]) == ((complete,), 1 / 2, SAMPLES)
    tryout = read_by("hasty", 6)
    assert board() == before
    runs, asked = board(run=tryout)
    assert (runs, asked["vanilla"], asked["n"], asked["coverage"]) == ((tryout,), 1 / 2, 6, 6 / SAMPLES)
    assert (asked["failures"], asked["extraction"]["none"]) == (3, 3), "those it was asked about and found nothing in"
    note = f"Vague is read for 6 of {SAMPLES}: finish the extraction. Until then answers in words are not counted."
    assert note in models(quiz_scope(run=tryout)).notes
    assert note in flat(client_of("curator").get(f"/leaderboards/quiz/models/?kind=choice&run={tryout}").text)
    assert not any("extraction" in told for told in models(quiz_scope()).notes)
    again = read_by("careful", SAMPLES)
    assert board()[0] == (again,), "of two that were asked about all, the newer one"
    Run.objects.filter(pk=again).update(state="running")
    assert board()[0] == (complete,), "none that goes on"
    page = client_of("curator").get("/leaderboards/quiz/models/?kind=choice").text
    assert f"reader, run {complete}" in flat(page)
    assert "label, then whoever read most" in page


def test_answers_read_otherwise_are_told_apart_by_whether_one_reads_no_option_and_are_listed(
    quiz, folder, manage, client_of
):
    """MMBench (arXiv 2307.06281), 4.3: Case I and Case II of misaligned samples."""
    vague = [row for row in rotations("Vague", right=lambda n, shift: True) if not row["variant"]]
    for row in vague:
        row["text"] = "The one on the left, I think."
    assert manage("import_responses", "generic", folder("responses", vague), "--benchmark", "quiz")[0] == 0
    common = {"kind": "score", "protocol": "choice-extraction", "responses": ["Vague"]}
    people = ["A", "B", "A", "X", "C", "A", "B", "X", "X", "B"]
    judge = ["A", "B", "A", "X", "C", "A", "X", "A", "B", "C"]  # three times one of the two reads none, once another
    said = {"labels": ("annotator", "Ada", people), "judgments": ("judge", "reader", judge)}
    for what, (who, name, options) in said.items():
        rows = [
            common | {who: name, "sample": f"q{n}", "option": option, "extraction": "judge"}
            for n, option in enumerate(options)
        ]
        if what == "labels":
            rows = [{column: value for column, value in row.items() if column != "extraction"} for row in rows]
        status, _, err = manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", "quiz")
        assert status == 0, err
    board = judges(quiz_scope())
    case = board.overall()[board.runs[-1]]["case_1"].as_json()
    assert (case["value"], case["n"]) == (3 / 4, 4)
    link = f"/leaderboards/quiz/compare/?kind=choice&a=majority&b=run-{case['run']}"
    page = flat(client_of("curator").get(link))
    for words in ("6 the same of 10 = 60.0%", "Different 4", "One reads no option 3", "Two options 1"):
        assert words in page
    listed = flat(client_of("curator").get(f"{link}&match=options"))
    assert re.findall(r"<small class=\"phone-only\">[^<]*</small>(\w)</td>", listed) == ["B", "C"]


def edition_rows(**filters):
    return {row["model"]: row for row in models(replace(quiz_scope(**filters), staff=False, edition=True)).as_json()}


@pytest.mark.check("J3")
def test_an_edition_tells_of_no_level_with_few_answers_nor_of_one_that_could_be_subtracted(quiz):
    assert len(edition_rows()["Sure"]["levels"]) == 6
    quiz.samples.filter(key__in=[f"q{n}" for n in (0, 1, 2, 3)]).update(status="draft")
    # Eight are left of the first leaf: it is not told, and neither is the one beside it.
    told = edition_rows()["Sure"]["levels"]
    assert list(told) == ["Seeing", "Reasoning", "Reasoning / Logic", "Reasoning / Maths"]
    assert len(models(quiz_scope()).as_json()[0]["levels"]) == 6  # staff see all


@pytest.mark.check("J3")
def test_answers_that_no_key_makes_right_do_not_make_a_level_large(quiz):
    # Shaky names another option in each rotation of three questions of every leaf: nine of a leaf can be right.
    assert list(edition_rows()["Shaky"]["levels"]) == ["Seeing", "Reasoning"]


@pytest.mark.check("J3")
def test_one_pass_beside_all_rotations_does_not_tell_the_few_in_which_they_differ(quiz, folder, manage):
    """A model names one option in every rotation of all questions but some: of these the difference of the two is."""

    def answered(model, unsteady):
        """A third is wrong in one pass; the first are right in one rotation alone."""
        rows = rotations(model, right=lambda n, shift: shift == (n % 3 == 0) if n < unsteady else n % 3 > 0)
        assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "quiz")[0] == 0
        return edition_rows()[model]

    few, many = answered("Nine", 9), answered("Ten", 10)
    assert (few["circular"], few["vanilla"], few["difference"]) == (26 / 48, None, None)
    assert (many["circular"], many["vanilla"], many["difference"]) == (26 / 48, 32 / 48, pytest.approx(-6 / 48))
    assert {level["vanilla"] for level in many["levels"].values()} == {None}  # by level one number alone


@pytest.mark.check("J3")
def test_precision_and_recall_need_ten_answers_of_each_sort(folder, manage):
    keys = ["yes" if (n < 30) != (n % 3 == 0) else "no" for n in range(60)]  # a third of each half the other way
    asked = [{"key": f"y{n}", "instruction": "Is it?", "answer": answer} for n, answer in enumerate(keys)]
    answers = [
        {"sample": f"y{n}", "model": model, "text": "yes" if n < yes else "maybe" if n < yes + neither else "no"}
        for model, yes, neither in (("Even", 30, 0), ("Rare", 9, 0), ("Mute", 30, 1), ("Vague", 30, 10))
        for n in range(60)
    ]
    assert manage("import_benchmark", "generic", folder("samples", asked), "--benchmark", "quiz", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", answers), "--benchmark", "quiz")[0] == 0
    scope = scope_of(benchmark="quiz", kind="yes-no", staff=True)
    rows = {row["model"]: row for row in models(replace(scope, staff=False, edition=True)).as_json()}
    assert {name for name, row in rows.items() if row["precision"] is not None} == {"Even", "Vague"}
    assert {name for name, row in rows.items() if row["recall"] is None and row["f1"] is None} == {"Rare", "Mute"}
    assert rows["Mute"]["accuracy"] == pytest.approx(40 / 60)


def test_a_hidden_split_ranks_by_its_kept_half_and_shows_no_level(quiz, folder, manage, people, tmp_path, client_of):
    quiz.samples.update(split="test")
    actions.set_rules(
        by=people["curator"], benchmark=quiz, open=True, per_day=None, in_all=None, count_failed=False,
        hidden_splits=["test"], required_splits=["test"], private_half=True,
    )  # fmt: skip
    quiz.refresh_from_db()
    board = models(quiz_scope(split="test"))
    assert board.half
    assert 10 <= board.as_json()[0]["n"] < SAMPLES
    assert board.as_json()[0]["levels"] == {}
    assert models(quiz_scope()).as_json() == board.as_json()  # there is no other split
    with pytest.raises(BadScope, match="only shown as a whole"):
        models(quiz_scope(split="test", level="Seeing"))

    # What Shaky says differs from the other's answers in about ten samples of the half, or in fewer.
    Response.objects.filter(model__name="Shaky").delete()
    path = tmp_path / "late.jsonl"
    sent = rotations("Late", right=lambda n, shift: False)
    path.write_text("".join(json.dumps(row) + "\n" for row in sent), encoding="utf-8")
    submission = actions.submit(
        person=people["researcher"], benchmark=quiz, name="Late", path=path, file_name="late.jsonl", now=timezone.now()
    )
    assert submission.state == Submission.State.SCORED

    editions.publish(benchmark=quiz, kind="choice", by=people["curator"])

    def names(role):
        answer = client_of(role).get("/api/v1/leaderboards/models/?benchmark=quiz&kind=choice")
        return {row["model"] for row in answer.json()}

    assert names("anonymous") == names("researcher") == {"Sure"}
    assert names("curator") == {"Sure", "Late"}
    actions.release(submission=submission, now=timezone.now())
    assert names("anonymous") == {"Sure"}
    editions.publish(benchmark=quiz, kind="choice", by=people["curator"])
    assert names("anonymous") == {"Sure", "Late"}
    actions.withdraw(submission=submission, by=people["researcher"], now=timezone.now())
    assert names("curator") == {"Sure"}


def test_yes_or_no_has_the_measures_of_pope(folder, manage):
    """One (TP, FP) gives all five (ChEF, Table 12; label counts as in POPE's random file, made smaller)."""
    asked = [{"key": f"y{n}", "instruction": "Is it?", "answer": "yes" if n < 30 else "no"} for n in range(58)]
    said = ["Yes, it is."] * 24 + ["No."] * 6 + ["yes"] * 4 + ["There is no such thing"] * 24
    rows = [{"sample": f"y{n}", "model": "Finch", "text": text} for n, text in enumerate(said)]
    assert manage("import_benchmark", "generic", folder("samples", asked), "--benchmark", "there", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "there")[0] == 0
    (row,) = models(scope_of(benchmark="there", kind="yes-no", staff=True)).as_json()
    assert row["accuracy"] == pytest.approx(48 / 58)
    assert row["precision"] == pytest.approx(24 / 28)
    assert row["recall"] == pytest.approx(24 / 30)
    assert row["f1"] == pytest.approx(48 / 58)
    assert row["yes_ratio"] == pytest.approx(28 / 58)
    assert (row["n"], row["rank"]) == (58, 1)
    assert row["f1_low"] < row["f1"] < row["f1_high"]


def test_answers_can_be_read_as_popes_own_script_reads_them(folder, manage, client_of):
    """What holds no "no" or "not" in its first sentence is a yes there, an evasion too (POPE, evaluate.py)."""
    asked = [{"key": f"y{n}", "instruction": "Is it?", "answer": "yes" if n < 6 else "no"} for n in range(12)]
    evasions = ["Hard to tell.", "I cannot see it. No.", "It could be, not sure"]
    said = ["Yes."] * 3 + evasions + ["No."] * 3 + evasions
    rows = [{"sample": f"y{n}", "model": "Finch", "text": text} for n, text in enumerate(said)]
    assert manage("import_benchmark", "generic", folder("samples", asked), "--benchmark", "there", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "there")[0] == 0
    show("public")
    client = client_of("researcher")
    address = "/api/v1/leaderboards/models/?benchmark=there&kind=yes-no"
    (ours,) = client.get(address).json()
    assert (ours["reading"], ours["accuracy"], ours["failures"]) == ("label", 7 / 12, 4)
    (theirs,) = client.get(f"{address}&reading=pope").json()
    # Three and two evasions are a yes of questions whose answer is yes; of the others two are, wrongly.
    assert (theirs["reading"], theirs["accuracy"], theirs["yes_ratio"]) == ("pope", 9 / 12, 7 / 12)
    assert theirs["failures"] == 0
    page = flat(client.get("/leaderboards/there/models/?kind=yes-no&reading=pope"))
    assert "nswers are read as POPE" in page
    assert client.get("/api/v1/leaderboards/judges/?benchmark=there&kind=yes-no&reading=pope").status_code == 400


def test_all_models_together_have_a_mean_by_ability_at_each_depth_the_hardest_first(folder, manage, client_of):
    samples = [
        {
            "key": f"q{n}", "instruction": "Which?", "options": {"A": "a", "B": "b"}, "answer": "A",
            "capability": ["Reasoning", "Logic"] if n < 4 else ["Perception"],
        }
        for n in range(8)
    ]  # fmt: skip
    said = {"Finch": "AABBAAAA", "Wren": "ABBBAAAB"}
    answers = [
        {"sample": f"q{n}", "model": model, "text": letter}
        for model, row in said.items()
        for n, letter in enumerate(row)
    ]
    more = ("--public", "--open-keys")
    assert manage("import_benchmark", "generic", folder("samples", samples), "--benchmark", "both", *more)[0] == 0
    assert manage("import_responses", "generic", folder("responses", answers), "--benchmark", "both")[0] == 0
    client = client_of("anonymous")
    rows = client.get("/api/v1/leaderboards/abilities/?benchmark=both&kind=choice").json()
    assert [(row["ability"], row["mean"], row["models"], row["n"]) for row in rows] == [
        ("Reasoning", 3 / 8, 2, 4),
        ("Reasoning / Logic", 3 / 8, 2, 4),
        ("Perception", 7 / 8, 2, 4),
    ]
    assert "All models together" in client.get("/leaderboards/both/models/?kind=choice").content.decode()


def test_components_are_a_share_of_their_weights_whole_and_by_category(folder, manage, client_of):
    """Total / 10 in percent, and by category the mean of points per weight (MIA-Bench, section 2.2)."""

    def part(name, weight, category):
        return {
            "key": name, "kind": "component", "text": name, "weight": weight, "category": category, "shown_to": "public"
        }  # fmt: skip

    samples = [
        {"key": "a", "instruction": "Do.", "criteria": [part("1", 4, "mention"), part("2", 6, "length_limit")]},
        {"key": "b", "instruction": "Do.", "criteria": [part("1", 2, "mention"), part("2", 6, "mention")]},
    ]
    judged = [("a", (2, 3)), ("b", (2, 3))]
    rows = [
        {
            "kind": "score", "protocol": "components", "sample": sample, "responses": ["Finch"], "judge": "marker",
            "parts": [{"component": str(n), "points": p} for n, p in enumerate(points, start=1)],
        }
        for sample, points in judged
    ]  # fmt: skip
    answers = [{"sample": key, "model": "Finch", "text": "Done."} for key in "ab"]
    assert manage("import_benchmark", "generic", folder("samples", samples), "--benchmark", "parts", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", answers), "--benchmark", "parts")[0] == 0
    assert manage("import_judgments", "generic", folder("judgments", rows), "--benchmark", "parts")[0] == 0
    scope = scope_of(benchmark="parts", kind="components", source="marker")
    (row,) = models(scope).as_json()
    assert row["score"] == pytest.approx((50 + 62.5) / 2)  # 5/10, and 5/8 where the weights sum to 8
    assert row["categories"] == {"mention": pytest.approx((50 + 100 + 50) / 3), "length_limit": 50}
    assert (row["n"], row["rank"]) == (2, 1)
    client = client_of("anonymous")
    address = "/api/v1/leaderboards/models/?benchmark=parts&kind=components&source=marker"
    assert client.get(address).json()[0]["categories"] == row["categories"]
    # As printed, points are of ten, also where the weights sum to 8.
    for asked in ("total=ten", "as_printed=1"):
        assert client.get(f"{address}&{asked}").json()[0]["score"] == pytest.approx((50 + 50) / 2)
    assert client.get(f"{address}&as_printed=1&total=weights").json()[0]["score"] == row["score"]
    page = flat(client.get("/leaderboards/parts/models/?kind=components&source=marker"))
    assert "total=ten" in page
    assert "as printed in MIA-Bench" not in page
    page = flat(client.get("/leaderboards/parts/models/?kind=components&source=marker&total=ten"))
    assert "as printed in MIA-Bench" in page


def test_what_a_campaign_says_that_parts_are_worth_counts_unless_campaigns_differ():
    benchmark = kinds.benchmark_of(samples=1)
    change(criteria("mention"), weight=None)  # beside 4 for length and 3.5 for genre

    def labelled(name, worth, points):
        person = User.objects.create_user(name, role="annotator")
        ballot = {"weight": worth}
        campaign = make_campaign(
            name=name, benchmark=benchmark, protocol="components", annotators=[person], ballot=ballot
        )
        now = timezone.now()
        held = next_assignment(campaign=campaign, annotator=make_annotator(person), now=now)
        parts = [{"component": key, "points": value} for key, value in points.items()]
        submit_label(assignment=held, verdict={"parts": parts}, now=now)
        close_campaign(campaign=campaign, now=now)

    labelled("ada", 2.5, {"length": 2, "mention": 2.5, "genre": 3.5})
    scope = scope_of(benchmark="kinds", kind="components", source="humans")
    assert models(scope).as_json()[0]["score"] == pytest.approx(80)
    labelled("ben", 10, {"length": 4, "mention": 10, "genre": 0})
    both = models(scope)
    assert "choose a campaign" in " ".join(both.notes)
    assert both.as_json()[0]["score"] == pytest.approx(100 * (2 + 4 + 3.5 + 0) / 2 / 7.5)  # of the weighted parts alone
    one = models(scope_of(benchmark="kinds", kind="components", source="humans", campaign="ben"))
    assert one.as_json()[0]["score"] == pytest.approx(80)
    assert "choose a campaign" not in " ".join(one.notes)
