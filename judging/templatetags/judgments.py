"""How verdicts, money and times of runs are written."""

from datetime import timedelta

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma

from judging.models import Judgment, Trial
from judging.runs import queries
from stats.results import Estimate

register = template.Library()


@register.filter
def verdict_words(judgment: Judgment) -> str:
    return queries.verdict_words(judgment)


@register.filter
def why_none(judgment: Judgment) -> str:
    """Why a judgment has no verdict: the reason, where there is one of ours, or its status."""
    own = judgment.reason and not judgment.run.imported
    return judgment.reason if own else judgment.get_status_display().lower()


@register.filter
def moved_from(trial: Trial, before: Trial | None) -> bool:
    """Whether the verdict under attack is another than before."""
    return before is not None and before.status == trial.status == "ok" and before.verdict != trial.verdict


@register.filter
def preferred(judgment: Judgment) -> str:
    """The model whose answer was judged better; "" where none was."""
    return queries.preferred(judgment)


@register.filter
def order_words(judgment: Judgment) -> str:
    return queries.order_words(judgment)


@register.filter
def tokens(call: Judgment | Trial) -> str:
    """Of the prompt and of the reply together; a dash where the endpoint counted none."""
    if call.prompt_tokens is None:
        return "–"
    return intcomma(call.prompt_tokens + (call.completion_tokens or 0))


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


@register.filter
def target_words(trial: Trial) -> str:
    """The model whose answer is under attack, with the answer's letter where there are several."""
    responses = trial.item.ordered_responses()
    if trial.target >= len(responses):
        return "–"
    name = responses[trial.target].model.name
    return f"{'ABCDEFGHIJ'[trial.target]}, {name}" if len(responses) > 1 else name


@register.filter
def of(table: dict[int, object], key: int) -> object:
    """What a table holds under a key; None where nothing is."""
    return table.get(key)


def _worth(value: float, share: bool) -> str:
    return f"{100 * value:.0f}%" if share else f"{value:.2f}"


def _gain(value: float, share: bool) -> str:
    shown = f"{100 * value:+.0f}" if share else f"{value:+.2f}"
    return shown.replace("-", "−")


@register.filter
def worth(found: Estimate, share: bool) -> str:
    """A share in percent, or a score; a dash where nothing was counted."""
    return "–" if found.value is None else _worth(found.value, share)


@register.filter
def ends(found: Estimate, share: bool) -> str:
    """The interval of such a number."""
    interval = found.interval
    return f"{_worth(interval.low, share)} to {_worth(interval.high, share)}" if interval else ""


@register.filter
def gain(found: Estimate, share: bool) -> str:
    """A difference with its sign: of shares in points, of scores as they are."""
    return "–" if found.value is None else _gain(found.value, share)


@register.filter
def gain_ends(found: Estimate, share: bool) -> str:
    """The interval of a difference, or why there is none."""
    interval = found.interval
    if interval:
        return f"{_gain(interval.low, share)} to {_gain(interval.high, share)}"
    return "" if found.value is None else found.reason.partition(":")[0]


@register.filter
def across(value: float, widest: float) -> float:
    """Where a difference stands in a drawing that is 120 wide, 0 in its middle."""
    return round(60 + 56 * max(-1.0, min(1.0, value / widest)), 1)
