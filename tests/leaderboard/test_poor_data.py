"""Data that say little: each page opens and says what is missing in words; no NaN, no 0 for what is not known."""

import json
import re

import pytest

pytestmark = pytest.mark.django_db
PAGES = ("models/", "models/matrix/", "models/together/", "judges/", "agreement/", "bias/")
MORE = ("correlation/", "models/compare/?a=Alder&b=Birch", "votes/?model=Alder")
WORDLESS = re.compile(r">\s*(NaN|nan|inf|-inf|None|undefined)\s*<")


def label(n, choice, *, who="Ada", pair=("Alder", "Birch")):
    row = {"kind": "pair", "protocol": "pair", "sample": f"s{n:02}", "annotator": who}
    return row | {"responses": list(pair), "choice": choice}


def score(n, value, *, who="Ada", model="Alder"):
    row = {"kind": "score", "protocol": "score", "sample": f"s{n:02}", "annotator": who}
    return row | {"responses": [model], "score": value}


def judgment(n, choice, *, pair=("Alder", "Birch"), judge="marker"):
    row = {"kind": "pair", "protocol": "pair", "sample": f"s{n:02}", "judge": judge, "order": list(pair)}
    return row | {"responses": list(pair), "choice": choice}


CASES = {
    "nothing": ([], []),
    "one label": ([label(0, "first")], []),
    "one annotator": ([label(n, "first" if n % 3 else "tie") for n in range(30)], []),
    "two groups that never met": (
        [
            label(n, "first" if n % 2 else "second", who=who, pair=pair)
            for n in range(20)
            for who in ("Ada", "Ben")
            for pair in (("Alder", "Birch"), ("Cedar", "Dogwood"))
        ],
        [],
    ),
    "one that always wins": ([label(n, "first", who=who) for n in range(30) for who in ("Ada", "Ben")], []),
    "all ties": ([label(n, "tie", who=who) for n in range(30) for who in ("Ada", "Ben")], []),
    "all undecided": (
        [label(n, "undecided", who=who) | {"situation": 1} for n in range(12) for who in ("Ada", "Ben")],
        [],
    ),
    "constant scores": (
        [
            score(n, 3, who=who, model=model)
            for n in range(30)
            for who in ("Ada", "Ben")
            for model in ("Alder", "Birch")
        ],
        [],
    ),
    "a judge without overlap": (
        [label(n, "first", who=who) for n in range(15) for who in ("Ada", "Ben")],
        [judgment(n, "second" if n % 2 else "first") for n in range(15, 36)],
    ),
    "a judge alone": ([], [judgment(n, "second" if n % 2 else "first") for n in range(36)]),
}

SAID = {
    "nothing": ("models/", "No verdicts yet"),
    "one label": ("models/", "Won every comparison: no finite rating (Alder)"),
    "one annotator": ("judges/", "No judge has judged these pairs yet"),
    "two groups that never met": ("models/", "Not connected to the other models (Alder, Birch)"),
    "one that always wins": ("models/", "Lost every comparison: no finite rating (Birch)"),
    "a judge alone": ("judges/", "Nobody has labelled these pairs yet"),
}


@pytest.mark.parametrize("case", list(CASES))
def test_poor_data_are_told_in_words_on_every_page(case, brought, client):
    labels, judgments = CASES[case]
    for what, rows in (("labels", labels), ("judgments", judgments)):
        if rows:
            brought(what, rows)
    sources = ["", "source=marker"] if judgments else [""]
    for page in (*PAGES, *MORE):
        for source in sources:
            mark = "&" if "?" in page else "?"
            answer = client.get(f"/leaderboards/grove/{page}{mark}{source}")
            html = answer.content.decode()
            in_words = "nothing to compare" in html or (source and "There is no judge" in html)
            assert answer.status_code == 200 or (answer.status_code == 400 and in_words), (page, source)
            assert not WORDLESS.search(html), (page, source)
    if case in SAID:
        page, words = SAID[case]
        assert words in client.get(f"/leaderboards/grove/{page}").content.decode()
    for what in ("models", "judges", "agreement", "bias"):
        rows = client.get(f"/api/v1/leaderboards/{what}/?benchmark=grove").json()
        json.dumps(rows, allow_nan=False)


def test_constant_scores_show_their_rows_and_no_correlation(brought, client):
    brought("labels", CASES["constant scores"][0])
    for page in ("models/?kind=score", "judges/?kind=score", "bias/?kind=score", "answers/?kind=score&model=Alder"):
        answer = client.get(f"/leaderboards/grove/{page}")
        assert answer.status_code == 200, page
        assert not WORDLESS.search(answer.content.decode()), page


def test_a_model_of_which_only_errors_are_known_has_no_row_and_no_place(brought, board, client):
    failed = {"status": "error", "reason": "no answer"}
    rows = [score(0, 2), score(0, None, model="Birch") | failed]
    brought("judgments", [{name: row[name] for name in row if name != "annotator"} | {"judge": "j1"} for row in rows])
    found = board("models", "--kind", "score")
    assert [(row["model"], row["rank"], row["n"]) for row in found] == [("Alder", 1, 1)]
    assert client.get("/api/v1/leaderboards/models/?benchmark=grove&kind=score").json() == found
    page = client.get("/leaderboards/grove/models/?kind=score").text
    assert (">Alder<" in page, ">Birch<" in page) == (True, False)


def test_a_judgment_without_a_preference_is_a_failure_and_no_part_of_any_number(brought, board, client):
    failed = {"status": "parse_failed", "reason": "null preference"}
    rows = [judgment(0, "first"), judgment(1, "first"), judgment(2, None) | failed]
    brought("judgments", rows)
    found = board("models", "--source", "marker")
    assert [(row["model"], row["win_rate"], row["n"], row["failures"]) for row in found] == [
        ("Alder", 1, 2, 1),
        ("Birch", 0, 2, 1),
    ]
    assert not WORDLESS.search(client.get("/leaderboards/grove/models/?source=marker").text)


def test_what_cannot_be_known_is_null(brought, client):
    brought("labels", CASES["one that always wins"][0])
    found = {row["model"]: row for row in client.get("/api/v1/leaderboards/models/?benchmark=grove").json()}
    assert (found["Alder"]["win_rate"], found["Birch"]["win_rate"]) == (1, 0)
    assert found["Alder"]["bt"] is None  # of one that always wins no strength can be told
    assert {"Cedar", "Dogwood"}.isdisjoint(found)
