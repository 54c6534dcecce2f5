"""Attacks on judges: what is done to an answer, or its picture, that a good judge would not be moved by.

A run of kind ``attacks`` asks a judge about each item as it is, and once more for each attack on one of its answers,
the target. How much better the target then comes off is how far the judge can be inflated. The trials stand in a table
of their own and are no verdicts about any model.

An attack that was used is never edited: what is worded anew gets the next version beside it. ``catalogue`` the attacks
· ``report`` how far they moved a judge.
"""

from judging.attacks.catalogue import (
    ALL,
    PROTOCOLS,
    SAMPLE,
    Attack,
    UnknownAttack,
    attacked,
    canonical,
    get,
    overlay,
    target,
)

__all__ = ["ALL", "PROTOCOLS", "SAMPLE", "Attack", "UnknownAttack", "attacked", "canonical", "get", "overlay", "target"]
