"""Pictures as they are shared: each letter has a glyph, nothing leaves the picture, and all name their source."""

import io
import re
import unicodedata
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import pytest
import resvg_py
from PIL import Image, ImageFont

from leaderboard.rows import Number
from leaderboard.show import drawing, fonts, sharing
from leaderboard.show.labels import _overlap
from leaderboard.show.plots import ForestRow, Plot, Point, Rows
from stats.figures import percent, whole_percent

SOURCE = sharing.Source("eval.example.org", "Everyday scenes", "everyday-scenes", datetime(2026, 11, 29, tzinfo=UTC))
CHINESE = "文心一言"
LONG = "some-organisation/a-very-long-name-of-a-model-instruct-2026-11-29-preview-quantised"


def rows(*names):
    return Rows(
        title="Judges beside one more person",
        under="Agreement with people on 1,059 items of Everyday scenes, in %, with 95% intervals",
        rows=[ForestRow(name, Number(0.8 - 0.3 * n / len(names), 0.4, 0.9)) for n, name in enumerate(names)],
        write=whole_percent,
        figure=percent,
        unit=0.01,
        person=Number(0.605, 0.525, 0.68),
    )


def priced(*names):
    return Plot(
        title="What agreement with people costs",
        under="Judges on 300 items of Everyday scenes, agreement with people, in %",
        across="price of 1,000 verdicts, US dollars",
        points=[Point(name, 2.0**n, Number(0.5 + 0.3 * n / len(names), 0.4, 0.85), "") for n, name in enumerate(names)],
        write=whole_percent,
        unit=0.01,
        person=Number(0.605, 0.525, 0.68),
    )


NAMED = {
    "one": ["GPT-4"],
    "two": ["GPT-4", "GPT-3.5 Turbo Instruct"],
    "sixty": [f"Model {n}" for n in range(60)],
    "long": [f"{LONG}-{n}" for n in range(9)],
    "letters": ["Ωμέγα −1.00", "Кириллица–7B", "Żółć·ñ (“x”)", "e\u0301tude", "<b>&amp;", "a\x07b"],
}
FIGURES = [make(*names) for names in NAMED.values() for make in (rows, priced)]


def pixels(figure, source=SOURCE):
    return Image.open(io.BytesIO(sharing.png(figure, source)))


def texts(svg):
    """Of a picture: the words with their boxes in its pixels."""
    root = ET.fromstring(drawing.standing_alone(svg))
    found = []

    def walk(node, x, y, scale):
        moved = re.match(r"translate\(([\d.-]+) ([\d.-]+)\) scale\(([\d.]+)\)", node.get("transform", ""))
        if moved:
            (a, b, by) = map(float, moved.groups())
            x, y, scale = x + a * scale, y + b * scale, scale * by
        if node.tag.endswith("}text"):
            size, anchor = float(node.get("font-size")) * scale, node.get("text-anchor")
            wide = fonts.width_of(node.text, size, bold="font-weight" in node.attrib)
            left = x + float(node.get("x")) * scale - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            base = y + float(node.get("y")) * scale
            found.append((node.text, (left, base - 0.75 * size, left + wide, base + 0.22 * size)))
        for child in node:
            walk(child, x, y, scale)

    walk(root, 0.0, 0.0, 1.0)
    return found


def painted(body, **more):
    """What is drawn, white on black."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="100">{body}</svg>'
    of_fonts = {"skip_system_fonts": True, "font_files": fonts.files()}
    png = resvg_py.svg_to_bytes(svg_string=svg, background="white", **of_fonts, **more)
    return Image.open(io.BytesIO(png)).convert("L").point(lambda value: 255 - value)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_picture_is_1200_by_630_and_not_blank(figure):
    picture = pixels(figure)
    assert picture.size == (1200, 630)
    grey = picture.convert("L")
    assert grey.getpixel((5, 300)) == 255, "white behind it"
    histogram = grey.histogram()
    assert sum(histogram[:100]) > 2000, "ink"


@pytest.mark.parametrize("figure", FIGURES)
def test_no_words_leave_the_picture_or_lie_on_others(figure):
    boxes = texts(sharing.card(figure, SOURCE))
    assert len(boxes) > 6
    for at, (words, box) in enumerate(boxes):
        assert box[0] >= sharing.MARGIN - 6, words
        assert box[2] <= sharing.WIDTH - sharing.MARGIN + 6, words
        assert box[3] <= sharing.HEIGHT, words
        for other, beside in boxes[at + 1 :]:
            assert not _overlap(box, beside), (words, other)


@pytest.mark.parametrize("figure", FIGURES)
def test_site_benchmark_and_day_stand_on_every_picture(figure):
    words = [text for text, _ in texts(sharing.card(figure, SOURCE))]
    assert "eval.example.org" in words
    assert "Everyday scenes · 29 Nov 2026" in words


@pytest.mark.parametrize("figure", FIGURES)
def test_every_letter_of_a_picture_has_a_glyph(figure, capfd):
    shown = sharing._written(figure, SOURCE)
    drawn = drawing.standing_alone(sharing.card(*shown))
    resvg_py.svg_to_bytes(svg_string=drawn, skip_system_fonts=True, font_files=fonts.files(), log_information=True)
    told = capfd.readouterr()
    assert "No fonts" not in told.out + told.err
    assert "No match" not in told.out + told.err
    assert not any(fonts.lacks(words) for words, _ in texts(sharing.card(*shown)))


def test_resvg_says_where_a_glyph_is_missing(capfd):
    """Else the test above would prove nothing."""
    painted(f'<text font-family="Inter">{CHINESE}</text>', log_information=True)
    told = capfd.readouterr()
    assert "No fonts with" in told.out + told.err


def test_the_shipped_font_has_latin_greek_and_cyrillic_and_the_signs_of_figures():
    def letters(start, end):
        return [chr(code) for code in range(start, end) if unicodedata.category(chr(code))[0] in "LNPS"]

    latin, greek, cyrillic = letters(0xA1, 0x180), letters(0x388, 0x3CF), letters(0x400, 0x460)
    every = [*letters(0x20, 0x7F), *latin, *greek, *cyrillic, *"−–—·…“”’×≥≤±→€%"]
    assert [letter for letter in every if fonts.lacks(letter)] == ["ŉ"], "which Unicode gave up"
    for letter in "文あ한ع🎉":
        assert fonts.lacks(letter), letter
    assert fonts.SHIPPED.stat().st_size < 600_000
    assert "SIL OPEN FONT LICENSE" in (fonts.SHIPPED.parent / "LICENSE").read_text()


@pytest.mark.parametrize("make", [rows, priced])
def test_a_name_that_no_font_here_can_write_is_left_out_and_named_in_the_title(make, settings):
    assert settings.PICTURE_FONTS == []
    figure = make("GPT-4", CHINESE, "Qwen")
    png = sharing.png(figure, SOURCE)
    title = Image.open(io.BytesIO(png)).text["Title"]
    assert f"Left out, for want of a font: {CHINESE}." in title
    assert title == sharing.titled(figure)
    words = " ".join(text for text, _ in texts(sharing.card(*sharing._written(figure, SOURCE))))
    assert "1 name left out, for want of a font" in words
    assert "GPT-4" in words
    assert CHINESE not in words
    assert CHINESE in sharing.card(figure, SOURCE), "who opens the SVG has fonts of their own"
    assert "Left out" not in sharing.titled(make("GPT-4"))


def test_a_benchmark_that_no_font_here_can_write_goes_by_its_short_name():
    figure, source = rows("GPT-4"), sharing.Source("x.org", CHINESE, "scenes", SOURCE.at)
    figure, source = sharing._written(
        Rows(title=f"Models on {CHINESE}", under=f"On {CHINESE} 🎉, in %", rows=figure.rows, write=str, figure=percent),
        source,
    )
    assert figure.title == "Models on scenes"
    assert figure.under == "On scenes , in %"
    assert source.benchmark == "scenes"


def test_a_font_that_is_not_there_is_as_if_it_were_not_named_and_the_log_says_so(settings, tmp_path, caplog):
    settings.PICTURE_FONTS = [str(tmp_path / "none.ttf")]
    assert fonts.files() == [str(fonts.SHIPPED)]
    assert "none.ttf" in caplog.text
    assert fonts.lacks(CHINESE)


def test_a_font_of_the_installation_writes_what_the_shipped_one_lacks(settings, capfd):
    other, font = "Հայ", Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
    if not font.exists():
        pytest.skip("It needs Debian's fonts-dejavu-core")
    assert sharing._missing(rows(other)) == [other]
    settings.PICTURE_FONTS = [str(font)]
    assert sharing._missing(rows(other)) == []
    assert "Left out" not in sharing.titled(rows(other))
    left, _, right, _ = painted(
        f'<text x="10" y="60" font-size="40" font-family="Inter">{other}</text>', log_information=True
    ).getbbox()
    told = capfd.readouterr()
    assert "No fonts" not in told.out + told.err
    assert right - left == pytest.approx(fonts.width_of(other, 40), abs=5)


@pytest.mark.parametrize("bold", [False, True])
def test_words_are_as_wide_as_resvg_draws_them(bold):
    """Room is made by one program and taken by another."""
    for words in ("What agreement with people costs", "GPT-3.5 Turbo Instruct", "Ωμέγα Кириллица −1.00", "WWWiii"):
        weight = fonts.BOLD if bold else 400
        drawn = f'<text x="10" y="60" font-size="40" font-family="Inter" font-weight="{weight}">{words}</text>'
        left, _, right, _ = painted(drawn).getbbox()
        assert right - left == pytest.approx(fonts.width_of(words, 40, bold=bold), rel=0.03, abs=4)


def test_a_title_of_any_length_takes_two_lines_at_most():
    wide = sharing.WIDTH - 2 * sharing.MARGIN
    for words in ("Models", "word " * 30, "w" * 300, f"a {'w' * 300} b", CHINESE * 40):
        lines, size = sharing._fitted(words, sharing.TITLES, bold=True)
        assert 1 <= len(lines) <= 2
        assert all(fonts.width_of(line, size, bold=True) <= wide for line in lines)
    assert sharing._fitted("Models", sharing.TITLES, bold=True) == (["Models"], sharing.TITLES[0])


def test_many_rows_say_how_many_are_not_shown():
    words = [text for text, _ in texts(sharing.card(rows(*NAMED["sixty"]), SOURCE))]
    shown = [text for text in words if text.startswith("Model ")]
    assert shown == [f"Model {n}" for n in range(len(shown))]
    assert f"and {60 - len(shown)} more" in words
    assert len(shown) >= 8


def test_the_shipped_font_is_one_that_pillow_reads_too():
    assert isinstance(fonts._font(str(fonts.SHIPPED)), ImageFont.FreeTypeFont)
