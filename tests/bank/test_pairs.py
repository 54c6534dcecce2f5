"""Comparisons of one's own and battles of an arena: what becomes a record, and what is told by row."""

import hashlib
import json
import re
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotations.models import Label, new_pseudonym
from bank.intake import formats
from bank.intake.formats import battles, pairs, templates
from bank.intake.formats.reading import BadRow, Problem
from bank.intake.imports.sources import inspect
from bank.intake.uploads import worker
from bank.models import Item, Response, Sample, Upload
from judging.models import Judgment
from tests.bank.conftest import picture
from tests.bank.test_formats import read
from tests.markup import flat

ROW = {
    "prompt": "Name a colour.",
    "model_a": "m1",
    "response_a": "Red.",
    "model_b": "m2",
    "response_b": "Blue, maybe.",
}
ROW |= {"winner": "model_a"}
OTHER = ROW | {"prompt": "Name a fish.", "response_a": "Cod.", "response_b": "Eel."}


def turns(*said):
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(said)]


BATTLE = {"question_id": "58210e39", "model_a": "m1", "model_b": "m2", "winner": "model_b", "judge": "arena_user_973"}
BATTLE |= {"conversation_a": turns("Hi", "Hello."), "conversation_b": turns("Hi", "Hey!"), "turn": 1, "anony": True}
BATTLE |= {"language": "English", "tstamp": 1690000000.5}


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


# Comparisons


@pytest.mark.parametrize("name", ["own.csv", "own.tsv", "own.jsonl", "own.json", "own.parquet"])
def test_the_same_comparisons_are_read_from_every_kind_of_table(name, write, tmp_path):
    rows = [ROW, ROW | {"prompt": "Name a fish.", "winner": "tie"}]
    if name == "own.parquet":
        path = tmp_path / name
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path = write(name, rows)
    assert formats.find("auto", path) is pairs
    assert inspect(path).parts == ("samples", "responses", "labels")
    samples, bad, odd = read(pairs.samples, path)
    assert [s.instruction for s in samples] == ["Name a colour.", "Name a fish."]
    responses, *_ = read(pairs.responses, path)
    assert [(r.sample, r.model, r.text) for r in responses[:2]] == [
        (samples[0].key, "m1", "Red."),
        (samples[0].key, "m2", "Blue, maybe."),
    ]
    labels, *_ = read(pairs.labels, path)
    assert [(x.sample, x.choice, x.annotator) for x in labels] == [
        (samples[0].key, "first", "human"),
        (samples[1].key, "tie", "human"),
    ]
    assert (bad, odd) == ([], [])


def test_a_question_without_an_id_is_named_by_a_hash_of_itself_and_its_picture(write):
    rows = [ROW, ROW | {"image": "a.png"}, ROW | {"image": "https://x.org/a.png"}, ROW]
    samples, *_ = read(pairs.samples, write("own.jsonl", rows))
    assert samples[0].key == hashlib.sha256(b'["Name a colour."]').hexdigest()[:16]
    assert len({s.key for s in samples}) == len(samples) == 3
    assert [(s.group, [(i.file, i.url, i.required) for i in s.images]) for s in samples] == [
        ("", []),
        ("a.png", [("a.png", "", False)]),
        ("https://x.org/a.png", [("", "https://x.org/a.png", False)]),
    ]


def test_an_id_that_stands_for_two_questions_is_told_by_row(write):
    path = write("own.jsonl", [ROW | {"id": 7}, OTHER | {"id": 7}, ROW | {"id": 7, "winner": "tie"}])
    samples, bad, _ = read(pairs.samples, path)
    assert [s.key for s in samples] == ["7"]
    assert bad == ["own.jsonl, line 2: id: '7' stands with another question or picture at own.jsonl, line 1"]


@pytest.mark.parametrize(
    ("winner", "means"),
    [(word, "first") for word in ("model_a", "A", "a", "[[A]]", "left", "m1", " Model_A ")]
    + [(word, "second") for word in ("model_b", "B", "m2")]
    + [(word, "tie") for word in ("tie", "C", "[[C]]", "Tie")]
    + [(word, "both bad") for word in ("tie (bothbad)", "both_bad", "bothbad")],
)
def test_who_won_may_be_said_by_side_word_or_name(winner, means):
    assert pairs.winner_of(winner, ["m1", "m2"]) == means


@pytest.mark.parametrize("winner", ["m3", "1", "model_c", 1, None, "", True, "invalid"])
def test_any_other_word_for_who_won_is_told_and_never_guessed(winner):
    with pytest.raises(BadRow, match="winner"):
        pairs.winner_of(winner, ["m1", "m2"])


def test_a_model_named_like_the_other_side_makes_its_win_unclear():
    assert pairs.winner_of("A", ["A", "B"]) == "first"
    with pytest.raises(BadRow, match="may mean either"):
        pairs.winner_of("A", ["B", "A"])


def test_a_row_that_does_not_say_who_won_brings_its_answers_and_is_told(write):
    path = write("own.csv", [ROW | {"winner": "1"}, OTHER | {"winner": ""}])
    assert inspect(path).parts == ("samples", "responses", "labels")
    assert [len(read(reader, path)[0]) for reader in (pairs.samples, pairs.responses)] == [2, 4]
    labels, bad, _ = read(pairs.labels, path)
    assert labels == []
    assert bad == [
        "own.csv, line 2: winner: '1' is none of model_a, model_b, tie, both_bad and the two models",
        "own.csv, line 3: winner: is missing",
    ]


def test_verdicts_are_by_annotators_or_judges_as_the_columns_say(write):
    rows = [ROW | {"annotator": "ada", "winner": "both_bad", "comment": "Neither."}]
    rows += [ROW | {"judge": "gpt-4o", "rationale": "Shorter."}, ROW | {"judge": "gpt-4o", "annotator": "ada"}, ROW]
    path = write("own.jsonl", rows)
    assert inspect(path).parts == ("samples", "responses", "judgments", "labels")
    labels, bad, _ = read(pairs.labels, path)
    assert [(x.annotator, x.choice, x.flags, x.comment) for x in labels] == [("ada", "tie", ["both bad"], "Neither.")]
    assert bad == [
        "own.jsonl, line 3: judge: stands beside an annotator; a verdict is by one of them",
        "own.jsonl, line 4: annotator: is missing, although other rows name theirs",
    ]
    judgments, bad, _ = read(pairs.judgments, path)
    assert [(x.judge, x.choice, x.analysis) for x in judgments] == [("gpt-4o", "first", "Shorter.")]
    assert bad == []


def test_a_row_that_names_nobody_among_verdicts_of_judges_is_told_as_a_label(write):
    path = write("own.jsonl", [ROW | {"judge": "gpt-4o"}, ROW])
    assert inspect(path).parts == ("samples", "responses", "judgments", "labels")
    assert read(pairs.labels, path)[:2] == (
        [],
        ["own.jsonl, line 2: annotator: is missing, although other rows name theirs"],
    )
    assert inspect(write("judged.jsonl", [ROW | {"judge": "gpt-4o"}])).parts == ("samples", "responses", "judgments")


def test_several_verdicts_on_a_pair_by_nobody_named_are_by_as_many_people_and_told(write):
    turned = ROW | {"model_a": "m2", "response_a": ROW["response_b"], "model_b": "m1", "response_b": ROW["response_a"]}
    labels, bad, odd = read(pairs.labels, write("own.jsonl", [ROW, turned, OTHER, ROW]))
    assert [x.annotator for x in labels] == ["human", "human 2", "human", "human 3"]
    assert bad == []
    assert odd[0] == (
        "own.jsonl, line 2: annotator: nobody is named, and this pair has a verdict above; kept as by 'human 2'"
    )


def test_a_second_answer_of_a_model_is_a_variant_and_an_empty_one_an_empty_answer(write):
    path = write("own.csv", [ROW, ROW | {"response_a": "Green.", "response_b": ""}])
    responses, bad, odd = read(pairs.responses, path)
    assert [(r.model, r.text, r.known_status) for r in responses] == [
        ("m1", "Red.", "ok"),
        ("m2", "Blue, maybe.", "ok"),
        ("m1", "Green.", "ok"),
        ("m2", "", "empty"),
    ]
    assert responses[2].variant == hashlib.sha256(b"Green.").hexdigest()[:8]
    assert bad == []
    assert "response_b: is empty; kept as an empty answer" in odd[1]
    labels, *_ = read(pairs.labels, path)
    assert [[ref.variant != "" for ref in label.responses] for label in labels] == [[False, False], [True, True]]


def test_columns_that_are_not_read_are_told_once(write):
    path = write("own.jsonl", [ROW | {"cost": 1, "run": 2}, OTHER | {"cost": 2}])
    _, bad, odd = read(pairs.samples, path)
    assert (bad, odd) == ([], ["own.jsonl, line 1: these columns are not read: cost, run"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prompt": " "}, "prompt: is missing"),
        ({"prompt": 5}, "prompt: is no text"),
        ({"model_a": ""}, "model_a: is missing"),
        ({"model_b": ["m2"]}, "model_b: is no name"),
        ({"response_a": {"text": "Red."}}, "response_a: is no text"),
        ({"id": [1]}, "id: is neither text nor a whole number"),
        ({"image": 5}, "image: is neither a path, an address nor a picture"),
    ],
)
def test_a_row_that_is_no_comparison_is_told_with_its_field(change, told, write):
    path = write("own.jsonl", [ROW | change])
    for reader in (pairs.samples, pairs.responses, pairs.labels):
        assert read(reader, path)[1] == [f"own.jsonl, line 1: {told}"]


def test_pictures_in_parquet_come_in_from_their_bytes(tmp_path):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.Table.from_pylist([ROW | {"image": {"bytes": picture(), "path": "a.png"}}]), path)
    samples, bad, _ = read(pairs.samples, path)
    assert bad == []
    assert [image.data for image in samples[0].images] == [picture()]


# Battles


def test_a_battle_is_a_sample_two_answers_and_a_vote_by_the_person_in_its_judge_column(write):
    path = write("battles.jsonl", [BATTLE, BATTLE | {"question_id": "q2", "winner": "tie (bothbad)", "anony": False}])
    assert formats.find("auto", path) is battles
    assert inspect(path).parts == ("samples", "responses", "labels")
    samples, bad, odd = read(formats.reader(battles, "samples"), path)
    assert [s.key for s in samples] == ["58210e39", "q2"]
    assert (samples[0].instruction, samples[0].language) == ("Hi", "English")
    assert (bad, odd) == ([], [])
    responses, *_ = read(formats.reader(battles, "responses"), path)
    assert [(r.model, r.text) for r in responses[:2]] == [("m1", "Hello."), ("m2", "Hey!")]
    labels, *_ = read(formats.reader(battles, "labels"), path)
    assert [(x.annotator, x.choice, x.flags) for x in labels] == [
        ("arena_user_973", "second", []),
        ("arena_user_973", "tie", ["both bad", "names shown"]),
    ]
    assert labels[0].at == datetime(2023, 7, 22, 4, 26, 40, 500_000, tzinfo=UTC)


def test_the_vote_of_gpt_4_on_mt_bench_is_a_judgment(write):
    path = write("battles.jsonl", [BATTLE, BATTLE | {"judge": "gpt4_pair"}])
    assert [x.judge for x in read(formats.reader(battles, "judgments"), path)[0]] == ["gpt4_pair"]
    assert [x.annotator for x in read(formats.reader(battles, "labels"), path)[0]] == ["arena_user_973"]


def test_earlier_turns_stand_above_the_judged_one_and_each_turn_is_a_sample(write):
    two = {
        "conversation_a": turns("Hi", "Hello.", "Again", "Hello!"),
        "conversation_b": turns("Hi", "Hey!", "Again", "Yo"),
    }
    rows = [BATTLE | two | {"question_id": 81, "turn": number} for number in (1, 2)]
    path = write("battles.jsonl", [*rows, without(BATTLE | two, "turn") | {"question_id": "x"}])
    samples, bad, _ = read(formats.reader(battles, "samples"), path)
    assert bad == []
    both = "**Turn 1**\n\nHi\n\n**Turn 2**\n\nAgain"
    assert [(s.key, s.instruction) for s in samples] == [("81", "Hi"), ("81-2", both), ("x-2", both)]
    responses, *_ = read(formats.reader(battles, "responses"), path)
    assert [r.text for r in responses[:4]] == [
        "Hello.",
        "Hey!",
        "**Turn 1**\n\nHello.\n\n**Turn 2**\n\nHello!",
        "**Turn 1**\n\nHey!\n\n**Turn 2**\n\nYo",
    ]


def test_messages_in_parts_are_read_and_votes_without_a_name_are_by_one(write):
    """As in LMArena's sets of 2025."""

    def in_parts(said):
        return [
            {"role": one["role"], "content": [{"type": "text", "text": one["content"], "image": None}]} for one in said
        ]

    row = without(BATTLE, "judge", "turn", "anony", "tstamp", "question_id") | {"id": "v1", "winner": "both_bad"}
    row |= {name: in_parts(row[name]) for name in ("conversation_a", "conversation_b")} | {"is_code": False}
    path = write("train.jsonl", [row, row | {"id": "v2"}])
    assert [s.instruction for s in read(formats.reader(battles, "samples"), path)[0]] == ["Hi", "Hi"]
    assert [(x.annotator, x.choice) for x in read(formats.reader(battles, "labels"), path)[0]] == [
        ("human", "tie"),
        ("human", "tie"),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"turn": 2}, "turn: is 2, but the conversations have 1"),
        ({"turn": "x"}, "turn: is no number of turns"),
        ({"conversation_b": turns("Hello", "Hey!")}, "conversation_b: asks something else than conversation_a"),
        ({"conversation_a": []}, "conversation_a: is no list of messages"),
        ({"conversation_a": turns("Hi")[:1] * 2}, "conversation_a: message 2 is not by the assistant"),
        (
            {"conversation_b": [{"role": "user", "content": [{"type": "image", "image": "x"}]}]},
            "conversation_b: holds a message with more than text, which is not read",
        ),
    ],
)
def test_a_battle_whose_conversations_do_not_fit_is_told(change, told, write):
    assert read(formats.reader(battles, "samples"), write("battles.jsonl", [BATTLE | change]))[1] == [
        f"battles.jsonl, line 1: {told}"
    ]


def test_a_language_with_a_long_name_is_left_out_and_told(write):
    samples, bad, odd = read(
        formats.reader(battles, "samples"), write("b.jsonl", [BATTLE | {"language": "Chinese Traditional"}])
    )
    assert (samples[0].language, bad) == ("", [])
    assert odd == ["b.jsonl, line 1: language: 'Chinese Traditional' has more than 16 characters; left out"]


# Into the bank


@pytest.mark.django_db
def test_a_dropped_file_of_comparisons_leads_to_its_board(client_of, media):
    curator, answers = client_of("curator"), {"m1": "Red.", "m2": "Blue.", "m3": "Green."}
    rows = [
        ROW
        | {"prompt": f"Colour {number}?", "model_a": first, "response_a": answers[first], "winner": winner}
        | {"model_b": second, "response_b": answers[second], "annotator": "ada"}
        for number, winner in enumerate(["model_a", "tie", "B", "m1"])
        for first, second in (("m1", "m2"), ("m3", "m1"))
    ]
    rows.append(without(rows[0], "annotator") | {"judge": "gpt-4o"})
    file = SimpleUploadedFile("My comparisons.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    curator.post("/bank/uploads/", {"files": [file]})
    worker.work_all()
    upload = Upload.objects.get()
    assert (upload.state, upload.fault, upload.found["bad"]) == ("checked", "", 0)
    proposed = upload.found["proposed"]
    assert proposed["benchmark"] == "my-comparisons", "the name of the file, not that of the format"
    assert pairs.TITLE in flat(curator.get(f"/bank/uploads/{upload.pk}/"))
    curator.post(f"/bank/uploads/{upload.pk}/confirm/", proposed)
    worker.work_all()
    upload.refresh_from_db()
    assert (upload.state, upload.fault) == ("done", "")
    made = [table.objects.count() for table in (Sample, Response, Item, Label, Judgment)]
    assert made == [4, 12, 8, 8, 1]
    assert 'hx-get="/leaderboards/my-comparisons@1/steps/"' in flat(curator.get(f"/bank/uploads/{upload.pk}/"))
    steps = flat(curator.get("/leaderboards/my-comparisons@1/steps/"))
    assert re.search(r'href="/leaderboards/my-comparisons@1/models/" ?>Open the board', steps)
    assert 'href="/leaderboards/my-comparisons@1/judges/"' in steps, "a person's and a judge's verdicts in one file"
    board = flat(curator.get("/leaderboards/my-comparisons@1/models/"))
    assert all(name in board for name in answers)


def test_thousands_of_people_in_one_file_have_pseudonyms_of_their_own():
    assert len({new_pseudonym() for _ in range(20_000)}) == 20_000


@pytest.mark.django_db
def test_importing_the_same_comparisons_again_changes_nothing(folder, manage):
    path = folder("", [], name="own.jsonl", raw="".join(json.dumps(row) + "\n" for row in (ROW, OTHER, ROW)).encode())
    commands = ("import_benchmark", "import_responses", "import_labels")
    for command in commands:
        assert manage(command, "auto", path, "--benchmark", "own")[0] == 0
    assert Label.objects.count() == 3
    for command in commands:
        assert "were there already" in manage(command, "auto", path, "--benchmark", "own")[1]
    assert Label.objects.count() == 3


def test_only_comparisons_are_taken_for_comparisons(write):
    for number, row in enumerate(
        [without(ROW, "winner"), without(ROW, "response_b"), without(BATTLE, "conversation_b")]
    ):
        assert not pairs.recognises(write(f"{number}.jsonl", [row]))


def test_the_template_of_comparisons_comes_in_as_it_is(write):
    for shape in templates.SHAPES:
        path = write(f"mine.{shape}", templates.as_file("pairs", shape))
        assert formats.find("auto", path) is pairs
        found = [read(reader, path) for reader in (pairs.samples, pairs.responses, pairs.labels)]
        assert [(len(records), bad, odd) for records, bad, odd in found] == [(2, [], []), (4, [], []), (3, [], [])]


def test_no_row_is_lost_in_silence(write):
    rows = [ROW, {}, OTHER | {"winner": "?"}, OTHER | {"model_a": None}, ROW | {"winner": "B"}]
    path = write("own.jsonl", rows)
    found = list(pairs.labels(path))
    lines = {row.where.line for row in found if not (isinstance(row, Problem) and row.warning)}
    assert lines == {1, 2, 3, 4, 5}
