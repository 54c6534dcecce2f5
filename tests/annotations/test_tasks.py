"""What a campaign asks, in Label Studio and Argilla, and back as labels: the files that these write are imitated as
their own code writes them.
"""

import io
import json
import xml.etree.ElementTree as xml
import zipfile

import pytest
from django.utils import timezone

from annotations.assignment.leases import next_assignment
from annotations.labels.actions import submit_label
from annotations.models import Campaign, Label
from bank.intake import exports
from bank.intake.exports import ExportRequest
from bank.intake.formats import find
from bank.intake.imports.engine import run_import
from bank.models import Sample, SampleImage
from bank.models.verdict import COLUMNS
from tests.annotations import kinds
from tests.bank.conftest import picture

pytestmark = pytest.mark.django_db
# By protocol what an annotator chooses in the other tool, and what is stored; answers are named in the order shown.
SAID = {
    "pair": [("left", "choice"), ("right", "choice"), ("tie", "choice")],
    "pairwise-criteria": [("undecided", "choice")],
    "pair-graded": [("0.75", "preference"), ("0.5", "preference")],
    "score": [("4", "score"), ("1", "score")],
    "yes-no": [("yes", "answer"), ("no", "answer")],
    "label": [("river", "option")],
}
CASES = [(protocol, value, column) for protocol, said in SAID.items() for value, column in said]


def files_of(campaign, shape):
    asked = ExportRequest(campaign=campaign.pk)
    made = exports.file_pieces(what="items", shape=shape, benchmark=campaign.benchmark, asked=asked)
    with zipfile.ZipFile(io.BytesIO(b"".join(made))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def project_of(campaign):
    """The labelling configuration and the tasks."""
    files = files_of(campaign, "label-studio-tasks")
    top = f"kinds-campaign-{campaign.pk}"
    return xml.fromstring(files[f"{top}/config.xml"]), json.loads(files[f"{top}/tasks.json"])


def exported(task, *regions):
    """A task as Label Studio's JSON export has it, with one annotation."""
    result = [
        {"id": f"r{number}", "to_name": "instruction", "origin": "manual", "value": value}
        | {"from_name": name, "type": kind}
        for number, (name, kind, value) in enumerate(regions)
    ]
    annotation = {
        "id": 11,
        "completed_by": {"id": 1, "email": "ann@example.org", "first_name": "", "last_name": ""},
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-03-01T10:00:00.123456Z",
        "updated_at": "2026-03-01T10:00:00.123456Z",
        "draft_created_at": None,
        "lead_time": 12.3,
        "prediction": {},
        "result_count": 1,
        "unique_id": "u",
        "import_id": None,
        "last_action": None,
        "task": 7,
        "project": 3,
        "updated_by": 1,
        "parent_prediction": None,
        "parent_annotation": None,
        "last_created_by": None,
    }
    around = {
        "file_upload": "x.json",
        "drafts": [],
        "predictions": [],
        "meta": {},
        "total_annotations": 1,
        "project": 3,
    }
    return task | around | {"annotations": [annotation]}


def labels_from(write, name, content):
    path = write(name, content)
    assert run_import(path=path, slug="kinds", parts=["labels"])["labels"].problems == []
    return {label.item.sample.key: label for label in Label.objects.select_related("item__sample", "annotator")}


@pytest.fixture
def write(tmp_path):
    def make(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    return make


def stored(label, column, shown):
    """A stored verdict as the annotator gave it, who saw the models in this order."""
    models = [response.model.name for response in label.item.ordered_responses()]
    turned = models != shown
    value = getattr(label, column)
    if column == "choice":
        sides = {"first": "left", "second": "right"}
        value = sides.get(value, value)
        return {"left": "right", "right": "left"}.get(value, value) if turned else value
    if column == "preference":
        return f"{1 - value if turned else value:g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else value


@pytest.mark.parametrize(("protocol", "value", "column"), CASES)
def test_what_label_studio_exports_of_our_tasks_comes_back_as_labels(protocol, value, column, write):
    campaign, _ = kinds.campaign_of(protocol)
    config, tasks = project_of(campaign)
    control = config.find(f".//Choices[@name='{column}']")
    assert value in [choice.get("alias") for choice in control]
    shown = {task["data"]["sample"]: task["data"]["responses"] for task in tasks}
    said = [(column, "choices", {"choices": [value]}), ("comment", "textarea", {"text": ["Clear."]})]
    flags = ("flags", "choices", {"choices": ["image", "other"]})
    found = labels_from(write, "project-3.json", [exported(task, *said, flags) for task in tasks])
    assert set(found) == set(shown) == {"s0", "s1"}
    for key, label in found.items():
        assert stored(label, column, shown[key]) == value
        assert (label.comment, label.flags, label.seconds) == ("Clear.", ["image", "other"], 12.3)
        assert label.annotator.name == "ann@example.org"


def labelled(campaign):
    """The tasks of the campaign's project with its labels."""
    (content,) = [c for name, c in files_of(campaign, "label-studio-labelled").items() if name.endswith("tasks.json")]
    return json.loads(content)


def verdicts():
    """What every label says, by sample."""
    fields = (*COLUMNS, "flags", "comment", "seconds")
    rows = Label.objects.values_list("item__sample__key", "annotator__pseudonym", *fields)
    return {row[0]: row[2:] for row in rows}


@pytest.mark.parametrize(
    ("protocol", "value", "column"), [*CASES, ("batch", "1", "ranking"), ("batch", "0", "ranking")]
)
def test_labels_leave_with_their_tasks_as_label_studio_has_them_and_come_back_from_there(
    protocol, value, column, write
):
    ties = value == "1"
    campaign, _ = kinds.campaign_of(protocol, **({"ballot": {"ties": ties}} if protocol == "batch" else {}))
    _, tasks = project_of(campaign)
    said = (column, "choices", {"choices": [value]})
    if protocol == "batch":
        ids = [answer["id"] for answer in tasks[0]["data"]["answers"]]
        ranked = {"1": [ids[2]], "2": [ids[0], ids[1]], "3": [ids[3]]} if ties else {"ranking": ids[::-1]}
        said = (column, "ranker", {"ranker": ranked})
    beside = [("flags", "choices", {"choices": ["image"]}), ("comment", "textarea", {"text": ["Clear."]})]
    given = [exported(task, said, *beside) for task in tasks]
    path = write("given.json", given)
    Campaign.objects.update(imported=True)  # which takes labels from files
    options = {"slug": "kinds", "parts": ["labels"], "campaign": campaign.name}
    came = run_import(path=path, **options)["labels"]
    assert (came.problems, came.made["labels"]) == ([], len(tasks))
    before, made = verdicts(), labelled(campaign)
    assert [task["data"] for task in made] == [task["data"] for task in tasks]
    for task in made:
        (annotation,) = task["annotations"]
        regions = [(one["from_name"], one["type"], one["value"]) for one in annotation["result"]]
        for groups in (regions[0][2].get("ranker", {}), said[2].get("ranker", {})) if ties else ():
            for group in groups.values():
                group.sort()  # whoever shares a place is in no order
        assert regions == [said, *beside]
        assert (annotation["lead_time"], annotation["annotator"].startswith("annotator-")) == (12.3, True)
    Label.objects.all().delete()
    back = run_import(path=write("back.json", made), **options)["labels"]
    assert (back.problems, back.made["labels"]) == ([], len(tasks))
    assert verdicts() == before


def test_a_label_that_says_nothing_of_the_answers_leaves_with_its_flags():
    campaign, annotator = kinds.campaign_of("batch")
    while shown := next_assignment(campaign=campaign, annotator=annotator, now=timezone.now()):
        verdict = {"ranking": [[place] for place in range(4)]}
        submit_label(assignment=shown, verdict=verdict, flags=["image"], now=timezone.now())
    Label.objects.update(ranking=None)
    annotations = [one for task in labelled(campaign) for one in task["annotations"]]
    assert [[region["from_name"] for region in one["result"]] for one in annotations] == [["flags"]] * 2


def test_a_task_that_nobody_labelled_leaves_without_annotations():
    campaign, _ = kinds.campaign_of("pair")
    assert [task["annotations"] for task in labelled(campaign)] == [[], []]


@pytest.mark.parametrize("ties", [False, True])
def test_a_ranking_comes_back_from_label_studio_in_order_or_by_buckets(ties, write):
    campaign, _ = kinds.campaign_of("batch", ballot={"ties": ties})
    config, tasks = project_of(campaign)
    ids = [answer["id"] for answer in tasks[0]["data"]["answers"]]
    names = [bucket.get("name") for bucket in config.iter("Bucket")]
    assert names == (["1", "2", "3", "4"] if ties else [])
    ranked = {"1": [ids[2]], "2": [ids[0], ids[1]], "3": [], "4": [ids[3]]} if ties else {"ranking": ids[::-1]}
    found = labels_from(write, "p.json", [exported(tasks[0], ("ranking", "ranker", {"ranker": ranked}))])
    (label,) = found.values()
    models = [response.model.name for response in label.item.ordered_responses()]
    shown = tasks[0]["data"]["responses"]
    places = [2, [0, 1], 3] if ties else [3, 2, 1, 0]
    wanted = [sorted(shown[place] for place in (group if isinstance(group, list) else [group])) for group in places]
    assert [sorted(models[position] for position in group) for group in label.ranking] == wanted


def test_a_ranking_with_answers_left_over_or_in_buckets_that_are_no_ranks_is_refused_in_words(write):
    kinds.benchmark_of()
    data = {"sample": "s0", "models": [f"model-{n}" for n in range(3)]}
    for ranked, words in (
        ({"1": ["model-0"], "_": ["model-1", "model-2"]}, "leaves some answers in no bucket"),
        ({"relevant": ["model-0"], "biased": ["model-1", "model-2"]}, "are no ranks; name them 1, 2, 3"),
    ):
        task = {"id": 1, "data": data}
        path = write("r.json", [exported(task, ("rank", "ranker", {"ranker": ranked}))])
        (problem,) = run_import(path=path, slug="kinds", parts=["labels"])["labels"].problems
        assert words in problem.reason


def test_pictures_go_with_the_project_and_no_hidden_text_and_the_order_of_answers_is_shuffled(media):
    benchmark = kinds.benchmark_of(samples=12)
    path = media / "images/aa" / f"{'a' * 64}.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(picture())
    sample = Sample.objects.get(key="s3")
    SampleImage.objects.create(
        sample=sample, sha256="a" * 64, original_sha256="b" * 64, kind="png", width=32, height=24
    )
    campaign, _ = kinds.campaign_of("pairwise-criteria", benchmark=benchmark)
    files = files_of(campaign, "label-studio-tasks")
    top = f"kinds-campaign-{campaign.pk}"
    assert files[f"{top}/images/aa/{'a' * 64}.png"] == path.read_bytes()
    tasks = {task["data"]["sample"]: task["data"] for task in json.loads(files[f"{top}/tasks.json"])}
    assert tasks["s3"]["pictures"] == [f"/data/local-files/?d={top}/images/aa/{'a' * 64}.png"]
    assert len({tuple(data["responses"]) for data in tasks.values()}) == 2
    for data in tasks.values():
        number = data["responses"][0].removeprefix("model-")
        assert data["answer1"].startswith(f"Answer {number} of {data['sample']}")
    records = {
        record["metadata"]["sample"]: record for record in json.loads(files_of(campaign, "argilla")["records.json"])
    }
    assert records["s3"]["fields"]["picture_1"].startswith("data:image/png;base64,")
    for shape in ("label-studio-tasks", "label-studio-labelled", "argilla"):
        assert kinds.SECRET.encode() not in b"".join(files_of(campaign, shape).values())


def answered(record, **said):
    """A record as Argilla's client exports it once somebody has answered."""
    answers = {name: [{"value": value, "user_id": "7c0f"}] for name, value in said.items()}
    return record | {"responses": answers, "status": "completed", "_server_id": "9a"}


@pytest.mark.parametrize(("protocol", "value", "column"), CASES)
def test_what_argilla_exports_of_our_dataset_comes_back_as_labels(protocol, value, column, write):
    campaign, _ = kinds.campaign_of(protocol)
    files = files_of(campaign, "argilla")
    settings, records = json.loads(files[".argilla/settings.json"]), json.loads(files["records.json"])
    questions = {question["name"]: question["settings"] for question in settings["questions"]}
    assert value in [option["value"] for option in questions[column]["options"]]
    shown = {record["metadata"]["sample"]: record["metadata"]["models"] for record in records}
    rows = [answered(record, **{column: value, "comment": "Clear."}) for record in records]
    for key, label in labels_from(write, "records.json", rows).items():
        assert stored(label, column, shown[key]) == value
        assert (label.comment, label.annotator.name) == ("Clear.", "7c0f")


def test_a_ranking_is_asked_in_argilla_by_places_for_what_its_client_exports_of_rankings_has_no_ranks(write):
    campaign, _ = kinds.campaign_of("batch")
    records = json.loads(files_of(campaign, "argilla")["records.json"])
    rows = [answered(records[0], rank_1=3, rank_2=1, rank_3=2, rank_4=2)]
    (label,) = labels_from(write, "records.json", rows).values()
    models = [response.model.name for response in label.item.ordered_responses()]
    shown = records[0]["metadata"]["models"]
    wanted = [[shown[1]], sorted(shown[2:]), [shown[0]]]
    assert [sorted(models[position] for position in group) for group in label.ranking] == wanted
    lost = write("lost.json", [answered(records[1], ranking=["1", "2", "3", "4"])])
    (problem,) = run_import(path=lost, slug="kinds", parts=["labels"])["labels"].problems
    assert "has lost the ranks" in problem.reason


def test_the_whole_folder_that_argilla_writes_tells_what_questions_of_other_names_ask(write, tmp_path):
    kinds.benchmark_of()
    about = {"sample": "s0", "models": ["model-0"]}
    record = answered({"id": "1", "fields": {"text": "…"}, "metadata": about}, quality=4, why="Short.")
    asked = {"quality": "rating", "why": "text"}
    settings = {"questions": [{"name": name, "settings": {"type": kind}} for name, kind in asked.items()]}
    write("records.json", [record])
    (problem,) = run_import(path=tmp_path / "records.json", slug="kinds", parts=["labels"])["labels"].problems
    assert "the question 'why' may mean several things" in problem.reason
    write(".argilla/settings.json", settings)
    assert find("auto", tmp_path).NAME == "argilla"
    assert run_import(path=tmp_path, slug="kinds", parts=["labels"])["labels"].problems == []
    label = Label.objects.get()
    assert (label.score, label.comment) == (4, "Short.")


def test_a_question_of_another_name_is_a_choice_where_its_answer_is_a_side(write):
    kinds.benchmark_of()
    record = {"id": "1", "fields": {}, "metadata": {"sample": "s0", "models": ["model-0", "model-1"]}}
    found = labels_from(write, "records.json", [answered(record, better="model_b")])
    assert found["s0"].choice == "second"


def test_a_campaign_is_named_and_one_that_other_tools_cannot_ask_is_refused_in_words(client_of):
    campaign, _ = kinds.campaign_of("components")
    client = client_of("curator")
    answer = client.get(f"/campaigns/{campaign.pk}/data/download/?as=label-studio-tasks", follow=True)
    assert "Other tools cannot ask components; they can ask pair" in answer.content.decode()
    answer = client.get(f"/api/v1/campaigns/{campaign.name}/labels/?as=argilla")
    assert (answer.status_code, list(answer.json())) == (400, ["as"])


def test_what_a_campaign_asks_is_for_those_who_run_it(client_of):
    campaign, _ = kinds.campaign_of("pair")
    for shape in ("label-studio-tasks", "label-studio-labelled", "argilla"):
        for path in (f"/campaigns/{campaign.pk}/data/download/", f"/api/v1/campaigns/{campaign.name}/labels/"):
            assert client_of("researcher").get(path, {"as": shape}).status_code == 404
            answer = client_of("curator").get(path, {"as": shape})
            assert answer["Content-Disposition"].endswith(f'-{shape}.zip"')
            assert zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))).testzip() is None
    page = client_of("researcher").get(f"/campaigns/{campaign.pk}/data/").content.decode()
    assert 'value="argilla"' not in page
    assert 'value="inspect"' in page


def test_the_command_writes_a_campaigns_tasks(tmp_path):
    from django.core.management import CommandError, call_command

    campaign, _ = kinds.campaign_of("score")
    target = tmp_path / "tasks.zip"
    asked = {"benchmark": "kinds", "shape": "label-studio-tasks", "output": target}
    call_command("export", "items", campaign=campaign.name, **asked)
    assert zipfile.ZipFile(target).testzip() is None
    with pytest.raises(CommandError, match="name it with --campaign"):
        call_command("export", "items", **asked)
