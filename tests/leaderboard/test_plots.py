"""Plots: each a file that stands by itself, drawn of the same numbers as its table."""

import re
from itertools import pairwise

import pytest
from django.core.cache import cache

from annotations.models import Label
from bank.models import Benchmark
from leaderboard.models import Snapshot
from leaderboard.rows import Number
from leaderboard.show import plots
from leaderboard.show.fonts import width_on_page
from leaderboard.show.marks import Axis
from tests.leaderboard.conftest import by_model
from tests.markup import flat

pytestmark = pytest.mark.django_db
BASE = "/leaderboards/grove"


def svg(client, what, **query):
    answer = client.get(f"{BASE}/plots/{what}.svg", query)
    assert answer.status_code == 200, what
    text = flat(answer)
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert f'filename="grove-{what}.svg"' in answer.headers["Content-Disposition"]
    assert re.match(r'<svg xmlns="[^"]+" class="[^"]+" width="\d+" height="\d+" viewBox="0 0 \d+ \d+"', text), text[
        :200
    ]
    assert "style" not in text
    return text


def test_every_plot_is_a_file_that_stands_by_itself(voted, client, client_of):
    client_of("researcher").post(f"{BASE}/models/freeze/?source=keen")
    held = {
        "forest": "Alder", "matrix": "Birch", "judges": "dull", "agreement": "keen",
        "correlation": "people", "history": "Alder",
    }  # fmt: skip
    for what, name in held.items():
        assert name in svg(client, what, source="keen"), what
    assert "keen" in svg(client, "bias", metric="position")
    for what, query in (("forest", "?source=nobody"), ("nothing", ""), ("bias", "?metric=self")):
        assert client.get(f"{BASE}/plots/{what}.svg{query}").status_code == 404, what


def test_a_benchmark_without_a_verdict_says_so_and_draws_nothing(grove, client):
    answer = client.get(f"{BASE}/models/matrix/")
    assert answer.status_code == 200
    assert b"No verdicts yet" in answer.content
    for what in ("forest", "matrix", "judges", "agreement", "bias", "correlation", "history"):
        assert client.get(f"{BASE}/plots/{what}.svg").status_code == 404, what


def test_any_block_of_models_is_set_against_any_other(voted, client, monkeypatch):
    Benchmark.objects.update(anchor=None)
    told = r"(\w+) against (\w+): (\d+) won, (\d+) tied, (\d+) lost"
    everything = re.findall(told, flat(client.get(f"{BASE}/models/matrix/?source=keen")))
    monkeypatch.setattr("leaderboard.boards.models.matrix.MOST", 2)
    monkeypatch.setattr("leaderboard.boards.models.matrix_page.MOST", 2)
    Benchmark.objects.update(title="Grove")  # what was made before is not kept
    cache.clear()
    found = []
    for rows in (1, 2):
        for columns in (1, 2):
            html = flat(client.get(f"{BASE}/models/matrix/?source=keen&rows={rows}&columns={columns}"))
            assert "2 of 4 models by rank" in html
            found += re.findall(told, html)
    assert sorted(found) == sorted(everything)
    for odd in ("0", "9", "x", "-1"):
        assert client.get(f"{BASE}/models/matrix/?source=keen&rows={odd}").status_code == 200


def test_the_matrix_counts_each_pair_in_both_directions_and_opens_its_items(voted, board, client):
    Benchmark.objects.update(anchor=None)
    html = flat(client.get(f"{BASE}/models/matrix/", {"source": "keen"}))
    won, tied, lost, n = map(
        int, re.search(r"Alder against Cedar: (\d+) won, (\d+) tied, (\d+) lost of (\d+) items", html).groups()
    )
    assert f"Cedar against Alder: {lost} won, {tied} tied, {won} lost of {n} items" in html
    row = by_model(board("models", "--source", "keen", "--anchor", "Cedar"))["Alder"]
    assert (row["wins"], row["ties"], row["losses"], row["n"]) == (won, tied, lost, n)
    cell = re.search(r'title="Alder against Cedar[^>]*><a href="([^"]+)"', html).group(1).replace("&amp;", "&")
    said = flat(client.get(cell))
    assert f"{n} items: won {won}, tied {tied}, lost {lost}" in said


def test_a_board_draws_ratings_in_a_column_with_length_held_equal_as_open_dots(voted, client):
    html = flat(client.get(f"{BASE}/models/", {"source": "keen"}))
    assert "length held equal" in html
    for model in ("Alder", "Birch", "Cedar"):
        (row,) = re.findall(rf'<tr data-key="{model}"(?:(?!</tr>).)*</tr>', html)
        assert re.search(r'<svg class="iv" width="300".*class="open".*class="rng".*class="pt"', row)
        rows, page = (
            re.search(pattern, row).group(1) for pattern in (r'href="([^"]*/votes/[^"]*)"', r'href="(/models/\d+/)"')
        )
        assert f"model={model}" in rows
        assert client.get(page).status_code == 200
    assert "<a" not in svg(client, "forest", source="keen"), "a file has nothing to click on"


def test_the_history_of_a_row_is_drawn_over_its_snapshots(voted, client, client_of):
    for label in Label.objects.order_by("pk")[:3]:
        client_of("researcher").post(f"{BASE}/models/freeze/")
        Label.objects.filter(pk=label.pk).update(excluded=True)
    assert Snapshot.objects.count() == 3
    newest = Snapshot.objects.first()
    assert svg(client, "history", of=newest.code, entry="Birch").count("<circle") == 3
    html = flat(client.get(f"{BASE}/snapshots/", {"of": newest.code, "entry": "Birch"}))
    assert 'class="forest overtime"' in html
    assert client.get(f"{BASE}/plots/history.svg", {"entry": "Nobody"}).status_code == 404


def test_a_plot_of_a_bias_that_there_is_not_is_no_page(voted, client):
    for metric in ("", "?metric=", "?metric=nothing"):
        assert client.get(f"/leaderboards/grove/plots/bias.svg{metric}").status_code == 404


def test_words_of_changes_in_a_history_lie_beside_each_other_or_in_rows_and_inside_the_plot():
    words = "data changed: 90 items, 300 labels"
    steps = [plots.Step(n, Number(0.5, 0.4, 0.6), changed=words if n else "") for n in range(6)]
    drawn = plots.lines(
        *("overtime", steps), title="t", x=Axis(0, 5, ()), y=Axis(0, 1, (0.5,)), ticks=[], write=str, size=(560, 150)
    )
    placed = re.findall(r'<text class="tk" x="([\d.]+)" y="([\d.]+)"[^>]*text-anchor="(start|end)">data', drawn)
    assert len(placed) >= 3
    spans = {}
    for x, y, anchor in placed:
        wide = width_on_page(words, 11)
        low = float(x) if anchor == "start" else float(x) - wide
        assert 48 <= low <= low + wide <= 560
        spans.setdefault(y, []).append((low, low + wide))
    for row in spans.values():
        row.sort()
        assert all(before[1] < after[0] for before, after in pairwise(row))
