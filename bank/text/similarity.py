"""Whether a text reveals a hidden criterion in a way the redactor cannot remove: then the whole text is withheld.

Pure functions. ``examine`` redacts a text and says why the rest must not be shown, if so:

* something was removed that was encoded, backwards or in another alphabet: no honest text does that;
* a criterion's words occur in order, close together, whatever is between them; also with scrambled letters, as pig
  latin, with digits for letters, or without vowels;
* a stretch is a criterion in another alphabet, each letter replaced by another one;
* a stretch is not language: hardly a vowel, or symbols and digits inside words.

What this cannot find: translations, paraphrases, single words here and there, a cipher that reads like prose. People
read for those; ``Initials`` shows them one kind that reads like prose.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from bank.text.encodings import plain, views, visible, words
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
    """A text without what it shares with criteria. ``why`` says why it must be withheld, or is empty."""

    redacted: Redacted
    why: str = ""


def examine(text: str, hidden: Sequence[str]) -> Examination:
    """The redacted text as a reader sees it, and why it must be withheld, if so. Quotes nothing hidden."""
    redacted = redact(visible(text), hidden)
    if redacted.withheld or not hidden:
        return Examination(redacted)
    if redacted.disguised:
        return Examination(redacted, "It holds part of a criterion in an encoding, backwards or in another alphabet.")
    return Examination(redacted, _reveals(redacted.text, hidden) or _unreadable(redacted.text))


@dataclass(frozen=True, slots=True)
class Initials:
    """The first letters of a text's words, sentences and lines, strung together, so that an acrostic meets the eye."""

    words: str
    sentences: str
    lines: str

    @classmethod
    def of(cls, text: str) -> "Initials":
        seen = visible(text)
        return cls(*(_first_letters(pattern.split(seen)) for pattern in (_SPACE, _SENTENCE_END, _LINE_END)))


_SPACE, _LINE_END = re.compile(r"\s+"), re.compile(r"\n+")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？])|\n+")


def _first_letters(pieces: Sequence[str]) -> str:
    return "".join(match[0] for piece in pieces if (match := re.search(r"[^\W_]", piece)))


def _reveals(text: str, hidden: Sequence[str]) -> str:
    criteria = list(filter(None, map(_Criterion.of, hidden)))
    if not criteria:
        return ""
    shapes = frozenset().union(*(criterion.shapes for criterion in criteria))
    for view in views(plain(text), DEPTH, 16):
        tokens = _tokens(view.chars)
        letters = "".join(words(view.chars)) if shapes else ""
        for criterion in criteria:
            if matches := criterion.most_in_order(tokens):
                return f"It has {matches} of the {criterion.size} telling words of a criterion, in order."
        if not shapes.isdisjoint(_shapes(letters)):
            return "A stretch of it repeats its letters as a criterion does: another alphabet."
    return ""


# -- words in order -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Criterion:
    """The significant words of a criterion: for each spelling, the positions where it stands, as bits."""

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
        shapes = (shape for shape in _shapes("".join(listed)) if shape.count(".") <= SAME * 2 // 3)
        return cls(len(telling), places, frozenset(shapes))

    def most_in_order(self, tokens: Sequence[Sequence[str]]) -> int:
        """The number of words in order if that is too many; 0 if not."""
        positions = [self._bits(ways) for ways in tokens]
        for share, reach in ((DENSE, 0.7), (SPARSE, REACH)):
            least = max(FEWEST, -int(-share * self.size // 1))
            width = max(least, int(reach * self.size))
            step = max(1, width // 4)
            for start in range(0, max(1, len(positions) - width + step), step):
                part = [bits for bits in positions[start : start + width] if bits]
                if len(part) >= least and (most := _longest(part, self.size)) >= least:
                    return most
        return 0

    def _bits(self, ways: Sequence[str]) -> int:
        bits = 0
        for way in ways:
            bits |= self.places.get(way, 0)
        return bits


def _longest(positions: Sequence[int], size: int) -> int:
    """The length of the longest common subsequence, with Hyyrö's bit vectors: each word is the set of positions it
    fits.
    """
    full = (1 << size) - 1
    free = full
    for bits in positions:
        taken = free & bits
        free = ((free + taken) | (free - taken)) & full
    return size - free.bit_count()


def _tokens(text: str) -> list[list[str]]:
    """The significant words of a text, each in every spelling it could stand for."""
    spoken = _IN_WORD.sub(lambda sign: sign[0].translate(_LEET), text)  # "c@t" is one word
    return [_ways(word) for word in words(spoken) if word not in _EMPTY and not (word.isdecimal() and len(word) < 3)]


def _ways(word: str) -> list[str]:
    spellings = [_jumbled(word)]
    if not _VOWEL.search(word):
        spellings.append("-" + word)
    if any(char.isdecimal() for char in word):
        spellings.append(_jumbled(word.translate(_LEET)))
        spellings.append(_jumbled(word.replace("1", "l").translate(_LEET)))
    if word.endswith("ay") and len(word) > 3:
        spellings += [_jumbled(word[:-2]), _jumbled(word[:-3])]
    return spellings


_VOWEL = re.compile("[aeiou]")


def _jumbled(word: str) -> str:
    return "".join(sorted(word))


def _without_vowels(word: str) -> str:
    return _VOWEL.sub("", word)


# -- letters exchanged for others -----------------------------------------------------------------------------------


def _shapes(letters: str) -> list[str]:
    """Every SAME letters as the distance to the previous same letter: no substitution of letters changes that."""
    last: dict[str, int] = {}
    backs = []
    for at, char in enumerate(letters):
        back = at - last.get(char, -NEAR - 1)
        backs.append(chr(0x100 + back) if back <= NEAR else ".")
        last[char] = at
    steps = "".join(backs)
    return [steps[at : at + SAME] for at in range(NEAR, len(steps) - SAME + 1)]


# -- what is no writing ---------------------------------------------------------------------------------------------


def _lacks_vowels(letters: str) -> bool:
    """Whether a stretch of these has hardly a vowel."""
    sums = list(accumulate((char in "aeiouy" for char in letters if "a" <= char <= "z"), initial=0))
    return any(after - before < VOWELS * STRETCH for before, after in zip(sums, sums[STRETCH:], strict=False))


def _unreadable(text: str) -> str:
    """Why a human checker cannot read the text; "" if they can."""
    if _lacks_vowels("".join(word for word in words(text) if len(word) >= 4)):
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
