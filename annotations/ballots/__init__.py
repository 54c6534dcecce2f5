"""What annotators are asked and may answer: one class per protocol, set up for one campaign.

Verdicts come in presented terms: "left" and "right", places and labels are what the annotator saw, so that they can
never be mistaken for the canonical ones of the stored columns.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.answers import ChoiceExtraction, YesNo
from annotations.ballots.base import (
    FIELDS,
    BadSettings,
    BadVerdict,
    Ballot,
    Choice,
    Component,
    Form,
    Material,
    Option,
    Words,
    number_in,
)
from annotations.ballots.pairs import LEFT_RIGHT, PRESENTED, Pair, PairwiseCriteria
from annotations.ballots.rankings import Batch
from annotations.ballots.reviews import Review
from annotations.ballots.scores import Components, Score
from bank.models.verdict import Choice as Stored
from bank.models.verdict import turned

if TYPE_CHECKING:
    from annotations.models import Campaign
    from bank.models import Benchmark

__all__ = [
    "BALLOTS",
    "FIELDS",
    "FLAGS",
    "LEFT_RIGHT",
    "BadSettings",
    "BadVerdict",
    "Ballot",
    "Choice",
    "Component",
    "Form",
    "Material",
    "Option",
    "UnknownBallot",
    "get",
    "number_in",
    "of",
    "places",
    "presented",
    "scale_of",
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
    *(PairwiseCriteria, Pair, Score, Batch),
    *(Components, ChoiceExtraction, YesNo, Review),
)
# Each protocol with its usual settings; a campaign's own are in ``of(campaign)``.
BALLOTS: dict[str, Ballot] = {kind.protocol: kind() for kind in _CLASSES}


class UnknownBallot(LookupError):
    """Campaigns cannot label by this protocol."""


def get(protocol: str) -> Ballot:
    """The ballot of that protocol with its usual settings. Raises UnknownBallot."""
    try:
        return BALLOTS[protocol]
    except KeyError:
        raise UnknownBallot(f"Campaigns label by {' or '.join(BALLOTS)}, not by {protocol!r}.") from None


def of(campaign: "Campaign") -> Ballot:
    """The ballot as this campaign has set it up. Raises UnknownBallot."""
    usual = get(campaign.protocol)
    return type(usual)(campaign.ballot) if campaign.ballot else usual


def scale_of(benchmark: "Benchmark") -> list[tuple[float, str]]:
    """The benchmark's own scale of scores, lowest first; empty where it has none."""
    return sorted((float(step["value"]), str(step.get("label", ""))) for step in benchmark.score_scale)


def places(order: str) -> list[int]:
    """The presented order as numbers: ``places("10")[0]`` is the canonical position of what stood on the left."""
    return [int(digit) for digit in order]


def presented(columns: Mapping[str, Any], order: str) -> dict[str, Any]:
    """A stored choice as this annotator gave it."""
    shown = turned(dict(columns), order=places(order))  # a pair turned twice is itself
    if shown.get("choice"):
        shown["choice"] = PRESENTED[Stored(shown["choice"])]
    return shown
