"""The contents of a benchmark, in counts (MLLM-Bench, arXiv 2311.13951, Figure 4)."""

import re
from collections import Counter
from collections.abc import Iterable

OBJECTS = 4  # of a verb, as in print
_SPACELESS = re.compile(r"[぀-ヿ㐀-鿿]")  # kana and Chinese characters


def first_words(instructions: Iterable[str]) -> Counter[str]:
    """How many instructions begin with each word, in lower case; where words are not set apart, its two characters."""
    return Counter(filter(None, map(_first, instructions)))


def _first(text: str) -> str:
    words = text.split(None, 1)
    word = words[0].strip(".,:;!?\"'“”()[]<>*#") if words else ""
    return word[:2] if _SPACELESS.match(word) else word.casefold()


def objects(lists: Iterable[list[object]]) -> Counter[str]:
    """In how many pictures each object is, in lower case, of the lists that endpoints made."""
    return Counter(name for lines in lists for name in set(map(_name, lines)) - {""})


def verbs(said: Iterable[str]) -> Counter[str]:
    """How many instructions have each verb at their root, with its most frequent objects: ``describe (picture)``.
    ``said``: ``verb: noun`` or a verb, one an instruction (MIA-Bench, arXiv 2407.01509, Figure 5).
    """
    nouns: dict[str, Counter[str]] = {}
    counts = Counter[str]()
    for line in said:
        verb, _, noun = (part.strip() for part in line.partition(":"))
        counts[verb] += 1
        nouns.setdefault(verb, Counter()).update([noun] if noun else [])
    named = {verb: ", ".join(name for name, _ in nouns[verb].most_common(OBJECTS)) for verb in counts}
    return Counter({f"{verb} ({named[verb]})" if named[verb] else verb: n for verb, n in counts.items()})


def _name(line: object) -> str:
    return str(line).partition(":")[0].strip().casefold()
