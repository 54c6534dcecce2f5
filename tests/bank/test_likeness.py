"""What tells a hidden criterion in a disguise or in pieces is held back whole; what honest judges write is shown."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bank.text.encodings import visible
from bank.text.similarity import Initials, examine

CRITERION = "Recognises the dish as bouillabaisse and explains that the fish is served apart from the saffron broth."
OTHER = "Names the harbour town in the picture and the century in which its quay was built."
BEFORE = "Answer 1 speaks of the place in general terms and stays with what can be seen. "
AFTER = " Answer 2 guesses more than it looks, and its wording is loose. So the first one is better overall."
# The same criterion in the 28 spellings that were tried on an earlier version, of which 18 passed.
SPELLINGS = {
    "verbatim": (
        "Recognises the dish as bouillabaisse and explains that the fish is served apart from the saffron broth."
    ),
    "case": ("rECOGNISES THE DISH AS BOUILLABAISSE AND EXPLAINS THAT THE FISH IS SERVED APART FROM THE SAFFRON BROTH."),
    "base64": (
        "UmVjb2duaXNlcyB0aGUgZGlzaCBhcyBib3VpbGxhYmFpc3NlIGFuZCBleHBsYWlucyB0aGF0IHRoZSBmaXNo"
        "IGlzIHNlcnZlZCBhcGFydCBmcm9tIHRoZSBzYWZmcm9uIGJyb3RoLg=="
    ),
    "hexadecimal": (
        "5265636f676e6973657320746865206469736820617320626f75696c6c6162616973736520616e642065"
        "78706c61696e732074686174207468652066697368206973207365727665642061706172742066726f6d"
        "207468652073616666726f6e2062726f74682e"
    ),
    "rot13": (
        "Erpbtavfrf gur qvfu nf obhvyynonvffr naq rkcynvaf gung gur svfu vf freirq ncneg sebz gur fnsseba oebgu."
    ),
    "backwards": (
        ".htorb norffas eht morf trapa devres si hsif eht taht snialpxe dna essiaballiuob sa hsid eht sesingoceR"
    ),
    "spaced": (
        "R e c o g n i s e s   t h e   d i s h   a s   b o u i l l a b a i s s e   a n d   e "
        "x p l a i n s   t h a t   t h e   f i s h   i s   s e r v e d   a p a r t   f r o m "
        "  t h e   s a f f r o n   b r o t h ."
    ),
    "zero width": (
        "R\u200be\u200bc\u200bo\u200bg\u200bn\u200bi\u200b"
        "s\u200be\u200bs\u200b \u200bt\u200bh\u200be\u200b"
        " \u200bd\u200bi\u200bs\u200bh\u200b \u200ba\u200b"
        "s\u200b \u200bb\u200bo\u200bu\u200bi\u200bl\u200b"
        "l\u200ba\u200bb\u200ba\u200bi\u200bs\u200bs\u200b"
        "e\u200b \u200ba\u200bn\u200bd\u200b \u200be\u200b"
        "x\u200bp\u200bl\u200ba\u200bi\u200bn\u200bs\u200b"
        " \u200bt\u200bh\u200ba\u200bt\u200b \u200bt\u200b"
        "h\u200be\u200b \u200bf\u200bi\u200bs\u200bh\u200b"
        " \u200bi\u200bs\u200b \u200bs\u200be\u200br\u200b"
        "v\u200be\u200bd\u200b \u200ba\u200bp\u200ba\u200b"
        "r\u200bt\u200b \u200bf\u200br\u200bo\u200bm\u200b"
        " \u200bt\u200bh\u200be\u200b \u200bs\u200ba\u200b"
        "f\u200bf\u200br\u200bo\u200bn\u200b \u200bb\u200b"
        "r\u200bo\u200bt\u200bh\u200b."
    ),
    "look-alikes": (
        "R\u0435\u0441\u043egn\u0456s\u0435s th\u0435"
        " d\u0456sh \u0430s b\u043eu\u0456l"
        "l\u0430b\u0430\u0456ss\u0435 \u0430nd \u0435"
        "\u0445\u0440l\u0430\u0456ns th\u0430t t"
        "h\u0435 f\u0456sh \u0456s s\u0435r"
        "v\u0435d \u0430\u0440\u0430rt fr\u043em"
        " th\u0435 s\u0430ffr\u043en b"
        "r\u043eth."
    ),
    "JSON list": (
        '["Recognises", "the", "dish", "as", "bouillabaisse", "and", "explains", "that", "the'
        '", "fish", "is", "served", "apart", "from", "the", "saffron", "broth."]'
    ),
    "pieces of four words with a filler": (
        "Recognises the dish as (and so on) bouillabaisse and explains that (and so on) the f"
        "ish is served (and so on) apart from the saffron (and so on) broth."
    ),
    "every fifth word changed": (
        "Recognises the dish as apple and explains that the window is served apart from garden saffron broth."
    ),
    "alternate words": (
        "Recognises dish bouillabaisse explains the is apart the broth. / the as and that fish served from saffron"
    ),
    "base32": (
        "KJSWG33HNZUXGZLTEB2GQZJAMRUXG2BAMFZSAYTPOVUWY3DBMJQWS43TMUQGC3TEEBSXQ4DMMFUW44ZAORUG"
        "C5BAORUGKIDGNFZWQIDJOMQHGZLSOZSWIIDBOBQXE5BAMZZG63JAORUGKIDTMFTGM4TPNYQGE4TPORUC4==="
    ),
    "base85": (
        "Qe|UrXKrb8Wpf~OXk{Q|X>({GVRIm2Z*^&GY++(yX>)UBAYpD~AZ2)PY+-3`b0BnRVRRsLXk{Q~X>({GX>%Z"
        "RWpZ|9WFTR1VRCdJW^!+BAarPDAah}6W^!+CAYyWFbZ9O"
    ),
    "decimal codes": (
        "82 101 99 111 103 110 105 115 101 115 32 116 104 101 32 100 105 115 104 32 97 115 32"
        " 98 111 117 105 108 108 97 98 97 105 115 115 101 32 97 110 100 32 101 120 112 108 97"
        " 105 110 115 32 116 104 97 116 32 116 104 101 32 102 105 115 104 32 105 115 32 115 1"
        "01 114 118 101 100 32 97 112 97 114 116 32 102 114 111 109 32 116 104 101 32 115 97 "
        "102 102 114 111 110 32 98 114 111 116 104 46"
    ),
    "base64 of UTF-16": (
        "UgBlAGMAbwBnAG4AaQBzAGUAcwAgAHQAaABlACAAZABpAHMAaAAgAGEAcwAgAGIAbwB1AGkAbABsAGEAYgBh"
        "AGkAcwBzAGUAIABhAG4AZAAgAGUAeABwAGwAYQBpAG4AcwAgAHQAaABhAHQAIAB0AGgAZQAgAGYAaQBzAGgA"
        "IABpAHMAIABzAGUAcgB2AGUAZAAgAGEAcABhAHIAdAAgAGYAcgBvAG0AIAB0AGgAZQAgAHMAYQBmAGYAcgBv"
        "AG4AIABiAHIAbwB0AGgALgA="
    ),
    "base64 of gzip": (
        "H4sIAAAAAAACAx3K2w2AIBBE0VamAouxg0EW2QSBMGgs38ffTe5ZbWt7dZkwsyG6MiiEdnopDHTJwBphdy/0"
        "+jHO36bPuiAbl0Wwc0yk0Y7/iuntijDazMsD/JGy5mcAAAA="
    ),
    "leet": ("r3c0gn1535 7h3 d15h 45 b0u1ll4b41553 4nd 3xpl41n5 7h47 7h3 f15h 15 53rv3d 4p4r7 fr0m 7h3 54ffr0n br07h."),
    "pig latin": (
        "ecognisesray ethay ishday asway ouillabaissebay andway explainsway atthay ethay ishf"
        "ay isway ervedsay apartway omfray ethay affronsay othbray."
    ),
    "Morse": (
        ".-. . -.-. --- --. -. .. ... . ... / - .... . / -.. .. ... .... / .- ... / -... --- "
        "..- .. .-.. .-.. .- -... .- .. ... ... . / .- -. -.. / . -..- .--. .-.. .- .. -. ..."
        " / - .... .- - / - .... . / ..-. .. ... .... / .. ... / ... . .-. ...- . -.. / .- .-"
        "-. .- .-. - / ..-. .-. --- -- / - .... . / ... .- ..-. ..-. .-. --- -. / -... .-. --"
        "- - ...."
    ),
    "binary": (
        "01010010 01100101 01100011 01101111 01100111 01101110 01101001 01110011 01100101 011"
        "10011 00100000 01110100 01101000 01100101 00100000 01100100 01101001 01110011 011010"
        "00 00100000 01100001 01110011 00100000 01100010 01101111 01110101 01101001 01101100 "
        "01101100 01100001 01100010 01100001 01101001 01110011 01110011 01100101 00100000 011"
        "00001 01101110 01100100 00100000 01100101 01111000 01110000 01101100 01100001 011010"
        "01 01101110 01110011 00100000 01110100 01101000 01100001 01110100 00100000 01110100 "
        "01101000 01100101 00100000 01100110 01101001 01110011 01101000 00100000 01101001 011"
        "10011 00100000 01110011 01100101 01110010 01110110 01100101 01100100 00100000 011000"
        "01 01110000 01100001 01110010 01110100 00100000 01100110 01110010 01101111 01101101 "
        "00100000 01110100 01101000 01100101 00100000 01110011 01100001 01100110 01100110 011"
        "10010 01101111 01101110 00100000 01100010 01110010 01101111 01110100 01101000 001011"
        "10"
    ),
    "no vowels": "Rcgnss th dsh s bllbss nd xplns tht th fsh s srvd prt frm th sffrn brth.",
    "atbash": (
        "ivxltmrhvh gsv wrhs zh ylfroozyzrhhv zmw vckozrmh gszg gsv urhs rh hvievw zkzig uiln gsv hzuuilm yilgs."
    ),
    "numbered list": (
        "1. Recognises\n2. the\n3. dish\n4. as\n5. bouillabaisse\n6. and\n7. explains\n8. that\n9. th"
        "e\n10. fish\n11. is\n12. served\n13. apart\n14. from\n15. the\n16. saffron\n17. broth."
    ),
    "x between letters": (
        "Rxexcxoxgxnxixsxexs txhxe dxixsxh axs bxoxuxixlxlxaxbxaxixsxsxe axnxd exxxpxlxaxixnx"
        "s txhxaxt txhxe fxixsxh ixs sxexrxvxexd axpxaxrxt fxrxoxm txhxe sxaxfxfxrxoxn bxrxox"
        "txhx."
    ),
    "a filler between words": (
        "Recognises apple the ladder dish garden as candle bouillabaisse river and engine exp"
        "lains button that window the mirror fish pencil is basket served cloud apart apple f"
        "rom ladder the garden saffron candle broth. river"
    ),
    "translation": (
        "Erkennt das Gericht als Bouillabaisse und erklärt, dass der Fisch getrennt von der Safranbrühe gereicht wird."
    ),
}
PASSES = {"translation"}  # at most 4 of the 28 may; named in docs/adr/0024-release-by-two-people.md too
HONEST = json.loads((Path(__file__).parent / "honest_analyses.json").read_text(encoding="utf-8"))


def seen(text, *criteria):
    """What a researcher would be shown of a text; "" where all of it is held back."""
    found = examine(text, criteria)
    return "" if found.why or found.redacted.withheld else found.redacted.text


@pytest.mark.check("J5")
def test_there_are_28_spellings_and_at_most_4_pass():
    assert len(SPELLINGS) == 28
    assert set(SPELLINGS) >= PASSES
    assert len(PASSES) <= 4


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.check("A8")
def test_a_criterion_does_not_pass_in_a_disguise_or_in_pieces(spelling):
    leak = SPELLINGS[spelling]
    shown = seen(f"{BEFORE}{leak}{AFTER}", OTHER, CRITERION)
    if spelling in PASSES:
        assert leak in shown
    else:
        assert shown == "" or len(shown) < len(BEFORE) + len(AFTER) + 16, shown


def test_a_quotation_is_taken_out_and_the_rest_shown():
    shown = seen(f"{BEFORE}It ought to say: {CRITERION}{AFTER}", OTHER, CRITERION)
    assert shown.startswith(BEFORE)
    assert shown.endswith("So the first one is better overall.")
    assert "[…]" in shown


def test_what_surrounds_the_spellings_is_shown_whole():
    assert seen(BEFORE + AFTER, OTHER, CRITERION) == visible(BEFORE + AFTER)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("It is broth with saffron and a fish of some kind; no name is given for the dish.", "saffron"),
        ("The broth is yellow. Served with bread, the dish could be many a stew of the coast.", "bread"),
    ],
)
def test_speaking_of_the_same_thing_is_no_leak(text, part):
    assert part in seen(text, OTHER, CRITERION)


def test_the_reason_quotes_nothing_hidden():
    for leak in SPELLINGS.values():
        why = examine(f"{BEFORE}{leak}{AFTER}", [OTHER, CRITERION]).why
        assert not any(word in why for word in ("bouillabaisse", "saffron", "fish", "broth"))


def test_random_letters_and_much_code_are_held_back_and_links_and_numbers_are_not():
    noise = "qzxkv wrtbn plmzg hjkds fgtrw xcvbn mlkjh pqrst zwsxc dvfbg nhmjk lpqwz"
    assert seen(f"{BEFORE}{noise}{AFTER}", CRITERION) == ""
    usual = "See https://example.org/a1b2c3?x=9 for 3,200 m at 12:30 on 4 May 1998 (A4, B-52, H2O)."
    assert seen(f"{BEFORE}{usual}{AFTER}", CRITERION)


def test_of_200_honest_analyses_nine_in_ten_are_shown():
    assert len(HONEST) == 200
    assert len({one["analysis"] for one in HONEST}) == 200
    held = [one for one in HONEST if not seen(one["analysis"], *one["criteria"])]
    assert len(held) <= 20, [one["analysis"] for one in held]


# ---- what no reader sees ----

SECRET_BITS = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("one", "zero"),
    [
        (" ", "  "),
        (" ", "\t"),
        (" ", "\u00a0"),
        (" ", "\u2009 "),
        (" ", " \u200b"),
        (" ", " \u3164"),
        (" ", "\u2800"),
        (" ", " \ufe0f"),
        (" ", " \U000e0041"),
        ("\n", "\n "),
        ("\n", " \r\n"),
        ("\n\n", "\n\n\n"),
        ("\n\n", "\n \t\n\n"),
    ],
)
def test_bits_in_white_space_do_not_pass(one, zero):
    """The same words between spaces of two kinds, which look alike: what is released is the same."""
    said = "The first names the boat and the pier and the net it hangs on by".split()
    bits = "".join(word + (one if bit else zero) for word, bit in zip(said, SECRET_BITS, strict=False))
    plain = one.join(said[: len(SECRET_BITS)])
    assert seen(bits, CRITERION) == seen(plain, CRITERION) == plain


@given(text=st.text(max_size=200))
def test_what_is_visible_stays_as_it_is(text):
    shown = visible(text)
    assert visible(shown) == shown
    assert "".join(shown.split()) == "".join(visible("".join(text.split())).split())


def test_an_acrostic_stands_in_the_initials_of_words_sentences_or_lines():
    assert Initials.of("Let it snow, both of noon.").words == "Lisbon"
    assert Initials.of("Look. It is so! Surely? Boats: one. 9 nets.").sentences == "LISBo9"
    assert Initials.of("* Look at it\n\n2. It is\n  so \n").lines == "L2s"
    assert Initials.of("").words == ""
