"""Takes hidden criteria out of what a judge wrote, before anybody below staff reads it.

Pure functions: text in, text out. What goes:

* a run of ``WINDOW`` or more words that a criterion has too, whatever stands between the words;
* ``LETTERS`` or more letters and digits in a row that a criterion has too, however they are spaced;
* a criterion of fewer words or letters wherever it stands whole, between word boundaries.

Case, accents, punctuation, invisible characters and lookalike letters of other scripts make no difference. The
redactor also looks backwards, at every second, third and fourth letter, under every shift of the alphabet (rot13), and
inside the encodings that ``bank.text.encodings`` reads, nested ones included. A criterion of at most ``UNHIDEABLE``
letters, "B" or "yes", cannot be taken out, because each gap would reveal it: then the whole text is withheld.

A text that reveals a criterion in pieces, in changed words or in other ciphers is up to ``bank.text.similarity``, which
withholds the whole text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bank.text.encodings import Letters, folded, is_ideograph, letters, plain, views, words

WINDOW = 5  # words
LETTERS = 28
UNHIDEABLE = 3
SHIFTED = 8  # minimum letters of a match under a shifted alphabet: shorter words turn into one another
DEPTH = 2  # encodings within encodings
LONGEST = 100_000  # characters; a longer text is withheld
GONE = "[…]"  # contains no letter, so nothing ever matches it
ROUNDS = 20
STRIDES = 3  # turns from here on are every second letter, third and fourth


@dataclass(frozen=True, slots=True)
class Redacted:
    """The text that may be shown. ``gaps`` counts the places where something was removed.

    ``disguised``: some of it was encoded, backwards or in another alphabet, as no quotation is. ``parts`` is the
    original text, cut at the gaps: (text, whether it was removed).
    """

    text: str
    gaps: int = 0
    withheld: bool = False
    disguised: bool = field(default=False, compare=False)
    parts: tuple[tuple[str, bool], ...] = field(default=(), compare=False, repr=False)


def _is_disguised(matches: Sequence[tuple[tuple[int, int], bool]]) -> bool:
    """Whether one of these stretches neither is nor overlaps an open quotation."""
    open_ones = {span for span, open_one in matches if open_one}
    return any(
        not open_one and not any(low < end and start < high for low, high in open_ones)
        for (start, end), open_one in matches
    )


def redact(text: str, hidden: Iterable[str]) -> Redacted:
    """The text without anything it shares with the hidden texts."""
    needles = _Needles.of([one for one in hidden if one.strip()])
    if text and (len(text) > LONGEST or needles.shortest <= UNHIDEABLE):
        return Redacted("", withheld=True, parts=((text, True),))
    original, places, disguised = text, list(range(len(text))), False
    for _ in range(ROUNDS):  # a removal can bring together the text around it
        matches = list(_shared(text, needles))
        if not matches:
            parts = tuple(_parts(original, set(places)))
            return Redacted(text, text.count(GONE), disguised=disguised, parts=parts)
        disguised |= _is_disguised(matches)
        spans = _merged(text, [span for span, _ in matches])
        text, places = _without(text, places, spans)
    return Redacted("", withheld=True, parts=((original, True),))


# -- what to look for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Needles:
    """The hidden texts, cut up for the search: runs of words and of letters, and short texts whole.

    ``turned`` holds the same as steps from letter to letter, which no shift of the alphabet changes.
    """

    runs: frozenset[str]
    grams: frozenset[str]
    whole: frozenset[str]
    turned: frozenset[str]
    shortest: int

    @classmethod
    def of(cls, hidden: Sequence[str]) -> "_Needles":
        runs: set[str] = set()
        grams: set[str] = set()
        short_texts: set[str] = set()
        turned: set[str] = set()
        sizes = [LETTERS]
        for text in hidden:
            text_letters = letters(plain(text))
            sizes.append(len(text_letters.letters))
            runs.update(run for run, _, _ in _runs(text_letters))
            grams.update(
                text_letters.letters[at : at + LETTERS] for at in range(len(text_letters.letters) - LETTERS + 1)
            )
            if len(text_letters.starts) < WINDOW or len(text_letters.letters) < LETTERS:
                short_texts.add(text_letters.letters)
            steps = _steps(text_letters.letters)
            turned.update(steps[start + 1 : end] for _, start, end in _runs(text_letters))
            turned.update(steps[at + 1 : at + LETTERS] for at in range(len(text_letters.letters) - LETTERS + 1))
        turned = {run for run in turned if len(_STEP.findall(run)) >= SHIFTED - 1}
        return cls(frozenset(runs), frozenset(grams), frozenset(short_texts), frozenset(turned), min(sizes))

    @property
    def least(self) -> int:
        """The number of letters below which nothing can match."""
        return min([LETTERS, *map(len, self.runs), *map(len, self.whole)])


def _runs(found: Letters) -> Iterator[tuple[str, int, int]]:
    """Every run of WINDOW words, with the position of its letters."""
    edges = [*found.starts, len(found.letters)]
    for start, end in zip(edges, edges[WINDOW:], strict=False):
        yield found.letters[start:end], start, end


_LATIN = "abcdefghijklmnopqrstuvwxyz"
_AFTER_OTHER = "\ue100"
_STEP = re.compile("[\ue000-\ue0ff]")
_STEPS = {a + b: chr(0xE000 + (ord(b) - ord(a)) % 26) for a in _LATIN for b in _LATIN}


def _steps(text: str) -> str:
    """The distance of each Latin letter from the previous one in the alphabet; other characters as they are."""
    pairs = map(str.__add__, text, text[1:])
    steps = [_STEPS.get(pair) or (_AFTER_OTHER if "a" <= pair[1] <= "z" else pair[1]) for pair in pairs]
    return text[:1] + "".join(steps)


def _matches(found: Letters, needles: _Needles, *, plainly: bool, shifts: bool) -> Iterator[tuple[int, int]]:
    """Shared stretches of letters, [start, end); unless ``plainly``, of SHIFTED letters or more.

    ``shifts``: also under shifts of the alphabet.
    """
    text = found.letters
    begins, ends = _ends_of_words(found)
    least = 1 if plainly else SHIFTED
    runs = list(_runs(found))
    for run, start, end in runs:
        if run in needles.runs and end - start >= least:
            yield start, end
    yield from _grams(text, needles.grams, 0)
    for needle in needles.whole:
        if len(needle) >= least:
            yield from _places(needle, text, begins, ends)
    if shifts:
        yield from _shifted_matches(found, needles, runs)


def _shifted_matches(
    found: Letters, needles: _Needles, runs: Iterable[tuple[str, int, int]]
) -> Iterator[tuple[int, int]]:
    """Stretches that are shared under a shift of the alphabet."""
    begins, ends = _ends_of_words(found)
    steps = _steps(found.letters)
    for _, start, end in runs:
        if steps[start + 1 : end] in needles.turned:
            yield start, end
    yield from _grams(steps, needles.turned, 1)
    for needle in needles.whole:
        if len(needle) >= SHIFTED and not needle.isdecimal():
            yield from _places(_steps(needle)[1:], steps, begins, ends, before=1)


def _ends_of_words(found: Letters) -> tuple[set[int], set[int]]:
    """Where words start, and where they end."""
    return set(found.starts), {*found.starts[1:], len(found.letters)}


def _grams(text: str, needles: frozenset[str], before: int) -> Iterator[tuple[int, int]]:
    """Where LETTERS in a row are known, ignoring the first ``before`` of them."""
    grams = [text[at + before : at + LETTERS] for at in range(len(text) - LETTERS + 1)]
    if not needles.isdisjoint(grams):
        yield from ((at, at + LETTERS) for at, gram in enumerate(grams) if gram in needles)


def _places(needle: str, text: str, begins: set[int], ends: set[int], *, before: int = 0) -> Iterator[tuple[int, int]]:
    """Where it occurs whole, between word boundaries; ``before`` letters in front of it belong to it."""
    at = text.find(needle, before)
    while at >= 0:
        start, end = at - before, at + len(needle)
        if start in begins and end in ends:
            yield start, end
        at = text.find(needle, at + 1)


# -- looking everywhere ---------------------------------------------------------------------------------------------


def _shared(text: str, needles: _Needles) -> Iterator[tuple[tuple[int, int], bool]]:
    """Stretches of the text to remove, and whether each is an open quotation."""
    if not needles.runs and not needles.whole:
        return
    least = max(needles.least, UNHIDEABLE + 1)
    for number, view in enumerate(views(plain(text), DEPTH, least)):
        view_letters = letters(view)
        if len(view_letters.letters) < least:
            continue
        for turn, turned in enumerate(_turns(view_letters)):
            for start, end in _matches(turned, needles, plainly=not turn, shifts=turn < STRIDES):
                openly = not number and not turn and _is_open(turned.letters[start:end], needles)
                yield _hull(turned.spans[start:end]), openly


def _hull(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return min(low for low, _ in spans), max(high for _, high in spans)


def _is_open(stretch: str, needles: _Needles) -> bool:
    return stretch in needles.runs or stretch in needles.grams or stretch in needles.whole


def _turns(found: Letters) -> Iterator[Letters]:
    """The letters forwards, backwards, word by word backwards, and every second, third and fourth letter."""
    yield found
    size = len(found.letters)
    ends = [*found.starts, size][1:]
    yield Letters(found.letters[::-1], [size - end for end in reversed(ends)], found.spans[::-1])
    turned_letters = ""
    turned_starts: list[int] = []
    turned_spans: list[tuple[int, int]] = []
    for start, end in reversed(list(zip(found.starts, ends, strict=True))):
        turned_starts.append(len(turned_letters))
        turned_letters += found.letters[start:end]
        turned_spans += found.spans[start:end]
    yield Letters(turned_letters, turned_starts, turned_spans)
    for stride in (2, 3, 4):
        for first in range(stride):
            yield Letters(found.letters[first::stride], [0], found.spans[first::stride])


# -- taking out -----------------------------------------------------------------------------------------------------


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and _in_word(text[start - 1]) and _in_word(text[start]):
        start -= 1
    while end < len(text) and _in_word(text[end - 1]) and _in_word(text[end]):
        end += 1
    return start, end


def _merged(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches extended to whole words; those separated only by punctuation are merged."""
    merged: list[tuple[int, int]] = []
    for span in sorted(set(spans)):
        start, end = _whole_words(text, *span)
        if merged and (start <= merged[-1][1] or not words(text[merged[-1][1] : start])):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _in_word(char: str) -> bool:
    return folded(char) != " " and not is_ideograph(char)


def _without(text: str, places: Sequence[int], spans: Sequence[tuple[int, int]]) -> tuple[str, list[int]]:
    """The text with gaps, and for each of its characters the original position, -1 inside a gap."""
    parts: list[str] = []
    positions: list[int] = []
    last = 0
    for start, end in [*spans, (len(text), len(text))]:
        parts.append(text[last:start])
        positions += places[last:start]
        if start < len(text):
            parts.append(GONE)
            positions += [-1] * len(GONE)
        last = end
    return "".join(parts), positions


def _parts(original: str, remaining: set[int]) -> Iterator[tuple[str, bool]]:
    at = 0
    for end in range(1, len(original) + 1):
        if end == len(original) or (end in remaining) != (at in remaining):
            yield original[at:end], at not in remaining
            at = end
