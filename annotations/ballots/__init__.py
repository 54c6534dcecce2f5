"""What annotators are asked and may answer: one class per protocol, set up for one campaign.

Answers are in presented terms: "left" and "right", positions and option labels as the annotator saw them. So they
cannot be confused with the canonical ones in the stored columns.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.answers import ChoiceExtraction, Label, YesNo
from annotations.ballots.base import (
    COMPONENTS,
    FIELDS,
    OPTIONS,
    BadSettings,
    BadVerdict,
    Ballot,
    Choice,
    Component,
    Group,
    Material,
    Option,
    PostedForm,
    Words,
    parse_number,
)
from annotations.ballots.pairs import LEFT_RIGHT, PRESENTED, Pair, PairGraded, PairwiseCriteria
from annotations.ballots.rankings import Batch
from annotations.ballots.reviews import CompareAnalyses, Review
from annotations.ballots.scores import Components, Score
from bank.models.verdict import Choice as Stored
from bank.models.verdict import turned
from judging import protocols

if TYPE_CHECKING:
    from annotations.models import Campaign
    from bank.models import Benchmark

__all__ = [
    "BALLOTS",
    "COMPONENTS",
    "FIELDS",
    "FLAGS",
    "LEFT_RIGHT",
    "OPTIONS",
    "BadSettings",
    "BadVerdict",
    "Ballot",
    "Choice",
    "Component",
    "Group",
    "Material",
    "Option",
    "PostedForm",
    "UnknownBallot",
    "alone",
    "get",
    "of",
    "parse_number",
    "places",
    "presented",
    "scale_of",
    "words_of",
]

FLAGS: dict[str, Words] = {
    "image": lazy("The image is missing or cannot be read"),
    "instruction": lazy("The instruction is unclear or cannot be answered"),
    "answer": lazy("An answer is cut off or garbled"),
    "harmful": lazy("Harmful or offensive content"),
    "identity": lazy("I can tell which model wrote an answer"),
    "other": lazy("Something else (say what in the comment)"),
}

_CLASSES: tuple[type[Ballot], ...] = (
    *(PairwiseCriteria, Pair, PairGraded, Score, Batch),
    *(Components, ChoiceExtraction, YesNo, Label, Review, CompareAnalyses),
)
# Each protocol with its default settings. ``of(campaign)`` has a campaign's own.
BALLOTS: dict[str, Ballot] = {ballot.protocol: ballot() for ballot in _CLASSES}


class UnknownBallot(LookupError):
    """Campaigns cannot use this protocol."""


def get(protocol: str) -> Ballot:
    """The ballot of that protocol with its default settings. Raises UnknownBallot."""
    try:
        return BALLOTS[protocol]
    except KeyError:
        raise UnknownBallot(
            f"Campaigns cannot use the protocol {protocol!r}. Choose one of: {', '.join(BALLOTS)}."
        ) from None


def words_of(protocol: str) -> Ballot | type[Ballot]:
    """The ballot of that protocol for its words; for one that campaigns cannot use, what all ballots say."""
    return BALLOTS.get(protocol, Ballot)


@cache
def alone(protocol: str) -> str:
    """What campaigns of this protocol hold alone, in words: verdicts that share their column with those of another kind
    are of the kind that their campaign's protocol says. Empty for the protocols that came first.
    """
    if protocol not in BALLOTS:
        return ""
    first = next(name for name, ballot in BALLOTS.items() if ballot.fields[0] == BALLOTS[protocol].fields[0])
    if BALLOTS[protocol].of_two:
        return "comparisons of analyses"
    if first == protocol or protocols.get(first).verdict_kind == protocols.get(protocol).verdict_kind:
        return ""
    return protocols.get(protocol).title.lower()


def of(campaign: "Campaign") -> Ballot:
    """The ballot with this campaign's settings. Raises UnknownBallot."""
    default = get(campaign.protocol)
    return type(default)(campaign.ballot) if campaign.ballot else default


def scale_of(benchmark: "Benchmark") -> list[tuple[float, str]]:
    """The benchmark's own scale of scores, lowest first. Empty if it has none."""
    return sorted((float(step["value"]), str(step.get("label", ""))) for step in benchmark.score_scale)


def places(order: str) -> list[int]:
    """The presented order as numbers: ``places("10")[0]`` is the canonical position of the answer on the left."""
    return [int(digit) for digit in order]


def presented(columns: Mapping[str, Any], order: str) -> dict[str, Any]:
    """A stored choice in the terms this annotator saw."""
    shown = turned(dict(columns), order=places(order))  # a pair turned twice is itself
    if shown.get("choice"):
        shown["choice"] = PRESENTED[Stored(shown["choice"])]
    return shown
