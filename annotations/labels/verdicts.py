"""Verdicts of any kind made comparable: as a key, as a number, and with a right verdict.

All in canonical order. A verdict is a mapping of the columns in ``bank.models.verdict``; empty ones may be missing.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from django.utils.translation import gettext as _

from bank.models.verdict import ANALYSES, Choice, is_of_categories

# Two verdicts are the same if they agree in the first of these columns that is set.
VERDICT_COLUMNS = ("choice", "ranking", "parts", "score", "option", "answer", "agree", "hallucination", "grade")

# The verdicts on a pair as numbers, for ordinal measures: first is better, neither, second is better.
CHOICE_SCALE = {Choice.FIRST: 0.0, Choice.TIE: 1.0, Choice.UNDECIDED: 1.0, Choice.SECOND: 2.0}

Columns = Mapping[str, Any]


def main_column(verdict: Columns) -> str | None:
    """The column that holds the decision; None if there is no decision."""
    return next((name for name in VERDICT_COLUMNS if verdict.get(name) is not None), None)


def verdict_key(verdict: Columns) -> str | None:
    """The decision as a string, equal for equal verdicts. Ignores a pair's situation."""
    name = main_column(verdict)
    if name is None:
        return None
    value = verdict[name]
    if name == "choice":
        return str(value)
    if name == "ranking":
        return ">".join("=".join(map(str, sorted(group))) for group in value)
    if name == "parts":
        return json.dumps({key: float(points) for key, points in value.items()}, sort_keys=True)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def decisions(verdict: Columns) -> tuple[str, ...]:
    """Decisions of a verdict, one by one, equal where two verdicts on an item say the same: of a ranking the order of
    each two answers, of points for components those of each, else the verdict as a whole.
    """
    match main_column(verdict):
        case None:
            return ()
        case "ranking":
            place = {answer: rank for rank, group in enumerate(verdict["ranking"]) for answer in group}
            both = combinations(sorted(place), 2)
            return tuple("<=>"[(place[one] > place[other]) - (place[one] < place[other]) + 1] for one, other in both)
        case "parts":
            return tuple(f"{points:g}" for _key, points in sorted(verdict["parts"].items()))
    return (verdict_key(verdict) or "",)


def verdict_number(verdict: Columns) -> float | None:
    """The verdict's position on a scale; None for kinds without one (option, ranking)."""
    name = main_column(verdict)
    if name is None or name in ("option", "ranking"):
        return None
    value = verdict[name]
    if name == "choice":
        return CHOICE_SCALE[Choice(value)]
    if name == "parts":  # whose score is their weighted share
        return float(sum(value.values()) if verdict.get("score") is None else verdict["score"])
    return float(value)


def is_right(verdict: Columns, gold: Columns) -> bool:
    """Whether a verdict is right. Numbers may differ by up to ``gold["within"]``, if given."""
    name = main_column(gold)
    if name is None or verdict.get(name) is None:
        return False
    if name == "score" or (name == "parts" and gold.get("within")):
        number, expected = verdict_number({name: verdict[name]}), verdict_number({name: gold[name]})
        return abs((number or 0) - (expected or 0)) <= float(gold.get("within") or 0) + 1e-9
    same = verdict_key({name: verdict[name]}) == verdict_key({name: gold[name]})
    return same and gold.get("situation") in (None, verdict.get("situation"))


def majority_word(keys: Iterable[str]) -> str | None:
    """The key that more than half gave; None without a majority."""
    counts = Counter(keys)
    if not counts:
        return None
    key, count = counts.most_common(1)[0]
    return key if 2 * count > sum(counts.values()) else None


def disagreement(keys: Iterable[str]) -> float | None:
    """The share of pairs of verdicts that differ, 0 to 1; None for fewer than two verdicts."""
    counts = Counter(keys)
    n = sum(counts.values())
    if n < 2:
        return None
    same = sum(count * (count - 1) for count in counts.values())
    return 1 - same / (n * (n - 1))


def describe(verdict: Columns, protocol: str, *, letters: Sequence[str] = ()) -> str:
    """A verdict of this protocol in words, in the reader's language; "" without a decision.

    ``letters`` name the answers, or the analyses that are compared, in canonical order: by default A, B and so on.
    """
    name = main_column(verdict)
    if name is None:
        return ""
    value = verdict[name]
    letters = letters or _default_letters(protocol)
    match name:
        case "choice":
            return _choice_in_words(verdict, letters)
        case "ranking":
            return _ranking_in_words(value, letters)
        case "parts":
            return _points_in_words(verdict)
        case "option":
            return _option_in_words(value, protocol)
        case "agree" | "answer" | "hallucination":
            return _yes_or_no(name)[0 if value else 1]
    return f"{value:g}"


def _default_letters(protocol: str) -> Sequence[str]:
    return [_analysis("A"), _analysis("B")] if protocol == ANALYSES else "ABCDEFGHIJ"


def _choice_in_words(verdict: Columns, letters: Sequence[str]) -> str:
    choice = verdict["choice"]
    if verdict.get("preference") in (0, 1):
        return _("{answer} is much better").format(answer=letters[int(choice == Choice.SECOND)])
    return {
        Choice.FIRST: _("{answer} is better").format(answer=letters[0]),
        Choice.SECOND: _("{answer} is better").format(answer=letters[1]),
        Choice.TIE: _("Tie"),
    }.get(choice) or _unable(verdict.get("situation"))


def _ranking_in_words(groups: Iterable[Iterable[int]], letters: Sequence[str]) -> str:
    return " > ".join(" = ".join(letters[position] for position in sorted(group)) for group in groups)


def _option_in_words(option: Any, protocol: str) -> str:
    if is_of_categories(protocol):
        return str(option)
    return _("None of the options") if option == "X" else _("Option {label}").format(label=option)


def _points_in_words(verdict: Columns) -> str:
    points = ", ".join(f"{key}: {points:g}" for key, points in verdict["parts"].items())
    if not points or verdict.get("score") is None:
        return points
    total = _("{score} of 10").format(score=f"{round(verdict['score'], 2):g}")
    return f"{total} ({points})"


def _yes_or_no(column: str) -> tuple[str, str]:
    """The words for true and for false in this column."""
    return {
        "agree": (_("Agrees with the judge"), _("Disagrees with the judge")),
        "answer": (_("Yes"), _("No")),
        "hallucination": (_("Hallucination"), _("No hallucination")),
    }[column]


def names_as_shown(order: str, protocol: str = "") -> list[str]:
    """The names of the answers in canonical order, or of the analyses that this protocol compares, numbered as somebody
    saw them in this order.
    """
    numbers = [order.index(str(place)) + 1 for place in range(len(order))]
    if protocol == ANALYSES:
        return [_analysis(str(number)) for number in numbers]
    return [_("Answer {number}").format(number=number) for number in numbers]


def _analysis(name: str) -> str:
    return _("Analysis {name}").format(name=name)


def _unable(situation: int | None) -> str:
    words = _("Unable to decide")
    return f"{words}, " + _("situation {number}").format(number=situation) if situation else words
