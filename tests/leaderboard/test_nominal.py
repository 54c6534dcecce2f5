"""Categories of texts and pictures: labels and judgments in and out, judges beside people."""

import random

import pandas as pd
import pytest

from annotations import ballots
from annotations.models import Campaign, Label
from bank.models import Item
from judging.models import Run
from leaderboard.kinds import KINDS
from leaderboard.view import scope_of
from leaderboard.votes import scores
from stats.agreement import cohen_kappa
from stats.alternative import alternative_annotator_test
from stats.classification import class_scores
from tests.leaderboard.conftest import PEOPLE, SAMPLES

pytestmark = pytest.mark.django_db
CATEGORIES = ("advertisement", "notice", "not a sign")


def kind_of(n):
    return CATEGORIES[n % 3]


def labelled(seed=5, share=0.75, **more):
    """The pictures themselves, three people, mostly right."""
    draw = random.Random(seed)
    for n in range(SAMPLES):
        for person in PEOPLE:
            category = kind_of(n) if draw.random() < share else draw.choice(CATEGORIES)
            yield {"kind": "score", "protocol": "label", "sample": f"s{n:02}", "annotator": person,
                   "option": category} | more  # fmt: skip


def judged(judge="keen", seed=6, share=0.8, repeats=1, n=SAMPLES):
    draw = random.Random(seed)
    for repeat in range(repeats):
        for number in range(n):
            category = kind_of(number) if draw.random() < share else draw.choice(CATEGORIES)
            yield {"kind": "score", "protocol": "label", "sample": f"s{number:02}", "judge": judge, "option": category,
                   "repeat": repeat, "settings": {"categories": list(CATEGORIES)}}  # fmt: skip


def majority(rows):
    """By sample; of several the first in the alphabet."""
    frame = pd.DataFrame(rows)
    return frame.groupby("sample")["option"].agg(lambda given: given.mode().iloc[0])


def test_categories_come_in_under_the_kind_that_boards_name(brought, folder, manage, board):
    rows = [row | {"kind": "nominal"} for row in labelled()]
    brought("labels", [{name: row[name] for name in row if name != "protocol"} for row in rows])
    brought("judgments", [row | {"kind": "nominal"} for row in judged()])
    assert Campaign.objects.get().protocol == "label"
    assert Label.objects.filter(item__kind="score").count() == len(rows)
    assert SAMPLES in {row["n"] for row in board("judges", "--kind", "nominal")}
    wrong = folder("wrong", [rows[0] | {"protocol": "pairwise-criteria"}])
    code, *said = manage("import_labels", "generic", wrong, "--benchmark", "grove")
    assert (code, "the kind nominal has the protocol label" in "".join(map(str, said))) == (1, True)


def test_categories_come_in_as_a_campaign_of_their_own_and_go_out_as_they_came(brought, manage, tmp_path):
    rows = list(labelled())
    brought("labels", rows)
    campaign = Campaign.objects.get()
    assert (campaign.name, campaign.protocol) == ("imported categories", "label")
    assert ballots.of(campaign).names == sorted(CATEGORIES)
    assert Label.objects.filter(item__kind="score", item__places__isnull=True).count() == len(rows)
    for shape in ("jsonl", "label-studio"):
        out = tmp_path / f"labels.{shape}"
        assert manage("export", "labels", "--benchmark", "grove", "--format", shape, "--names", "--output", out)[0] == 0
        format_name = "generic" if shape == "jsonl" else shape
        code, said = manage("import_labels", format_name, out, "--benchmark", "grove")[:2]
        assert code == 0, said
        assert Label.objects.count() == len(rows)
        assert f"{len(rows)} were there already" in said


def test_a_label_is_of_the_kind_of_its_campaigns_protocol_where_kinds_share_a_column(brought):
    categories = list(labelled())
    brought("labels", categories)
    about = {"kind": "score", "responses": ["Alder"], "annotator": PEOPLE[0]}
    for name, protocol in (("read", "choice-extraction"), ("old", "by hand")):
        more = about | {"campaign": name, "protocol": protocol, "option": "A"}
        brought("labels", [more | {"sample": f"s{n:02}"} for n in range(SAMPLES)])
    brought("labels", [about | {"campaign": "scores", "sample": "s00", "score": 3}])
    counts = {name: kind.labels().count() for name, kind in KINDS.items()}
    assert {name: n for name, n in counts.items() if n} == {
        "nominal": len(categories), "choice": 2 * SAMPLES, "score": 1,
    }  # fmt: skip


def test_options_that_answers_mean_and_categories_do_not_mix(brought, folder, manage):
    options = [
        {"kind": "score", "protocol": "choice-extraction", "sample": f"s{n:02}", "responses": ["Alder"],
         "annotator": "Ada", "option": "B"}
        for n in range(9)
    ]  # fmt: skip
    brought("labels", [*labelled(), *options])
    assert set(Campaign.objects.values_list("name", "protocol")) == {
        ("imported categories", "label"),
        ("imported", "choice-extraction"),
    }
    assert KINDS["choice"].labels().count() == 9
    assert KINDS["nominal"].labels().count() == 3 * SAMPLES
    mixed = [options[0] | {"annotator": "Dov"}, next(labelled()) | {"annotator": "Dov"}]
    code, *said = manage("import_labels", "generic", folder("labels", mixed), "--benchmark", "grove", "--campaign", "x")
    assert code == 1
    assert "'x' holds other verdicts; categories need a campaign of their own" in "".join(map(str, said))
    assert not Label.objects.filter(annotator__name="Dov").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"option": "x" * 501}, "option"),
        ({"protocol": "choice-extraction"}, "option has more than 8 characters; for categories, the protocol is label"),
        ({"score": 3.0}, "gives one text or picture an option"),
        ({"option": None, "score": 3.0}, "gives one text or picture an option"),
        ({"kind": "pair", "responses": ["Alder", "Birch"]}, "gives one text or picture an option"),
    ],
)
def test_a_row_that_is_no_category_is_a_bad_row(grove, folder, manage, wrong, words):
    rows = list(labelled())[:3]
    rows[1] |= wrong
    code, *said = manage("import_labels", "generic", folder("labels", rows), "--benchmark", "grove")
    assert code == 1
    assert words in "".join(map(str, said))
    assert not Label.objects.exists()


def test_judges_stand_beside_people_by_agreement_kappa_and_macro_scores(brought, board, client):
    people, judge = list(labelled()), list(judged())
    brought("labels", people)
    brought("judgments", judge)
    rows = board("judges", "--kind", "nominal")
    assert board("judges") == rows  # the only kind with data
    found = {row["metric"]: row for row in rows if row["source_dataset"] == "all" and row["reference"] == "majority"}
    truth = majority(people)
    told = pd.DataFrame(judge).set_index("sample")["option"].loc[truth.index]
    hits = (truth == told).mean()
    assert found["agreement"]["value"] == pytest.approx(hits)
    columns = {"cluster": truth.index}
    kappa = cohen_kappa(first=told, second=truth, **columns)
    scores = class_scores(reference=truth, prediction=told, **columns)
    for name, expected in (("kappa", kappa), ("f1", scores.f1), ("recall", scores.recall),
                           ("precision", scores.precision)):  # fmt: skip
        assert found[name]["value"] == pytest.approx(expected.value)
        assert found[name]["value_low"] == pytest.approx(expected.interval.low)
        assert found[name]["n"] == SAMPLES
    assert client.get("/api/v1/leaderboards/judges/?benchmark=grove&kind=nominal").json() == rows
    page = client.get("/leaderboards/grove/judges/?kind=nominal")
    assert "Kappa" in page.content.decode()
    assert "over the categories" in page.content.decode()
    (ceiling,) = [
        row for row in board("ceiling", "--kind", "nominal")
        if (row["metric"], row["reference"], row["level"]) == ("agreement", "majority", "")
    ]  # fmt: skip
    frame = pd.DataFrame(people)
    left_out = [
        row.option == frame[(frame["sample"] == row.sample) & (frame.annotator != row.annotator)].option.mode().iloc[0]
        for row in frame.itertuples()
    ]
    assert ceiling["value"] == pytest.approx(sum(left_out) / len(left_out))
    assert ceiling["n"] == len(people)


def test_the_alternative_annotator_test_compares_categories_by_equality(brought, board, client):
    people, judge = list(labelled()), list(judged(share=0.95))
    brought("labels", people)
    brought("judgments", judge)
    (row,) = board("stand-in", "--kind", "nominal")
    codes = {name: code for code, name in enumerate(CATEGORIES)}
    labels = pd.DataFrame([(r["annotator"], r["sample"], codes[r["option"]]) for r in people],
                          columns=["annotator", "item", "value"])  # fmt: skip
    verdicts = pd.DataFrame([(r["sample"], codes[r["option"]]) for r in judge], columns=["item", "value"])
    expected = alternative_annotator_test(labels=labels, judge=verdicts, measure="equality", epsilon=0.2)
    assert (row["winning_rate"], row["passes"]) == (expected.winning_rate, expected.passes)
    assert row["advantage"] == pytest.approx(expected.advantage)
    assert "as close as" in client.get("/leaderboards/grove/judges/?kind=nominal").content.decode()
    (campaign,) = {row["campaign"] for row in board("campaign")}
    alpha = [row for row in board("campaign") if "alpha_nominal" in row["metric"]]
    assert campaign == "imported categories"
    assert alpha
    assert all(row["value"] is not None for row in alpha)


def test_a_category_that_no_person_gave_is_wrong_and_no_error(brought, board):
    brought("labels", labelled())
    brought("judgments", [row | {"option": "graffiti"} for row in judged()])
    found = {
        row["metric"]: row["value"] for row in board("judges", "--kind", "nominal") if row["reference"] == "majority"
    }
    assert found["agreement"] == found["f1"] == 0
    assert board("stand-in", "--kind", "nominal")[0]["passes"] is False


def test_no_board_of_models_counts_categories(brought, client):
    brought("labels", labelled())
    brought("judgments", judged())
    answer = client.get("/api/v1/leaderboards/models/?benchmark=grove&kind=nominal")
    assert answer.status_code == 400
    assert "no board of models counts them" in answer.content.decode()
    answer = client.get("/api/v1/leaderboards/people-and-judge/?benchmark=grove&kind=nominal")
    assert answer.status_code == 400
    assert client.get("/leaderboards/grove/judges/?kind=nominal").status_code == 200


def test_repeats_show_how_steady_a_judge_is(brought, board):
    brought("labels", labelled())
    brought("judgments", judged(repeats=3))
    found = {row["metric"] for row in board("judges", "--kind", "nominal")}
    assert {"consistency", "mcc"} <= found


def test_no_function_of_python_is_called_for_each_of_a_million_verdicts(brought, monkeypatch):
    rows = [*judged(repeats=2)]
    brought("judgments", rows)
    scope = scope_of(benchmark="grove", kind="nominal", staff=True)

    def called(kind, values):
        raise AssertionError("an outcome that is one verdict has nothing to combine")

    monkeypatch.setattr(type(scope.kind), "combined", called)
    found = scores.of_runs(scope, list(Run.objects.all()))
    names = dict(Item.objects.values_list("pk", "sample__key"))
    assert {(names[item], repeat): value for item, repeat, value in found.itertuples(index=False)} == {
        (row["sample"], row["repeat"]): row["option"] for row in rows
    }
