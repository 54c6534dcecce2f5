"""How verdicts, money and times of runs are written."""

from datetime import timedelta

from django import template

from judging import queries
from judging.models import Judgment

register = template.Library()


@register.filter
def verdict_words(judgment: Judgment) -> str:
    return queries.verdict_words(judgment)


@register.filter
def preferred(judgment: Judgment) -> str:
    """The model whose answer was judged better; "" where none was."""
    return queries.preferred(judgment)


@register.filter
def order_words(judgment: Judgment) -> str:
    return queries.order_words(judgment)


@register.filter
def dollars(amount: float | None) -> str:
    """US dollars: cents, and three digits below a cent."""
    if amount is None:
        return "–"
    return f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.3g}"


@register.filter
def lasting(span: timedelta | None) -> str:
    """A span of time in its two largest units: "2 min 14 s"."""
    if span is None:
        return "–"
    seconds = round(span.total_seconds())
    for large, name, small, under in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= large:
            rest = seconds % large // small
            return f"{seconds // large} {name}" + (f" {rest} {under}" if rest else "")
    return f"{seconds} s"


@register.filter
def part_of(value: float | None, whole: float | None) -> float:
    """A share of a meter that is 368 wide."""
    return round(368 * min(1.0, (value or 0) / whole), 1) if whole else 0.0


@register.filter
def plain_number(value: float | None) -> str:
    """A number as one types it, "" where there is none."""
    return "" if value is None else f"{value:g}"
