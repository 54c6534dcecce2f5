"""Graded and continuous preferences between two answers: in, out, and on the boards."""

import itertools
import random

import numpy as np
import pytest

from annotations.models import Label
from judging.models import Judgment
from leaderboard.boards.seen import models
from leaderboard.view import scope_of
from stats.bradley_terry import fit
from tests.leaderboard.conftest import MODELS, STRENGTH, by_model

pytestmark = pytest.mark.django_db
THREE = MODELS[:3]


def graded(seed=4, *, step=0.25, **who):
    """Preferences for the stronger model mostly, in steps of a quarter or any other."""
    draw = random.Random(seed)
    for n in range(36):
        for first, second in itertools.combinations(THREE, 2):
            drawn = 0.5 + 0.16 * (STRENGTH[first] - STRENGTH[second]) + draw.gauss(0, 0.35)
            preference = min(1.0, max(0.0, round(drawn / step) * step))
            row = {"kind": "pair", "sample": f"s{n:02}", "responses": [first, second], "preference": preference}
            yield row | who


def test_a_choice_follows_from_a_preference_and_both_are_turned_with_their_pair(brought, manage, tmp_path):
    rows = list(graded(annotator="Ada"))
    half = len(rows) // 2
    rows[half:] = [
        row | {"responses": row["responses"][::-1], "preference": 1 - row["preference"]} for row in rows[half:]
    ]
    brought("labels", rows)
    stored = {}
    for label in Label.objects.select_related("item__sample"):
        names = [place.response.model.name for place in label.item.places.order_by("position")]
        stored[*names, label.item.sample.key] = label.choice, label.preference
    assert len(stored) == len(rows)
    for row in rows:
        names, preference = tuple(row["responses"]), row["preference"]
        found = stored.get((*names, row["sample"]))
        if found is None:
            found, preference = stored[(*names[::-1], row["sample"])], 1 - preference
        assert found == ("first" if preference > 0.5 else "second" if preference < 0.5 else "tie", preference)
    assert set(Label.objects.values_list("campaign__protocol", flat=True)) == {"pair-graded"}
    out = tmp_path / "labels.jsonl"
    assert manage("export", "labels", "--benchmark", "grove", "--format", "jsonl", "--names", "--output", out)[0] == 0
    code, said = manage("import_labels", "generic", out, "--benchmark", "grove")[:2]
    assert code == 0, said
    assert Label.objects.count() == len(rows)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"preference": 1.5}, "preference"),
        ({"preference": 0.75, "choice": "second"}, "first follows from the preference 0.75"),
        ({"preference": 0.75, "protocol": "pair"}, "belongs to a pair of the protocol pair-graded"),
    ],
)
def test_a_preference_that_contradicts_its_row_is_a_bad_row(grove, folder, manage, wrong, words):
    rows = [row | wrong for row in list(graded(annotator="Ada"))[:3]]
    code, *said = manage("import_labels", "generic", folder("labels", rows), "--benchmark", "grove")
    assert code == 1
    assert words in "".join(map(str, said))
    assert not Label.objects.exists()


@pytest.mark.parametrize("source", ["judge", "people"])
def test_a_strong_vote_counts_once_or_three_times_in_strengths_alone(source, brought, board, client):
    who = {"judge": "keen", "protocol": "pair-graded"} if source == "judge" else {"annotator": "Ada"}
    rows = list(graded(**who))
    brought("judgments" if source == "judge" else "labels", rows)
    view = ("--source", "keen") if source == "judge" else ()
    once, thrice = by_model(board("models", *view)), by_model(board("models", *view, "--weight", "3"))
    assert board("models", *view, "--weight", "1") == list(once.values())
    place = {name: at for at, name in enumerate(THREE)}
    y = np.array([1 if row["preference"] > 0.5 else 0 if row["preference"] < 0.5 else 0.5 for row in rows])
    for found, times in ((once, 1), (thrice, 3)):
        expected = fit(
            a=np.array([place[row["responses"][0]] for row in rows]),
            b=np.array([place[row["responses"][1]] for row in rows]),
            y=y,
            weight=np.array([times if row["preference"] in (0, 1) else 1 for row in rows]),
            models=list(THREE),
            group=np.array([row["sample"] for row in rows]),
            item=np.arange(len(rows)),
            rng=np.random.default_rng(0),
        )
        for name in THREE:
            assert found[name]["bt"] == pytest.approx(expected.ratings[name].strength.value, abs=1e-6)
            assert found[name]["bt_low"] == pytest.approx(expected.ratings[name].strength.interval.low, abs=1e-6)
            assert found[name]["strong_weight"] == times
    assert once["Alder"]["bt"] != thrice["Alder"]["bt"]
    assert [once[name]["win_rate"] for name in THREE] == [thrice[name]["win_rate"] for name in THREE]
    for name in THREE:
        given = [row["preference"] if row["responses"][0] == name else 1 - row["preference"] for row in rows
                 if name in row["responses"]]  # fmt: skip
        assert once[name]["preference"] == pytest.approx(np.mean(given))
        assert once[name]["preference_low"] < once[name]["preference"] < once[name]["preference_high"]
    address = f"weight=3{'&source=keen' if source == 'judge' else ''}"
    assert client.get(f"/api/v1/leaderboards/models/?benchmark=grove&{address}").json() == list(thrice.values())
    assert "a strong vote counts three times" in client.get(f"/leaderboards/grove/models/?{address}").content.decode()


def test_continuous_preferences_are_the_outcomes_that_strengths_are_fitted_to(brought):
    rows = list(graded(step=0.01, judge="keen", protocol="pair-graded"))
    brought("judgments", rows)
    place = {name: at for at, name in enumerate(THREE)}
    expected = fit(
        a=np.array([place[row["responses"][0]] for row in rows]),
        b=np.array([place[row["responses"][1]] for row in rows]),
        y=np.array([row["preference"] for row in rows]),
        models=list(THREE),
        group=np.array([row["sample"] for row in rows]),
        item=np.arange(len(rows)),
        rng=np.random.default_rng(0),
    )
    found = by_model(models(scope_of(benchmark="grove", source="keen")).as_json())
    for name in THREE:
        assert found[name]["bt"] == pytest.approx(expected.ratings[name].strength.value, abs=1e-5)


def test_a_judges_two_orders_have_the_mean_of_their_preferences(brought, board):
    both = {"judge": "keen", "protocol": "pair-graded", "settings": {"order": "both"}}
    rows = [
        row | {"order": order, "preference": preference}
        for row in graded(**both)
        for order, preference in (
            (row["responses"], row["preference"]),
            (row["responses"][::-1], max(0.0, row["preference"] - 0.25)),
        )
    ]
    brought("judgments", rows)
    assert Judgment.objects.filter(order="10", preference__isnull=False).count() == len(rows) // 2
    alder = by_model(board("models", "--source", "keen"))["Alder"]
    given = [row["preference"] for row in rows if row["responses"][0] == "Alder"]
    assert alder["preference"] == pytest.approx(np.mean(given))


def test_the_page_of_models_shows_the_mean_preference_with_its_interval_where_votes_are_graded(brought, board, client):
    brought("judgments", graded(judge="keen", protocol="pair-graded"))
    row = by_model(board("models", "--source", "keen"))["Alder"]
    page = client.get("/leaderboards/grove/models/?source=keen&sort=preference").text
    low, high = (f"{row[f'preference_{end}']:.2f}" for end in ("low", "high"))
    assert f'title="95%: {low} to {high}"' in page
    assert f"{row['preference']:.2f}" in page
    assert "how much better its answers were, the mean" in page
    plain = [{"kind": "pair", "sample": "s00", "responses": list(THREE[:2]), "judge": "plain", "choice": "first"}]
    brought("judgments", plain)
    assert "Preference" not in client.get("/leaderboards/grove/models/?source=plain").text


@pytest.mark.parametrize(("step", "column"), [(0.1, "preference"), (0.25, "win_rate")])
def test_the_win_rate_at_equal_length_goes_by_preferences_between_the_steps_and_by_choices_else(
    brought, board, step, column
):
    brought("labels", graded(step=step, annotator="Ada"))
    rows = by_model(board("models", "--anchor", "Birch", "--ties", "half"))
    for name in ("Alder", "Cedar"):  # all answers have as many words
        assert rows[name]["win_rate_lc"] == pytest.approx(rows[name][column], abs=1e-6)


def test_failures_that_count_as_ties_count_as_half_a_preference(brought, board, client):
    rows = [
        row | {"judge": "keen", "protocol": "pair-graded", "settings": {"order": "straight"}, "order": row["responses"]}
        for row in graded()
    ]
    for row in rows[::9]:
        row.pop("preference")
        row["status"] = "parse_failed"
    brought("judgments", rows)
    left_out, tied, wrong = (
        by_model(board("models", "--source", "keen", "--failures", rule)) for rule in ("exclude", "tie", "wrong")
    )
    for name in THREE:
        own = [at for at, row in enumerate(rows) if name in row["responses"]]
        failed = sum(at % 9 == 0 for at in own)
        assert left_out[name]["preference_n"] == len(own) - failed
        assert tied[name]["preference_n"] == wrong[name]["preference_n"] == len(own)
        total = left_out[name]["preference"] * (len(own) - failed)
        assert tied[name]["preference"] == pytest.approx((total + failed / 2) / len(own))
        assert wrong[name]["preference"] == pytest.approx(total / len(own))
    view = "source=keen&failures=tie"
    assert client.get(f"/api/v1/leaderboards/models/?benchmark=grove&{view}").json() == list(tied.values())
    ends = [f"{tied['Alder'][f'preference_{end}']:.2f}" for end in ("low", "high")]
    assert f'title="95%: {ends[0]} to {ends[1]}"' in client.get(f"/leaderboards/grove/models/?{view}").text
