"""The questions of a ballot as groups of buttons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotations.ballots import Ballot, Choice, Material
from annotations.ballots.answers import ChoiceExtraction, YesNo
from annotations.ballots.base import Words
from annotations.ballots.pairs import Pair
from annotations.ballots.reviews import Review
from annotations.ballots.scores import Score


@dataclass(frozen=True, slots=True)
class Group:
    """One question and its answers; ``given`` is the value of the one that was chosen."""

    name: str
    question: Words
    buttons: tuple[Choice, ...]
    given: str
    missing: str  # what to say when it was left open
    style: str = ""


def groups_of(ballot: Ballot, material: Material, given: Mapping[str, Any]) -> list[Group]:
    """The groups that this ballot asks, in order; none where the verdict is given on the answers themselves."""
    if isinstance(ballot, Pair):
        return [_group("choice", ballot.question, ballot.buttons, given, _("Choose a verdict first"))]
    if isinstance(ballot, Score):
        style = "steps" if len(ballot.buttons) > 7 else "scale"
        return [_group("score", ballot.question, ballot.buttons, given, _("Choose a score first"), style)]
    if isinstance(ballot, ChoiceExtraction):
        buttons = ballot.buttons_of(material)
        return [_group("option", ballot.question, buttons, given, _("Choose an option first"), "options")]
    if isinstance(ballot, YesNo):
        return [_group("answer", ballot.question, ballot.buttons, given, _("Choose yes or no first"))]
    if isinstance(ballot, Review):
        groups = [_group("agree", _("Do you agree with the verdict?"), ballot.agree, given, _("Say whether you agree"))]
        if material.length:
            grades, yes_no = ballot.grades, ballot.agree
            ask = _("Does the analysis say what is not there?")
            groups += [
                _group("grade", _("How good is the analysis?"), grades, given, _("Give the analysis 1 to 5"), "scale"),
                _group("hallucination", ask, yes_no, given, _("Say whether the analysis hallucinates")),
            ]
        return groups
    return []


def _group(
    name: str, question: Words, buttons: Sequence[Choice], given: Mapping[str, Any], missing: str, style: str = ""
) -> Group:
    value = given.get(name)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    shown = "" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
    return Group(name, question, tuple(buttons), shown, missing, style)
