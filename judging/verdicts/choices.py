"""What an answer meant, as a judge reads it: an option of a multiple choice, or yes or no."""

from collections.abc import Sequence

from judging.verdicts.place import plain, stated
from judging.verdicts.reply import Found, NoVerdict, Place

NONE_OF_THEM = "X"


def option(text: str, *, place: Place, labels: Sequence[str]) -> Found:
    """The label of the option that an answer meant; ``X`` where it meant none. Raises NoVerdict.

    MMBench (arXiv 2307.06281), 4.2, step 2.
    """
    for piece in stated(text, place=place):
        value = plain(piece.value).removeprefix("Option ").removeprefix("option ")
        if value in labels or value == NONE_OF_THEM:
            return Found({"option": value}, piece.analysis)
    raise NoVerdict(f"none of {', '.join(labels)}, {NONE_OF_THEM} on the {place} line")


def yes_or_no(text: str, *, place: Place) -> Found:
    """``Yes`` or ``No``; ``X``, kept as the option, where the answer says neither. Raises NoVerdict."""
    for piece in stated(text, place=place):
        value = plain(piece.value).casefold()
        if value in ("yes", "no"):
            return Found({"answer": value == "yes"}, piece.analysis)
        if value == NONE_OF_THEM.casefold():
            return Found({"option": NONE_OF_THEM}, piece.analysis)
    raise NoVerdict(f"neither yes nor no on the {place} line")
