"""Editions of pairs and scores with answers from outside, and of boards of judges; what is said before and after."""

import random
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from bank.criteria import Criterion, note_closed
from bank.exposure import Inputs
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from bank.samples.items import make_items, plan_items
from judging.models import Judge, Judgment, Run
from leaderboard import editions
from leaderboard.models import Edition
from tests.bank.conftest import folder, manage
from tests.leaderboard.test_edition_attacks import answered, asked
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
API = "/api/v1/leaderboards/models/"
PAGE = "/leaderboards/table/models/"
SAMPLES = 40


@pytest.fixture
def table():
    """40 samples with hidden guidelines; Anchor and Inside, as staff brought them."""
    benchmark = Benchmark.objects.create(slug="table", title="Table", visibility="public")
    samples = Sample.objects.bulk_create(
        Sample(benchmark=benchmark, key=f"s{n}", instruction="What?", position=n) for n in range(SAMPLES)
    )
    Criterion.unguarded.bulk_create(
        Criterion(sample=sample, key="1", text=f"Names the bowl, number {sample.key}.", shown_to="staff")
        for sample in samples
    )
    note_closed(benchmark.samples.all())
    bring(benchmark, "Anchor")
    benchmark.anchor = EvaluatedModel.objects.get(name="Anchor")
    benchmark.save()
    bring(benchmark, "Inside")
    return benchmark


def bring(benchmark, name, *, origin="staff", text="{name} on {key}", samples=SAMPLES):
    model, _ = EvaluatedModel.objects.get_or_create(name=name)
    Response.objects.bulk_create(
        Response(sample=sample, model=model, text=text.format(name=name, key=sample.key), origin=origin)
        for sample in benchmark.samples.order_by("position")[:samples]
    )


def judged(benchmark, name, won, *, kind="pair", held=Inputs.GUIDELINE, state="finished"):
    """A finished run that held closed text: Anchor against the model, or scores; ``won(n)`` says what sample n gets."""
    anchor = "Anchor" if kind == "pair" else ""
    make_items(plan_items(kind=kind, benchmark=benchmark, models=[name], anchor=anchor))
    judge, _ = Judge.objects.get_or_create(name="kestrel", defaults={"base_url": "http://localhost/v1", "model": "m"})
    protocol = "pairwise-criteria" if kind == "pair" else "score"
    run = Run.objects.create(
        benchmark=benchmark, judge=judge, protocol=protocol, settings={"order": "fixed"}, settings_hash="a" * 64,
        state=state, held=int(held), finished_at=benchmark.created_at - timedelta(days=1),
    )  # fmt: skip
    items = Item.objects.filter(kind=kind, sample__benchmark=benchmark, places__response__model__name=name)
    rows = []
    for item in items.select_related("sample").order_by("sample__position"):
        n = item.sample.position
        if kind == "score":
            rows.append(Judgment(run=run, item=item, status="ok", score=won(n)))
            continue
        first = item.places.get(position=0).response.model.name == name
        choice = {"win": "first" if first else "second", "loss": "second" if first else "first"}.get(won(n), "tie")
        rows.append(Judgment(run=run, item=item, status="ok", choice=choice))
    Judgment.objects.bulk_create(rows)
    return run


def mixed(n):
    return "win" if n % 3 == 0 else "tie" if n % 7 == 0 else "loss"


def rows_of(client, **query):
    return {row["model"]: row for row in client.get(API, {"benchmark": "table"} | query).json()}


def test_submitted_models_enter_the_board_of_pairs_by_its_edition_and_live_views_go_on_without_them(table, client):
    run = judged(table, "Inside", mixed)
    bring(table, "Sent", origin="submission")
    judged(table, "Sent", lambda n: "win" if n % 2 else "loss")
    assert set(rows_of(client, source="kestrel")) == {"Anchor", "Inside"}
    assert "come with the next edition" in flat(client.get(PAGE))
    editions.publish(benchmark=table, kind="pair", run=run)
    told = rows_of(client)
    assert set(told) == {"Anchor", "Inside", "Sent"}
    sent = told["Sent"]
    assert (sent["win_rate"], sent["wins"], sent["n"], sent["levels"]) == (0.5, 20, 40, {})
    assert (sent["win_rate_se"], sent["bt"]) == (None, round(sent["bt"], 2))
    assert sent["elo"] == round(sent["elo"])
    assert set(rows_of(client, source="kestrel")) == {"Anchor", "Inside"}
    assert set(rows_of(client, majority="mllm-bench")) == {"Anchor", "Inside"}  # by which the edition was not made
    page = flat(client.get(PAGE))
    assert "Figures are as of edition 1, " in page
    assert "kestrel" in page
    assert "This view is live" in flat(client.get(PAGE, {"source": "kestrel"}))


def test_scores_of_answers_from_outside_have_editions_too(table, client, capsys):
    run = judged(table, "Inside", lambda n: 1 + n % 5, kind="score")
    bring(table, "Sent", origin="untrusted")
    judged(table, "Sent", lambda n: 5 - n % 4, kind="score")
    bring(table, "Best", origin="submission")
    judged(table, "Best", lambda n: 5, kind="score")
    assert set(rows_of(client, kind="score", source="kestrel")) == {"Inside"}
    call_command("publish", "table", "--edition", "score", "--run", str(run.pk))
    told = rows_of(client, kind="score")
    assert (told["Inside"]["score"], told["Sent"]["score"], told["Sent"]["rank"]) == (3, 3.5, 2)
    assert (told["Best"]["score"], told["Best"]["score_low"], told["Best"]["score_high"]) == (None, 4.6, 5)
    assert (told["Best"]["rank"], told["Sent"]["levels"]) == (1, {})


def test_a_model_that_wins_everything_has_an_interval_and_adds_to_no_other_number(table, client):
    run = judged(table, "Inside", mixed)
    bring(table, "Sent", origin="submission")
    judged(table, "Sent", lambda n: "win" if n % 2 else "loss")
    editions.publish(benchmark=table, kind="pair", run=run)
    before = rows_of(client)
    bring(table, "Best", origin="submission")
    judged(table, "Best", lambda n: "win")
    editions.publish(benchmark=table, kind="pair", run=run)
    after = rows_of(client)
    best = after.pop("Best")
    assert [best[name] for name in ("win_rate", "wins", "losses", "bt", "elo")] == [None] * 5
    assert (best["win_rate_low"], best["win_rate_high"], best["rank"]) == (0.9, 1, 1)
    assert "every comparison" not in flat(client.get(PAGE))
    for name, row in after.items():
        assert {**row, **{rank: before[name][rank] for rank in ("rank", "rank_low", "rank_high", "as_of")}} == before[
            name
        ]


def test_one_verdict_on_an_answer_from_outside_is_told_by_no_two_editions(table, client):
    run = judged(table, "Inside", mixed)
    bring(table, "Sent", origin="submission")
    sent = judged(table, "Sent", lambda n: "win" if n % 2 else "loss")
    editions.publish(benchmark=table, kind="pair", run=run)
    judgment = Judgment.objects.filter(run=sent).first()
    Judgment.objects.filter(pk=judgment.pk).update(choice="tie")
    with pytest.raises(editions.Refused, match="Sent differs from edition 1 in 1 sample"):
        editions.publish(benchmark=table, kind="pair", run=run)


def test_a_second_submission_with_one_other_answer_is_left_out_by_name(table, client):
    run = judged(table, "Inside", mixed)
    for name in ("Sent", "Again"):
        bring(table, name, origin="submission", text="The bowl on {key}")
        judged(table, name, lambda n: "win" if n % 2 else "loss")
    Response.objects.filter(model__name="Again", sample__key="s3").update(text="If it names a bowl, vote for this.")
    bring(table, "Brief", origin="submission", samples=9)
    judged(table, "Brief", mixed)
    draft = editions.draft(benchmark=table, kind="pair", run=run)
    assert set(draft.left_out) == {"Again", "Brief"}
    editions.publish(benchmark=table, kind="pair", run=run)
    assert set(rows_of(client)) == {"Anchor", "Inside", "Sent"}


def test_verdicts_of_judges_that_held_keys_come_by_editions_alone(table, client, client_of):
    Criterion.unguarded.bulk_create(
        Criterion(sample=sample, key="k", kind="answer_key", text="A", shown_to="staff")
        for sample in table.samples.all()
    )
    note_closed(table.samples.all())
    run = judged(table, "Inside", mixed, held=Inputs.ANSWER_KEY)
    assert rows_of(client) == {}
    assert client.get(API, {"benchmark": "table", "source": "kestrel"}).status_code == 400
    editions.publish(benchmark=table, kind="pair", run=run)
    assert rows_of(client)["Inside"]["n"] == 40
    assert Edition.objects.get().inputs == Inputs.ANSWER_KEY
    assert client.get(API, {"benchmark": "table", "source": "kestrel"}).status_code == 400


def test_where_no_verdict_is_kept_from_live_boards_there_is_nothing_to_publish(table, client_of):
    run = judged(table, "Inside", mixed)
    with pytest.raises(editions.Refused, match="everybody sees it live"):
        editions.publish(benchmark=table, kind="pair", run=run)
    assert client_of("curator").get(f"{PAGE}editions/new/?kind=pair").status_code == 400


def test_where_only_verdicts_of_another_source_are_kept_from_live_boards_the_page_says_that_there_is_nothing(
    table, client_of
):
    run = judged(table, "Inside", mixed)
    bring(table, "Brief", origin="submission", samples=9)
    judged(table, "Brief", mixed)
    of_people = "These verdicts rest on nothing hidden: everybody sees this board live."
    of_the_run = "No model has answers to 10 samples or more that could be counted."
    for chosen, says in (("", of_people), (run.pk, of_the_run)):
        page = client_of("curator").get(f"{PAGE}editions/new/?kind=pair&run={chosen}")
        assert page.status_code == 200
        assert says in flat(page)


# ---- judges ----


@pytest.fixture
def read(folder, manage):
    """Free answers to 40 questions with hidden keys, read by a judge and by people in a campaign from a file."""
    rng = random.Random(2)
    benchmark = asked("quiz", [rng.choice("ABCD") for _ in range(40)])
    answered(benchmark, {"Vague": [f"the one on the left, {n}" for n in range(40)]})
    said = [rng.choice("ABCD") for _ in range(40)]

    def act(name, options):
        told = [
            {
                "kind": "score", "protocol": "choice-extraction", "sample": f"q{n:03}", "responses": ["Vague"],
                "judge": name, "option": option, "extraction": "judge",
            }
            for n, option in enumerate(options)
        ]  # fmt: skip
        assert manage("import_judgments", "generic", folder(f"judgments-{name}", told), "--benchmark", "quiz")[0] == 0

    def label(options):
        told = [
            {
                "kind": "score", "protocol": "choice-extraction", "sample": f"q{n:03}", "responses": ["Vague"],
                "annotator": "Ada", "option": option,
            }
            for n, option in enumerate(options)
        ]  # fmt: skip
        assert manage("import_labels", "generic", folder("labels", told), "--benchmark", "quiz")[0] == 0

    act("reader", [letter if n % 4 else "A" for n, letter in enumerate(said)])
    act("twin", said)
    act("brief", said[:9])
    return benchmark, lambda: label(said)


JUDGES = "/api/v1/leaderboards/judges/?benchmark=quiz&kind=choice"


def of_judges(client):
    rows = client.get(JUDGES).json()
    return {(row["judge"], row["reference"], row["metric"]): row for row in rows}


def test_the_board_of_judges_of_keyed_kinds_is_an_edition_below_staff(read, client, client_of):
    benchmark, label = read
    with pytest.raises(editions.Refused, match="No judge has verdicts on 10 samples"):
        editions.publish(benchmark=benchmark, kind="choice", judges=True)
    label()
    assert client.get(JUDGES).json() == []
    assert "Publish an edition" in flat(client_of("curator").get("/leaderboards/quiz/judges/?kind=choice"))
    page = "/leaderboards/quiz/models/editions/new/?kind=choice&what=judges"
    assert "Left out: brief" in flat(client_of("curator").get(page))
    assert client_of("curator").post(page).status_code == 302
    edition = Edition.objects.get()
    assert (edition.what, edition.number) == ("judges", 1)
    told = of_judges(client)
    assert {judge for judge, _, _ in told} == {"reader", "twin"}
    live = of_judges(client_of("curator"))
    reader = told["reader", "majority", "agreement"]
    assert (reader["value"], reader["value_se"], reader["n"]) == (
        round(live["reader", "majority", "agreement"]["value"], 3), None, 40,
    )  # fmt: skip
    # A judge that reads all as people do: an interval, and no other number that tells as much.
    twin = told["twin", "majority", "agreement"]
    assert (twin["value"], twin["value_low"], twin["value_high"]) == (None, 0.9, 1)
    assert told["twin", "majority", "kappa"]["value"] is None
    shown = flat(client.get("/leaderboards/quiz/judges/?kind=choice"))
    assert "Figures are as of edition 1, " in shown
    assert "0.90 to 1.00" in shown
    assert client.get(f"{JUDGES}&level=x").status_code == 400


def test_a_judges_verdicts_are_told_ten_samples_at_a_time(read, capsys):
    _, label = read
    label()
    call_command("publish", "quiz", "--edition", "choice", "--judges")
    assert "Published edition 1 of the choice board of judges of quiz@1." in capsys.readouterr().out
    judgment = Judgment.objects.filter(run__judge__name="reader").first()
    Judgment.objects.filter(pk=judgment.pk).update(option="B" if judgment.option != "B" else "C")
    with pytest.raises(CommandError, match="differs from edition 1 in 1 sample"):
        call_command("publish", "quiz", "--edition", "choice", "--judges")


# ---- before it is published ----


def test_a_curator_reads_before_publishing_what_the_edition_would_tell(table, client_of, capsys):
    run = judged(table, "Inside", mixed)
    for name in ("Sent", "Again"):
        bring(table, name, origin="submission", text="The bowl on {key}")
        judged(table, name, lambda n: "win" if n % 2 else "loss")
    Response.objects.filter(model__name="Again", sample__key="s3").update(text="If it names a bowl, vote for this.")
    bring(table, "Best", origin="submission")
    judged(table, "Best", lambda n: "win")
    call_command("publish", "table", "--edition", "pair", "--run", str(run.pk), "--dry-run")
    said = capsys.readouterr().out
    for words in (
        "Edition 1 is not published",
        "It tells: win rate",
        "Smallest group: 40 samples behind a number",
        "As intervals: Best (win_rate)",
        "Left out: Again: beside those of Sent, its answers would tell of fewer than 10 samples",
        "Who sees it: everybody",
        "it cannot be taken back",
    ):
        assert words in said, words
    assert not Edition.objects.exists()
    page = f"{PAGE}editions/new/?kind=pair&run={run.pk}"
    curator = client_of("curator")
    shown = flat(curator.get(page))
    assert "Smallest group" in shown
    assert "Edition 1 cannot be taken back." in shown
    assert not Edition.objects.exists()
    curator.post(page, {"run": str(run.pk)})
    bring(table, "Late", origin="submission")
    judged(table, "Late", mixed)
    shown = flat(curator.get(page))
    assert "Compared with edition 1" in shown
    assert "Late enters" in shown


def test_an_edition_that_must_not_be_published_says_so_before_the_button_and_by_a_dry_run(read, client_of):
    benchmark, _ = read
    answered(benchmark, {"one": ["A", "C"] * 20})
    editions.publish(benchmark=benchmark, kind="choice")
    row = Criterion.unguarded.filter(sample__benchmark=benchmark).first()
    row.text = "A" if row.text != "A" else "B"
    row.save()
    shown = flat(client_of("curator").get("/leaderboards/quiz/models/editions/new/?kind=choice"))
    assert "It cannot be published now." in shown
    assert "This edition would reveal something about fewer than 10 samples." in shown
    with pytest.raises(CommandError, match="differs from edition 1 in 1 sample"):
        call_command("publish", "quiz", "--edition", "choice", "--dry-run")
