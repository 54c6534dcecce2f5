"""Durations in words."""

from datetime import timedelta

import pytest
from django.utils.translation import override

from bank.text.durations import lasting


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (0, "0 s"),
        (35.6, "36 s"),
        (150, "2 min 30 s"),
        (599.6, "10 min"),
        (1044, "17 min"),
        (3600, "1 h"),
        (timedelta(hours=1, minutes=15, seconds=40), "1 h 16 min"),
        (timedelta(days=50), "1,200 h"),
        (None, "–"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(span, words):
    assert lasting(span) == words


def test_a_duration_is_told_in_the_language_of_the_page():
    with override("zh-hans"):
        assert lasting(4560) == "1 小时 16 分钟"
