"""Below staff a run that holds criteria tells nothing of what it makes until it has ended: verdicts that come one by
one tell how long each call took, and so how long its criteria are.
"""

import re

import pytest
from django.utils import timezone

from bank import exposure
from bank.models import Benchmark, Item
from judging.extras.juries import make_jury
from judging.models import Judgment, Run
from leaderboard.models import Snapshot
from tests.hidden import ended_before_today
from tests.leaderboard.conftest import brought, folder, grove, judgments, labels, manage, voted  # noqa: F401 (fixtures)

pytestmark = pytest.mark.django_db
BELOW = ("anonymous", "annotator", "researcher")
MASKED = re.compile(r'csrfmiddlewaretoken" value="[^"]+"|CSRFToken": "[^"]+"')
API = "/api/v1/leaderboards"


@pytest.fixture
def at_work(voted, people):  # noqa: F811
    """A run that holds criteria, at work, six verdicts before its end; a jury of it and another one."""
    run, other = Run.objects.get(judge__name="keen"), Run.objects.get(judge__name="dull")
    make_jury(name="bench", runs=[run, other], by=people["curator"])
    last = run.judgments.order_by("-pk")[5].pk
    coming = list(run.judgments.filter(pk__gte=last).order_by("pk"))
    total = run.judgments.count()
    run.judgments.filter(pk__gte=last).delete()
    Run.objects.filter(pk=run.pk).update(
        imported=False,
        state=Run.State.RUNNING,
        held=exposure.Inputs.GUIDELINE,
        planned=total,
        verdicts=total - 6,
        failures=0,
        undecided=0,
        calls=total - 6,
    )
    run.refresh_from_db()
    run.coming = coming
    return run


def arrive(run, **columns):
    """One more verdict, and what its worker writes beside it."""
    one = run.coming.pop(0)
    made = Judgment.objects.create(run=run, item=one.item, order=one.order, repeat=one.repeat, choice=one.choice)
    run.verdicts, run.calls, run.reported_model = run.verdicts + 1, run.calls + 2, f"model {run.verdicts}"
    run.reported = [{"model": "a", "replies": run.verdicts}, {"model": "b", "replies": 1}]
    for name, value in columns.items():
        setattr(run, name, value)
    run.save()
    return made


def addresses(run):
    jury, other = Run.objects.get(judge__name="bench"), Run.objects.get(judge__name="dull")
    item = run.coming[0].item_id
    base = "/leaderboards/grove"
    yield from ("/", "/leaderboards/", "/find/?q=keen", f"{base}/items/{item}/", f"{base}/snapshots/")
    pages = ("models", "models/matrix", "models/together", "models/compare")
    boards = ("judges", "agreement", "bias", "correlation")
    for page in (*pages, *boards):
        yield f"{base}/{page}/"
    for judge in ("keen", "bench"):
        for page in (*pages, *boards, "votes", "models/rows.csv", "plots/forest.svg"):
            yield f"{base}/{page}{'' if '.' in page else '/'}?source={judge}&model=Alder"
        yield f"{base}/models/compare/?source={judge}&a=Alder&b=Birch"
    for one in (run, jury):
        yield f"{base}/models/?run={one.pk}"
        yield f"{base}/compare/?a=majority&b=run-{one.pk}"
        yield f"{base}/judges/compare/?a=run-{one.pk}&b=run-{other.pk}"
        yield f"/judging/runs/{one.pk}/"
        yield f"/judging/runs/{one.pk}/?show=failed"
        yield f"/judging/runs/{one.pk}/progress/"
        yield f"/judging/judges/{one.judge_id}/"
        yield f"{base}/judges/compare/?run={one.pk}&run={other.pk}"
        yield f"/judging/judgments/?run={one.pk}"
        yield f"/judging/judgments/?run={one.pk}&differs=orders"
        yield f"/api/v1/runs/{one.pk}/"
        yield f"/api/v1/judgments/?run={one.pk}"
        yield f"{API}/models/?benchmark=grove&run={one.pk}"
    yield from ("/judging/", "/judging/judgments/", "/judging/judgments/?show=first")
    yield from ("/api/v1/runs/", "/api/v1/juries/", "/api/v1/judgments/")
    yield from (f"/judging/judgments/?item={item}", f"/api/v1/judgments/?item={item}")
    for table in ("stand-in", "people-and-judge", "ceiling", "correlation"):
        yield f"{API}/{table}/?benchmark=grove"
    yield f"{API}/people-and-judge/?benchmark=grove&run={run.pk}"
    for what in (*boards, "models"):
        yield f"{API}/{what}/?benchmark=grove"
        yield f"{API}/{what}/?benchmark=grove&kind=pair&source=keen"
        yield f"{API}/{what}/?benchmark=grove&format=csv"


def seen(client, run, paths):
    """What pages, API and files say, by address."""
    found = {}
    for path in paths:
        answer = client.get(path)
        found[path] = answer.status_code, MASKED.sub("", answer.content.decode(errors="replace"))
    export = client.post("/judging/judgments/export/", {"shape": "jsonl"})
    if export.streaming:
        found["export"] = export.status_code, b"".join(export.streaming_content).decode()
    return found


def test_a_verdict_of_a_run_at_work_shows_to_staff_as_it_arrives_and_changes_no_byte_below(at_work, client_of):
    paths = list(addresses(at_work))
    clients = {role: client_of(role) for role in ("curator", *BELOW)}  # what is kept for staff is served to nobody else
    before = {role: seen(client, at_work, paths) for role, client in clients.items()}
    assert {path: status for path, (status, _) in before["curator"].items() if status != 200} == {}
    pks = [arrive(at_work).pk for _ in range(2)]  # both orders of an item
    after = {role: seen(clients[role], at_work, paths) for role in BELOW}

    below = [(role, path) for role in BELOW for path in before[role] if before[role][path] != after[role][path]]
    assert below == []
    for role in BELOW:
        assert {clients[role].get(f"/judging/judgments/{pk}/").status_code for pk in pks} <= {302, 403, 404}
        assert {clients[role].get(f"/api/v1/judgments/{pk}/").status_code for pk in pks} <= {401, 403, 404}

    of_run = (f"/judging/runs/{at_work.pk}/", f"/api/v1/runs/{at_work.pk}/", "/leaderboards/", "export")
    boards = ("/leaderboards/grove/models/?source=keen&model=Alder", "/leaderboards/grove/judges/")
    changed = (*of_run, *boards, f"{API}/models/?benchmark=grove&run={at_work.pk}", "/judging/judgments/")
    now = seen(clients["curator"], at_work, [path for path in changed if path != "export"])
    for path in changed:
        assert before["curator"][path] != now[path], path
    assert {clients["curator"].get(f"/api/v1/judgments/{pk}/").status_code for pk in pks} == {200}


def test_a_board_of_a_run_at_work_is_refused_below_staff_and_no_board_names_it(at_work, client_of):
    for role in BELOW:
        client = client_of(role)
        for judge in ("keen", "bench"):
            assert client.get(f"{API}/models/?benchmark=grove&kind=pair&source={judge}").status_code == 400
            assert client.post(f"/leaderboards/grove/models/freeze/?source={judge}").status_code in (302, 400)
        rows = client.get(f"{API}/judges/?benchmark=grove").json()
        assert {row["judge"] for row in rows} == {"dull"}
        rows = client.get(f"{API}/stand-in/?benchmark=grove").json()
        assert {row["judge"] for row in rows} == {"dull"}
        rows = client.get(f"{API}/people-and-judge/?benchmark=grove").json()
        assert {row["judge_name"] for row in rows} == {"dull"}
    assert not Snapshot.objects.exists()
    rows = client_of("curator").get(f"{API}/judges/?benchmark=grove").json()
    assert {row["judge"] for row in rows} == {"keen", "dull", "bench"}


def test_that_it_has_ended_or_paused_is_told_on_no_day_before_the_next(at_work, client_of):
    """The gaps between ends, and a budget that runs out, go with the length of hidden text."""
    researcher = client_of("researcher")
    told = {}
    for state in ("queued", "running", "paused", "finished"):
        Run.objects.filter(pk=at_work.pk).update(state=state, finished_at=timezone.now(), state_reason="no money")
        told[state] = [
            researcher.get(path).content for path in (f"/api/v1/runs/{at_work.pk}/", f"{API}/judges/?benchmark=grove")
        ]
        page = MASKED.sub("", researcher.get(f"/judging/runs/{at_work.pk}/").content.decode())
        assert "Not finished" in page
        assert "no money" not in page
    assert told["queued"] == told["running"] == told["paused"] == told["finished"]


@pytest.mark.parametrize("state", ["finished", "cancelled"])
def test_on_the_day_after_its_end_everybody_sees_its_verdicts_counts_and_numbers(state, at_work, client_of):
    anonymous, researcher = client_of("anonymous"), client_of("researcher")
    boards = [f"{API}/judges/?benchmark=grove", "/leaderboards/grove/judges/", "/leaderboards/"]
    before = seen(anonymous, at_work, boards)
    arrive(at_work, state=state)
    ended_before_today(at_work)
    for judge in ("keen", "bench"):
        assert anonymous.get(f"{API}/models/?benchmark=grove&kind=pair&source={judge}").json()
    after = seen(anonymous, at_work, boards)
    assert [path for path in boards if before[path] == after[path]] == []
    judges = {row["judge"] for row in anonymous.get(f"{API}/judges/?benchmark=grove").json()}
    assert judges == {"keen", "dull", "bench"}
    told = researcher.get(f"/api/v1/runs/{at_work.pk}/").json()
    assert (told["done"], told["failed"], told["calls"]) == (at_work.verdicts, 0, at_work.calls)
    assert researcher.get(f"/api/v1/judgments/?run={at_work.pk}").json()["results"]
    assert "Counts are shown on" not in researcher.get(f"/judging/runs/{at_work.pk}/").content.decode()


def test_a_run_that_goes_on_after_its_end_is_withheld_again(at_work, client_of):
    researcher = client_of("researcher")
    arrive(at_work, state="finished")
    ended_before_today(at_work)
    assert researcher.get(f"/api/v1/judgments/?run={at_work.pk}").json()["results"]
    assert researcher.get(f"{API}/models/?benchmark=grove&kind=pair&source=keen").status_code == 200
    for state in ("queued", "running", "paused"):
        Run.objects.filter(pk=at_work.pk).update(state=state)
        assert researcher.get(f"/api/v1/judgments/?run={at_work.pk}").json()["results"] == []
        assert researcher.get(f"{API}/models/?benchmark=grove&kind=pair&source=keen").status_code == 400


def test_a_run_without_closed_criteria_is_seen_live_by_everybody(at_work, client_of):
    Run.objects.filter(pk=at_work.pk).update(held=exposure.NOTHING)
    at_work.refresh_from_db()
    before = client_of("anonymous").get(f"{API}/models/?benchmark=grove&kind=pair&source=keen").json()
    for _ in range(2):  # both orders of an item
        pk = arrive(at_work).pk
        assert client_of("researcher").get(f"/api/v1/judgments/{pk}/").status_code == 200
        told = client_of("researcher").get(f"/api/v1/runs/{at_work.pk}/").json()
        assert (told["done"], told["calls"]) == (at_work.verdicts, at_work.calls)
    assert client_of("anonymous").get(f"{API}/models/?benchmark=grove&kind=pair&source=keen").json() != before


def test_the_first_verdict_of_a_kind_opens_no_board_below_staff(grove, client_of, at_work):  # noqa: F811
    bare = Benchmark.objects.create(slug="bare", title="Bare", visibility="public")
    sample = bare.samples.create(key="s", instruction="How good?", status="approved")
    item = Item.objects.create(kind="score", sample=sample, content_hash="x")
    Run.objects.filter(pk=at_work.pk).update(benchmark=bare, protocol="score")
    paths = ["/", "/leaderboards/", "/leaderboards/bare/models/", "/leaderboards/bare/judges/"]
    Judgment.objects.filter(run=at_work).delete()
    roles = ("anonymous", "curator")
    before = [seen(client_of(role), at_work, paths) for role in roles]
    Judgment.objects.create(run=at_work, item=item, score=3)
    after = [seen(client_of(role), at_work, paths) for role in roles]
    assert after[0] == before[0]
    assert after[1]["/leaderboards/bare/models/"] != before[1]["/leaderboards/bare/models/"]
