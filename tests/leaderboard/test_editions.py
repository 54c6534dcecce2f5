"""Boards that rest on hidden keys or weights are seen below staff as editions, and no two of them tell a sample's."""

import json
import re
from dataclasses import replace
from html import unescape
from itertools import product

import pytest
from django.core.management import call_command

from accounts.models import AuditEntry
from bank.criteria import Criterion
from bank.models import Benchmark, EvaluatedModel, Response, Sample
from bank.submissions import actions
from judging.models import Run
from leaderboard import editions
from leaderboard.boards.base import whole_from_text
from leaderboard.boards.by_kind import MAKERS
from leaderboard.boards.seen import models
from leaderboard.models import Edition, Snapshot
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from tests.bank.conftest import folder, manage
from tests.hidden import change, criteria, show
from tests.leaderboard.test_keyed_boards import SAMPLES, key, questions, quiz, quiz_scope, rotations
from tests.markup import flat

__all__ = ["folder", "manage", "quiz"]
pytestmark = pytest.mark.django_db
API = "/api/v1/leaderboards/models/?benchmark=quiz&kind=choice"
PAGE = "/leaderboards/quiz/models/?kind=choice"


@pytest.fixture
def publish(people):
    def act(**more):
        benchmark = more.pop("benchmark", None) or Benchmark.objects.get(slug="quiz")
        return editions.publish(benchmark=benchmark, **{"kind": "choice", "by": people["curator"]} | more)

    return act


ALL = range(SAMPLES)


def corrected(*numbers, by=1):
    """Other keys for these questions."""
    for n in numbers:
        row = Criterion.unguarded.get(sample__key=f"q{n}", kind="answer_key")
        row.text = key(n + by)
        row.version += 1
        row.save()


def quiz_as_edition():
    return replace(quiz_scope(), staff=False, edition=True)


def rows(client):
    return client.get(API).json()


@pytest.mark.both_databases
def test_below_staff_a_board_of_hidden_keys_is_its_newest_edition_and_says_as_of_when(quiz, publish, client_of):
    anonymous, curator = client_of("anonymous"), client_of("curator")
    assert rows(anonymous) == []
    assert "Kept back until an edition of it is published" in flat(anonymous.get(PAGE))
    assert len(rows(curator)) == 2
    edition = publish()
    assert [row["model"] for row in rows(anonymous)] == ["Sure", "Shaky"]
    assert f"{edition.published_at:%Y-%m-%d}" in flat(anonymous.get(PAGE))
    assert "Figures are as of edition 1" in flat(anonymous.get(PAGE))
    corrected(*ALL)
    assert rows(curator)[0]["vanilla"] < 1
    assert rows(anonymous)[0]["vanilla_low"] == 0.9  # until the next edition
    publish()
    assert rows(anonymous)[0]["model"] == "Shaky"
    assert AuditEntry.objects.first().about == "quiz@1, choice, edition 2"


def test_the_heading_of_an_edition_counts_the_samples_of_today(quiz, publish, client_of):
    publish()
    anonymous = client_of("anonymous")
    assert f"{SAMPLES} samples" in flat(anonymous.get(PAGE))
    Sample.objects.create(benchmark=Benchmark.objects.get(slug="quiz"), key="one more", status="approved")
    assert f"{SAMPLES + 1} samples" in flat(anonymous.get(PAGE))
    assert f"{SAMPLES + 1} samples" in flat(anonymous.get("/leaderboards/quiz/judges/"))


@pytest.mark.check("J3")
def test_corrections_wait_until_ten_have_gathered_against_every_earlier_edition(quiz, publish):
    publish()
    corrected(ALL[0])
    with pytest.raises(editions.Refused, match="differs from edition 1 in 1 sample"):
        publish()
    corrected(*ALL[1:])
    publish()
    # A third that differs from the second in all of them, and from the first in four alone.
    corrected(*ALL[:44], by=0)
    corrected(*ALL[44:], by=2)
    with pytest.raises(editions.Refused, match="Sure differs from edition 1 in 4 samples"):
        publish()


@pytest.mark.check("J3")
def test_ten_changes_that_are_few_within_a_level_are_refused(quiz, publish):
    publish()
    corrected(0, 1, 2, 3, 16, 17, 18, 19, 4, 5)  # eight of them in one level of the tree, two in another
    with pytest.raises(editions.Refused, match="Coarse of Sure differs from edition 1 in 8 samples"):
        publish()


@pytest.mark.check("J3")
def test_a_level_of_one_edition_is_held_against_the_whole_of_another(quiz, publish):
    """Whole minus level over two editions: what is left of the other level would be three samples."""
    publish()
    reasoning = [n for n in range(SAMPLES) if (n // 4) % 4 >= 2]
    quiz.samples.filter(key__in=[f"q{n}" for n in reasoning[3:]]).update(status="draft")
    told = {row["model"]: row["levels"] for row in models(quiz_as_edition()).as_json()}
    assert list(told["Sure"]) == []  # three of Reasoning are left: neither it nor Seeing beside it is told
    with pytest.raises(editions.Refused, match=r"The numbers of Sure, .* those of edition 1, reveal fewer"):
        publish()
    quiz.samples.filter(key__in=[f"q{n}" for n in reasoning]).update(status="draft")
    publish()


@pytest.mark.check("J3")
def test_differences_of_differences_are_held_to_the_rule(quiz, publish):
    """Shaky's one pass and all rotations differ in six questions of a half: what a correction of it did to them."""
    publish()
    corrected(*(n for n in ALL if (n // 4) % 4 < 2))
    with pytest.raises(editions.Refused, match=r"The numbers of Shaky, .* those of edition 1, reveal fewer"):
        publish()


@pytest.mark.check("J3")
def test_editions_of_another_version_are_held_against_this_ones(quiz, publish, folder, manage):
    publish()
    asked = questions()
    asked[0]["answer"] = key(1)
    again = ("--benchmark", "quiz", "--version", "2", "--public")
    assert manage("import_benchmark", "generic", folder("samples", asked), *again)[0] == 0
    rows = rotations("Sure", right=lambda n, shift: True)
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "quiz@2")[0] == 0
    second = Benchmark.objects.get(slug="quiz", version="2")
    with pytest.raises(editions.Refused, match="Sure differs from edition 1 of quiz@1 in 1 sample"):
        publish(benchmark=second)


@pytest.mark.check("J3")
@pytest.mark.both_databases
def test_readings_of_free_answers_come_ten_at_a_time_and_from_a_finished_run_alone(quiz, publish, folder, manage):
    """The finding: two sources whose readings differ in one sample gave its key to an anonymous visitor."""
    vague = [
        {"sample": f"q{n}", "model": "Vague", "text": "The left one." if n < 12 else key(n)} for n in range(SAMPLES)
    ]
    assert manage("import_responses", "generic", folder("responses", vague), "--benchmark", "quiz")[0] == 0

    def read(judge, said):
        told = [
            {
                "kind": "score", "protocol": "choice-extraction", "sample": f"q{n}", "responses": ["Vague"],
                "judge": judge, "option": option, "extraction": "judge",
            }
            for n, option in said.items()
        ]  # fmt: skip
        assert manage("import_judgments", "generic", folder("judgments", told), "--benchmark", "quiz")[0] == 0
        return Run.objects.get(judge__name=judge)

    one = read("reader-one", {n: key(n) for n in range(12)})
    other = read("reader-two", {n: key(n + (n == 7)) for n in range(12)})
    publish(run=one)
    with pytest.raises(editions.Refused, match="Vague differs from edition 1 in 1 sample"):
        publish(run=other)
    Run.objects.filter(pk=one.pk).update(state="running")
    with pytest.raises(editions.Refused, match="not a finished run"):
        publish(run=one)


@pytest.mark.check("J3")
def test_no_view_below_staff_differs_by_source_run_or_filter(quiz, publish, client_of):
    publish()
    for role in ("anonymous", "annotator", "researcher"):
        for query in ("&source=reader", "&source=individuals", "&run=1", "&level=Seeing", "&split=x"):
            assert client_of(role).get(API + query).status_code == 400, query
        assert client_of(role).get("/leaderboards/quiz/models/compare/?kind=choice&a=Sure&b=Shaky").status_code == 400
        assert client_of(role).get("/leaderboards/quiz/answers/?kind=choice&model=Sure").status_code == 400
        page = flat(client_of(role).get(PAGE))
        for words in ("Read by", "Capability", "models/compare/", "/answers/"):
            assert words not in page, words
    assert "/answers/" in flat(client_of("curator").get(PAGE))


def test_below_staff_the_editions_of_hidden_splits_are_chosen_on_the_page(quiz, publish, people, client_of):
    quiz.samples.filter(key__in=[f"q{n}" for n in range(24)]).update(split="test")
    actions.set_rules(
        by=people["curator"], benchmark=quiz, open=True, per_day=None, in_all=None, count_failed=False,
        hidden_splits=["test"], required_splits=["test"], private_half=False,
    )  # fmt: skip
    publish()
    option = '<option value="test">test</option>'
    assert option not in flat(client_of("anonymous").get(PAGE))
    publish(split="test")
    assert option in flat(client_of("anonymous").get(PAGE))
    page = flat(client_of("anonymous").get(f"{PAGE}&split=test"))
    assert '<option value="test" selected>test</option>' in page
    assert "24 samples" in page


def test_a_model_with_few_answers_and_levels_with_few_are_in_no_edition(quiz, publish, folder, manage):
    few = [{"sample": f"q{n}", "model": "Few", "text": key(n)} for n in range(9)]
    part = [{"sample": f"q{n}", "model": "Part", "text": key(n)} for n in range(18)]
    assert manage("import_responses", "generic", folder("responses", few + part), "--benchmark", "quiz")[0] == 0
    board = json.loads(publish().board)
    told = {row["model"]: row["levels"] for row in board["rows"]}
    assert set(told) == {"Sure", "Shaky", "Part"}
    assert told["Part"] == {}  # 10 and 8 of the levels it answered
    assert len(told["Sure"]) == 6
    Response.objects.create(
        sample=quiz.samples.get(key="q20"), model=Response.objects.filter(model__name="Part").first().model, text="A"
    )
    with pytest.raises(editions.Refused, match="Part differs from edition 1 in 1 sample"):
        publish()


def told_of(model, edition):
    board = whole_from_text(MAKERS[edition.kind].shape, edition.board)
    return next(row for row in board.as_json() if row["model"] == model)


@pytest.mark.check("J3")
def test_numbers_of_an_edition_are_rounded_as_the_page_has_them_and_intervals_outward(quiz, publish):
    live = {row["model"]: row for row in models(quiz_scope()).as_json()}["Shaky"]
    assert (round(live["circular_low"], 4), round(live["circular_high"], 4)) == (0.1492, 0.3878)
    row = told_of("Shaky", publish())
    assert (row["circular"], row["circular_low"], row["circular_high"]) == (0.25, 0.149, 0.388)


@pytest.mark.check("J3")
def test_an_interval_of_an_edition_depends_on_no_single_hit_of_samples_that_share_a_picture(quiz, publish):
    """By cluster it would tell how many of the two are right: here first both, then one of them."""
    quiz.samples.filter(key__in=["q0", "q4"]).update(group="a picture")
    one = told_of("Shaky", publish())
    Edition.objects.all().delete()
    quiz.samples.filter(key="q4").update(group="")
    quiz.samples.filter(key="q1").update(group="a picture")
    other = told_of("Shaky", publish())
    assert one == other
    assert (one["circular_low"], one["circular_high"]) == (0.147, 0.391)  # Wilson on 48 / (50 / 48)


@pytest.mark.check("J3")
def test_an_edition_shows_no_shares_of_letters_of_the_key(quiz, publish, client_of):
    """A letter that one question alone offers would tell that question's key."""
    assert json.loads(publish().board)["right"] == {}
    assert ">Key<" in flat(client_of("curator").get(PAGE))
    assert ">Key<" not in flat(client_of("anonymous").get(PAGE))


@pytest.mark.check("J3")
def test_the_difference_of_passes_is_not_told_where_few_lack_a_rotation(quiz, publish, folder, manage):
    """120 of one pass less 119 of all rotations and their difference is the sample that lacks one."""
    rows = [
        row
        for row in rotations("Torn", right=lambda n, shift: shift == 0 or n >= 12)
        if (row["sample"], row["variant"]) != ("q30", "circular-2")
    ]
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "quiz")[0] == 0
    row = told_of("Torn", publish())
    assert (row["vanilla"], row["vanilla_low"], row["vanilla_high"]) == (None, 0.9, 1)
    # 35 of 47, since 12 are wrong whatever their keys are: each of the 35 would be told.
    assert (row["circular"], row["circular_low"], row["circular_high"]) == (None, 0.67, 0.745)
    assert row["difference"] is None


@pytest.mark.check("J3")
def test_what_is_open_does_not_hide_the_few_that_are_not(quiz, publish):
    """Whoever knows the open keys subtracts them."""
    keys = Criterion.unguarded.filter(kind="answer_key")
    show("public", keys.exclude(sample__key__in=["q0", "q1"]))
    with pytest.raises(editions.Refused, match="No model has answers"):
        publish()
    show("staff", keys.filter(sample__key__in=[f"q{n}" for n in range(12)]))
    row = told_of("Shaky", publish())  # Sure's answers to the 12 differ from its in fewer than 10
    assert (row["vanilla"], row["n"]) == (0.5, SAMPLES)


@pytest.mark.check("J3")
def test_editions_of_splits_are_held_against_those_of_the_whole(quiz, publish, people):
    publish()
    quiz.samples.filter(key__in=[f"q{n}" for n in range(24)]).update(split="test")
    actions.set_rules(
        by=people["curator"], benchmark=quiz, open=True, per_day=None, in_all=None, count_failed=False,
        hidden_splits=["test"], required_splits=["test"], private_half=False,
    )  # fmt: skip
    quiz.refresh_from_db()
    corrected(3)
    publish()
    with pytest.raises(editions.Refused, match=r"The numbers of Sure, .* edition 1 of split none"):
        publish(split="test")


def test_an_edition_that_says_nothing_new_or_of_what_is_open_is_refused(quiz, publish):
    publish()
    with pytest.raises(editions.Refused, match="Nothing has changed since edition 1"):
        publish()
    show("public")
    with pytest.raises(editions.Refused, match="everybody sees it live"):
        publish()
    assert [row["model"] for row in models(scope_of(benchmark="quiz", kind="choice")).as_json()] == ["Sure", "Shaky"]


def test_hidden_weights_make_editions_and_public_ones_stay_live(folder, manage, publish, client_of):
    def part(name, weight, shown):
        return {"key": name, "kind": "component", "text": name, "weight": weight, "category": name, "shown_to": shown}

    samples = [
        {"key": f"c{n}", "instruction": "Do.", "criteria": [part("1", 4, "public"), part("2", 3 + n % 3, "staff")]}
        for n in range(12)
    ]
    answers = [{"sample": f"c{n}", "model": "Finch", "text": "Done."} for n in range(12)]
    given = [
        {
            "kind": "score", "protocol": "components", "sample": f"c{n}", "responses": ["Finch"], "judge": "marker",
            "parts": [{"component": "1", "points": 2}, {"component": "2", "points": 1}],
        }
        for n in range(12)
    ]  # fmt: skip
    assert manage("import_benchmark", "generic", folder("samples", samples), "--benchmark", "parts", "--public")[0] == 0
    assert manage("import_responses", "generic", folder("responses", answers), "--benchmark", "parts")[0] == 0
    assert manage("import_judgments", "generic", folder("judgments", given), "--benchmark", "parts")[0] == 0
    path = "/api/v1/leaderboards/models/?benchmark=parts&kind=components"
    assert client_of("researcher").get(path).json() == []
    assert client_of("researcher").get(f"{path}&source=marker").status_code == 400
    parts, run = Benchmark.objects.get(slug="parts"), Run.objects.get()
    publish(benchmark=parts, kind="components", run=run)
    (row,) = client_of("researcher").get(path).json()
    assert (row["n"], list(row["categories"])) == (12, ["1"])
    assert client_of("researcher").get("/leaderboards/parts/judges/?kind=components").status_code == 200
    change(criteria("2", sample__key="c0"), weight=9)
    with pytest.raises(editions.Refused, match="Finch differs from edition 1 in 1 sample"):
        publish(benchmark=parts, kind="components", run=run)
    assert client_of("researcher").get(path).json() == [row]


@pytest.mark.both_databases
def test_a_snapshot_below_staff_freezes_the_edition_and_old_ones_of_live_boards_are_gone(quiz, publish, client_of):
    publish()
    researcher = client_of("researcher")
    frozen = researcher.post("/leaderboards/quiz/models/freeze/", {"kind": "choice"})
    assert frozen.status_code in (200, 302, 403)
    Snapshot.objects.create(
        code="abcdefabcdef", benchmark=quiz, what="models", fingerprint="x", tables={"rows": []},
        made_from={"kind": "choice"}, computed_at=quiz.created_at,
    )  # fmt: skip
    assert researcher.get("/snapshots/abcdefabcdef/").status_code == 404
    assert client_of("curator").get("/snapshots/abcdefabcdef/").status_code == 200


@pytest.mark.both_databases
def test_editions_are_published_by_page_and_by_command(quiz, client_of, people, capsys):
    page = "/leaderboards/quiz/models/editions/new/?kind=choice"
    for role, status in (("anonymous", 302), ("annotator", 403), ("researcher", 403), ("curator", 200)):
        assert client_of(role).get(page).status_code == status
        if role != "curator":
            assert client_of(role).post(page).status_code == status
    assert not Edition.objects.exists()
    assert client_of("curator").post(page, follow=True).status_code == 200
    assert Edition.objects.get().by == people["curator"]
    corrected(*ALL)
    call_command("publish", "quiz", "--edition", "choice")
    assert "Published edition 2" in capsys.readouterr().out


def test_live_numbers_cannot_be_had_by_any_function_of_the_boards(quiz):
    scope = scope_of(benchmark="quiz", kind="choice")
    assert models(scope).as_json() == []
    from leaderboard.boards.models import keyed

    for compute in (keyed.models, keyed.counted_answers):
        with pytest.raises(BadScope, match="depends on hidden answers"):
            compute(scope)


def test_home_and_the_pages_of_benchmark_and_models_lead_to_no_view_that_a_board_refuses(quiz, publish, client_of):
    publish()
    pages = ["/leaderboards/quiz/", "/", *(f"/models/{model.pk}/" for model in EvaluatedModel.objects.all())]
    for role, path in product(("anonymous", "curator"), pages):
        page = client_of(role).get(path).content.decode()
        links = re.findall(r'href="(/leaderboards/quiz[^"]*)"', page)
        answers = {link: client_of(role).get(unescape(link)).status_code for link in links}
        assert {link for link, status in answers.items() if status != 200} == set(), role
