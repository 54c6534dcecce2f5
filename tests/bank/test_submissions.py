"""Submissions: what a file must hold, what is stored of it, what it scores, and how many there may be."""

import importlib
import json
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.apps import apps

from bank.criteria import CriteriaAccess
from bank.models import (
    Benchmark,
    EvaluatedModel,
    Response,
    ResponseMark,
    Sample,
    Submission,
    SubmissionCount,
    SubmissionScore,
    ToldScore,
)
from bank.samples.items import make_items, plan_items
from bank.submissions import Closed, Exceeded, NameTaken, Refused, actions, quota
from bank.submissions.scoring import is_kept
from tests.annotations.conftest import at_once
from tests.hidden import criteria

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
LABELS = ("A", "B", "C", "D")
PRIOR = {"first": lambda n: n % 2, "better": lambda n: n % 4, "worse": lambda n: n % 3 == 0}
EVERY = {"open": True, "per_day": None, "in_all": None, "count_failed": False, "private_half": False}


@pytest.fixture
def choices(folder, manage):
    """``choices(dev=4, test=6)``: a benchmark of multiple-choice questions; question n's key is label n mod 4.

    Everybody may see the keys of the splits ``dev`` and ``open``, the others' are staff's.
    """

    def key(split, text):
        shown_to = "public" if split in ("dev", "open") else "staff"
        return {"criteria": [{"key": "answer", "kind": "answer_key", "text": text, "shown_to": shown_to}]}

    def make(slug="choices", yes_no=0, asked="open", **splits):
        rows = [
            {
                "key": f"{split}{n}",
                "instruction": "Which?",
                "split": split,
                "options": {label: f"option {label}" for label in LABELS},
                "level": "Odd" if n % 2 else "Even",
            }
            | key(split, LABELS[n % 4])
            for split, count in splits.items()
            for n in range(count)
        ]
        rows += [
            {"key": f"y{n}", "instruction": "Is it?", "split": asked} | key(asked, "yes" if n % 2 else "no")
            for n in range(yes_no)
        ]
        path = folder("samples", rows, name=f"{slug}.jsonl")
        assert manage("import_benchmark", "generic", path, "--benchmark", slug, "--public")[0] == 0
        return Benchmark.objects.get(slug=slug)

    return make


@pytest.fixture
def allow(people):
    """Opens a benchmark for submissions, without limits unless said."""

    def make(benchmark, *, hidden=(), required=(), **changes):
        given = EVERY | {"hidden_splits": hidden, "required_splits": required} | changes
        return actions.set_rules(by=people["curator"], benchmark=benchmark, **given)

    return make


@pytest.fixture
def send(people, tmp_path):
    """Submits rows as a file: ``send(benchmark, rows, name=...)``."""

    def make(benchmark, rows, *, name="Finch", person=None, now=NOON, raw=None):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        path = folder / f"{name}.jsonl"
        path.write_text(raw if raw is not None else "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        person = person or people["researcher"]
        return actions.submit(person=person, benchmark=benchmark, name=name, path=path, file_name=path.name, now=now)

    return make


def answers(benchmark, *, right=lambda n: True, splits=("dev", "test"), rotations=1):
    """Rows that answer every question, in every rotation asked for; ``right(n)`` says which are right."""
    for key in benchmark.samples.filter(split__in=splits).values_list("key", flat=True):
        n = int("".join(c for c in key if c.isdigit()))
        for shift in range(rotations):
            option = n % 4 if right(n) else (n + 1) % 4
            row = {"sample": key, "text": f"The answer is {LABELS[(option - shift) % 4]}."}
            yield row | ({"variant": f"circular-{shift}"} if shift else {})


def numbers(submission, split, part="whole"):
    return SubmissionScore.objects.get(submission=submission, split=split, part=part).numbers


# ---- the file ----


def test_a_good_file_is_stored_and_scored_and_its_keys_are_read_through_the_log(choices, allow, send):
    benchmark = choices(dev=8, test=20)
    allow(benchmark, hidden=["test"])
    submission = send(benchmark, list(answers(benchmark, right=lambda n: n % 4 < 3)))
    assert submission.state == "scored"
    assert Response.objects.filter(submission=submission, model__name="Finch").count() == 28
    assert numbers(submission, "dev")["vanilla"]["value"] == 0.75
    assert numbers(submission, "test")["vanilla"] | {"low": 0, "high": 0} == {
        "value": 0.75,
        "low": 0,
        "high": 0,
        "n": 20,
        "method": "wilson",
    }
    assert numbers(submission, "test")["extraction"] == {"label": 20, "none": 0, "no_text": 0}
    access = CriteriaAccess.objects.get()
    assert (access.how, access.about, access.sample_count) == ("scoring", f"submission {submission.pk}", 28)


def test_single_marks_are_kept_only_where_everybody_may_see_the_key(choices, allow, send):
    benchmark = choices(dev=4, test=12, val=12)
    allow(benchmark, hidden=["test"])
    send(benchmark, answers(benchmark, right=lambda n: n > 0, splits=["dev", "test", "val"]))
    marks = dict(ResponseMark.objects.values_list("response__sample__key", "right"))
    assert marks == {"dev0": False, "dev1": True, "dev2": True, "dev3": True}
    assert ResponseMark.objects.get(response__sample__key="dev0").option == "B"


def test_every_fault_of_a_file_is_named_and_nothing_is_stored(choices, allow, send):
    benchmark = choices(dev=4)
    allow(benchmark)
    rows = [
        {"sample": "dev0", "text": "A"},
        {"sample": "dev0", "text": "B"},
        {"sample": "elsewhere", "text": "A"},
        {"sample": "dev1", "text": "A", "variant": "circular-4"},
        {"sample": "dev2", "text": "A", "variant": "shuffled"},
        {"sample": "dev1", "text": "A", "model": "Other"},
        {"sample": "dev1", "wrong": "A"},
        {"sample": "dev3", "text": "A", "option_order": ["A", "B"]},
    ]
    submission = send(benchmark, rows)
    assert submission.state == "failed"
    faults = submission.problems
    assert faults["extra"] == ["elsewhere"]
    assert faults["missing"][:2] == ["dev0 (circular-1)", "dev0 (circular-2)"]
    said = {place.rpartition(" ")[2]: f"{field} {reason}" for place, field, reason in faults["problems"]}
    assert said["2"].startswith("sample dev0 was answered already at Finch.jsonl, line 1")
    assert "circular-3 is the last" in said["4"]
    assert "it is left out, or circular-1" in said["5"]
    assert "this submission is of 'Finch'" in said["6"]
    assert said["7"].startswith("wrong ")
    assert said["8"].startswith("option_order ")
    assert not Response.objects.exists()
    assert not EvaluatedModel.objects.exists()
    assert send(benchmark, answers(benchmark)).state == "scored", "the name of a failed one is free"


def test_missing_samples_are_named_for_required_and_begun_splits(choices, allow, send):
    benchmark = choices(dev=3, test=3)
    allow(benchmark, required=["test"])
    missing = send(benchmark, answers(benchmark, splits=["dev"])).problems["missing"]
    assert missing == ["test0", "test1", "test2"]
    assert send(benchmark, answers(benchmark, splits=["test"])).state == "scored"
    begun = [*answers(benchmark, splits=["test"]), {"sample": "dev1", "text": "B"}]
    assert send(benchmark, begun, name="Wren").problems["missing"] == ["dev0", "dev2"]


def test_a_draft_is_as_if_absent(choices, allow, send):
    benchmark = choices(dev=3)
    allow(benchmark)
    Sample.objects.filter(key="dev2").update(status="draft")
    submission = send(benchmark, [{"sample": f"dev{n}", "text": "A"} for n in (0, 1, 2, 9)])
    assert submission.problems["extra"] == ["dev2", "dev9"]
    assert submission.problems["missing"] == []
    raw = "index\tprediction\n7000002\tA\n"  # a rotation that no sample has, of a draft and of what is absent
    said = []
    for key in ("2", "dev2"):
        Sample.objects.filter(status="draft").update(key=key)
        said.append(send(benchmark, [], raw=raw, name=f"m{key}").problems)
    assert said[0]["extra"] == said[1]["extra"] == ["2 (circular-7)"]
    assert said[0]["problem_count"] == said[1]["problem_count"] == 0


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "is empty"),
        ("\n\n", "holds no rows"),
        ('{"sample": "dev0", "text": "A"', "is not JSON"),
        ('{"sample": "dev0", "text": "\\u0000"}\n', "NUL"),
        ("PK\x03\x04", "is an archive"),
        ('{"key": "dev0", "instruction": "?"}\n', "sample"),
    ],
)
@pytest.mark.one_database
def test_a_file_that_cannot_be_read_fails_with_its_reason(raw, reason, choices, allow, send):
    benchmark = choices(dev=1)
    allow(benchmark)
    submission = send(benchmark, [], raw=raw)
    assert submission.state == "failed"
    assert reason in json.dumps(submission.problems["problems"])
    assert "/" not in json.dumps(submission.problems["problems"]), "no folder of the server"


# ---- rotations ----


def test_circular_uploads_are_right_only_where_every_rotation_is(choices, allow, send):
    benchmark = choices(dev=8)
    allow(benchmark)
    rows = list(answers(benchmark, rotations=4))
    rows[3]["text"] = "B"  # dev0 in its last rotation, where the key stands at B: still right
    rows[7]["text"] = "A"  # dev1 in its last rotation shows D first: wrong
    submission = send(benchmark, rows)
    assert submission.counts["circular"] is True
    found = numbers(submission, "dev")
    assert (found["vanilla"]["value"], found["circular"]["value"]) == (1.0, 7 / 8)
    assert found["chance"] == 0.25
    assert ResponseMark.objects.filter(right=False).get().option == "D"


@pytest.mark.one_database
def test_a_missing_rotation_is_named(choices, allow, send):
    benchmark = choices(dev=2)
    allow(benchmark)
    rows = [
        row for row in answers(benchmark, rotations=4) if (row["sample"], row.get("variant")) != ("dev1", "circular-2")
    ]
    assert send(benchmark, rows).problems["missing"] == ["dev1 (circular-2)"]


def test_yes_no_and_open_questions_beside_choices(choices, allow, send):
    benchmark = choices(dev=2, yes_no=4)
    Sample.objects.create(benchmark=benchmark, key="poem", instruction="Write.", split="open", position=99)
    allow(benchmark)
    rows = [*answers(benchmark, splits=["dev"]), *({"sample": f"y{n}", "text": "Yes, it is."} for n in range(4))]
    submission = send(benchmark, [*rows, {"sample": "poem", "text": "Roses"}])
    found = SubmissionScore.objects.get(submission=submission, kind="yes_no").numbers
    assert (found["accuracy"]["value"], found["recall"]["value"], found["yes_ratio"]["value"]) == (0.5, 1.0, 1.0)
    assert submission.counts["unscored"] == 1


def test_what_has_no_key_at_all_is_accepted_without_a_score(choices, allow, send):
    benchmark = choices(dev=1)
    Sample.objects.all().delete()
    Sample.objects.create(benchmark=benchmark, key="poem", instruction="Write.")
    allow(benchmark)
    assert send(benchmark, [{"sample": "poem", "text": "Roses"}]).state == "checked"


# ---- names ----


def test_a_name_that_is_taken_is_refused_with_another_one(choices, allow, send, people):
    first, second = choices(dev=2), choices(slug="second", dev=2)
    allow(first)
    allow(second)
    EvaluatedModel.objects.create(name="Known")
    with pytest.raises(NameTaken, match=r"belongs to another model\. Choose another, for example 'Known-2'"):
        send(first, answers(first), name="Known")
    send(first, answers(first))
    with pytest.raises(NameTaken, match="has been submitted to choices already"):
        send(first, answers(first))
    assert send(second, answers(second)).state == "scored", "one's own name on another benchmark"
    with pytest.raises(NameTaken, match="'Finch-2'"):
        send(second, answers(second), person=people["curator"])
    with pytest.raises(Refused, match="The model's name is empty"):
        send(first, answers(first), name=" ")


# ---- limits ----


def test_limits_per_day_and_in_all_and_when_to_come_back(choices, allow, send):
    benchmark = choices(dev=1)
    allow(benchmark, per_day=2, in_all=3)
    for n in range(2):
        send(benchmark, answers(benchmark), name=f"m{n}")
    with pytest.raises(Exceeded, match="2 times a day") as refused:
        send(benchmark, answers(benchmark), name="m2")
    assert refused.value.retry_after == 12 * 3600 + 1
    send(benchmark, answers(benchmark), name="m2", now=NOON + timedelta(days=1))
    with pytest.raises(Exceeded, match="3 times in all"):
        send(benchmark, answers(benchmark), name="m3", now=NOON + timedelta(days=2))
    assert Submission.objects.count() == 3


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.check("I2")
def test_failed_submissions_count_as_configured(counted, choices, allow, send):
    benchmark = choices(dev=1)
    rules = allow(benchmark, per_day=2, count_failed=counted)
    assert send(benchmark, [{"sample": "x", "text": "A"}]).state == "failed"
    assert quota.left(rules=rules, person=Submission.objects.get().by, now=NOON).today == (1 if counted else 2)


def test_checking_alone_uses_no_submission_but_is_throttled(choices, allow, people, tmp_path):
    benchmark = choices(dev=1)
    rules = allow(benchmark, per_day=1)
    path = tmp_path / "rows.csv"
    path.write_text("sample,text\ndev0,A\n", encoding="utf-8")
    ask = {"person": people["researcher"], "benchmark": benchmark, "name": "Finch", "path": path}
    for _ in range(60):
        assert actions.check_only(**ask, now=NOON).ok
    with pytest.raises(Exceeded, match="an hour") as refused:
        actions.check_only(**ask, now=NOON)
    assert refused.value.retry_after == 3601
    assert actions.check_only(**ask, now=NOON + timedelta(hours=1)).ok
    assert quota.left(rules=rules, person=people["researcher"], now=NOON).today == 1
    assert not Submission.objects.exists()


def test_a_closed_benchmark_takes_nothing(choices, send):
    benchmark = choices(dev=1)
    with pytest.raises(Closed):
        send(benchmark, answers(benchmark))


def test_the_halves_are_drawn_even_until_somebody_has_submitted(choices, allow, send):
    benchmark = choices(test=60)
    seed = allow(benchmark, hidden=["test"], private_half=True).seed
    kept = sum(is_kept(seed=seed, cluster=f"test{n}") for n in range(60))
    assert 27 <= kept <= 33
    send(benchmark, answers(benchmark))
    assert allow(benchmark, hidden=["test"], private_half=True).seed == seed


def patiently(submit):
    """Send a file again while another one of the same person is read."""
    while True:
        try:
            return submit()
        except Exceeded as refused:
            if "is being read" not in str(refused):
                raise
            time.sleep(0.005)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("limits", "asking"), [({"per_day": 7}, 50), ({"in_all": 5}, 50)])
@pytest.mark.check("E1", "I2")
def test_fifty_at_once_use_up_exactly_what_there_is(limits, asking, choices, allow, send):
    benchmark = choices(dev=1)
    allow(benchmark, **limits)

    def one(n):
        try:
            return patiently(lambda: send(benchmark, [{"sample": "dev0", "text": "A"}], name=f"m{n}").state)
        except Exceeded:
            return "refused"

    said = at_once(one, range(asking))
    most = next(iter(limits.values()))
    assert said.count("scored") == Submission.objects.count() == Response.objects.count() == most
    assert said.count("refused") == asking - most
    assert set(SubmissionCount.objects.values_list("used", flat=True)) == {most}


@pytest.mark.django_db(transaction=True)
def test_one_name_submitted_ten_times_at_once_is_one_submission(choices, allow, send):
    benchmark = choices(dev=1)
    allow(benchmark)

    def one(n):
        try:
            return patiently(lambda: send(benchmark, [{"sample": "dev0", "text": "A"}]).state)
        except NameTaken:
            return "taken"

    assert sorted(at_once(one, range(10))) == ["scored"] + ["taken"] * 9


# ---- the hidden split ----


def test_samples_that_share_a_picture_are_in_one_half_and_new_ones_move_none():
    halves = {cluster: is_kept(seed="s", cluster=cluster) for cluster in map(str, range(2000))}
    assert 0.45 < sum(halves.values()) / 2000 < 0.55
    assert any(is_kept(seed="other", cluster=cluster) != half for cluster, half in halves.items())


def test_the_kept_half_is_staffs_until_it_is_released(choices, allow, send, people):
    benchmark = choices(test=60)
    allow(benchmark, hidden=["test"], private_half=True)
    submission = send(benchmark, answers(benchmark, right=lambda n: n % 3))
    parts = dict(SubmissionScore.objects.visible_to(people["researcher"], submission).values_list("part", "n"))
    everything = dict(SubmissionScore.objects.visible_to(people["curator"], submission).values_list("part", "n"))
    assert set(parts) == {"shown"}
    assert everything["shown"] == parts["shown"]
    assert everything["shown"] + everything["kept"] == 60
    actions.release(submission=submission, now=NOON)
    assert SubmissionScore.objects.visible_to(people["researcher"], submission).count() == 2
    with pytest.raises(Refused):
        actions.release(submission=submission, now=NOON)


# ---- what is told of keys that are not open ----


def told(submission, split, kind="choice", *, kept=False):
    """(what was told, the best so far) of a split; None where nothing is stored."""
    rows = ToldScore.objects.filter(submission=submission, split=split, kind=kind, kept=kept)
    return rows.values_list("value", "best").first()


@pytest.mark.one_database
def test_a_score_is_told_in_steps_where_it_beats_the_best_with_any_model(choices, allow, send):
    benchmark = choices(val=100)
    allow(benchmark)

    def sent(name, right):
        rows = list(answers(benchmark, right=lambda n: n < right, splits=["val"]))
        return told(send(benchmark, rows, name=name), "val")

    assert sent("chance", 30) == (None, None), "25 are right by chance"
    assert sent("first", 50) == (0.4, 0.4), "a step of 20"
    assert sent("worse", 5) == (None, 0.4)
    assert sent("the same again", 50) == (None, 0.4)
    assert sent("more than ten above", 51) == (0.5, 0.5), "each that was right before is right: the errors are small"
    assert sent("not by a step", 60) == (None, 0.5)
    assert sent("by a step", 61) == (0.6, 0.6)
    assert sent("worse than the best", 51) == (None, 0.6)


@pytest.mark.one_database
def test_what_differs_much_from_the_best_must_beat_it_by_three_standard_errors(choices, allow, send):
    benchmark = choices(val=100)
    allow(benchmark)
    send(benchmark, list(answers(benchmark, right=lambda n: n < 50, splits=["val"])))
    other = send(benchmark, list(answers(benchmark, right=lambda n: n >= 35, splits=["val"])), name="Wren")
    assert told(other, "val") == (None, 0.4), "15 more are right, and 85 others"


@pytest.mark.one_database
def test_circular_files_are_told_by_all_rotations(choices, allow, send):
    benchmark = choices(val=60)
    allow(benchmark)
    rows = list(answers(benchmark, splits=["val"], rotations=4))
    assert told(send(benchmark, rows), "val") == (1.0, 1.0)
    for row in rows:
        if row.get("variant") == "circular-1":
            row["text"] = "A"
    assert told(send(benchmark, rows, name="Wren"), "val") == (None, 1.0)


def test_withdrawn_submissions_count_and_failed_files_do_not(choices, allow, send, people):
    benchmark = choices(val=100)
    allow(benchmark)
    first = send(benchmark, list(answers(benchmark, right=lambda n: n < 60, splits=["val"])))
    actions.withdraw(submission=first, by=people["researcher"], now=NOON)
    failed = send(benchmark, [{"sample": "val0", "text": "A"}], name="Wren")
    assert failed.state == "failed"
    assert told(failed, "val") is None
    again = send(benchmark, list(answers(benchmark, right=lambda n: n < 60, splits=["val"])), name="Wren")
    assert told(again, "val") == (None, first.told_scores.get().value)


def correct(benchmark, split, count):
    """Staff correct so many keys: the next label is the right one."""
    for row in criteria("answer", sample__benchmark=benchmark, sample__key__in=[f"{split}{n}" for n in range(count)]):
        row.text = LABELS[(LABELS.index(row.text) + 1) % 4]
        row.version += 1
        row.save()


@pytest.mark.parametrize("hidden", [["val"], []])
@pytest.mark.parametrize("count", [1, 90])
@pytest.mark.one_database
def test_a_corrected_key_is_not_read_off_a_score_made_anew(count, hidden, choices, allow, send, people):
    """Scored again, withdrawn and restored: what was told stays told, and staff see the score by today's keys."""
    benchmark = choices(val=100)
    allow(benchmark, hidden=hidden)
    submission = send(benchmark, answers(benchmark, right=lambda n: n < 70, splits=["val"]))
    before = told(submission, "val")
    assert before[0]
    correct(benchmark, "val", count)
    actions.rescore(submission=submission)
    assert told(submission, "val") == before
    assert numbers(submission, "val")["vanilla"]["value"] < 0.7
    actions.withdraw(submission=submission, by=people["researcher"], now=NOON)
    actions.restore(submission=submission, by=people["curator"], reason="so", now=NOON)
    assert told(submission, "val") == before


def test_a_released_figure_stays_when_keys_are_corrected_afterwards(choices, allow, send):
    benchmark = choices(val=120)
    allow(benchmark, private_half=True)
    submission = send(benchmark, answers(benchmark, right=lambda n: n % 3, splits=["val"]))
    assert told(submission, "val", kept=True) is None
    actions.release(submission=submission, now=NOON)
    value, _ = told(submission, "val", kept=True)
    assert value == round(numbers(submission, "val", "kept")["vanilla"]["value"], 2)
    correct(benchmark, "val", 60)
    actions.rescore(submission=submission)
    assert told(submission, "val", kept=True)[0] == value


@pytest.mark.one_database
def test_the_score_to_beat_is_the_best_that_was_told_and_never_one_of_a_kept_half(choices, allow, send):
    benchmark = choices(val=200)
    allow(benchmark, private_half=True)
    seed = actions.rules_of(benchmark).seed
    shown, kept = [], []
    for n in range(200):
        (kept if is_kept(seed=seed, cluster=f"val{n}") else shown).append(n)

    def sent(name, count):
        right = {*shown[:count], *kept}
        return send(benchmark, answers(benchmark, right=lambda n: n in right, splits=["val"]), name=name)

    first = sent("first", 50)
    value, _ = told(first, "val")
    assert 0 < value < 0.9
    actions.release(submission=first, now=NOON)
    assert told(first, "val", kept=True) == (1.0, 1.0)
    better, _ = told(sent("better", 90), "val")
    assert better > value, "the kept half's 100% is no score of the shown one"
    assert told(sent("between the two", 65), "val") == (None, better), "the best is to beat, not the first"


@pytest.mark.one_database
def test_a_release_tells_no_figure_about_few_answers(choices, allow, send):
    benchmark = choices(val=60)
    allow(benchmark, private_half=True)
    rules = actions.rules_of(benchmark)
    kept = [n for n in range(60) if is_kept(seed=rules.seed, cluster=f"val{n}")]
    for count in (1, 9, 20):
        rows = [{"sample": f"val{n}", "text": "A" if n in kept[:count] else "I cannot say."} for n in range(60)]
        submission = send(benchmark, rows, name=f"m{count}")
        actions.release(submission=submission, now=NOON)
        assert bool(told(submission, "val", kept=True)) is (count == 20)


@pytest.mark.one_database
def test_two_models_that_differ_in_few_answers_are_not_both_released(choices, allow, send):
    """The difference of their figures would be about the few keys, as 40 checkpoints of one answer each would show."""
    benchmark = choices(val=80)
    allow(benchmark, private_half=True)
    seed = actions.rules_of(benchmark).seed
    kept = [n for n in range(80) if is_kept(seed=seed, cluster=f"val{n}")]

    def sent(name, wrong):
        return send(benchmark, answers(benchmark, right=lambda n: n not in wrong, splits=["val"]), name=name)

    actions.release(submission=sent("first", ()), now=NOON)
    for count in (1, 9):
        near = sent(f"near by {count}", kept[:count])
        with pytest.raises(Refused, match="its answers differ from those of first, which is released"):
            actions.release(submission=near, now=NOON)
        near.refresh_from_db()
        assert near.released_at is None
        assert told(near, "val", kept=True) is None
    for name, wrong in (("the same", ()), ("far", kept[:10]), ("in the shown half", set(range(80)) - set(kept))):
        actions.release(submission=sent(name, wrong), now=NOON)


def migration(app, name):
    """A function of a migration, whatever number it has."""
    (path,) = Path(app).glob(f"migrations/*_{name}.py")
    return importlib.import_module(f"{app}.migrations.{path.stem}")


def test_an_installation_of_before_keeps_what_it_told(choices, allow, send):
    """The best shown figure of a person is the one to beat, and what was released stays so."""
    benchmark = choices(val=120)
    allow(benchmark, private_half=True)
    rows = {name: list(answers(benchmark, right=right, splits=["val"])) for name, right in PRIOR.items()}
    before = [send(benchmark, rows[name], name=name) for name in PRIOR]
    actions.release(submission=before[0], now=NOON)
    ToldScore.objects.all().delete()
    migration("bank", "submissions_follow_the_ladder").keep_what_was_told(apps, None)
    shares = [round(numbers(one, "val", "shown")["vanilla"]["value"], 2) for one in before]
    assert [told(one, "val") for one in before] == [
        (share, max(shares[: place + 1])) for place, share in enumerate(shares)
    ]
    assert [told(one, "val", kept=True) is not None for one in before] == [True, False, False]
    after = send(benchmark, rows["better"], name="after")
    assert told(after, "val") == (None, max(shares))


# ---- afterwards ----


@pytest.mark.check("I5")
def test_a_withdrawn_submission_stays_and_comes_back_with_its_scores(choices, allow, send, people):
    benchmark = choices(dev=2)
    allow(benchmark)
    submission = send(benchmark, answers(benchmark))
    actions.withdraw(submission=submission, by=people["researcher"], reason="a bug", now=NOON)
    assert Submission.objects.get().state == "withdrawn"
    assert Response.objects.count() == 2
    for again in (
        lambda: actions.withdraw(submission=submission, by=people["researcher"], now=NOON),
        lambda: actions.rescore(submission=submission),
        lambda: send(benchmark, answers(benchmark)),
    ):
        with pytest.raises(Refused):
            again()
    other = send(benchmark, answers(benchmark), name="Wren")
    assert make_items(plan_items(kind="score", benchmark=benchmark)) == (2, 2), "of Wren's answers alone"
    assert other.state == "scored"
    actions.restore(submission=submission, by=people["curator"], reason="no bug", now=NOON)
    assert (submission.state, submission.reason) == ("scored", "no bug")
    assert numbers(submission, "dev")["vanilla"]["value"] == 1.0


def test_others_do_not_see_what_somebody_submitted(choices, allow, send, people, client_of):
    benchmark = choices(dev=2)
    allow(benchmark)
    send(benchmark, answers(benchmark), person=people["curator"])
    assert client_of("researcher").get("/api/v1/responses/").json()["results"] == []
    assert client_of("anonymous").get("/api/v1/models/").json()["results"] == []
    assert len(client_of("curator").get("/api/v1/responses/").json()["results"]) == 2
