"""Rankings of several answers."""

import re
from string import ascii_uppercase

from judging.verdicts.place import plain, stated
from judging.verdicts.reply import Found, NoVerdict, Place

_NAMES = re.compile(r"\b(?:assistant|answer|response)\s+(?=[A-Z]\b)", re.IGNORECASE)
_RANKING = re.compile(r"[A-Z](?:\s*(?:[,;>→]|,?\s+)?\s*[A-Z])*")


def ranking(text: str, *, place: Place, count: int) -> Found:
    """The order of ``count`` answers from best to worst, each letter once and no ties.

    ``[[C]], [[A]], [[B]]``, ``[[C], [A], [B]]``, ``CAB``, ``C > A > B`` (MLLM-as-a-Judge, arXiv 2402.04788). A ranking
    that leaves one out, names one twice or one that is not there is none. Raises NoVerdict.
    """
    letters = ascii_uppercase[:count]
    for piece in stated(text, place=place):
        value = _NAMES.sub("", plain(re.sub(r"[\[\]\"']", "", piece.value)))
        if not _RANKING.fullmatch(value):
            continue
        named = re.findall(r"[A-Z]", value)
        if sorted(named) != list(letters):
            raise NoVerdict(f"the ranking does not name each of {', '.join(letters)} once")
        return Found({"ranking": [[letters.index(letter)] for letter in named]}, piece.analysis)
    raise NoVerdict(f"no ranking on the {place} line")
