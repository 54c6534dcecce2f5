"""What a judge's analysis shares with hidden criteria is taken out, however it is written; the rest stays."""

import base64
import codecs
import html
import json
import re
import unicodedata
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank.text.encodings import words
from bank.text.redactor import GONE, LONGEST, redact

LONG = "Counts exactly seventeen red lanterns above the narrow bridge, and says that two of them are not lit."
OTHER = "Names the ferry terminal's architect and the year in which it was rebuilt."
SHORT = "Golden pagoda"
NUMBER = "48.8584"
CJK = "正确回答应指出图中共有十七个红色灯笼"
BEFORE, AFTER = "Both answers name the place. ", " So the first answer is the better one."


def alike(text):
    return text.translate(str.maketrans("aceopxyi", "асеорхуі"))


def fullwidth(text):
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def bold(text):
    return "".join(chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else c for c in text.lower())


def b64(text):
    return base64.b64encode(text.encode()).decode()


def caesar(text, by):
    return "".join(chr((ord(c) - 97 + by) % 26 + 97) if "a" <= c <= "z" else c for c in text.lower())


SPELLED = """alfa bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec
    romeo sierra tango uniform victor whiskey xray yankee zulu""".split()
TELEPHONE = {word[0]: word for word in SPELLED}
ON_ITS_HEAD = str.maketrans("abcdefghijklmnopqrtuvwyz", "ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹʇnʌʍʎz")
WAYS = {
    "as it is": str,
    "upper case": str.upper,
    "swapped case": str.swapcase,
    "accents": lambda t: "".join(c + "\u0301" if c in "aeiou" else c for c in t),
    "no spaces": lambda t: t.replace(" ", ""),
    "underscores": lambda t: t.replace(" ", "_"),
    "dots between words": lambda t: t.replace(" ", " . "),
    "lines": lambda t: t.replace(" ", "\n"),
    "emphasis": lambda t: " ".join(f"**{w}**" for w in t.split()),
    "letters apart": lambda t: " ".join(t),
    "letters with hyphens": lambda t: "-".join(t),
    "zero width": lambda t: "\u200b".join(t),
    "soft hyphens": lambda t: "\u00ad".join(t),
    "word joiners and tags": lambda t: "\u2060\U000e0041".join(t),
    "hangul fillers": lambda t: "\u3164".join(t),
    "cyrillic": alike,
    "fullwidth": fullwidth,
    "mathematical bold": bold,
    "circled": lambda t: "".join(chr(0x24D0 + ord(c) - 97) if "a" <= c <= "z" else c for c in t.lower()),
    "decomposed": lambda t: unicodedata.normalize("NFD", t),
    "backwards": lambda t: t[::-1],
    "words backwards": lambda t: " ".join(reversed(t.split())),
    "rot13": lambda t: codecs.encode(t, "rot13"),
    "shift 7": lambda t: caesar(t, 7),
    "rot13 backwards in base64": lambda t: b64(t[::-1]),
    "html named": lambda t: html.escape(t).replace("e", "&#101;"),
    "html decimal": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "html hexadecimal": lambda t: "".join(f"&#x{ord(c):x};" for c in t),
    "url": urllib.parse.quote,
    "url, every letter": lambda t: "".join(f"%{b:02X}" for b in t.encode()),
    "url twice": lambda t: urllib.parse.quote("".join(f"%{b:02x}" for b in t.encode())),
    "quoted printable": lambda t: "".join(f"={b:02X}" for b in t.encode()),
    "json escapes": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "python escapes": lambda t: "".join(f"\\x{b:02x}" for b in t.encode()),
    "json string": lambda t: json.dumps(t.replace(" ", "\n")),
    "base64": b64,
    "base64 for urls": lambda t: base64.urlsafe_b64encode(t.encode()).decode().rstrip("="),
    "base64 in lines": lambda t: "\n".join(re.findall(".{1,20}", b64(t))),
    "base64 amid more": lambda t: b64(f"xy The hidden rule: {t} End."),
    "base64 after words": lambda t: f"token {b64('z' + t)}",
    "base64 of base64": lambda t: b64(b64(t)),
    "base64 of hexadecimal": lambda t: b64(t.encode().hex()),
    "base64 of rot13": lambda t: b64(codecs.encode(t, "rot13")),
    "hexadecimal": lambda t: t.encode().hex(),
    "hexadecimal, upper": lambda t: t.encode().hex().upper(),
    "hexadecimal, spaced": lambda t: t.encode().hex(" "),
    "hexadecimal, colons": lambda t: t.encode().hex(":"),
    "hexadecimal, 0x": lambda t: ", ".join(f"0x{b:02x}" for b in t.encode()),
    "hexadecimal of base64": lambda t: b64(t).encode().hex(),
    "spelled over the telephone": lambda t: " ".join(TELEPHONE[c] for c in t.lower() if c in TELEPHONE),
    "octal": lambda t: " ".join(f"{b:03o}" for b in t.encode()),
    "places in the alphabet": lambda t: " ".join(str(ord(c) - 96) if c.isalpha() else "/" for c in t.lower()),
    "places from 0": lambda t: "-".join(str(ord(c) - 97) for c in t.lower() if c.isalpha()),
    "letters of flags": lambda t: " ".join(chr(0x1F1E6 + ord(c) - 97) for c in t.lower() if c.isalpha()),
    "on its head": lambda t: t.lower()[::-1].translate(ON_ITS_HEAD),
    "every third letter": lambda t: "xy".join(c for c in t if c.isalnum()),
    "two letters after each": lambda t: "zq".join(t),
    "html of url": lambda t: html.escape("".join(f"%{b:02x}" for b in t.encode())).replace("%", "&#37;"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.check("A8")
def test_a_leak_is_taken_out_however_it_is_written_and_what_stands_around_it_stays(way):
    """Many ways to print a criterion."""
    leak = WAYS[way](LONG)
    shown = redact(f"{BEFORE}{leak}{AFTER}", [OTHER, LONG])
    assert shown.gaps >= 1
    assert not shown.withheld
    for at in range(len(leak) - 15):
        assert leak[at : at + 16] not in shown.text
    assert len(shown.text) < 90
    assert shown.text.startswith("Both answers name the")
    assert shown.text.endswith("first answer is the better one.")


@pytest.mark.parametrize("start", range(0, 12, 3))
def test_eight_words_of_a_criterion_go_and_words_in_common_stay(start):
    part = " ".join(LONG.split()[start : start + 8])
    assert redact(f"{BEFORE}It says {part} here.{AFTER}", [LONG]).text == f"{BEFORE}It says {GONE} here.{AFTER}"
    common = "Two red lanterns are lit above the bridge, says the answer; the narrow one is not."
    assert redact(common, [LONG]).text == common


@pytest.mark.parametrize(
    ("quoted", "goes"),
    [
        ("red lanterns above the narrow", True),
        ("red lanterns above the", False),
        ("ntsexactlyseventeenredlanter", True),
        ("ntsexactlyseventeenredlante", False),
    ],
    ids=["five words", "four words", "28 letters", "27 letters"],
)
def test_five_words_or_28_letters_in_a_row_are_a_quotation(quoted, goes):
    """The numbers that ADR 9 gives its reasons for."""
    assert redact(f"It says {quoted} here.", [LONG]).text == f"It says {GONE if goes else quoted} here."


@pytest.mark.parametrize(("short", "goes"), [("Lanterns", True), ("Lantern", False)])
def test_under_a_shifted_alphabet_eight_letters_are_a_match(short, goes):
    turned = codecs.encode(short, "rot13")
    assert redact(f"It says {turned} here.", [short]).text == f"It says {GONE if goes else turned} here."


@pytest.mark.parametrize(
    "way", ["as it is", "upper case", "zero width", "letters apart", "base64", "hexadecimal", "url"]
)
@pytest.mark.parametrize("short", [SHORT, NUMBER])
def test_a_short_criterion_goes_whole(short, way):
    shown = redact(f"{BEFORE}It is {WAYS[way](short)} there.{AFTER}", [short])
    assert shown.text.replace("==", "") == f"{BEFORE}It is {GONE} there.{AFTER}"


def test_a_short_criterion_is_no_part_of_a_longer_word():
    assert redact("The category is concatenated.", ["cate"]).text == "The category is concatenated."


def test_writing_without_spaces_is_read_sign_by_sign():
    shown = redact(f"第一个答案更好。图中共有十七个红色灯笼。所以选它。{b64(CJK)}", [CJK])
    assert "十七个红色灯笼" not in shown.text
    assert shown.text.startswith("第一个答案更好。")
    assert "所以选它。" in shown.text
    assert b64(CJK)[:12] not in shown.text


@pytest.mark.parametrize("key", ["B", "yes", "42", "√"])
def test_beside_a_key_of_a_letter_or_two_the_whole_text_is_withheld(key):
    """Whatever is left empty would tell it."""
    shown = redact("Option B is right, yes, and 42.", [LONG, key])
    assert (shown.text, shown.withheld) == ("", True)


def test_nothing_hidden_leaves_everything_and_a_huge_text_is_withheld():
    text = "A text with [brackets], ciphers QUJDREVG and 0xdeadbeef."
    assert redact(text, []).text == text
    assert redact(text, [LONG]).text == text
    assert redact("x " * LONGEST, [LONG]).withheld


def test_a_gap_brings_nothing_together_that_is_hidden():
    """What stands before and after one criterion can be another one."""
    inner = "alpha beta gamma delta epsilon"
    outer = "one two three four five six"
    shown = redact(f"one two three {inner} four five six", [inner, outer])
    assert windows(outer).isdisjoint(windows(shown.text))


def windows(text, size=5):
    listed = words(text)
    return {tuple(listed[at : at + size]) for at in range(len(listed) - size + 1)}


few = st.sampled_from("the red lantern above bridge two of them lit Lit brîdge 17 removed".split())
texts = st.lists(few, min_size=5, max_size=24)
between = st.sampled_from([" ", ", ", "\n", " **", "\u200b ", "... ", f" {GONE} "])


@settings(max_examples=50, deadline=None)
@given(texts, st.lists(texts, min_size=1, max_size=3), between)
def test_no_window_of_a_hidden_text_is_ever_left(said, hidden, separator):
    hidden = [" ".join(one) for one in hidden]
    shown = redact(separator.join(said), hidden)
    for one in hidden:
        assert windows(shown.text).isdisjoint(windows(one))


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=60), st.text(min_size=4, max_size=40))
def test_any_text_can_be_redacted_and_none_is_longer_after(said, hidden):
    shown = redact(said, [hidden])
    assert len(shown.text) <= len(said) + len(GONE) * shown.gaps
    assert redact(shown.text, [hidden]) == shown or shown.withheld
