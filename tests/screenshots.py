"""python -m tests.screenshots: the pictures of README and documentation, taken anew of a fresh demo; with the argument
``corruptions`` the sheet of corruptions alone.
"""

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, sync_playwright

from tests import chromium
from tests.operations.served import free_port

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1440, "height": 900}
CHINESE = re.compile("[\u3400-\u9fff]")  # a machine's fonts may lack it
PASSWORD = "evalsite-demo"  # which serve prints
READY = "LLMFAO is in"  # the last that the demo brings


def until_labelling(page: Page) -> None:
    """Through guidelines and keys to the first item."""
    while page.locator("#work").count() == 0:
        page.locator("main .btn.primary").first.click()
        page.wait_for_load_state("networkidle")
    while CHINESE.search(page.locator("#work").inner_text()):
        page.keyboard.press("s")
        page.wait_for_timeout(1000)
        page.reload()  # without the message that it was skipped


def to(text: str) -> Callable[[Page], None]:
    """Follow the first link of that name."""

    def follow(page: Page) -> None:
        page.locator("main").get_by_role("link", name=text).first.click()
        page.wait_for_load_state("networkidle")

    return follow


# Name, who looks, where, and what they do there.
PICTURES: tuple[tuple[str, str, str, Callable[[Page], None] | None], ...] = (
    ("home", "", "/", None),
    ("models", "", "/leaderboards/everyday-scenes/models/", None),
    ("judges", "", "/leaderboards/everyday-scenes/judges/", None),
    ("judge", "", "/leaderboards/everyday-scenes/judges/", to("Steady")),
    ("annotate", "annotator", "/annotate/", None),
    ("label", "annotator", "/", until_labelling),
    ("benchmark", "curator", "/bank/benchmarks/everyday-scenes/", None),
    ("campaign", "curator", "/campaigns/", to("Everyday scenes, round 1")),
    ("run-new", "curator", "/judging/runs/new/", None),
    ("submission", "researcher", "/submissions/", to("Kestrel-VL 7B rotated")),
)


@contextmanager
def demo(folder: Path):
    """A fresh demo; its address."""
    port = free_port()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--bind", f"127.0.0.1:{port}"],
            cwd=ROOT,
            env=kept | {"EVALSITE_DATA": str(folder / "data"), "PYTHONUNBUFFERED": "1"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            while READY not in log.read_text():
                if process.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.5)
            yield f"http://localhost:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def take(page: Page, path: Path) -> None:
    """With as many colours as a page has in sight: a quarter of the size, and nobody sees the difference."""
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1000} KB")


def corruptions_sheet() -> None:
    """One picture of the demo after each corruption, under its name."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from bank.corruptions import images

    wide, tall, across = 224, 168, 5
    whole = Image.open(ROOT / "evalsite" / "demo" / "data" / "images" / "kitchen.jpg").convert("RGB")
    whole = whole.resize((4 * wide, 4 * tall), Image.Resampling.LANCZOS)
    shown = {"as it is": whole} | {
        name: images.corrupt(whole, method=name, severity=3, seed="shown") for name in images.METHODS
    }
    sheet = Image.new("RGB", (across * (wide + 8) + 8, -(-len(shown) // across) * (tall + 30) + 8), "white")
    pen = ImageDraw.Draw(sheet)
    for number, (name, picture) in enumerate(shown.items()):
        x, y = 8 + number % across * (wide + 8), 8 + number // across * (tall + 30)
        sheet.paste(picture.resize((wide, tall), Image.Resampling.LANCZOS), (x, y))
        pen.text((x + 2, y + tall + 4), name, fill="#14191C", font=ImageFont.load_default(13))
    sheet.save(IMAGES / "corruptions.jpg", quality=80, optimize=True)


def main() -> None:
    if sys.argv[1:] == ["corruptions"]:
        return corruptions_sheet()
    executable = chromium.executable() or sys.exit(chromium.NEEDED)
    with tempfile.TemporaryDirectory() as folder, demo(Path(folder)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        pages: dict[str, Page] = {}
        for name, person, path, then in PICTURES:
            if person not in pages:
                pages[person] = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
                if person:
                    page = pages[person]
                    page.goto(f"{address}/accounts/sign-in/")
                    page.get_by_label("Name").fill(person)
                    page.get_by_label("Password").fill(PASSWORD)
                    page.get_by_role("button", name="Sign in").click()
                    page.wait_for_load_state("networkidle")
            page = pages[person]
            page.goto(address + path)
            page.wait_for_load_state("networkidle")
            if then:
                then(page)
            take(page, IMAGES / f"{name}.png")
        browser.close()
    corruptions_sheet()


if __name__ == "__main__":
    main()
