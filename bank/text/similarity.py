"""Whether a text tells a hidden criterion in a way that the redactor cannot take out: then all of it is held back.

Pure functions. ``examine`` redacts a text and says why what is left is not to be shown, if so:

* something was taken out that stood in an encoding, backwards or in another alphabet: no honest text does that;
* a criterion's words stand in it in order, close to one another, whatever is strewn between them; also with the letters
  of a word in another order, as pig latin, with digits for letters, or without vowels;
* a stretch of it is a criterion in some other alphabet, each letter exchanged for another one;
* a stretch of it is no writing: hardly a vowel, or signs and digits within words.

What this cannot find: translations, paraphrases, a word here and a word there, a cipher that reads like prose.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from bank.text.encodings import plain, views, words
from bank.text.redactor import DEPTH, Redacted, redact

DENSE = 0.46  # share of a criterion's words that may not stand in order next to one another
SPARSE = 0.62  # nor, in order, within REACH times as many words
REACH = 2.5
FEWEST = 4  # words of a criterion that are looked for in order
SAME = 24  # letters that repeat alike in the same places
NEAR = 12  # letters within which a repetition counts
STRETCH = 48  # letters among which the vowels are counted
VOWELS = 0.24  # share of vowels that any writing has
ODD = 28  # characters of words that are none

# Words that tell nothing: of the language, and of every judge.
_EMPTY = frozenset(
    """a about above after all also an and any are as at be because been being below both but by can could did do does
    each either else even every for from further had has have he her here hers him his how i if in into is it its itself
    just less like may me might more most much must my neither no nor not of off on only or other our out over own
    rather same she should so some still such than that the their them then there these they this those through to too
    under until up very was we were what when where which while who whom whose why will with within without would you
    your accurate accurately answer answers assistant better choose clear clearly complete correct correctly criteria
    criterion describe described describes describing description detail details gives image mention mentioned mentions
    model one photo picture question response responses says shown shows state stated states two visible wrong
    explain explains explained identify identified identifies include includes including note notes noted name names
    provide provides second first scene""".split()
)
_LEET = str.maketrans("01345789@$€|!", "oieastbgaseii")
_IN_WORD = re.compile(r"[@$€|!](?=\w)")


@dataclass(frozen=True, slots=True)
class Examination:
    """A text without what it shares with criteria. ``why``, in words, says that it is rather held back; or "" ."""

    redacted: Redacted
    why: str = ""


def examine(text: str, hidden: Sequence[str]) -> Examination:
    """The redacted text, and why it is to be held back, if so. Quotes nothing hidden."""
    redacted = redact(text, hidden)
    if redacted.withheld or not hidden:
        return Examination(redacted)
    if redacted.disguised:
        return Examination(redacted, "It holds part of a criterion in an encoding, backwards or in another alphabet.")
    return Examination(redacted, _reveals(redacted.text, hidden) or _unreadable(redacted.text))


def _reveals(text: str, hidden: Sequence[str]) -> str:
    known = [one for one in (_Criterion.of(each) for each in hidden) if one]
    if not known:
        return ""
    shapes = frozenset().union(*(one.shapes for one in known))
    for view in views(plain(text), DEPTH, 16):
        said = _tokens(view.chars)
        letters = "".join(words(view.chars)) if shapes else ""
        for one in known:
            if found := one.most_in_order(said):
                return f"It has {found} of the {one.size} telling words of a criterion, in order."
        if not shapes.isdisjoint(_shapes(letters)):
            return "A stretch of it repeats its letters as a criterion does: another alphabet."
    return ""


# -- words in order -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Criterion:
    """The telling words of a criterion: for each way to write one, the places where it stands, as bits."""

    size: int
    places: dict[str, int]
    shapes: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "_Criterion | None":
        listed = words(text)
        telling = [word for word in listed if word not in _EMPTY]
        if len(telling) < FEWEST:
            telling = listed
        if len(telling) < FEWEST:
            return None
        places: dict[str, int] = {}
        for at, word in enumerate(telling):
            for way in {_jumbled(word), "-" + _without_vowels(word)}:
                places[way] = places.get(way, 0) | 1 << at
        shapes = (one for one in _shapes("".join(listed)) if one.count(".") <= SAME * 2 // 3)
        return cls(len(telling), places, frozenset(shapes))

    def most_in_order(self, said: Sequence[Sequence[str]]) -> int:
        """How many of the words stand in order where that is too many; 0 if nowhere."""
        found = [self._bits(ways) for ways in said]
        for share, reach in ((DENSE, 0.7), (SPARSE, REACH)):
            least = max(FEWEST, -int(-share * self.size // 1))
            width = max(least, int(reach * self.size))
            step = max(1, width // 4)
            for start in range(0, max(1, len(found) - width + step), step):
                part = [bits for bits in found[start : start + width] if bits]
                if len(part) >= least and (most := _longest(part, self.size)) >= least:
                    return most
        return 0

    def _bits(self, ways: Sequence[str]) -> int:
        bits = 0
        for way in ways:
            bits |= self.places.get(way, 0)
        return bits


def _longest(found: Sequence[int], size: int) -> int:
    """The length of the longest common subsequence, by Hyyrö's bits: each word of the text is the places it fits."""
    full = (1 << size) - 1
    free = full
    for bits in found:
        taken = free & bits
        free = ((free + taken) | (free - taken)) & full
    return size - free.bit_count()


def _tokens(text: str) -> list[list[str]]:
    """The words of a text that may tell something, each in the ways in which it could be meant."""
    spoken = _IN_WORD.sub(lambda sign: sign[0].translate(_LEET), text)  # "c@t" is one word
    return [_ways(word) for word in words(spoken) if word not in _EMPTY and not (word.isdecimal() and len(word) < 3)]


def _ways(word: str) -> list[str]:
    found = [_jumbled(word)]
    if not _VOWEL.search(word):
        found.append("-" + word)
    if any(char.isdecimal() for char in word):
        found.append(_jumbled(word.translate(_LEET)))
        found.append(_jumbled(word.replace("1", "l").translate(_LEET)))
    if word.endswith("ay") and len(word) > 3:
        found += [_jumbled(word[:-2]), _jumbled(word[:-3])]
    return found


_VOWEL = re.compile("[aeiou]")


def _jumbled(word: str) -> str:
    return "".join(sorted(word))


def _without_vowels(word: str) -> str:
    return _VOWEL.sub("", word)


# -- letters exchanged for others -----------------------------------------------------------------------------------


def _shapes(letters: str) -> list[str]:
    """Every SAME letters as how far back each letter stood last: no exchange of letters for others changes that."""
    last: dict[str, int] = {}
    backs = []
    for at, char in enumerate(letters):
        back = at - last.get(char, -NEAR - 1)
        backs.append(chr(0x100 + back) if back <= NEAR else ".")
        last[char] = at
    steps = "".join(backs)
    return [steps[at : at + SAME] for at in range(NEAR, len(steps) - SAME + 1)]


# -- what is no writing ---------------------------------------------------------------------------------------------


def _unreadable(text: str) -> str:
    """Why a text cannot be read by the person who checks it; "" if it can."""
    long_ones = "".join(word for word in words(text) if len(word) >= 4)
    sums = list(accumulate((char in "aeiouy" for char in long_ones if "a" <= char <= "z"), initial=0))
    if any(after - before < VOWELS * STRETCH for before, after in zip(sums, sums[STRETCH:], strict=False)):
        return "A stretch of it has hardly a vowel: that is no writing."
    odd = sum(len(token) for token in text.split() if _is_odd(token))
    if odd >= ODD and odd * 12 > len(text):
        return "Much of it is signs and digits within words: that is no writing."
    return ""


_MIXED = re.compile(r"[A-Za-z]\d+[A-Za-z]|\d[A-Za-z]{1,2}\d|[a-z][A-Z]+[a-z]+[A-Z]")
_LINK = re.compile(r"https?://|www\.")


def _is_odd(token: str) -> bool:
    if _LINK.match(token):
        return False
    core = token.strip(".,;:!?()[]{}\"'*_`-–—")
    signs = sum(not char.isalnum() for char in core)
    return bool(_MIXED.search(core)) or len(core) > 30 or (len(core) > 5 and signs * 3 > len(core))
