"""Names in plots: on no dot, no other name and no dashed line, and inside the picture."""

import random
import re
import string
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.rows import Number
from leaderboard.show import drawing, fonts, labels, plots
from leaderboard.show.labels import ASCENT, DESCENT, crosses
from leaderboard.show.plots import Plot, Point

SIZES = [(768, 420), (310, 300), (612, 230)]
LETTERS = string.ascii_letters + string.digits + " -/._()·–αβγЖщ"


def points(seed, n, longest):
    rng = random.Random(seed)
    many = []
    for at in range(n):
        value, half = rng.uniform(0.3, 0.9), rng.uniform(0.0, 0.1)
        name = "".join(rng.choice(LETTERS) for _ in range(rng.randint(1, longest))).strip() or "x"
        many.append(Point(f"{name}{at}", 10 ** rng.uniform(-2, 2), Number(value, value - half, value + half), ""))
    return many


def plot_of(seed, n, longest, **more):
    return Plot(
        title="What agreement costs",
        under="Judges",
        across="price",
        points=points(seed, n, longest),
        write=lambda value: f"{100 * value:.3g}",
        unit=0.01,
        **more,
    )


TEXT = re.compile(
    r'<text class="(\w+)" x="([\d.-]+)" y="([\d.-]+)" font-size="[\d.]+" fill="[^"]+" '
    r'text-anchor="(\w+)"[^>]*>([^<]*)<'
)


def boxes_of(drawn, size, measure):
    """Of all words: their box, as wide as the font makes them."""
    found = []
    for css, x, y, anchor, words in TEXT.findall(drawn):
        wide = measure(words.replace("&#x27;", "'").replace("&amp;", "&"), size, bold=css == "people")
        left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        found.append((left, float(y) - ASCENT * size, left + wide, float(y) + DESCENT * size))
    return found


def dots_of(drawn):
    return [tuple(map(float, spot)) for spot in re.findall(r'<circle [^>]*cx="([\d.-]+)" cy="([\d.-]+)"', drawn)]


def dashed_of(drawn):
    for path in re.findall(r'd="M([^"]+)"[^>]*stroke-dasharray', drawn):
        spots = [tuple(map(float, spot.split())) for spot in path.split("L")]
        yield from pairwise(spots)


def check(drawn, width, height, measure):
    boxes = boxes_of(drawn, plots.NAME, measure)
    for at, box in enumerate(boxes):
        assert box[0] >= -0.5, box
        assert box[1] >= -0.5, box
        assert box[2] <= width + 0.5, (box, width)
        assert box[3] <= height + 0.5, (box, height)
        for other in boxes[at + 1 :]:
            assert not labels._overlap(box, other), (box, other)
        for spot in dots_of(drawn):
            assert labels._away(box, spot) > plots.RADIUS, (box, spot)
        for line in dashed_of(drawn):
            assert not crosses(line, box), (box, line)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    longest=st.sampled_from([6, 20, 70]),
    size=st.sampled_from(SIZES),
    person=st.booleans(),
    floor=st.booleans(),
)
def test_no_name_lies_on_a_dot_a_name_or_a_dashed_line_and_all_are_inside(seed, n, longest, size, person, floor):
    plot = plot_of(
        *(seed, n, longest),
        person=Number(0.7, 0.6, 0.8) if person else None,
        floor=("always the longer answer 54.0", 0.54) if floor else None,
    )
    check(plots.points(plot, width=size[0], height=size[1]), *size, fonts.width_on_page)
    width, height = 612, 230
    check("".join(plot.body(width, height)), width, height, fonts.width_of)


@pytest.mark.parametrize("seed", range(20))
def test_a_name_away_from_its_dot_has_a_line_to_it_and_of_names_near_by_its_own_dot_is_the_nearest(seed):
    plot = plot_of(seed, 12, 12)
    drawn = plots.points(plot)
    spots = dots_of(drawn)
    leaders = [re.findall(r"[\d.-]+", path) for path in re.findall(r'<path class="ref" d="([^"]+)"', drawn)]
    ends = [(float(x), float(y)) for _, _, x, y in leaders]
    named = {point.name: spot for point, spot in zip(plot.points, spots, strict=True)}
    shown = re.findall(r'<text class="(?:lab|tk)"[^>]*>([^<]+)<', drawn)
    boxes = boxes_of(drawn, plots.NAME, fonts.width_on_page)
    all_words = re.findall(r"<text [^>]*>([^<]*)<", drawn)
    told = 0
    for words, box in zip(all_words, boxes, strict=True):
        if words in named and words in shown:
            told += 1
            if not any(labels._away(box, end) < 3 for end in ends):
                near = labels._away(box, named[words])
                assert near < 16
                assert near <= min(labels._away(box, spot) for spot in spots) + 0.2
    assert told >= 4


def test_a_name_is_cut_only_where_it_stays_unlike_the_others():
    alike = ("org/a-name-that-is-quite-long-1", "org/a-name-that-is-quite-long-2")
    cut = {"organisation/another-name": "another-name", "one-that-is-long-without-a-stroke": "one-that-is-long-withou…"}
    assert plots._shortened((*alike, *cut, "short")) == cut


def test_few_points_apart_all_have_their_names():
    apart = [Point(f"judge {n}", 10.0**n, Number(0.4 + 0.1 * n, 0.35 + 0.1 * n, 0.45 + 0.1 * n), "") for n in range(4)]
    plot = Plot(title="t", under="u", across="price", points=apart, write=str)
    drawn = plots.points(plot)
    for point in apart:
        assert f">{point.name}</text>" in drawn


def test_a_long_name_takes_as_many_lines_as_it_needs_and_loses_no_letter():
    assert drawing.in_lines("short", 200, 12) == ["short"]
    assert drawing.in_lines("qwen/qwen-2-vl-72b-instruct", 160, 12) == ["qwen/qwen-2-vl-72b-", "instruct"]
    for name in ("x" * 45, "W" * 30, "文心一言" * 9, "an organisation/a-model name_of many parts"):
        lines = drawing.in_lines(name, 100, 12)
        assert "".join(lines).replace(" ", "") == name.replace(" ", "")
        assert all(fonts.width_on_page(line, 12) <= 100 for line in lines)
    assert drawing.in_lines("W", 1, 12) == ["W"], "a letter wider than the line still stands"
