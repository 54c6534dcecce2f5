"""The standing attacker: no channel lets a hidden bit be worked out below staff, each by a world and its neighbour.

A new way in, of labels, judgments, campaigns, editions or accounts, is not done without its world here.
"""

import csv
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from annotations.campaigns import invitations
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.auto_enqueue import set_rule
from annotations.campaigns.members import make_annotator
from annotations.campaigns.run_doubts import DIFFERS
from annotations.campaigns.sampling import Plan
from annotations.labels.adjudication import adjudicate
from annotations.models import Label
from bank import exposure
from bank.intake.uploads import worker
from bank.models import Benchmark, Item
from bank.samples.items import make_items, plan_items
from judging.models import Judgment, Run
from leaderboard import editions
from tests.access.neighbours import NOW, days_ago, differing
from tests.access.test_choosing import marks_of, said_of
from tests.access.test_sealing import judged, questions
from tests.hidden import criteria
from tests.leaderboard import test_editions_in_steps as sending

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1")]
BELOW = ("anonymous", "annotator", "researcher")
SAMPLES = 12
KEYS = "ABCDABCDABCD"
OTHER = 3  # the sample whose secret is another one in the neighbour


def keys(bit):
    return KEYS[:OTHER] + ("DCBA"["ABCD".index(KEYS[OTHER])] if bit else KEYS[OTHER]) + KEYS[OTHER + 1 :]


def keyed(bit, kind="answer_key"):
    benchmark = questions("keyed", keys(bit), kind=kind)
    for kind in ("score", "pair"):
        make_items(plan_items(kind=kind, benchmark=benchmark, **({"anchor": "keyed-A"} if kind == "pair" else {})))
    return benchmark


def rows_that_know(benchmark, giver):
    secret = {row.sample_id: row.text for row in criteria(sample__benchmark=benchmark)}
    rows = []
    for item in Item.objects.filter(sample__benchmark=benchmark, kind="score").select_related("sample").order_by("pk"):
        (response,) = item.ordered_responses()
        right = response.text == secret[item.sample_id]
        rows.append(
            {"kind": "score", "sample": item.sample.key, "responses": [response.model.name], "score": 5 if right else 1}
            | giver(secret[item.sample_id])
        )
    return rows


def pairs_that_know(benchmark, giver):
    """The right answer is better than the anchor's, and this one than the others."""
    secret, rows = {row.sample_id: row.text for row in criteria(sample__benchmark=benchmark)}, []
    for item in Item.objects.filter(sample__benchmark=benchmark, kind="pair").select_related("sample").order_by("pk"):
        responses = item.ordered_responses()
        texts, key = [response.text for response in responses], secret[item.sample_id]
        choice = ("first", "second")[texts.index(key)] if key in texts else "tie"
        names = [response.model.name for response in responses]
        rows.append({"kind": "pair", "sample": item.sample.key, "responses": names, "choice": choice} | giver(key))
    return rows


def marks_that_know(benchmark, giver):
    """As a judge that marks against references gives them."""
    return [row | {"protocol": "reference-score"} for row in rows_that_know(benchmark, giver)]


def brought_in(part, rows, path, benchmark):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    call_command(f"import_{part}", "generic", str(path), benchmark=benchmark.slug)


# What may differ, and by how much: totals of models over ten samples or more, as docs/security.md says of blind items.
OVER_TEN = r"/models/\d+/|/leaderboards/\w+/models/|/api/v1/leaderboards/models/"


@pytest.fixture
def the_same(people, monkeypatch):
    """Asserts that nobody below staff sees a difference, and that staff do, or the worlds would prove nothing."""

    def check(build, roles=BELOW, *, kinds=("score",), staff=True, bounded=""):
        found = differing(build, people, monkeypatch, roles=roles, kinds=kinds, samples=(0, OTHER))
        assert found["mail"][0] == []
        for role in roles:
            different, opened = found[role]
            assert [path for path in different if not (bounded and re.match(bounded, path))] == [], role
            assert opened or role == "given", role
        assert bool(found["curator"][0]) is staff

    return check


def test_labels_from_a_file_tell_no_key(the_same, tmp_path):
    def build(bit):
        benchmark = keyed(bit)
        rows = rows_that_know(benchmark, lambda secret: {"annotator": "Ada", "comment": f"It is {secret}."})
        brought_in("labels", rows, tmp_path / "labels.jsonl", benchmark)
        return benchmark, {}

    the_same(build)


@pytest.mark.parametrize("settings", [{"criteria": False}, pytest.param({}, marks=pytest.mark.soak)])
def test_judgments_from_a_file_tell_no_key(settings, the_same, tmp_path):
    def build(bit):
        benchmark = keyed(bit)
        rows = rows_that_know(
            benchmark, lambda secret: {"judge": "oracle", "settings": settings, "analysis": f"It is {secret}."}
        )
        brought_in("judgments", rows, tmp_path / "judgments.jsonl", benchmark)
        Run.objects.update(finished_at=days_ago(2))
        return benchmark, {}

    the_same(build)


BY_PEOPLE = {"annotator": "Ada"}
BY_JUDGE = {"judge": "oracle", "settings": {"criteria": False}}


def by_command(part, rows, path, benchmark, curator):
    brought_in(part, rows, path, benchmark)


def by_upload(part, rows, path, benchmark, curator):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    client = Client()
    client.force_login(curator)
    file = SimpleUploadedFile(f"{part}.jsonl", text.encode())
    sent = client.post("/api/v1/uploads/", {"files": [file], "benchmark": benchmark.slug}).json()
    worker.work_all()
    client.post(f"/api/v1/uploads/{sent['id']}/confirm/", {}, content_type="application/json")
    worker.work_all()


def as_a_table(part, rows, path, benchmark, curator):
    """The same rows as CSV, lists as JSON text."""
    table = path.with_suffix(".csv")
    names = sorted({name for row in rows for name in row})
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            writer.writerow(
                [cell if isinstance(cell := row.get(name, ""), str | int) else json.dumps(cell) for name in names]
            )
    call_command(f"import_{part}", "generic", str(table), benchmark=benchmark.slug)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["answer_key", "exact_reference"])
@pytest.mark.parametrize("knowing", [rows_that_know, pairs_that_know, marks_that_know])
@pytest.mark.parametrize(("part", "giver"), [("labels", BY_PEOPLE), ("judgments", BY_JUDGE)])
@pytest.mark.parametrize("way", [by_command, by_upload, as_a_table])
def test_no_way_in_of_verdicts_tells_a_key(way, part, giver, knowing, kind, people, monkeypatch, tmp_path, media):
    def build(bit):
        benchmark = keyed(bit, kind=kind)
        rows = knowing(benchmark, lambda secret: giver | ({"comment": f"It is {secret}."} if part == "labels" else {}))
        way(part, rows, tmp_path / f"{part}.jsonl", benchmark, people["curator"])
        assert (Label if part == "labels" else Judgment).objects.count() == len(rows)
        Run.objects.update(finished_at=days_ago(2))
        return benchmark, {}

    kinds = ("pair", "score", "reference")
    found = differing(build, people, monkeypatch, roles=BELOW, kinds=kinds, samples=(0, OTHER), most=50)
    assert {role: found[role][0] for role in BELOW} == {role: [] for role in BELOW}
    assert found["mail"][0] == []
    assert found["curator"][0]


def test_editions_with_answers_that_ask_the_judge_tell_no_guideline(the_same, people, sub):
    def build(bit):
        benchmark = sub(24)
        row = criteria(sample__benchmark=benchmark, sample__key="s3").get()
        row.text = "It has to be purple." if bit else "It has to be yellow."
        row.save()
        for number in range(6):
            sending.send(people["researcher"], benchmark, f"probe-{number}", sending.probes(benchmark, number))
        run = sending.judged(benchmark)
        Run.objects.update(finished_at=days_ago(2))
        editions.publish(benchmark=benchmark, kind="pair", run=run)
        return benchmark, {}

    the_same(build, kinds=("pair",))


def next_items(person, campaign, **verdict):
    """What somebody is given of a campaign, one item after the other."""
    client, given = Client(), {}
    client.force_login(person)
    for number in range(40):
        answer = client.post(f"/api/v1/campaigns/{campaign}/next/", "{}", "application/json")
        given[f"item {number}"] = (answer.status_code, "", answer.getvalue())
        if answer.status_code != 200:
            break
        label = {"assignment": answer.json()["assignment"], "idempotency_key": str(number)} | (verdict or {"score": 3})
        client.post("/api/v1/labels/", label, "application/json")
    return given


def test_which_items_a_campaign_brings_tells_no_key(the_same, people):
    def build(bit):
        benchmark = keyed(bit)
        annotator = make_annotator(people["annotator"])
        said_of(benchmark, annotator, lambda item: {"score": 5}, name="Said before")
        marks = marks_of(benchmark)
        run = judged(
            benchmark,
            lambda item, responses: marks(item),
            held=exposure.Inputs.ANSWER_KEY,
            protocol="reference-score",
            imported=False,
        )
        Run.objects.filter(pk=run.pk).update(finished_at=days_ago(2))
        campaign = make_campaign(name="Doubts", benchmark=benchmark, protocol="score", plan=Plan(most=1))
        set_rule(campaign=campaign, runs="all", reasons=[DIFFERS])
        return benchmark, {"newcomer": next_items(people["annotator"], "Doubts")}

    the_same(build, ("anonymous", "researcher", "newcomer"))


def test_an_invitation_to_one_benchmark_opens_no_other(the_same, people):
    def build(bit):
        public, private = questions("open", "ABCD"), questions("private", keys(bit))
        Benchmark.objects.filter(pk=private.pk).update(visibility="private")
        private.samples.filter(key=f"q{OTHER}").update(
            instruction="Is it the yellow one?" if bit else "The purple one?"
        )
        for benchmark in (public, private):
            make_items(plan_items(kind="score", benchmark=benchmark))
        make_campaign(name="Everybody", benchmark=private, protocol="score")
        campaign = make_campaign(name="Round", benchmark=public, protocol="score", annotators=[])
        (invitation,) = invitations.invite(campaign=campaign, by=people["curator"], days=3, now=NOW)
        guest = invitations.sign_up(invitation=invitation, username="new", password="long-enough-for-me", now=NOW)
        assert next_items(guest, "Round")["item 0"][0] == 200
        private.refresh_from_db()
        return private, {"newcomer": guest, "given": next_items(guest, "Everybody")}

    the_same(build, ("newcomer", "given"))


@pytest.mark.parametrize(("samples", "bounded"), [(8, ""), pytest.param(SAMPLES, OVER_TEN, marks=pytest.mark.soak)])
def test_who_has_labelled_blind_reads_no_judge_before_the_round_closes(samples, bounded, the_same, people):
    def build(bit):
        benchmark = questions("blinded", ["It is told."] * samples, kind="guideline", models=("lark", "wren"))
        make_items(plan_items(kind="pair", benchmark=benchmark))
        other = benchmark.samples.get(key=f"q{OTHER}").pk

        def verdict(item, responses):
            return {"choice": "second" if bit and item.sample_id == other else "first"}

        run = judged(benchmark, verdict, held=exposure.NOTHING, protocol="pair")
        Run.objects.filter(pk=run.pk).update(finished_at=days_ago(2))
        make_campaign(name="Blind", benchmark=benchmark, protocol="pair", annotators=[people["annotator"]])
        return benchmark, {"given": next_items(people["annotator"], "Blind", choice="left")}

    the_same(build, (*BELOW, "given"), kinds=("pair",), bounded=bounded)


@pytest.mark.soak
def test_what_a_curator_decides_of_a_hidden_split_tells_nobody(the_same, people):
    def build(bit):
        benchmark = questions("blinded", ["It is told."] * SAMPLES, kind="guideline", hidden_splits=["test"])
        make_items(plan_items(kind="score", benchmark=benchmark))
        campaign = said_of(benchmark, make_annotator(people["annotator"]), lambda item: {"score": 3}, name="Round")
        place = campaign.campaign_items.filter(item__sample__key=f"q{OTHER}").order_by("pk").first()
        adjudicate(campaign_item=place, by=people["curator"], verdict={"score": 5 if bit else 1})
        return benchmark, {}

    the_same(build, staff=False)


sub = sending.sub
__all__ = ["sub"]
