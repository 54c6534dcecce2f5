"""Render the drawings of the demo benchmark to the images that its samples use.

Usage (maintainers only; the rendered images are committed):

    python tests/demo_data/render.py                  # every drawing
    python tests/demo_data/render.py street poster    # these drawings

Needs Playwright, Pillow and a Chromium (``CHROMIUM`` names another executable). The drawings use the generic font
families only, so letter shapes depend on the machine: look at every picture after rendering it.
Flat pictures become PNG with a palette, scenes JPEG or WebP. A picture outside the limits below fails the run.
"""

import io
import os
import re
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parents[2] / "evalsite" / "demo" / "data"
DRAWINGS, IMAGES = HERE / "drawings", HERE / "images"
SHORT_EDGE, LONG_EDGE, MAX_BYTES = 512, 1200, 120 * 1024
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
JPEG = {"receipt", "kitchen", "photo", "parcel", "mug", "note", "shelf", "dashboard"}
WEBP = {"street", "road", "park", "aquarium", "lake", "lighthouse", "shadows", "comic", "desk-a", "desk-b", "call"}


def suffix(name: str) -> str:
    """The file format of a drawing."""
    return "jpg" if name in JPEG else "webp" if name in WEBP else "png"


def encode(picture: Image.Image, kind: str) -> bytes:
    """Encode a screenshot, with lower quality where the file would be too large."""
    for quality in (88, 82, 76, 70, 62):
        out = io.BytesIO()
        if kind == "png":
            colours = 256 if quality == 88 else 128
            picture.quantize(colours, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        elif kind == "jpg":
            picture.save(out, "JPEG", quality=quality, optimize=True, progressive=True)
        else:
            picture.save(out, "WEBP", quality=quality, method=6)
        if out.tell() <= MAX_BYTES:
            break
    return out.getvalue()


def main(names: list[str]) -> int:
    """Render the named drawings, or all of them, and report their sizes."""
    IMAGES.mkdir(exist_ok=True)
    drawings = [DRAWINGS / f"{name}.svg" for name in names] or sorted(DRAWINGS.glob("*.svg"))
    bad = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        page = browser.new_page()
        for drawing in drawings:
            svg = drawing.read_text(encoding="utf-8")
            width, height = (int(re.search(rf'<svg[^>]* {side}="(\d+)"', svg)[1]) for side in ("width", "height"))
            page.set_viewport_size({"width": width, "height": height})
            page.set_content(f'<!doctype html><body style="margin:0;line-height:0">{svg}</body>')
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            target = IMAGES / f"{drawing.stem}.{suffix(drawing.stem)}"
            data = encode(picture, suffix(drawing.stem))
            target.write_bytes(data)
            fits = min(width, height) >= SHORT_EDGE and max(width, height) <= LONG_EDGE and len(data) <= MAX_BYTES
            bad += not fits
            note = "" if fits else "  OUT OF LIMITS"
            sys.stdout.write(f"{target.name:22} {width:5} x {height:<5} {len(data) / 1024:6.1f} KB{note}\n")
        browser.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
