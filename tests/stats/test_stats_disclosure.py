"""Whether published sums, added and subtracted, tell about few samples."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from stats.disclosure import reveals_few


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
