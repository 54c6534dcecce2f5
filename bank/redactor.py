"""Takes hidden criteria out of what a judge wrote, before anybody below staff reads it.

Pure functions: text in, text out. What goes:

* a run of ``WINDOW`` or more words that a criterion has too, whatever stands between the words;
* ``LETTERS`` or more letters and digits in a row that a criterion has too, however they are spaced;
* a criterion of fewer words or letters wherever it stands whole, between word boundaries.

Case, accents, punctuation, invisible characters and letters of other scripts that look alike make no difference. The
same is looked for backwards, under every shift of the alphabet (rot13), behind HTML, URL and backslash escapes, and in
base64 and hexadecimal, also of one another. A criterion of at most ``UNHIDEABLE`` letters, "B" or "yes", cannot be
taken out, for each gap would tell it: then the whole text is withheld.

What it cannot find: translations, paraphrases, other ciphers, a criterion told one word at a time. Releasing analyses
is therefore a curator's decision, run by run.
"""

import base64
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

WINDOW = 5  # words
LETTERS = 28
UNHIDEABLE = 3
SHIFTED = 8  # letters that a match under a shifted alphabet has at least: shorter words turn into one another
DEPTH = 2  # encodings within encodings
LONGEST = 100_000  # characters; a longer text is withheld
GONE = "[…]"  # holds no letter, so nothing ever matches it
ROUNDS = 20

# Letters of other scripts, and the Latin ones that they are drawn like.
_PAIRS = """
    аa вb еe кk мm нh оo рp сc тt уy хx іi ѕs јj ԁd ԛq ԝw һh ԍg ьb ӏl ҽe гr пn лn ѵv ꙅs
    αa βb γy εe ζz ηn ιi κk μu νv οo ρp τt υu χx ωw ςs σo
    ɑa ɡg ɩi ʏy ɴn ʀr ʟl ʜh ɪi ʙb ɢg ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz ꜱs øo łl đd ıi ȷj ħh ŧt
    օo սu հh ոn ցg զq ѡw ꞓc ǀl
"""
_ALIKE = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"  # drawn as nothing, though they count as letters or signs


@dataclass(frozen=True, slots=True)
class Redacted:
    """What may be shown. ``gaps`` counts the places where something was taken out."""

    text: str
    gaps: int = 0
    withheld: bool = False


def redact(text: str, hidden: Iterable[str]) -> Redacted:
    """The text without what it shares with any of the hidden ones."""
    needles = [_needle(one) for one in hidden if one.strip()]
    if text and (len(text) > LONGEST or any(len(needle.letters) <= UNHIDEABLE for needle in needles)):
        return Redacted("", withheld=True)
    for _ in range(ROUNDS):  # what is taken out can bring together what stood around it
        spans = _shared(text, needles)
        if not spans:
            return Redacted(text, gaps=text.count(GONE))
        text = _without(text, spans)
    return Redacted("", withheld=True)


# -- reading a text as its letters ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _View:
    """Characters, and the stretch of the original text that each was made from."""

    chars: str
    spans: Sequence[tuple[int, int]]

    def part(self, start: int, end: int) -> "_View":
        return _View(self.chars[start:end], self.spans[start:end])


@dataclass(frozen=True, slots=True)
class _Letters:
    """The letters and digits of a view as they compare, where words start, and where each came from."""

    letters: str
    starts: Sequence[int]  # of words, ascending
    spans: Sequence[tuple[int, int]]

    def words(self) -> list[str]:
        ends = [*self.starts, len(self.letters)][1:]
        return [self.letters[start:end] for start, end in zip(self.starts, ends, strict=True)]


@lru_cache(maxsize=20_000)
def _folded(char: str) -> str:
    """What a character compares as: letters and digits, " " where a word ends, or "" where it is not seen."""
    if char in _FILLERS:
        return ""
    result = ""
    for part in unicodedata.normalize("NFKD", char.casefold()).casefold().translate(_ALIKE):
        if part.isalnum():
            result += part
        elif unicodedata.category(part) not in ("Mn", "Me", "Cf"):
            result += " "
    return result.strip() or ("" if not result else " ")


def _is_ideograph(char: str) -> bool:
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or char >= "\U00020000"


def _letters(view: _View) -> _Letters:
    letters: list[str] = []
    starts: list[int] = []
    spans: list[tuple[int, int]] = []
    between = True
    for char, span in zip(view.chars, view.spans, strict=True):
        for part in _folded(char):
            if part == " ":
                between = True
                continue
            if between or _is_ideograph(part):
                starts.append(len(letters))
            letters.append(part)
            spans.append(span)
            between = _is_ideograph(part)
    return _Letters("".join(letters), starts, spans)


def _plain(text: str) -> _View:
    return _View(text, [(at, at + 1) for at in range(len(text))])


def words(text: str) -> list[str]:
    """The words of a text as they compare."""
    return _letters(_plain(text)).words()


# -- what to look for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Needle:
    """A hidden text. ``whole`` says that it is short and looked for as a whole."""

    letters: str
    windows: frozenset[tuple[str, ...]]
    grams: frozenset[str]
    whole: bool


def _needle(text: str) -> _Needle:
    found = _letters(_plain(text))
    listed = found.words()
    size = len(found.letters)
    return _Needle(
        letters=found.letters,
        windows=frozenset(tuple(listed[at : at + WINDOW]) for at in range(len(listed) - WINDOW + 1)),
        grams=frozenset(found.letters[at : at + LETTERS] for at in range(size - LETTERS + 1)),
        whole=len(listed) < WINDOW or size < LETTERS,
    )


def _matches(found: _Letters, needles: Sequence[_Needle], *, least: int = 1) -> Iterator[tuple[int, int]]:
    """Stretches of letters, [start, end), that are shared; each of ``least`` letters or more."""
    letters, size = found.letters, len(found.letters)
    edges = [*found.starts, size]
    known, begins, ends = found.words(), set(found.starts), set(edges[1:])
    windows = [tuple(known[at : at + WINDOW]) for at in range(len(known) - WINDOW + 1)]
    grams = [letters[at : at + LETTERS] for at in range(size - LETTERS + 1)]
    for needle in needles:
        if needle.windows:
            for at, window in enumerate(windows):
                if window in needle.windows and edges[at + WINDOW] - edges[at] >= least:
                    yield edges[at], edges[at + WINDOW]
        if needle.grams:
            for at, gram in enumerate(grams):
                if gram in needle.grams:
                    yield at, at + LETTERS
        if needle.whole and len(needle.letters) >= least:
            at = letters.find(needle.letters)
            while at >= 0:
                end = at + len(needle.letters)
                if at in begins and end in ends:
                    yield at, end
                at = letters.find(needle.letters, at + 1)


# -- looking everywhere ---------------------------------------------------------------------------------------------


def _shared(text: str, needles: Sequence[_Needle]) -> list[tuple[int, int]]:
    """Stretches of the text to take out, whole words each, in order and apart from one another."""
    if not needles:
        return []
    spans = []
    for view in _views(_plain(text), DEPTH):
        found = _letters(view)
        if len(found.letters) <= UNHIDEABLE:
            continue
        for turned, least in _turns(found):
            for start, end in _matches(turned, needles, least=least):
                origin = turned.spans[start:end]
                spans.append((min(low for low, _ in origin), max(high for _, high in origin)))
    return _merged(text, spans)


def _turns(found: _Letters) -> Iterator[tuple[_Letters, int]]:
    """The letters forwards, backwards, word by word backwards, and under every shift of the alphabet."""
    yield found, 1
    size = len(found.letters)
    ends = [*found.starts, size][1:]
    yield _Letters(found.letters[::-1], [size - end for end in reversed(ends)], found.spans[::-1]), SHIFTED
    turned_letters = ""
    turned_starts: list[int] = []
    turned_spans: list[tuple[int, int]] = []
    for start, end in reversed(list(zip(found.starts, ends, strict=True))):
        turned_starts.append(len(turned_letters))
        turned_letters += found.letters[start:end]
        turned_spans += found.spans[start:end]
    yield _Letters(turned_letters, turned_starts, turned_spans), SHIFTED
    for table in _SHIFTS:
        yield _Letters(found.letters.translate(table), found.starts, found.spans), SHIFTED


_LATIN = "abcdefghijklmnopqrstuvwxyz"
_SHIFTS = [str.maketrans(_LATIN, _LATIN[by:] + _LATIN[:by]) for by in range(1, 26)]


def _views(view: _View, depth: int) -> Iterator[_View]:
    """The text itself, and whatever it holds in an encoding."""
    yield view
    if depth:
        for decode in (_unescaped, _from_base64, _from_hex):
            for inner in decode(view):
                yield from _views(inner, depth - 1)


_ESCAPE = re.compile(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});|(?:[%=][0-9a-f]{2})+"
    r"|\\u\{?[0-9a-f]{4,6}\}?|\\U[0-9a-f]{8}|(?:\\x[0-9a-f]{2})+|\\[nrt\"'/\\]",
    re.IGNORECASE,
)


def _unescaped(view: _View) -> Iterator[_View]:
    chars: list[str] = []
    spans: list[tuple[int, int]] = []
    last = 0
    for match in _ESCAPE.finditer(view.chars):
        start, end = match.span()
        chars.append(view.chars[last:start])
        spans += view.spans[last:start]
        meant = _meaning(match[0])
        chars.append(meant)
        spans += [(view.spans[start][0], view.spans[end - 1][1])] * len(meant)
        last = end
    if last:
        yield _View("".join(chars) + view.chars[last:], [*spans, *view.spans[last:]])


def _meaning(escape: str) -> str:
    """What an escape stands for; itself where it stands for nothing."""
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[0] in "%=" or escape[:2].lower() == "\\x":
        return bytes.fromhex(re.sub(r"[%=]|\\x", "", escape, flags=re.IGNORECASE)).decode(errors="replace")
    if escape[1] in "uU":
        code = int(escape[2:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else escape
    return " " if escape[1] in "nrt" else escape[1]


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}")
_URLSAFE = str.maketrans("-_", "+/")


def _from_base64(view: _View) -> Iterator[_View]:
    """Whatever reads as base64, at each of four offsets: run by run, and over spaces and line ends."""
    seen = [at for at, char in enumerate(view.chars) if not char.isspace() and _folded(char)]
    for places in (range(len(view.chars)), seen):
        for run in _BASE64.finditer("".join(view.chars[at] for at in places)):
            for offset in range(4):
                code = run[0][offset:].translate(_URLSAFE)
                code = code[: len(code) - (len(code) % 4 == 1)]
                data = base64.b64decode(code + "=" * (-len(code) % 4))
                start = run.start() + offset
                # The byte n comes from the characters 4n/3 and the one after it.
                origin = [(places[start + at * 4 // 3], places[start + at * 4 // 3 + 1]) for at in range(len(data))]
                yield from _readable(view, data, origin)


_HEX = re.compile(r"(?:(?:0x)?[0-9a-f]{2}[\s:,;._-]{0,2}){4,}", re.IGNORECASE)


def _from_hex(view: _View) -> Iterator[_View]:
    for run in _HEX.finditer(view.chars):
        marks = {run.start() + match.start() for match in re.finditer(r"0x", run[0], re.IGNORECASE)}
        digits = [
            at
            for at in range(*run.span())
            if view.chars[at] in "0123456789abcdefABCDEF" and at not in marks and at - 1 not in marks
        ]
        for offset in range(2):
            pairs = list(zip(digits[offset::2], digits[offset + 1 :: 2], strict=False))
            data = bytes(int(view.chars[high] + view.chars[low], 16) for high, low in pairs)
            yield from _readable(view, data, pairs)


_READABLE = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]{4,}")


def _readable(view: _View, data: bytes, origin: Sequence[tuple[int, int]]) -> Iterator[_View]:
    """The readable stretches of decoded bytes; ``origin`` gives each byte's first and last place in the view."""
    chars = data.decode(errors="surrogateescape")
    if not _READABLE.search(chars):
        return
    spans, at = [], 0
    for char in chars:
        size = 1 if "\udc80" <= char <= "\udcff" else len(char.encode())
        spans.append((view.spans[origin[at][0]][0], view.spans[origin[at + size - 1][1]][1]))
        at += size
    whole = _View(chars, spans)
    for stretch in _READABLE.finditer(chars):
        yield whole.part(*stretch.span())


# -- taking out -----------------------------------------------------------------------------------------------------


def _merged(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches drawn out to whole words; those with nothing but signs between them are one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        while start > 0 and _in_word(text[start - 1]) and _in_word(text[start]):
            start -= 1
        while end < len(text) and _in_word(text[end - 1]) and _in_word(text[end]):
            end += 1
        if merged and (start <= merged[-1][1] or not words(text[merged[-1][1] : start])):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _in_word(char: str) -> bool:
    return _folded(char) != " " and not _is_ideograph(char)


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], GONE]
        last = end
    return "".join([*parts, text[last:]])
