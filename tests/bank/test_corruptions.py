"""Corrupted pictures and questions: the methods of ChEF's Tables 2 and 3, the same on every machine, and mild."""

import io
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from bank import corruptions
from bank.corruptions import Step, images, texts

QUESTION = 'What is the colour of the biggest object that isn\'t shown beside the text "Open Now" and $x^2$ in 2024?'
SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))


def photograph(width=160, height=120):
    """A picture with edges, colours and gradients."""
    across, down = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    waves = 0.5 + 0.5 * np.sin(40 * across) * np.cos(30 * down)
    pixels = np.stack([across, waves, 1 - down], axis=-1)
    pixels[height // 4 : height // 2, width // 4 : width // 2] = (0.9, 0.2, 0.1)
    return Image.fromarray((255 * pixels).astype(np.uint8))


def distance(one, other):
    return float(np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float)).mean())


def test_the_methods_are_those_of_the_papers_tables():
    assert Counter(method.category for method in images.METHODS.values()) == {
        "noise": 4,
        "blur": 5,
        "weather": 5,
        "digital": 5,
        "other": 3,
    }
    assert Counter(method.category for method in texts.METHODS.values()) == {
        "basic": 2,
        "sentence": 5,
        "word": 3,
        "character": 4,
        "choice": 2,
    }
    assert {name for name, method in texts.METHODS.items() if method.severities == 5} == {
        "swap-synonym",
        "ocr",
        "typos",
        "spelling",
        "keyboard",
    }


@pytest.mark.parametrize("method", images.METHODS)
def test_a_corrupted_picture_is_the_same_for_the_same_seed_as_large_as_before_and_another_one(method):
    picture = photograph()
    one, again, other = (images.corrupt(picture, method=method, severity=3, seed=seed) for seed in ("a", "a", "b"))
    assert one.tobytes() == again.tobytes()
    assert (one.size, one.mode) == (picture.size, "RGB")
    assert distance(one, picture) > 0.2
    drawn = images.METHODS[method].category in ("noise", "weather") and method != "brightness"
    assert (one.tobytes() != other.tobytes()) >= drawn


@pytest.mark.parametrize(
    "method",
    [
        name
        for name, method in images.METHODS.items()
        if method.category in ("noise", "blur", "other")
        or name in ("contrast", "pixelate", "jpeg-compression", "brightness")
    ],
)
def test_a_higher_severity_is_further_from_the_picture(method):
    picture = photograph(448, 448)
    steps = [distance(images.corrupt(picture, method=method, severity=at, seed="a"), picture) for at in range(1, 6)]
    assert steps == sorted(steps)


@settings(max_examples=15)
@given(size=SIZES, severity=st.integers(1, 5), mode=st.sampled_from(["RGB", "L", "RGBA", "P", "1", "CMYK"]))
def test_no_picture_is_too_small_and_no_mode_too_odd(size, severity, mode):
    picture = Image.new("RGB", size, "teal").convert(mode)
    for method in images.METHODS:
        assert images.corrupt(picture, method=method, severity=severity, seed="a").size == size


def test_a_crop_keeps_nine_tenths_of_the_picture_at_least():
    for severity, (area,) in enumerate(images.METHODS["centre-crop"].severities, start=1):
        assert area >= 0.9, severity
    across = Image.fromarray(np.tile(np.arange(200, dtype=np.uint8), (200, 1))).convert("RGB")
    seen = np.asarray(images.corrupt(across, method="centre-crop", severity=5, seed="a"))[100, :, 0]
    assert seen.max() - seen.min() >= 0.94 * 199


def test_a_zoom_blur_is_the_mean_of_eight_pictures_each_nearer_by_as_much():
    """An edge that is 200 columns off the centre stands elsewhere in each of them: it becomes a stair of eight."""
    columns = np.where(np.arange(800) < 600, 0, 255).astype(np.uint8)
    edge = Image.fromarray(np.tile(columns, (8, 1))).convert("RGB")
    blurred = np.asarray(images.corrupt(edge, method="zoom-blur", severity=5, seed="a"))[4, :, 0]
    nearer = [1 + 0.3 * step / 7 for step in range(8)]
    between = [400 + 200 * (nearer[step] + nearer[step + 1]) / 2 for step in range(7)]
    stair = [blurred[590], *(blurred[int(column)] for column in between), blurred[670]]
    assert stair == pytest.approx([255 * step / 8 for step in range(9)], abs=0.51)


def test_what_is_transparent_stands_on_white():
    clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert images.as_rgb(clear).getpixel((0, 0)) == (255, 255, 255)


def test_a_corrupted_picture_is_encoded_without_loss():
    picture = photograph()
    assert Image.open(io.BytesIO(corruptions.encoded(picture))).tobytes() == picture.tobytes()


@pytest.mark.parametrize("method", [name for name, one in texts.METHODS.items() if not (one.written or one.of_options)])
def test_a_corrupted_question_is_the_same_for_the_same_seed_and_another_one(method):
    most = texts.METHODS[method].severities
    changed = [texts.corrupt(QUESTION, method=method, severity=most, seed="a") for _ in range(2)]
    assert changed[0] == changed[1] != QUESTION
    for kept in ('"Open Now"', "$x^2$", "2024"):
        assert kept in changed[0]


@given(text=st.text(max_size=80), seed=st.text(max_size=3))
def test_no_question_becomes_empty_and_none_fails(text, seed):
    for name, method in texts.METHODS.items():
        if not method.written:
            changed = texts.corrupt(text, method=name, severity=method.severities, seed=seed)
            assert bool(changed.strip()) == bool(text.strip())


def test_a_chinese_question_keeps_its_words_and_letters():
    question = "图中最大的物体是什么颜色？"
    for name, method in texts.METHODS.items():
        if not method.written:
            assert texts.corrupt(question, method=name, severity=1, seed="a") == question


def test_synonyms_are_words_of_the_list_and_keep_their_capital():
    for seed in range(20):
        changed = texts.corrupt("Pictures show big objects.", method="swap-synonym", severity=5, seed=str(seed))
        words = changed.rstrip(".").split(" ")
        assert changed != "Pictures show big objects."
        assert words[0] in ("Pictures", "Images", "Photos")
    assert all(word not in others for word, others in texts.synonyms().items())


def test_more_words_are_hit_at_a_higher_severity():
    question = " ".join(["somewhere"] * 40)
    hit = [
        sum(word != "somewhere" for word in texts.corrupt(question, method="keyboard", severity=at, seed="a").split())
        for at in range(1, 6)
    ]
    assert hit == [2, 4, 6, 8, 10]


def test_contractions_are_written_out_and_the_other_way_round():
    changed = texts.corrupt(
        "What's this? It is not what I don't like.", method="contraction-expansion", severity=1, seed="a"
    )
    assert changed == "What is this? It's not what I do not like."


@pytest.mark.parametrize("labels", [["A", "B"], ["A", "B", "C", "D"]])
def test_options_are_turned_round_or_reversed(labels):
    turned = texts.reorder(labels, method="circular-options", seed="a")
    assert turned != labels
    assert turned in [[*labels[shift:], *labels[:shift]] for shift in range(1, len(labels))]
    assert texts.reorder(labels, method="reverse-options", seed="a") == labels[::-1]


def test_a_sentence_that_nobody_has_written_is_no_corruption():
    with pytest.raises(texts.NotWritten):
        texts.corrupt("Why?", method="passive", severity=1, seed="a")
    assert texts.corrupt("Why?", method="passive", severity=1, seed="a", written="What for?") == "What for?"


@pytest.mark.parametrize("seed", map(str, range(12)))
def test_a_composed_corruption_takes_one_of_each_category_and_all_of_two(seed):
    composed = corruptions.compose(seed=seed, image=True, text=True, options=4)
    kinds = [images.METHODS[step.method].category for step in composed.image]
    assert kinds == ["noise", "blur", "weather", "digital", "other", "other", "other"]
    kinds = [texts.METHODS[step.method].category for step in composed.text]
    assert kinds == ["basic", "basic", "word", "character", "choice"]
    assert composed.left_out == ("sentence",)
    assert all(1 <= step.severity <= 5 for step in (*composed.image, *composed.text))
    assert corruptions.compose(seed=seed, image=True, text=True, options=4) == composed
    with_sentence = corruptions.compose(seed=seed, image=False, text=True, options=1, written=["formal"])
    assert with_sentence.text[0] == Step("formal", 1)
    assert (with_sentence.image, with_sentence.left_out) == ((), ("choice",))


def test_severities_are_drawn_from_all_five():
    drawn = {
        step.severity
        for seed in range(40)
        for step in corruptions.compose(seed=str(seed), image=True, text=False).image
    }
    assert drawn == {1, 2, 3, 4, 5}


def test_what_is_unknown_is_refused_in_words():
    with pytest.raises(ValueError, match="no corruption called sparkle"):
        corruptions.single("sparkle")
    with pytest.raises(ValueError, match="from 1 to 5"):
        images.corrupt(photograph(), method="fog", severity=6, seed="a")
    assert corruptions.single("fog", severity=2).image == (Step("fog", 2),)


def test_the_document_prints_the_severities_that_are_used():
    document = (Path(__file__).resolve().parents[2] / "docs" / "corruptions.md").read_text(encoding="utf-8")
    printed = dict(re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+) \| \w+ \|$", document, re.MULTILINE))
    for name, method in images.METHODS.items():
        shown = "; ".join(", ".join(f"{value:g}" for value in severity) for severity in method.severities)
        assert printed[name].strip() == shown


def test_the_document_prints_what_becomes_of_a_question():
    document = (Path(__file__).resolve().parents[2] / "docs" / "corruptions.md").read_text(encoding="utf-8")
    question = re.search(r'^At severity 3, "(.+)" becomes:$', document, re.MULTILINE)[1]
    printed = dict(re.findall(r"^- `([\w-]+)`: (.+)$", document, re.MULTILINE))
    methods = [method for method in texts.METHODS.values() if not method.written and not method.of_options]
    assert printed == {
        method.name: texts.corrupt(question, method=method.name, severity=min(3, method.severities), seed="shown")
        for method in methods
    }
