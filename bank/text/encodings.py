"""How a text can be written: its letters as they compare, and what it holds in an encoding.

Pure functions that the redactor (``bank.text.redactor``) and the search for lookalikes of criteria
(``bank.text.similarity``) share. Each decoded character keeps the span of the original text that it came from.
"""

import base64
import binascii
import html
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

UNPACKED = 50_000  # bytes that a compressed text is read to

# Letters of other scripts, and the Latin ones that they are drawn like.
_PAIRS = """
    аa вb еe кk мm нh оo рp сc тt уy хx іi ѕs јj ԁd ԛq ԝw һh ԍg ьb ӏl ҽe гr пn лn ѵv ꙅs
    αa βb γy εe ζz ηn ιi κk μu νv οo ρp τt υu χx ωw ςs σo
    ɑa ɡg ɩi ʏy ɴn ʀr ʟl ʜh ɪi ʙb ɢg ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz ꜱs øo łl đd ıi ȷj ħh ŧt
    օo սu հh ոn ցg զq ѡw ꞓc ǀl
"""
_ALIKE = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_ALIKE |= {0x1F1E6 + place: letter for place, letter in enumerate(_LATIN)}  # the letters that flags are made of
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"  # drawn as nothing, though they count as letters or signs


# -- what a reader sees ---------------------------------------------------------------------------------------------


_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SELECTORS = "\u034f\u180b\u180c\u180d\u180f" + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


def visible(text: str) -> str:
    """The text as a reader sees it: what is drawn as nothing is gone, each run of white space is one space, or one end
    of a line, or one blank line. Otherwise they carry bits past the people who read it.
    """
    lines = _LINE_ENDS.sub("\n", text)
    shown = "".join(" " if char in _FILLERS else char for char in lines if not _is_unseen(char))
    single = re.sub(r" ?\n ?", "\n", re.sub(r"[^\S\n]+", " ", shown))
    return re.sub(r"\n{3,}", "\n\n", single).strip()


def _is_unseen(char: str) -> bool:
    return char in _SELECTORS or (not char.isspace() and unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn"))


# -- reading a text as its letters ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """Characters, and the span of the original text that each was made from."""

    chars: str
    spans: Sequence[tuple[int, int]]

    def part(self, start: int, end: int) -> "View":
        return View(self.chars[start:end], self.spans[start:end])


@dataclass(frozen=True, slots=True)
class Letters:
    """The comparable letters and digits of a view, where words start, and where each came from."""

    letters: str
    starts: Sequence[int]  # of words, ascending
    spans: Sequence[tuple[int, int]]

    def words(self) -> list[str]:
        ends = [*self.starts, len(self.letters)][1:]
        return [self.letters[start:end] for start, end in zip(self.starts, ends, strict=True)]


@lru_cache(maxsize=20_000)
def folded(char: str) -> str:
    """A character as it is compared: letters and digits, " " at the end of a word, or "" if it is invisible."""
    if char in _FILLERS:
        return ""
    result = ""
    for part in unicodedata.normalize("NFKD", char.casefold()).casefold().translate(_ALIKE):
        if part.isalnum():
            result += part
        elif unicodedata.category(part) not in ("Mn", "Me", "Cf"):
            result += " "
    return result.strip() or ("" if not result else " ")


def is_ideograph(char: str) -> bool:
    """Whether a letter is a word by itself, as in Chinese and Japanese."""
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or char >= "\U00020000"


def _sign_by_sign(folds: str, view: View) -> Letters:
    """Of a view of which each sign folds to one."""
    starts: list[int] = []
    spans: list[tuple[int, int]] = []
    for word in _WORD.finditer(folds):
        starts.append(len(spans))
        spans += view.spans[word.start() : word.end()]
    return Letters(folds.replace(" ", ""), starts, spans)


def letters(view: View) -> Letters:
    """The letters and digits of a view, and where its words start."""
    chars: list[str] = []
    starts: list[int] = []
    spans: list[tuple[int, int]] = []
    folds = list(map(folded, view.chars))
    joined = "".join(folds)
    if len(joined) == len(folds) and "" not in folds and not _ALONE.search(joined):  # sign by sign: the usual, quickly
        return _sign_by_sign(joined, view)
    between = True
    for char, span in zip(view.chars, view.spans, strict=True):
        for part in folded(char):
            if part == " ":
                between = True
                continue
            alone = part > "\u303f" and is_ideograph(part)
            if between or alone:
                starts.append(len(chars))
            chars.append(part)
            spans.append(span)
            between = alone
    return Letters("".join(chars), starts, spans)


_WORD = re.compile("[^ ]+")
_ALONE = re.compile("[\u3040-\u30ff\u3400-\u9fff\U00020000-\U0010ffff]")


def plain(text: str) -> View:
    """A text as it stands."""
    return View(text, [(at, at + 1) for at in range(len(text))])


def words(text: str) -> list[str]:
    """The comparable words of a text."""
    return letters(plain(text)).words()


def views(view: View, depth: int, least: int = 4) -> Iterator[View]:
    """The text itself, and everything encoded in it that has ``least`` characters or more."""
    yield view
    if depth and len(view.chars) >= least:
        for decode in (_unescaped, _from_base64, _from_hex, _from_runs, _unlaced, _turned_round):
            for inner in decode(view, least):
                if len(inner.chars) >= least:
                    yield from views(inner, depth - 1, least)


_ESCAPE = re.compile(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});|(?:[%=][0-9a-f]{2})+"
    r"|\\u\{?[0-9a-f]{4,6}\}?|\\U[0-9a-f]{8}|(?:\\x[0-9a-f]{2})+|\\[nrt\"'/\\]",
    re.IGNORECASE,
)


def _unescaped(view: View, least: int) -> Iterator[View]:
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
        yield View("".join(chars) + view.chars[last:], [*spans, *view.spans[last:]])


def _meaning(escape: str) -> str:
    """The character that an escape stands for; itself if it stands for none."""
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


def _visible_places(view: View) -> list[int]:
    return [at for at, char in enumerate(view.chars) if not char.isspace() and folded(char)]


def _from_base64(view: View, least: int) -> Iterator[View]:
    """Everything that decodes as base64, at each of four offsets: run by run, and across spaces and line ends."""
    for places in (range(len(view.chars)), _visible_places(view)):
        for run in _BASE64.finditer("".join([view.chars[at] for at in places])):
            code_run = run[0].translate(_URLSAFE) if len(run[0]) >= least else ""
            for offset in range(4 if code_run else 0):
                code = code_run[offset:]
                code = code[: len(code) - (len(code) % 4 == 1)]
                data = base64.b64decode(code + "=" * (-len(code) % 4))
                start = run.start() + offset
                if not _is_readable(data, least):
                    continue
                # The byte n comes from the characters 4n/3 and the one after it.
                origin = [(places[start + at * 4 // 3], places[start + at * 4 // 3 + 1]) for at in range(len(data))]
                yield from _readable(view, data, origin, least)


_HEX = re.compile(r"(?:(?:0x)?[0-9a-f]{2}[\s:,;._-]{0,2}){4,}", re.IGNORECASE)


def _from_hex(view: View, least: int) -> Iterator[View]:
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
            yield from _readable(view, data, pairs, least)


@lru_cache(maxsize=64)
def _stretch(least: int) -> re.Pattern[str]:
    """Readable characters in a row, half as many as required: some look like one and decode to several."""
    return re.compile(rf"[^\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]{{{max(4, least // 2)},}}")


def _readable(view: View, data: bytes, origin: Sequence[tuple[int, int]], least: int) -> Iterator[View]:
    """The readable stretches of decoded bytes; ``origin`` gives each byte's first and last place in the view."""
    if _is_packed(data) or _is_wide(data):
        yield from _whole(view, data, origin[0][0], origin[-1][1] + 1)
    chars = data.decode(errors="surrogateescape")
    if not _stretch(least).search(chars):
        return
    spans, at = [], 0
    for char in chars:
        size = 1 if "\udc80" <= char <= "\udcff" else len(char.encode())
        spans.append((view.spans[origin[at][0]][0], view.spans[origin[at + size - 1][1]][1]))
        at += size
    decoded = View(chars, spans)
    for stretch in _stretch(least).finditer(chars):
        yield decoded.part(*stretch.span())


def _is_packed(data: bytes) -> bool:
    """Whether it starts like gzip or zlib."""
    return data[:2] in (b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")


def _is_wide(data: bytes) -> bool:
    """Whether every other byte is 0, as in UTF-16."""
    return len(data) >= 8 and data.count(0) * 3 > len(data)


def _is_readable(data: bytes, least: int) -> bool:
    recognised = _is_packed(data) or _is_wide(data)
    return recognised or bool(_stretch(least).search(data.decode(errors="surrogateescape")))


def _whole(view: View, data: bytes, start: int, end: int) -> Iterator[View]:
    """The text of bytes that are decoded completely or not at all, decompressed if needed."""
    if _is_packed(data):
        try:
            data = zlib.decompressobj(wbits=47).decompress(data, UNPACKED)
        except zlib.error:
            return
    chars = data.replace(b"\0", b"").decode(errors="replace")
    if sum(char.isalnum() or char.isspace() for char in chars) * 10 >= len(chars) * 6:
        yield View(chars, [(view.spans[start][0], view.spans[end - 1][1])] * len(chars))


# -- runs that are read whole ---------------------------------------------------------------------------------------

_MORSE = dict(
    zip(
        ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. "
        "----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----.".split(),
        "abcdefghijklmnopqrstuvwxyz0123456789",
        strict=True,
    )
)


def _base32(run: str) -> bytes:
    code = run.upper().rstrip("=")
    code = code[: len(code) - {1: 1, 3: 1, 6: 1}.get(len(code) % 8, 0)]
    return base64.b32decode(code + "=" * (-len(code) % 8))


def _numbers(run: str) -> bytes:
    return "".join(chr(int(number)) for number in re.findall(r"\d+", run)).encode(errors="replace")


def _octals(run: str) -> bytes:
    return "".join(chr(int(number, 8)) for number in re.findall(r"[0-7]+", run)).encode(errors="replace")


def _in_alphabet(run: str) -> bytes:
    """Letters by their place in the alphabet, counted from 1, or from 0 where there is one."""
    places = re.findall(r"\d+|[/|]|\s{2,}", run)
    first = 0 if "0" in places else 1
    return "".join(f"{_LATIN} "[int(place) - first] if place.isdigit() else " " for place in places).encode()


# By which people spell over the telephone: each word stands for its first letter.
_SPELLED = (
    "alfa alpha bravo charlie delta echo foxtrot golf hotel india juliet juliett kilo lima mike november oscar papa "
    "quebec romeo sierra tango uniform victor whiskey whisky xray x-ray yankee zulu".split()
)


def _spelled(run: str) -> bytes:
    return "".join(word[0] for word in re.findall(r"[a-z-]+", run.lower())).encode()


def _bits(run: str) -> bytes:
    bits = re.sub(r"\D", "", run)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))


def _morse(run: str) -> bytes:
    plain_signs = run.translate(str.maketrans("·•−–—", "..---"))
    return "".join(_MORSE.get(sign, " ") for sign in re.findall(r"[.-]+|[/|]|\s{2,}", plain_signs)).encode()


_RUNS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (re.compile(r"\b(?:[A-Z2-7]{16,}|[a-z2-7]{24,})={0,6}"), _base32),
    (re.compile(r"[!-u]{20,}"), base64.a85decode),
    (re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{20,}"), base64.b85decode),
    (re.compile(r"\d{2,4}(?:[\s,;:._-]{1,2}\d{2,4}){7,}"), _numbers),
    (re.compile(r"\b[0-7]{2,3}(?:[\s,;:._-]{1,2}[0-7]{2,3}){7,}"), _octals),
    (re.compile(r"\b(?:1?\d|2[0-6])(?:[\s,;:._/|-]{1,3}(?:1?\d|2[0-6])\b){7,}"), _in_alphabet),
    (re.compile(rf"\b(?:(?:{'|'.join(_SPELLED)})\b[\W_]*){{8,}}", re.IGNORECASE), _spelled),
    (re.compile(r"[01]{7,8}(?:[\s,;:._-]{0,2}[01]{7,8}){5,}"), _bits),
    (re.compile(r"(?:[.\-·•−–—]{1,5}[ /|\n]{1,3}){8,}[.\-·•−–—]{0,5}"), _morse),
)


def _from_runs(view: View, least: int) -> Iterator[View]:
    """Base32, base85, character codes, places in the alphabet, spelling words, binary and Morse: found by their
    appearance, decoded as a whole.
    """
    for pattern, decode in _RUNS:
        for run in pattern.finditer(view.chars):
            try:
                data = decode(run[0])
            except (ValueError, binascii.Error, OverflowError):
                continue
            if data:
                yield from _whole(view, data, *run.span())


# Letters that stand on their heads, and what each is; those that are letters themselves only where others stand so.
_HEADS = str.maketrans("ɐqɔpǝɟƃɓɥᴉıɾʞןɯuodbɹsʇnʌʍxʎz", "abcdefgghiijklmnopqrstuvwxyz")
_ON_HEAD = frozenset("ɐɔǝɟƃɓɥᴉɾʞןɯɹʇʌʍʎ")


def _turned_round(view: View, least: int) -> Iterator[View]:
    """The text with letters that stand on their heads put upright."""
    if len(_ON_HEAD.intersection(view.chars)) >= 3:
        yield View(view.chars.translate(_HEADS), view.spans)


_LACED = re.compile(r"[^\n](\w{1,3}?)(?:[^\n]\1){3,}")


def _unlaced(view: View, least: int) -> Iterator[View]:
    """The text without one to three letters inserted after each one: "cxoxuxnxt"."""
    places, last = [], 0
    for match in _LACED.finditer(view.chars):
        places += [*range(last, match.start()), *range(match.start(), match.end(), 1 + len(match[1]))]
        last = match.end()
    if places:
        places += range(last, len(view.chars))
        yield View("".join(view.chars[at] for at in places), [view.spans[at] for at in places])
