"""The board of models with length and style taken out: by command, API and page."""

import random

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from scipy.optimize import minimize
from scipy.special import log_expit

from bank.models import Benchmark, Response
from leaderboard.boards.models import controlled
from leaderboard.models import Snapshot
from stats.controlled import length_controlled_rates
from tests.bank.conftest import picture
from tests.leaderboard.conftest import by_model, samples, without_state
from tests.once import once

pytestmark = pytest.mark.django_db
MODELS = ("Long", "Middle", "Short")
WORDS = {"Long": 60, "Middle": 40, "Short": 25}
ALL = "length,style"


def answers():
    """Of each model and sample: how many words, and how many of them bold."""
    rng = random.Random(4)
    return {
        (sample["key"], model): (round(WORDS[model] * rng.uniform(0.5, 1.6)), rng.randrange(4))
        for sample in samples()
        for model in MODELS
    }


def votes():
    """One label an item: the longer answer mostly wins, whoever wrote it."""
    rng, of = random.Random(5), answers()
    for n, sample in enumerate(sample["key"] for sample in samples()):
        for at, (a, b) in enumerate((("Long", "Middle"), ("Middle", "Short"), ("Short", "Long"))):
            longer = of[sample, a][0] > of[sample, b][0]
            choice = "tie" if (n + at) % 11 == 0 else "first" if longer == (rng.random() < 0.85) else "second"
            yield sample, a, b, choice


@pytest.fixture
def swayed(folder, manage):
    def make():
        (folder.root / "sign.png").write_bytes(picture())
        texts = [
            {"sample": sample, "model": model, "text": " ".join(["**bold**"] * bold + ["word"] * (words - bold))}
            for (sample, model), (words, bold) in answers().items()
        ]
        labels = [
            {
                "kind": "pair",
                "protocol": "pairwise-criteria",
                "sample": sample,
                "annotator": "Ada",
                "responses": [a, b],
                "choice": choice,
            }
            for sample, a, b, choice in votes()
        ]
        grove = ("--benchmark", "grove")
        assert manage("import_benchmark", "generic", folder("samples", samples()), *grove, "--public")[0] == 0
        assert manage("import_responses", "generic", folder("responses", texts), *grove)[0] == 0
        assert manage("import_labels", "generic", folder("labels", labels), *grove)[0] == 0
        return Benchmark.objects.get(slug="grove")

    return once("swayed", make)


def explicit(*covariates):
    """Strengths and coefficients that maximise the likelihood of the votes, written out."""
    of = answers()
    rows = list(votes())
    y = np.array([{"first": 1.0, "tie": 0.5, "second": 0.0}[choice] for *_, choice in rows])
    sides = np.array([[(MODELS.index(a) == m) - (MODELS.index(b) == m) for m in (0, 1)] for _, a, b, _ in rows], float)
    x = []
    for place in covariates:
        one, other = (np.array([of[sample, (a, b)[side]][place] for sample, a, b, _ in rows], float) for side in (0, 1))
        share = (one - other) / np.maximum(one + other, 1)
        x.append(share / np.sqrt((share**2).mean()))
    design = np.hstack([sides, np.stack(x, axis=1)])

    def lost(w):
        return -(y * log_expit(design @ w) + (1 - y) * log_expit(-(design @ w))).sum()

    w = minimize(lost, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-9}).x
    theta = np.array([w[0], w[1], 0]) - w[:2].sum() / 3
    return dict(zip(MODELS, theta, strict=True)), w[2:]


def at_equal_length(model):
    """The rate against Middle, from the votes themselves."""
    of, rows = answers(), []
    for sample, a, b, choice in votes():
        if "Middle" in (a, b):
            mine = b if a == "Middle" else a
            won = {"first": 1.0, "tie": 0.5, "second": 0.0}[choice]
            gap = of[sample, mine][0] - of[sample, "Middle"][0]
            rows.append((won if mine == a else 1 - won, gap, sample, MODELS.index(mine)))
    won, gap, sample, part = (np.array(column) for column in zip(*rows, strict=True))
    rates = length_controlled_rates(won=won, difference=gap, sample=sample, cluster=sample, part=part, parts=3)
    return rates[MODELS.index(model)].value


def test_strengths_have_length_and_style_taken_out_by_command_api_and_page(swayed, board, client):
    raw = by_model(board("models"))
    assert {row["control"] for row in raw.values()} == {"none"}
    assert raw["Long"]["bt"] - raw["Short"]["bt"] > 1
    assert raw["Long"]["coefficients"] == {}
    for control, places in (("length", (0,)), ("style", (1,)), (ALL, (0, 1))):
        rows = board("models", "--control", control)
        theta, worth = explicit(*places)
        for row in rows:
            assert row["control"] == control
            assert row["bt"] == pytest.approx(theta[row["model"]], abs=1e-4)
            assert row["bt_low"] < row["bt"] < row["bt_high"]
            assert row["bt_method"] == "bradley-terry with covariates, sandwich by group"
            for name in ("wins", "win_rate", "elo", "n"):
                assert row[name] == raw[row["model"]][name]
        found = rows[0]["coefficients"]
        counted = [name for name in found if name in ("length", "bold")]
        assert [found[name]["value"] for name in counted] == pytest.approx(worth, abs=1e-4)
        for name in counted:
            assert found[name]["value_low"] < found[name]["value"] < found[name]["value_high"]
            assert found[name]["twice"] == pytest.approx(found[name]["value"] / found[name]["sd"] / 3)
        if "style" in control:
            assert found["headers"]["value"] is None
        assert client.get(f"/api/v1/leaderboards/models/?benchmark=grove&control={control}").json() == rows
    length = by_model(board("models", "--control", "length"))
    assert abs(length["Long"]["bt"] - length["Short"]["bt"]) < 0.5
    assert length["Long"]["coefficients"]["length"]["value_low"] > 0
    assert length["Long"]["coefficients"]["length"]["unit"] == "words"

    page = client.get("/leaderboards/grove/models/?control=length,style").content.decode()
    assert "strengths and ranks have length and style taken out" in page
    assert "The worth of length and style" in page
    assert "Twice as long, in words: +" in page
    plain = client.get("/leaderboards/grove/models/").content.decode()
    assert "The worth of" not in plain
    two = client.get("/leaderboards/grove/models/compare/?a=Long&b=Short&control=length")
    assert "length taken out" in two.content.decode()


def test_an_answer_without_text_leaves_its_pairs_out_and_a_note_says_how_many(swayed, board, client):
    def strengths(*options):
        return {row["model"]: (row["bt"], row["bt_low"], row["bt_n"]) for row in board("models", *options)}

    raw = strengths()
    Response.objects.filter(sample__key="s01", model__name="Long").update(text="")
    assert strengths() == raw
    counted = {name: n for name, (_, _, n) in strengths("--control", "style").items()}
    assert counted == {"Long": 70, "Middle": 71, "Short": 71}
    out = client.get("/leaderboards/grove/models/?control=style").content.decode()
    assert "2 of 108 items lack the text of an answer and do not count in strengths." in out


def test_where_no_text_is_there_no_strength_is_left_and_the_board_stands(swayed, board):
    Response.objects.update(text="")
    for row in board("models", "--control", ALL, "--anchor", "Middle"):
        assert (row["bt"], row["rank"], row["win_rate_lc"]) == (None, None, None)
        assert row["model"] == "Middle" or row["win_rate"] is not None
        assert row["model"] == "Middle" or "win_rate_lc: the texts of the answers are not here" in row["notes"]


def test_the_win_rate_at_equal_length_stands_beside_the_raw_one_where_there_is_an_anchor(swayed, board, client):
    assert {row["win_rate_lc"] for row in board("models")} == {None}
    rows = by_model(board("models", "--anchor", "Middle", "--ties", "half"))
    assert (rows["Middle"]["win_rate_lc"], rows["Middle"]["win_rate_lc_n"]) == (None, None)
    for name in ("Long", "Short"):
        row = rows[name]
        assert row["length_unit"] == "words"
        assert (row["win_rate_lc_n"], row["win_rate_lc_groups"]) == (36, 36)
        assert row["win_rate_lc_low"] < row["win_rate_lc"] < row["win_rate_lc_high"]
        assert row["win_rate_lc"] == pytest.approx(at_equal_length(name))
    assert rows["Long"]["win_rate_lc"] + 0.1 < rows["Long"]["win_rate"]
    assert rows["Short"]["win_rate_lc"] - 0.1 > rows["Short"]["win_rate"]
    page = client.get("/leaderboards/grove/models/?anchor=Middle").content.decode()
    assert "LC %" in page
    assert f"{100 * rows['Long']['win_rate_lc']:.1f}" in page
    assert "LC %" not in client.get("/leaderboards/grove/models/").content.decode()


def test_of_many_pairs_the_win_rate_at_equal_length_is_computed_on_request(swayed, client, monkeypatch, board):
    monkeypatch.setattr(controlled, "MOST_PAIRS", 100)
    assert {row["win_rate_lc"] for row in board("models", "--anchor", "Middle")} == {None}
    assert "computed only where length is taken out" in client.get("/leaderboards/grove/models/?anchor=Middle").text
    asked = by_model(board("models", "--anchor", "Middle", "--control", "length"))
    assert asked["Long"]["win_rate_lc"] == pytest.approx(at_equal_length("Long"))


def test_lengths_are_in_tokens_where_all_of_them_are_known(swayed, board):
    of = answers()
    for response in Response.objects.select_related("sample", "model"):
        response.tokens = of[response.sample.key, response.model.name][0]
        response.save()
    tokens = board("models", "--control", "length", "--anchor", "Middle")
    assert {row["length_unit"] for row in tokens} == {"tokens"}
    assert tokens[0]["coefficients"]["length"]["unit"] == "tokens"
    Response.objects.filter(sample__key="s01").update(tokens=None)
    words = board("models", "--control", "length", "--anchor", "Middle")
    assert {row["length_unit"] for row in words} == {"words"}
    # Here a token is a word.
    assert words[0]["coefficients"]["length"]["value"] == tokens[0]["coefficients"]["length"]["value"]


def test_only_strengths_from_votes_have_something_to_take_out(swayed, client):
    for kind in ("score", "choice"):
        with pytest.raises(CommandError) as error:
            call_command("leaderboard", "models", "--benchmark", "grove", "--kind", kind, "--control", "length")
        assert error.value.returncode == 2
    assert client.get("/api/v1/leaderboards/models/?benchmark=grove&control=beauty").status_code == 400
    assert client.get("/leaderboards/grove/models/?kind=score&control=length").status_code == 200


def test_two_models_are_compared_under_the_same_control_and_a_snapshot_keeps_it(swayed, board, client_of):
    rows = by_model(board("models", "--control", "length"))
    compared = board("compare", "--a", "Long", "--b", "Short", "--control", "length")
    (strength,) = (row for row in compared if row["measure"] == "Bradley–Terry strength")
    assert strength["difference"] == pytest.approx(rows["Long"]["bt"] - rows["Short"]["bt"])
    assert strength["method"] == "contrast of the fit, length taken out"
    answer = client_of("researcher").post("/leaderboards/grove/models/freeze/?control=length")
    shot = Snapshot.objects.get(code=answer.headers["Location"].strip("/").rpartition("/")[2])
    assert shot.tables["rows"] == [without_state(row) for row in rows.values()]
    page = client_of("anonymous").get(f"/snapshots/{shot.code}/").content.decode()
    assert "Hold equal" in page
