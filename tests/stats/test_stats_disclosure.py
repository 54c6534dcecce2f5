"""Whether published sums, added and subtracted, tell about few samples."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.disclosure import (
    changed_samples,
    coded_and_left_out,
    differ_in_few,
    ends_of_coded,
    reveals_few,
    settles,
)


def cell(*samples, given="x"):
    return {str(sample): given for sample in samples}


def tells(*cells, least=10):
    return reveals_few(cells, least)


def test_one_number_is_about_ten_samples_or_more():
    assert tells(cell(*range(9)))
    assert not tells(cell(*range(10)))
    assert not tells({})


def test_two_numbers_differ_in_none_or_in_ten():
    whole = cell(*range(50))
    assert not tells(whole, whole)
    assert tells(whole, cell(*range(41)))
    assert not tells(whole, cell(*range(40)))
    assert tells(whole, whole | cell(*range(9), given="y"))
    assert not tells(whole, whole | cell(*range(10), given="y"))


def test_sums_of_parts_are_held_against_the_whole():
    parts = [cell(*range(20)), cell(*range(20, 40))]
    assert not tells(*parts, cell(*range(40)))
    assert tells(*parts, cell(*range(43)))
    assert not tells(*parts, cell(*range(50)))


def test_a_level_below_a_level_is_held_against_both():
    whole, level, leaf = cell(*range(60)), cell(*range(30)), cell(*range(15))
    assert not tells(whole, level, leaf)
    assert tells(whole, level, leaf, cell(*range(15, 27)))


def test_changes_of_ten_that_share_five_stay_about_ten():
    base = cell(*range(40))
    first = base | cell(*range(10), given="y")
    second = base | cell(*range(5), *range(10, 15), given="y")
    assert not tells(base, first, second)
    assert tells(base, first, second, base | cell(*range(5), given="y"))


@given(
    st.lists(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xy"), max_size=6), min_size=1, max_size=3),
    st.integers(1, 4),
)
@settings(max_examples=300, deadline=None)
def test_it_finds_what_trying_all_small_combinations_finds(cells, least):
    units = {unit for one in cells for unit in one.items()}

    def about(factors):
        sums = {unit: sum(f for f, one in zip(factors, cells, strict=True) if unit in one.items()) for unit in units}
        return {sample for (sample, _), value in sums.items() if value}

    found = any(0 < len(about(factors)) < least for factors in product(range(-2, 3), repeat=len(cells)))
    assert reveals_few(cells, least) == found


CELLS = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"), max_size=6), max_size=5)


@given(CELLS, CELLS, st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_two_models_differ_in_few_where_counting_sample_by_sample_says_so(a, b, least):
    expected = [[0 < changed_samples(one, other) < least for other in b] for one in a]
    assert differ_in_few(a, b, least).tolist() == (expected if b else [[] for _ in a])


@given(CELLS, st.integers(1, 5), st.sets(st.sampled_from("abcdef")))
@settings(max_examples=300, deadline=None)
def test_opposite_answers_to_questions_of_two_add_up_to_what_everybody_knows(cells, least, binary):
    def about(one, other):
        opposite = {s for s in one.keys() & other.keys() & binary if one[s] != other[s]}
        return len((one.keys() | other.keys()) - opposite) if opposite else 0

    expected = [
        [0 < changed_samples(one, other) < least or 0 < about(one, other) < least for other in cells] for one in cells
    ]
    assert differ_in_few(cells, cells, least, binary).tolist() == expected


def test_two_hundred_models_over_three_thousand_samples_are_compared_all_with_all():
    rng = np.random.default_rng(3)
    said = rng.integers(0, 4, (200, 3000)).astype(str)
    said[7] = said[3]
    said[7, :9] = "other"
    cells = [{str(n): letter for n, letter in enumerate(row)} for row in said]
    few = differ_in_few(cells, cells)
    assert sorted(zip(*np.nonzero(few), strict=True)) == [(3, 7), (7, 3)]


def test_a_share_with_one_miss_or_one_hit_at_most_settles_its_samples():
    assert [hits for hits in range(13) if settles(hits, 12)] == [0, 1, 11, 12]
    assert not settles(0, 0)
    assert ends_of_coded(hits=40, n=40, fixed=0, rows=40) == ends_of_coded(hits=39, n=40, fixed=0, rows=40) == (0.9, 1)
    assert ends_of_coded(hits=0, n=40, fixed=0, rows=40) == (0, 0.1)
    assert ends_of_coded(hits=20, n=20, fixed=5, rows=50) == (0.46, 0.5)  # 25 are wrong whatever their keys are


def test_a_level_that_is_all_right_cannot_be_had_from_the_whole_less_the_others():
    whole, level = cell(*range(50)), cell(*range(25))
    assert coded_and_left_out({"whole": whole, "level": level}, {"whole": 40, "level": 20}) == (set(), set())
    assert coded_and_left_out({"whole": whole, "level": level}, {"whole": 45, "level": 20}) == (set(), {"level"})
    rest = cell(*range(25, 50))
    told = coded_and_left_out({"whole": whole, "level": level, "rest": rest}, {"whole": 45, "level": 20, "rest": 25})
    assert told == ({"rest"}, {"level"})


@given(st.lists(st.booleans(), min_size=6, max_size=12), st.data())
@settings(max_examples=200, deadline=None)
def test_after_coding_no_sample_is_the_same_in_every_world_that_fits_the_numbers(right, data):
    """Tried by counting all worlds: for each sample there is one in which it is right, and one in which it is not."""
    n = len(right)
    parts = data.draw(st.lists(st.sets(st.integers(0, n - 1), min_size=5), min_size=1, max_size=3))
    cells = {str(name): cell(*part) for name, part in enumerate(parts)}
    hits = {name: sum(right[int(sample)] for sample in one) for name, one in cells.items()}
    coded, left_out = coded_and_left_out(cells, hits)

    def fits(world):
        for name in cells.keys() - left_out:
            found, size = sum(world[int(sample)] for sample in cells[name]), len(cells[name])
            if name in coded and not (settles(found, size) and (2 * found > size) == (2 * hits[name] > size)):
                return False
            if name not in coded and found != hits[name]:
                return False
        return True

    worlds = [world for world in product((False, True), repeat=n) if fits(world)]
    told = {sample for name in cells.keys() - left_out for sample in map(int, cells[name])}
    assert all({world[sample] for world in worlds} == {False, True} for sample in told)
