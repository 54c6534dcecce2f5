"""Corruptions of questions (ChEF, Table 3): 16 methods of five categories. The options of a question are only turned
round or reversed, and what they say stays as it is.

Numbers, quoted texts, formulas between dollars, addresses and placeholders such as <image> are never touched. Words are
changed in English only: in another language the methods of words and characters leave a question as it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from bank.text.digests import generator
from bank.text.words import words_of

CATEGORIES = ("basic", "sentence", "word", "character", "choice")
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25)  # of the words, by severity
PROTECTED = re.compile(
    r"""\$[^$]*\$ | "[^"]*" | “[^”]*” | '[^']{2,}'(?!\w) | `[^`]*` | <[^<>]*> | https?://\S+ | \S*\d\S*""", re.VERBOSE
)
WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")


class NotWritten(LookupError):
    """The method needs a text that somebody, or an endpoint, wrote before; there is none."""


@dataclass(frozen=True, slots=True)
class Method:
    """``severities``: 5 or 1. ``written``: the text is written before and stored. ``of_options``: it orders options."""

    name: str
    title: str
    category: str
    severities: int = 1
    written: bool = False
    of_options: bool = False


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("lower-case", "Lower case", "basic"),
        Method("contraction-expansion", "Contraction and expansion", "basic"),
        Method("passive", "Passive", "sentence", written=True),
        Method("active", "Active", "sentence", written=True),
        Method("casual", "Casual", "sentence", written=True),
        Method("formal", "Formal", "sentence", written=True),
        Method("back-translation", "Back translation", "sentence", written=True),
        Method("swap-synonym", "Synonyms", "word", severities=5),
        Method("insert-adverb", "An adverb more", "word"),
        Method("add-irrelevant", "An irrelevant sentence more", "word"),
        Method("ocr", "Misread letters", "character", severities=5),
        Method("typos", "Typing errors", "character", severities=5),
        Method("spelling", "Spelling errors", "character", severities=5),
        Method("keyboard", "Neighbouring keys", "character", severities=5),
        Method("circular-options", "Options turned round", "choice", of_options=True),
        Method("reverse-options", "Options reversed", "choice", of_options=True),
    )
}


def corrupt(text: str, *, method: str, severity: int, seed: str, written: str | None = None) -> str:
    """The question after one corruption. ``written`` is the stored text of a method that needs one.

    Raises NotWritten, and ValueError for what is unknown.
    """
    if method not in METHODS:
        raise ValueError(f"there is no corruption of texts called {method}")
    chosen = METHODS[method]
    if not 1 <= severity <= chosen.severities:
        raise ValueError(f"the severity of {method} is a number from 1 to {chosen.severities}")
    if chosen.of_options:
        return text
    if chosen.written:
        if not written:
            raise NotWritten(f"nobody has written the question for {method}")
        return written
    if not applies(text):
        return text
    return _MAKERS[method](text, severity, generator(method, severity, seed))


def reorder(labels: Sequence[str], *, method: str, seed: str) -> list[str]:
    """The options in another order: turned round by a drawn shift, or reversed. Raises ValueError."""
    if method == "reverse-options":
        return [*reversed(labels)]
    if method != "circular-options":
        raise ValueError(f"{method} orders no options")
    if len(labels) < 2:
        return [*labels]
    shift = generator(method, 1, seed).randrange(1, len(labels))
    return [*labels[shift:], *labels[:shift]]


def applies(text: str) -> bool:
    """Whether the methods of words and characters change a text: most of its letters are Latin ones."""
    letters = [char for char in text if char.isalpha()]
    return bool(letters) and sum(char < "\u0250" for char in letters) >= 0.6 * len(letters)


def _outside(text: str, change: Callable[[str], str]) -> str:
    """The text with the parts between protected ones changed."""
    parts, at = [], 0
    for protected in PROTECTED.finditer(text):
        parts += [change(text[at : protected.start()]), protected[0]]
        at = protected.end()
    return "".join([*parts, change(text[at:])])


def _words(text: str) -> Iterator[re.Match[str]]:
    """The words that may be changed: those that touch no protected part."""
    taken = [protected.span() for protected in PROTECTED.finditer(text)]
    for word in WORD.finditer(text):
        if not any(begin < word.end() and word.start() < end for begin, end in taken):
            yield word


def _some_words(
    text: str, severity: int, rng: random.Random, change: Callable[[str], str], *, longer_than: int = 3
) -> str:
    """A share of the words changed, at least one: those that ``change`` changes, drawn at random."""
    spans = [word.span() for word in _words(text) if len(word[0]) > longer_than]
    number = max(1, round(SHARES[severity - 1] * len(WORD.findall(text))))
    rng.shuffle(spans)
    changed: dict[tuple[int, int], str] = {}
    for span in spans:
        if len(changed) == number:
            break
        word_now = text[slice(*span)]
        new = change(word_now)
        if new != word_now:
            changed[span] = new
    for begin, end in sorted(changed, reverse=True):
        text = text[:begin] + changed[begin, end] + text[end:]
    return text


def _as(word: str, like: str) -> str:
    """The word with the capital of the one that it replaces."""
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


# ---- basic ----

CONTRACTIONS = {long: short for long, (short,) in words_of(__file__, "contractions").items()}
_OTHER = CONTRACTIONS | {short: long for long, short in CONTRACTIONS.items()}
_EITHER = re.compile(r"(?<![\w'’])(" + "|".join(map(re.escape, _OTHER)) + r")(?![\w'’])", re.IGNORECASE)


def _lower_case(text: str, severity: int, rng: random.Random) -> str:
    return _outside(text, str.lower)


def _contraction_expansion(text: str, severity: int, rng: random.Random) -> str:
    """Contractions written out, and the other way round."""

    def other(found: re.Match[str]) -> str:
        return _as(_OTHER[found[1].lower()], found[1])

    return _outside(text.replace("’", "'"), lambda part: _EITHER.sub(other, part))


# ---- words ----

_BEFORE = {"describe", "explain", "identify", "choose", "select"}
ADVERBS = words_of(__file__, "adverbs")
IRRELEVANT = (
    "The weather was fine yesterday.",
    "My neighbour has a blue bicycle.",
    "The meeting begins at the usual time.",
    "Some people like tea better than coffee.",
    "The library is closed on Sundays.",
    "A friend of mine plays the piano.",
    "The train was late this morning.",
    "There is a new bakery in our street.",
)


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    return words_of(__file__, "synonyms")


def _swap_synonym(text: str, severity: int, rng: random.Random) -> str:
    def swapped(word: str) -> str:
        others = synonyms().get(word.lower())
        return _as(rng.choice(others), word) if others else word

    return _some_words(text, severity, rng, swapped, longer_than=2)


def _insert_adverb(text: str, severity: int, rng: random.Random) -> str:
    for word in _words(text):
        if adverbs := ADVERBS.get(word[0].lower()):
            adverb = rng.choice(adverbs)
            if word[0].lower() in _BEFORE:
                return text[: word.start()] + f"{_as(adverb, word[0])} {word[0].lower()}" + text[word.end() :]
            return text[: word.end()] + f" {adverb}" + text[word.end() :]
    return text


def _add_irrelevant(text: str, severity: int, rng: random.Random) -> str:
    sentence = rng.choice(IRRELEVANT)
    return f"{sentence} {text}" if rng.random() < 0.5 else f"{text} {sentence}"


# ---- characters ----

MISREAD = {letter: letters for letter, (letters,) in words_of(__file__, "misreadings").items()}
MISSPELT = words_of(__file__, "misspellings")
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _one_letter(word: str, rng: random.Random, other: Callable[[str], str | None]) -> str:
    places = list(range(1, len(word)))
    rng.shuffle(places)
    for place in places:
        new = other(word[place].lower())
        if new:
            return word[:place] + new + word[place + 1 :]
    return word


def _ocr(text: str, severity: int, rng: random.Random) -> str:
    return _some_words(text, severity, rng, lambda word: _one_letter(word, rng, MISREAD.get))


def _neighbour(letter: str, rng: random.Random) -> str | None:
    for row, keys in enumerate(KEYS):
        if (at := keys.find(letter)) >= 0:
            near = [keys[place] for place in (at - 1, at + 1) if 0 <= place < len(keys)]
            for other in (row - 1, row + 1):
                if 0 <= other < len(KEYS) and at < len(KEYS[other]):
                    near.append(KEYS[other][at])
            return rng.choice(near)
    return None


def _keyboard(text: str, severity: int, rng: random.Random) -> str:
    return _some_words(text, severity, rng, lambda word: _one_letter(word, rng, lambda each: _neighbour(each, rng)))


def _typos(text: str, severity: int, rng: random.Random) -> str:
    """Two letters swapped, one left out, or one twice; never the first."""

    def mistyped(word: str) -> str:
        at = rng.randrange(1, len(word) - 1)
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        return rng.choice((swapped, word[:at] + word[at + 1 :], word[: at + 1] + word[at:]))

    return _some_words(text, severity, rng, mistyped)


def _spelling(text: str, severity: int, rng: random.Random) -> str:
    def misspelt(word: str) -> str:
        rules = [(right, wrong) for right, (wrong,) in MISSPELT.items() if right in word[1:].lower()]
        if not rules:
            return word
        right, wrong = rules[0] if len(rules[0][0]) > 1 else rng.choice(rules)
        at = word.lower().index(right, 1)
        return word[:at] + wrong + word[at + len(right) :]

    return _some_words(text, severity, rng, misspelt)


_MAKERS: dict[str, Callable[[str, int, random.Random], str]] = {
    "lower-case": _lower_case,
    "contraction-expansion": _contraction_expansion,
    "swap-synonym": _swap_synonym,
    "insert-adverb": _insert_adverb,
    "add-irrelevant": _add_irrelevant,
    "ocr": _ocr,
    "typos": _typos,
    "spelling": _spelling,
    "keyboard": _keyboard,
}
