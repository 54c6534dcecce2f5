"""The boards give the figures that were published for the released data."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

from tests.leaderboard.conftest import by_model

evalica = pytest.importorskip("evalica")
pytestmark = pytest.mark.django_db

LEVELS = ("Perception/Remembering", "Understanding", "Applying", "Analyzing", "Evaluating", "Creating")
# MLLM-Bench (arXiv 2311.13951), Table 5: wins/ties/loses per level, win rate. The names are the data's.
TABLE_5 = {
    "claude-3-5-sonnet-20240620": ("67/0/3 106/4/0 56/2/2 90/8/2 38/1/1 39/0/1", "0.94"),
    "gemini-1.5-pro-002": ("69/1/0 101/8/1 53/5/2 88/6/6 38/1/1 39/0/1", "0.92"),
    "gemini-1.5-flash-002": ("67/2/1 99/7/4 49/8/3 87/9/4 40/0/0 36/4/0", "0.90"),
    "gpt-4o-mini-2024-07-18": ("61/6/3 90/9/11 45/10/5 77/10/13 32/2/6 38/2/0", "0.82"),
    "mistralai/pixtral-12b": ("55/8/7 88/8/14 46/7/7 72/14/14 32/2/6 36/1/3", "0.78"),
    "qwen/qwen-2-vl-72b-instruct": ("49/5/16 78/15/17 40/10/10 72/7/21 32/2/6 32/1/7", "0.72"),
}


ANCHOR = "llava-v1.5-13b"
# The votes of the two orders, by what they come to; canonical order is candidate, then anchor.
VOTES = {
    "win": [("first", "first"), ("first", "undecided"), ("tie", "first")],
    "tie": [("first", "second"), ("undecided", "undecided"), ("tie", "tie")],
    "loss": [("second", "second"), ("undecided", "second"), ("second", "tie")],
}


def is_table_5(rows):
    assert set(rows) == {*TABLE_5, ANCHOR}
    for model, (cells, win_rate) in TABLE_5.items():
        row = rows[model]
        assert list(row["levels"]) == list(LEVELS)
        levels = row["levels"].values()
        assert [f"{level['wins']}/{level['ties']}/{level['losses']}" for level in levels] == cells.split(), model
        assert f"{row['win_rate']:.2f}" == win_rate
        assert (row["n"], row["coverage"]) == (420, 1.0)
        assert row["wins"] == sum(int(cell.split("/")[0]) for cell in cells.split())
    # Table 5 sorts by win rate; the ranks by strength agree.
    assert [row["model"] for row in sorted(rows.values(), key=lambda row: row["rank"])] == [*TABLE_5, ANCHOR]
    anchor = rows[ANCHOR]
    assert (anchor["wins"], anchor["ties"], anchor["losses"], anchor["win_rate"]) == (None, None, None, None)


def test_table_5_of_mllm_bench_follows_from_its_counts(manage, media, board, tmp_path):
    """Texts of our own, and per cell as many votes of each kind as the paper counts: needs none of its data."""
    sizes = [sum(map(int, cell.split("/"))) for cell in next(iter(TABLE_5.values()))[0].split()]
    samples = [(f"{level} {n}", level) for level, size in zip(LEVELS, sizes, strict=True) for n in range(size)]
    assert len(samples) == 420
    answers = [
        {"sample": key, "model": model, "text": f"{model}: {key}"} for key, _ in samples for model in (*TABLE_5, ANCHOR)
    ]
    judgments = []
    for model, (cells, _) in TABLE_5.items():
        counts = [zip(VOTES, map(int, cell.split("/")), strict=True) for cell in cells.split()]
        comes_to = [what for cell in counts for what, n in cell for _ in range(n)]
        for number, ((key, _), what) in enumerate(zip(samples, comes_to, strict=True)):
            pair = [model, ANCHOR]
            row = {"kind": "pair", "sample": key, "judge": "J", "responses": pair}
            votes = zip((pair, pair[::-1]), VOTES[what][number % 3], strict=True)
            judgments += [row | {"order": order, "choice": vote} for order, vote in votes]
    written = {
        "samples": [{"key": key, "instruction": f"Say it: {key}.", "level": level} for key, level in samples],
        "responses": answers,
        "judgments": judgments,
    }
    for what, rows in written.items():
        (tmp_path / f"{what}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    target = ("--benchmark", "table-5")
    assert manage("import_benchmark", "generic", tmp_path / "samples.jsonl", *target, "--anchor", ANCHOR)[0] == 0
    assert manage("import_responses", "generic", tmp_path / "responses.jsonl", *target)[0] == 0
    assert manage("import_judgments", "generic", tmp_path / "judgments.jsonl", *target)[0] == 0
    is_table_5(by_model(board("models", "--source", "J", benchmark="table-5")))


def test_table_5_of_mllm_bench_is_reproduced_in_every_cell_from_the_released_votes(shared_data, manage, media, board):
    target = ("--benchmark", "mllm-bench")
    for what in ("benchmark", "responses", "judgments"):
        assert manage(f"import_{what}", "mllm-bench", shared_data / "mllm-bench", *target)[0] == 0
    is_table_5(by_model(board("models", "--source", "gpt-4-turbo-2024-04-09", benchmark="mllm-bench")))


def test_the_llmfao_labels_rate_models_as_evalica_does(llmfao_folder, manage, media, board):
    folder, target = llmfao_folder, ("--benchmark", "llmfao")
    assert manage("import_benchmark", "llmfao", folder, *target, "--public")[0] == 0
    assert manage("import_responses", "llmfao", folder, *target)[0] == 0
    assert manage("import_labels", "llmfao", folder / "crowd-comparisons.csv", *target)[0] == 0
    with (folder / "crowd-comparisons.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    winners = {"left": evalica.Winner.X, "right": evalica.Winner.Y, "tie": evalica.Winner.Draw}
    xs, ys = [row["left"] for row in rows], [row["right"] for row in rows]
    given = [winners[row["winner"]] for row in rows]
    individuals = by_model(board("models", "--source", "individuals", "--elo", "online", benchmark="llmfao"))
    # A label is an outcome, an item is counted once.
    assert len(individuals) == len(set(xs) | set(ys)) == 59
    pairs = {frozenset((row["left"], row["right"], row["prompt"])) for row in rows}
    assert sum(row["n"] for row in individuals.values()) == 2 * len(pairs) == 2 * 2139
    sides = Counter(xs) + Counter(ys)
    for model, row in individuals.items():
        assert row["wins"] + row["ties"] + row["losses"] == sides[model]

    expected = evalica.elo(xs, ys, given, initial=1000, base=10, scale=400, k=4).scores
    for model, row in individuals.items():
        assert row["elo"] == pytest.approx(expected[model], abs=1e-6)

    fitted = evalica.bradley_terry(xs, ys, given, tolerance=1e-12, limit=100_000).scores
    strengths = np.log(fitted)
    strengths -= strengths.mean()
    for model, row in individuals.items():
        assert row["bt"] == pytest.approx(strengths[model], abs=1e-6)

    humans = board("models", benchmark="llmfao")
    assert sum(row["n"] for row in humans) == 2 * 2139
    assert all(row["rank_low"] <= row["rank"] <= row["rank_high"] for row in humans)


# ChEF (arXiv 2311.02692), Table 12: accuracy, precision, recall, F1 and yes, in %, for LLaVA and Kosmos-2 alike.
ALWAYS_YES = {
    "random": [51.55, 51.55, 100, 68.03, 100],
    "popular": [50, 50, 100, 66.67, 100],
    "adversarial": [50, 50, 100, 66.67, 100],
}


@pytest.mark.parametrize(("subset", "printed"), ALWAYS_YES.items(), ids=list(ALWAYS_YES))
def test_the_rows_of_llava_and_kosmos_in_table_12_of_chef_are_a_model_that_always_says_yes(
    shared_data, manage, media, board, tmp_path, subset, printed
):
    target = ("--benchmark", "pope")
    questions = shared_data / "pope" / f"coco_pope_{subset}.json"
    assert manage("import_benchmark", "auto", questions, *target, "--public")[0] == 0
    ids = [line for line in questions.read_text().splitlines() if line.strip("[]")]
    rows = [
        {"sample": f"{subset}-{number}", "model": model, "text": "Yes"}
        for number in range(1, len(ids) + 1)
        for model in ("LLaVA", "Kosmos-2")
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert manage("import_responses", "generic", tmp_path / "answers.jsonl", *target)[0] == 0
    found = by_model(board("models", "--kind", "yes-no", benchmark="pope"))
    assert set(found) == {"LLaVA", "Kosmos-2"}
    for row in found.values():
        values = [row[name] for name in ("accuracy", "precision", "recall", "f1", "yes_ratio")]
        assert [round(100 * value, 2) for value in values] == printed
        assert row["n"] == len(ids)
