"""Filters that format verdicts."""

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma

from bank.models import Item
from bank.models.verdict import is_of_categories
from judging.judgments.filters import STATUSES
from judging.models import Judgment, Trial
from judging.protocols.replies import NONE_OF_THEM
from judging.runs import plan

register = template.Library()
LETTERS = "ABCDEFGHIJ"


def _choice_in_words(choice: str, situation: int | None) -> str:
    return f"{choice.capitalize()}, situation {situation}" if situation else choice.capitalize()


def _ranking_in_words(groups: list[list[int]]) -> str:
    return " > ".join(" = ".join(LETTERS[place] for place in group) for group in groups)


@register.filter
def verdict_words(judgment: Judgment) -> str:
    """A verdict in words: of a pair First, Second or Tie, in canonical order; of a ranking its answers as A, B, ..."""
    if judgment.choice:
        return _choice_in_words(judgment.choice, judgment.situation)
    if judgment.parts is not None:
        return ", ".join(f"{key}: {points:g}" for key, points in judgment.parts.items())
    if judgment.score is not None:
        return f"{judgment.score:g}"
    if judgment.ranking is not None:
        return _ranking_in_words(judgment.ranking)
    if judgment.option is not None:
        return option_words(judgment.option, judgment.run.protocol)
    if judgment.answer is not None:
        return "Yes" if judgment.answer else "No"
    return judgment.reason or STATUSES.get(judgment.status, "")


def option_words(option: str, protocol: str) -> str:
    """The option that an answer means, or the category of a text or picture."""
    if is_of_categories(protocol):
        return option
    return "None of them" if option == NONE_OF_THEM else f"Option {option}"


@register.filter
def preferred(judgment: Judgment) -> str:
    """The model whose answer the verdict of a pair prefers; "" if there is none."""
    place = {"first": 0, "second": 1}.get(judgment.choice or "")
    responses = judgment.item.ordered_responses() if place is not None else []
    return responses[place].model.name if place is not None and place < len(responses) else ""


@register.filter
def headline(judgment: Judgment) -> str:
    """What was decided: "First is better", "7", "No verdict"."""
    if judgment.status != Judgment.Status.OK:
        return "No verdict"
    return f"{verdict_words(judgment)} is better" if preferred(judgment) else verdict_words(judgment)


@register.filter
def verdict_or_none(judgment: Judgment) -> str:
    return verdict_words(judgment) if judgment.status == Judgment.Status.OK else "no verdict"


@register.filter
def how_asked(judgment: Judgment) -> str:
    """The presented order, and where the run asks several times which repeat: "order turned, repeat 2"."""
    repeat = f"repeat {judgment.repeat + 1}" if judgment.run.repeats > 1 else ""
    return ", ".join(filter(None, [order_words(judgment), repeat]))


@register.filter
def order_words(judgment: Judgment) -> str:
    """The presented order: of a pair "first order" or "order turned", else "B then A then C"."""
    if judgment.item.kind == Item.Kind.PAIR:
        return "order turned" if judgment.order == "10" else "first order"
    return " then ".join(LETTERS[int(place)] for place in judgment.order) if len(judgment.order) > 1 else ""


def answer_name(item: Item, place: int) -> str:
    """The name of an answer of an item: First or Second of a pair, else A, B, ..."""
    return ("First", "Second")[place] if item.kind == Item.Kind.PAIR else LETTERS[place]


@register.filter
def why_none(judgment: Judgment) -> str:
    """Why a judgment has no verdict: our reason if there is one, otherwise its status."""
    has_own_reason = judgment.reason and not judgment.run.imported
    return judgment.reason if has_own_reason else judgment.get_status_display().lower()


@register.filter
def is_failure(judgment: Judgment | Trial) -> bool:
    """Whether a call brought no verdict; what nobody was asked about is none."""
    return judgment.status != "ok" and judgment.reason not in plan.NOT_ASKED.values()


@register.filter
def moved_from(trial: Trial, before: Trial | None) -> bool:
    """Whether the verdict under attack differs from the one before."""
    return before is not None and before.status == trial.status == "ok" and before.verdict != trial.verdict


@register.filter
def tokens(call: Judgment | Trial) -> str:
    """Prompt and reply together; a dash if the endpoint reported no count."""
    if call.prompt_tokens is None:
        return "–"
    return intcomma(call.prompt_tokens + (call.completion_tokens or 0))


@register.filter
def target_words(trial: Trial) -> str:
    """The model whose answer is under attack, with what the answer is called if there are several."""
    responses = trial.item.ordered_responses()
    if trial.target >= len(responses):
        return "–"
    name = responses[trial.target].model.name
    return f"{answer_name(trial.item, trial.target)}, {name}" if len(responses) > 1 else name


@register.filter
def value_for(table: dict[int, object], key: int) -> object:
    """The value for a key; None if there is none."""
    return table.get(key)


@register.filter
def across(value: float, widest: float) -> float:
    """The position of a difference in a drawing 120 wide with 0 in the middle."""
    return round(60 + 56 * max(-1.0, min(1.0, value / widest)), 1)
