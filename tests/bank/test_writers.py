"""Tables in the shapes of other tools: a Hugging Face folder, and scores for Inspect."""

import io
import json
import re
import zipfile

import pytest
from django.urls import reverse

from accounts.models import AuditEntry
from annotations.models import Annotator
from bank.intake import exports, registry
from bank.intake.exports import ExportRequest
from bank.intake.imports.engine import run_import
from bank.models import Benchmark
from tests.bank.conftest import picture

pytestmark = pytest.mark.django_db
SAMPLES = [
    {"key": "a", "instruction": "How many boats?", "images": ["one.png", "two.png"], "answer": "seven grey herons"},
    {"key": "b", "instruction": "Which colour?"},
    {"key": "c", "instruction": "Why?"},
]
RESPONSES = [{"sample": key, "model": model, "text": f"{model} on {key}"} for key in "abc" for model in ("m1", "m2")]


def label(sample, who, model="m1", **said):
    return {"kind": "score", "sample": sample, "responses": [model], "annotator": who} | said


LABELS = [
    label("a", "ada", score=4, comment="Clear."),
    label("a", "bo", score=1, comment="Wrong\ncount."),
    label("b", "ada", score=2),
    label("a", "ada", "m2", score=5),
]
PAIR = {"kind": "pair", "sample": "a", "responses": ["m1", "m2"], "annotator": "cy", "choice": "first"}
JUDGMENTS = [
    {"kind": "score", "sample": "a", "responses": ["m1"], "judge": "j", "order": ["m1"], "score": 3}
    | {"analysis": "It quotes seven grey herons."}
]


@pytest.fixture
def bring(folder):
    """``bring(labels=..., judgments=...)``: a benchmark of three samples, two with pictures, and these verdicts."""

    def make(labels=LABELS, judgments=JUDGMENTS):
        (folder.root / "one.png").write_bytes(picture())
        (folder.root / "two.png").write_bytes(picture(colour="navy"))
        folder("samples", SAMPLES)
        folder("responses", RESPONSES)
        for name, rows in (("labels", labels), ("judgments", judgments)):
            if rows:
                folder(name, rows)
        reports = run_import(path=folder.root, slug="w")
        assert [str(problem) for report in reports.values() for problem in report.problems] == []
        Benchmark.objects.update(title="Boats: a benchmark", licence="CC BY 4.0", description="About boats.")
        return Benchmark.objects.get()

    return make


def scores(benchmark, what="labels", **asked):
    made = exports.file_pieces(what=what, shape="inspect", benchmark=benchmark, asked=ExportRequest(**asked))
    return [json.loads(line) for line in b"".join(made).splitlines()]


class TestHuggingFace:
    """The folder is proved against ``datasets`` itself where that is installed; it is no dependency."""

    @pytest.fixture(autouse=True)
    def _pyarrow(self):
        pytest.importorskip("pyarrow")

    def test_a_folder_holds_a_parquet_file_for_each_table_with_rows_and_a_card_that_names_them(
        self, bring, manage, tmp_path
    ):
        import pyarrow.parquet as pq

        bring()
        out = tmp_path / "folder"
        assert manage("export", "all", "--benchmark", "w", "--format", "huggingface", "--output", out)[0] == 0
        found = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
        tables = ("judgments", "labels", "responses", "samples")
        assert found == ["README.md", *(f"data/{table}.parquet" for table in tables)]
        table = pq.read_table(out / "data/samples.parquet")
        rows = {row["key"]: row for row in table.to_pylist()}
        assert [image["bytes"][:4] for image in rows["a"]["images"]] == [b"\x89PNG"] * 2
        assert all(image["path"].endswith(".png") and "/" not in image["path"] for image in rows["a"]["images"])
        assert rows["b"]["images"] == []
        features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
        assert features["images"] == {"feature": {"_type": "Image"}, "_type": "Sequence"}
        assert features["key"] == {"dtype": "string", "_type": "Value"}
        labels = pq.read_table(out / "data/labels.parquet")
        assert labels.schema.field("score").type == "double"
        card = (out / "README.md").read_text()
        assert card.startswith('---\npretty_name: "Boats: a benchmark"\n')
        assert 'license: "cc-by-4.0"' in card
        assert re.findall(r'"config_name": "(\w+)"', card) == ["samples", "responses", "labels", "judgments"]

    def test_hidden_text_is_in_no_file_of_it_unless_a_reason_is_given_and_then_in_its_table_and_the_audit_log(
        self, bring, client_of
    ):
        benchmark = bring()
        client, path = client_of("curator"), reverse("bank:benchmark-export", args=[str(benchmark)])
        asked = {"what": "all", "shape": "huggingface"}
        plain = b"".join(client.post(path, asked).streaming_content)
        with zipfile.ZipFile(io.BytesIO(plain)) as archive:
            assert archive.testzip() is None
            assert b"herons" not in b"".join(map(archive.read, archive.namelist()))
        assert b"Say why hidden text leaves" in client.post(path, asked | {"criteria": "on"}).content
        whole = b"".join(client.post(path, asked | {"criteria": "on", "reason": "A test."}).streaming_content)
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            assert b"herons" in archive.read("data/samples.parquet")
            assert b"herons" not in archive.read("data/judgments.parquet")
        assert AuditEntry.objects.get(action="criteria-exported").about == "samples of w@1"

    def test_annotators_are_pseudonyms_in_it(self, bring):
        import pyarrow.parquet as pq

        benchmark = bring()
        made = exports.file_pieces(what="all", shape="huggingface", benchmark=benchmark, asked=ExportRequest())
        with zipfile.ZipFile(io.BytesIO(b"".join(made))) as archive:
            labels = pq.read_table(io.BytesIO(archive.read("data/labels.parquet"))).to_pylist()
        pseudonym = Annotator.objects.get(name="ada").pseudonym
        assert pseudonym in {label["annotator"] for label in labels}
        assert "ada" not in {value for label in labels for value in label.values() if isinstance(value, str)}

    def test_a_preference_has_the_pictures_of_its_prompt(self, bring, tmp_path):
        import pyarrow.parquet as pq

        benchmark = bring(labels=[PAIR])
        made = exports.file_pieces(what="preferences", shape="huggingface", benchmark=benchmark, asked=ExportRequest())
        with zipfile.ZipFile(io.BytesIO(b"".join(made))) as archive:
            (row,) = pq.read_table(io.BytesIO(archive.read("data/preferences.parquet"))).to_pylist()
        assert (row["chosen"], len(row["images"])) == ("m1 on a", 2)

    def test_the_api_gives_the_same_to_staff_alone(self, bring, client_of):
        benchmark = bring()
        path = f"/api/v1/benchmarks/{benchmark.pk}/export/"
        asked = {"what": "all", "shape": "huggingface"}
        answer = client_of("curator").post(path, asked, content_type="application/json")
        assert answer["Content-Type"] == "application/zip"
        assert zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))).testzip() is None
        assert client_of("researcher").post(path, asked, content_type="application/json").status_code == 403
        odd = {"what": "samples", "criteria": True}
        answer = client_of("curator").post(path, odd, content_type="application/json")
        assert (answer.status_code, list(answer.json())) == (400, ["reason"])
        assert client_of("curator").post(path, {"whta": "x"}, content_type="application/json").status_code == 400


class TestInspect:
    def test_scores_of_one_model_are_means_with_the_comments_joined(self, bring):
        assert scores(bring(), model="m1") == [
            {"id": "a", "value": 2.5, "explanation": "Clear.\nWrong\ncount.", "metadata": {"verdicts": 2}},
            {"id": "b", "value": 2.0, "metadata": {"verdicts": 1}},
        ]

    def test_where_several_models_have_scores_one_is_named(self, bring, manage, tmp_path):
        bring()
        asked = ("export", "labels", "--benchmark", "w", "--format", "inspect", "--output", tmp_path / "m2.jsonl")
        status, _, told = manage(*asked)
        assert (status, "--model NAME), one of: m1, m2." in told) == (1, True)
        assert manage(*asked, "--model", "m2")[0] == 0
        assert json.loads((tmp_path / "m2.jsonl").read_text())["value"] == 5

    def test_yes_or_no_and_categories_are_majorities_and_a_tie_has_no_value(self, bring):
        said = [("a", True), ("a", True), ("a", False), ("b", True), ("b", False)]
        answers = [label(key, f"p{n}", protocol="yes-no", answer=answer) for n, (key, answer) in enumerate(said)]
        assert scores(bring(labels=answers)) == [{"id": "a", "value": True, "metadata": {"verdicts": 3}}]

    def test_categories_of_samples_themselves_belong_to_no_model(self, bring):
        rows = [
            {"kind": "score", "protocol": "label", "sample": "a", "annotator": f"p{n}", "option": option}
            for n, option in enumerate(["harbour", "river", "harbour"])
        ]
        assert scores(bring(labels=rows))[0]["value"] == "harbour"

    def test_pairs_have_no_value_and_are_refused_in_words(self, bring, client_of):
        benchmark = bring(labels=[PAIR], judgments=[])
        answer = client_of("curator").post(
            reverse("bank:benchmark-export", args=[str(benchmark)]), {"what": "labels", "shape": "inspect"}
        )
        assert "Pairs and rankings compare answers: none of them has a value." in answer.content.decode()

    def test_of_a_judge_the_scores_leave_and_not_its_words(self, bring):
        assert scores(bring(), "judgments") == [{"id": "a", "value": 3.0, "metadata": {"verdicts": 1}}]

    def test_verdicts_of_two_judges_are_not_mixed(self, bring, manage):
        bring(judgments=[*JUDGMENTS, JUDGMENTS[0] | {"judge": "k", "score": 5}])
        status, _, told = manage("export", "judgments", "--benchmark", "w", "--format", "inspect")
        assert (status, "Name one campaign or run." in told) == (1, True)
        run = re.search(r"run (\d+) by k", told)[1]
        assert manage("export", "judgments", "--benchmark", "w", "--format", "inspect", "--run", run)[0] == 0


@pytest.mark.parametrize("name", registry.SHAPES)
def test_a_shape_refuses_the_tables_that_it_does_not_hold(name, bring, manage):
    bring()
    for what in {*registry.TABLES, registry.EVERYTHING} - set(registry.SHAPES[name].tables):
        status, _, told = manage("export", what, "--benchmark", "w", "--format", name)
        assert (status, f"{name} is a shape for" in told) == (1, True)
