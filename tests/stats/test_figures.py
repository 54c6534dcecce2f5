"""How numbers are written."""

import pytest

from stats import figures
from stats.results import Estimate, Interval


@pytest.mark.parametrize(
    ("how", "value", "text"),
    [
        ("percent", 0.943, "94.3"),
        ("percent_sign", 0.943, "94.3%"),
        ("whole_percent_sign", 0.943, "94%"),
        ("two", -0.004, "0.00"),
        ("two", -0.04, "−0.04"),
        ("three", -0.04, "−0.040"),
        ("signed", 0.8, "+0.80"),
        ("signed_points", -0.125, "−12.5"),
        ("dollars", 1234.5, "$1,234.50"),
        ("dollars", 0.6, "$0.60"),
        ("dollars", 0.0641, "$0.064"),
        ("dollars", 0.000012, "$0.000012"),
        ("dollars", 0.0, "$0.00"),
    ],
)
def test_a_number_is_written_with_a_true_minus_sign_and_no_false_digits(how, value, text):
    write = getattr(figures, how)
    assert (write(value), write(None)) == (text, "–")


def test_an_estimate_tells_the_ends_of_its_interval_and_nothing_where_there_is_none():
    estimate = Estimate(0.5, 40, Interval(0.352, 0.648, 0.95, "wilson"), "share")
    assert (estimate.low, estimate.high) == (0.352, 0.648)
    assert figures.ends(estimate, figures.percent) == "35.2 to 64.8"
    assert figures.in_brackets(estimate, figures.whole_percent) == "[35, 65]"
    without = Estimate(0.5, 2, None, "share", "too few")
    assert (without.low, without.high, figures.ends(without, figures.percent)) == (None, None, "")
