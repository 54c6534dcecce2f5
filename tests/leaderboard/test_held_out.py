"""Half of what people labelled is held out: no judge is compared with people on it before somebody asks for that."""

import io
import json
import re

import pytest
from django.core.management import call_command
from django.db.models import Case, F, Value, When

from accounts import installation_key
from accounts.models import AuditEntry
from annotations.campaigns.run_doubts import doubts_of, subset_of
from bank.models import Benchmark, HeldOutHalf, Item, Sample
from bank.samples import held_out as halves
from judging.models import Judgment, Run
from leaderboard import registry as tables
from leaderboard.boards.behind.votes import vote_table
from leaderboard.kept import values
from leaderboard.view import scope_of
from tests.bank.conftest import folder, manage
from tests.leaderboard.test_tables import API, got, told
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
PAGE = "/leaderboards/grove/judges/held-out/"
# Of one voter alone, or of labels alone: no judge is compared with people there.
OF_ONE = {"models", "places", "apart", "repeats", "lengths", "variance", "contents", "campaign", "power", "abilities"}
NOT_HERE = {"letters", "extraction", "held-out"}


def asked(*options):
    out = io.StringIO()
    call_command("held_out", "grove", *options, stdout=out)
    return out.getvalue()


@pytest.fixture
def halved(voted):
    """The grove, whose labels are held out by half."""
    asked("--draw")
    return voted


def held(benchmark):
    return halves.held_out_samples(benchmark)


def turn(benchmark, samples):
    """Both judges say the opposite of what they said on these samples."""
    judged = Judgment.objects.filter(item__sample__in=samples)
    turned = Case(
        When(choice="first", then=Value("second")), When(choice="second", then=Value("first")), default=F("choice")
    )
    assert judged.update(choice=turned)
    values.forget()


def compared(client):
    """Every table that compares judges with people, as staff and everybody else get it, by command, API and as CSV."""
    runs = {name: f"run-{Run.objects.get(judge__name=name).pk}" for name in ("keen", "dull")}
    asks = {"compare": {"a": runs["keen"], "b": runs["dull"]}, "disagreements": {"source": "dull"}}
    rows = {}
    for what in tables.TABLES.keys() - OF_ONE - NOT_HERE:
        query = asks.get(what, {})
        options = [part for name, value in query.items() for part in (f"--{name}", value)]
        rows[what] = told(what, *options), told(what, *options, shape="csv"), got(client, what, **query).json()
    return rows


def test_about_half_of_the_labelled_items_is_held_out_and_what_shares_a_picture_stays_together(voted):
    Sample.objects.filter(benchmark=voted, key__in=("s00", "s01", "s02", "s03", "s04")).update(group="one sign")
    asked("--draw")
    items = Item.objects.filter(sample__benchmark=voted, labels__isnull=False).distinct()
    share = items.filter(sample__in=held(voted)).count() / items.count()
    assert 0.4 < share < 0.6
    together = set(Sample.objects.filter(benchmark=voted, group="one sign").values_list("pk", flat=True))
    assert held(voted) & together in (set(), together)


def test_the_half_is_drawn_with_the_key_of_the_installation_and_stays_when_samples_come(halved, monkeypatch):
    before = held(halved)
    for n in range(30):
        Sample.objects.create(benchmark=halved, key=f"later {n}", instruction="?")
    known = set(halved.samples.exclude(key__startswith="later").values_list("pk", flat=True))
    assert held(halved) & known == before
    assert 3 < len(held(halved) - known) < 27
    monkeypatch.setattr(installation_key, "_kept", b"another" * 5)
    assert held(halved) & known != before


def test_another_version_of_the_benchmark_holds_out_the_same(halved):
    newer = Benchmark.objects.create(slug="grove", version="2", title="Grove 2")
    for sample in halved.samples.all():
        Sample.objects.create(benchmark=newer, key=sample.key, instruction="?")
    halves.draw(benchmark=newer, labelled={"s00": 1, "s01": 1})
    keys = set(halved.samples.filter(pk__in=held(halved)).values_list("key", flat=True))
    assert set(newer.samples.filter(pk__in=held(newer)).values_list("key", flat=True)) == keys


def test_no_board_command_api_or_file_tells_how_a_judge_compares_with_people_there(halved, client_of):
    before = compared(client_of("researcher"))
    by_judge = told("models", "--source", "keen")
    turn(halved, held(halved))
    assert told("models", "--source", "keen") != by_judge, "a judge's own board counts every item"
    after = compared(client_of("researcher"))
    assert {what for what in before if before[what] != after[what]} == set()
    others = set(halved.samples.values_list("pk", flat=True)) - held(halved)
    turn(halved, others)
    at_least = {
        "judges",
        "agreement",
        "bias",
        "stand-in",
        "people-and-judge",
        "correlation",
        *("compare", "disagreements"),
    }
    changed = compared(client_of("researcher"))
    assert at_least <= {what for what in after if after[what] != changed[what]}


@pytest.mark.parametrize("role", ["anonymous", "researcher", "curator"])
def test_no_page_tells_it_either(role, halved, client_of):
    keen, dull = (Run.objects.get(judge__name=name) for name in ("keen", "dull"))
    two = f"a=run-{keen.pk}&b=run-{dull.pk}"
    paths = [
        *("judges/", "bias/", "agreement/", "correlation/", "models/together/", f"judges/compare/?{two}"),
        *(f"compare/?a=majority&b=run-{keen.pk}", "plots/judges.svg"),
    ]
    paths = [f"/leaderboards/grove/{path}" for path in paths] + [f"/judges/{keen.judge_id}/"]
    client = client_of(role)

    def shown():
        pages = [client.get(path).content.decode() for path in paths]
        return [re.sub(r'datetime="[^"]*"|\d\d:\d\d UTC|[A-Za-z0-9]{64}', "", page) for page in pages]

    before = shown()
    turn(halved, held(halved))
    changed = [path for path, was, now in zip(paths, before, shown(), strict=True) if was != now]
    assert changed in ([], [f"/judges/{keen.judge_id}/"])  # how steady it is, by itself


def test_pages_of_votes_show_verdicts_there_and_compare_none(halved, client_of):
    client, run = client_of("curator"), Run.objects.get(judge__name="dull")
    pair = Item.objects.filter(sample__in=held(halved), labels__isnull=False).first()
    other = Item.objects.exclude(sample__in=held(halved)).filter(labels__isnull=False, judgments__run=run).first()
    here, there = (flat(client.get(f"/leaderboards/grove/items/{item.pk}/")) for item in (pair, other))
    assert "dull" in here
    assert not any(word in here for word in ("agrees", "differs"))
    assert any(word in there for word in ("agrees", "differs"))


def test_the_list_of_votes_holds_every_item_and_tells_what_differs_on_the_open_half_alone(halved):
    table = vote_table(scope_of(benchmark=halved, staff=True), "Alder").table
    here = table["sample"].isin(held(halved))
    assert here.any()
    assert table["people"][here].isna().all()
    assert (table["differ"][here] == 0).all()
    assert (table["differ"][~here] > 0).any()


def test_neither_doubts_nor_the_hard_subset_of_a_run_hold_its_disagreements_there(halved):
    run = Run.objects.get(judge__name="dull")
    items = set(Item.objects.filter(sample__in=held(halved)).values_list("pk", flat=True))
    assert not items & doubts_of(run, reasons=["differs"]).keys()
    judgments = Judgment.objects.filter(pk__in=[*subset_of(run, "hq"), *subset_of(run, "hard")])
    assert judgments.exists()
    assert not judgments.filter(item__in=items).exists()


def test_a_request_tells_the_figures_of_a_run_on_both_halves_and_is_counted_with_who_and_when(voted, client_of):
    whole = {row["metric"]: row for row in told("judges") if row["judge"] == "keen" and row["reference"] == "majority"}
    asked("--draw")
    run, client = Run.objects.get(judge__name="keen"), client_of("curator")
    for number in (1, 2):
        made = client.post("/api/v1/held-out/", {"benchmark": "grove", "run": run.pk}, content_type="application/json")
        assert (made.status_code, made.json()["number"], made.json()["by"]) == (201, number, "curator")
    rows = got(client, "held-out").json()
    assert {(row["request"], row["asked_by"], row["run"]) for row in rows} == {(n, "curator", run.pk) for n in (1, 2)}
    first = {row["metric"]: row for row in rows if row["request"] == 1 and row["reference"] == "majority"}
    share, of_all = first["accuracy_with_tie"], whole["accuracy_with_tie"]
    assert share["open_n"] + share["held_out_n"] == of_all["value_n"]
    right = [share[half] * share[f"{half}_n"] for half in ("open", "held_out")]
    assert sum(right) == pytest.approx(of_all["value"] * of_all["value_n"])
    now = {row["metric"]: row["value"] for row in told("judges") if row["judge"] == "keen"}
    assert now["accuracy_with_tie"] != of_all["value"]
    page = flat(client.get(PAGE))
    assert "2 requests so far" in page
    assert "run 1, request 2" in page.replace(f"run {run.pk}", "run 1")
    assert "Request 2 by curator" in asked()
    entries = AuditEntry.objects.filter(action="held-out-shown")
    assert [entry.about.rsplit(", ", 1)[1] for entry in entries.order_by("number")] == ["request 1", "request 2"]


def test_what_was_told_stays_as_it_was_and_boards_still_leave_the_half_out(halved):
    run = Run.objects.get(judge__name="keen")
    before = told("judges")
    asked("--run", str(run.pk))
    rows = told("held-out")
    assert told("judges") == before
    turn(halved, held(halved))
    assert told("held-out") == rows


def test_the_page_draws_the_half_and_asks_and_says_what_is_wrong(voted, client_of):
    client, run = client_of("curator"), Run.objects.get(judge__name="keen")
    assert "It cannot be taken back" in flat(client.get(PAGE))
    early = client.post(PAGE, {"run": run.pk})
    assert early.status_code == 422
    assert "holds no half out" in flat(early)
    assert client.post(PAGE, {"draw": "true"}).status_code == 302
    assert HeldOutHalf.objects.get().by.username == "curator"
    assert "Half of what people labelled is held out" in flat(client.get("/leaderboards/grove/judges/"))
    assert client.post(PAGE, {"draw": "true"}).status_code == 422
    assert client.post(PAGE, {}).status_code == 422
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    assert "no finished run" in flat(client.post(PAGE, {"run": run.pk}))
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    assert client.post(PAGE, {"run": run.pk}).status_code == 302
    assert "Request 1 is answered." in flat(client.get(PAGE))


def test_it_takes_labels_of_two_pictures_or_prompts(grove, client_of):
    answer = client_of("curator").post(
        "/api/v1/held-out/", {"benchmark": "grove", "draw": True}, content_type="application/json"
    )
    assert answer.status_code == 400
    assert "labelled" in json.dumps(answer.json())
    assert not HeldOutHalf.objects.exists()


def test_below_staff_nobody_reads_the_requests_or_makes_one(halved, client_of):
    asked("--run", str(Run.objects.get(judge__name="keen").pk))
    for role in ("anonymous", "annotator", "researcher"):
        client = client_of(role)
        for path in ("/api/v1/held-out/", f"{API}/held-out/?benchmark=grove", PAGE):
            assert client.get(path).status_code in (302, 401, 403), (role, path)
        sent = client.post("/api/v1/held-out/", {"benchmark": "grove", "draw": True}, content_type="application/json")
        assert sent.status_code in (401, 403)
