"""Numbers as query strings and forms hold them."""

import pytest

from bank.forms.fields import whole_number


@pytest.mark.parametrize(
    "text", ["", None, " 1", "-1", "+1", "1.0", "1e3", "٣", "²", "x", "1\x00", "9" * 19, "9" * 5_000]
)
def test_what_is_no_whole_number(text):
    assert whole_number(text) is None


def test_whole_numbers_to_their_limit():
    assert [whole_number(text) for text in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]
    assert [whole_number(text, below=10) for text in ("9", "10")] == [9, None]
