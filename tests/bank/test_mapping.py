"""Tables with columns of any name: what is proposed, what a map makes of them, and the way by page, API and command."""

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotations.models import Label
from bank.errors import BadInput
from bank.intake import formats
from bank.intake.formats import mapping
from bank.intake.formats.mapping import Column, ColumnMap, Mapped
from bank.intake.formats.reading import Problem
from bank.intake.uploads import staging, worker
from bank.models import KeptMap, Sample, Upload
from judging.models import Judgment
from tests.bank.test_formats import read
from tests.bank.test_uploads import api, get, post, sent, staged  # noqa: F401
from tests.markup import flat

# The table of the mock-up: names in German, one word for a verdict that nothing knows.
HEADER = ["Bild", "Frage", "Modell A", "Antwort A", "Modell B", "Antwort B", "Urteil", "wer", "Notiz"]
ROWS = [
    [
        "a.jpg",
        "Wie viel zahlt jede Person?",
        "Wren",
        "Jede zahlt 23,40 €.",
        "Kestrel",
        "Es sind 46 €.",
        word,
        who,
        "",
    ]
    for word, who in (("A", "p1"), ("B", "p2"), ("gleich", "p3"), ("beide schlecht", "p4"))
]
MEANT = {
    "prompt": "frage",
    "model_a": "modell a",
    "response_a": "antwort a",
    "model_b": "modell b",
    "response_b": "antwort b",
    "winner": "urteil",
    "image": "bild",
    "annotator": "wer",
    "comment": "notiz",
}
WORDS = {"A": "model_a", "B": "model_b", "gleich": "tie", "beide schlecht": "both_bad"}
MAP = {"shape": "pairs", "columns": {k: v for k, v in MEANT.items() if k != "comment"}, "values": {"winner": WORDS}}


def table(rows=ROWS, header=HEADER):
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode()


def nearest(path):
    return mapping.proposals(mapping.survey(path)[1])


# What is proposed


def test_columns_are_found_by_their_names_in_other_languages(write):
    path = write("votes.csv", [dict(zip(HEADER, [*row[:-1], "noch einmal"], strict=True)) for row in ROWS])
    first = nearest(path)[0]
    assert (first.shape, first.columns, first.missing, first.unknown) == ("pairs", MEANT, [], [])
    assert mapping.open_values(first.map, mapping.survey(path)[1]) == {"winner": dict.fromkeys(WORDS, 1)}
    assert [mapping.meaning_of("winner", word) for word in WORDS] == ["model_a", "model_b", "", ""]


def test_columns_without_a_known_name_are_found_by_what_they_hold(write):
    rows = [
        {
            "c1": f"{n}.png",
            "c2": f"What is on picture number {n}?",
            "c3": "wren" if n % 2 else "kestrel",
            "c4": f"I see a bird with {n} feathers.",
            "c5": "kestrel" if n % 2 else "wren",
            "c6": f"There is nothing but {n} clouds.",
            "c7": "left" if n % 3 else "tie",
            "c8": f"p{n % 2}",
        }
        for n in range(1, 9)
    ]
    first = nearest(write("x.csv", rows))[0]
    assert first.columns == {
        "prompt": "c2",
        "model_a": "c3",
        "response_a": "c4",
        "model_b": "c5",
        "response_b": "c6",
        "winner": "c7",
        "image": "c1",
        "annotator": "c8",
    }
    assert first.by_content == set(first.columns)


def test_objects_and_lists_in_a_row_are_columns_by_their_paths(write):
    row = {"doc": {"question": "What is this?", "id": "7"}, "resps": [["A very long answer to it."]], "score": 1.0}
    path = write("x.jsonl", [row])
    assert [column.name for column in mapping.survey(path)[1]] == ["doc.question", "doc.id", "resps.0.0", "score"]
    columns = {"prompt": "doc.question", "key": "doc.id", "response": "resps.0.0", "score": "score"}
    mapped = Mapped(ColumnMap(shape="answers", columns=columns, constants={"model": "m", "judge": "exact match"}))
    judgments, bad, _ = read(formats.reader(mapped, "judgments"), path)
    assert (bad, judgments[0].sample, judgments[0].judge, judgments[0].score) == ([], "7", "exact match", 1.0)


@pytest.mark.parametrize(
    ("row", "shape", "columns"),
    [
        (
            {"id": 1, "input": "How many?", "target": "B", "choices": ["1", "2"]},  # a data set of Inspect
            "samples",
            {"key": "id", "instruction": "input", "answer": "target", "options": "choices"},
        ),
        (
            {"id": "p1", "prompt": "Which is it?", "responses": ["It is this one.", "It is that one."]},  # Potato
            "pairs",
            {"key": "id", "prompt": "prompt", "response_a": "responses.0", "response_b": "responses.1"},
        ),
        (
            {
                "id": "plan_0",
                "capability": "planning",
                "input": "Plan a day in the town.",
                "response": "First the museum.",
                "response_model_name": "m",
                "feedback": "Too short by far.",
                "score": 2,
                "eval_model_name": "j",
            },  # BiGGen Bench
            "answers",
            {
                "key": "id",
                "prompt": "input",
                "response": "response",
                "model": "response_model_name",
                "score": "score",
                "judge": "eval_model_name",
                "comment": "feedback",
                "category": "capability",
            },
        ),
    ],
)
def test_what_other_tools_call_their_columns_is_proposed(row, shape, columns, write):
    proposal = mapping.proposals(mapping.survey(write("x.jsonl", [row] * 3))[1])[0]
    assert (proposal.shape, dict(proposal.columns)) == (shape, columns)


def test_pairs_without_a_verdict_come_in_to_be_judged_here(write):
    row = {"prompt": "Which is it?", "responses": ["This.", "That."]}
    columns = {"prompt": "prompt", "response_a": "responses.0", "response_b": "responses.1"}
    mapped = Mapped(
        mapping.checked({"shape": "pairs", "columns": columns, "constants": {"model_a": "a", "model_b": "b"}})
    )
    path = write("x.jsonl", [row])
    assert formats.parts(mapped, path) == {"samples", "responses"}
    responses, bad, _ = read(formats.reader(mapped, "responses"), path)
    assert ([(one.model, one.text) for one in responses], bad) == ([("a", "This."), ("b", "That.")], [])


def test_objects_named_one_by_one_are_rows_as_those_of_a_list_are(tmp_path):
    path = tmp_path / "evals.json"
    rows = {f"plan_{n}": {"prompt": f"Plan {n}", "model": "m", "response": "No.", "score": n} for n in (1, 2)}
    path.write_text(json.dumps(rows, indent=1))
    found = formats.find("auto", path)
    samples, bad, _ = read(formats.reader(found, "samples"), path)
    assert (found.NAME, [one.instruction for one in samples], bad) == ("answers", ["Plan 1", "Plan 2"], [])


def test_a_file_of_no_format_says_what_it_comes_nearest_to_and_how_to_map_it(write):
    row = {"instruction": "?", "output_1": "x", "generator_1": "m", "output_2": "y", "generator_2": "n", "cost": 2}
    with pytest.raises(formats.UnknownFormat) as caught:
        formats.find("auto", write("x.jsonl", [row]))
    words = str(caught.value)
    assert "nearest to comparisons of models, 5 of 6 columns known" in words
    assert "response_a (your output_1?)" in words
    assert "winner" in words
    assert "--propose-map" in words


# What a map makes of a table


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ([], "no object"),
        ({"shape": "pairs"}, "columns: Field required"),
        ({"shape": "triples", "columns": {}}, "shape: "),
        ({"shape": "pairs", "columns": {"colour": "x"}}, "pairs have no 'colour'; they have prompt, model_a"),
        ({"shape": "pairs", "columns": {"winner": 5}}, "columns.winner: "),
        ({"shape": "pairs", "columns": {}, "more": 1}, "more: "),
        ({"shape": "pairs", "columns": {"judge": "x"}, "constants": {"judge": "y"}}, "judge is a column and the same"),
    ],
)
def test_a_map_that_is_wrong_is_told_where(definition, told):
    with pytest.raises(BadInput, match="map") as caught:
        mapping.checked(definition)
    assert told in str(caught.value)


def test_words_that_yaml_takes_for_numbers_or_truth_are_words(write):
    text = "shape: pairs\ncolumns: {winner: w}\nvalues: {winner: {1: model_a, yes: model_b, 0.5: tie}}\n"
    assert mapping.from_text(text).values["winner"] == {"1": "model_a", "yes": "model_b", "0.5": "tie"}
    with pytest.raises(BadInput, match="not YAML"):
        mapping.from_text("shape: [")


def test_a_word_that_stands_for_nothing_is_a_bad_row_and_so_is_a_row_without_its_column(write, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(table())
    known = {"A": "model_a", "B": "model_b"}
    labels, bad, _ = read(formats.reader(Mapped(mapping.checked(MAP | {"values": {"winner": known}})), "labels"), path)
    assert [(x.annotator, x.choice) for x in labels] == [("p1", "first"), ("p2", "second")]
    assert bad == [
        "votes.csv, line 4: winner: 'gleich' stands for nothing in the map",
        "votes.csv, line 5: winner: 'beide schlecht' stands for nothing in the map",
    ]


TEXT = st.characters(exclude_characters="\0", exclude_categories=("Cs",))  # all that a map may name


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.sampled_from(mapping.FIELDS["pairs"]), st.text(TEXT, max_size=8), max_size=4),
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=6) | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    ),
)
def test_any_map_of_any_row_gives_records_or_reasons(tmp_path_factory, columns, value):
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    path.write_text(json.dumps({name or "x": value for name in columns.values()} | {"z": value}))
    mapped = Mapped(ColumnMap(shape="pairs", columns=columns))
    for part in ("samples", "responses", "labels"):
        assert all(row.reason for row in formats.reader(mapped, part)(path) if isinstance(row, Problem))
    mapping.proposals(mapping.survey(path)[1])


def test_columns_alone_are_enough_to_propose():
    assert mapping.proposals([Column("key"), Column("instruction")])[0].shape == "samples"
    assert mapping.proposals([Column("foo")])[0].columns == {}


# By page, API and command


@pytest.fixture
def unknown(sent):  # noqa: F811
    """An upload of the table, surveyed."""

    def make(data=None, name="votes.csv"):
        upload = sent({name: table() if data is None else data})
        assert worker.work(upload)
        upload.refresh_from_db()
        return upload

    return make


def checked_again(upload):
    assert worker.work(upload)
    upload.refresh_from_db()
    assert upload.state == "checked", upload.fault
    return upload


def as_form(form, **changed):
    return {name: field.value() or "" for name in form.fields for field in [form[name]]} | changed


@pytest.mark.django_db
def test_an_unknown_table_is_a_page_of_columns_and_becomes_a_board(unknown, client_of):
    upload = unknown()
    assert (upload.state, upload.found["rows"]) == ("mapping", 4)
    client = client_of("curator")
    answer = client.get(f"/bank/uploads/{upload.pk}/", follow=True)
    page = flat(answer.content.decode())
    assert answer.redirect_chain[0][0].endswith("/columns/")
    assert "The column names are new to us." in page
    assert "Jede zahlt 23,40" in page
    form = answer.context["form"]
    words = {f"value-winner-{n}": WORDS[word] for n, word in enumerate(form.words["winner"])}
    answer = client.post(f"/bank/uploads/{upload.pk}/columns/", as_form(form, shape="pairs", keep="on", **words))
    assert answer.status_code == 302
    upload.refresh_from_db()
    checked_again(upload)
    assert upload.found["bad"] == 0
    assert upload.map["columns"]["prompt"] == "frage"
    assert "Change the columns" in flat(client.get(f"/bank/uploads/{upload.pk}/"))
    data = {
        "benchmark": "votes",
        "version": "1",
        "title": "Votes",
        "visibility": "private",
        "parts": upload.found["parts"],
    }
    client.post(f"/bank/uploads/{upload.pk}/confirm/", data)
    assert worker.work(upload)
    assert [label.choice for label in Label.objects.order_by("pk")] == ["first", "second", "tie", "tie"]
    assert "Open the board" in flat(client.get("/leaderboards/votes@1/steps/"))


@pytest.mark.django_db
def test_a_map_is_remembered_for_files_with_the_same_columns_and_only_where_that_was_asked(unknown, api):  # noqa: F811
    for keep, state in ((False, "mapping"), (True, "checked")):
        upload = unknown()
        api("post", f"uploads/{upload.pk}/map/", {"map": MAP, "keep": keep})
        upload.refresh_from_db()
        checked_again(upload)
        api("post", f"uploads/{upload.pk}/confirm/", {"benchmark": "votes", "skip_bad": True})
        while worker.work(upload):
            upload.refresh_from_db()
            if upload.state == "checked":
                api("post", f"uploads/{upload.pk}/confirm/", {})
        upload.refresh_from_db()
        assert upload.state == "done", upload.fault
        again = unknown(name="more.csv")
        assert again.state == state
    assert KeptMap.objects.get().map["columns"]["winner"] == "urteil"
    assert again.found["format_title"].startswith("Columns as ")
    other = unknown(table(header=["Foto", *HEADER[1:]]))
    assert other.state == "mapping"


@pytest.mark.django_db
def test_columns_chosen_badly_are_told_on_the_page_and_nothing_is_checked(unknown, client_of):
    upload = unknown()
    form = client_of("curator").get(f"/bank/uploads/{upload.pk}/columns/").context["form"]
    twice = client_of("curator").post(
        f"/bank/uploads/{upload.pk}/columns/", as_form(form, **{"column-0": "prompt", "shape": "pairs"})
    )
    assert twice.status_code == 422
    assert "frage is Question already" in flat(twice) or "bild is Question already" in flat(twice)
    place = next(number for number, column in enumerate(form.columns) if column.name == "frage")
    lacking = client_of("curator").post(
        f"/bank/uploads/{upload.pk}/columns/", as_form(form, **{f"column-{place}": "", "shape": "pairs"})
    )
    assert "No column holds Question" in flat(lacking)
    upload.refresh_from_db()
    assert upload.state == "mapping"


@pytest.mark.django_db
def test_a_script_maps_by_what_is_proposed_and_is_told_what_is_wrong(unknown, api):  # noqa: F811
    upload = unknown()
    found = api("get", f"uploads/{upload.pk}/").json()["found"]
    assert found["nearest"][0]["shape"] == "pairs"
    assert "Jede" not in json.dumps(found), "rows are not told"
    for wrong in ({"shape": "pairs", "columns": {"prompt": "frage"}}, {"shape": "x"}):
        answer = api("post", f"uploads/{upload.pk}/map/", {"map": wrong})
        assert (answer.status_code, list(answer.json())) == (400, ["map"])
    assert api("post", f"uploads/{upload.pk}/map/", {"map": MAP}).json()["state"] == "received"
    assert api("post", f"uploads/{upload.pk}/map/", {"map": MAP}).status_code == 409


@pytest.mark.django_db
def test_nothing_of_the_rows_is_in_the_database_before_the_import(unknown):
    upload = unknown()
    assert "Jede" not in json.dumps([upload.found, upload.map, upload.choices])
    assert Sample.objects.count() == 0


@pytest.mark.django_db
def test_no_cell_of_a_table_lies_open_on_the_disk_or_in_a_problem(unknown, api, settings):  # noqa: F811
    upload = unknown()
    assert "Wie viel zahlt jede Person?" in str(staging.columns(upload))
    keyed = {"key": "frage", "instruction": "antwort b", "answer": "antwort a"}
    api(
        "post",
        f"uploads/{upload.pk}/map/",
        {"map": {"shape": "samples", "columns": keyed, "values": {"answer": {"z": "A"}}}},
    )
    checked_again(upload)
    assert "its value stands for nothing in the map" in json.dumps(upload.found["reasons"])
    files = [path.read_bytes() for path in settings.STAGED.rglob("*") if path.is_file()]
    assert not any(b"Jede zahlt" in data or b"zahlt jede" in data for data in files)
    assert "Jede zahlt" not in json.dumps([upload.found, upload.map])


@pytest.mark.django_db
def test_what_was_said_to_be_the_same_for_all_rows_of_one_file_is_looked_at_before_it_is_for_the_next(unknown, api):  # noqa: F811
    same = {
        **MAP,
        "columns": {k: v for k, v in MAP["columns"].items() if k != "annotator"},
        "constants": {"judge": "j"},
    }
    upload = unknown()
    api("post", f"uploads/{upload.pk}/map/", {"map": same})
    api("post", f"uploads/{checked_again(upload).pk}/confirm/", {"benchmark": "votes", "skip_bad": True})
    while worker.work(upload):
        upload.refresh_from_db()
        if upload.state == "checked":
            api("post", f"uploads/{upload.pk}/confirm/", {})
    again = unknown(name="more.csv")
    assert (again.state, again.map["constants"]) == ("mapping", {"judge": "j"})


@pytest.mark.parametrize("map", [{"columns": {"prompt": "a\x00"}}, {"constants": {"judge": "\ud800"}}])
def test_a_map_of_what_is_no_text_is_refused(map):
    with pytest.raises(BadInput, match="The map is wrong"):
        mapping.checked({"shape": "pairs", "columns": {}} | map)


def test_a_place_of_thousands_of_digits_is_no_place_in_a_list():
    assert mapping.value_at({"a": ["b"]}, f"a.{'1' * 5000}") is None
    assert mapping.value_at({"a": ["b"]}, "a.0") == "b"


@pytest.mark.django_db
def test_a_command_proposes_a_map_and_reads_by_it(tmp_path, manage, media):
    path, map_file = tmp_path / "votes.csv", tmp_path / "votes.yaml"
    path.write_bytes(table())
    _, out, _ = manage("import_benchmark", "auto", path, "--benchmark", "v", "--propose-map")
    assert "frage" in out
    map_file.write_text(out.replace("gleich: ''", "gleich: tie").replace("beide schlecht: ''", "beide schlecht: tie"))
    _, out, _ = manage("import_benchmark", "auto", path, "--benchmark", "v", "--map", map_file, "--all-parts")
    assert "1 sample" in out
    assert Label.objects.count() == 4
    assert Judgment.objects.count() == 0
    before = Label.objects.count()
    manage("import_labels", "auto", path, "--benchmark", "v", "--map", map_file)
    assert Label.objects.count() == before
    assert Upload.objects.count() == 0
