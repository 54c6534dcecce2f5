"""Votes between two answers."""

import re
from typing import Any

from judging.verdicts.place import NO_VOTE, plain, stated, verdict_line
from judging.verdicts.reply import Found, NoVerdict, Place

_EDGES = " \t\r\u00a0\u200b\ufeff*_`~\"'“”‘’«»#>().,;:!?[]{}|-–—"
_VOTE = re.compile(
    r"(?:(?:my|the|final)\s+)*(?:(?:vote|verdict|answer|decision|choice)\s*(?:is\s*)?[:：]\s*)?"
    r"(?:answer\s*(?P<side>[12])"
    r"|unable\s+to\s+decide(?:[\s:：,;.(\[–—-]+situation\s*(?P<situation>one|two|1|2))?)",
    re.IGNORECASE | re.ASCII,
)
_SITUATIONS = {"one": 1, "two": 2, "1": 1, "2": 2}
_LETTER = re.compile(r"(?:(?:assistant|answer|response)\s+)?(?P<letter>[ABC])|(?P<tie>tie)", re.ASCII)
_CHOICES = {"A": "first", "B": "second", "C": "tie"}


def pair_vote(text: str, *, place: Place) -> Found:
    """The vote between two answers that stands alone on the last (or first) line of a reply.

    ``Answer1``, ``Answer2``, ``unable to decide: situation one|two``, in any case, with or without emphasis, quotes,
    a full stop or ``Vote:`` before it. Code fences and rules around it are no lines. Raises NoVerdict.
    """
    line = verdict_line(text, place=place, missing=NO_VOTE[place])
    verdict = _as_vote(line.value)
    if verdict is None:
        raise NoVerdict(NO_VOTE[place])
    return Found(verdict, line.analysis)


def _as_vote(line: str) -> dict[str, Any] | None:
    bare = re.sub(r"[*`_]", "", line).strip(_EDGES)
    match = _VOTE.fullmatch(bare)
    if match is None:
        return None
    if side := match["side"]:
        return {"choice": "first" if side == "1" else "second"}
    situation = match["situation"]
    return {"choice": "undecided"} | ({"situation": _SITUATIONS[situation.lower()]} if situation else {})


def pair_letter(text: str, *, place: Place) -> Found:
    """``A``, ``B``, or ``C`` for a tie, as MLLM-as-a-Judge has it (arXiv 2402.04788, appendix). Raises NoVerdict."""
    for piece in stated(text, place=place):
        value = plain(piece.value)
        match = _LETTER.fullmatch(value if len(value) == 1 else value[:1].lower() + value[1:])
        if match:
            return Found({"choice": _CHOICES[match["letter"]] if match["letter"] else "tie"}, piece.analysis)
    raise NoVerdict(NO_VOTE[place])
