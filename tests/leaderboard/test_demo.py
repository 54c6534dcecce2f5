"""What the demo shows to a visitor: every page has something to say, and what is invented says so."""

import html
import json
import re

import pytest
from django.utils import timezone

from accounts.models import User
from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.campaigns.sampling import Plan
from annotations.models import Annotator, Campaign, Label
from bank.models import Benchmark, Response
from evalsite.demo.accounts import PASSWORD
from evalsite.demo.llmfao import is_here, load_llmfao
from evalsite.demo.loader import load, rows_of
from evalsite.demo.recipes import ANSWERS, MARKS, load_recipes
from evalsite.demo.recipes import is_here as is_complete
from judging.models import Judge, Judgment
from leaderboard.boards.recipes.desiderata import QUALITIES
from leaderboard.models import Snapshot
from tests.demo_data import shapes, simulation
from tests.markup import flat
from tests.once import once

SIMULATED = ["Jury of three", "Prefers first", "Prefers length", "Steady"]
SCENES = "/leaderboards/everyday-scenes"


@pytest.fixture
def demo(db, media, client):
    once("demo", load)
    return client


def rows(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.json()


@pytest.mark.parametrize("name", ["labels", "judgments", "reviews"])
def test_its_files_are_what_its_simulation_makes(name):
    assert list(getattr(simulation, name)()) == rows_of(f"{name}.jsonl.gz")


def test_the_questions_of_its_drawn_shapes_are_what_its_simulation_makes(tmp_path):
    made = list(shapes.samples(tmp_path))
    assert made == rows_of("drawn-shapes/samples.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in ANSWERS.parent.glob("*.png")
    )


def test_its_judges_and_people_are_simulated_and_say_so_on_pages_in_rows_and_in_files(demo, manage, tmp_path):
    judges = rows(demo, "/api/v1/leaderboards/judges/?benchmark=everyday-scenes&kind=pair")
    marked = {row["judge"]: row["simulated"] for row in judges if not row["judge"].startswith("baseline-")}
    assert marked == dict.fromkeys(SIMULATED, True)
    assert not any(row["simulated"] for row in judges if row["judge"].startswith("baseline-"))
    assert demo.get(f"{SCENES}/judges/").content.decode().count(">simulated</span>") == len(SIMULATED)
    assert demo.get(f"{SCENES}/bias/").content.decode().count(">simulated</span>") >= len(SIMULATED)
    for path in ("bias/", "plots/bias.svg?metric=length", "plots/judges.svg", "correlation/"):
        text = re.sub(r"(\s|<[^>]*>)+", " ", demo.get(f"{SCENES}/{path}").content.decode())
        for name in SIMULATED:
            assert text.count(name) == len(re.findall(rf"{name} (?:run \d+ )?\(?simulated", text)) > 0, (path, name)
    assert "The labels come from simulated annotators" in demo.get(f"{SCENES}/models/").content.decode()
    assert set(Annotator.objects.filter(labels__isnull=False).values_list("simulated", flat=True)) == {True}
    for what in ("labels", "judgments"):
        assert (
            manage(
                "export",
                what,
                "--benchmark",
                "everyday-scenes",
                "--format",
                "jsonl",
                "--output",
                tmp_path / f"{what}.jsonl",
            )[0]
            == 0
        )
    for line in (tmp_path / "labels.jsonl").read_text().splitlines():
        assert json.loads(line)["simulated"] is True
    for line in (tmp_path / "judgments.jsonl").read_text().splitlines():
        judgment = json.loads(line)
        assert judgment.get("simulated", False) is not judgment["judge"].startswith("baseline-")


def test_a_closed_round_of_five_labels_a_pair_covers_every_sample_and_its_votes_are_public(demo):
    closed = Campaign.objects.get(name="Everyday scenes, round 1")
    labels = Label.objects.filter(campaign=closed)
    assert closed.state == Campaign.State.CLOSED
    assert {closed.campaign_items.count(), labels.count() / 5} == {90}
    assert labels.values("item__sample").distinct().count() == 32
    board = rows(demo, "/api/v1/leaderboards/models/?benchmark=everyday-scenes&kind=pair")
    (n,) = {row["n"] for row in board if row["model"] == "Halcyon-V 2"}
    page = demo.get(f"{SCENES}/votes/?model=Halcyon-V+2").content.decode()
    assert f"{n} items: won" in page
    open_now = Campaign.objects.filter(benchmark=closed.benchmark, state=Campaign.State.OPEN)
    assert sorted(open_now.values_list("protocol", flat=True)) == ["batch", "pairwise-criteria", "review"]


def test_judges_stand_in_lean_and_help_people_as_they_were_made_to(demo, board):
    tested = rows(demo, "/api/v1/leaderboards/stand-in/?benchmark=everyday-scenes&kind=pair")
    assert {row["judge"] for row in tested if row["passes"]} == {"Steady", "Jury of three", "Prefers length"}
    # Of all pairs: visitors' board leaves out those that people label blind.
    biases = board("bias", "--kind", "pair", benchmark="everyday-scenes")
    found = {(row["judge"], row["bias"]) for row in biases if (row["value_low"] or 0) > 0}
    assert ("Prefers first", "position") in found
    assert ("Prefers length", "length") in found
    assert not {("Steady", "position"), ("Steady", "length")} & found
    together = rows(demo, "/api/v1/leaderboards/people-and-judge/?benchmark=everyday-scenes&kind=pair&source=Steady")
    # What people still label blind is left out below staff, and two models then have groups too few.
    assert sorted(row["model"] for row in together if row["both"] is None) == ["Kestrel-VL 7B", "Wren 3B"]
    assert Judgment.objects.filter(run__judge__name="Steady").count() == 2 * 192


def test_real_votes_come_in_beside_it_once_and_give_the_first_sentence_its_number(demo):
    before = demo.get("/").content.decode()
    assert "One finished item" in before
    assert "5 people" in before
    assert "the best judge" not in before
    assert not is_here()
    load_llmfao()
    load_llmfao()
    assert is_here()
    assert Judge.objects.filter(simulated=False, baseline="").count() == 2
    assert Label.objects.filter(campaign__benchmark__slug="llmfao").count() == 8_931
    sentence = " ".join(demo.get("/").content.decode().split())
    assert "1,059 LLMFAO pairs</a> of text answers where people chose a side" in sentence
    assert ">73.5%</a>" in sentence
    assert ">60.5%</a>" in sentence


def test_every_quality_is_measured_by_recipes_and_each_model_is_called_simulated(demo):
    load_recipes()
    stored = Response.all_objects.exclude(recipe=None).count()
    load_recipes()
    assert Response.all_objects.exclude(recipe=None).count() == stored
    found = {row["model"]: row for row in rows(demo, "/api/v1/leaderboards/desiderata/")}
    lacking = {(name, model) for model, row in found.items() for name in QUALITIES if row[name] is None}
    assert lacking == {("calibration", "Wren 3B"), ("hallucination", "Merlin-VL 72B")}
    assert all(0.25 < row["accuracy"] < 0.95 for row in found.values())
    page = demo.get("/desiderata/").content.decode()
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert table.count(">simulated</span>") == len(found) == 9
    for name in ("shapes-accuracy", "shapes-reasons", "shapes-yes-no"):
        board = demo.get(f"/recipes/{name}/board/").content.decode()
        assert board.count('<th scope="row"') == board.count(">simulated</span>"), name
    assert is_complete()
    assert list(shapes.answers()) == rows_of(ANSWERS)
    assert shapes.marks() == json.loads(MARKS.read_text())


def test_what_moved_in_its_first_round_stands_in_snapshots_of_three_days(demo):
    days = [snapshot.computed_at.day for snapshot in Snapshot.objects.order_by("pk")]
    assert days == [10, 12, 14]
    newest = Snapshot.objects.first()
    assert newest.rows != Snapshot.objects.last().rows
    page = demo.get(f"/snapshots/{newest.code}/").content.decode()
    assert "14 Nov 2026" in page


def test_its_annotator_has_a_history_that_says_it_is_simulated(demo):
    demo.login(username="annotator", password=PASSWORD)
    assert "218 labels" in demo.get("/annotate/").content.decode()
    past = Annotator.objects.get(person__username="annotator")
    assert past.simulated
    closed = Campaign.objects.get(name="Everyday scenes, round 1")
    assert f"{past.pseudonym} (simulated)" in demo.get(f"/annotate/{closed.pk}/done/").content.decode()


def test_every_account_of_it_is_a_real_one(demo):
    assert User.objects.count() == 4


FIGURE = re.compile(r'<a\s[^>]*href="(/leaderboards/[^"]+)"[^>]*>(?:<b>)?([+−]?[\d.,]+)(?:</b>)?</a>')


@pytest.mark.parametrize("role", ["anonymous", "researcher", "curator"])
@pytest.mark.parametrize("opened", [False, True], ids=["before", "while people label it again"])
def test_every_figure_of_its_boards_leads_to_a_page_that_prints_it(opened, role, demo):
    """Models and judges, by pairs and by scores: each figure is told again, with what is shown of it."""
    once("llmfao", load_llmfao)
    if opened:
        for slug in ("everyday-scenes", "llmfao"):
            make_campaign(name=f"Again {slug}", benchmark=Benchmark.objects.get(slug=slug), protocol="pair")
    client, followed, others = demo, 0, []
    if role != "anonymous":
        client.force_login(User.objects.get(username=role))
    boards = [f"{SCENES}/models/", f"{SCENES}/judges/", f"{SCENES}/models/?kind=score", f"{SCENES}/judges/?kind=score"]
    boards += ["/leaderboards/llmfao/models/", "/leaderboards/llmfao/judges/", "/leaderboards/shapes/models/"]
    for board in boards:
        figures = set(FIGURE.findall(flat(client.get(board)).partition("<main")[2]))
        of_models = sorted(figures)[:: 12 if "llmfao/models" in board else 1]
        for link, figure in of_models:
            there = flat(client.get(html.unescape(link))).partition("<main")[2]
            text = re.sub(r"<[^>]+>", " ", there)
            followed += 1
            if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", text):
                others.append((board, figure, link))
    assert not others
    assert followed > 30


def test_no_point_of_its_curves_is_about_few_items_that_people_label(demo):
    """Twelve samples are labelled again: the whole counts them, and of its eight parts by length those do that lack
    them.
    """

    def curves():
        rows = demo.get("/api/v1/leaderboards/bias/?benchmark=everyday-scenes").json()
        return {row["judge"]: (row["value"], row["detail"]["curve"]) for row in rows if row["detail"].get("curve")}

    for campaign in Campaign.objects.exclude(state="closed"):
        close_campaign(campaign=campaign, now=timezone.now())
    before, scenes = curves(), Benchmark.objects.get(slug="everyday-scenes")
    keys = tuple(scenes.samples.order_by("position").values_list("key", flat=True)[:12])
    make_campaign(name="Twelve", benchmark=scenes, protocol="pair", plan=Plan(how="keys", keys=keys))
    during = curves()
    assert before.keys() == {*SIMULATED, "humans"}
    assert during.keys() >= {*SIMULATED}
    for judge, (slope, points) in during.items():
        assert slope == before[judge][0]
        assert len(points) < len(before[judge][1])
        assert all(point in before[judge][1] for point in points)
