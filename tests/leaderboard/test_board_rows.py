"""The rows of the boards: what they count, what they leave out, and that nothing but the data moves them."""

import itertools
import random

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from annotations.models import Campaign, CampaignItem, Label
from bank.models import EvaluatedModel, Response, Sample, Submission
from judging.models import Judgment, Run, RunItem
from tests.leaderboard.conftest import MODELS, by_model, judgments, labels, pairs

pytestmark = pytest.mark.django_db
ENDS = ("", "_low", "_high", "_se", "_n", "_groups", "_method")
MODEL_KEYS = {
    *("model", "rank", "rank_low", "rank_high", "tier", "wins", "ties", "losses"),
    *(f"{number}{end}" for number in ("win_rate", "win_rate_lc", "elo", "bt", "preference") for end in ENDS),
    *("n", "coverage", "levels", "tie_rule", "notes"),
    *("failures", "failure_rule", "order_rule", "win_rate_best", "win_rate_worst", "mean_length", "mean_tokens"),
    *("control", "coefficients", "length_unit", "strong_weight"),
}
JUDGE_KEYS = {
    *("judge", "simulated", "run", "settings", "source_dataset", "kind", "reference", "metric"),
    *(f"{number}{end}" for number in ("value", "pooled") for end in ENDS),
    *("p", "n", "coverage", "notes", "failure_rule", "order_rule"),
}


def refused(*arguments):
    with pytest.raises(CommandError) as error:
        call_command("leaderboard", *arguments)
    return error.value


def numbers(value):
    """Rounded all through: for comparisons up to 1e-9."""
    if isinstance(value, dict):
        return {key: numbers(one) for key, one in value.items()}
    return round(value, 9) if isinstance(value, float) else value


# ---- models ----


def test_a_row_has_the_promised_names_and_no_other(voted, board):
    rows = board("models")
    assert {row["model"] for row in rows} == set(MODELS)
    for row in rows:
        assert set(row) == MODEL_KEYS | {"as_of"}
        assert list(row["levels"]) == ["Creation", "Perception"] or list(row["levels"]) == ["Perception", "Creation"]
        for level in row["levels"].values():
            assert {"wins", "ties", "losses", "win_rate", "n"} <= set(level)
    for row in board("judges"):
        assert set(row) == JUDGE_KEYS | {"as_of"}
    for row in board("agreement"):
        assert set(row) == {
            "a",
            "b",
            "kind",
            "metric",
            *(f"value{end}" for end in ENDS),
            "agree",
            "n",
            "notes",
            "as_of",
        }


def test_a_board_without_an_anchor_counts_each_item_for_both_models(voted, board):
    rows = by_model(board("models"))
    assert sum(row["wins"] for row in rows.values()) == sum(row["losses"] for row in rows.values())
    majority_items = Label.objects.values("item").distinct().count()
    assert sum(row["n"] for row in rows.values()) == 2 * majority_items
    for row in rows.values():
        assert row["wins"] + row["ties"] + row["losses"] == row["n"] == sum(v["n"] for v in row["levels"].values())
        assert row["win_rate"] == pytest.approx(row["wins"] / row["n"])
        assert row["win_rate_low"] <= row["win_rate"] <= row["win_rate_high"]


def test_the_stronger_models_rank_higher_and_ranks_lie_in_their_range(voted, board):
    rows = board("models", "--source", "keen")
    assert [row["model"] for row in rows[:3]] == ["Alder", "Birch", "Cedar"]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    assert all(row["rank_low"] <= row["rank"] <= row["rank_high"] for row in rows)
    assert all(row["tier"] <= row["rank"] for row in rows[:3])
    assert sum(row["bt"] for row in rows[:3]) == pytest.approx(0, abs=1e-9)


def test_a_model_that_only_lost_has_a_place_and_no_strength(brought, board):
    def against_dogwood(row):
        return row | {"choice": "second" if row["responses"][0] == "Dogwood" else "first"}

    brought("labels", [against_dogwood(row) if "Dogwood" in row["responses"] else row for row in labels()])
    last = board("models")[-1]
    assert (last["model"], last["rank"], last["wins"]) == ("Dogwood", 4, 0)
    assert (last["bt"], last["bt_low"], last["tier"]) == (None, None, None)


@pytest.mark.parametrize("source", ["humans", "individuals", "keen"])
@pytest.mark.check("I6")
def test_the_order_in_which_rows_came_changes_nothing(source, brought, board):
    brought("labels", labels())
    brought("judgments", judgments("keen", noise=1.0, seed=2))
    before = [numbers(row) for row in board("models", "--source", source)]
    Campaign.objects.all().delete()
    Run.objects.all().delete()
    for what, rows in (("labels", list(labels())), ("judgments", list(judgments("keen", noise=1.0, seed=2)))):
        random.Random(5).shuffle(rows)
        brought(what, rows)
    assert [numbers(row) for row in board("models", "--source", source)] == before


def test_a_row_that_names_the_pair_the_other_way_round_is_the_same_vote(brought, board):
    rows = list(labels())
    half = [
        row
        if number % 2
        else row
        | {
            "responses": row["responses"][::-1],
            "choice": {"first": "second", "second": "first"}.get(row["choice"], row["choice"]),
        }
        for number, row in enumerate(rows)
    ]
    brought("labels", rows)
    before = [numbers(row) for row in board("models", "--source", "individuals")]
    Campaign.objects.all().delete()
    brought("labels", half)
    assert [numbers(row) for row in board("models", "--source", "individuals")] == before


def test_the_anchor_is_a_row_with_a_strength_and_no_win_rate(voted, board):
    rows = by_model(board("models", "--anchor", "Cedar"))
    anchor = rows.pop("Cedar")
    assert [anchor[name] for name in ("wins", "ties", "losses", "win_rate")] == [None] * 4
    assert anchor["bt"] is not None
    assert anchor["rank"] is not None
    assert anchor["n"] == sum(row["n"] for row in rows.values())
    # Only pairs with the anchor count as wins; Dogwood never met it.
    assert rows["Alder"]["n"] <= 36
    assert (rows["Dogwood"]["n"], rows["Dogwood"]["win_rate"]) == (0, None)


@pytest.mark.check("I8")
def test_an_item_that_lacks_an_order_is_not_counted_and_coverage_says_so(brought, board):
    brought("judgments", judgments("keen", noise=1.0, seed=2))
    whole = by_model(board("models", "--source", "keen"))
    assert {row["coverage"] for row in whole.values()} == {1.0}
    gone = Judgment.objects.filter(item__sample__key="s01", order="10").delete()[0]
    rows = by_model(board("models", "--source", "keen"))
    assert gone == 4  # every pair of that sample, turned
    assert rows["Birch"]["n"] == whole["Birch"]["n"] - 2
    assert rows["Birch"]["coverage"] == pytest.approx(1 - 2 / whole["Birch"]["n"])


def test_repeats_are_averaged(brought, board):
    brought("judgments", judgments("keen", noise=4.0, seed=2, repeats=3))
    row = by_model(board("models", "--source", "keen"))["Alder"]
    assert row["wins"] + row["ties"] + row["losses"] == pytest.approx(row["n"])
    assert (row["wins"] * 3) == pytest.approx(round(row["wins"] * 3))
    found = {r["metric"] for r in board("judges")}
    assert found == set()  # nobody has labelled: no judge can be told how human it is
    brought("labels", labels())
    steady = {r["metric"]: r for r in board("judges") if r["reference"] == "majority"}
    assert 1 / 3 <= steady["consistency"]["value"] <= 1
    assert steady["mcc"]["n"] == steady["consistency"]["n"]


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_tie_counts_nothing_or_half_a_win_or_is_left_out(brought, board, client, repeats):
    brought("judgments", judgments("keen", noise=3.0, seed=2, repeats=repeats))
    strengths = {row["model"]: row["bt"] for row in board("models", "--source", "keen")}
    shares = {
        "none": lambda row: row["wins"] / row["n"],
        "half": lambda row: (row["wins"] + row["ties"] / 2) / row["n"],
        "drop": lambda row: row["wins"] / (row["wins"] + row["losses"]) if repeats == 1 else None,
    }
    for rule, share in shares.items():
        rows = board("models", "--source", "keen", "--ties", rule)
        for row in rows:
            assert row["tie_rule"] == rule
            assert row["bt"] == strengths[row["model"]]
            assert share(row) is None or row["win_rate"] == pytest.approx(share(row))
            assert row["win_rate_low"] <= row["win_rate"] <= row["win_rate_high"]
        view = f"benchmark=grove&source=keen&ties={rule}"
        assert client.get(f"/api/v1/leaderboards/models/?{view}").json() == rows
        shown = client.get(f"/leaderboards/grove/models/?source=keen&ties={rule}").content.decode()
        words = {"none": "Ties are not won", "half": "A tie is half a win", "drop": "Ties are left out"}
        assert words[rule] in shown
    assert any(row["ties"] for row in rows)


def test_what_a_tie_counts_is_asked_of_votes_alone(brought, board, client):
    brought("labels", labels())
    assert refused("models", "--benchmark", "grove", "--kind", "score", "--ties", "half").returncode == 2
    assert client.get("/api/v1/leaderboards/models/?benchmark=grove&ties=most").status_code == 400
    # A link from the board of votes to another kind keeps the view, and opens.
    assert client.get("/leaderboards/grove/models/?kind=score&ties=half").status_code == 200


def failing(rows, *, failed, unasked=()):
    """The rows; the first order of the items with these numbers ``failed``, or was not asked for."""
    for at, row in enumerate(rows):
        item, order = divmod(at, 2)
        if order == 0 and item in (*failed, *unasked):
            row = row | {"choice": None, "status": "parse_failed" if item in failed else "skipped_budget"}
        yield row


@pytest.mark.parametrize("anchor", ["", "Birch"])
def test_failures_are_left_out_or_count_as_ties_or_as_lost_with_both_extremes_beside_them(
    brought, board, client, anchor
):
    brought("judgments", failing(judgments("keen", noise=2.0, seed=2), failed={0, 5, 6, 7, 21}, unasked={8}))
    view = ("--source", "keen", *(("--anchor", anchor) if anchor else ()))
    left_out, tied, lost = (
        by_model(board("models", *view, "--failures", rule)) for rule in ("exclude", "tie", "wrong")
    )
    in_doubt = [[first, second] for at, (_, first, second) in enumerate(pairs()) if at in {0, 5, 6, 7, 21}]
    assert board("models", *view) == list(left_out.values())
    for name, row in left_out.items():
        if name == anchor or not row["n"]:
            continue
        n = sum(name in models and (not anchor or anchor in models) for models in in_doubt)
        assert (row["failures"], row["failure_rule"]) == (n, "exclude")
        assert [rows[name]["n"] - row["n"] for rows in (tied, lost)] == [n, n]
        assert [rows[name]["coverage"] for rows in (tied, lost)] == [row["coverage"]] * 2
        assert not n or row["coverage"] < 1
        assert [tied[name]["ties"] - row["ties"], lost[name]["losses"] - row["losses"]] == [n, n]
        if n:
            extremes = (row["wins"] / (row["n"] + n), (row["wins"] + n) / (row["n"] + n))
            for rows in (left_out, tied, lost):
                assert (rows[name]["win_rate_worst"], rows[name]["win_rate_best"]) == pytest.approx(extremes)
            assert lost[name]["win_rate"] == pytest.approx(extremes[0])
    assert sum(row["failures"] for row in left_out.values())
    if anchor:  # what a model loses, the anchor wins
        assert lost["Alder"]["bt"] - lost["Birch"]["bt"] < left_out["Alder"]["bt"] - left_out["Birch"]["bt"]
    address = f"source=keen&anchor={anchor}&failures=wrong"
    assert client.get(f"/api/v1/leaderboards/models/?benchmark=grove&{address}").json() == list(lost.values())
    shown = client.get(f"/leaderboards/grove/models/?{address}").content.decode()
    assert "unreadable replies count as lost" in shown
    assert " failed</small>" in shown
    assert (
        "unreadable replies count as lost" not in client.get("/leaderboards/grove/models/?source=keen").content.decode()
    )


def test_a_failed_verdict_of_a_judge_is_no_match_with_people_where_failures_count_as_wrong(brought, board, client):
    brought("labels", labels())
    brought("judgments", failing(judgments("keen", noise=0.5, seed=2), failed=range(0, 40, 3)))

    def measured(rule):
        rows = board("judges", "--failures", rule)
        return {row["metric"]: row for row in rows if row["reference"] == "individuals"}

    left_out, tied, wrong = map(measured, ("exclude", "tie", "wrong"))
    for metric in ("accuracy_with_tie", "agreement"):
        hits = left_out[metric]["value"] * left_out[metric]["n"]
        assert wrong[metric]["n"] == tied[metric]["n"] > left_out[metric]["n"]
        assert wrong[metric]["value"] == pytest.approx(hits / wrong[metric]["n"])
        assert wrong[metric]["value"] < tied[metric]["value"]
        assert wrong[metric]["value_low"] < wrong[metric]["value"] < wrong[metric]["value_high"]
    for metric in ("f1_with_tie", "kappa"):
        assert [wrong[metric][name] for name in ("value", "n")] == [left_out[metric][name] for name in ("value", "n")]
    assert left_out["agreement"]["coverage"] == wrong["agreement"]["coverage"] == tied["agreement"]["coverage"] < 1
    shown = client.get("/leaderboards/grove/judges/?failures=wrong").content.decode()
    assert "unreadable replies count as lost or wrong" in shown


def test_only_left_out_is_possible_for_scores_and_ties_for_votes_alone(brought):
    brought("labels", labels())
    assert refused("models", "--benchmark", "grove", "--kind", "score", "--failures", "wrong").returncode == 2
    assert refused("models", "--benchmark", "grove", "--kind", "choice", "--failures", "tie").returncode == 2


def test_runs_of_a_judge_with_the_same_settings_are_one_source(brought, board):
    brought("judgments", judgments("keen", noise=1.0, seed=2))
    run = Run.objects.get()
    later = Run.objects.get()
    later.pk, later.imported = None, False
    later.save()
    for rows in (Judgment, RunItem):
        rows.objects.filter(run=run, item__sample__key__gte="s18").update(run=later)
    rows = by_model(board("models", "--source", "keen"))
    assert rows["Alder"]["n"] == sum("Alder" in pair for _, *pair in pairs())
    for row in rows.values():
        assert row["wins"] + row["ties"] + row["losses"] == row["n"]
        assert row["win_rate"] == pytest.approx(row["wins"] / row["n"])


def test_the_two_majority_rules_differ_where_they_should(brought, board):
    # Three people: one for each side and a tie. The most frequent verdict is a draw, so a tie; by MLLM-Bench's rule
    # equal sides leave it undecided: neither is a win. Two for the first, two ties: a draw against the first's win.
    rows = [
        ("s00", "first"),
        ("s00", "first"),
        ("s00", "tie"),
        ("s00", "undecided"),
        ("s01", "first"),
        ("s01", "second"),
        ("s01", "tie"),
    ]
    given = [
        {
            "kind": "pair",
            "protocol": "pairwise-criteria",
            "sample": sample,
            "responses": ["Alder", "Birch"],
            "annotator": f"person {number}",
            "choice": choice,
        }
        for number, (sample, choice) in enumerate(rows)
    ]
    brought("labels", given)
    plural = by_model(board("models", "--majority", "plurality"))["Alder"]
    released = by_model(board("models", "--majority", "mllm-bench"))["Alder"]
    assert (plural["wins"], plural["ties"]) == (1, 1)
    # Two for a side, two without a side: not more than the side, so the side wins.
    assert (released["wins"], released["ties"]) == (1, 1)
    more = [row | {"annotator": "one more", "choice": "tie"} for row in given[:1]]
    brought("labels", more)
    assert by_model(board("models", "--majority", "plurality"))["Alder"]["ties"] == 2
    assert by_model(board("models", "--majority", "mllm-bench"))["Alder"]["wins"] == 0


def test_an_excluded_label_and_practice_count_for_nothing(brought, board):
    brought("labels", labels())
    before = board("models", "--source", "individuals")
    label = Label.objects.filter(item__sample__key="s05").first()
    label.excluded = True
    label.save()
    after = board("models", "--source", "individuals")
    total = sum(row["wins"] + row["ties"] + row["losses"] for row in before)
    assert sum(row["wins"] + row["ties"] + row["losses"] for row in after) == total - 2
    CampaignItem.objects.filter(item__sample__key="s06").update(practice=True)
    practised = Label.objects.filter(item__sample__key="s06").count()
    again = board("models", "--source", "individuals")
    assert sum(row["wins"] + row["ties"] + row["losses"] for row in again) == total - 2 - 2 * practised


def test_a_campaign_narrows_the_labels(brought, board):
    brought("labels", labels(1), "--campaign", "first round")
    others = [row | {"annotator": f"{row['annotator']} II"} for row in labels(2)]
    brought("labels", others, "--campaign", "second round")
    first = board("models", "--source", "individuals", "--campaign", "first round")
    second = board("models", "--source", "individuals", "--campaign", "second round")
    both = board("models", "--source", "individuals")
    total = [sum(row["wins"] + row["ties"] + row["losses"] for row in rows) for rows in (first, second, both)]
    assert total[0] > 0 < total[1]
    assert total[2] == total[0] + total[1]
    assert "no campaign 'third'" in str(refused("models", "--benchmark", "grove", "--campaign", "third"))


# ---- what cannot be shown ----


def test_runs_with_different_settings_end_with_status_2_and_the_list(brought, board):
    brought("judgments", judgments("keen", noise=1.0, seed=2))
    brought("judgments", judgments("keen", noise=1.0, seed=2, settings={"prompt": "other"}))
    error = refused("models", "--benchmark", "grove", "--source", "keen")
    assert error.returncode == 2
    for run in Run.objects.all():
        assert f"run {run.pk}" in str(error)
        assert board("models", "--run", str(run.pk))
    judged = {(row["run"], row["judge"]) for row in board("judges")}
    assert judged == set()


def test_unknown_names_end_with_status_2_and_say_what_there_is(voted):
    unknown = refused("models", "--benchmark", "grove", "--source", "nobody")
    assert (unknown.returncode, "dull, keen" in str(unknown)) == (2, True)
    assert refused("models", "--benchmark", "grove", "--anchor", "Elm").returncode == 2
    assert refused("models", "--benchmark", "grove", "--majority", "loudest").returncode == 2
    assert refused("models", "--benchmark", "grove", "--run", "99999").returncode == 2
    assert refused("models", "--benchmark", "forest").returncode == 1


def test_no_votes_give_no_rows(grove, board):
    assert board("models") == board("judges") == board("agreement") == []


# ---- judges ----


def test_a_judge_is_held_against_the_majority_and_against_every_label(voted, board):
    rows = board("judges")
    assert {(row["judge"], row["reference"]) for row in rows} == set(
        itertools.product(("keen", "dull"), ("majority", "individuals"))
    )
    assert {row["source_dataset"] for row in rows} == {"grove", "all"}
    value = {
        (row["judge"], row["reference"], row["metric"]): row["value"] for row in rows if row["source_dataset"] == "all"
    }
    for reference in ("majority", "individuals"):
        for metric in ("accuracy_with_tie", "accuracy_without_tie", "f1_with_tie", "kappa"):
            assert value["keen", reference, metric] > value["dull", reference, metric]
        assert value["keen", reference, "agreement"] == value["keen", reference, "accuracy_with_tie"]
        assert value["keen", reference, "agreement_decided"] == value["keen", reference, "accuracy_without_tie"]
    n = {(row["reference"]): row["n"] for row in rows if row["metric"] == "agreement"}
    assert n["individuals"] == Label.objects.count()
    assert n["majority"] == Label.objects.values("item").distinct().count()


def test_the_mean_length_of_answers_below_staff_leaves_out_what_waits_for_its_release(voted, client, client_of, people):
    def lengths(visitor):
        rows = visitor.get("/api/v1/leaderboards/models/?benchmark=grove").json()
        return {row["model"]: row["mean_length"] for row in rows}

    before = lengths(client)
    sample = Sample.objects.create(benchmark=voted, key="late", instruction="?", position=99, status="approved")
    alder = EvaluatedModel.objects.get(name="Alder")
    waiting = Submission.objects.create(by=people["researcher"], benchmark=voted, model=alder)
    Response.objects.create(sample=sample, model=alder, text="long " * 1000, submission=waiting)
    assert lengths(client) == before
    assert lengths(client_of("curator"))["Alder"] > before["Alder"]
    Submission.objects.update(released_at=timezone.now())
    assert lengths(client)["Alder"] == lengths(client_of("curator"))["Alder"]
