"""Numbers in words and figures: a true minus sign, no false digits, an en dash for a missing number."""

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Protocol

NONE = "–"
MINUS = "−"


class WithEnds(Protocol):
    """A number with the ends of its interval, None where unknown, and why."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def reason(self) -> str: ...


Write = Callable[[float | None], str]


def _written(text: str) -> str:
    return MINUS + text[1:] if text.startswith("-") else text


def percent(share: float | None) -> str:
    """``94.3`` of 0.943; ``−2.5``."""
    return NONE if share is None else _written(f"{round(100 * share, 1) + 0.0:.1f}")


def percent_sign(share: float | None) -> str:
    """``94.3%`` of 0.943."""
    return NONE if share is None else f"{percent(share)}%"


def two(value: float | None) -> str:
    """``0.71``; ``−0.04``. Never ``−0.00``."""
    return NONE if value is None else _written(f"{round(value, 2) + 0.0:.2f}")


def three(value: float | None) -> str:
    """``0.714``; ``−0.040``."""
    return NONE if value is None else _written(f"{round(value, 3) + 0.0:.3f}")


def tick(value: float) -> str:
    """A figure of an axis: ``.4``, ``.25``, ``1``, ``−.5``."""
    text = two(value).rstrip("0").rstrip(".") or "0"
    return text.replace("0.", ".", 1) if text.lstrip(MINUS).startswith("0.") else text


def signed(value: float | None) -> str:
    """``+0.80``, ``−0.38``, ``0``."""
    if value is None:
        return NONE
    text = f"{round(value, 2) + 0.0:+.2f}"
    return "0" if float(text) == 0 else _written(text)


def signed_points(share: float | None) -> str:
    """``−12.5`` of −0.125: points of percent."""
    if share is None:
        return NONE
    text = f"{100 * share:+.1f}"
    return "0.0" if float(text) == 0 else _written(text)


def tenth(value: float | None) -> str:
    """``83.1``: a number that is a percentage already."""
    return NONE if value is None else f"{value:.1f}"


def whole(value: float | None) -> str:
    """``1,134``."""
    return NONE if value is None else _written(f"{value:,.0f}")


def whole_percent(share: float | None) -> str:
    """``94`` of 0.943."""
    return NONE if share is None else whole(100 * share)


def whole_percent_sign(share: float | None) -> str:
    """``94%`` of 0.943."""
    return NONE if share is None else f"{whole_percent(share)}%"


def short(value: float) -> str:
    """``0.5``, ``−2``: a figure of an axis, with as many digits as it has."""
    return _written(f"{value:g}")


def count(value: float | None) -> str:
    """A count, which is fractional when repeats are averaged: ``67``, ``66.7``."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def p_value(p: float | None) -> str:
    """``0.014``, ``<0.001``, ``–``."""
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.2g}" if p < 0.1 else f"{p:.2f}"


def span(low: int | None, high: int | None) -> str:
    """``2–5``, or ``2`` where both ends are the same."""
    if low is None or high is None:
        return ""
    return str(low) if low == high else f"{low}–{high}"


def without_zeros(number: str) -> str:
    """``40`` of ``40.0``, for the ticks of an axis."""
    return number.rstrip("0").rstrip(".") if "." in number else number


def rank_range(shown: int | None, low: int | None, high: int | None) -> str:
    """The range of ranks, which holds the rank that is shown: models that share one because no test tells them apart
    may have ranges of their own that do not. Without a range the rank.
    """
    if shown is None:
        return span(low, high)
    return span(low if low is None else min(low, shown), high) or str(shown)


def value_or_interval(number: WithEnds, write: Write) -> str:
    """The number; ``90.0 to 100.0`` where an edition gives an interval without a value."""
    if number.value is None and number.low is not None:
        return ends(number, write)
    return write(number.value)


def ends(number: WithEnds, write: Write) -> str:
    """``0.917 to 0.962``; empty where there is no interval."""
    return "" if number.low is None else f"{write(number.low)} to {write(number.high)}"


def interval(number: WithEnds, write: Write) -> str:
    """``95%: 0.917 to 0.962``, or why there is none."""
    if number.low is None or number.value is None:
        return number.reason
    return f"95%: {ends(number, write)}"


def in_brackets(number: WithEnds, write: Write) -> str:
    """``[0.917, 0.962]``; empty where there is no interval."""
    return "" if number.low is None else f"[{write(number.low)}, {write(number.high)}]"


def with_interval(number: WithEnds, write: Write, unit: str = "") -> str:
    """``94.0% [91.7, 96.2]``."""
    return f"{write(number.value)}{unit} {in_brackets(number, write)}".strip()


def without_interval(numbers: Iterable[WithEnds]) -> list[str]:
    """Why some of these numbers have no interval: a sentence for each reason, with how many it is true of."""
    reasons = Counter(number.reason for number in numbers if number.low is None and number.reason)
    return [f"{number_of(n, 'number')}: {reason}" for reason, n in reasons.most_common()]


def number_of(n: float, noun: str, plural: str = "") -> str:
    """``1 item``, ``2,139 items``."""
    return f"{count(n)} {noun if n == 1 else plural or noun + 's'}"


def dollars(price: float | None) -> str:
    """``$13.20``, ``$0.60``, ``$0.064``, ``$0.000012``: with two digits below a dollar."""
    if price is None:
        return NONE
    return f"${price:,.2f}" if price >= 1 or not price else f"${Decimal(f'{price:.1e}'):f}"


SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def in_words(n: int) -> str:
    """``three``; figures from 13 on."""
    return SMALL[n] if n < len(SMALL) else f"{n:,}"


def listed(parts: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
