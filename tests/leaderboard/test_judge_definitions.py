"""What numbers of judges count where researchers differ: data sets, and the two orders of a pair."""

import numpy as np
import pytest
from django.core.management.base import CommandError
from scipy.stats import pearsonr, spearmanr

from judging.models import Judge
from leaderboard.boards.seen import judges
from leaderboard.view import scope_of

pytestmark = pytest.mark.django_db


# JudgeBench (arXiv 2410.12784), o1-mini on pairs of GPT-4o's answers: pairs, and right ones, by category;
# 58.44, 62.24, 82.14, 78.57 and over all 65.71 %.
JUDGEBENCH = {"Knowledge": (154, 90), "Reasoning": (98, 61), "Math": (56, 46), "Coding": (42, 33)}


@pytest.fixture
def judgebench(manage, folder):
    """Texts of our own, as many in each data set as the paper counts; people have one label on each."""
    pair = {"kind": "pair", "protocol": "pair", "responses": ["A", "B"]}
    tables = {"benchmark": [], "responses": [], "labels": [], "judgments": []}
    for source, (n, right) in JUDGEBENCH.items():
        for at in range(n):
            key = f"{source} {at}"
            tables["benchmark"].append({"key": key, "instruction": f"Solve {key}.", "source": source})
            tables["responses"] += [{"sample": key, "model": model, "text": f"{key}: {model}"} for model in "AB"]
            tables["labels"].append(pair | {"sample": key, "annotator": "key", "choice": "first"})
            told = "first" if at < right else "second"
            tables["judgments"].append(pair | {"sample": key, "judge": "J", "choice": told})
    for what, rows in tables.items():
        assert manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", "jb")[0] == 0


def test_a_number_over_data_sets_is_pooled_over_their_items_on_request(judgebench, board, client_of):
    def accuracy(*options):
        rows = board("judges", *options, benchmark="jb")
        kept = [row for row in rows if (row["metric"], row["reference"]) == ("accuracy_with_tie", "majority")]
        return {row["source_dataset"]: row for row in kept}

    mean, pooled = accuracy(), accuracy("--pool")
    assert round(100 * pooled["all"]["value"], 2) == 65.71
    assert (pooled["all"]["n"], pooled["all"]["value"]) == (350, pytest.approx(230 / 350))
    assert mean["all"]["value"] == pytest.approx((0.5844 + 0.6224 + 0.8214 + 0.7857) / 4, abs=1e-4)
    assert pooled["all"]["value_method"] == "pooled over 4 data sets, wilson"
    assert [pooled[source] for source in JUDGEBENCH] == [mean[source] for source in JUDGEBENCH]
    assert pooled["all"]["value_low"] < pooled["all"]["value"] < pooled["all"]["value_high"]
    client = client_of("curator")
    asked = client.get("/api/v1/leaderboards/judges/?benchmark=jb&pool=1").json()
    assert asked == board("judges", "--pool", benchmark="jb")
    shown = client.get("/leaderboards/jb/judges/?pool=1&metric=accuracy_with_tie").text
    assert "pooled over 4 data sets" in shown
    assert ">65.7<" in shown
    assert '<option value="1" selected' in shown
    assert "&amp;pool=1" in shown  # the files of this page
    with pytest.raises(CommandError, match="--pool says nothing about models"):
        board("models", "--pool", benchmark="jb")


@pytest.mark.parametrize(("name", "measure"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_a_correlation_is_within_each_data_set_or_over_all_items(name, measure, manage, folder, board):
    draw = np.random.default_rng(3)
    lowest = {f"{source} {at}": low for source, low in (("Low", 0), ("High", 2)) for at in range(20)}
    scores = {key: (key.split()[0], *(low + draw.integers(1, 4, 2))) for key, low in lowest.items()}
    row = {"kind": "score", "protocol": "score", "responses": ["A"]}
    tables = {
        "benchmark": [{"key": key, "instruction": key, "source": source} for key, (source, *_) in scores.items()],
        "responses": [{"sample": key, "model": "A", "text": key} for key in scores],
        "labels": [
            row | {"sample": key, "annotator": "key", "score": int(told)} for key, (_, told, _) in scores.items()
        ],
        "judgments": [row | {"sample": key, "judge": "J", "score": int(told)} for key, (*_, told) in scores.items()],
    }
    for what, rows in tables.items():
        assert manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", "graded")[0] == 0

    def measured(*options):
        rows = board("judges", *options, benchmark="graded")
        kept = [row for row in rows if (row["metric"], row["reference"]) == (name, "majority")]
        return {row["source_dataset"]: row for row in kept}

    found, whole = {source: row["value"] for source, row in measured().items()}, measured("--pool")["all"]
    assert found["all"] == pytest.approx((found["Low"] + found["High"]) / 2)
    columns = [[row[at] for row in scores.values()] for at in (1, 2)]
    assert whole["value"] == pytest.approx(measure(*columns).statistic)
    assert whole["value"] > found["all"] + 0.2
    assert whole["value_method"].startswith("pooled over 2 data sets, ")


# What a judge said of a pair where the item's first answer stood first, and where it stood second; how many pairs.
# Cohen's table [[20, 5], [10, 15]] has kappa .4 (Fleiss, Cohen and Everitt 1969); people prefer the first answer.
COHENS = {("first", "first"): 20, ("first", "second"): 5, ("second", "first"): 10, ("second", "second"): 15}
# JudgeBench (arXiv 2410.12784), claude-3-haiku as a judge of claude-3.5-sonnet's answers: of 270 pairs 87 right, where
# one order's verdict is enough; 257 pairs have a verdict in both, and of these it is right on 83. Which verdicts make
# these sums is ours.
HAIKU = {
    ("first", "first"): 80,
    ("tie", "first"): 3,
    ("first", "second"): 100,
    ("second", "second"): 74,
    ("first", None): 3,
    (None, "first"): 1,
    (None, "second"): 6,
    (None, None): 3,
}


@pytest.fixture
def in_two_orders(manage, folder):
    """``in_two_orders(table)``: the benchmark ``two``, each pair labelled once, by two people if said so."""

    def bring(table, *, people=("key",), judge="J", orders=("both", 2)):
        told = [votes for votes, n in table.items() for _ in range(n)]
        pair = {"kind": "pair", "protocol": "pair", "responses": ["A", "B"]}
        keys = [f"pair {at}" for at in range(len(told))]
        tables = {
            "benchmark": [{"key": key, "instruction": f"Solve {key}."} for key in keys],
            "responses": [{"sample": key, "model": of, "text": f"{key}: {of}"} for key in keys for of in "AB"],
            "labels": [pair | {"sample": key, "annotator": who, "choice": "first"} for key in keys for who in people],
            "judgments": [
                pair
                | {"sample": key, "judge": judge, "settings": {"order": orders[0]}, "order": order}
                | verdict(choice)
                for key, votes in zip(keys, told, strict=True)
                for order, choice in list(zip((["A", "B"], ["B", "A"]), votes, strict=True))[: orders[1]]
            ],
        }
        for what, rows in tables.items():
            assert manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", "two")[0] == 0

    return bring


def verdict(choice):
    return {"choice": choice} if choice else {"choice": None, "status": "parse_failed"}


def measured(board, *options, reference="majority", judge="J"):
    rows = board("judges", *options, benchmark="two")
    kept = [row for row in rows if (row["judge"], row["reference"], row["source_dataset"]) == (judge, reference, "all")]
    return {row["metric"]: row for row in kept}


BY_ORDER = ("accuracy_given_order", "accuracy_swapped_order", "accuracy_mean_of_orders", "kappa_of_orders")


def test_a_judge_asked_in_both_orders_has_its_accuracy_in_each_their_mean_and_kappa_between_them(
    in_two_orders, board, client_of
):
    in_two_orders(COHENS, people=("one", "two"))
    rows = measured(board)
    assert [rows[name]["value"] for name in BY_ORDER] == pytest.approx([25 / 50, 30 / 50, 55 / 100, 0.4])
    assert rows["accuracy_with_tie"]["value"] == pytest.approx(20 / 50)  # both orders together, as before
    for name in BY_ORDER:
        assert (rows[name]["n"], rows[name]["value_n"], rows[name]["value_groups"]) == (50, 50, 50)
        assert rows[name]["value_low"] < rows[name]["value"] < rows[name]["value_high"]
        assert rows[name]["value_method"]
    assert rows["accuracy_given_order"]["value_method"] == rows["accuracy_with_tie"]["value_method"] == "wilson"
    each = measured(board, reference="individuals")
    assert [each[name]["n"] for name in BY_ORDER] == [100, 100, 100, 50]  # kappa is about the judge alone
    assert each["kappa_of_orders"]["value"] == pytest.approx(0.4)
    client = client_of("curator")
    asked = client.get("/api/v1/leaderboards/judges/?benchmark=two").json()
    assert asked == board("judges", benchmark="two")
    shown = client.get("/leaderboards/two/judges/?metric=accuracy_mean_of_orders").text
    assert "mean of the accuracies in each order, of pairs judged in both orders" in shown
    assert "0.55" in shown


@pytest.mark.parametrize("order", ["fixed", "shuffled"])
def test_a_judge_asked_in_one_order_has_no_numbers_by_order_and_says_why(order, in_two_orders, board):
    in_two_orders(COHENS, people=("one", "two"), orders=(order, 1))
    rows = measured(board)
    assert rows["accuracy_with_tie"]["value"] == pytest.approx(25 / 50)
    for name in BY_ORDER:
        assert (rows[name]["value"], rows[name]["value_n"]) == (None, 0)
        assert rows[name]["notes"] == ["value: no pair here has a verdict in both orders"]
    assert not {*BY_ORDER} & {row["metric"] for row in board("ceiling", benchmark="two")}


def test_the_order_that_has_a_verdict_counts_where_the_view_says_so(in_two_orders, board, client_of):
    in_two_orders(HAIKU)

    def accuracy(*options):
        row = measured(board, *options)["accuracy_with_tie"]
        return round(row["value"] * row["n"], 6), row["n"]

    assert accuracy() == (83, 257)
    assert accuracy("--failures", "wrong") == (83, 270)
    assert accuracy("--orders", "any") == (87, 267)
    assert accuracy("--orders", "any", "--failures", "wrong") == (87, 270)
    assert accuracy("--orders", "any", "--failures", "tie") == (87, 270)
    client = client_of("curator")
    asked = client.get("/api/v1/leaderboards/judges/?benchmark=two&orders=any&failures=wrong").json()
    assert asked == board("judges", "--orders", "any", "--failures", "wrong", benchmark="two")
    assert {(row["order_rule"], row["failure_rule"]) for row in asked} == {("any", "wrong")}
    shown = client.get("/leaderboards/two/judges/?orders=any&failures=wrong").text
    assert "of two orders the one that has a verdict counts" in shown
    models = {row["model"]: row for row in board("models", "--source", "J", "--orders", "any", benchmark="two")}
    assert (models["A"]["wins"], models["A"]["n"], models["A"]["order_rule"]) == (87, 267, "any")
    asked = client.get("/api/v1/leaderboards/models/?benchmark=two&source=J&orders=any").json()
    assert asked == list(models.values())


def test_as_printed_an_unreadable_reply_is_no_loss_one_vote_decides_and_wins_are_of_all_items(
    in_two_orders, board, client_of
):
    """MLLM-Bench, Table 5: one vote and one undecided is a win or a loss, and twice undecided a tie. Where a reply
    could not be read all of these were losses.
    """
    in_two_orders(
        {
            ("first", "first"): 10,
            ("first", None): 3,
            ("second", "first"): 2,
            ("second", "second"): 6,
            (None, "second"): 5,
            (None, None): 4,
        }
    )
    view = ("--source", "J", "--anchor", "B")

    def counted(*options):
        row = next(row for row in board("models", *view, *options, benchmark="two") if row["model"] == "A")
        return row["wins"], row["ties"], row["losses"], row["n"], pytest.approx(row["win_rate"])

    assert counted("--as-printed") == (13, 6, 11, 30, 13 / 30)
    assert counted() == (10, 2, 6, 18, 10 / 18)
    assert counted("--as-printed", "--failures", "wrong", "--orders", "both") == (10, 2, 18, 30, 10 / 30)
    page = client_of("curator").get("/leaderboards/two/models/?source=J&anchor=B&failures=tie&orders=any").text
    assert "as printed in MLLM-Bench" in page


def test_a_failure_in_one_order_counts_by_the_same_rule_in_its_accuracy(in_two_orders, board):
    in_two_orders(HAIKU)
    rows = {rule: measured(board, "--failures", rule) for rule in ("exclude", "wrong", "tie")}
    right = {"exclude": (180, 83), "wrong": (183, 84), "tie": (183, 84)}
    for rule, of in rows.items():
        n = 257 if rule == "exclude" else 270
        assert [of[name]["n"] for name in BY_ORDER[:3]] == [n] * 3
        values = [of[name]["value"] for name in BY_ORDER[:3]]
        assert values == pytest.approx([right[rule][0] / n, right[rule][1] / n, sum(right[rule]) / 2 / n])
    assert [of["kappa_of_orders"]["n"] for of in rows.values()] == [257, 257, 270]


def brought_in(manage, folder, right_of):
    """One judge of pairs in data sets of so many, as many of them right; people have one label on each."""
    pair = {"kind": "pair", "protocol": "pair", "responses": ["A", "B"]}
    tables = {"benchmark": [], "responses": [], "labels": [], "judgments": []}
    for source, (n, *right) in right_of.items():
        for at in range(n):
            key = f"{source} {at}"
            tables["benchmark"].append({"key": key, "instruction": f"Solve {key}.", "source": source})
            tables["responses"] += [{"sample": key, "model": model, "text": f"{key}: {model}"} for model in "AB"]
            tables["labels"].append(pair | {"sample": key, "annotator": "key", "choice": "first"})
            for judge, hits in zip("JK", right, strict=False):
                told = "first" if at < hits else "second"
                tables["judgments"].append(pair | {"sample": key, "judge": judge, "choice": told})
    for what, rows in tables.items():
        assert manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", "uneven")[0] == 0


def accuracy_of(board, judge="J", **scope):
    rows = board("judges", benchmark="uneven", **scope)
    kept = [row for row in rows if (row["metric"], row["reference"]) == ("accuracy_with_tie", "majority")]
    return {row["source_dataset"]: row for row in kept if row["judge"] == judge}


def test_a_mean_over_data_sets_has_no_interval_where_one_of_them_is_small(manage, folder, board, client_of):
    brought_in(manage, folder, {"big": (200, 160, 150), "tiny": (3, 3, 0)})
    row = accuracy_of(board)["all"]
    assert (row["value"], row["value_low"], row["value_high"]) == (pytest.approx(0.9), None, None)
    assert row["notes"] == ["value: each counts alike, and of fewer than 8 groups too little is known: tiny has 3"]
    # Wilson's of 163 of 203, as scipy's binomtest gives it.
    assert (row["pooled"], row["pooled_low"], row["pooled_high"]) == pytest.approx(
        (0.802956, 0.742831, 0.851828), abs=1e-6
    )
    assert accuracy_of(board)["big"]["pooled"] is None
    page = client_of("curator").get("/leaderboards/uneven/judges/?metric=accuracy_with_tie").text
    assert "tiny has 3" in page
    assert "pooled 80.3" in page
    assert "<b>90.0%</b> in the mean over 2 data sets, 203 items" in page


def test_the_interval_of_a_mean_over_data_sets_is_made_of_theirs(manage, folder, board):
    """MOVER (Zou and Donner 2008) of Wilson's intervals of 160 of 200 and 9 of 12, by hand."""
    brought_in(manage, folder, {"big": (200, 160), "small": (12, 9)})
    rows = accuracy_of(board)
    big, small, over = rows["big"], rows["small"], rows["all"]
    below, above = (
        np.hypot(*(row["value"] - row[f"value_{end}"] for row in (big, small))) / 2 for end in ("low", "high")
    )
    assert (over["value_low"], over["value_high"]) == pytest.approx((0.775 - below, 0.775 + above))
    assert (over["value_low"], over["value_high"]) == pytest.approx((0.6306, 0.8593), abs=1e-4)
    assert over["value_method"] == "mean over 2 data sets, MOVER over parts, wilson"
    assert over["notes"] == []


@pytest.mark.parametrize(("tiny", "range_of"), [(3, None), (40, (1, 1))])
def test_a_judge_is_ranked_over_data_sets_only_where_each_says_something(tiny, range_of, manage, folder, board):
    brought_in(manage, folder, {"big": (200, 190, 60), "tiny": (tiny, tiny, 0)})
    first = Judge.objects.get(name="J").runs.get()
    place = judges(scope_of(benchmark="uneven")).against["majority"].standing["accuracy_with_tie"][first.pk]
    assert (place.rank, (place.rank_low, place.rank_high) if place.rank_low else None) == (1, range_of)
