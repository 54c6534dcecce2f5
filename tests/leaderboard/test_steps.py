"""The line of steps from a file to a board: what is there, what comes next, for staff."""

import pytest

from annotations.models import Campaign
from bank.models import Benchmark, Item
from judging.models import Judge, Judgment, Run
from leaderboard.pages import steps
from tests.judging.small import make_benchmark
from tests.markup import flat

pytestmark = pytest.mark.django_db


def states(client, name):
    page = client.get(f"/leaderboards/{name}/steps/").content.decode()
    return [part.split('"', 1)[0] for part in page.split('<li class="')[1:]], flat(page)


def test_the_first_step_that_is_not_done_is_the_next_one(client_of):
    curator = client_of("curator")
    benchmark = Benchmark.objects.create(slug="new", title="New")
    found, page = states(curator, "new")
    assert found == ["now", "later", "later", "later"]
    assert 'href="/bank/uploads/?benchmark=new%401"' in page
    assert "Make items" not in page
    made = make_benchmark()
    found, page = states(curator, made.slug)
    assert found == ["done", "done", "now", "later"]
    assert "3 samples, 2 models" in page
    assert "3 pairs" in page
    assert f'href="/judging/runs/new/?benchmark={made.pk}"' in page
    assert f'href="/campaigns/new/?benchmark={made.pk}"' in page
    Campaign.objects.create(name="round", benchmark=made, protocol="pairwise-criteria", state="open")
    assert "1 campaign open" in states(curator, made.slug)[1]
    assert benchmark.visibility == "private"


def test_a_benchmark_without_items_says_so_and_leads_to_making_them(client_of):
    made = make_benchmark()
    Item.objects.all().delete()
    found, page = states(client_of("curator"), made.slug)
    assert found == ["done", "now", "later", "later"]
    assert f'href="/bank/benchmarks/{made}/items/"' in page


def test_of_very_many_answers_and_items_no_more_is_counted_than_that(client_of, monkeypatch):
    made = make_benchmark()
    page = states(client_of("curator"), made.slug)[1]
    assert "6 answers" in page
    assert "more than" not in page
    monkeypatch.setattr(steps, "MANY", 5)
    page = states(client_of("curator"), made.slug)[1]
    assert "more than 5 answers" in page
    assert "3 pairs" in page


def test_its_page_loads_the_line_and_others_do_not_see_it(client_of, client):
    made = make_benchmark()
    page = client_of("curator").get(f"/bank/benchmarks/{made.slug}/").content.decode()
    assert f'hx-get="/leaderboards/{made}/steps/"' in page
    assert client_of("researcher").get(f"/leaderboards/{made.slug}/steps/").status_code == 403
    assert client.get(f"/leaderboards/{made.slug}/steps/").status_code == 302


def test_the_ways_to_take_part_keep_where_they_lead(client, client_of, people):
    page = client.get("/").content.decode()
    for target in ("/annotate/", "/submissions/", "/judging/"):
        assert f'href="/accounts/sign-in/?next={target}"' in page
    people["annotator"].set_password("a-long-password")
    people["annotator"].save()
    form = {"username": people["annotator"].username, "password": "a-long-password"}
    assert client.post("/accounts/sign-in/", form).url == "/annotate/"
    assert client.post("/accounts/sign-in/", form | {"next": "/method/"}).url == "/method/"


@pytest.mark.parametrize("name", ["baseline-longest", "kestrel"])
def test_a_baseline_does_not_rank_models_by_itself_as_a_judge_does(name, client):
    made = make_benchmark()
    judge, _ = Judge.objects.get_or_create(name=name)
    run = Run.objects.create(
        judge=judge, benchmark=made, protocol="pair", settings={"order": "fixed"}, settings_hash="x", state="finished"
    )
    for item in Item.objects.all():
        Judgment.objects.create(run=run, item=item, order="01", status="ok", choice="first")
    ranked = f"these are the verdicts of {name}" in flat(client.get(f"/leaderboards/{made.slug}/models/"))
    assert ranked == (name == "kestrel")


def test_a_baselines_run_puts_no_empty_board_before_one_that_models_are_ranked_on(client):
    made = make_benchmark()
    item = Item.objects.first()
    answers = item.sample.responses.all()
    alone = Item.objects.create(kind="score", sample=item.sample, content_hash="alone")
    alone.responses.set([answers[0]], through_defaults={"position": 0})
    judged = {"coin": ("baseline-random", "pair", item, {"choice": "first"})}
    judged["kestrel"] = ("", "score", alone, {"score": 4.0})
    for name, (baseline, protocol, of, verdict) in judged.items():
        judge, _ = Judge.objects.get_or_create(name=name, defaults={"baseline": baseline})
        run = Run.objects.create(
            judge=judge, benchmark=made, protocol=protocol, settings={}, settings_hash=name, state="finished"
        )
        Judgment.objects.create(run=run, item=of, order="01"[: 1 + (of is item)], status="ok", **verdict)
    rows = client.get("/api/v1/leaderboards/models/", {"benchmark": made.slug}).json()
    assert [row["score"] for row in rows if not row.get("level")] == [4.0]
