"""Protocols: what judges are asked, how, and how their replies are read. One module per protocol.

``prompts`` holds the templates · ``replies`` finds the verdict in a reply · ``settings`` checks the settings ·
``baselines`` are the built-in judges. ``get`` finds a protocol by name.
"""

from bank.errors import BadInput
from judging.protocols.base import CannotAsk, Criterion, Material, Option, Protocol
from judging.protocols.batch import Batch
from judging.protocols.choice_extraction import ChoiceExtraction
from judging.protocols.components import Components
from judging.protocols.label import Label
from judging.protocols.pair import Pair
from judging.protocols.pair_graded import PairGraded
from judging.protocols.pairwise_criteria import PairwiseCriteria
from judging.protocols.reasoning_quality import ReasoningQuality
from judging.protocols.reference_score import ReferenceScore
from judging.protocols.score import Score
from judging.protocols.settings import BadSettings, Settings, settings_hash
from judging.protocols.yes_no import YesNo

__all__ = [
    "BadSettings",
    "CannotAsk",
    "Criterion",
    "Material",
    "Option",
    "Protocol",
    "Settings",
    "UnknownProtocol",
    "all_by_name",
    "get",
    "printed_in",
    "settings_hash",
]

CLASSES: tuple[type[Protocol], ...] = (
    PairwiseCriteria,
    Pair,
    PairGraded,
    Score,
    Batch,
    Components,
    ChoiceExtraction,
    ReferenceScore,
    ReasoningQuality,
    YesNo,
    Label,
)
PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol() for protocol in CLASSES}


class UnknownProtocol(BadInput):
    """There is no protocol with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown protocol {name!r}. Known protocols: {', '.join(PROTOCOLS)}.", "protocol")


def get(name: str) -> Protocol:
    """The protocol with that name. Raises UnknownProtocol."""
    if name not in PROTOCOLS:
        raise UnknownProtocol(name)
    return PROTOCOLS[name]


def printed_in(name: str, settings: Settings) -> str:
    """``as printed in PAPER`` where these settings of a protocol are; else nothing."""
    printed = PROTOCOLS[name].printed if name in PROTOCOLS else None
    return f"as printed in {printed.paper}" if printed and printed.holds(settings) else ""


def all_by_name() -> dict[str, Protocol]:
    return dict(PROTOCOLS)
