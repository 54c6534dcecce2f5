"""Labels out in every shape and in again; what judges leave in doubt flows in; HQ and HARD."""

import io
import json
from contextlib import redirect_stdout

import pytest
from django.core.management import call_command
from django.utils import timezone

from annotations.assignment.leases import next_assignment
from annotations.campaigns import auto_enqueue
from annotations.campaigns.actions import add_items
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.run_doubts import DIFFERS, HARD, HQ, NO_VERDICT, subset_of
from annotations.labels import exports
from annotations.labels.actions import change_label, submit_label
from annotations.labels.adjudication import adjudicate
from annotations.models import Annotator, Campaign, Label, LabelRevision
from bank import exposure
from bank.intake.exports import ExportRequest, file_pieces
from bank.intake.formats import find, reader
from bank.intake.formats.reading import Row
from bank.intake.imports.engine import run_import
from bank.intake.parquet import NEEDED
from bank.intake.registry import SHAPES
from judging.models import Judge, Judgment, Run, RunItem
from tests.annotations import kinds
from tests.hidden import write_criterion

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
GIVEN = {
    "pairwise-criteria": {"choice": "undecided", "situation": 2},
    "score": {"score": 4},
    "batch": {"ranking": [2, 0, 3, 1]},
    "components": {"parts": [{"component": key, "points": 1.5} for key in kinds.WEIGHTS]},
    "choice-extraction": {"option": "B"},
    "yes-no": {"answer": False},
    "label": {"option": "river"},
    "compare-analyses": {"choice": "left"},
}


@pytest.fixture
def labelled(now):
    """``labelled(protocol)``: a campaign with one label, changed once where a pair is judged."""

    def make(protocol):
        campaign, ada = kinds.campaign_of(protocol)
        work = next_assignment(campaign=campaign, annotator=ada, now=now)
        given = {"seconds": 12.5, "comment": "=1+1, so\nlook", "flags": ["other"]}
        submit_label(assignment=work, verdict=GIVEN[protocol], now=now, **given)
        if protocol == "pairwise-criteria":
            work.refresh_from_db()
            change_label(assignment=work, verdict={"choice": "left"}, now=now, **given)
        return campaign

    return make


def file_of(shape, campaign, tmp_path, **options):
    path = tmp_path / f"labels.{SHAPES[shape].ending}"
    asked = ExportRequest(campaign=campaign.pk, **options)
    path.write_bytes(b"".join(file_pieces(what="labels", shape=shape, benchmark=campaign.benchmark, asked=asked)))
    return path


@pytest.mark.parametrize("protocol", GIVEN)
@pytest.mark.parametrize("shape", ["jsonl", "csv", "parquet", "label-studio"])
def test_what_leaves_comes_in_again_the_same(protocol, shape, labelled, tmp_path):
    campaign = labelled(protocol)
    before = Label.objects.get()
    path = file_of(shape, campaign, tmp_path, names=True)
    assert ("label-studio" if shape == "label-studio" else "generic") == find("auto", path).NAME
    report = run_import(path=path, slug="kinds", parts=["labels"], campaign="copy")["labels"]
    assert report.problems == []
    after = Label.objects.get(campaign__name="copy")
    assert after.verdict() == before.verdict()
    assert (after.seconds, after.comment, after.flags) == (12.5, "=1+1, so\nlook", ["other"])
    assert (after.annotator.name, after.created_at) == ("ada", before.created_at)
    kept = [(one.verdict, one.given_at) for one in after.revisions.all()]
    was = [(one.verdict, one.given_at) for one in before.revisions.all()]
    assert kept == ([] if shape == "label-studio" else was)
    assert run_import(path=path, slug="kinds", parts=["labels"], campaign="copy")["labels"].unchanged == 1


def test_without_pyarrow_labels_leave_in_the_other_shapes(labelled, client_of, no_pyarrow):
    campaign, client = labelled("pairwise-criteria"), client_of("curator")
    assert 'value="parquet"' not in client.get(f"/campaigns/{campaign.pk}/data/").content.decode()
    for address in (f"/campaigns/{campaign.pk}/data/download/", f"/api/v1/campaigns/{campaign.name}/labels/"):
        refused = client.get(address, {"as": "parquet"})
        assert (refused.status_code, refused.content.decode()) == (501, NEEDED)
        assert client.get(address, {"as": "csv"}).status_code == 200


def test_annotators_are_pseudonyms_unless_staff_ask_for_names(labelled, client_of):
    campaign = labelled("pairwise-criteria")
    open_finished(campaign=campaign, by=None, now=timezone.now())
    pseudonym = Annotator.objects.get().pseudonym
    for role, names, who in (
        ("curator", "", pseudonym),
        ("curator", "1", "ada"),
        ("researcher", "1", pseudonym),
    ):
        client = client_of(role)
        for path in (f"/campaigns/{campaign.pk}/data/download/", f"/api/v1/campaigns/{campaign.name}/labels/"):
            answer = client.get(path, {"as": "jsonl", "names": names} if names else {"as": "jsonl"})
            row = json.loads(b"".join(answer.streaming_content))
            assert row["annotator"] == who
            assert row["revisions"][0]["choice"] == "undecided"
    assert client_of("annotator").get(f"/campaigns/{campaign.pk}/data/download/").status_code == 403
    assert client_of("curator").get(f"/campaigns/{campaign.pk}/data/download/?as=xml").status_code == 404


def test_points_of_hidden_components_stay_with_staff(labelled, client_of):
    """With the whole label: a known part beside a total would tell the rest."""
    campaign = labelled("components")
    label = Label.objects.order_by("pk").first()
    Label.objects.filter(pk=label.pk).update(parts={"length": 1.0, "secret-part": 2.0}, comment="of both")
    write_criterion(sample=label.item.sample, key="secret-part", kind="component", weight=4.0, text="Names it.")
    Campaign.objects.update(held=exposure.inputs_of("component"))
    path = f"/campaigns/{campaign.pk}/data/download/?as=jsonl"
    assert b"secret-part" in b"".join(client_of("curator").get(path).streaming_content)
    answer = b"".join(client_of("researcher").get(path).streaming_content)
    assert b"secret-part" not in answer
    assert b"of both" not in answer
    assert (b"length" in answer) == (Label.objects.exclude(item__sample=label.item.sample).exists())


def test_preferences_are_what_people_prefer_and_ties_give_none(campaign_of, now, people):
    campaign, (one, two) = campaign_of(3, 2, overlap=2)
    places = {place.position: place for place in campaign.campaign_items.select_related("item__sample")}
    for annotator, choices in ((one, "first first first"), (two, "first tie second")):
        wanted = dict(enumerate(choices.split()))
        while (work := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
            work.order = "01"
            type(work).objects.filter(pk=work.pk).update(order="01")
            choice = {"first": "left", "second": "right"}.get(wanted[work.campaign_item.position], "tie")
            submit_label(assignment=work, verdict={"choice": choice}, now=now)
    rows = {row["sample"]: row for row in exports.preferences(campaign=campaign)}
    key = places[0].item.sample.key
    assert set(rows) == {key}
    assert rows[key]["chosen"] == f"Answer 0 of {key}"
    assert (rows[key]["agree"], rows[key]["against"], rows[key]["source"]) == (2, 0, "majority")
    adjudicate(campaign_item=places[2], by=people["curator"], verdict={"choice": "second"})
    rows = {row["sample"]: row for row in exports.preferences(campaign=campaign)}
    second = rows[places[2].item.sample.key]
    assert (second["chosen_model"], second["agree"], second["against"], second["source"]) == (
        *("model-two", 1, 1),
        "adjudicated",
    )


def test_the_command_writes_them_all(labelled):
    campaign = labelled("batch")
    for what, shape in (("labels", "label-studio"), ("preferences", "jsonl"), ("labels", "csv")):
        out = io.TextIOWrapper(io.BytesIO())
        with redirect_stdout(out):
            call_command("export", what, benchmark="kinds", shape=shape, campaign=campaign.name, stderr=io.StringIO())
        text = out.buffer.getvalue().decode()
        assert "model-2" in text
        if what == "preferences":
            assert len(text.splitlines()) == 6  # of four answers in order


ARGILLA_2 = {
    "id": "s0",
    "fields": {"text": "…"},
    "metadata": {"models": ["model-0", "model-1"]},
    "suggestions": {},
    "responses": {
        "preference": [{"user_id": "u1", "value": "model_a", "status": "submitted"}, {"user_id": "u2", "value": "tie"}],
        "comment": [{"user_id": "u1", "value": "Clear."}, {"user_id": "u3", "value": "x", "status": "draft"}],
    },
}
RANKED = [{"value": f"model-{n}", "rank": rank} for n, rank in enumerate([2, 1, 3, 3])]
ARGILLA_1 = {
    "external_id": "s1",
    "fields": {"text": "…"},
    "metadata": {"models": [f"model-{n}" for n in range(4)]},
    "responses": [
        {
            "user_id": "u1",
            "status": "submitted",
            "values": {
                "ranking": {"value": [{"value": f"model-{n}", "rank": rank} for n, rank in enumerate([2, 1, 3, 3])]}
            },
        },
        {"user_id": "u2", "status": "discarded", "values": {}},
    ],
}


def test_records_of_argilla_come_in(tmp_path):
    kinds.benchmark_of()
    path = tmp_path / "records.json"
    path.write_text(json.dumps([ARGILLA_2, ARGILLA_1]))
    assert find("auto", path).NAME == "argilla"
    assert run_import(path=path, slug="kinds", parts=["labels"])["labels"].problems == []
    found = {(label.item.sample.key, label.annotator.name): label for label in Label.objects.all()}
    assert set(found) == {("s0", "u1"), ("s0", "u2"), ("s1", "u1")}
    assert (found["s0", "u1"].choice, found["s0", "u1"].comment) == ("first", "Clear.")
    assert found["s0", "u2"].choice == "tie"
    assert found["s1", "u1"].ranking == [[1], [0], [2, 3]]


def test_tasks_of_label_studio_as_its_own_templates_make_them_come_in(tmp_path):
    task = {
        "id": 1,
        "data": {"key": "s0", "model_a": "model-0", "model_b": "model-1"},
        "annotations": [
            {
                "completed_by": {"id": 3, "email": "ann@example.org"},
                "lead_time": 8.25,
                "result": [
                    {"from_name": "pw", "to_name": "a,b", "type": "pairwise", "value": {"selected": "right"}},
                    {"from_name": "why", "type": "textarea", "value": {"text": ["Shorter."]}},
                ],
            },
            {"completed_by": 4, "was_cancelled": True, "result": []},
            {"completed_by": 5, "result": [{"from_name": "x", "type": "polygonlabels", "value": {}}]},
        ],
    }
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps([task]))
    read = list(reader(find("auto", path), "labels")(path))
    assert [isinstance(row, Row) for row in read] == [True, False]
    assert read[0].data.choice == "second"
    assert (read[0].data.annotator, read[0].data.comment, read[0].data.seconds) == ("ann@example.org", "Shorter.", 8.25)
    assert "polygonlabels" in read[1].reason


@pytest.mark.parametrize(
    "times", [{"lead_time": 2.5, "created_at": "2026-03-01T10:00:00Z"}, {"lead_time": None, "created_at": None}]
)
def test_a_task_of_label_studio_with_numbers_for_predictions_and_without_times_comes_in(times, tmp_path):
    """So it exports tasks that a model has predicted, and annotations that came in by its API."""
    kinds.benchmark_of()
    region = {"from_name": "pw", "to_name": ["a", "b"], "type": "pairwise", "value": {"selected": "left"}}
    annotation = {"id": 1, "completed_by": 3, "was_cancelled": False, "result": [region]} | times
    task = {"data": {"sample": "s0", "models": ["model-0", "model-1"]}, "predictions": [286]}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([task | {"annotations": [annotation]}]))
    assert run_import(path=path, slug="kinds", parts=["labels"])["labels"].problems == []
    label = Label.objects.get()
    assert (label.choice, label.seconds, label.annotator.name) == ("first", times["lead_time"], "3")


RATINGS = [
    {"from_name": "quality", "to_name": f"answer{n}", "type": "rating", "value": {"rating": 6 - 2 * n}} for n in (1, 2)
]
SIDES = [{"from_name": side, "type": "pairwise", "value": {"selected": side}} for side in ("left", "right")]
CHOSEN = [{"user_id": "u1", "value": value, "status": "submitted"} for value in ("model_a", "model_b")]


@pytest.mark.parametrize(
    ("name", "said", "words"),
    [
        ("label-studio", RATINGS, "score is said twice, 4 and 2"),
        ("label-studio", SIDES, "choice is said twice, 'first' and 'second'"),
        ("argilla", {"choice": CHOSEN[:1], "preference": CHOSEN[1:]}, "choice is said twice, 'first' and 'second'"),
    ],
)
def test_what_an_annotation_says_twice_and_differently_is_no_label(name, said, words, tmp_path):
    about = {"sample": "s0", "models": ["model-0", "model-1"]}
    task = {"data": about, "annotations": [{"completed_by": 1, "result": said}]}
    record = {"id": "s0", "fields": {}, "metadata": about, "responses": said}
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([task if name == "label-studio" else record]))
    (row,) = reader(find(name, path), "labels")(path)
    assert words in row.reason


def test_the_same_said_twice_is_one_verdict_and_of_several_texts_none_is_lost(tmp_path):
    texts = [{"from_name": name, "type": "textarea", "value": {"text": [f"{name}."]}} for name in ("Why", "More")]
    task = {
        "data": {"sample": "s0", "models": ["model-0", "model-1"]},
        "annotations": [{"completed_by": 1, "result": [SIDES[0], *texts, SIDES[0]]}],
    }
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([task]))
    (row,) = reader(find("label-studio", path), "labels")(path)
    assert (row.data.choice, row.data.comment) == ("first", "Why.\nMore.")


def test_categories_of_label_studio_and_argilla_are_told_by_the_protocol_whatever_the_control_is_called(tmp_path):
    region = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": ["positive"]}}
    about = {"key": "s0", "protocol": "label"}
    tasks = [{"id": 1, "data": about, "annotations": [{"completed_by": 1, "result": [region]}]}]
    answers = {"label": [{"user_id": "u1", "value": "negative", "status": "submitted"}]}
    record = {"id": "s0", "fields": {}, "metadata": {"protocol": "label"}, "responses": answers}
    for name, rows, said in (("label-studio", tasks, "positive"), ("argilla", [record], "negative")):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(rows))
        (row,) = reader(find(name, path), "labels")(path)
        assert (row.data.kind, row.data.protocol, row.data.option) == ("score", "label", said)
    del about["protocol"]
    path = tmp_path / "label-studio.json"
    path.write_text(json.dumps(tasks))
    (row,) = reader(find("label-studio", path), "labels")(path)
    assert "none of the verdicts left, right, tie and undecided" in row.reason


class TestInflow:
    @pytest.fixture
    def run(self, campaign_of, now):
        """A campaign over one of four pairs, one label on it, and a run that says the opposite and fails once."""
        campaign, (ada, _) = campaign_of(4, 2)
        items = list(campaign.campaign_items.order_by("item").values_list("item", flat=True))
        campaign.campaign_items.exclude(item=items[0]).delete()
        run = Run.objects.create(
            judge=Judge.objects.create(name="j"), benchmark=campaign.benchmark, protocol="pair", state="running"
        )
        for item, choice in zip(items, ("second", None, "first", "first"), strict=True):
            RunItem.objects.create(run=run, item_id=item)
            status = "ok" if choice else "parse_failed"
            Judgment.objects.create(run=run, item_id=item, choice=choice, status=status)
        work = next_assignment(campaign=campaign, annotator=ada, now=now)
        choice = "left" if work.order == "01" else "right"
        submit_label(assignment=work, verdict={"choice": choice}, now=now)
        return campaign, run, items

    def test_a_rule_brings_what_a_finished_run_leaves_in_doubt_and_once(self, run, client_of):
        campaign, run, items = run
        assert auto_enqueue.set_rule(campaign=campaign, runs="all", reasons=[NO_VERDICT, DIFFERS]) == 0
        run.state = "finished"
        run.save()
        assert auto_enqueue.enqueue_new_items(campaign) == 1
        assert auto_enqueue.enqueue_new_items(campaign) == 0
        place = campaign.campaign_items.get(item=items[1])
        assert place.why == f"a reply without a verdict (run {run.pk})"
        Judgment.objects.create(run=run, item_id=items[2], order="10", status="empty")
        campaign.refresh_from_db()
        assert auto_enqueue.enqueue_new_items(campaign) == 1

    def test_one_click_on_chosen_judgments(self, run, client_of):
        campaign, run, _ = run
        chosen = list(Judgment.objects.filter(run=run).values_list("pk", flat=True))
        client = client_of("curator")
        path = "/campaigns/from/judgments/"
        answer = client.post(path, {"judgment": [*chosen, 10**15], "campaign": campaign.pk}, follow=True)
        assert "One of these judgments is not about" in answer.content.decode()
        answer = client.post(path, {"judgment": [*chosen, "x"], "campaign": campaign.pk}, follow=True)
        assert "3 items added" in answer.content.decode()
        assert campaign.campaign_items.count() == 4
        assert client_of("researcher").post("/campaigns/from/judgments/").status_code == 403
        page = client.get(f"/campaigns/from/runs/{run.pk}/").content.decode()
        assert "A reply without a verdict" in page

    def test_hq_and_hard_are_beside_what_people_said(self, run, people):
        campaign, run, items = run
        first = Judgment.objects.get(run=run, item=items[0])
        assert (subset_of(run, HQ), subset_of(run, HARD)) == ([], [first.pk])
        adjudicate(campaign_item=campaign.campaign_items.get(), by=people["curator"], verdict={"choice": "second"})
        assert (subset_of(run, HQ), subset_of(run, HARD)) == ([first.pk], [])
        out = io.TextIOWrapper(io.BytesIO())
        with redirect_stdout(out):
            options = {"benchmark": "pairs", "shape": "jsonl", "run": run.pk, "subset": "hq"}
            call_command("export", "judgments", **options, stderr=io.StringIO())
        assert len(out.buffer.getvalue().splitlines()) == 1

    def test_a_closed_campaign_takes_nothing(self, run):
        campaign, run, _ = run
        campaign.state = "closed"
        campaign.save()
        with pytest.raises(Exception, match="closed"):
            add_items(campaign=campaign, selection=auto_enqueue.select_judged_items(campaign=campaign, ids=[]))


def test_a_revision_that_is_none_is_refused(tmp_path):
    kinds.benchmark_of()
    row = {"kind": "score", "sample": "s0", "responses": ["model-0"], "annotator": "a", "score": 3}
    path = tmp_path / "labels.jsonl"
    bad = row | {"revisions": [{"score": "much", "at": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}]}
    path.write_text(json.dumps(bad))
    problems = run_import(path=path, slug="kinds", parts=["labels"])["labels"].problems
    assert "revision 1" in problems[0].reason
    assert not LabelRevision.objects.exists()
