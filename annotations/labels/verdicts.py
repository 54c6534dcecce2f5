"""Verdicts of any kind made comparable: as a word, as a number, and against a right one.

All in canonical order. A verdict is a mapping of the columns of ``bank.models.verdict``; empty ones may be left out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from bank.models.verdict import Choice

# What two people must have in common to have said the same, by the first of these that a verdict holds.
VERDICT_COLUMNS = ("choice", "ranking", "parts", "score", "option", "answer", "agree", "hallucination", "grade")

# A pair's verdicts on one line, for what needs an order: the first is better, neither, the second is better.
CHOICE_SCALE = {Choice.FIRST: 0.0, Choice.TIE: 1.0, Choice.UNDECIDED: 1.0, Choice.SECOND: 2.0}

Columns = Mapping[str, Any]


def main_column(verdict: Columns) -> str | None:
    """The column that says what was decided; None where nothing was."""
    return next((name for name in VERDICT_COLUMNS if verdict.get(name) is not None), None)


def verdict_key(verdict: Columns) -> str | None:
    """What was decided as one word: the same for the same verdict. A pair's situation plays no part."""
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


def verdict_number(verdict: Columns) -> float | None:
    """Where the verdict stands on a scale; None for those without one (an option, a ranking)."""
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
    """Whether a verdict is the right one. Numbers may be off by ``gold["within"]``, where it is given."""
    name = main_column(gold)
    if name is None or verdict.get(name) is None:
        return False
    if name == "score" or (name == "parts" and gold.get("within")):
        given, wanted = verdict_number({name: verdict[name]}), verdict_number({name: gold[name]})
        return abs((given or 0) - (wanted or 0)) <= float(gold.get("within") or 0) + 1e-9
    same = verdict_key({name: verdict[name]}) == verdict_key({name: gold[name]})
    return same and gold.get("situation") in (None, verdict.get("situation"))


def majority_word(words: Iterable[str]) -> str | None:
    """The verdict that more than half gave; None where there is none."""
    counts = Counter(words)
    if not counts:
        return None
    best, times = counts.most_common(1)[0]
    return best if 2 * times > sum(counts.values()) else None


def disagreement(words: Iterable[str]) -> float | None:
    """The share of pairs of verdicts that differ, 0 to 1; None below two verdicts."""
    counts = Counter(words)
    n = sum(counts.values())
    if n < 2:
        return None
    same = sum(times * (times - 1) for times in counts.values())
    return 1 - same / (n * (n - 1))


def describe(verdict: Columns, *, letters: Sequence[str] = "ABCDEFGHIJ") -> str:
    """For people, in their language; ``letters`` name the answers in canonical order. "" where nothing was decided."""
    name = main_column(verdict)
    if name is None:
        return ""
    value = verdict[name]
    match name:
        case "choice":
            return {
                Choice.FIRST: _("{answer} is better").format(answer=letters[0]),
                Choice.SECOND: _("{answer} is better").format(answer=letters[1]),
                Choice.TIE: _("Tie"),
            }.get(value) or _unable(verdict.get("situation"))
        case "ranking":
            return " > ".join(" = ".join(letters[place] for place in sorted(group)) for group in value)
        case "parts":
            return ", ".join(f"{key}: {points:g}" for key, points in value.items())
        case "option":
            return _("None of the options") if value == "X" else _("Option {label}").format(label=value)
        case "agree":
            return _("Agrees with the judge") if value else _("Disagrees with the judge")
        case "answer":
            return _("Yes") if value else _("No")
        case "hallucination":
            return _("Hallucination") if value else _("No hallucination")
    return f"{value:g}"


def _unable(situation: int | None) -> str:
    words = _("Unable to decide")
    return f"{words}, " + _("situation {number}").format(number=situation) if situation else words
