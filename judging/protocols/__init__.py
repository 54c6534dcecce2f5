"""What judges are asked, how, and how their replies are read: one module per protocol.

A module has a ``PROTOCOL``, an instance of ``base.Protocol``; ``get`` finds it by name.
"""

import importlib

from judging.protocols.base import CannotAsk, Criterion, Material, Option, Protocol
from judging.protocols.settings import BadSettings, Settings, settings_hash

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
    "settings_hash",
]

MODULES = (
    "pairwise_criteria",
    "pair",
    "score",
    "batch",
    "components",
    "choice_extraction",
    "reference_score",
    "reasoning_quality",
    "yes_no",
)


class UnknownProtocol(LookupError):
    """No protocol of that name."""


def get(name: str) -> Protocol:
    """The protocol of that name. Raises UnknownProtocol."""
    found = all_by_name()
    if name not in found:
        raise UnknownProtocol(f"There is no protocol {name!r}. There are: {', '.join(found)}.")
    return found[name]


def all_by_name() -> dict[str, Protocol]:
    modules = (importlib.import_module(f"judging.protocols.{module}") for module in MODULES)
    return {module.PROTOCOL.name: module.PROTOCOL for module in modules}
