"""Debian's chromium, for tests and pictures."""

import shutil

NEEDED = "It needs Debian's chromium: apt-get install chromium-headless-shell"


def executable() -> str | None:
    """Where it is; the one without windows of its own, where there is a choice, takes two thirds of the time."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")
